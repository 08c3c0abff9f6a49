"""How does one call become an answer that can be relied on?

Cache, then one flight for equal calls, then admission, tries with backoff, twice the room for a cut answer, and one
repair of an answer that cannot be read. Only an answer that was read is cached. All that was paid for is entered in the
ledger.
"""

import json
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import replace
from typing import Protocol, TypeVar

from prompts.engine.calls import Call, Reply, Transport
from prompts.engine.clock import Clock
from prompts.engine.errors import AnswerMalformed, AnswerTruncated, AnswerWithheld, ContextOverflow, EngineError
from prompts.engine.faults import Failure
from prompts.engine.flights import Flights
from prompts.engine.limits import Limits
from prompts.engine.messages import NotAsAsked, repair
from prompts.engine.meter import Spent
from prompts.engine.prices import Price

T = TypeVar("T")
Record = Callable[[Spent], None]

LONGEST_WAIT = 60.0  # seconds
_FIRST_WAIT = 0.5
_USUAL_ANSWER = 256  # tokens, before any answer has come


class AnswerCache(Protocol):
    """Answers by the key of their call; both are plain text."""

    def get(self, key: str) -> str | None: ...

    def put(self, key: str, answer: str) -> None: ...


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
        self._flights = Flights()
        self._usual = float(_USUAL_ANSWER)

    async def ask(self, call: Call, read: Callable[[str], T], priority: int, record: Record) -> T:
        """The answer as `read` makes it (NotAsAsked from it: out of form); EngineError where there is none."""
        key = call.key(self.transport.address, self.transport.model)
        started = self.clock.now()
        stored = self._stored(key)
        if stored is not None:
            try:
                made = read(stored)
            except NotAsAsked:
                pass  # stored by a version that read otherwise: ask again
            else:
                record(Spent(cached_calls=1, seconds=self.clock.now() - started))
                return made
        first: list[T] = []

        async def work() -> str:
            text, value = await self._answer(call, read, priority, record)
            first.append(value)
            if self.cache is not None:
                self.cache.put(key, json.dumps({"text": text}, ensure_ascii=False))
            return text

        text, led = await self._flights.join(key, work)
        if not led:
            record(Spent(cached_calls=1, seconds=self.clock.now() - started))
        return first[0] if first else read(text)

    async def stream(
        self, call: Call, read: Callable[[str], T], priority: int, record: Record
    ) -> AsyncGenerator[str | T]:
        """Pieces of the answer's text as they come, at last the answer as read.

        A failure is tried again only before the first piece; what was shown is not taken back: an answer that cannot be
        read then is an error. A cached answer comes as one piece.
        """
        key = call.key(self.transport.address, self.transport.model)
        stored = self._stored(key)
        if stored is not None:
            record(Spent(cached_calls=1))
            yield stored
            yield read(stored)
            return
        reply: Reply | None = None
        async with aclosing(self._streamed(call, priority, record)) as pieces:
            async for piece in pieces:
                if isinstance(piece, Reply):
                    reply = piece
                else:
                    yield piece
        if reply is None or reply.finish != "stop":
            raise self._cut(call) if reply is None or reply.finish == "length" else self._withheld(call)
        try:
            made = read(reply.text)
        except NotAsAsked as problem:
            raise self._malformed(call, problem) from problem
        if self.cache is not None:
            self.cache.put(key, json.dumps({"text": reply.text}, ensure_ascii=False))
        yield made

    # --- one answer --------------------------------------------------------------------------------------------------

    async def _answer(self, call: Call, read: Callable[[str], T], priority: int, record: Record) -> tuple[str, T]:
        reply = await self._whole(call, priority, record)
        try:
            return reply.text, read(reply.text)
        except NotAsAsked as problem:
            again = replace(call, messages=repair(call.messages, reply.text, str(problem)))
        reply = await self._whole(again, priority, record)
        try:
            return reply.text, read(reply.text)
        except NotAsAsked as problem:
            raise self._malformed(call, problem) from problem

    async def _whole(self, call: Call, priority: int, record: Record) -> Reply:
        """A reply that was not cut."""
        reply = await self._sent(call, priority, record)
        if reply.finish == "length":
            try:
                reply = await self._sent(call.doubled(), priority, record)
            except ContextOverflow as error:
                raise self._cut(call) from error
        if reply.finish == "length":
            raise self._cut(call)
        if reply.finish == "withheld":
            raise self._withheld(call)
        return reply

    async def _sent(self, call: Call, priority: int, record: Record) -> Reply:
        """A reply, after as many tries as it takes."""
        for attempt in range(1, self.max_attempts + 1):
            try:
                async with self.limits.slot(priority, self._expected(call)) as start:
                    began = self.clock.now()
                    reply = await self.transport.send(call)
                    start.tokens = reply.input_tokens + reply.output_tokens
                    self._enter(reply, self.clock.now() - began, record)
                    return reply
            except Failure as failure:
                await self._wait_or_raise(failure, attempt)
        raise AssertionError("the last attempt returns or raises")

    async def _streamed(self, call: Call, priority: int, record: Record) -> AsyncGenerator[str | Reply]:
        for attempt in range(1, self.max_attempts + 1):
            shown = False
            try:
                async with self.limits.slot(priority, self._expected(call)) as start:
                    began = self.clock.now()
                    async with aclosing(self.transport.stream(call)) as pieces:
                        async for piece in pieces:
                            if isinstance(piece, Reply):
                                start.tokens = piece.input_tokens + piece.output_tokens
                                self._enter(piece, self.clock.now() - began, record)
                            shown = True
                            yield piece
                    return
            except Failure as failure:
                if shown:
                    raise failure.error from failure
                await self._wait_or_raise(failure, attempt)

    async def _wait_or_raise(self, failure: Failure, attempt: int) -> None:
        if not failure.retryable:
            raise failure.error from failure
        if attempt == self.max_attempts:
            error = failure.error
            raise type(error)(f"{error.message} (after {attempt} attempts)", error.remedy) from failure
        if failure.wait is not None:
            # All calls wait that long: they would be refused as well.
            self.limits.pause(min(failure.wait, LONGEST_WAIT))
        await self.clock.sleep(self._backoff(attempt, failure.wait))

    def _backoff(self, attempt: int, asked: float | None) -> float:
        """Seconds: what the server asks for and a tenth more by chance, else doubling with jitter; a minute at most."""
        if asked is not None:
            return min(LONGEST_WAIT, asked * (1 + 0.1 * self.clock.chance()))
        return min(LONGEST_WAIT, _FIRST_WAIT * 2.0 ** (attempt - 1)) * (0.5 + 0.5 * self.clock.chance())

    # --- ledger and cache --------------------------------------------------------------------------------------------

    def _expected(self, call: Call) -> int:
        return call.tokens() + int(self._usual)

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
