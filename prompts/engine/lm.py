"""One model on one server: a `dspy.LM` with a cache, limits, retries, a budget and second tries.

Equal calls at the same time are one call. An answer goes into the cache before anything else is
done with it, so a killed process loses only the answers to calls under way. An unreadable answer
is removed and asked for once more with a word on what was wrong, a cut one with twice the room,
one that repeats itself at a higher temperature. What a server refuses is left out for some minutes
(`refusals.py`); `patience.py` ends a wait.
"""

import asyncio
import json
import logging
import os
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar, cast
from weakref import WeakKeyDictionary, WeakValueDictionary

import dspy
from dspy import lm15
from dspy.clients.backend_selection import CLIENT_KEYS
from dspy.utils.exceptions import (
    LMAuthError,
    LMBillingError,
    LMConfigurationError,
    LMError,
    LMRateLimitError,
    LMServerError,
    LMStreamAssemblyError,
    LMTimeoutError,
    LMTransportError,
    LMUnsupportedFeatureError,
)

from prompts.engine.bridge import run_sync
from prompts.engine.chat_server import (
    NO_STREAM,
    SAMPLING,
    TRY,
    ChatServer,
    Engine,
    Try,
    Waiting,
    text_of,
)
from prompts.engine.errors import (
    AnswerMalformed,
    AnswerTruncated,
    AnswerWithheld,
    ContextOverflow,
    EngineError,
    ModelMisconfigured,
)
from prompts.engine.key_masking import mask_error, mask_keys
from prompts.engine.limits import Clock, Limits
from prompts.engine.messages import (
    Call,
    Doubtful,
    Message,
    NotAsAsked,
    Reply,
    rough_tokens,
    without_thinking,
)
from prompts.engine.patience import Patience
from prompts.engine.refusals import (
    LONGEST_WAIT,
    Failure,
    Habits,
    Sent,
    backoff,
    refused,
    too_slow,
    unreachable,
)
from prompts.engine.spans import model_span
from prompts.engine.spending import Price, SpendBudget, Spent
from prompts.engine.streaming import Draft, Show, ShownText, repeats_itself, salvaged

# Without this LiteLLM tries to download a price list on its first call.
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

T = TypeVar("T")
# A call that is equal to one under way waits for its lock; the locks of each event loop.
CallLocks = WeakKeyDictionary[asyncio.AbstractEventLoop, WeakValueDictionary[str, asyncio.Lock]]

# The HTTP status of an error of DSPy's that carries none.
_STATUS = {LMAuthError: 401, LMBillingError: 402, LMRateLimitError: 429, LMServerError: 500}
_REFUSES = {400, 404, 415, 422, 500, 501}  # statuses with which a part of a request is refused
_MOST_ADAPTED = 9  # requests to one call that are sent otherwise: there is no more to leave out
_CACHED_PREFIX = 256  # tokens: a smaller count may leave out a prefix that the server had kept
# DSPy warns of a cut answer; ours is asked for again.
logging.getLogger("dspy.clients.lm").addFilter(
    lambda record: not (TRY.get() and "truncated" in record.msg)
)


class AnswerCache(Protocol):
    """Answers by the key of their call; both are plain text."""

    def get(self, key: str) -> str | None: ...

    def put(self, key: str, answer: str) -> None: ...

    def remove(self, key: str) -> None: ...


@dataclass(frozen=True)
class Terms:
    """The terms on which a model is called.

    An `own_server` is no provider's: its speed is that of the user's machine. Each try first
    awaits the `gate`. With `compared`, a cached answer is entered as if it had been paid for,
    because systems that are compared must pay alike.
    """

    limits: Limits
    cache: AnswerCache | None = None
    price: Price | None = None
    max_attempts: int = 6
    clock: Clock = field(default_factory=Clock)
    budget: SpendBudget = field(default_factory=SpendBudget)
    locks: CallLocks = field(default_factory=CallLocks)
    compared: bool = False
    own_server: bool = False
    gate: Callable[[], Awaitable[None]] | None = None
    timeout: float | None = None


def unentered(_: Spent) -> None:
    """Enter nothing."""


@dataclass(frozen=True, slots=True)
class Asker:
    """How urgent a call is, where its cost is entered, and who watches the answer."""

    priority: int = 0
    record: Callable[[Spent], None] = unentered
    show: Show | None = None


@dataclass(frozen=True, slots=True)
class _Asked:
    """A call's cache key, who makes it, and what was shown of its answer."""

    key: str
    asker: Asker
    draft: Draft


class ServedLM(dspy.LM):
    """A model as DSPy has it, called on our terms.

    `address` is its server's. The `engine` answers its requests; without one DSPy's own client
    does, with these `options`. `given` is a program's own LM that is asked in place of this one.
    """

    def __init__(  # noqa: PLR0913 -- all but the first three by name
        self,
        name: str,
        address: str,
        terms: Terms,
        *,
        engine: Engine | None = None,
        habits: Habits | None = None,
        given: dspy.BaseLM | None = None,
        options: Mapping[str, object] | None = None,
    ) -> None:
        if engine is not None:
            options = {"engine": Waiting(engine), "async_engine": engine}
        super().__init__(name, cache=False, num_retries=0, **(options or {}))
        self.address = address
        self.terms = terms
        self.given = given
        self.habits = habits or Habits()
        self.server = engine if isinstance(engine, ChatServer) else None
        self._under_way, self._counted_until = 0, 0.0
        self._patience = Patience(terms.timeout, terms.own_server)

    @property
    def supports_response_schema(self) -> bool:
        if self.given is not None:
            return bool(self.given.supports_response_schema)
        return bool(super().supports_response_schema)

    @property
    def defaults(self) -> dict[str, Any]:
        """The parameters of calls that the program has set, such as a temperature."""
        found: dict[str, Any] = {}
        for lm in (self.given, self):
            own = lm.kwargs.items() if lm is not None else ()
            found |= {name: it for name, it in own if it is not None and name not in CLIENT_KEYS}
        if "max_completion_tokens" in found:
            found["max_tokens"] = found.pop("max_completion_tokens")
        return found

    @property
    def structured(self) -> str:
        """How the server is held to a schema: "json_schema", "json_object" or "text"."""
        if not self.habits.structured:
            self.habits.structured = "json_schema" if self.supports_response_schema else "text"
        return self.habits.structured

    async def aclose(self) -> None:
        if self.server is not None:
            await self.server.aclose()
        elif self.given is None:
            await super().aclose()

    def __call__(self, prompt: Any = None, *, messages: Any = None, **options: Any) -> Any:
        """`acall` for callers without an event loop."""
        return run_sync(self.acall(prompt, messages=messages, **options))

    async def acall(self, prompt: Any = None, *, messages: Any = None, **options: Any) -> Any:
        """The answer to a prompt of DSPy's (an optimiser's, say), on the same terms."""
        turns = messages or [{"role": "user", "content": prompt}]
        call = Call(
            step="prompt of DSPy's",
            messages=tuple(Message(turn["role"], str(turn["content"])) for turn in turns),
            max_tokens=options.get("max_tokens") or self.kwargs.get("max_tokens") or 4096,
            temperature=options.get("temperature", 0.0),
            variant=options.get("rollout_id"),
        )
        return [await self.ask(call, str, Asker(priority=1))]

    # --- one answer ------------------------------------------------------------------------------

    async def ask(self, call: Call, read: Callable[[str], T], asker: Asker) -> T:
        """The answer as `read` makes it; EngineError where there is none.

        `read` raises NotAsAsked for an answer out of form. A watcher gets the text in pieces while
        it is written, and Withdrawn where another text replaces it.
        """
        with model_span(call, self.model) as seen:

            def record(spent: Spent) -> None:
                seen.record(spent)
                asker.record(spent)

            def read_and_shown(text: str) -> T:
                seen.answered(text)
                return read(text)

            return await self._once(call, read_and_shown, replace(asker, record=record))

    async def _once(self, call: Call, read: Callable[[str], T], asker: Asker) -> T:
        """The answer from the cache, or the server's; equal calls at the same time are one."""
        key, terms, draft = call.key(self.address, self.model), self.terms, Draft(asker.show)
        started = terms.clock.now()
        locks = terms.locks.setdefault(asyncio.get_running_loop(), WeakValueDictionary())
        async with locks.setdefault(key, asyncio.Lock()):
            stored = self._stored(key, call)
            # Another version of the program may have kept an answer that this one cannot read.
            with suppress(NotAsAsked):
                if stored is not None:
                    answer = _read_finally(read, stored.text)
                    draft.add(stored.text)
                    paid = self._paid(stored) if terms.compared else Spent()
                    seconds = terms.clock.now() - started
                    asker.record(replace(paid, cached_calls=1, seconds=seconds))
                    return answer
            return await self._answer(call, read, _Asked(key, asker, draft))

    async def _answer(self, call: Call, read: Callable[[str], T], asked: _Asked) -> T:
        try:
            return read((await self._complete_reply(call, asked)).text)
        except NotAsAsked as problem:
            self._remove(asked)
            first = problem
        try:
            reply = await self._complete_reply(call.repaired(str(first)), asked)
            return _read_finally(read, reply.text)
        except (NotAsAsked, AnswerTruncated) as problem:
            self._remove(asked)
            if isinstance(first, Doubtful):  # it was in form
                return cast("T", first.outputs)
            if isinstance(problem, AnswerTruncated):
                raise
            raise AnswerMalformed(
                f"{self.model} gave no valid answer for the step {call.step!r}: {problem}",
                "Give this role a model that follows the form, or a server with structured output.",
            ) from problem

    async def _complete_reply(self, call: Call, asked: _Asked) -> Reply:
        """A reply that was not cut, or what can be kept of one that was."""
        reply = await self._sent(call, asked)
        longer = replace(call, max_tokens=2 * call.max_tokens)
        if reply.finish == "length" and (second := self._second_call(call, longer, reply)):
            asked.draft.withdraw()
            try:
                reply = await self._sent(second, asked)
            except ContextOverflow as error:
                raise self._truncated(second, reply) from error
        if reply.finish == "length" and (kept := salvaged(reply.text, call)) is not None:
            if not call.by_line:  # whoever reads lines counts those that are left out
                asked.asker.record(Spent(unread_lines=1))
            if repeats_itself(reply.text, call):  # the next answer would do so too
                self._keep(asked.key, replace(reply, text=kept))
            return replace(reply, text=kept, finish="stop")
        if reply.finish == "stop":
            return reply
        asked.draft.withdraw()
        if reply.finish == "length":
            raise self._truncated(longer, reply)
        raise AnswerWithheld(
            f"{self.model}'s provider withheld the answer of the step {call.step!r}.",
            "Use another model for this text.",
        )

    def _second_call(self, call: Call, longer: Call, reply: Reply) -> Call | None:
        """The call to make after a cut answer; None where another one would change nothing."""
        if repeats_itself(reply.text, call):
            again = call.again()
            differs = again != call or (call.temperature != 0 and "seed" not in call.extra)
            return again if differs and salvaged(reply.text, call) is None else None
        return longer if self.habits.room(longer) > self.habits.room(call) else None

    def _truncated(self, call: Call, reply: Reply) -> AnswerTruncated:
        if repeats_itself(reply.text, call):
            return AnswerTruncated(
                f"{self.model} said the same again and again in the step {call.step!r}.",
                "Use another model, a higher TRELLIS_RETRY_TEMPERATURE, or a penalty of the "
                "server's on what is said again (TRELLIS_MODEL_OPTIONS).",
            )
        room, raise_it = self.habits.room(call), "Raise max_tokens (TRELLIS_MAX_TOKENS)"
        if room < call.max_tokens:
            raise_it = "The server allows no more: give it a longer context"
        return AnswerTruncated(
            f"{self.model} was cut in the step {call.step!r}, also with {room} tokens.",
            f"{raise_it}, lower TRELLIS_CHUNK_TOKENS, or use a model that thinks less.",
        )

    # --- tries -----------------------------------------------------------------------------------

    async def _sent(self, call: Call, asked: _Asked) -> Reply:
        """A reply, after as many tries as the terms allow."""
        draft, failed, adapted = asked.draft, 0, 0
        while True:
            try:
                return await self._admitted(call, asked, draft)
            except Failure as failure:
                # A stream that broke off may do so again: the next try comes whole.
                if draft.withdraw() or (failure.broken and not failure.adapted):
                    draft = Draft()
                    call = replace(call, whole=call.whole or not failure.timed_out)
                if failure.adapted and adapted < _MOST_ADAPTED:
                    adapted += 1
                    continue
                failed += 1
                await self._pause(failure, failed)

    async def _admitted(self, call: Call, asked: _Asked, draft: Draft) -> Reply:
        """The reply to one try, which begins when limits and budget allow. Raises Failure."""
        terms = self.terms
        most = call.most_tokens() if terms.budget.limited or terms.limits.a_minute else 0
        if terms.gate is not None:
            await terms.gate()
        async with (
            terms.limits.slot(asked.asker.priority, most + call.max_tokens) as start,
            terms.budget.reserved(most, call.max_tokens, terms.price) as bill,
        ):
            began = terms.clock.now()
            if not self._under_way:
                self._counted_until = began
            self._under_way += 1
            try:
                reply = await self.send(call, draft.add if draft.watched else None)
                if reply.finish == "stop":
                    self._keep(asked.key, reply)
            finally:
                self._under_way -= 1
            start.tokens = reply.input_tokens + reply.output_tokens
            bill.used = reply.input_tokens, reply.output_tokens
            now = terms.clock.now()
            busy, self._counted_until = max(0.0, now - self._counted_until), now
            asked.asker.record(replace(self._paid(reply), seconds=now - began, busy_seconds=busy))
            return reply

    async def _pause(self, failure: Failure, failed: int) -> None:
        """Wait until the next try; raise the failure's error where there is none."""
        error, terms = failure.error, self.terms
        if not failure.retryable:
            raise error from failure
        if failed == terms.max_attempts:
            message = f"{error.message} (after {failed} attempts)"
            raise type(error)(message, error.remedy) from failure
        if failure.wait is not None:  # other calls would be refused as well
            terms.limits.pause(min(failure.wait, LONGEST_WAIT))
        await terms.clock.sleep(backoff(failed, failure.wait, terms.clock.chance()))

    async def send(self, call: Call, show: Callable[[str], None] | None = None) -> Reply:
        """The reply to one request. Raises Failure."""
        self.habits.forget_old(self.terms.clock.now())
        streamed = self.server is not None and (
            self.habits.streams
            if self.habits.streams is not None
            else show is not None or (self.terms.own_server and not call.whole)
        )
        trying = Try(call, streamed, ShownText(show if streamed else None))
        request, first = self._request(call), self._patience.first(call, streamed)
        known = frozenset(self.habits.left_out)  # other calls may learn more meanwhile
        variant = {"rollout_id": call.variant} if self.given and call.variant is not None else {}
        token = TRY.set(trying)
        try:
            ask = self.given.acall if self.given is not None else super().acall
            work = ask(request, **variant)
            reply = self._reply(await self._patience.wait(work, call, first, trying.heard), call)
        except TimeoutError as error:
            waited = self._patience.seconds if trying.heard else first
            failure = too_slow(self.model, self.address, waited, bool(trying.heard))
            raise failure from mask_error(error)
        except LMError as error:
            cause = error.__cause__
            if isinstance(cause, EngineError):  # of a model of this machine
                raise cause from None
            failure = cause if isinstance(cause, Failure) else self._failure(error)
            failure.adapted = self._learn(failure, error, trying, request, known)
            if failure.adapted and self.habits.since is None:
                self.habits.since = self.terms.clock.now()
            raise failure from mask_error(error)
        finally:
            TRY.reset(token)
        if streamed:
            trying.shown.end()
        elif show is not None:
            show(reply.text)
        return reply

    def _request(self, call: Call) -> lm15.Request:
        """A call as DSPy's clients send it."""
        system = "\n\n".join(it.content for it in call.messages if it.role == "system")
        turns = [it for it in call.messages if it.role != "system"]
        if self.habits.user_only and system:
            turns[0] = replace(turns[0], content=f"{system}\n\n{turns[0].content}")
            system = ""
        form: dict[str, object] | None = None
        if call.schema is not None and self.structured == "json_schema":
            named = {"name": call.step, "strict": True, "schema": call.schema}
            form = {"type": "json_schema", **named}
        elif call.schema is not None and self.structured == "json_object":
            form = {"type": "json_object"}
        extra = call.extra.items()
        config = lm15.Config(
            max_tokens=self.habits.room(call),
            temperature=None if "temperature" in self.habits.left_out else call.temperature,
            response_format=form,
            extensions={name: value for name, value in extra if name not in SAMPLING} or None,
            **{name: value for name, value in extra if name in SAMPLING},
        )
        model = self.model if self.given is None else self.given.model
        messages = tuple(lm15.Message(turn.role, parts_of(turn)) for turn in turns)
        return lm15.Request(model=model, messages=messages, system=system or None, config=config)

    def _learn(
        self,
        failure: Failure,
        error: LMError,
        trying: Try,
        request: lm15.Request,
        known: frozenset[str],
    ) -> bool:
        """Learn what the server refused; False where no other form of request can help."""
        config = request.config
        parts = {
            "temperature": config.temperature is not None,
            "max_tokens": self.server is not None and "max_tokens" not in known,
            "stream": trying.streamed,
            "system": bool(request.system),
        }
        has = frozenset(name for name, is_sent in parts.items() if is_sent)
        form = str(config.response_format["type"]) if config.response_format else None
        sent = Sent(trying.call, form, config.max_tokens or 0, has, self.server is not None)
        if NO_STREAM in failure.words:  # it answers in one piece, or not at all
            return self.habits.switch_streaming(sent)
        if isinstance(error, LMUnsupportedFeatureError) and form:
            return self.habits.weaken_form(sent)
        return failure.status in _REFUSES and self.habits.learn(failure.words, sent)

    def _reply(self, response: lm15.Response, call: Call) -> Reply:
        """The reply in a response of DSPy's clients. Raises Failure."""
        parts, usage = response.message.parts, response.usage
        data = [it.value for it in parts if isinstance(it, lm15.DataPart)]  # an object as data
        raw = mask_keys(text_of(parts) + "".join(json.dumps(it, ensure_ascii=False) for it in data))
        thought = sum(len(part.text) for part in parts if isinstance(part, lm15.ThinkingPart))
        withheld = not raw and any(isinstance(part, lm15.RefusalPart) for part in parts)
        withheld = withheld or response.finish_reason in {"content_filter", "refusal"}
        finish = "length" if response.finish_reason == "length" else "stop"
        reply = Reply(without_thinking(raw), "withheld" if withheld else finish, 0, 0)  # type: ignore[arg-type]
        read, written = usage.input_tokens, usage.output_tokens
        if read is None or written is None:  # nobody has counted
            written = rough_tokens(raw + " " * thought)
            return replace(reply, input_tokens=call.tokens(), output_tokens=written)
        # Some servers (Ollama) cut a long prompt without a word; only this count shows it.
        if self.server is not None and _CACHED_PREFIX < read < call.least_tokens():
            error = ContextOverflow(
                f"{self.model} at {self.address} read only {read} tokens of the request: it cuts "
                "long requests.",
                "Raise its context (Ollama: OLLAMA_CONTEXT_LENGTH or num_ctx), or lower "
                "TRELLIS_CHUNK_TOKENS.",
            )
            raise Failure(error)
        # Thinking that is counted apart is still in the total.
        written = max(written, (usage.total_tokens or 0) - read)
        return replace(reply, input_tokens=read, output_tokens=written)

    def _failure(self, error: LMError) -> Failure:
        """The failure that an error of DSPy's own clients means."""
        words = " ".join(mask_keys(str(error.message).partition("\n\n")[0]).split())
        if isinstance(error, (LMConfigurationError, LMUnsupportedFeatureError)):
            remedy = "Check the model's name, address and key."
            return Failure(ModelMisconfigured(f"{self.model}: {words}", remedy))
        if isinstance(error, (LMTransportError, LMTimeoutError, LMStreamAssemblyError)):
            return unreachable(self.model, self.address, words)
        usual = (status for kind, status in _STATUS.items() if isinstance(error, kind))
        status = error.status or next(usual, 400)
        if status == 200 and "not JSON" in words:  # a gateway's page, which mostly passes
            return unreachable(self.model, self.address, words)
        after = None if error.retry_after is None else str(error.retry_after)
        return refused((self.model, self.address), 404 if status == 200 else status, words, after)

    # --- cache and ledger ------------------------------------------------------------------------

    def _keep(self, key: str, reply: Reply) -> None:
        if self.terms.cache is not None:
            row = {"text": reply.text, "tokens": [reply.input_tokens, reply.output_tokens]}
            self.terms.cache.put(key, json.dumps(row, ensure_ascii=False))

    def _remove(self, asked: _Asked) -> None:
        """Withdraw an unreadable answer from the screen and the cache."""
        asked.draft.withdraw()
        if self.terms.cache is not None:
            self.terms.cache.remove(asked.key)

    def _stored(self, key: str, call: Call) -> Reply | None:
        row = self.terms.cache.get(key) if self.terms.cache is not None else None
        try:
            stored = json.loads(row or "")
            text = str(stored["text"])
            tokens = stored.get("tokens") or (call.tokens(), rough_tokens(text))
        except (ValueError, KeyError, TypeError, AttributeError):
            return None  # it is asked again and replaced
        return Reply(text, "stop", *tokens)

    def _paid(self, reply: Reply) -> Spent:
        tokens, price = (reply.input_tokens, reply.output_tokens), self.terms.price
        return Spent(1, *tokens, cost_usd=price.cost(*tokens) if price else None)


def parts_of(message: Message) -> tuple[lm15.TextPart | lm15.ImagePart, ...]:
    """The text of a message, then its pictures."""
    addresses = (url.removeprefix("data:").partition(";base64,") for url in message.pictures)
    pictures = (lm15.ImagePart(media_type=kind, data=data) for kind, _, data in addresses)
    return lm15.TextPart(message.content), *pictures


def _read_finally(read: Callable[[str], T], text: str) -> T:
    """The answer as read, also where it is doubtful: the model is not asked a third time."""
    try:
        return read(text)
    except Doubtful as doubt:
        return cast("T", doubt.outputs)
