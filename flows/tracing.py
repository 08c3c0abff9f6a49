"""Sends the spans of this process to a collector, where OpenTelemetry's own variables name one."""

import logging
import os
import threading
from importlib import import_module
from importlib.metadata import version

from opentelemetry import trace

from prompts.engine.spans import note, show_texts
from storage.run_records import Usage

logger = logging.getLogger(__name__)

ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_EXPORTERS = {
    "http/protobuf": "opentelemetry.exporter.otlp.proto.http.trace_exporter",
    "grpc": "opentelemetry.exporter.otlp.proto.grpc.trace_exporter",
}
_STARTED = threading.Event()
_LOCK = threading.Lock()


def start_tracing(texts: bool) -> None:
    """Send spans to the collector of `OTEL_EXPORTER_OTLP_ENDPOINT`; with `texts` they hold texts.

    Without that variable nothing is sent. The exporter reads the other standard variables. Where
    the program has a tracer provider already, that one gets the spans. What is left is sent at the
    end of the process.
    """
    show_texts(texts)
    endpoint = _first(ENDPOINTS)
    if not endpoint or os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return
    with _LOCK:
        if not _STARTED.is_set():
            _STARTED.set()
            _start(endpoint)


def _start(endpoint: str) -> None:
    protocol = _first(PROTOCOLS) or "http/protobuf"
    try:
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        exporter = import_module(_EXPORTERS[protocol]).OTLPSpanExporter()
    except (ImportError, KeyError) as error:
        logger.warning(
            "No traces are sent to %s (%s=%s): %s. Install what sends them: pip install "
            "'trellis-rag[otel]'.",
            *(endpoint, PROTOCOLS[1], protocol, error),
        )
        return
    if not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        return
    named = "service.name" in os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
    named = named or bool(os.environ.get("OTEL_SERVICE_NAME"))
    own = {"service.version": version("trellis-rag")}
    provider = TracerProvider(
        resource=Resource.create(own if named else {**own, "service.name": "trellis"})
    )
    provider.add_span_processor(BatchSpanProcessor(exporter))
    trace.set_tracer_provider(provider)


def note_usage(usage: Usage, generation: int | None = None) -> None:
    """Add what a run has cost to its span; the spans of its calls have the tokens of each."""
    note(
        calls=usage.calls,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cost_usd=usage.cost_usd,
        generation=generation,
    )


def _first(names: tuple[str, ...]) -> str:
    return next(filter(None, map(os.environ.get, names)), "")
