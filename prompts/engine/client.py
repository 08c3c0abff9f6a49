"""One call to a model, until there is an answer that can be relied on.

Equal calls in turn, the cache, admission, tries with backoff, and one second try that differs: twice
the room for a cut answer, a higher temperature for one that goes round, and for one that cannot be
read what is wrong with it too. A whole answer is written into the cache, and committed, as soon as
DSPy hands it over: before anything else is done with it, and before its slot goes to another call.
So a killed process loses no more answers than it had calls under way (`concurrency` for each
server). One that cannot be read is struck out again. All that was paid for is entered in the ledger.

An evaluation's client is `compared`: it sends and stores in the bridge's loop, so that no answer waits to be stored
for other work, and enters an answer of the cache as it was paid for once: systems compare by what they take.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeVar, cast
from weakref import WeakKeyDictionary, WeakValueDictionary

from prompts.engine.bridge import apart
from prompts.engine.calls import (
    Call,
    Doubtful,
    NotAsAsked,
    Reply,
    Transport,
    rough_tokens,
)
from prompts.engine.errors import AnswerMalformed, AnswerTruncated, AnswerWithheld, ContextOverflow, EngineError
from prompts.engine.failures import Failure, Retries
from prompts.engine.limits import Clock, Limits
from prompts.engine.loops import goes_round, standing
from prompts.engine.spending import Price, SpendBudget, Spent
from prompts.engine.streaming import Draft, Show

T = TypeVar("T")
Record = Callable[[Spent], None]

# Who asks a call that is equal to another under way waits for its lock; one for each event loop.
CallLocks = WeakKeyDictionary[asyncio.AbstractEventLoop, WeakValueDictionary[str, asyncio.Lock]]


class AnswerCache(Protocol):
    """Answers by the key of their call; both are plain text."""

    def get(self, key: str) -> str | None: ...

    def put(self, key: str, answer: str) -> None: ...

    def remove(self, key: str) -> None: ...


@dataclass
class Busy:
    """The time in which at least one call is under way, told piece by piece to the calls that end in it."""

    under_way: int = 0
    since: float = 0.0

    def begin(self, now: float) -> None:
        if not self.under_way:
            self.since = now
        self.under_way += 1

    def piece(self, now: float) -> float:
        """The seconds that nobody has been told."""
        seconds, self.since = max(0.0, now - self.since), max(now, self.since)
        return seconds


@dataclass(frozen=True, slots=True)
class _Asker:
    """How urgent a call is, where it is entered, who watches the answer being written, and the key it is kept under."""

    key: str
    priority: int
    record: Record
    draft: Draft


@dataclass(eq=False)
class Client:
    """One model on one server."""

    transport: Transport
    limits: Limits
    cache: AnswerCache | None = None
    price: Price | None = None
    max_attempts: int = 6
    clock: Clock = field(default_factory=Clock)
    spend_budget: SpendBudget = field(default_factory=SpendBudget)
    locks: CallLocks = field(default_factory=CallLocks)
    compared: bool = False
    gate: Callable[[], Awaitable[None]] | None = None  # what each try waits for before it takes its place
    own_server: bool = False  # whether it is no provider's: its speed is that of the user's machine
    busy: Busy = field(default_factory=Busy)

    async def ask(
        self, call: Call, read: Callable[[str], T], priority: int, record: Record, show: Show | None = None
    ) -> T:
        """The answer as `read` makes it (NotAsAsked from it: out of form); EngineError where there is none.

        `show` gets the answer's text in pieces while it is written, and Withdrawn where another takes its place; one
        from the cache comes as one piece. Of equal calls at one time the first asks, and the others wait for its
        answer.
        """
        key = call.key(self.transport.address, self.transport.model)
        draft, started = Draft(show), self.clock.now()
        async with self._lock_of(key):
            stored = self._stored(key, call)
            if stored is not None:
                try:
                    answer = _standing(read, stored.text)
                except NotAsAsked:
                    pass  # stored by a version that read otherwise: ask again
                else:
                    draft.add(stored.text)
                    paid = self._paid(stored) if self.compared else Spent()
                    record(replace(paid, cached_calls=1, seconds=self.clock.now() - started))
                    return answer
            return await self._answer(call, read, _Asker(key, priority, record, draft))

    def _lock_of(self, key: str) -> asyncio.Lock:
        locks = self.locks.setdefault(asyncio.get_running_loop(), WeakValueDictionary())
        return locks.setdefault(key, asyncio.Lock())

    # --- one answer --------------------------------------------------------------------------------------------------

    async def _answer(self, call: Call, read: Callable[[str], T], asker: _Asker) -> T:
        reply = await self._whole(call, asker)
        try:
            return read(reply.text)
        except NotAsAsked as refused:
            self._strike(asker)
            first = refused
        try:
            reply = await self._whole(call.repaired(str(first)), asker)
            return _standing(read, reply.text)
        except NotAsAsked as problem:
            self._strike(asker)
            if isinstance(first, Doubtful):  # in form it was
                return cast("T", first.outputs)
            raise AnswerMalformed(
                f"{self.transport.model} gave no valid answer for the step {call.step!r}: {problem}",
                "Give this role a model that follows the form, or a server with structured output.",
            ) from problem
        except AnswerTruncated:
            if isinstance(first, Doubtful):
                return cast("T", first.outputs)
            raise

    async def _whole(self, call: Call, asker: _Asker) -> Reply:
        """A reply that was not cut, or what stands of one that was."""
        reply = await self._sent(call, asker)
        if reply.finish == "length" and (second := self._second(call, reply)) is not None:
            asker.draft.withdraw()
            try:
                reply = await self._sent(second, asker)
            except ContextOverflow as error:
                raise self._cut(second, reply) from error
        if reply.finish == "length" and (kept := standing(reply.text, call)) is not None:
            if not call.by_line:  # whoever reads lines counts those that are left out
                asker.record(Spent(unread_lines=1))
            if goes_round(reply.text, call):  # it would again
                self._keep(asker.key, replace(reply, text=kept))
            reply = replace(reply, text=kept, finish="stop")
        if reply.finish == "stop":
            return reply
        asker.draft.withdraw()
        if reply.finish == "length":
            raise self._cut(replace(call, max_tokens=2 * call.max_tokens), reply)
        raise AnswerWithheld(
            f"{self.transport.model}'s provider withheld the answer of the step {call.step!r}.",
            "Use another model for this text.",
        )

    def _second(self, call: Call, reply: Reply) -> Call | None:
        """What is asked after a cut answer: twice the room, or where it goes round another temperature; None where
        that brings nothing, or what came before stands."""
        if goes_round(reply.text, call):
            return call.again() if standing(reply.text, call) is None and call.differs_again else None
        longer = replace(call, max_tokens=2 * call.max_tokens)
        return longer if self.transport.room(longer) > self.transport.room(call) else None

    async def _sent(self, call: Call, asker: _Asker) -> Reply:
        """A reply, after as many tries as it takes."""
        retries = Retries(self.max_attempts, self.limits, self.clock)
        draft = asker.draft
        # Whoever has no limit does not count.
        most = call.most_tokens() if self.spend_budget.limited or self.limits.a_minute else 0
        while True:
            try:
                if self.gate is not None:
                    await self.gate()
                async with (
                    self.limits.slot(asker.priority, most + call.max_tokens) as start,
                    self.spend_budget.reserved(most, call.max_tokens, self.price) as bill,
                ):
                    began = self.clock.now()
                    self.busy.begin(began)
                    try:
                        answered = self._stored_reply(call, asker.key, draft)
                        reply = await (apart(answered) if self.compared and not draft.watched else answered)
                    finally:
                        self.busy.under_way -= 1
                    start.tokens = reply.input_tokens + reply.output_tokens
                    bill.used = reply.input_tokens, reply.output_tokens
                    self._enter(reply, began, asker.record)
            except Failure as failure:
                # A stream that broke off may do so again, however far it came: the next try comes whole.
                if draft.withdraw() or (failure.broken and not failure.adapted):
                    draft = Draft()
                    call = replace(call, whole=call.whole or not failure.timed_out)
                await retries.after(failure)
            else:
                await asyncio.sleep(0)  # the next call goes out, and what else has come is kept, before this is read
                return reply

    async def _stored_reply(self, call: Call, key: str, draft: Draft) -> Reply:
        """The reply to one try, in the cache where it is whole."""
        reply = await self.transport.send(call, draft.add if draft.watched else None)
        if reply.finish == "stop":
            self._keep(key, reply)
        return reply

    # --- ledger and cache --------------------------------------------------------------------------------------------

    def _keep(self, key: str, reply: Reply) -> None:
        if self.cache is not None:
            row = {"text": reply.text, "tokens": [reply.input_tokens, reply.output_tokens]}
            self.cache.put(key, json.dumps(row, ensure_ascii=False))

    def _enter(self, reply: Reply, began: float, record: Record) -> None:
        now = self.clock.now()
        record(replace(self._paid(reply), seconds=now - began, busy_seconds=self.busy.piece(now)))

    def _paid(self, reply: Reply) -> Spent:
        cost = self.price.cost(reply.input_tokens, reply.output_tokens) if self.price else None
        return Spent(1, reply.input_tokens, reply.output_tokens, cost_usd=cost)

    def _strike(self, asker: _Asker) -> None:
        """The answer that came cannot be read: nobody is to see it again."""
        asker.draft.withdraw()
        if self.cache is not None:
            self.cache.remove(asker.key)

    def _stored(self, key: str, call: Call) -> Reply | None:
        row = self.cache.get(key) if self.cache is not None else None
        if row is None:
            return None
        try:
            stored = json.loads(row)
            text = str(stored["text"])
        except (ValueError, KeyError, TypeError):
            return None  # not ours: asked again and replaced
        if not self.compared:  # nobody asks what it took
            return Reply(text, "stop", 0, 0)
        tokens = stored.get("tokens") or (call.tokens(), rough_tokens(text))  # earlier versions stored none
        return Reply(text, "stop", *tokens)

    def _cut(self, call: Call, reply: Reply) -> EngineError:
        if goes_round(reply.text, call):
            return AnswerTruncated(
                f"{self.transport.model} said the same again and again in the step {call.step!r}.",
                "Use another model, a higher TRELLIS_RETRY_TEMPERATURE, or a penalty of the server's on what is said "
                "again (TRELLIS_MODEL_OPTIONS).",
            )
        room = self.transport.room(call)
        raise_it = "Raise max_tokens (TRELLIS_MAX_TOKENS)"
        if room < call.max_tokens:
            raise_it = "The server allows no more: give it a longer context"
        return AnswerTruncated(
            f"{self.transport.model} was cut in the step {call.step!r}, also with {room} tokens.",
            f"{raise_it}, lower TRELLIS_CHUNK_TOKENS, or use a model that thinks less.",
        )


def _standing(read: Callable[[str], T], text: str) -> T:
    """The answer as read; one that is only doubtful stands, since the model was asked twice."""
    try:
        return read(text)
    except Doubtful as doubt:
        return cast("T", doubt.outputs)
