"""Ollama's chat interface (/api), with the models of openai_api."""

from collections.abc import AsyncIterator

from fastapi import APIRouter, Depends, Request
from fastapi.responses import StreamingResponse
from pydantic_core import to_json

from flows.service.access import needs, within_filter
from flows.service.asking import Event, note_question
from flows.service.openai_api import (
    NAME,
    ChatRequest,
    Json,
    model_names,
    own_fields,
    pieces_of,
    with_footnotes,
)
from flows.service.rest import NOT_BUFFERED, Here
from storage.answer_records import Answer
from storage.records import utc_now

router = APIRouter(prefix="/api", dependencies=[Depends(needs("ask"))], tags=["ollama"])
# Ollama describes the file of a model; these models have none.
DETAILS = {
    "family": NAME,
    "families": [NAME],
    "format": "",
    "parameter_size": "",
    "quantization_level": "",
}


class OllamaRequest(ChatRequest):
    """A chat in Ollama's form, streamed by default."""

    stream: bool = True


@router.get("/version")
@within_filter
def version() -> Json:
    """Return the version of Ollama whose interface this is; clients ask for it first."""
    return {"version": "0.6.0"}


@router.get("/tags")
@within_filter
def tags(service: Here) -> Json:
    """List the models in Ollama's form."""
    common = {"modified_at": utc_now(), "size": 0, "details": DETAILS}
    names = [(name, f"{name}:latest") for name in model_names(service)]
    return {
        "models": [{"name": tag, "model": tag, "digest": name, **common} for name, tag in names]
    }


@router.post("/chat", response_model=None)
@within_filter
async def chat(asked: OllamaRequest, request: Request, service: Here) -> Json | StreamingResponse:
    """Answer the last message of a chat, in lines of JSON or without `stream` in one object."""
    question = asked.asked(service)
    note_question(request, service.settings, question)
    if asked.stream:
        lines = _lines(service.questions.events(question), asked.model)
        return StreamingResponse(lines, media_type="application/x-ndjson", headers=NOT_BUFFERED)
    answer = await service.questions.answer(question)
    return _message(asked.model, with_footnotes(answer)) | _end(answer)


async def _lines(events: AsyncIterator[Event], model: str) -> AsyncIterator[bytes]:
    async for event in events:
        if isinstance(event.data, Answer):
            for piece in pieces_of(event.data):
                yield to_json(_message(model, piece)) + b"\n"
            yield to_json(_message(model, "") | _end(event.data)) + b"\n"
        elif event.event == "error":
            yield to_json({"error": event.data["message"]}) + b"\n"


def _message(model: str, text: str) -> Json:
    message = {"role": "assistant", "content": text}
    return {"model": model, "created_at": utc_now(), "message": message, "done": False}


def _end(answer: Answer) -> Json:
    used = answer.usage
    return {
        "done": True,
        "done_reason": "stop",
        "prompt_eval_count": used.input_tokens,
        "eval_count": used.output_tokens,
        "total_duration": int(used.seconds * 1e9),  # nanoseconds
        **own_fields(answer),
    }
