"""Calls to language models, all by `dspy.LM`: DSPy's history, usage tracking and callbacks see each of them.

A server that speaks OpenAI's language is called by DSPy's client for that language, another
provider by DSPy's own client, or by LiteLLM where it has none. Here is what those lack: what a
server does not take is learnt from its refusal and sent otherwise from then on
(`server_habits.py`), a request that a server cuts without a word is an error, and a wait ends (`patience.py`).

A server of the user's own writes its answers in a stream, watched or not: the stream tells that it is alive, and is
closed where the answer goes round. Providers are fast, and bill what a closed stream would have written.
"""

import asyncio
import base64
import importlib
import json
import logging
import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass
from weakref import WeakKeyDictionary

import dspy
from dspy import lm15
from dspy.clients.backend_selection import CLIENT_KEYS
from dspy.utils.exceptions import LMError, LMStreamAssemblyError, LMUnsupportedFeatureError

from prompts.engine.bridge import run_anywhere
from prompts.engine.calls import Call, Finish, Message, Reply, rough_tokens, visible_so_far, without_thinking
from prompts.engine.error_words import as_openai_error, words_of
from prompts.engine.errors import ContextOverflow, EngineError, ModelMisconfigured
from prompts.engine.failures import LONGEST_REPLY, Failure, refused, too_slow, unreachable
from prompts.engine.key_masking import keep_secret, mask_error, mask_keys, secrets_of_address, secrets_of_environment
from prompts.engine.loops import goes_round
from prompts.engine.patience import USUAL, Patience, Wait
from prompts.engine.providers import LOCAL, Endpoint, ModelChoice, without_user
from prompts.engine.server_habits import HABITS, Habits, Sent
from prompts.engine.streaming import ShownText
from prompts.text.regex import regex

if TYPE_CHECKING:
    from prompts.engine.gguf import SharedModel
    from prompts.engine.models import GgufSettings
    from prompts.engine.transformers_lm import TransformersEngine

# Without this LiteLLM tries to download a price list on its first call.
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

# By name: `dspy.lm15` does not pass them on, and the types of what DSPy has copied would hide that DSPy has none.
_TRANSPORTS: Any = importlib.import_module("dspy._vendor.lm15.transports")
_FINISHES: dict[str, Finish] = {"length": "length", "content_filter": "withheld", "refusal": "withheld"}
# What an error of DSPy's without an HTTP status would have had as one.
_STATUS = {"LMAuthError": 401, "LMBillingError": 402, "LMRateLimitError": 429, "LMServerError": 500}
_REASONING_MODEL = regex(r"(?:^|/)(?:o[1345](?:-|$)|gpt-[5-9](?![\w.]*-chat))")
# A count below this may leave out a prefix that the server had kept from an earlier request.
_CACHED_PREFIX = 256  # tokens
_CONNECT = 15.0  # seconds
_LOADING = 600.0  # seconds that a model of this machine may take to be read
_CONNECTIONS = 10_000  # our own limits admit calls
# The statuses with which a server refuses a field of a request.
_REFUSES = {400, 404, 415, 422, 500, 501}
_LOOKED_AT = 200  # characters of a stream between two looks whether it goes round
_LONGEST_READ = 86_400.0  # seconds: what waits is ended by `Patience`
# Parameters that every provider has under one name, in one place or another of a request.
_TYPED = {"top_p", "seed", "frequency_penalty", "presence_penalty"}


@dataclass(frozen=True, slots=True)
class _Try:
    """What is asked, and the wait for it."""

    call: Call
    wait: Wait


_CALLING: ContextVar[_Try | None] = ContextVar("calling", default=None)
# DSPy warns of a cut answer; ours is asked for again, with more room.
logging.getLogger("dspy.clients.lm").addFilter(lambda record: not (_CALLING.get() and "truncated" in record.msg))


class LmTransport:
    """A `dspy.LM` as the way to a model.

    `engine` is that of a server which is called by its address; `defaults` are what a program's own LM says of its
    calls (temperature, tokens, …).
    """

    def __init__(
        self,
        lm: dspy.BaseLM,
        address: str,
        patience: Patience,
        engine: "ChatEngine | None" = None,
        defaults: Mapping[str, object] | None = None,
        habits: Habits | None = None,
    ) -> None:
        self.lm = lm
        self.address = address
        self.model = str(lm.model)
        self.defaults = defaults or {}
        self._given = defaults is not None
        self._engine = engine
        self._habits = habits or Habits()
        self._patience = patience

    @classmethod
    def of(cls, endpoint: Endpoint, timeout: float | None = None) -> "LmTransport":
        """The way to a server that speaks OpenAI's language."""
        engine, address = ChatEngine(endpoint), without_user(endpoint.url)
        patience = Patience(timeout, own=not endpoint.listed)
        return cls(_lm_on(engine, endpoint.name), address, patience, engine, habits=engine.habits)

    @classmethod
    def of_provider(cls, choice: ModelChoice, timeout: float | None = None) -> "LmTransport":
        """The way to a provider that DSPy or LiteLLM knows."""
        keep_secret((choice.api_key, *secrets_of_address(choice.base_url), *secrets_of_environment(os.environ)))
        own = {"api_base": choice.base_url, "api_key": choice.api_key}
        options = {name: value for name, value in own.items() if value}
        lm = dspy.LM(choice.name, cache=False, num_retries=0, timeout=timeout or USUAL, **options)
        address = without_user(choice.base_url) if choice.base_url else choice.name.partition("/")[0]
        habits = HABITS.setdefault((address, choice.name), Habits())
        return cls(lm, address, Patience(timeout or USUAL, own=False), habits=habits)

    @classmethod
    def of_machine(cls, choice: ModelChoice, timeout: float | None = None) -> "LmTransport":
        """A model of this machine, by transformers; it ends an answer itself when the time is over."""
        from prompts.engine.transformers_lm import TransformersEngine

        seconds = timeout or USUAL
        engine = TransformersEngine(choice.name.removeprefix(LOCAL), seconds)
        return cls(_lm_on(engine, choice.name), engine.address, Patience(_LOADING + 2 * seconds, own=False))

    @classmethod
    def of_file(cls, choice: ModelChoice, settings: "GgufSettings", timeout: float | None = None) -> "LmTransport":
        """A model in one file, by llama.cpp."""
        from prompts.engine.gguf import address_of_file, shared_model

        address = address_of_file(choice.name)
        return cls.on_file(FileEngine(choice.name, address, shared_model(address, settings)), timeout)

    @classmethod
    def on_file(cls, engine: "FileEngine", timeout: float | None = None) -> "LmTransport":
        """The way to this engine's model."""
        patience = Patience(timeout, own=True)
        return cls(_lm_on(engine, engine.name), engine.address, patience, engine, habits=engine.habits)

    @classmethod
    def of_program(cls, lm: dspy.BaseLM, timeout: float | None = None) -> "LmTransport":
        """The way to a model that a program has given to DSPy."""
        options: dict[str, object] = dict(lm.kwargs)
        keep_secret((str(options.get("api_key") or ""), *secrets_of_environment(os.environ)))
        url = str(options.get("api_base") or options.get("base_url") or "")
        if "max_completion_tokens" in options:
            options["max_tokens"] = options.pop("max_completion_tokens")
        given = {name: value for name, value in options.items() if value is not None and name not in CLIENT_KEYS}
        return cls(lm, without_user(url) or f"dspy:{lm.model}", Patience(timeout, own=bool(url)), defaults=given)

    @property
    def place(self) -> str:
        """Where the model is, for people: a model in one file has another address at each start."""
        return self._engine.place if isinstance(self._engine, FileEngine) else self.address

    @property
    def structured(self) -> str:
        """How the server is held to a schema."""
        if not self._habits.structured:
            self._habits.structured = "json_schema" if self.lm.supports_response_schema else "text"
        return self._habits.structured

    def room(self, call: Call) -> int:
        """The tokens that the answer to a call may have, as far as the server has told."""
        return self._habits.room(call)

    async def send(self, call: Call, show: Callable[[str], None] | None = None) -> Reply:
        """One request and its reply; as a stream where somebody watches, the server is the user's own, or takes no
        other request."""
        streamed = self._streams(call, watched=show is not None)
        shown = ShownText(show or _nobody) if streamed else None
        request = self.request(call)
        sent = self._sent(call, request, shown)
        variant = {"rollout_id": call.variant} if self._given and call.variant is not None else {}
        wait: Wait | None = None
        try:
            async with self._patience.wait(call, streamed) as wait:
                calling = _CALLING.set(_Try(call, wait))
                try:
                    with dspy.context(send_stream=shown) if shown else nullcontext():
                        response = await self.lm.acall(request, **variant)
                finally:
                    _CALLING.reset(calling)
            reply = self.reply(response, call)
        except TimeoutError as error:
            assert wait is not None  # noqa: S101 - it is what has ended
            failure = too_slow(self.model, self.address, wait.seconds, wait.begun)
            raise failure from mask_error(error)
        except LMError as error:
            if isinstance(error.__cause__, Failure | EngineError):  # of a model of this machine, in our words
                raise error.__cause__ from None
            failure = self._failure(error)
            failure.adapted = self._learn(failure, error, sent, shown)
            raise failure from mask_error(error)
        if shown is not None:
            shown.end()
        elif show is not None:
            show(reply.text)
        return reply

    def _streams(self, call: Call, watched: bool) -> bool:
        streams = self._habits.streams
        if self._engine is None or streams is not None:
            return self._engine is not None and bool(streams)
        return watched or (self._engine.own and not call.whole)

    async def aclose(self) -> None:
        """Close this event loop's connections."""
        if self._engine is not None:
            await self._engine.aclose()
        elif not self._given and isinstance(self.lm, dspy.LM):
            await self.lm.aclose()

    # --- request -----------------------------------------------------------------------------------------------------

    def request(self, call: Call) -> lm15.Request:
        """A call as DSPy's clients send it."""
        system = "\n\n".join(message.content for message in call.messages if message.role == "system")
        turns = [message for message in call.messages if message.role != "system"]
        if self._habits.user_only:
            turns, system = _alternating([Message("user", system), *turns] if system else turns), ""
        form: dict[str, object] | None = None
        if call.schema is not None and self.structured == "json_schema":
            form = {"type": "json_schema", "name": call.step, "strict": True, "schema": call.schema}
        elif call.schema is not None and self.structured == "json_object":
            form = {"type": "json_object"}
        config = lm15.Config(
            max_tokens=self.room(call),
            temperature=None if "temperature" in self._habits.left_out else call.temperature,
            response_format=form,
            extensions={name: value for name, value in call.extra.items() if name not in _TYPED} or None,
            **{name: value for name, value in call.extra.items() if name in _TYPED},
        )
        messages = tuple(
            lm15.Message.user(turn.content) if turn.role == "user" else lm15.Message.assistant(turn.content)
            for turn in turns
        )
        return lm15.Request(model=self.model, messages=messages, system=system or None, config=config)

    def _sent(self, call: Call, request: lm15.Request, shown: ShownText | None) -> Sent:
        form, left_out = request.config.response_format, self._habits.left_out
        parts = {
            "temperature": request.config.temperature is not None,
            "max_tokens": self._engine is not None and "max_tokens" not in left_out,
            "stream": shown is not None,
            "stream_options": shown is not None and "stream_options" not in left_out,
            "system": bool(request.system),
        }
        return Sent(
            call=call,
            form=str(form["type"]) if form else None,
            max_tokens=request.config.max_tokens or 0,
            has=frozenset(name for name, is_sent in parts.items() if is_sent),
            may_stream=self._engine is not None,
        )

    def _learn(self, failure: Failure, error: LMError, sent: Sent, shown: ShownText | None) -> bool:
        """Whether the server refused something that can be sent otherwise; it is from now on."""
        if isinstance(error, LMStreamAssemblyError) and shown is not None and not shown.begun:
            if self._habits.streams is not True:
                self._habits.streams = False  # it answers in one piece, or not at all
            return self._habits.streams is False
        if isinstance(error, LMUnsupportedFeatureError) and sent.form:
            return self._habits.learn("response_format", sent)
        return failure.status in _REFUSES and self._habits.learn(failure.words, sent)

    # --- reply -------------------------------------------------------------------------------------------------------

    def reply(self, response: lm15.Response, call: Call) -> Reply:
        """What a client of DSPy's gave, as the reply to the call. Raises Failure."""
        parts = response.message.parts
        raw = mask_keys("".join(map(_text_of, parts)))
        thought = sum(len(part.text) for part in parts if isinstance(part, lm15.ThinkingPart))
        finish = _FINISHES.get(str(response.finish_reason), "stop")
        if not raw and any(isinstance(part, lm15.RefusalPart) for part in parts):
            finish = "withheld"
        usage, input_tokens = response.usage, response.usage.input_tokens
        if self._engine is not None and not raw and not thought and response.id is None and input_tokens is None:
            words = mask_keys(words_of(json.dumps(response.provider_data or {})))
            words = f"not an answer of /chat/completions: {words}"
            raise refused(self.model, self.address, 404, words)
        if input_tokens is None or usage.output_tokens is None:  # nobody has counted
            return Reply(without_thinking(raw), finish, call.tokens(), rough_tokens(raw + " " * thought))
        # Some servers (Ollama) cut a long prompt without a word; only the count of what they read tells.
        if self._engine is not None and _CACHED_PREFIX < input_tokens < call.least_tokens():
            raise Failure(
                ContextOverflow(
                    f"{self.model} at {self.address} read only {input_tokens} tokens of the request: it cuts long "
                    "requests.",
                    "Raise its context (Ollama: OLLAMA_CONTEXT_LENGTH or num_ctx), or lower TRELLIS_CHUNK_TOKENS.",
                )
            )
        # Where thinking is counted apart it still is in the total.
        written = max(usage.output_tokens, (usage.total_tokens or 0) - input_tokens)
        return Reply(without_thinking(raw), finish, input_tokens, written)

    def _failure(self, error: LMError) -> Failure:
        """What DSPy's error means for us."""
        words = " ".join(mask_keys(str(error.message).partition("\n\n")[0]).split())
        kinds = [kind.__name__ for kind in type(error).__mro__]
        if "LMConfigurationError" in kinds or "LMUnsupportedFeatureError" in kinds:
            return Failure(ModelMisconfigured(f"{self.model}: {words}", "Check the model's name, address and key."))
        if "LMTransportError" in kinds or "LMTimeoutError" in kinds:
            return self._unreachable(words)
        if "LMStreamAssemblyError" in kinds:
            return self._unreachable("the stream ended in the middle of the answer")
        status = error.status or next((_STATUS[kind] for kind in kinds if kind in _STATUS), 400)
        if status == 200 and "not JSON" in words:
            # A gateway's page in place of an answer: mostly it passes, and else the address is wrong.
            return self._unreachable(words)
        after = None if error.retry_after is None else str(error.retry_after)
        return refused(self.model, self.address, 404 if status == 200 else status, words, after)

    def _unreachable(self, problem: str) -> Failure:
        return unreachable(self.model, self.address, problem)


class ChatEngine:
    """DSPy's client of one server with `/chat/completions`; connections belong to an event loop and close with it."""

    supports_response_schema = True

    def __init__(self, endpoint: Endpoint) -> None:
        keep_secret((endpoint.key, *secrets_of_address(endpoint.url)))
        known = (without_user(endpoint.url), endpoint.name)
        self.habits = HABITS.setdefault(known, Habits(endpoint.structured))
        if endpoint.listed and _REASONING_MODEL.search(endpoint.model):
            self.habits.left_out |= {"max_tokens", "temperature"}
        self.own = not endpoint.listed
        self._endpoint = endpoint
        self._opened: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[_Way, _Opened]]
        self._opened = WeakKeyDictionary()

    async def complete(self, request: lm15.Request) -> lm15.Response:
        """One reply."""
        return await (await self._client()).complete(replace(request, model=self._endpoint.model))

    async def stream(self, request: lm15.Request) -> AsyncIterator[object]:
        """The events of one reply, which ends as if it had been cut where it goes round."""
        calling, text, seen = _CALLING.get(), "", 0
        client = await self._client()
        async with aclosing(client.stream(replace(request, model=self._endpoint.model))) as events:
            async for event in events:
                yield event
                if calling is None or not isinstance(event, lm15.StreamDeltaEvent):
                    continue
                calling.wait.heard()
                text += event.delta.text if isinstance(event.delta, lm15.TextDelta) else ""
                if len(text) - seen < _LOOKED_AT:
                    continue
                seen = len(text)
                if goes_round(visible_so_far(text), calling.call):
                    yield lm15.StreamEndEvent(finish_reason="length")
                    return

    async def aclose(self) -> None:
        """Close this event loop's connections."""
        for keeper, _ in self._opened.pop(asyncio.get_running_loop(), {}).values():
            await keeper.aclose()

    async def _client(self) -> lm15.AsyncOpenAIChatLM:
        compat = lm15.OpenAIChatCompat(
            max_tokens_field="max_completion_tokens" if "max_tokens" in self.habits.left_out else "max_tokens",
            stream_usage="omit" if "stream_options" in self.habits.left_out else "include",
        )
        opened = self._opened.setdefault(asyncio.get_running_loop(), {})
        way = self._endpoint, compat
        if way not in opened:
            keeper = _open(*way)
            opened[way] = keeper, await anext(keeper)
        return opened[way][1]


class FileEngine(ChatEngine):
    """The client of a model in one file: each call asks where it is served, for that may end."""

    def __init__(self, name: str, address: str, model: "SharedModel") -> None:
        super().__init__(Endpoint(name, Path(name).stem, address, None, "json_schema", listed=False))
        self.name = name
        self.address = address
        self._model = model

    @property
    def place(self) -> str:
        """What serves it, as of the last call."""
        who = "started by this process" if self._model.is_ours else "started by another process"
        return f"llama.cpp at {self._endpoint.url}, {who}"

    async def _client(self) -> lm15.AsyncOpenAIChatLM:
        served = await asyncio.to_thread(self._model.served)
        keep_secret((served.key,))
        self._endpoint = replace(self._endpoint, url=served.url, key=served.key)
        return await super()._client()


def _text_of(part: object) -> str:
    """What a part of a reply says. An object that makes a choice comes as data, read already."""
    if isinstance(part, lm15.DataPart):
        return json.dumps(part.value, ensure_ascii=False)
    return part.text if isinstance(part, lm15.TextPart) else ""


def _nobody(_: str) -> None:
    """Whoever watches a stream that nobody watches."""


def _alternating(turns: Sequence[Message]) -> list[Message]:
    """The turns with those of one role in a row made one."""
    merged: list[Message] = []
    for turn in turns:
        if merged and merged[-1].role == turn.role:
            merged[-1] = replace(turn, content=f"{merged[-1].content}\n\n{turn.content}")
        else:
            merged.append(turn)
    return merged


_Way = tuple[Endpoint, lm15.OpenAIChatCompat]
_Opened = tuple[AsyncGenerator[lm15.AsyncOpenAIChatLM], lm15.AsyncOpenAIChatLM]


class _Waiting:
    """An engine for callers without an event loop."""

    def __init__(self, engine: "ChatEngine | TransformersEngine") -> None:
        self.supports_response_schema = engine.supports_response_schema
        self._engine = engine

    def complete(self, request: lm15.Request) -> lm15.Response:
        return run_anywhere(self._engine.complete(request))


def _lm_on(engine: "ChatEngine | TransformersEngine", name: str) -> dspy.LM:
    return dspy.LM(name, cache=False, num_retries=0, engine=_Waiting(engine), async_engine=engine)


async def _open(endpoint: Endpoint, compat: lm15.OpenAIChatCompat) -> AsyncGenerator[lm15.AsyncOpenAIChatLM]:
    """DSPy's client; `asyncio.run` closes async generators when it ends, and with this one its connections."""
    url, parts = endpoint.url, urlsplit(endpoint.url)
    headers: tuple[tuple[str, str], ...] = ()
    if parts.username and not endpoint.key:
        user = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        headers = (("Authorization", f"Basic {base64.b64encode(user.encode()).decode()}"),)
        url = url.replace(f"{parts.netloc.rpartition('@')[0]}@", "", 1)
    access = lm15.AccessPolicy(
        "server", base_url=without_user(url), headers=headers, auth_scheme=("api-key" if headers else "bearer",)
    )
    # Read once: left to the client, each call goes through the whole environment.
    proxies = {} if proxy_bypass(parts.hostname or "") else getproxies()
    transport = _BoundedTransport(
        connect_timeout=_CONNECT, read_timeout=_LONGEST_READ, write_timeout=_LONGEST_READ, pool_timeout=None,
        max_connections=_CONNECTIONS, proxy=proxies.get(parts.scheme) or proxies.get("all"), trust_env=False,
    )  # fmt: skip
    config = lm15.RouterConfig(
        providers=(lm15.ProviderDefinition.chat(access, compat=compat),),
        api_keys={"server": endpoint.key or "none"},
        env={},
        transport=transport,
    )
    async with transport, lm15.AsyncLMRouter(config) as router:
        yield router.lm("server:model")


class _BoundedTransport(_TRANSPORTS.StdlibAsyncTransport):
    """DSPy's connections, which read no reply of more than LONGEST_REPLY bytes into memory."""

    async def _do_stream(self, request: object) -> object:
        response = await super()._do_stream(request)
        # It is the class of DSPy's own that we extend.
        chunks = self._bounded(response._chunks)  # noqa: SLF001
        response._chunks = chunks if response.status < 400 else self._worded(chunks)  # noqa: SLF001
        return response

    @staticmethod
    async def _worded(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """An error's body with its words where DSPy reads them."""
        body = b"".join([chunk async for chunk in chunks])
        yield as_openai_error(body.decode("utf-8", "replace")).encode()

    @staticmethod
    async def _bounded(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        received = 0
        async for chunk in chunks:
            received += len(chunk)
            if received > LONGEST_REPLY:
                raise _TRANSPORTS.ReadError(f"the reply is longer than {LONGEST_REPLY // 1_000_000} MB")
            yield chunk
