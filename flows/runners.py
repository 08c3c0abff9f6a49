"""Runners: where the batches of an index run go (this process, processes beside it, a Dask cluster).

Whatever the runner, the same records come back: ids are content hashes, and batches are independent of each other.
"""

import asyncio
import atexit
import multiprocessing
import os
import socket
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # it ships no types

from flows.runtime import Runtime, open_embedding, open_models
from flows.settings import Settings
from prompts.engine.bridge import run_sync
from prompts.engine.embedders import Embedder, Floats
from prompts.engine.errors import EngineError
from prompts.engine.models import Models
from prompts.engine.spending import Meter, Spent
from prompts.extract import extractor
from storage.errors import SettingsError, StorageError, TrellisError, UsageError
from storage.records import Chunk
from storage.workspace_db import WorkspaceDatabase
from tasks.embed import embed
from tasks.extract import Extracts, extract
from tasks.step import PATIENT, step

RETRIES = 2  # how often a job is begun again after the worker that had it has died
Weights = Mapping[tuple[str, str], float]  # of triples, by document and line


class RunnerFailed(TrellisError):
    """The workers did not do a job: they died, cannot be reached, or run another version."""

    def __init__(self, runner: str, problem: str) -> None:
        super().__init__(
            f"The runner {runner} failed: {problem}.",
            "Run again: what was answered is cached. If workers die, look at their memory; TRELLIS_RUNNER=local needs "
            "none.",
        )


# --- in the run's process -------------------------------------------------------------------------------------------


class Runner:
    """Does the batches of a run, here or on the workers of a channel. What they cost is entered in the run's meter.

    Workers are started at the first batch and end with the block that the runner is entered for.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._opening = asyncio.Lock()
        self._channel: Channel | None = None
        self._job = Job(runtime.settings, Place.of(runtime.settings))
        self._is_local = runtime.settings.runner == "local"
        if not self._is_local and runtime.models.is_given("extract"):
            raise UsageError(
                f"The runner {runtime.settings.runner!r} works in other processes; this program's model stays here.",
                "Name the model by the settings (TRELLIS_LM), or use the runner `local`.",
            )

    async def at_once(self, local: int) -> int:
        """How many batches to begin before the first is done; `local` where they run in this process, else twice as
        many as there are workers: none waits for its next batch."""
        return local if self._is_local else 2 * (await self._open()).workers

    async def extract(self, chunks: Sequence[Chunk], weights: Weights) -> Extracts:
        """As `tasks.extract.extract`."""
        if self._is_local:
            return await extract(chunks, self._runtime.extract, weights)
        documents = {chunk.document for chunk in chunks if chunk.kind == "triples"}
        needed = {key: weight for key, weight in weights.items() if key[0] in documents} if documents else {}
        done = await _extract_elsewhere(self, tuple(chunks), needed)
        assert done.extracts is not None  # noqa: S101 -- what a job with chunks gives
        return done.extracts

    async def embed(self, texts: dict[str, str]) -> dict[str, Floats]:
        """As `tasks.embed.embed`."""
        if self._is_local:
            return await embed(texts, self._runtime.embedder)
        return dict((await _embed_elsewhere(self, texts)).vectors)

    async def __aenter__(self) -> "Runner":
        return self

    async def __aexit__(self, *ended: object) -> None:
        if self._channel is not None:
            await asyncio.to_thread(self._channel.close)

    async def elsewhere(
        self, chunks: tuple[Chunk, ...] = (), weights: Weights | None = None, texts: Mapping[str, str] | None = None
    ) -> "Outcome":
        """What a worker gives for chunks to extract, or for texts to embed. Raises its errors, and RunnerFailed."""
        channel = await self._open()
        outcome = await channel.run(replace(self._job, chunks=chunks, weights=weights or {}, texts=texts or {}))
        for name, model, spent in outcome.usage:
            self._runtime.models.meter.record(name, model, spent)
        if outcome.error is not None:
            raise outcome.error
        return outcome

    async def _open(self) -> "Channel":
        async with self._opening:
            if self._channel is None:
                self._channel = await asyncio.to_thread(_channel, self._runtime.settings)
                shared = shared_out(self._job.settings, self._channel.workers, self._channel.machines)
                self._job = replace(self._job, settings=shared)
            return self._channel


@step("extract", PATIENT, asks_model=True)
async def _extract_elsewhere(runner: Runner, chunks: tuple[Chunk, ...], weights: Weights) -> "Outcome":
    """Extract a batch of chunks on a worker; a chunk that fails becomes a dead letter."""
    return await runner.elsewhere(chunks=chunks, weights=weights)


@step("embed", PATIENT, asks_model=True)
async def _embed_elsewhere(runner: Runner, texts: Mapping[str, str]) -> "Outcome":
    """Embed a batch of texts on a worker."""
    return await runner.elsewhere(texts=texts)


def shared_out(settings: Settings, workers: int, machines: int) -> Settings:
    """What each worker may do, so that all together keep the limits.

    Calls in flight are divided by workers; calls and tokens a minute by the machines, on each of which they are counted
    together.
    """
    share: dict[str, int | None] = {"concurrency": max(1, settings.concurrency // workers)}
    for name, limit in (("rpm", settings.rpm), ("tpm", settings.tpm)):
        share[name] = None if limit is None else max(1, limit // machines)
    return settings.model_copy(update=share)


def _channel(settings: Settings) -> "Channel":
    workers = settings.runner_workers or os.cpu_count() or 1
    return DaskChannel(settings.runner_address, workers) if settings.runner == "dask" else ProcessChannel(workers)


# --- in a worker ----------------------------------------------------------------------------------------------------


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
class Job:
    """One batch: chunks to extract with the weights of their triples, or texts to embed by hash."""

    settings: Settings
    place: Place
    chunks: tuple[Chunk, ...] = ()
    weights: Weights = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """What a job gave (or the error that ended it), and what its calls cost: (step, model, totals)."""

    extracts: Extracts | None = None
    vectors: Mapping[str, Floats] = field(default_factory=dict)
    error: TrellisError | EngineError | None = None
    usage: tuple[tuple[str, str, Spent], ...] = ()


def run_job(job: Job) -> Outcome:
    """Do the job in this process."""
    return run_sync(_job_done(job))


async def _job_done(job: Job) -> Outcome:
    meter, settings = Meter(), job.settings
    outcome = Outcome()
    try:
        models, embedder = _opened(settings, job.place)
        if job.texts:
            outcome = Outcome(vectors=await embed(dict(job.texts), embedder.metered(meter)))
        else:
            reader = extractor(models.metered(meter), settings.gleanings, settings.tailoring, settings.claims)
            with models.without_history():
                outcome = Outcome(extracts=await extract(job.chunks, reader, job.weights))
    except (TrellisError, EngineError) as error:
        outcome = Outcome(error=error)
    return replace(outcome, usage=tuple(meter.rows()))


_LOCK = threading.Lock()
_LAST: list[tuple[Settings, Place, tuple[Models, Embedder]]] = []


def _opened(settings: Settings, place: Place) -> tuple[Models, Embedder]:
    """The models and the embedder of the run that this process works for, opened once."""
    with _LOCK:
        if not _LAST or _LAST[0][:2] != (settings, place):
            settings.keep_secrets()
            local_place = place.here()
            caches = WorkspaceDatabase(local_place.caches)
            models = open_models(settings, caches, local_place.limits)
            _LAST[:] = [(settings, place, (models, open_embedding(settings, caches.embeddings)))]
        return _LAST[0][2]


# --- channels ---------------------------------------------------------------------------------------------------------


SILENCE = 120  # seconds without a sign of life, after which a process counts as lost: it is stopped, or stuck


class ProcessChannel:
    """A pool of processes that ends with the run, also with one that is killed; one that is lost is killed."""

    def __init__(self, workers: int, silence: int = SILENCE) -> None:
        self.workers = workers
        self.machines = 1
        # Forked, they would inherit threads and locks in any state.
        context = multiprocessing.get_context("spawn")
        open_while_wanted, self._wanted = context.Pipe(duplex=False)
        alive, beats = context.Pipe(duplex=False)
        self._start = partial(ProcessPoolExecutor, workers, context, _begin, (open_while_wanted, beats))
        self._pool = self._start()
        self._closed = threading.Event()
        threading.Thread(target=self._watch, args=(alive, silence), daemon=True).start()

    async def run(self, job: Job) -> Outcome:
        for _ in range(1 + RETRIES):
            pool = self._pool
            try:
                return await asyncio.wrap_future(pool.submit(run_job, job))
            except BrokenProcessPool:
                if self._pool is pool:  # the first of those who wait on it makes the next
                    self._pool = self._start()
        raise RunnerFailed("processes", f"a worker process died {1 + RETRIES} times over one batch")

    def close(self) -> None:
        self._wanted.close()
        self._pool.shutdown(wait=True, cancel_futures=True)
        self._closed.set()

    def _watch(self, alive: Connection, silence: int) -> None:
        """Kill what has been silent for so many looks: seconds by the clock also pass where all processes stand."""
        looks: dict[int, int] = {}
        known: dict[int, BaseProcess] = {}  # also of a pool that was given up: it waits for all of its processes
        while not self._closed.wait(1.0):
            known |= self._pool._processes or {}  # noqa: SLF001 -- others of the program's processes are not ours
            known = {pid: process for pid, process in known.items() if process.is_alive()}
            looks = {pid: looks.get(pid, 0) + 1 for pid in known}
            while alive.poll():
                looks[int(alive.recv_bytes())] = 0
            for pid, process in known.items():
                if looks[pid] > silence:
                    process.kill()


def _begin(open_while_wanted: Connection, beats: Connection) -> None:
    threadpool_limits(1)  # each process is one share of the cores
    atexit.register(os._exit, 0)  # else DuckDB counts what it has left behind, on the person's terminal
    threading.Thread(target=_end_with, args=(open_while_wanted,), daemon=True).start()
    threading.Thread(target=_beat, args=(beats,), daemon=True).start()


def _beat(beats: Connection) -> None:
    """Give a sign of life every second; the other end is closed only with the owner."""
    with suppress(OSError):
        while True:
            beats.send_bytes(b"%d" % os.getpid())
            time.sleep(1.0)


def _end_with(open_while_wanted: Connection) -> None:
    """End this process, whatever it does, when the other end is closed: by its owner, or with it."""
    with suppress(EOFError):
        open_while_wanted.recv()
    os._exit(1)


PATIENCE = 30.0  # seconds for a cluster to answer


class DaskChannel:
    """A client of a cluster. What it started ends with it; a cluster that was joined finishes the batches that it has
    begun, and no others. One that has no worker for so many seconds of `silence`, or is gone, ends the run."""

    def __init__(self, address: str | None, workers: int, silence: int = SILENCE, patience: float = PATIENCE) -> None:
        """Join the cluster at the address, or start so many workers on this machine. Blocks for some seconds, at most
        for twice `patience`."""
        try:
            import dask
            from distributed import Client, LocalCluster
        except ImportError as error:
            expected = f"`pip install 'trellis-rag[dask]'` first ({error}), or runner local"
            raise SettingsError("runner", "dask", expected) from error
        self._cluster: Any = None  # nothing of it is typed by its package
        if address is None:
            # Dask has workers return memory at once, which makes embedding cost half as much processor time again.
            threads = {f"{library}_NUM_THREADS": 1 for library in ("OMP", "MKL", "OPENBLAS")}
            with dask.config.set({"distributed.nanny.pre-spawn-environ": threads}):
                self._cluster = LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None)
        joining: Future[Any] = Future()

        def join() -> None:
            try:
                client = Client(self._cluster or address, timeout=patience, set_as_default=False)
                client.wait_for_workers(1, timeout=patience)
                joining.set_result((client, client.scheduler_info(n_workers=-1)["workers"].values()))
            except BaseException as error:  # noqa: BLE001 -- told by who waits
                joining.set_exception(error)

        # The client's own limits do not hold where a scheduler listens and is stopped: then its thread is given up.
        threading.Thread(target=join, daemon=True).start()
        try:
            self._client, joined = joining.result(2 * patience)
        except (OSError, TimeoutError) as error:
            if self._cluster is not None:
                self._cluster.close()
            words = str(error) or f"nothing within {2 * patience:g} s"
            raise RunnerFailed("dask", f"no worker answers at {address or 'this machine'} ({words})") from error
        if self._cluster is not None:
            # else DuckDB counts what it has left behind, on the terminal
            self._client.run(atexit.register, os._exit, 0)
        self.workers, self.machines = len(joined), len({worker["host"] for worker in joined})
        self._pool: Any = self._client.get_executor(pure=False, retries=RETRIES)
        self._silence = silence
        self._seen = time.monotonic()  # when the cluster last had a worker
        self._closed = threading.Event()
        threading.Thread(target=self._watch, daemon=True).start()

    async def run(self, job: Job) -> Outcome:
        from distributed import KilledWorker

        future = asyncio.wrap_future(self._pool.submit(run_job, job))
        try:
            while not (await asyncio.wait([future], timeout=1.0))[0]:
                if time.monotonic() - self._seen > self._silence:
                    raise RunnerFailed("dask", f"the cluster has had no worker for {self._silence} s")
            if future.cancelled():
                raise RunnerFailed("dask", "the cluster has gone")
            outcome: Outcome = future.result()
        except KilledWorker as error:
            raise RunnerFailed("dask", "workers died again and again over one batch") from error
        finally:
            future.cancel()
        return outcome

    def _watch(self) -> None:
        while not self._closed.wait(1.0):
            with suppress(Exception):  # who does not answer has no worker either
                if self._client.scheduler_info(n_workers=0)["n_workers"]:
                    self._seen = time.monotonic()

    def close(self) -> None:
        self._closed.set()
        self._client.close()
        if self._cluster is not None:
            self._cluster.close()


# Workers that were started or joined, on so many machines; `close` blocks until nothing of it runs.
Channel = ProcessChannel | DaskChannel
