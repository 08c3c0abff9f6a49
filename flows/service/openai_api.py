"""OpenAI's chat interface (/v1) for the clients that speak it.

The models are `trellis`, which chooses how to answer, and `trellis-MODE`; `@WORKSPACE` at the end
names another workspace than the default one. What is streamed as the answer is the answer: its
pieces come when it is checked, since no client can take one back. The draft that a model writes
before comes as `reasoning_content`, which clients fold away.
"""

import re
import time
import uuid
from collections.abc import AsyncIterator
from typing import Any

from fastapi import APIRouter, Depends, Request
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import to_json

from flows.answer_page import source_line
from flows.modes.registry import mode_names
from flows.question import AUTO
from flows.service.access import needs
from flows.service.asking import AskRequest, Event, Service, note_question
from flows.service.rest import NOT_BUFFERED, Here
from flows.service.workspaces import DEFAULT
from prompts.text.regex import regex
from storage.answer_records import Answer
from storage.errors import NotFound, UsageError

router = APIRouter(prefix="/v1", dependencies=[Depends(needs("ask"))], tags=["openai"])
NAME = "trellis"
PIECE = 48  # characters of a piece of a streamed answer
Json = dict[str, Any]


class TextPart(BaseModel):
    """A part of a message's content; only texts are read."""

    model_config = ConfigDict(extra="ignore")

    type: str
    text: str | None = None


class ChatMessage(BaseModel):
    """A message of a chat; of `content` in parts the texts count."""

    model_config = ConfigDict(extra="ignore")

    role: str
    content: str | list[TextPart] | None = None

    @property
    def text(self) -> str:
        """The words. UsageError for a part that is no text."""
        if not isinstance(self.content, list):
            return self.content or ""
        for part in self.content:
            if part.text is None or part.type != "text":
                message = f"A message holds a part of the type {part.type[:40]!r} without words."
                raise UsageError(message, "Only text can be asked.")
        return "\n".join(str(part.text) for part in self.content)


class ChatRequest(BaseModel):
    """A chat: the last message of the user is the question, what was said before its history.

    What else OpenAI's interface knows (tools, temperature, …) has no effect here.
    """

    model_config = ConfigDict(extra="ignore")

    messages: list[ChatMessage] = Field(min_length=1)
    model: str = NAME
    stream: bool = False
    stream_options: Json | None = None

    def asked(self, service: Service) -> AskRequest:
        """The question. NotFound for a model that there is not, UsageError where nothing is asked."""
        workspace, mode = place_of(self.model, service)
        turns = [row for row in self.messages if row.role in {"user", "assistant"} and row.text.strip()]
        if not turns or turns[-1].role != "user":
            remedy = "Let a message of the role `user` be the last."
            raise UsageError("The chat does not end with a question.", remedy)
        history = tuple(message.text for message in turns[:-1])
        return AskRequest(question=turns[-1].text, workspace=workspace, mode=mode, history=history)


def model_names(service: Service) -> list[str]:
    """Name the models that may be asked."""
    names = [NAME, *(f"{NAME}-{mode}" for mode in mode_names() if mode != AUTO)]
    others = [workspace for workspace in service.workspaces.names if workspace != DEFAULT]
    return names + [f"{name}@{workspace}" for workspace in others for name in names]


def place_of(model: str, service: Service) -> tuple[str, str]:
    """Give the workspace and the mode of a model. Raises NotFound."""
    if model not in model_names(service):
        remedy = f"Use {NAME!r}, or another of GET /v1/models."
        raise NotFound(f"There is no model {model[:80]!r}.", remedy)
    plain, _, workspace = model.partition("@")
    return workspace or DEFAULT, plain.removeprefix(NAME).removeprefix("-") or AUTO


# Lines of an answer's text that look like the rule above our footnotes, or begin like one of them.
_RULE = regex(r"^([ \t>]*)(([-*_=—–])(?:[ \t]*\3){2,}[ \t]*)$", re.MULTILINE)
_NOTE = regex(r"^([ \t>*_+#|-]*)(\[\d+\])", re.MULTILINE)


def with_footnotes(answer: Answer) -> str:
    """Write an answer with its sources below, for clients that know of no citations."""
    notes = "\n".join(f"{source_line(citation)}  " for citation in answer.citations)
    # The text may come from a document: no line of it may pass for one of our notes.
    text = _RULE.sub(r"\1\\\2", _NOTE.sub(r"\1\\\2", answer.answer))
    return f"{text}\n\n---\n{notes}" if notes else text


def _about(answer: Answer) -> Json:
    """Say what no other server has: the citations, and how the answer came about."""
    about = {
        "mode": answer.trace.mode,
        "fallback": answer.fallback,
        "generation": answer.generation,
    }
    return {"citations": [row.model_dump() for row in answer.citations], "trellis": about}


def _tokens(answer: Answer) -> Json:
    read, written = answer.usage.input_tokens, answer.usage.output_tokens
    return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}


@router.get("/models")
def models(service: Here) -> Json:
    """The models: one for each way to answer in each workspace."""
    rows = [{"id": name, "object": "model", "created": 0, "owned_by": NAME} for name in model_names(service)]
    return {"object": "list", "data": rows}


@router.get("/models/{name}")
def model(name: str, service: Here) -> Json:
    """One of the models."""
    place_of(name, service)
    return {"id": name, "object": "model", "created": 0, "owned_by": NAME}


@router.post("/chat/completions", response_model=None)
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
    choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
    more = {"object": "chat.completion", "choices": [choice], "usage": _tokens(answer)}
    return {**head, **more, **_about(answer)}


async def _chunks(events: AsyncIterator[Event], chat: ChatRequest, head: Json) -> AsyncIterator[bytes]:
    head = {**head, "object": "chat.completion.chunk"}

    def chunk(delta: Json, finish: str | None = None, **more: object) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
        return _line({**head, "choices": [choice], **more})

    yield chunk({"role": "assistant", "content": ""})
    async for event in events:
        if isinstance(event.data, Answer):
            text = with_footnotes(event.data)
            for start in range(0, len(text), PIECE):
                yield chunk({"content": text[start : start + PIECE]})
            yield chunk({}, "stop", **_about(event.data))
            if (chat.stream_options or {}).get("include_usage"):
                yield _line({**head, "choices": [], "usage": _tokens(event.data)})
        elif event.event == "error":
            yield _line({"error": event.data})
        elif event.event == "text":
            yield chunk({"reasoning_content": event.data["text"]})
        else:
            yield b": working\n\n"  # a comment, so that nobody takes the connection for dead
    yield b"data: [DONE]\n\n"


def _line(message: Json) -> bytes:
    return b"data: " + to_json(message) + b"\n\n"
