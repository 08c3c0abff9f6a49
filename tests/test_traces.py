"""Traces: what a collector receives of a run, and that nothing is sent unless it is asked for."""

import asyncio
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent import futures
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import grpc
import pytest
from opentelemetry import trace
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import (
    TraceServiceServicer,
    add_TraceServiceServicer_to_server,
)

from flows.tracing import start_tracing
from prompts.engine.messages import Call, Message
from prompts.engine.spans import ModelSpan, span
from prompts.engine.spending import Spent
from tests.server.client import Server
from tests.workspaces import indexed

QUESTION = "Who designed Orla Bridge?"
ROWS = (
    {"id": "bridge", "title": "Orla Bridge", "text": "Orla Bridge was designed by Tomas Reyd."},
    {"id": "reyd", "title": "Tomas Reyd", "text": "Tomas Reyd was born in Velin."},
)
# A program with a span of its own around a question, which is answered in another thread.
PROGRAM = """
import sys
from opentelemetry import trace
from flows.query import ask
from flows.tracing import start_tracing
from prompts.engine.errors import EngineError
start_tracing(texts=False)
with trace.get_tracer("program").start_as_current_span("program"):
    try:
        ask(sys.argv[1], workspace=sys.argv[2], mode="naive")
    except EngineError as error:
        print(error.message)
"""


@dataclass(frozen=True)
class Sent:
    """A span as it arrived."""

    name: str
    id: bytes
    parent: bytes
    trace: bytes
    status: tuple[int, str]
    attributes: dict[str, Any]


@dataclass
class Collector:
    """What arrived at a collector, and the variables by which a program finds it."""

    variables: dict[str, str] = field(default_factory=dict)
    requests: list[ExportTraceServiceRequest] = field(default_factory=list)

    @property
    def spans(self) -> list[Sent]:
        return [
            Sent(
                it.name,
                it.span_id,
                it.parent_span_id,
                it.trace_id,
                (it.status.code, it.status.message),
                {
                    row.key: getattr(row.value, row.value.WhichOneof("value"))
                    for row in it.attributes
                },
            )
            for request in self.requests
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for it in scope.spans
        ]

    def named(self, name: str) -> Sent:
        return next(it for it in self.spans if it.name == name)

    def path(self, of: Sent) -> list[str]:
        """The names from the outermost span to this one."""
        by_id = {it.id: it for it in self.spans}
        above = self.path(by_id[of.parent]) if of.parent else []
        return [*above, of.name]


@pytest.fixture
def by_http() -> Iterator[Collector]:
    collector = Collector()

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            collector.requests.append(ExportTraceServiceRequest.FromString(body))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(ExportTraceServiceResponse().SerializeToString())

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Receiver) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        collector.variables["OTEL_EXPORTER_OTLP_ENDPOINT"] = (
            f"http://127.0.0.1:{server.server_port}"
        )
        yield collector
        server.shutdown()


@pytest.fixture
def by_grpc() -> Iterator[Collector]:
    collector = Collector()

    class Receiver(TraceServiceServicer):
        def Export(  # noqa: N802 -- the name of the service
            self, request: ExportTraceServiceRequest, context: object
        ) -> ExportTraceServiceResponse:
            collector.requests.append(request)
            return ExportTraceServiceResponse()

    server = grpc.server(futures.ThreadPoolExecutor(2))
    add_TraceServiceServicer_to_server(Receiver(), server)  # type: ignore[no-untyped-call]
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    collector.variables["OTEL_EXPORTER_OTLP_ENDPOINT"] = f"http://127.0.0.1:{port}"
    collector.variables["OTEL_EXPORTER_OTLP_PROTOCOL"] = "grpc"
    yield collector
    server.stop(None)


@pytest.fixture(params=["by_http", "by_grpc"])
def collector(request: pytest.FixtureRequest) -> Collector:
    exporter = "opentelemetry.exporter.otlp.proto"
    if find_spec(f"{exporter}.{request.param.removeprefix('by_')}") is None:
        pytest.skip("needs the extra otel")
    found: Collector = request.getfixturevalue(request.param)
    return found


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return indexed(tmp_path_factory.mktemp("traced"), ROWS)


def run(workspace: Path, collector: Collector, caches: Path, **variables: str) -> str:
    """Run the program with no answer kept; return what it printed."""
    ours = {"TRELLIS_EMBEDDING": "none", "TRELLIS_CACHE_DIR": str(caches)}
    environment = {**os.environ, **collector.variables, **ours, **variables}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, QUESTION, str(workspace)],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "opentelemetry" not in done.stderr
    return done.stdout


def test_a_call_is_in_its_step_its_run_and_the_program(
    workspace: Path, collector: Collector, scripted: Server, tmp_path: Path
) -> None:
    run(workspace, collector, tmp_path)
    call, question, found = map(collector.named, ("chat openai/m", "question", "retrieve"))
    answer = next(it for it in collector.spans if it.attributes.get("trellis.step") == "answer")
    assert collector.path(answer) == ["program", "question", "answer", "chat openai/m"]
    assert collector.path(found) == ["program", "question", "retrieve"]
    assert {it.trace for it in collector.spans} == {call.trace}
    its = answer.attributes
    assert its["openinference.span.kind"] == "LLM"
    assert (its["llm.provider"], its["llm.model_name"]) == ("openai", "m")
    assert its["llm.token_count.total"] > its["llm.token_count.completion"] > 0
    assert question.attributes["trellis.input_tokens"] >= its["llm.token_count.prompt"]
    assert found.attributes["openinference.span.kind"] == "RETRIEVER"
    place = json.loads(found.attributes["retrieval.documents.0.document.metadata"])
    assert place == {"document": "bridge"}
    sent = b"".join(request.SerializeToString() for request in collector.requests)
    assert b"service.name" in sent
    for text in ("designed", "Tomas", "born", "made-up-key"):
        assert text.encode() not in sent


def test_texts_are_sent_where_a_setting_asks(
    workspace: Path, by_grpc: Collector, scripted: Server, tmp_path: Path
) -> None:
    run(workspace, by_grpc, tmp_path, TRELLIS_TRACE_TEXTS="on")
    assert by_grpc.named("question").attributes["input.value"] == QUESTION
    its = by_grpc.named("chat openai/m").attributes
    assert its["llm.input_messages.0.message.role"] == "system"
    assert its["output.value"]
    found = by_grpc.named("retrieve").attributes
    assert found["retrieval.documents.0.document.content"] == ROWS[0]["text"]


def test_an_error_is_the_status_of_its_spans(
    workspace: Path, by_grpc: Collector, scripted: Server, tmp_path: Path
) -> None:
    scripted.misbehave({"kind": "unauthorized"})
    printed = run(workspace, by_grpc, tmp_path)
    assert printed
    failed = [it for it in by_grpc.spans if it.status[0] == 2]
    assert {"chat openai/m", "question"} <= {it.name for it in failed}
    assert all(it.status[1].isidentifier() for it in failed), "a kind of error, and no text"


def test_nothing_is_recorded_without_the_variable() -> None:
    start_tracing(texts=False)
    assert isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)
    with span("question", "CHAIN", words="none") as current:
        assert not current.is_recording()


def test_a_span_ends_and_its_error_goes_on() -> None:
    async def work() -> None:
        with span("question"):
            raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(work())


def test_a_call_without_a_known_price_has_no_cost() -> None:
    call = Call("answer", (Message("user", QUESTION),), 100)
    seen = ModelSpan(trace.get_current_span())
    seen.record(Spent(calls=1, input_tokens=9, output_tokens=2, cost_usd=0.25))
    assert seen.attributes()["llm.cost.total"] == 0.25
    seen.record(Spent(calls=1, cost_usd=None))
    assert seen.attributes()["llm.cost.total"] is None
    assert call.step == "answer"
