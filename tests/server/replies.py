"""How is a message written in OpenAI's and in Ollama's formats, whole and as a stream?"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tests.server.faults import Reply

Json = Mapping[str, object]
PIECES = 8
# Fixed: an answer holds no clock, so that equal requests get equal bytes.
CREATED = 1_700_000_000
CREATED_AT = "2023-11-14T22:13:20Z"


@dataclass(frozen=True, slots=True)
class Spoken:
    """A reply with its model and the tokens it took."""

    model: str
    reply: Reply
    prompt_tokens: int
    completion_tokens: int

    @property
    def usage(self) -> Json:
        return {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "total_tokens": self.prompt_tokens + self.completion_tokens,
        }


def encoded(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def completion(said: Spoken) -> Json:
    """`/v1/chat/completions` in one piece; vLLM and Ollama's `/v1` write the same."""
    message: dict[str, object] = {"role": "assistant", "content": said.reply.content, "refusal": said.reply.refusal}
    if said.reply.reasoning is not None:
        message["reasoning_content"] = said.reply.reasoning
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": said.reply.finish}
    return {**_head(said, "chat.completion"), "choices": [choice], "usage": said.usage}


def completion_events(said: Spoken, *, with_usage: bool) -> Iterator[bytes]:
    """The same as server-sent events, the usage in one of its own before the end."""
    head = _head(said, "chat.completion.chunk")
    deltas: list[dict[str, object]] = [{"role": "assistant", "content": ""}]
    if said.reply.reasoning is not None:
        deltas.append({"reasoning_content": said.reply.reasoning})
    if said.reply.refusal is not None:
        deltas.append({"refusal": said.reply.refusal})
    deltas += [{"content": piece} for piece in _pieces(said.reply.content or "")]
    for delta in deltas:
        yield _event({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
    yield _event({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": said.reply.finish}]})
    if with_usage:
        yield _event({**head, "choices": [], "usage": said.usage})
    yield b"data: [DONE]\n\n"


def ollama(said: Spoken) -> Json:
    """`/api/chat` in one piece."""
    message: dict[str, object] = {"role": "assistant", "content": said.reply.content or said.reply.refusal or ""}
    if said.reply.reasoning is not None:
        message["thinking"] = said.reply.reasoning
    return {**_ollama_head(said), "message": message, **_ollama_end(said)}


def ollama_lines(said: Spoken) -> Iterator[bytes]:
    """The same as lines of JSON."""
    head = {**_ollama_head(said), "done": False}
    if said.reply.reasoning is not None:
        message = {"role": "assistant", "content": "", "thinking": said.reply.reasoning}
        yield encoded({**head, "message": message}) + b"\n"
    for piece in _pieces(said.reply.content or said.reply.refusal or ""):
        yield encoded({**head, "message": {"role": "assistant", "content": piece}}) + b"\n"
    yield encoded({**head, "message": {"role": "assistant", "content": ""}, **_ollama_end(said)}) + b"\n"


def _head(said: Spoken, kind: str) -> dict[str, object]:
    return {"id": "chatcmpl-scripted", "object": kind, "created": CREATED, "model": said.model}


def _ollama_head(said: Spoken) -> dict[str, object]:
    return {"model": said.model, "created_at": CREATED_AT}


def _ollama_end(said: Spoken) -> dict[str, object]:
    return {
        "done": True,
        "done_reason": said.reply.finish,
        "total_duration": 1,
        "prompt_eval_count": said.prompt_tokens,
        "eval_count": said.completion_tokens,
    }


def _event(value: Json) -> bytes:
    return b"data: " + encoded(value) + b"\n\n"


def _pieces(text: str) -> Iterator[str]:
    size = max(1, -(-len(text) // PIECES))
    return (text[at : at + size] for at in range(0, len(text), size))
