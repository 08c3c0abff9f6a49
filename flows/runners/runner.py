"""Runners: where the batches of an index run go (this process, processes beside it, Dask or Ray).

Whatever the runner, the same records come back: ids are content hashes, and batches are independent of each other.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Protocol

from flows.runners.channels import Channel
from flows.runners.jobs import EmbedJob, ExtractJob, Job, Outcome, Place
from flows.runtime import Runtime
from flows.settings import Settings
from prompts.engine.embedder import Floats
from prompts.extract import extractor
from storage.records import Chunk
from tasks.embed import embed
from tasks.extract import Extracts, extract
from tasks.step import step

Weights = Mapping[tuple[str, str], float]


class Runner(Protocol):
    """Does the batches of a run. What they cost is entered in the run's meter, wherever they ran."""

    async def at_once(self, local: int) -> int:
        """How many batches to begin before the first is done; `local` where they run in this process."""

    async def extract(self, chunks: Sequence[Chunk], weights: Weights) -> Extracts:
        """As `tasks.extract.extract`."""

    async def embed(self, texts: dict[str, str]) -> dict[str, Floats]:
        """As `tasks.embed.embed`."""


@asynccontextmanager
async def open_runner(runtime: Runtime) -> AsyncIterator[Runner]:
    """The runner that the settings name. Workers are started at the first batch and end with the block."""
    if runtime.settings.runner == "local":
        yield LocalRunner(runtime)
        return
    remote = RemoteRunner(runtime)
    try:
        yield remote
    finally:
        await remote.aclose()


class LocalRunner:
    """This process, with the models and the embedder of the run."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        settings = runtime.settings
        self._extractor = extractor(runtime.models, settings.gleanings, settings.tailoring, settings.claims)

    async def at_once(self, local: int) -> int:
        return local

    async def extract(self, chunks: Sequence[Chunk], weights: Weights) -> Extracts:
        return await extract(chunks, self._extractor, weights)

    async def embed(self, texts: dict[str, str]) -> dict[str, Floats]:
        return await embed(texts, self._runtime.embedder)


class RemoteRunner:
    """Workers behind a channel."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._opening = asyncio.Lock()
        self._channel: Channel | None = None
        self._settings = runtime.settings
        self._place = Place.of(runtime.settings)

    async def at_once(self, local: int) -> int:
        """Twice as many as there are workers: none waits for its next batch."""
        return 2 * (await self._open()).workers

    async def extract(self, chunks: Sequence[Chunk], weights: Weights) -> Extracts:
        documents = {chunk.document for chunk in chunks if chunk.kind == "triples"}
        needed = {key: weight for key, weight in weights.items() if key[0] in documents} if documents else {}
        channel = await self._open()
        outcome = await _extract_elsewhere(
            channel, ExtractJob(self._settings, self._place, tuple(chunks), needed), self._runtime
        )
        assert outcome.extracts is not None  # noqa: S101 -- what an ExtractJob gives
        return outcome.extracts

    async def embed(self, texts: dict[str, str]) -> dict[str, Floats]:
        outcome = await _embed_elsewhere(
            await self._open(), EmbedJob(self._settings, self._place, texts), self._runtime
        )
        assert outcome.vectors is not None  # noqa: S101 -- what an EmbedJob gives
        return dict(outcome.vectors)

    async def aclose(self) -> None:
        if self._channel is not None:
            await self._channel.aclose()

    async def _open(self) -> Channel:
        async with self._opening:
            if self._channel is None:
                self._channel = await asyncio.to_thread(_channel, self._runtime)
                self._settings = shared_out(self._settings, self._channel.workers, self._channel.machines)
            return self._channel


def shared_out(settings: Settings, workers: int, machines: int) -> Settings:
    """What each worker may do, so that all together keep the limits.

    Calls in flight are divided by workers; calls and tokens a minute by the machines, on each of which they are counted
    together (by workers where each process counts alone).
    """
    counters = machines if settings.limits == "machine" else workers
    share: dict[str, int | None] = {"concurrency": max(1, settings.concurrency // workers)}
    for name, limit in (("rpm", settings.rpm), ("tpm", settings.tpm)):
        share[name] = None if limit is None else max(1, limit // counters)
    return settings.model_copy(update=share)


def _channel(runtime: Runtime) -> Channel:
    settings = runtime.settings
    workers = settings.runner_workers or os.cpu_count() or 1
    if settings.runner == "dask":
        from flows.runners.channels import DaskChannel

        return DaskChannel.open(settings.runner_address, workers)
    if settings.runner == "ray":
        from flows.runners.channels import RayChannel

        return RayChannel.open(settings.runner_address, workers)
    from flows.runners.channels import ProcessChannel

    return ProcessChannel(workers)


@step("extract")
async def _extract_elsewhere(channel: Channel, job: ExtractJob, runtime: Runtime) -> Outcome:
    return await _done(channel, job, runtime)


@step("embed")
async def _embed_elsewhere(channel: Channel, job: EmbedJob, runtime: Runtime) -> Outcome:
    return await _done(channel, job, runtime)


async def _done(channel: Channel, job: Job, runtime: Runtime) -> Outcome:
    outcome = await channel.run(job)
    for name, model, spent in outcome.usage:
        runtime.models.meter.record(name, model, spent)
    if outcome.error is not None:
        raise outcome.error
    return outcome
