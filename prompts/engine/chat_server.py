"""A server that speaks OpenAI's language, called by OpenAI's client, as an engine of a `dspy.LM`.

A server of the user's own writes its answers in a stream, watched or not: the stream tells that
the server is alive, and it is closed where the answer goes round. Providers are fast, and bill
what a closed stream would have written.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

import httpx
import openai
from dspy import lm15
from openai.types.chat import ChatCompletion

from prompts.engine.bridge import run_anywhere
from prompts.engine.calls import Call, visible_so_far
from prompts.engine.key_masking import keep_secret, secrets_of_address
from prompts.engine.providers import Endpoint, without_user
from prompts.engine.refusals import LONGEST_REPLY, Habits, refused, unreachable
from prompts.engine.streaming import ShownText, goes_round

_LONGEST_READ = 86_400.0  # seconds: a wait is ended by `Patience`
_LOOKED_AT = 200  # characters of a stream between two looks whether it goes round
_THIS_MACHINE = {"127.0.0.1", "localhost", "::1"}
NO_STREAM = "the stream brought no word"
_Client = tuple[AsyncGenerator[openai.AsyncOpenAI], openai.AsyncOpenAI]


@dataclass(frozen=True)
class Try:
    """One try of a call: who sees its pieces where it is streamed, and when they came."""

    call: Call
    streamed: bool
    shown: ShownText
    heard: list[float] = field(default_factory=list)


# The try that the engine is asked within.
TRY: ContextVar[Try | None] = ContextVar("try", default=None)


class Engine(Protocol):
    """What answers a request of DSPy's."""

    supports_response_schema: bool

    async def complete(self, request: lm15.Request) -> lm15.Response: ...


class Waiting:
    """An engine for callers without an event loop."""

    def __init__(self, engine: Engine) -> None:
        self.supports_response_schema = engine.supports_response_schema
        self._engine = engine

    def complete(self, request: lm15.Request) -> lm15.Response:
        """Wait for the engine's answer."""
        return run_anywhere(self._engine.complete(request))


class ChatServer:
    """One model on one server. Connections belong to an event loop and close with it."""

    supports_response_schema = True

    def __init__(self, endpoint: Endpoint, habits: Habits) -> None:
        keep_secret((endpoint.key, *secrets_of_address(endpoint.url)))
        self.endpoint = endpoint
        self._habits = habits
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Endpoint, _Client]]
        self._clients = WeakKeyDictionary()

    async def located(self) -> Endpoint:
        """Where the model is served now."""
        return self.endpoint

    async def complete(self, request: lm15.Request) -> lm15.Response:
        """One reply. Raises Failure."""
        self.endpoint, asked = await self.located(), TRY.get()
        clients = self._clients.setdefault(asyncio.get_running_loop(), {})
        if self.endpoint not in clients:
            keeper = _opened(self.endpoint)
            clients[self.endpoint] = keeper, await anext(keeper)
        chat, body = clients[self.endpoint][1].chat.completions, self._body(request)
        async with self._failures():
            if asked is not None and asked.streamed:
                return await self._streamed(chat, body, asked)
            answer = await chat.create(**body)
        if not isinstance(answer, ChatCompletion) or not answer.choices:
            if isinstance(answer, str):  # a gateway's page, which mostly passes
                raise unreachable(*self._where, f"the reply is not JSON: {answer[:200]}")
            said = answer.model_dump_json()
            raise refused(self._where, 404, f"not an answer of /chat/completions: {said}")
        choice, message = answer.choices[0], answer.choices[0].message
        withheld = message.refusal and not message.content
        finish = "content_filter" if withheld else choice.finish_reason
        return self._response(message.content or "", _thought(message), finish, answer.usage)

    async def aclose(self) -> None:
        """Close this event loop's connections."""
        for keeper, _ in self._clients.pop(asyncio.get_running_loop(), {}).values():
            await keeper.aclose()

    async def _streamed(self, chat: Any, body: Mapping[str, Any], asked: Try) -> lm15.Response:
        """A reply that is read piece by piece; it ends as if cut where it goes round."""
        shown, thought, finish, usage, seen = asked.shown, "", None, None, 0
        options = {"stream_options": {"include_usage": True}}
        async with await chat.create(**body, **options, stream=True) as stream:
            async for chunk in stream:
                asked.heard.append(time.monotonic())
                usage = chunk.usage or usage
                if not chunk.choices:
                    continue
                delta, finish = chunk.choices[0].delta, chunk.choices[0].finish_reason or finish
                thought += _thought(delta)
                shown.add((delta and delta.content) or "")
                if len(shown.text) > LONGEST_REPLY:
                    words = f"the reply is longer than {LONGEST_REPLY // 1_000_000} MB"
                    raise unreachable(*self._where, words)
                if len(shown.text) - seen >= _LOOKED_AT:
                    seen = len(shown.text)
                    if goes_round(visible_so_far(shown.text), asked.call):
                        finish = "length"
                        break
        if finish is None:
            words = "the stream ended in the middle of the answer"
            raise unreachable(*self._where, words if shown.text else NO_STREAM)
        return self._response(shown.text, thought, finish, usage)

    @property
    def _where(self) -> tuple[str, str]:
        return self.endpoint.name, without_user(self.endpoint.url)

    def _body(self, request: lm15.Request) -> dict[str, Any]:
        config, form = request.config, request.config.response_format
        messages = [{"role": it.role, "content": text_of(it.parts)} for it in request.messages]
        if request.system:
            messages.insert(0, {"role": "system", "content": request.system})
        if form is not None and form["type"] == "json_schema":
            named = {name: value for name, value in form.items() if name != "type"}
            form = {"type": "json_schema", "json_schema": named}
        limit = "max_completion_tokens" if "max_tokens" in self._habits.left_out else "max_tokens"
        values = {
            limit: config.max_tokens,
            "response_format": form,
            "extra_body": config.extensions,
        }
        for name in ("temperature", "top_p", "seed", "frequency_penalty", "presence_penalty"):
            values[name] = getattr(config, name)
        given = {name: value for name, value in values.items() if value is not None}
        return {"model": self.endpoint.model, "messages": messages, **given}

    def _response(self, text: str, thought: str, finish: str | None, usage: Any) -> lm15.Response:
        names = {
            "input_tokens": "prompt_tokens",
            "output_tokens": "completion_tokens",
            "total_tokens": "total_tokens",
        }
        counts = {ours: getattr(usage, theirs, None) for ours, theirs in names.items()}
        thoughts = (lm15.ThinkingPart(thought),) if thought else ()
        return lm15.Response(
            id=None,
            model=self.endpoint.model,
            message=lm15.Message("assistant", (*thoughts, lm15.TextPart(text))),
            finish_reason=finish if finish in {"length", "content_filter"} else "stop",
            usage=lm15.Usage(**counts),
        )

    @asynccontextmanager
    async def _failures(self) -> AsyncIterator[None]:
        """Tell the client's errors in our words."""
        try:
            yield
        except openai.APIStatusError as error:
            after = error.response.headers.get("retry-after")
            words = (await error.response.aread()).decode("utf-8", "replace")
            raise refused(self._where, error.status_code, words, after) from error
        except (openai.APIConnectionError, httpx.HTTPError) as error:  # the latter in a stream
            raise unreachable(*self._where, str(error.__cause__ or error)) from error
        except openai.APIError as error:  # a stream told of an error
            raise refused(self._where, 500, str(error.body or error.message)) from error
        except ValueError as error:  # a gateway's page in place of JSON
            raise unreachable(*self._where, f"the reply is not JSON: {error}") from error


def text_of(parts: Any) -> str:
    """The text of a message's parts."""
    return "".join(part.text for part in parts if isinstance(part, lm15.TextPart))


def _thought(message: Any) -> str:
    """The thinking that a server tells apart from the answer."""
    extra = getattr(message, "model_extra", None) or {}
    told = extra.get("reasoning_content") or extra.get("reasoning")
    return told if isinstance(told, str) else ""


async def _opened(endpoint: Endpoint) -> AsyncGenerator[openai.AsyncOpenAI]:
    """The client; `asyncio.run` closes async generators when it ends, and so the connections."""
    timeout, url = openai.Timeout(_LONGEST_READ, connect=15.0), endpoint.url
    http = openai.DefaultAsyncHttpxClient(
        timeout=timeout,
        follow_redirects=False,
        trust_env=urlsplit(url).hostname not in _THIS_MACHINE,  # no proxy
    )
    async with openai.AsyncOpenAI(
        base_url=url, api_key=endpoint.key or "none", max_retries=0, http_client=http
    ) as client:
        yield client
