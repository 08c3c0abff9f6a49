"""How is a server called that speaks OpenAI's language (`/chat/completions`)?

What a server does not take (a schema, a temperature, the name of the limit) is learnt from its refusal and left out
from then on.
"""

import asyncio
import json
import re
import threading
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from prompts.engine.calls import Call, Reply, without_thinking
from prompts.engine.errors import ContextOverflow
from prompts.engine.faults import Failure, refused, unreachable
from prompts.engine.pool import Pool
from prompts.engine.providers import Endpoint, without_user
from prompts.engine.redact import keep_secret, redact, redacted, secrets_of_address
from prompts.engine.streamed import Gathered, finish_of, usage_of

if TYPE_CHECKING:
    import aiohttp

_REASONING_MODEL = re.compile(r"(?:^|/)(?:o[1345](?:-|$)|gpt-[5-9](?![\w.]*-chat))")
# A count below this may leave out a prefix that the server had kept from an earlier request.
_CACHED_PREFIX = 256  # tokens
# What a refusal speaks of → what is left out from then on.
_LEARNT = (
    (
        "structured",
        re.compile(r"response_format|json_schema|json_object|structured output|guided|grammar|\$defs", re.I),
    ),
    ("limit", re.compile(r"max_completion_tokens|max_tokens.{0,40}(?:not supported|unsupported)", re.I)),
    ("temperature", re.compile(r"temperature", re.I)),
    ("stream_options", re.compile(r"stream_options|include_usage", re.I)),
)
_WEAKER = {"json_schema": "json_object", "json_object": "text"}


class OpenAITransport:
    """A model on such a server."""

    def __init__(self, endpoint: Endpoint, timeout: float = 120.0) -> None:
        keep_secret((endpoint.key, *secrets_of_address(endpoint.url)))
        self.address = without_user(endpoint.url)
        self.model = endpoint.name
        self.structured = endpoint.structured
        self._endpoint = endpoint
        self._timeout = timeout
        newer = bool(_REASONING_MODEL.search(endpoint.model)) and endpoint.listed
        self._limit_name = "max_completion_tokens" if newer else "max_tokens"
        self._takes_temperature = not newer
        self._takes_stream_options = True
        self._pools: WeakKeyDictionary[asyncio.AbstractEventLoop, Pool] = WeakKeyDictionary()
        self._lock = threading.Lock()

    async def send(self, call: Call) -> Reply:
        """One request and its reply."""
        body = self._body(call)
        try:
            return self._reply(await self._post(body), call)
        except Failure as failure:
            failure.adapted = self._learn(failure, body)
            raise

    async def stream(self, call: Call) -> AsyncGenerator[str | Reply]:
        """Pieces of the answer, then the reply."""
        body = self._body(call) | {"stream": True}
        if self._takes_stream_options:
            body["stream_options"] = {"include_usage": True}
        try:
            async with aclosing(self._stream(body, call)) as pieces:
                async for piece in pieces:
                    yield piece
        except Failure as failure:
            failure.adapted = self._learn(failure, body)
            raise

    async def aclose(self) -> None:
        """Close this event loop's connections."""
        pool = self._pools.pop(asyncio.get_running_loop(), None)
        if pool is not None:
            await pool.aclose()

    # --- request -----------------------------------------------------------------------------------------------------

    def _body(self, call: Call) -> dict[str, object]:
        messages = [{"role": message.role, "content": message.content} for message in call.messages]
        body: dict[str, object] = {
            "model": self._endpoint.model,
            "messages": messages,
            self._limit_name: call.max_tokens,
        }
        if call.temperature is not None and self._takes_temperature:
            body["temperature"] = call.temperature
        if call.schema is not None and self.structured == "json_schema":
            schema = {"name": call.step, "strict": True, "schema": call.schema}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        elif call.schema is not None and self.structured == "json_object":
            body["response_format"] = {"type": "json_object"}
        return body | dict(call.extra)

    def _learn(self, failure: Failure, sent: dict[str, object]) -> bool:
        """Whether the server refused something that can be left out; it is from now on."""
        if failure.status not in {400, 404, 415, 422, 500, 501}:
            return False
        about = next((name for name, words in _LEARNT if words.search(failure.said)), None)
        if about == "structured" and "response_format" in sent and self.structured in _WEAKER:
            kind = sent["response_format"]
            if isinstance(kind, dict) and kind["type"] == self.structured:  # else another call has learnt it already
                self.structured = _WEAKER[self.structured]
            return True
        if about == "limit" and "max_tokens" in sent:
            self._limit_name = "max_completion_tokens"
            return True
        if about == "temperature" and "temperature" in sent:
            self._takes_temperature = False
            return True
        if about == "stream_options" and "stream_options" in sent:
            self._takes_stream_options = False
            return True
        return False

    async def _post(self, body: dict[str, object]) -> dict[str, object]:
        import aiohttp

        try:
            async with (await self._session()).post(self._url, data=_bytes(body), allow_redirects=False) as response:
                payload = await response.read()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise self._unreachable(error) from redact(error)
        said = _text(payload)
        self._check(response, said)
        try:
            payload.decode()  # a broken one is not answered for
            read = json.loads(said)
        except ValueError as error:
            # A gateway's page in place of an answer: mostly it passes, and else the address is wrong.
            raise self._unreachable(f"it sent no JSON but {said[:120]!r}") from redact(error)
        if not isinstance(read, dict):
            raise self._foreign(said)
        return read

    async def _stream(self, body: dict[str, object], call: Call) -> AsyncGenerator[str | Reply]:
        import aiohttp

        gathered = Gathered(call)
        try:
            async with (await self._session()).post(self._url, data=_bytes(body), allow_redirects=False) as response:
                if response.status != 200:
                    self._check(response, _text(await response.read()))
                if "json" in response.content_type:  # a server that cannot stream
                    reply = self._reply(self._event(_text(await response.read())), call)
                    yield reply.text
                    yield reply
                    return
                async for line in response.content:
                    is_event = line.startswith(b"data:") and b"[DONE]" not in line
                    if is_event and (piece := gathered.add(self._event(_text(line)[5:]))):
                        yield piece
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise self._unreachable(error) from redact(error)
        if rest := gathered.rest():
            yield rest
        if gathered.finish is None:
            raise self._unreachable("the stream ended in the middle of the answer")
        reply = gathered.reply()
        self._check_read(call, reply.input_tokens)
        yield reply

    def _event(self, said: str) -> dict[str, object]:
        try:
            event = json.loads(said)
        except ValueError as error:
            raise self._foreign(said) from error
        if not isinstance(event, dict):
            raise self._foreign(said)
        self._raise_error(event)
        return event

    # --- reply -------------------------------------------------------------------------------------------------------

    def _reply(self, body: dict[str, object], call: Call) -> Reply:
        self._raise_error(body)
        choices = body.get("choices")
        if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
            raise self._foreign(json.dumps(body))
        message = choices[0].get("message") or {}
        raw = str(message.get("content") or "")
        given, written = usage_of(body.get("usage"), call, raw + str(message.get("reasoning_content") or ""))
        self._check_read(call, given)
        finish = finish_of(choices[0].get("finish_reason"))
        if not raw and message.get("refusal"):
            finish = "withheld"
        return Reply(without_thinking(raw), finish, given, written)

    def _check_read(self, call: Call, given: int) -> None:
        """Some servers (Ollama) cut a long prompt without a word; only the count of what they read tells."""
        if _CACHED_PREFIX < given < call.least_tokens():
            raise Failure(
                ContextOverflow(
                    f"{self.model} at {self.address} read only {given} tokens of the request: it cuts long requests.",
                    "Raise its context (Ollama: OLLAMA_CONTEXT_LENGTH or num_ctx), or lower TRELLIS_CHUNK_TOKENS.",
                )
            )

    def _raise_error(self, body: dict[str, object]) -> None:
        """A server may say with status 200 that it failed."""
        error = body.get("error")
        if not error:
            return
        code = error.get("code") if isinstance(error, dict) else None
        status = code if isinstance(code, int) and 400 <= code < 600 else 500
        raise refused(self.model, self.address, status, json.dumps(error, ensure_ascii=False))

    def _check(self, response: "aiohttp.ClientResponse", said: str) -> None:
        if response.status != 200:
            raise refused(self.model, self.address, response.status, said, response.headers.get("Retry-After"))

    def _unreachable(self, problem: object) -> Failure:
        said = f"no reply within {self._timeout:g} s" if isinstance(problem, TimeoutError) else str(problem)
        return unreachable(self.model, self.address, redacted(said) or type(problem).__name__)

    def _foreign(self, said: str) -> Failure:
        return refused(self.model, self.address, 404, f"not an answer of /chat/completions: {said[:300]}")

    # --- connections -------------------------------------------------------------------------------------------------

    @property
    def _url(self) -> str:
        return f"{self._endpoint.url}/chat/completions"

    async def _session(self) -> "aiohttp.ClientSession":
        loop = asyncio.get_running_loop()
        pool = self._pools.get(loop)
        if pool is None:
            pool = Pool(self._endpoint, self._timeout)
            with self._lock:
                self._pools[loop] = pool
            await pool.open()
        return pool.session


def _text(payload: bytes) -> str:
    """What came, with the keys masked: nothing of it is used otherwise."""
    return redacted(payload.decode("utf-8", "replace"))


def _bytes(body: dict[str, object]) -> bytes:
    return json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
