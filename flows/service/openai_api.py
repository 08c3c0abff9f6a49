"""OpenAI's interface (/v1) for chats and embeddings.

The models are `trellis`, which chooses the mode, and `trellis-MODE`; the suffix `@WORKSPACE` names
another workspace than the default one. No client can take back a streamed piece, so the answer is
streamed only after it is checked. The draft before it is streamed as `reasoning_content`, which
clients collapse.
"""

import base64
import re
import time
import uuid
from collections.abc import AsyncIterator, Sequence
from typing import Annotated, Any, Literal

import numpy as np
from fastapi import APIRouter, Depends, Request
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field
from pydantic_core import to_json

from flows.answer_page import source_line
from flows.modes.registry import mode_names
from flows.question import AUTO
from flows.service.access import needs, within_filter
from flows.service.asking import AskRequest, Event, Service, note_question
from flows.service.rest import NOT_BUFFERED, Here
from flows.service.workspaces import DEFAULT
from flows.session import Session
from prompts.engine.spending import Meter
from storage.answer_records import Answer
from storage.errors import NotFound, UsageError

router = APIRouter(prefix="/v1", dependencies=[Depends(needs("ask"))], tags=["openai"])
NAME = "trellis"
PIECE = 48  # characters of a piece of a streamed answer
MOST_TEXTS = 2048  # in one embedding request, as with OpenAI
Json = dict[str, Any]


class TextPart(BaseModel):
    """A part of a message's content; only text is supported."""

    type: str
    text: str | None = None


class ChatMessage(BaseModel):
    """A message of a chat."""

    role: str
    content: str | list[TextPart] | None = None
    images: list[object] | None = None  # how clients of Ollama send pictures

    @property
    def text(self) -> str:
        """The text of all parts. Raises UsageError for pictures and other parts without text."""
        if self.images:
            raise UsageError("A message holds pictures (`images`).", "Only text can be asked.")
        if not isinstance(self.content, list):
            return self.content or ""
        for part in self.content:
            if part.text is None or part.type != "text":
                message = f"A message holds a part of the type {part.type[:40]!r} without words."
                raise UsageError(message, "Only text can be asked.")
        return "\n".join(str(part.text) for part in self.content)


class ChatRequest(BaseModel):
    """A chat: the last message is the question, the earlier ones are its history.

    Other fields of OpenAI's interface (tools, temperature, …) are ignored.
    """

    messages: list[ChatMessage] = Field(min_length=1)
    model: str = NAME
    stream: bool = False
    stream_options: Json | None = None

    def asked(self, service: Service) -> AskRequest:
        """Convert the chat to a question. Raises NotFound for an unknown model, UsageError if the
        last message is not a question.
        """
        workspace, mode = place_of(self.model, service)
        turns = [
            row for row in self.messages if row.role in {"user", "assistant"} and row.text.strip()
        ]
        if not turns or turns[-1].role != "user":
            remedy = "Let a message of the role `user` be the last."
            raise UsageError("The chat does not end with a question.", remedy)
        history = tuple(message.text for message in turns[:-1])
        return AskRequest(question=turns[-1].text, workspace=workspace, mode=mode, history=history)


def model_names(service: Service) -> list[str]:
    """Return the names of all models."""
    names = [NAME, *(f"{NAME}-{mode}" for mode in mode_names() if mode != AUTO)]
    others = [workspace for workspace in service.workspaces.names if workspace != DEFAULT]
    return names + [f"{name}@{workspace}" for workspace in others for name in names]


def place_of(model: str, service: Service) -> tuple[str, str]:
    """Return the workspace and the mode of a model. Raises NotFound."""
    model = model.removesuffix(":latest")  # Clients of Ollama append it to names.
    if model not in model_names(service):
        remedy = f"Use {NAME!r}, or another of GET /v1/models."
        raise NotFound(f"There is no model {model[:80]!r}.", remedy)
    plain, _, workspace = model.partition("@")
    return workspace or DEFAULT, plain.removeprefix(NAME).removeprefix("-") or AUTO


# Lines of an answer that look like the rule above the footnotes, or begin like a footnote.
_RULE = re.compile(r"^([ \t>]*)(([-*_=—–])(?:[ \t]*\3){2,}[ \t]*)$", re.MULTILINE)
_NOTE = re.compile(r"^([ \t>*_+#|-]*)(\[\d+\])", re.MULTILINE)


def with_footnotes(answer: Answer) -> str:
    """Format an answer with its sources as footnotes, for clients without citations."""
    notes = "\n".join(f"{source_line(citation)}  " for citation in answer.citations)
    # The text may come from a document, and must not forge a footnote.
    text = _RULE.sub(r"\1\\\2", _NOTE.sub(r"\1\\\2", answer.answer))
    return f"{text}\n\n---\n{notes}" if notes else text


def pieces_of(answer: Answer) -> list[str]:
    """Split an answer with its footnotes into pieces for a stream."""
    text = with_footnotes(answer)
    return [text[start : start + PIECE] for start in range(0, len(text), PIECE)]


def own_fields(answer: Answer) -> Json:
    """Return the fields that only Trellis has: the citations, and how the answer was found."""
    found = {"mode": answer.trace.mode, **answer.model_dump(include={"fallback", "generation"})}
    return {"citations": [row.model_dump() for row in answer.citations], "trellis": found}


def _tokens(answer: Answer) -> Json:
    read, written = answer.usage.input_tokens, answer.usage.output_tokens
    return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}


@router.get("/models")
@within_filter
def models(service: Here) -> Json:
    """List the models: one for each mode and workspace."""
    return {"object": "list", "data": [_model(name) for name in model_names(service)]}


@router.get("/models/{name}")
@within_filter
def model(name: str, service: Here) -> Json:
    """Return one of the models."""
    place_of(name, service)
    return _model(name)


def _model(name: str) -> Json:
    return {"id": name, "object": "model", "created": 0, "owned_by": NAME}


@router.post("/chat/completions", response_model=None)
@within_filter
async def complete(chat: ChatRequest, request: Request, service: Here) -> Json | StreamingResponse:
    """Answer the last message of a chat, with footnotes and the field `citations`."""
    asked = chat.asked(service)
    note_question(request, service.settings, asked)
    head = {"id": f"chatcmpl-{uuid.uuid4().hex}", "created": int(time.time()), "model": chat.model}
    if chat.stream:
        lines = _chunks(service.questions.events(asked), chat, head)
        return StreamingResponse(lines, media_type="text/event-stream", headers=NOT_BUFFERED)
    answer = await service.questions.answer(asked)
    message = {"role": "assistant", "content": with_footnotes(answer)}
    choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
    more = {"object": "chat.completion", "choices": [choice], "usage": _tokens(answer)}
    return {**head, **more, **own_fields(answer)}


async def _chunks(
    events: AsyncIterator[Event], chat: ChatRequest, head: Json
) -> AsyncIterator[bytes]:
    head = {**head, "object": "chat.completion.chunk"}

    def chunk(delta: Json, finish: str | None = None, **more: object) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
        return _line({**head, "choices": [choice], **more})

    yield chunk({"role": "assistant", "content": ""})
    async for event in events:
        if isinstance(event.data, Answer):
            for piece in pieces_of(event.data):
                yield chunk({"content": piece})
            yield chunk({}, "stop", **own_fields(event.data))
            if (chat.stream_options or {}).get("include_usage"):
                yield _line({**head, "choices": [], "usage": _tokens(event.data)})
        elif event.event == "error":
            yield _line({"error": event.data})
        elif event.event == "text":
            yield chunk({"reasoning_content": event.data["text"]})
        else:
            yield b": working\n\n"  # A comment keeps the connection alive.
    yield b"data: [DONE]\n\n"


def _line(message: Json) -> bytes:
    return b"data: " + to_json(message) + b"\n\n"


class EmbeddingRequest(BaseModel):
    """Texts to embed with the embedding model of a workspace."""

    input: str | Annotated[list[str], Field(min_length=1, max_length=MOST_TEXTS)]
    model: str = NAME
    encoding_format: Literal["float", "base64"] = "float"


@router.post("/embeddings")
@within_filter
async def embeddings(wanted: EmbeddingRequest, service: Here) -> Json:
    """Embed texts like passages, with the embedding model of `trellis@WORKSPACE`."""
    workspace, _ = place_of(wanted.model, service)
    texts = [wanted.input] if isinstance(wanted.input, str) else wanted.input
    async with service.questions.turn(workspace) as meter:
        name, vectors = await service.workspaces.read(
            workspace, lambda session: _embedded(session, texts, meter)
        )
    tokens = sum(spent.input_tokens for _, _, spent in meter.rows())
    packed = wanted.encoding_format == "base64"
    rows = [
        {
            "object": "embedding",
            "index": index,
            "embedding": base64.b64encode(row.tobytes()).decode() if packed else row.tolist(),
        }
        for index, row in enumerate(vectors)
    ]
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"object": "list", "data": rows, "model": name, "usage": usage}


def _embedded(
    session: Session, texts: Sequence[str], meter: Meter
) -> tuple[str, "np.typing.NDArray[np.float32]"]:
    """Return the embedder's name and a little-endian matrix with a row for each text.

    Raises UsageError for a text that the embedder cannot read.
    """
    embedder = session.runtime.embedder.metered(meter)
    for index, text in enumerate(texts):
        if not text.strip() or not embedder.reads(text):
            message = f"The embedding model {embedder.name!r} cannot read text {index}."
            raise UsageError(message, "Leave it out, or set another model (TRELLIS_EMBEDDING).")
    return embedder.name, np.asarray(embedder.embed(texts, keep=False), dtype="<f4")
