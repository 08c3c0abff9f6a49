"""Spans of OpenTelemetry for runs, steps and calls of models, with OpenInference's names.

Where no program has set a tracer provider (`flows/tracing.py` does), nothing is recorded. Texts of
questions, documents and answers are attributes only with `show_texts`. An error is the status of
its spans, by its kind alone where texts are not shown.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Literal, Protocol

from opentelemetry import trace
from opentelemetry.trace import Span, Status, StatusCode

from prompts.engine.key_masking import mask_keys
from prompts.engine.messages import Call
from prompts.engine.spending import Spent

Kind = Literal["CHAIN", "LLM", "RETRIEVER", "RERANKER", "EMBEDDING", "TOOL"]
Attribute = str | int | float | bool | None

_TRACER = trace.get_tracer("trellis")
# By default a span keeps 128 attributes and drops the oldest: see OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT.
_MOST_FOUND = 25
_MOST_MESSAGES = 40
# Steps of a kind of their own; the others are a CHAIN.
_KINDS: Mapping[str, Kind] = {
    "retrieve": "RETRIEVER",
    "search-graph": "RETRIEVER",
    "rerank": "RERANKER",
    "embed": "EMBEDDING",
    "use-tool": "TOOL",
}


class Shown:
    """Whether texts are attributes of spans, in the whole process."""

    texts = False


def show_texts(shown: bool) -> None:
    """Say whether spans from now on hold texts."""
    Shown.texts = shown


class Ranked(Protocol):
    """A passage that was found."""

    @property
    def chunk(self) -> str: ...
    @property
    def document(self) -> str: ...
    @property
    def score(self) -> float: ...
    @property
    def text(self) -> str: ...


@contextmanager
def span(name: str, kind: Kind = "CHAIN", /, **attributes: Attribute) -> Iterator[Span]:
    """Enclose work in a span, within the one that the caller is in, in whatever thread."""
    with _TRACER.start_as_current_span(
        name, record_exception=False, set_status_on_exception=False
    ) as current:
        if current.is_recording():
            current.set_attribute("openinference.span.kind", kind)
            _set(current, attributes)
        try:
            yield current
        except BaseException as error:
            said = f": {mask_keys(str(error))}" if Shown.texts else ""
            current.set_status(Status(StatusCode.ERROR, f"{type(error).__name__}{said}"))
            raise


@contextmanager
def step_span(name: str) -> Iterator[Span]:
    """Enclose a step."""
    with span(name, _KINDS.get(name, "CHAIN")) as current:
        yield current


@contextmanager
def model_span(call: Call, model: str) -> Iterator["ModelSpan"]:
    """Enclose a call of a model with all its tries."""
    with span(f"chat {model}", "LLM") as current:
        seen = ModelSpan(current)
        try:
            yield seen
        finally:
            if current.is_recording():
                _set(current, _of_call(call, model) | seen.attributes())


class ModelSpan:
    """What a call of a model has cost, and its last answer."""

    def __init__(self, current: Span) -> None:
        self._current = current
        self._spent = Spent()
        self._answer: str | None = None

    def record(self, spent: Spent) -> None:
        """Add the cost of a try."""
        self._spent.add(spent)

    def answered(self, text: str) -> None:
        """Take the text of an answer in place of an earlier one."""
        self._answer = text

    def attributes(self) -> dict[str, Attribute]:
        spent = self._spent
        own: dict[str, Attribute] = {
            "llm.token_count.prompt": spent.input_tokens,
            "llm.token_count.completion": spent.output_tokens,
            "llm.token_count.total": spent.input_tokens + spent.output_tokens,
            "llm.cost.total": spent.cost_usd,
            "trellis.tries": spent.calls,
            "trellis.cached": spent.cached_calls > 0,
        }
        if Shown.texts and self._answer is not None:
            own["output.value"] = self._answer
            own["llm.output_messages.0.message.role"] = "assistant"
            own["llm.output_messages.0.message.content"] = self._answer
        return own


def _of_call(call: Call, model: str) -> dict[str, Attribute]:
    provider, slash, name = model.partition("/")
    settings = {"max_tokens": call.max_tokens, "temperature": call.temperature, **call.extra}
    own: dict[str, Attribute] = {
        "llm.model_name": name if slash else model,
        "llm.provider": provider if slash else None,
        "llm.invocation_parameters": json.dumps(settings, default=str),
        "trellis.step": call.step,
    }
    if Shown.texts:
        for place, message in enumerate(call.messages[:_MOST_MESSAGES]):
            own[f"llm.input_messages.{place}.message.role"] = message.role
            own[f"llm.input_messages.{place}.message.content"] = message.content
    return own


def note(**attributes: Attribute) -> None:
    """Add attributes of our own to the current span."""
    current = trace.get_current_span()
    if current.is_recording():
        _set(current, {f"trellis.{name}": value for name, value in attributes.items()})


def note_texts(question: str | None = None, answer: str | None = None) -> None:
    """Add texts to the current span, if texts are shown."""
    if Shown.texts:
        _set(trace.get_current_span(), {"input.value": question, "output.value": answer})


def note_found(passages: Sequence[Ranked]) -> None:
    """Add the places of the best passages to the current span, and the number of all."""
    current = trace.get_current_span()
    if not current.is_recording():
        return
    note(found=len(passages))
    for place, passage in enumerate(passages[:_MOST_FOUND]):
        name = f"retrieval.documents.{place}.document"
        _set(
            current,
            {
                f"{name}.id": passage.chunk,
                f"{name}.score": passage.score,
                f"{name}.metadata": json.dumps({"document": passage.document}, ensure_ascii=False),
                f"{name}.content": passage.text if Shown.texts else None,
            },
        )


def _set(current: Span, attributes: Mapping[str, Attribute]) -> None:
    current.set_attributes({name: it for name, it in attributes.items() if it is not None})
