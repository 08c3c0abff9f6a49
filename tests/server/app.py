"""The addresses of the scripted model server.

Models: `/v1/chat/completions`, `/v1/embeddings`, `/v1/rerank` (as Cohere's and Jina's). Control:
`GET /stats`, `GET /requests`, `POST /reset`, `POST /misbehave` (a list of rules, in place of those
in force), `POST /settings` (`{"latency_ms": 50}`). All else is a 404 that `/stats` lists under
`others`.
"""

import asyncio
import json
import struct
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from socket import SO_LINGER, SOL_SOCKET

from aiohttp import web
from pydantic import TypeAdapter, ValidationError

from tests.server import wire
from tests.server.answers import NoRuleError, answer_step
from tests.server.faults import Reply, Rule, Script, particular, refused, spoiled
from tests.server.ledger import Ledger, tokens_of
from tests.server.peers import peer_answer, peer_step
from tests.server.wire import cut, step_of, texts_of
from tests.server.words import content_words, embed

Body = dict[str, object]
Json = Mapping[str, object]
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
_RULES = TypeAdapter(list[Rule])
_OBJECT = TypeAdapter(Body)
DIMENSION = 384  # of vectors
_DRIPS = 10
_PIECES = 8
CREATED = 1_700_000_000  # fixed: an answer holds no clock, so that equal requests get equal bytes
_LARGEST_BODY = 256 * 2**20
_ERROR_PAGE = "<html><body><h1>502 Bad Gateway</h1></body></html>"


class ModelServer:
    """The handlers and what they share."""

    def __init__(self) -> None:
        self.latency = 0.0  # seconds from a request to its answer
        self.ledger = Ledger()
        self.script = Script()

    def app(self) -> web.Application:
        app = web.Application(client_max_size=_LARGEST_BODY)
        app.add_routes(
            [
                web.post("/v1/chat/completions", self._counted(self._chat)),
                web.post("/v1/embeddings", self._counted(self._embeddings)),
                web.post("/v1/rerank", self._counted(self._rerank)),
                web.get("/stats", self._stats),
                web.get("/requests", self._requests),
                web.post("/reset", self._reset),
                web.post("/misbehave", self._misbehave),
                web.post("/settings", self._set),
                web.route("*", "/{path:.*}", self._other),
            ]
        )
        return app

    def _counted(self, answer: "Callable[[Call], Awaitable[web.StreamResponse]]") -> Handler:
        """A handler that counts the call and misbehaves by the script."""

        async def handle(request: web.Request) -> web.StreamResponse:
            text = await request.text()
            try:
                body = _OBJECT.validate_json(text)
            except ValidationError as error:
                return _error(400, f"the request's body is no JSON object: {error}")
            last = request.path.rpartition("/")[2]
            step = last if last in {"embeddings", "rerank"} else _step(body)
            rule, due = self.script.next(step, text, body), _now() + self.latency
            call = Call(request, body, step, rule, due)
            key = request.headers.get("Authorization")
            arrived = self.ledger.arrive(request.path, step, text, body, key)
            try:
                return await _refusal(call) or await answer(call)
            except NoRuleError as error:
                call.kind = "refused"
                return _error(400, f"The scripted server has no answer: {error}")
            except (asyncio.CancelledError, ConnectionError):
                self.ledger.dropped += 1
                raise
            finally:
                self.ledger.depart(arrived, call.kind, call.prompt_tokens, call.completion_tokens)

        return handle

    async def _chat(self, call: "Call") -> web.StreamResponse:
        rule = call.rule
        content = ""
        # A rule that writes the whole answer needs none of ours; the request may be no step.
        if rule is None or rule.kind != "writes":
            content = _content(call.read)
        reply = spoiled(rule, content) if rule else Reply(content)
        call.count(reply)
        if rule and rule.kind == "html":
            return web.Response(text=_ERROR_PAGE, content_type="text/html")
        if not call.body.get("stream"):
            return await _whole(call, encoded(completion(call, reply)))
        options = call.body.get("stream_options")
        with_usage = isinstance(options, dict) and bool(options.get("include_usage"))
        events = completion_events(call, reply, with_usage=with_usage)
        return await _stream(call, events, "text/event-stream")

    async def _embeddings(self, call: "Call") -> web.StreamResponse:
        given = call.body.get("input")
        texts = [given] if isinstance(given, str) else given
        if not isinstance(texts, list) or not texts or {*map(type, texts)} != {str}:
            raise NoRuleError("`input` is no text and no list of texts")
        call.prompt_tokens = tokens_of(texts)
        usage = {"prompt_tokens": call.prompt_tokens, "total_tokens": call.prompt_tokens}
        vectors = enumerate(embed(text, DIMENSION) for text in texts)
        data = [{"object": "embedding", "index": at, "embedding": it} for at, it in vectors]
        whole = encoded({"object": "list", "model": call.model, "data": data, "usage": usage})
        return await _whole(call, whole)

    async def _rerank(self, call: "Call") -> web.StreamResponse:
        """The share of the query's content words in each document, the best first."""
        query, texts = call.body.get("query"), call.body.get("documents")
        if not isinstance(query, str) or not isinstance(texts, list):
            raise NoRuleError("`query` is no text, or `documents` no list")
        wanted = content_words(query)
        call.prompt_tokens = tokens_of([query, *texts])
        scores = [len(wanted & content_words(text)) / (len(wanted) or 1) for text in texts]
        rows = [{"index": place, "relevance_score": score} for place, score in enumerate(scores)]
        rows.sort(key=lambda row: -row["relevance_score"])
        usage = {"total_tokens": call.prompt_tokens}
        return await _whole(call, encoded({"results": rows, "usage": usage}))

    async def _stats(self, _: web.Request) -> web.Response:
        return web.json_response(self.ledger.stats())

    async def _requests(self, _: web.Request) -> web.Response:
        return web.json_response(list(self.ledger.bodies))

    async def _reset(self, _: web.Request) -> web.Response:
        self.ledger.reset()
        self.script = Script()
        return web.json_response({})

    async def _misbehave(self, request: web.Request) -> web.Response:
        try:
            self.script = Script.of(_RULES.validate_json(await request.read()))
        except ValidationError as error:
            return _error(400, f"not a script of misbehaviour: {error}")
        return web.json_response({"rules": len(self.script.rules)})

    async def _set(self, request: web.Request) -> web.Response:
        self.latency = (await request.json())["latency_ms"] / 1000
        return web.json_response({})

    async def _other(self, request: web.Request) -> web.Response:
        self.ledger.others.append(f"{request.method} {request.path_qs}")
        return _error(404, f"{request.method} {request.path} is not served here")


def _step(body: Json) -> str:
    return step_of(body) or peer_step(texts_of(body)) or "unknown"


def _content(body: Json) -> str:
    """What the model writes, to a step of ours or to a peer's prompt."""
    if step_of(body) is None and peer_step(texts_of(body)):
        return peer_answer(texts_of(body))
    asked = wire.read(body)
    return wire.write(asked, answer_step(asked.step, asked.fields))


def encoded(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def completion(call: "Call", reply: Reply) -> Json:
    """`/v1/chat/completions` in one piece."""
    message = {"role": "assistant", "content": reply.content, "refusal": reply.refusal}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": reply.finish}
    return {**_head(call, "chat.completion"), "choices": [choice], "usage": call.usage}


def completion_events(call: "Call", reply: Reply, *, with_usage: bool) -> Iterator[bytes]:
    """The same as server-sent events, the usage in one of its own before the end."""
    head = _head(call, "chat.completion.chunk")
    deltas: list[dict[str, object]] = [{"role": "assistant", "content": ""}]
    if reply.refusal is not None:
        deltas.append({"refusal": reply.refusal})
    deltas += [{"content": piece} for piece in _pieces(reply.content or "")]
    for delta in deltas:
        yield _event({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
    yield _event({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": reply.finish}]})
    if with_usage:
        yield _event({**head, "choices": [], "usage": call.usage})
    yield b"data: [DONE]\n\n"


def _head(call: "Call", kind: str) -> dict[str, object]:
    return {"id": "chatcmpl-scripted", "object": kind, "created": CREATED, "model": call.model}


def _event(value: Json) -> bytes:
    return b"data: " + encoded(value) + b"\n\n"


def _pieces(text: str) -> Iterator[str]:
    size = max(1, -(-len(text) // _PIECES))
    return (text[at : at + size] for at in range(0, len(text), size))


@dataclass(slots=True)
class Call:
    """A model request on its way through: what it asks, how to misbehave, and what it took."""

    request: web.Request
    body: Body
    step: str
    rule: Rule | None
    due: float
    prompt_tokens: int = 0
    completion_tokens: int = 0
    kind: str = "answered"

    def __post_init__(self) -> None:
        if self.rule:
            self.kind = self.rule.kind

    @property
    def model(self) -> str:
        return str(self.body.get("model", "scripted"))

    async def wait(self) -> None:
        """Wait until the latency is over, of which making the answer is a part."""
        if (left := self.due - _now()) > 0:
            await asyncio.sleep(left)

    @property
    def read(self) -> Mapping[str, object]:
        """The part of the body that the model reads, where the server cuts long ones silently."""
        limit = self.rule.read_at_most if self.rule else None
        if limit is None:
            return self.body
        *others, last = texts_of(self.body)
        room = limit - tokens_of(others)
        return cut(self.body, min(1.0, max(0.0, room / tokens_of([last]) - 0.01)))

    def count(self, reply: Reply) -> None:
        """Enter the tokens of the request and of its reply."""
        self.prompt_tokens = tokens_of(texts_of(self.read))
        written = "".join(part for part in (reply.content, reply.refusal) if part)
        self.completion_tokens = tokens_of([written]) - tokens_of([""]) if written else 0

    @property
    def usage(self) -> Json:
        """The tokens as OpenAI's servers report them."""
        read, written = self.prompt_tokens, self.completion_tokens
        return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}


async def _refusal(call: Call) -> web.StreamResponse | None:
    """The response where the call's rule needs no answer of the model."""
    rule = call.rule
    if rule is None:
        return None
    await call.wait()
    if rule.kind == "reset":
        _abort(call.request)
        return web.Response()
    if rule.kind == "hang":
        await asyncio.sleep(rule.seconds)
        return _error(504, "hung")
    if (error := particular(rule, call.body)) is not None:
        return web.json_response(error, status=400)
    refusal = refused(rule, call.model, tokens_of(texts_of(call.body)))
    if refusal is None:
        return None
    status, headers, body = refusal
    return web.json_response(body, status=status, headers=headers)


async def _whole(call: Call, body: bytes) -> web.StreamResponse:
    """A body in one piece, dripping or cut off where the rule says so."""
    await call.wait()
    if call.rule is None or call.rule.kind not in {"drip", "cut"}:
        return web.Response(body=body, content_type="application/json")
    size = -(-len(body) // _DRIPS)
    pieces = (body[at : at + size] for at in range(0, len(body), size))
    return await _stream(call, pieces, "application/json", length=len(body))


async def _stream(
    call: Call, pieces: Iterator[bytes], kind: str, length: int | None = None
) -> web.StreamResponse:
    """A body piece by piece; `drip` waits between them, `cut` resets the connection after two."""
    await call.wait()
    response = web.StreamResponse(headers={"Content-Type": kind})
    response.content_length = length
    await response.prepare(call.request)
    rule = call.rule
    for place, piece in enumerate(pieces):
        if rule and rule.kind == "cut" and place == 2:
            _abort(call.request)
            return response
        await response.write(piece)
        if rule and rule.kind == "drip":
            await asyncio.sleep(rule.seconds / _DRIPS)
    await response.write_eof()
    return response


def _now() -> float:
    return asyncio.get_running_loop().time()


def _abort(request: web.Request) -> None:
    """Close the connection by a reset, as a crashed server or a proxy does."""
    if request.transport is not None:
        socket = request.transport.get_extra_info("socket")
        socket.setsockopt(SOL_SOCKET, SO_LINGER, struct.pack("ii", 1, 0))
        request.transport.abort()


def _error(status: int, message: str) -> web.Response:
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": None}
    return web.json_response({"error": error}, status=status)
