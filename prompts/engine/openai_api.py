"""Calls to a server that speaks OpenAI's language (`/chat/completions`).

What a server does not take (a schema, a temperature, the name of the limit) is learnt from its refusal and left out
from then on.
"""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from urllib.request import getproxies
from weakref import WeakKeyDictionary

from prompts.engine.calls import Call, Reply
from prompts.engine.errors import ContextOverflow
from prompts.engine.failures import Failure, refused, unreachable
from prompts.engine.key_masking import keep_secret, mask_error, mask_keys, secrets_of_address
from prompts.engine.providers import Endpoint, without_user
from prompts.engine.streaming import StreamedReply

if TYPE_CHECKING:
    import aiohttp

_Session = tuple[AsyncGenerator["aiohttp.ClientSession"], "aiohttp.ClientSession"]
_REASONING_MODEL = re.compile(r"(?:^|/)(?:o[1345](?:-|$)|gpt-[5-9](?![\w.]*-chat))")
# A count below this may leave out a prefix that the server had kept from an earlier request.
_CACHED_PREFIX = 256  # tokens
_CONNECT = 15.0  # seconds
_LONGEST_LINE = 2**22  # bytes of one event of a stream
# A field of the request, and the words of a refusal to take it.
_REFUSALS = (
    (
        "response_format",
        re.compile(r"response_format|json_schema|json_object|structured output|guided|grammar|\$defs", re.I),
    ),
    ("max_tokens", re.compile(r"max_completion_tokens|max_tokens.{0,40}(?:not supported|unsupported)", re.I)),
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
        # What the server does not take, `response_format` apart.
        self._left_out: set[str] = set()
        if endpoint.listed and _REASONING_MODEL.search(endpoint.model):
            self._left_out = {"max_tokens", "temperature"}
        self._sessions: WeakKeyDictionary[asyncio.AbstractEventLoop, _Session] = WeakKeyDictionary()

    async def send(self, call: Call, show: Callable[[str], None] | None = None) -> Reply:
        """One request and its reply; where somebody watches, as a stream."""
        body = self._body(call, streamed=show is not None)
        try:
            return await (self._whole(body, call) if show is None else self._streamed(body, call, show))
        except Failure as failure:
            failure.adapted = self._learn(failure, body)
            raise

    async def aclose(self) -> None:
        """Close this event loop's connections."""
        opened = self._sessions.pop(asyncio.get_running_loop(), None)
        if opened is not None:
            await opened[0].aclose()

    # --- request -----------------------------------------------------------------------------------------------------

    def _body(self, call: Call, *, streamed: bool) -> dict[str, object]:
        limit = "max_completion_tokens" if "max_tokens" in self._left_out else "max_tokens"
        body: dict[str, object] = {
            "model": self._endpoint.model,
            "messages": [{"role": message.role, "content": message.content} for message in call.messages],
            limit: call.max_tokens,
            "temperature": call.temperature,
        }
        if call.schema is not None and self.structured == "json_schema":
            schema = {"name": call.step, "strict": True, "schema": call.schema}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        elif call.schema is not None and self.structured == "json_object":
            body["response_format"] = {"type": "json_object"}
        body |= call.extra
        if streamed:
            body |= {"stream": True, "stream_options": {"include_usage": True}}
        if body["temperature"] is None or "temperature" in self._left_out:
            del body["temperature"]
        if "stream_options" in self._left_out and "stream_options" not in call.extra:
            body.pop("stream_options", None)
        return body

    def _learn(self, failure: Failure, sent: dict[str, object]) -> bool:
        """Whether the server refused something that can be left out; it is from now on."""
        if failure.status not in {400, 404, 415, 422, 500, 501}:
            return False
        about = next((name for name, words in _REFUSALS if words.search(failure.words)), "")
        if about not in sent:
            return False
        if about != "response_format":
            self._left_out.add(about)
            return True
        asked = sent["response_format"]
        if isinstance(asked, dict) and asked["type"] == self.structured:  # else another call has learnt it already
            self.structured = _WEAKER[self.structured]
        return True

    # --- reply -------------------------------------------------------------------------------------------------------

    async def _whole(self, body: dict[str, object], call: Call) -> Reply:
        async with self._posted(body) as response:
            payload = await response.read()
        text = _text(payload)
        try:
            payload.decode()  # a broken one is not answered for
            json.loads(text)
        except ValueError as error:
            # A gateway's page in place of an answer: mostly it passes, and else the address is wrong.
            raise self._unreachable(f"it sent no JSON but {text[:120]!r}") from mask_error(error)
        return self._reply(text, call)

    async def _streamed(self, body: dict[str, object], call: Call, show: Callable[[str], None]) -> Reply:
        streamed = StreamedReply(call)
        async with self._posted(body) as response:
            if "json" in response.content_type:  # a server that cannot stream
                reply = self._reply(_text(await response.read()), call)
                show(reply.text)
                return reply
            async for line in response.content:
                is_event = line.startswith(b"data:") and b"[DONE]" not in line
                if is_event and (piece := streamed.add(self._event(_text(line)[5:]))):
                    show(piece)
        if rest := streamed.rest():
            show(rest)
        if streamed.finish is None:
            raise self._unreachable("the stream ended in the middle of the answer")
        return self._read_whole(call, streamed.reply())

    @asynccontextmanager
    async def _posted(self, body: dict[str, object]) -> AsyncIterator["aiohttp.ClientResponse"]:
        """The response of a request that was accepted; Failure for what the server or the network refuses."""
        import aiohttp

        loop = asyncio.get_running_loop()
        if loop not in self._sessions:
            keeper = _opened(self._endpoint, self._timeout)
            self._sessions[loop] = keeper, await anext(keeper)
        data = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
        url = f"{self._endpoint.url}/chat/completions"
        try:
            async with self._sessions[loop][1].post(url, data=data, allow_redirects=False) as response:
                if response.status != 200:
                    words, after = _text(await response.read()), response.headers.get("Retry-After")
                    raise refused(self.model, self.address, response.status, words, after)
                yield response
        except TimeoutError as error:
            raise self._unreachable(f"no reply within {self._timeout:g} s") from mask_error(error)
        except (aiohttp.ClientError, OSError) as error:
            raise self._unreachable(mask_keys(str(error)) or type(error).__name__) from mask_error(error)

    def _event(self, text: str) -> dict[str, object]:
        try:
            event = json.loads(text)
        except ValueError as error:
            raise self._foreign(text) from error
        if not isinstance(event, dict):
            raise self._foreign(text)
        if failed := event.get("error"):  # a server may say with status 200 that it failed
            code = failed.get("code") if isinstance(failed, dict) else None
            status = code if isinstance(code, int) and 400 <= code < 600 else 500
            raise refused(self.model, self.address, status, json.dumps(failed, ensure_ascii=False))
        return event

    def _reply(self, text: str, call: Call) -> Reply:
        """A reply in one piece is a stream of one event."""
        body, whole = self._event(text), StreamedReply(call)
        choices = body.get("choices")
        if not isinstance(choices, list) or not choices or "message" not in choices[0]:
            raise self._foreign(text)
        ended = choices[0].get("finish_reason") or "stop"
        whole.add({**body, "choices": [{"delta": choices[0]["message"], "finish_reason": ended}]})
        return self._read_whole(call, whole.reply())

    def _read_whole(self, call: Call, reply: Reply) -> Reply:
        """Some servers (Ollama) cut a long prompt without a word; only the count of what they read tells."""
        tokens = reply.input_tokens
        if _CACHED_PREFIX < tokens < call.least_tokens():
            raise Failure(
                ContextOverflow(
                    f"{self.model} at {self.address} read only {tokens} tokens of the request: it cuts long requests.",
                    "Raise its context (Ollama: OLLAMA_CONTEXT_LENGTH or num_ctx), or lower TRELLIS_CHUNK_TOKENS.",
                )
            )
        return reply

    def _unreachable(self, problem: str) -> Failure:
        return unreachable(self.model, self.address, problem)

    def _foreign(self, text: str) -> Failure:
        return refused(self.model, self.address, 404, f"not an answer of /chat/completions: {text[:300]}")


async def _opened(endpoint: Endpoint, seconds: float) -> AsyncGenerator["aiohttp.ClientSession"]:
    """Connections to a server; `asyncio.run` closes async generators when it ends, and with this one them."""
    import aiohttp

    headers = {"Content-Type": "application/json", "User-Agent": "trellis-rag"}
    if endpoint.key:
        headers["Authorization"] = f"Bearer {endpoint.key}"
    async with aiohttp.ClientSession(
        headers=headers,
        connector=aiohttp.TCPConnector(limit=0, ttl_dns_cache=300),  # our own limits admit calls
        timeout=aiohttp.ClientTimeout(total=seconds, sock_connect=_CONNECT),
        trust_env=bool(getproxies()),
        read_bufsize=_LONGEST_LINE,
        cookie_jar=aiohttp.DummyCookieJar(),
    ) as session:
        yield session


def _text(payload: bytes) -> str:
    """What came, with the keys masked: nothing of it is used otherwise."""
    return mask_keys(payload.decode("utf-8", "replace"))
