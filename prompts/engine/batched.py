"""Calls to a model in batches, which a provider answers within a day at half the price: for index runs alone.

DSPy's clients know the queues of OpenAI (its Responses API), Anthropic, Gemini and xAI. Calls that come close together
are one batch. Which batch holds a call is noted beside the cached answers as soon as the provider has taken it, so a
run after a kill waits for that batch instead of asking again. What a batch does not answer is asked by a plain call.
"""

import asyncio
import json
import logging
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol
from weakref import WeakKeyDictionary, WeakValueDictionary

from dspy import lm15

from prompts.engine.calls import Call, Reply
from prompts.engine.failures import Failure, refused, seconds_asked, unreachable
from prompts.engine.key_masking import mask_error, mask_keys
from prompts.engine.limits import Clock
from prompts.engine.lm import LmTransport
from prompts.engine.providers import Endpoint, ModelChoice

if TYPE_CHECKING:
    import dspy

logger = logging.getLogger(__name__)

IN_FLIGHT = 10_000  # calls that wait for batches at one time
MOST = 2_000  # calls of one batch: the reply to it is read into memory
PRICE = 0.5  # of a plain call's
_QUIET = 1.0  # seconds without a further call, after which a batch is sent
_POLL, _SLOWEST_POLL = 5.0, 60.0  # seconds between two looks at a batch
_DAY = 25 * 3600.0  # seconds; providers end a batch after 24 hours
_LARGE = 10  # times as long as the reply to one call: what a whole batch is sent and read in
_UNHEARD = 30  # looks in turn that fail, before the provider counts as unreachable
_NO_QUEUE = (404, 405)  # the status where a server knows no batches
_PROVIDERS = ("openai", "anthropic", "gemini", "xai")


Entries = Mapping[int, lm15.BatchEntry]  # by the place of the request in its batch


class Tickets(Protocol):
    """Where it is noted which batch holds a call; plain text by key."""

    def get(self, key: str) -> str | None: ...

    def put(self, key: str, answer: str) -> None: ...

    def remove(self, key: str) -> None: ...


class BatchTransport:
    """The way to a model through its provider's queue; `plain` makes the requests and reads the replies."""

    def __init__(
        self, plain: LmTransport, choice: ModelChoice, where: Endpoint | None, tickets: Tickets | None, clock: Clock,
        timeout: float,
    ) -> None:  # fmt: skip
        self.address, self.model = plain.address, plain.model
        self._plain = plain
        self._tickets = tickets
        self._clock = clock
        self._timeout = timeout
        prefix, _, name = choice.name.partition("/")
        self._provider = prefix if prefix in _PROVIDERS else "openai"
        self._name = where.model if where else name
        key, url = (where.key, where.url) if where else (choice.api_key, choice.base_url)
        self._router = lm15.RouterConfig(
            api_keys={self._provider: key} if key else None, base_urls={self._provider: url} if url else None,
            env=os.environ
        )  # fmt: skip
        self._queues: WeakKeyDictionary[asyncio.AbstractEventLoop, _Queue] = WeakKeyDictionary()
        self._offered = True

    @property
    def lm(self) -> "dspy.BaseLM":
        """The model as DSPy has it."""
        return self._plain.lm

    @property
    def defaults(self) -> Mapping[str, object]:
        """What a program has said of calls to this model: nothing."""
        return self._plain.defaults

    @property
    def structured(self) -> str:
        """How the server is held to a schema."""
        return self._plain.structured

    def room(self, call: Call) -> int:
        """The tokens that the answer to a call may have, as far as the server has told."""
        return self._plain.room(call)

    async def send(self, call: Call, show: Callable[[str], None] | None = None) -> Reply:
        """The reply, when the batch is done. Raises Failure."""
        if not self._offered:
            return await self._plain.send(call, show)
        request = replace(self._plain.request(call), model=self._name)
        try:
            entry = await self._queue().entry(f"batch {call.key(self.address, self.model)}", request)
        except lm15.LM15Error as error:
            if not isinstance(error, lm15.UnsupportedFeatureError) and error.status not in _NO_QUEUE:
                raise self._failure(error) from mask_error(error)
            if self._offered:
                logger.warning("%s at %s takes no batches: calls are sent one by one.", self.model, self.address)
            self._offered = False
            return await self._plain.send(call, show)
        if entry is None or entry.response is None:
            return await self._plain.send(call, show)
        return self._plain.reply(entry.response, call)

    async def aclose(self) -> None:
        """Close this event loop's connections; batches under way stay with the provider."""
        if (queue := self._queues.pop(asyncio.get_running_loop(), None)) is not None:
            await queue.aclose()
        await self._plain.aclose()

    def _queue(self) -> "_Queue":
        loop = asyncio.get_running_loop()
        if loop not in self._queues:
            router = lm15.AsyncLMRouter(self._router)
            model = f"{self._provider}:{self._name}"
            self._queues[loop] = _Queue(router, model, self._tickets, self._clock, self._timeout)
        return self._queues[loop]

    def _failure(self, error: lm15.LM15Error) -> Failure:
        words = " ".join(mask_keys(str(error.message).partition("\n\n")[0]).split())
        if isinstance(error, lm15.TransportError):
            return unreachable(self.model, self.address, words)
        after = None if error.retry_after is None else str(error.retry_after)
        failure = refused(self.model, self.address, error.status or 400, words, after)
        failure.wait = seconds_asked(after)
        return failure


class _Queue:
    """The batches of one event loop."""

    def __init__(
        self, router: lm15.AsyncLMRouter, model: str, tickets: Tickets | None, clock: Clock, timeout: float
    ) -> None:
        self._router = router
        self._lm = router.lm(model)
        self._tickets = tickets
        self._clock = clock
        self._timeout = timeout
        self._waiting: list[tuple[str, lm15.Request, asyncio.Future[tuple[str, int]]]] = []
        self._gathering: asyncio.Task[None] | None = None
        # Gone with the last call that waits for it: a reply may be large.
        self._results: WeakValueDictionary[str, asyncio.Task[Entries]] = WeakValueDictionary()

    async def entry(self, key: str, request: lm15.Request) -> lm15.BatchEntry | None:
        """What its batch gave for a request; None where it gave nothing."""
        noted = self._tickets.get(key) if self._tickets else None
        if noted is not None:
            try:
                batch, place = json.loads(noted)
                entries = await self._entries(str(batch))
            except (ValueError, lm15.ProviderError):
                logger.warning("A batch of an earlier run cannot be read; its calls are made again.")
            else:
                return self._taken(key, entries, int(place))
        future = asyncio.get_running_loop().create_future()
        self._waiting.append((key, request, future))
        if self._gathering is None:
            self._gathering = asyncio.create_task(self._gather())
        batch, place = await future
        return self._taken(key, await self._entries(batch), place)

    async def aclose(self) -> None:
        tasks = [*self._results.values(), *([self._gathering] if self._gathering else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._router.aclose()

    def _taken(self, key: str, entries: Entries, place: int) -> lm15.BatchEntry | None:
        if self._tickets:
            self._tickets.remove(key)  # whoever gets it stores it before anything else is done
        return entries.get(place)

    async def _gather(self) -> None:
        """Send what has come as a batch, when nothing more comes."""
        seen = -1
        while seen != len(self._waiting) and len(self._waiting) < MOST:
            seen = len(self._waiting)
            await self._clock.sleep(_QUIET)
        sent, self._waiting = self._waiting[:MOST], self._waiting[MOST:]
        self._gathering = asyncio.create_task(self._gather()) if self._waiting else None
        sent = [row for row in sent if not row[2].done()]  # who was cancelled waits no more
        if not sent:
            return
        try:
            async with self._within(_LARGE * self._timeout):
                info = await self._lm.batch_submit(lm15.BatchRequest(requests=tuple(request for _, request, _ in sent)))
        except Exception as error:  # noqa: BLE001 -- whoever waits is told
            for _, _, future in sent:
                if not future.done():
                    future.set_exception(error)
            return
        logger.info("A batch of %d calls was sent: %s", len(sent), info.id)
        for place, (key, _, future) in enumerate(sent):
            if self._tickets:
                self._tickets.put(key, json.dumps([info.id, place]))
            if not future.done():
                future.set_result((info.id, place))

    async def _entries(self, batch: str) -> Entries:
        """The entries of a batch, when it is done; whoever is cancelled leaves it to the others that wait."""
        results = self._results.get(batch)
        if results is None:
            results = self._results[batch] = asyncio.create_task(self._finished(batch))
        return await asyncio.shield(results)

    @asynccontextmanager
    async def _within(self, seconds: float) -> AsyncIterator[None]:
        """The client's own limits begin anew with each byte."""
        try:
            async with asyncio.timeout(seconds):
                yield
        except TimeoutError:
            raise lm15.TransportError(f"no reply within {seconds:g} s") from None

    async def _finished(self, batch: str) -> Entries:
        pause, failed, until = _POLL, 0, self._clock.now() + _DAY
        while True:
            try:
                async with self._within(self._timeout):
                    done = (await self._lm.batch_status(batch)).done
                if done:
                    async with self._within(_LARGE * self._timeout):
                        return {entry.index: entry for entry in await self._lm.batch_results(batch)}
                failed = 0
            except (lm15.TransportError, lm15.ServerError, lm15.RateLimitError):
                failed += 1
                if failed == _UNHEARD:
                    raise
            if self._clock.now() > until:
                raise lm15.TransportError(f"the batch {batch} is not done after {_DAY / 3600:g} hours")
            await self._clock.sleep(pause)
            pause = min(_SLOWEST_POLL, 1.5 * pause)
