"""Which addresses does the scripted model server serve?

Models: `/v1/chat/completions`, `/v1/embeddings`, `/v1/models` (OpenAI, vLLM, Ollama's `/v1`), `/api/chat`, `/api/tags`
(Ollama's own). Control: `GET /stats`, `GET /requests`, `POST /reset`, `POST /misbehave` (a list of rules, in place of
those in force), `POST /settings` (`{"latency_ms": 50}`). All else is a 404 that `/stats` lists under `others`.
"""

import asyncio
import struct
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from socket import SO_LINGER, SOL_SOCKET

from aiohttp import web
from pydantic import TypeAdapter, ValidationError

from tests.server import replies
from tests.server.answers import NoRuleError
from tests.server.embedding import embed, packed
from tests.server.faults import Reply, Rule, Script, refused, spoiled
from tests.server.ledger import Ledger, tokens_of
from tests.server.model import Model
from tests.server.replay import NotRecordedError
from tests.server.wire import cut, step_of, texts_of

Body = dict[str, object]
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
_RULES = TypeAdapter(list[Rule])
_OBJECT = TypeAdapter(Body)
_DRIPS = 10
_LARGEST_BODY = 256 * 2**20
_ERROR_PAGE = "<html><body><h1>502 Bad Gateway</h1></body></html>"


@dataclass(slots=True)
class Settings:
    """What can change while the server runs: seconds from a request to its answer, and the length of vectors."""

    latency: float = 0.0
    dimension: int = 384


class ModelServer:
    """The handlers and what they share."""

    def __init__(self, model: Model, settings: Settings, keep: int = 10_000) -> None:
        self.model = model
        self.settings = settings
        self.ledger = Ledger(keep)
        self.script = Script()

    def app(self) -> web.Application:
        app = web.Application(client_max_size=_LARGEST_BODY)
        app.add_routes([
            web.post("/v1/chat/completions", self._counted(self._chat)),
            web.post("/api/chat", self._counted(self._chat)),
            web.post("/v1/embeddings", self._counted(self._embeddings)),
            web.get("/v1/models", self._models),
            web.get("/api/tags", self._models),
            web.get("/stats", self._stats),
            web.get("/requests", self._requests),
            web.post("/reset", self._reset),
            web.post("/misbehave", self._misbehave),
            web.post("/settings", self._set),
            web.route("*", "/{path:.*}", self._other),
        ])  # fmt: skip
        return app

    def _counted(self, answer: "Callable[[Call], Awaitable[web.StreamResponse]]") -> Handler:
        """A handler that counts the call on its way in and out and misbehaves where the script says so."""

        async def handle(request: web.Request) -> web.StreamResponse:
            text = await request.text()
            try:
                body = _OBJECT.validate_json(text)
            except ValidationError as error:
                return _error(400, f"the request's body is no JSON object: {error}")
            step = "embeddings" if request.path.endswith("/embeddings") else step_of(body) or "unknown"
            call = Call(request, body, step, self.script.next(step, text, body), _now() + self.settings.latency)
            self.ledger.arrive(request.path, step, text, body)
            try:
                return await _refusal(call) or await answer(call)
            except NoRuleError as error:
                call.kind = "refused"
                return _error(400, f"The scripted server has no answer: {error}")
            except NotRecordedError as error:
                call.kind = "not_recorded"
                return _error(404, str(error))
            except (asyncio.CancelledError, ConnectionError):
                self.ledger.dropped += 1
                raise
            finally:
                self.ledger.depart(call.kind, step, call.prompt_tokens, call.completion_tokens)

        return handle

    async def _chat(self, call: "Call") -> web.StreamResponse:
        rule = call.rule
        content = self.model.answer(call.read)
        reply = spoiled(rule, content) if rule else Reply(content)
        said = call.speak(reply)
        native = call.request.path == "/api/chat"
        if rule and rule.kind == "html":
            return web.Response(text=_ERROR_PAGE, content_type="text/html")
        if not call.body.get("stream", native):
            whole = replies.encoded(replies.ollama(said) if native else replies.completion(said))
            return await _whole(call, whole)
        options = call.body.get("stream_options")
        with_usage = isinstance(options, dict) and bool(options.get("include_usage"))
        pieces = replies.ollama_lines(said) if native else replies.completion_events(said, with_usage=with_usage)
        return await _stream(call, pieces, "application/x-ndjson" if native else "text/event-stream")

    async def _embeddings(self, call: "Call") -> web.StreamResponse:
        given = call.body.get("input")
        texts = [given] if isinstance(given, str) else given
        if not isinstance(texts, list) or not texts or not all(isinstance(text, str) for text in texts):
            raise NoRuleError("`input` is no text and no list of texts")
        wanted = call.body.get("dimensions")
        dimension = wanted if isinstance(wanted, int) else self.settings.dimension
        vectors = [embed(text, dimension) for text in texts]
        as_base64 = call.body.get("encoding_format") == "base64"
        call.prompt_tokens = tokens_of(texts)
        usage = {"prompt_tokens": call.prompt_tokens, "total_tokens": call.prompt_tokens}
        data = [
            {"object": "embedding", "index": place, "embedding": packed(vector) if as_base64 else vector}
            for place, vector in enumerate(vectors)
        ]
        whole = replies.encoded({"object": "list", "model": call.model, "data": data, "usage": usage})
        return await _whole(call, whole)

    async def _models(self, request: web.Request) -> web.Response:
        if request.path == "/api/tags":
            return web.json_response({"models": [{"name": "scripted", "model": "scripted"}]})
        one = {"id": "scripted", "object": "model", "created": replies.CREATED, "owned_by": "tests"}
        return web.json_response({"object": "list", "data": [one]})

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
        wanted = await request.json()
        self.settings.latency = float(wanted.get("latency_ms", self.settings.latency * 1000)) / 1000
        self.settings.dimension = int(wanted.get("dimension", self.settings.dimension))
        return web.json_response({"latency_ms": self.settings.latency * 1000, "dimension": self.settings.dimension})

    async def _other(self, request: web.Request) -> web.Response:
        self.ledger.others.append(f"{request.method} {request.path_qs}")
        return _error(404, f"{request.method} {request.path} is not served here")


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
        """Until the server's latency is over; the time that making the answer took is part of it."""
        if (left := self.due - _now()) > 0:
            await asyncio.sleep(left)

    @property
    def read(self) -> Mapping[str, object]:
        """What the model reads of the body: the rest of a long one is lost without a word."""
        limit = self.rule.read_at_most if self.rule else None
        if limit is None:
            return self.body
        *others, last = texts_of(self.body)
        room = limit - tokens_of(others)
        return cut(self.body, min(1.0, max(0.0, room / tokens_of([last]) - 0.01)))

    def speak(self, reply: Reply) -> replies.Spoken:
        """The reply with its tokens, which are the call's from now on."""
        self.prompt_tokens = tokens_of(texts_of(self.read))
        written = "".join(part for part in (reply.content, reply.refusal, reply.reasoning) if part)
        self.completion_tokens = tokens_of([written]) - tokens_of([""]) if written else 0
        return replies.Spoken(self.model, reply, self.prompt_tokens, self.completion_tokens)


async def _refusal(call: Call) -> web.StreamResponse | None:
    """The response of a kind that needs no answer of the model, if the call's rule is of one."""
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
    turned_down = refused(rule, call.model, tokens_of(texts_of(call.body)))
    if turned_down is None:
        return None
    status, headers, body = turned_down
    return web.json_response(body, status=status, headers=headers)


async def _whole(call: Call, body: bytes) -> web.StreamResponse:
    """A body in one piece, dripping or cut off where the rule says so."""
    await call.wait()
    if call.rule is None or call.rule.kind not in {"drip", "cut"}:
        return web.Response(body=body, content_type="application/json")
    size = -(-len(body) // _DRIPS)
    pieces = (body[at : at + size] for at in range(0, len(body), size))
    return await _stream(call, pieces, "application/json", length=len(body))


async def _stream(call: Call, pieces: Iterator[bytes], kind: str, length: int | None = None) -> web.StreamResponse:
    """A body piece by piece; `drip` waits between them, `cut` resets the connection after the second."""
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
        request.transport.get_extra_info("socket").setsockopt(SOL_SOCKET, SO_LINGER, struct.pack("ii", 1, 0))
        request.transport.abort()


def _error(status: int, message: str) -> web.Response:
    body: Mapping[str, object] = {"message": message, "type": "invalid_request_error", "param": None, "code": None}
    return web.json_response({"error": body}, status=status)
