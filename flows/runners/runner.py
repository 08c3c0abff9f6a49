"""Runners: where the batches of an index run go (this process, processes beside it, Dask or Ray).

Whatever the runner, the same records come back: ids are content hashes, and batches are independent of each other.
"""

import asyncio
import os
import socket
import tempfile
import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from flows.runtime import Runtime, open_embedding, shared_budgets
from flows.settings import Settings
from prompts.engine.bridge import run_sync
from prompts.engine.embedders import Embedder, Floats
from prompts.engine.errors import EngineError
from prompts.engine.models import Models
from prompts.engine.spending import Meter, Spent
from prompts.extract import extractor
from storage.errors import SettingsError, StorageError, TrellisError
from storage.records import Chunk
from storage.side import SideStore
from tasks.embed import embed
from tasks.extract import Extracts, extract
from tasks.step import step

# Asked now and then: whether somebody still waits for the job.
Wanted = Callable[[], bool]

_ASKED_EVERY = 0.5  # seconds


@dataclass(frozen=True)
class Place:
    """The run's machine, and on it the file of its caches and the folder of its limits."""

    machine: str
    caches: Path
    limits: Path

    @classmethod
    def of(cls, settings: Settings) -> "Place":
        """The place of a run with these settings."""
        folder = (settings.cache_dir or settings.workspace).absolute()
        return cls(socket.gethostname(), folder / ("caches.sqlite" if settings.cache_dir else "side.sqlite"), folder)

    def here(self) -> "Place":
        """The same on the run's machine. Elsewhere a folder of the worker's own: SQLite is not for network drives."""
        if socket.gethostname() == self.machine:
            return self
        folder = Path(tempfile.gettempdir()) / f"trellis-worker-{os.getuid()}"
        folder.mkdir(mode=0o700, exist_ok=True)
        if folder.stat().st_uid != os.getuid():
            raise StorageError(folder, "it belongs to another user", "Set TMPDIR for the workers.")
        return Place(self.machine, folder / "caches.sqlite", folder)


@dataclass(frozen=True)
class ExtractJob:
    """Chunks to extract; `weights` of their triples, by document and line."""

    settings: Settings
    place: Place
    chunks: tuple[Chunk, ...]
    weights: Mapping[tuple[str, str], float]


@dataclass(frozen=True)
class EmbedJob:
    """Texts to embed, by hash."""

    settings: Settings
    place: Place
    texts: Mapping[str, str]


@dataclass(frozen=True)
class Outcome:
    """What a job gave (or the error that ended it), and what its calls cost: (step, model, totals)."""

    extracts: Extracts | None = None
    vectors: Mapping[str, Floats] | None = None
    error: TrellisError | EngineError | None = None
    usage: tuple[tuple[str, str, Spent], ...] = ()


Job = ExtractJob | EmbedJob


def run_job(job: Job, wanted: Wanted) -> Outcome:
    """Do the job in this process; where it is no longer wanted, its calls end and CancelledError is raised."""
    return run_sync(_while_wanted(job, wanted))


async def _while_wanted(job: Job, wanted: Wanted) -> Outcome:
    work = asyncio.ensure_future(_job_done(job))
    while not (await asyncio.wait((work,), timeout=_ASKED_EVERY))[0]:
        if not await asyncio.to_thread(wanted):
            work.cancel()
    return await work


async def _job_done(job: Job) -> Outcome:
    meter = Meter()
    try:
        opened = _WORKER.opened(job.settings, job.place)
        if isinstance(job, EmbedJob):
            vectors = await embed(dict(job.texts), opened.embedder.metered(meter))
            return Outcome(vectors=vectors, usage=tuple(meter.rows()))
        settings, metered = job.settings, opened.models.metered(meter)
        step = extractor(metered, settings.gleanings, settings.tailoring, settings.claims)
        extracts = await extract(job.chunks, step, job.weights)
        return Outcome(extracts=extracts, usage=tuple(meter.rows()))
    except (TrellisError, EngineError) as error:
        return Outcome(error=error, usage=tuple(meter.rows()))


@dataclass(frozen=True)
class _Opened:
    settings: Settings
    place: Place
    models: Models
    embedder: Embedder

    @classmethod
    def of(cls, settings: Settings, place: Place) -> "_Opened":
        settings.keep_secrets()
        here = place.here()
        caches = SideStore(here.caches)
        models = Models(
            settings.model_choices(),
            calls=settings.call_settings(),
            cache=caches.model_answers,
            rate_limiter_of=shared_budgets(settings, here.limits),
        ).instructed(settings.instructions)
        return cls(settings, place, models, open_embedding(settings, caches.embeddings))


class _Worker:
    """What this process has opened for the run that it works for."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last: _Opened | None = None

    def opened(self, settings: Settings, place: Place) -> _Opened:
        with self._lock:
            if self._last is None or (self._last.settings, self._last.place) != (settings, place):
                self._last = _Opened.of(settings, place)
            return self._last


_WORKER = _Worker()


Weights = Mapping[tuple[str, str], float]


# How often a job is begun again after the worker that had it has died.
RETRIES = 2


class RunnerFailed(TrellisError):
    """The workers did not do a job: they died, cannot be reached, or run another version."""

    def __init__(self, runner: str, problem: str) -> None:
        super().__init__(
            f"The runner {runner} failed: {problem}.",
            "Run again: what was answered is cached. If workers die, look at their memory; TRELLIS_RUNNER=local needs "
            "none.",
        )


class Channel(Protocol):
    """Workers that were started or joined, on so many machines. `aclose` ends what still runs."""

    workers: int
    machines: int

    async def run(self, job: Job) -> Outcome:
        """What the job gave; RunnerFailed where no worker could do it."""

    async def aclose(self) -> None: ...


def missing(runner: str, error: ImportError) -> SettingsError:
    """The error for a runner whose package is not installed."""
    return SettingsError("runner", runner, f"`pip install 'trellis-rag[{runner}]'` first ({error}), or runner local")


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
