"""A server with OpenAI's interface, called by OpenAI's client, as an engine of a `dspy.LM`.

The user's own server always streams its answers: the stream shows that the server is alive, and is
closed where the answer repeats itself. A provider streams only for a watcher: it is fast, and bills
the rest of a stream that is closed.
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
from prompts.engine.key_masking import keep_secret, secrets_of_address
from prompts.engine.messages import Call, content_of, visible_so_far
from prompts.engine.providers import Endpoint, without_user
from prompts.engine.refusals import LONGEST_REPLY, Habits, refused, unreachable
from prompts.engine.streaming import ShownText, repeats_itself

_LONGEST_READ = 86_400.0  # seconds: a wait is ended by `Patience`
_CHECKED_EVERY = 200  # characters of a stream between two checks whether it repeats itself
_THIS_MACHINE = {"127.0.0.1", "localhost", "::1"}
NO_STREAM = "the stream brought no word"
# Parameters that every provider has under one name.
SAMPLING = ("top_p", "seed", "frequency_penalty", "presence_penalty")
_Client = tuple[AsyncGenerator[openai.AsyncOpenAI], openai.AsyncOpenAI]


@dataclass(frozen=True)
class Try:
    """One try of a call: who sees the pieces of a stream, and when they came."""

    call: Call
    streamed: bool
    shown: ShownText
    heard: list[float] = field(default_factory=list)


# The try that the engine answers.
TRY: ContextVar[Try | None] = ContextVar("try", default=None)


class Engine(Protocol):
    """Answers requests of DSPy's."""

    supports_response_schema: bool

    async def complete(self, request: lm15.Request) -> lm15.Response: ...


class Waiting:
    """An engine for callers without an event loop."""

    def __init__(self, engine: Engine) -> None:
        self.supports_response_schema = engine.supports_response_schema
        self._engine = engine

    def complete(self, request: lm15.Request) -> lm15.Response:
        return run_anywhere(self._engine.complete(request))


class ChatServer:
    """One model on one server. Each event loop has its connections, which close with it."""

    supports_response_schema = True

    def __init__(self, endpoint: Endpoint, habits: Habits) -> None:
        keep_secret((endpoint.key, *secrets_of_address(endpoint.url)))
        self.endpoint = endpoint
        self._habits = habits
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Endpoint, _Client]]
        self._clients = WeakKeyDictionary()

    async def located(self) -> Endpoint:
        """The endpoint that serves the model now."""
        return self.endpoint

    async def complete(self, request: lm15.Request) -> lm15.Response:
        """One response. Raises Failure."""
        self.endpoint, trying = await self.located(), TRY.get()
        clients = self._clients.setdefault(asyncio.get_running_loop(), {})
        if self.endpoint not in clients:
            keeper = _opened(self.endpoint)
            clients[self.endpoint] = keeper, await anext(keeper)
        chat, body = clients[self.endpoint][1].chat.completions, self._body(request)
        async with self._failures():
            if trying is not None and trying.streamed:
                return await self._streamed(chat, body, trying)
            answer = await chat.create(**body)
        if not isinstance(answer, ChatCompletion) or not answer.choices:
            if isinstance(answer, str):  # a gateway's page, which mostly passes
                raise unreachable(*self._where, f"the reply is not JSON: {answer[:200]}")
            shown = answer.model_dump_json()
            status = _status_in(answer)
            raise refused(self._where, status, f"not an answer of /chat/completions: {shown}")
        choice, message = answer.choices[0], answer.choices[0].message
        withheld = message.refusal and not message.content
        finish = "content_filter" if withheld else choice.finish_reason
        return self._response(message.content or "", _thought(message), finish, answer.usage)

    async def aclose(self) -> None:
        for keeper, _ in self._clients.pop(asyncio.get_running_loop(), {}).values():
            await keeper.aclose()

    async def _streamed(self, chat: Any, body: Mapping[str, Any], trying: Try) -> lm15.Response:
        """A response read piece by piece; it ends as if cut where it repeats itself."""
        shown, thought, finish, usage, checked = trying.shown, "", None, None, 0
        withheld = False
        options = {"stream_options": {"include_usage": True}}
        async with await chat.create(**body, **options, stream=True) as stream:
            async for chunk in stream:
                trying.heard.append(time.monotonic())
                usage = chunk.usage or usage
                if not chunk.choices:
                    continue
                delta, finish = chunk.choices[0].delta, chunk.choices[0].finish_reason or finish
                thought += _thought(delta)
                withheld = withheld or bool(delta and delta.refusal)
                shown.add((delta and delta.content) or "")
                if len(shown.text) > LONGEST_REPLY:
                    words = f"the reply is longer than {LONGEST_REPLY // 1_000_000} MB"
                    raise unreachable(*self._where, words)
                if len(shown.text) - checked >= _CHECKED_EVERY:
                    checked = len(shown.text)
                    if repeats_itself(visible_so_far(shown.text), trying.call):
                        finish = "length"
                        break
        if finish is None:
            words = "the stream ended in the middle of the answer"
            raise unreachable(*self._where, words if shown.text else NO_STREAM)
        if withheld and not shown.text:
            finish = "content_filter"
        return self._response(shown.text, thought, finish, usage)

    @property
    def _where(self) -> tuple[str, str]:
        return self.endpoint.name, without_user(self.endpoint.url)

    def _body(self, request: lm15.Request) -> dict[str, Any]:
        config, form = request.config, request.config.response_format
        messages = [{"role": it.role, "content": _content(it.parts)} for it in request.messages]
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
            **{name: getattr(config, name) for name in ("temperature", *SAMPLING)},
        }
        given = {name: value for name, value in values.items() if value is not None}
        return {"model": self.endpoint.model, "messages": messages, **given}

    def _response(self, text: str, thought: str, finish: str | None, usage: Any) -> lm15.Response:
        thoughts = (lm15.ThinkingPart(thought),) if thought else ()
        return lm15.Response(
            id=None,
            model=self.endpoint.model,
            message=lm15.Message("assistant", (*thoughts, lm15.TextPart(text))),
            finish_reason=finish if finish in {"length", "content_filter"} else "stop",
            usage=lm15.Usage(
                input_tokens=getattr(usage, "prompt_tokens", None),
                output_tokens=getattr(usage, "completion_tokens", None),
                total_tokens=getattr(usage, "total_tokens", None),
            ),
        )

    @asynccontextmanager
    async def _failures(self) -> AsyncIterator[None]:
        """Turn the client's errors into failures."""
        try:
            yield
        except openai.APIStatusError as error:
            after = error.response.headers.get("retry-after")
            words = (await error.response.aread()).decode("utf-8", "replace")
            raise refused(self._where, error.status_code, words, after) from error
        except (openai.APIConnectionError, httpx.HTTPError) as error:  # the latter in a stream
            raise unreachable(*self._where, str(error.__cause__ or error)) from error
        except openai.APIError as error:  # an error within a stream
            raise refused(self._where, 500, str(error.body or error.message)) from error
        except ValueError as error:  # a gateway's page in place of JSON
            raise unreachable(*self._where, f"the reply is not JSON: {error}") from error


def text_of(parts: Any) -> str:
    """The text of a message's parts."""
    return "".join(part.text for part in parts if isinstance(part, lm15.TextPart))


def _content(parts: Any) -> str | list[dict[str, object]]:
    """The content of a message in OpenAI's form."""
    pictures = [part for part in parts if isinstance(part, lm15.ImagePart)]
    return content_of(text_of(parts), [f"data:{it.media_type};base64,{it.data}" for it in pictures])


def _status_in(answer: Any) -> int:
    """The status of an error that a gateway sends as a success, such as a crash of its model."""
    error = (getattr(answer, "model_extra", None) or {}).get("error")
    code = error.get("code") if isinstance(error, dict) else None
    return code if isinstance(code, int) and 400 <= code < 600 else 404


def _thought(message: Any) -> str:
    """The thinking that a server sends apart from the answer."""
    extra = getattr(message, "model_extra", None) or {}
    thought = extra.get("reasoning_content") or extra.get("reasoning")
    return thought if isinstance(thought, str) else ""


async def _opened(endpoint: Endpoint) -> AsyncGenerator[openai.AsyncOpenAI]:
    """The client. `asyncio.run` closes async generators at its end, and so these connections."""
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
