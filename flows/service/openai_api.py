"""OpenAI's interface (/v1) and Ollama's (/api/chat, /api/tags) for chat clients that speak them.

The models are `trellis`, which chooses how to answer, and `trellis-MODE`; `@WORKSPACE` at the end names another
workspace than the default one. What is streamed as the answer is the answer: its pieces come when it is checked, since
no client can take one back. The draft that a model writes before comes as `reasoning_content`, which clients fold away.
"""

import base64
import time
import uuid
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from typing import Any, Literal

import numpy as np
from fastapi import APIRouter, Depends, Request
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import to_json

from flows.modes.registry import mode_names
from flows.question import AUTO
from flows.service.access import needs
from flows.service.asking import AskRequest, Event, Service, note_question
from flows.service.rest import NOT_BUFFERED, Here
from flows.service.workspaces import DEFAULT
from flows.session import Session
from flows.usage import source_line
from prompts.engine.spending import Meter
from prompts.text.regex import regex
from storage.answer_records import Answer
from storage.errors import NotFound, UsageError

router = APIRouter(dependencies=[Depends(needs("ask"))], tags=["openai and ollama"])
NAME = "trellis"
PIECE = 48  # characters of a piece of a streamed answer
MOST_TEXTS = 2048
# Settings of a model that a pipeline of many calls has no single place for.
_UNHEEDED = {"tools", "tool_choice", "functions", "response_format", "logprobs", "n", "stop"}
Json = dict[str, Any]


class ChatMessage(BaseModel):
    """A message of a chat; of `content` in parts the texts count."""

    model_config = ConfigDict(extra="ignore")

    role: str
    content: str | list[Json] | None = None
    images: list[object] | None = None  # as Ollama's clients send pictures

    @property
    def text(self) -> str:
        """The words. UsageError for a part that is no text, and for pictures."""
        if self.images:
            raise UsageError("A message holds pictures (`images`), which are not read.", "Only text can be asked.")
        parts = self.content if isinstance(self.content, list) else [{"type": "text", "text": self.content or ""}]
        other = next((part for part in parts if part.get("type") != "text"), None)
        if other is not None:
            kind = str(other.get("type"))[:40]
            raise UsageError(f"A message holds a part of the type {kind!r}.", "Only text can be asked.")
        texts = [part.get("text") for part in parts]
        if not all(isinstance(text, str) for text in texts):
            raise UsageError("A part of the type 'text' has no `text`.", "Give each part its words, or leave it out.")
        return "\n".join(map(str, texts))


class ChatRequest(BaseModel):
    """A chat: the last message of the user is the question, what was said before is its history."""

    model_config = ConfigDict(extra="allow")

    messages: list[ChatMessage] = Field(min_length=1)
    model: str = NAME
    stream: bool = False
    stream_options: Json | None = None

    def asked(self, service: Service) -> AskRequest:
        """The question. Raises NotFound for a model that there is not, UsageError where nothing is asked."""
        workspace, mode = _model(self.model, service)
        spoken = [
            message for message in self.messages if message.role in {"user", "assistant"} and message.text.strip()
        ]
        if not spoken or spoken[-1].role != "user":
            raise UsageError("The chat does not end with a question.", "Let a message of the role `user` be the last.")
        history = tuple(message.text for message in spoken[:-1])
        return AskRequest(question=spoken[-1].text, workspace=workspace, mode=mode, history=history)

    @property
    def warnings(self) -> list[str]:
        """In words, what of the request has no effect."""
        unheeded = sorted(name for name, value in (self.model_extra or {}).items() if name in _UNHEEDED and value)
        roles = {message.role for message in self.messages} - {"user", "assistant", "tool"}
        instructed = ["Messages of the system are not read: instructions are settings here."] if roles else []
        return [f"`{name}` has no effect: the answer is made from documents alone." for name in unheeded] + instructed


def model_names(service: Service) -> list[str]:
    """The names of the models that may be asked."""
    names = [NAME, *(f"{NAME}-{mode}" for mode in mode_names() if mode != AUTO)]
    others = [workspace for workspace in service.workspaces.names if workspace != DEFAULT]
    return names + [f"{name}@{workspace}" for workspace in others for name in names]


def _model(name: str, service: Service) -> tuple[str, str]:
    """The workspace and the mode of a model; Ollama's clients put `:latest` behind names."""
    known = name.removesuffix(":latest")
    if known not in model_names(service):
        raise NotFound(f"There is no model {name[:80]!r}.", f"Use {NAME!r}, or another of GET /v1/models.")
    plain, _, workspace = known.partition("@")
    return workspace or DEFAULT, plain.removeprefix(NAME).removeprefix("-") or AUTO


def with_footnotes(answer: Answer) -> str:
    """The answer with its sources below, as clients show it that know of no citations."""
    notes = "\n".join(f"{source_line(citation)}  " for citation in answer.citations)
    text = "".join(map(_no_note, answer.answer.splitlines(keepends=True)))
    return f"{text}\n\n---\n{notes}" if notes else text


_BEFORE = " \t>*_+#|-"  # what Markdown may put before the words of a line
_RULES = "-*_=—–"
_MARKER = regex(r"\[\d+\]")


def _no_note(line: str) -> str:
    """A line of an answer's text, which may come from a document: what looks like the rule above
    our footnotes, or begins like one of them, is escaped.
    """
    words = line.lstrip(_BEFORE)
    signs = "".join(line.lstrip(" \t>").split())
    if len(signs) >= len("---") and signs[0] in _RULES and signs == signs[0] * len(signs):
        words = line.lstrip(" \t>")
    elif not _MARKER.match(words):
        return line
    return f"{line[: len(line) - len(words)]}\\{words}"


def _about(answer: Answer, chat: ChatRequest) -> Json:
    """What no other server has: the citations, and how the answer came about."""
    about = {"mode": answer.trace.mode, "fallback": answer.fallback, "generation": answer.generation}
    citations = [citation.model_dump() for citation in answer.citations]
    return {"citations": citations, "trellis": {**about, "warnings": chat.warnings}}


def _tokens(answer: Answer) -> Json:
    used = answer.usage
    return {
        "prompt_tokens": used.input_tokens, "completion_tokens": used.output_tokens,
        "total_tokens": used.input_tokens + used.output_tokens,
    }  # fmt: skip


# --- OpenAI ----------------------------------------------------------------------------------------------------------


@router.get("/v1/models")
def models(service: Here) -> Json:
    """The models: one for each way to answer in each workspace."""
    rows = [{"id": name, "object": "model", "created": 0, "owned_by": NAME} for name in model_names(service)]
    return {"object": "list", "data": rows}


@router.get("/v1/models/{name}")
def model(name: str, service: Here) -> Json:
    """One of the models."""
    _model(name, service)
    return {"id": name, "object": "model", "created": 0, "owned_by": NAME}


@router.post("/v1/chat/completions", response_model=None)
async def complete(chat: ChatRequest, request: Request, service: Here) -> Json | StreamingResponse:
    """Answer the last message of a chat, sources as footnotes and as the field `citations`."""
    asked = chat.asked(service)
    note_question(request, service.settings, asked)
    head = {"id": f"chatcmpl-{uuid.uuid4().hex}", "created": int(time.time()), "model": chat.model}
    if chat.stream:
        lines = _chunks(service.questions.events(asked), chat, head)
        return StreamingResponse(lines, media_type="text/event-stream", headers=NOT_BUFFERED)
    answer = await service.questions.answer(asked)
    message = {"role": "assistant", "content": with_footnotes(answer)}
    return {
        **head, "object": "chat.completion", "usage": _tokens(answer), **_about(answer, chat),
        "choices": [{"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}],
    }  # fmt: skip


async def _chunks(events: AsyncIterator[Event], chat: ChatRequest, head: Json) -> AsyncIterator[bytes]:
    def chunk(delta: Json, finish: str | None = None, **more: object) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
        return _line({**head, "object": "chat.completion.chunk", "choices": [choice], **more})

    yield chunk({"role": "assistant", "content": ""})
    async for event in events:
        if isinstance(event.data, Answer):
            for piece in _pieces(event.data):
                yield chunk({"content": piece})
            yield chunk({}, "stop", **_about(event.data, chat))
            if (chat.stream_options or {}).get("include_usage"):
                usage = {"choices": [], "usage": _tokens(event.data)}
                yield _line({**head, "object": "chat.completion.chunk", **usage})
        elif event.event == "error":
            yield _line({"error": event.data})
        elif event.event == "text":
            yield chunk({"reasoning_content": event.data["text"]})
        else:
            yield b": working\n\n"  # a comment, so that nobody takes the connection for dead
    yield b"data: [DONE]\n\n"


def _line(message: Json) -> bytes:
    return b"data: " + to_json(message) + b"\n\n"


def _pieces(answer: Answer) -> list[str]:
    text = with_footnotes(answer)
    return [text[start : start + PIECE] for start in range(0, len(text), PIECE)]


class EmbeddingRequest(BaseModel):
    """Texts to embed with the model that a workspace is embedded with."""

    model_config = ConfigDict(extra="ignore")

    input: str | list[str]
    model: str = NAME
    encoding_format: Literal["float", "base64"] = "float"


@router.post("/v1/embeddings")
async def embeddings(wanted: EmbeddingRequest, service: Here) -> Json:
    """The vectors of texts as passages: `trellis`, or `trellis@WORKSPACE`, is the embedding model of the workspace."""
    workspace, _ = _model(wanted.model, service)
    texts = [wanted.input] if isinstance(wanted.input, str) else wanted.input
    if not 0 < len(texts) <= MOST_TEXTS:
        raise UsageError(f"{len(texts)} texts cannot be embedded at once.", f"Send 1 to {MOST_TEXTS}.")
    if (empty := next((place for place, text in enumerate(texts) if not text.strip()), None)) is not None:
        raise UsageError(f"Text {empty} is empty.", "Leave it out: only words can be embedded.")
    async with service.questions.turn(workspace) as meter:
        name, vectors = await service.workspaces.read(workspace, lambda session: _embedded(session, texts, meter))
    tokens = sum(spent.input_tokens for _, _, spent in meter.rows())
    rows = [
        {
            "object": "embedding", "index": place,
            "embedding": base64.b64encode(vector.tobytes()).decode() if wanted.encoding_format == "base64"
            else vector.tolist(),
        }
        for place, vector in enumerate(vectors)
    ]  # fmt: skip
    return {"object": "list", "data": rows, "model": name, "usage": {"prompt_tokens": tokens, "total_tokens": tokens}}


def _embedded(session: Session, texts: Sequence[str], meter: Meter) -> tuple[str, "np.typing.NDArray[np.float32]"]:
    embedder = session.runtime.embedder.metered(meter)
    for place, text in enumerate(texts):
        if not embedder.reads(text):
            raise UsageError(
                f"The embedding model {embedder.name!r} cannot read text {place}.",
                "Set another model (TRELLIS_EMBEDDING).",
            )
    return embedder.name, np.asarray(embedder.embed(texts, keep=False), dtype="<f4")


# --- Ollama ----------------------------------------------------------------------------------------------------------


@router.get("/api/version")
def ollama_version() -> Json:
    """What Ollama's clients ask first."""
    return {"version": "0.6.0"}


@router.get("/api/tags")
def ollama_models(service: Here) -> Json:
    """The models as Ollama lists its own."""
    details = {"family": NAME, "families": [NAME], "format": "", "parameter_size": "", "quantization_level": ""}
    rows = [
        {"name": f"{name}:latest", "model": f"{name}:latest", "modified_at": _now(), "size": 0, "digest": name,
         "details": details}
        for name in model_names(service)
    ]  # fmt: skip
    return {"models": rows}


class OllamaRequest(ChatRequest):
    """A chat as Ollama takes it; streamed unless it says otherwise."""

    stream: bool = True


@router.post("/api/chat", response_model=None)
async def ollama_chat(chat: OllamaRequest, request: Request, service: Here) -> Json | StreamingResponse:
    """Answer the last message of a chat as Ollama does: lines of JSON."""
    asked = chat.asked(service)
    note_question(request, service.settings, asked)
    if chat.stream:
        lines = _ollama_lines(service.questions.events(asked), chat)
        return StreamingResponse(lines, media_type="application/x-ndjson", headers=NOT_BUFFERED)
    answer = await service.questions.answer(asked)
    return _ollama_message(chat, with_footnotes(answer)) | _ollama_end(answer, chat)


async def _ollama_lines(events: AsyncIterator[Event], chat: ChatRequest) -> AsyncIterator[bytes]:
    async for event in events:
        if isinstance(event.data, Answer):
            for piece in _pieces(event.data):
                yield to_json(_ollama_message(chat, piece)) + b"\n"
            yield to_json(_ollama_message(chat, "") | _ollama_end(event.data, chat)) + b"\n"
        elif event.event == "error":
            yield to_json({"error": event.data["message"]}) + b"\n"


def _ollama_message(chat: ChatRequest, text: str) -> Json:
    message = {"role": "assistant", "content": text}
    return {"model": chat.model, "created_at": _now(), "message": message, "done": False}


def _ollama_end(answer: Answer, chat: ChatRequest) -> Json:
    counts = {"prompt_eval_count": answer.usage.input_tokens, "eval_count": answer.usage.output_tokens}
    seconds = {"total_duration": int(answer.usage.seconds * 1e9)}
    return {"done": True, "done_reason": "stop", **counts, **seconds, **_about(answer, chat)}


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
