"""How does one call become an answer that can be relied on?

Cache, then one flight for equal calls, then admission, tries with backoff, twice the room for a cut answer, and one
repair of an answer that cannot be read. A whole answer is written into the cache, and committed, in the step of the
event loop in which it is received: before anything else is done with it, and before its slot goes to another call. One
that cannot be read is struck out again. All that was paid for is entered in the ledger.

So a killed process loses no more answers than it had calls under way (`concurrency` for each server): those that the
server had sent and the process had not read, and those that the loop has just read in the same round.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, aclosing
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar, cast

from prompts.engine.calls import Call, Reply, Transport
from prompts.engine.clock import Clock
from prompts.engine.drafts import Draft, Show, Withdrawn
from prompts.engine.errors import AnswerMalformed, AnswerTruncated, AnswerWithheld, ContextOverflow, EngineError
from prompts.engine.faults import Failure
from prompts.engine.flights import Flights
from prompts.engine.limits import Limits
from prompts.engine.messages import Doubtful, NotAsAsked, repair
from prompts.engine.meter import Spent
from prompts.engine.prices import Price
from prompts.engine.purse import Bill, Purse
from prompts.engine.tries import Tries
from prompts.engine.turns import Turns

T = TypeVar("T")
Record = Callable[[Spent], None]

_USUAL_ANSWER = 256  # tokens, before any answer has come


class AnswerCache(Protocol):
    """Answers by the key of their call; both are plain text."""

    def get(self, key: str) -> str | None: ...

    def put(self, key: str, answer: str) -> None: ...

    def remove(self, key: str) -> None: ...


@dataclass(frozen=True, slots=True)
class _Asker:
    """How urgent a call is, where it is entered, who watches the answer being written, and the key it is kept under."""

    key: str
    priority: int
    record: Record
    draft: Draft


class Client:
    """One model on one server."""

    def __init__(
        self,
        transport: Transport,
        limits: Limits,
        *,
        cache: AnswerCache | None = None,
        price: Price | None = None,
        max_attempts: int = 6,
        clock: Clock | None = None,
    ) -> None:
        self.transport = transport
        self.limits = limits
        self.cache = cache
        self.price = price
        self.max_attempts = max_attempts
        self.clock = clock or Clock()
        self.purse = Purse()
        self._flights = Flights()
        self._turns = Turns()
        self._usual = float(_USUAL_ANSWER)

    async def ask(
        self, call: Call, read: Callable[[str], T], priority: int, record: Record, show: Show | None = None
    ) -> T:
        """The answer as `read` makes it (NotAsAsked from it: out of form); EngineError where there is none.

        `show` gets the answer's text in pieces while it is written, and Withdrawn where another takes its place; an
        answer that was there already, or that another caller asked for, comes as one piece.
        """
        key = call.key(self.transport.address, self.transport.model)
        draft = Draft(show)
        started = self.clock.now()
        stored = self._stored(key)
        if stored is not None:
            try:
                made = _standing(read, stored)
            except NotAsAsked:
                pass  # stored by a version that read otherwise: ask again
            else:
                draft.add(stored)
                record(Spent(cached_calls=1, seconds=self.clock.now() - started))
                return made
        first: list[T] = []

        async def work() -> str:
            text, value = await self._answer(call, read, _Asker(key, priority, record, draft))
            first.append(value)
            return text

        text, led = await self._flights.join(key, work)
        if not led:
            draft.add(text)
            record(Spent(cached_calls=1, seconds=self.clock.now() - started))
        return first[0] if first else _standing(read, text)

    async def stream(
        self, call: Call, read: Callable[[str], T], priority: int, record: Record
    ) -> AsyncGenerator[str | Withdrawn | T]:
        """What `ask` shows, as it comes; at last the answer as read."""
        shown: asyncio.Queue[str | Withdrawn | None] = asyncio.Queue()
        asking = asyncio.create_task(self.ask(call, read, priority, record, shown.put_nowait))
        asking.add_done_callback(lambda _: shown.put_nowait(None))
        try:
            while (piece := await shown.get()) is not None:
                yield piece
            yield await asking
        finally:
            asking.cancel()
            await asyncio.wait([asking])

    # --- one answer --------------------------------------------------------------------------------------------------

    async def _answer(self, call: Call, read: Callable[[str], T], asker: _Asker) -> tuple[str, T]:
        reply = await self._whole(call, asker)
        try:
            return reply.text, read(reply.text)
        except NotAsAsked as problem:
            self._strike(asker)
            again = replace(call, messages=repair(call.messages, reply.text, str(problem)))
        reply = await self._whole(again, asker)
        try:
            return reply.text, _standing(read, reply.text)
        except NotAsAsked as problem:
            self._strike(asker)
            raise self._malformed(call, problem) from problem

    async def _whole(self, call: Call, asker: _Asker) -> Reply:
        """A reply that was not cut."""
        reply = await self._sent(call, asker)
        if reply.finish == "length":
            asker.draft.withdraw()
            try:
                reply = await self._sent(call.doubled(), asker)
            except ContextOverflow as error:
                raise self._cut(call) from error
        if reply.finish == "stop":
            return reply
        asker.draft.withdraw()
        raise self._cut(call) if reply.finish == "length" else self._withheld(call)

    async def _sent(self, call: Call, asker: _Asker) -> Reply:
        """A reply, after as many tries as it takes."""
        tries = Tries(self.max_attempts, self.limits, self.clock)
        draft = asker.draft
        while True:
            try:
                async with self.limits.slot(asker.priority, self._expected(call)) as start, self._paid(call) as bill:
                    began = self.clock.now()
                    reply = await self._received(call, draft)
                    self._keep(asker.key, reply)
                    start.tokens = reply.input_tokens + reply.output_tokens
                    bill.used = reply.input_tokens, reply.output_tokens
                    self._enter(reply, self.clock.now() - began, asker.record)
            except Failure as failure:
                if draft.withdraw():
                    draft = Draft()  # a stream that breaks off may do so again: the next try comes whole
                await tries.after(failure)
            else:
                # The next call goes out, and what else has come is kept, before this answer is read.
                await self._turns.next()
                return reply

    async def _received(self, call: Call, draft: Draft) -> Reply:
        """One reply, piece by piece where somebody watches."""
        if not draft.watched:
            return await self.transport.send(call)
        async with aclosing(self.transport.stream(call)) as pieces:
            async for piece in pieces:
                if isinstance(piece, Reply):
                    return piece
                draft.add(piece)
        raise AssertionError("a stream ends with its reply")

    # --- ledger and cache --------------------------------------------------------------------------------------------

    def _expected(self, call: Call) -> int:
        return call.tokens() + int(self._usual)

    def _paid(self, call: Call) -> AbstractAsyncContextManager[Bill]:
        """Of the budget, if there is one: whoever has none does not count."""
        most = call.most_tokens() if self.purse.limited else 0
        return self.purse.spending(most, call.max_tokens, self.price)

    def _enter(self, reply: Reply, seconds: float, record: Record) -> None:
        self._usual += (reply.output_tokens - self._usual) / 16
        cost = self.price.cost(reply.input_tokens, reply.output_tokens) if self.price else None
        record(
            Spent(
                calls=1,
                input_tokens=reply.input_tokens,
                output_tokens=reply.output_tokens,
                cost_usd=cost,
                seconds=seconds,
            )
        )

    def _keep(self, key: str, reply: Reply) -> None:
        if self.cache is not None and reply.finish == "stop":
            self.cache.put(key, json.dumps({"text": reply.text}, ensure_ascii=False))

    def _strike(self, asker: _Asker) -> None:
        """The answer that came cannot be read: nobody is to see it again."""
        asker.draft.withdraw()
        if self.cache is not None:
            self.cache.remove(asker.key)

    def _stored(self, key: str) -> str | None:
        found = self.cache.get(key) if self.cache is not None else None
        if found is None:
            return None
        try:
            return str(json.loads(found)["text"])
        except (ValueError, KeyError, TypeError):
            return None  # not ours: asked again and replaced

    # --- errors ------------------------------------------------------------------------------------------------------

    def _cut(self, call: Call) -> EngineError:
        return AnswerTruncated(
            f"{self.transport.model} was cut in the step {call.step!r}, also with {2 * call.max_tokens} tokens.",
            "Raise max_tokens (TRELLIS_MAX_TOKENS), lower TRELLIS_CHUNK_TOKENS, or use a model that thinks less.",
        )

    def _withheld(self, call: Call) -> EngineError:
        return AnswerWithheld(
            f"{self.transport.model}'s provider withheld the answer of the step {call.step!r}.",
            "Use another model for this text.",
        )

    def _malformed(self, call: Call, problem: NotAsAsked) -> EngineError:
        return AnswerMalformed(
            f"{self.transport.model} gave no valid answer for the step {call.step!r}: {problem}",
            "Give this role a model that follows the form, or a server with structured output.",
        )


def _standing(read: Callable[[str], T], text: str) -> T:
    """The answer as read; one that is only doubtful stands, since the model was asked twice."""
    try:
        return read(text)
    except Doubtful as doubt:
        return cast("T", doubt.outputs)
