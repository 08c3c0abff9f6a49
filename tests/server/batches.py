"""Queues of batches as OpenAI and Anthropic offer them, in front of the scripted model.

OpenAI: `POST /v1/files`, `POST /v1/batches`, `GET /v1/batches/ID`, `GET /v1/files/ID/content`, each request one of
`/v1/responses`. Anthropic: `POST /v1/messages/batches`, `GET /v1/messages/batches/ID` and `…/results`. A batch is done
when its state was asked for so often (`POST /settings`, `batch_polls`; below 0 the reply to that never ends). A rule of
the script that holds for a request makes an entry that failed.
"""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from aiohttp import web

Json = Mapping[str, object]
# Answers a request as `/v1/chat/completions` would: its text, tokens in and out; None where it fails.
Answer = Callable[[str, dict[str, object], str | None], tuple[str, int, int] | None]


@dataclass(slots=True)
class _Batch:
    """The lines of its results, and how often its state was asked for."""

    lines: list[str]
    polls: int = 0


class Batches:
    """The handlers of both forms. After so many `polls` a batch is done."""

    def __init__(self, answer: Answer, polls: Callable[[], int]) -> None:
        self._answer = answer
        self._polls = polls
        self._files: dict[str, str] = {}
        self._batches: dict[str, _Batch] = {}

    def routes(self) -> list[web.RouteDef]:
        return [
            web.post("/v1/files", self._upload),
            web.get("/v1/files/{id}/content", self._content),
            web.post("/v1/batches", self._create),
            web.get("/v1/batches/{id}", self._state),
            web.post("/v1/messages/batches", self._create_of_messages),
            web.get("/v1/messages/batches/{id}", self._state_of_messages),
            web.get("/v1/messages/batches/{id}/results", self._content),
        ]

    # --- OpenAI ------------------------------------------------------------------------------------------------------

    async def _upload(self, request: web.Request) -> web.Response:
        file = (await request.post())["file"]
        assert isinstance(file, web.FileField)
        name = f"file-{len(self._files) + 1}"
        self._files[name] = file.file.read().decode()
        return web.json_response({"id": name, "object": "file", "purpose": "batch"})

    async def _create(self, request: web.Request) -> web.Response:
        rows = map(json.loads, self._files[(await request.json())["input_file_id"]].splitlines())
        key = request.headers.get("Authorization")
        return web.json_response(self._openai(self._add([self._response(row, key) for row in rows])))

    async def _state(self, request: web.Request) -> web.StreamResponse:
        if self._polls() >= 0:
            return web.json_response(self._openai(self._asked(request)))
        reply = web.StreamResponse()
        await reply.prepare(request)
        while True:
            await reply.write(b" ")
            await asyncio.sleep(0.02)

    def _openai(self, name: str) -> Json:
        batch = self._batches[name]
        done = batch.polls >= self._polls()
        status = "completed" if done else "in_progress"
        return {
            "id": name, "object": "batch", "created_at": 1_700_000_000, "status": status,
            "output_file_id": name if done else None, "request_counts": {"total": len(batch.lines)},
        }  # fmt: skip

    def _response(self, row: Json, key: str | None) -> str:
        body = row["body"]
        assert isinstance(body, dict)
        turns = [{"role": turn["role"], "content": _text(turn["content"])} for turn in body["input"]]
        system = [{"role": "system", "content": body["instructions"]}] if body.get("instructions") else []
        chat: dict[str, object] = {"model": body["model"], "messages": [*system, *turns]}
        if form := body.get("text", {}).get("format"):
            chat["response_format"] = {"type": form["type"], "json_schema": form}
        answered = self._answer("/v1/responses", chat, key)
        if answered is None:
            error = {"error": {"message": "The server had an error.", "type": "server_error"}}
            return json.dumps({"custom_id": row["custom_id"], "response": {"status_code": 500, "body": error}})
        text, read, written = answered
        message = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}
        usage = {"input_tokens": read, "output_tokens": written, "total_tokens": read + written}
        whole = {
            "id": "resp-scripted", "object": "response", "status": "completed", "model": body["model"],
            "output": [message], "usage": usage,
        }  # fmt: skip
        return json.dumps({"custom_id": row["custom_id"], "response": {"status_code": 200, "body": whole}})

    # --- Anthropic ---------------------------------------------------------------------------------------------------

    async def _create_of_messages(self, request: web.Request) -> web.Response:
        rows, key = (await request.json())["requests"], request.headers.get("x-api-key")
        name = self._add([self._message(row, key) for row in rows])
        return web.json_response(self._anthropic(name, request))

    async def _state_of_messages(self, request: web.Request) -> web.Response:
        return web.json_response(self._anthropic(self._asked(request), request))

    def _anthropic(self, name: str, request: web.Request) -> Json:
        batch = self._batches[name]
        done = batch.polls >= self._polls()
        url = f"{request.url.origin()}/v1/messages/batches/{name}/results"
        return {
            "id": name, "type": "message_batch", "processing_status": "ended" if done else "in_progress",
            "request_counts": {"succeeded": len(batch.lines)}, "results_url": url if done else None,
        }  # fmt: skip

    def _message(self, row: Json, key: str | None) -> str:
        body = row["params"]
        assert isinstance(body, dict)
        turns = [{"role": turn["role"], "content": _text(turn["content"])} for turn in body["messages"]]
        chat: dict[str, object] = {
            "model": body["model"], "messages": [{"role": "system", "content": _text(body.get("system", ""))}, *turns]
        }  # fmt: skip
        if form := body.get("output_config", {}).get("format"):
            chat["response_format"] = {"type": form["type"], "json_schema": form}
        answered = self._answer("/v1/messages", chat, key)
        if answered is None:
            error = {"type": "error", "error": {"type": "api_error", "message": "The server had an error."}}
            return json.dumps({"custom_id": row["custom_id"], "result": {"type": "errored", "error": error}})
        text, read, written = answered
        message = {
            "id": "msg-scripted", "type": "message", "role": "assistant", "model": body["model"],
            "content": [{"type": "text", "text": text}], "stop_reason": "end_turn",
            "usage": {"input_tokens": read, "output_tokens": written},
        }  # fmt: skip
        return json.dumps({"custom_id": row["custom_id"], "result": {"type": "succeeded", "message": message}})

    # --- both --------------------------------------------------------------------------------------------------------

    def _add(self, lines: Sequence[str]) -> str:
        name = f"batch-{len(self._batches) + 1}"
        self._batches[name] = _Batch(list(reversed(lines)))  # results come in any order
        return name

    def _asked(self, request: web.Request) -> str:
        name = request.match_info["id"]
        self._batches[name].polls += 1
        return name

    async def _content(self, request: web.Request) -> web.Response:
        return web.Response(text="\n".join(self._batches[request.match_info["id"]].lines))


def _text(content: object) -> str:
    """The text of a message, whose parts may stand apart."""
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return str(content)
