"""Runners: the batches of an index run are done in this process or by workers of a Dask cluster.

Both return the same records: ids are content hashes, and batches are independent.
"""

import os
import socket
import tempfile
import threading
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

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
from storage.system import private_folder
from storage.workspace_db import WorkspaceDatabase
from tasks.embed import embed
from tasks.extract import Extracts, extract
from tasks.retrying import PATIENT
from tasks.step import step

RETRIES = 2  # of a job whose worker has died
PATIENCE = 30  # seconds to wait for a cluster, and for a worker
Weights = Mapping[tuple[str, str], float]  # of triples by document and line


class RunnerFailed(TrellisError):
    """The workers of a cluster did not finish a job."""

    def __init__(self, problem: str) -> None:
        super().__init__(
            f"The Dask cluster failed: {problem}.",
            "Run again: what was answered is cached. If workers die, look at their memory; "
            "TRELLIS_RUNNER=local needs none.",
        )


# --- in the process of the run ---


class Runner:
    """Does the batches in the process of the run."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def at_once(self, local: int) -> int:
        """Return how many batches to work on at once: `local`, if this process does them."""
        return local

    async def extract(self, chunks: Sequence[Chunk], weights: Weights) -> Extracts:
        return await extract(chunks, self._runtime.extract, weights)

    async def embed(self, texts: dict[str, str]) -> dict[str, Floats]:
        return await embed(texts, self._runtime.embedder)


class DaskRunner(Runner):
    """Has workers of a cluster do the batches, and enters their costs in the meter of the run."""

    def __init__(self, runtime: Runtime, client: Any, workers: Sequence[str]) -> None:
        super().__init__(runtime)
        self._client = client  # `distributed.Client`, which has no types
        self._workers = len(workers)
        machines = {urlsplit(address).hostname for address in workers}
        self._settings = shared_out(runtime.settings, len(workers), len(machines))
        self._place = Place.of(runtime.settings)

    def at_once(self, local: int) -> int:
        return 2 * self._workers  # no worker waits for its next batch

    async def extract(self, chunks: Sequence[Chunk], weights: Weights) -> Extracts:
        documents = {chunk.document for chunk in chunks if chunk.kind == "triples"}
        needed = {key: weight for key, weight in weights.items() if key[0] in documents}
        job = Job(self._settings, self._place, chunks=tuple(chunks), weights=needed)
        done = await _extract_elsewhere(self, job)
        return done.extracts or Extracts((), ())

    async def embed(self, texts: dict[str, str]) -> dict[str, Floats]:
        job = Job(self._settings, self._place, texts=texts)
        return dict((await _embed_elsewhere(self, job)).vectors)

    async def do(self, job: "Job") -> "Outcome":
        """Have a worker do a job. Raises the errors of the job, and RunnerFailed."""
        from distributed import CancelledError, KilledWorker  # an extra
        from distributed.comm import CommClosedError
        from distributed.scheduler import NoValidWorkerError

        future = self._client.submit(run_job, job, pure=False, retries=RETRIES)
        try:
            outcome: Outcome = await future
        except KilledWorker as error:
            raise RunnerFailed("workers died again and again over one batch") from error
        except (NoValidWorkerError, CancelledError, CommClosedError) as error:
            raise RunnerFailed(f"it is gone, or has no worker left ({error})") from error
        finally:
            future.release()  # otherwise a job that nobody waits for might still begin
        for name, model, spent in outcome.usage:
            self._runtime.models.meter.record(name, model, spent)
        if outcome.error is not None:
            raise outcome.error
        return outcome


@asynccontextmanager
async def open_runner(runtime: Runtime) -> AsyncIterator[Runner]:
    """Give the runner of the settings; a cluster that it starts ends with the block.

    Raises RunnerFailed, SettingsError, UsageError.
    """
    settings = runtime.settings
    if settings.runner == "local":
        yield Runner(runtime)
        return
    if runtime.models.is_given("extract"):
        raise UsageError(
            "Dask's workers are other processes; this program's model stays here.",
            "Name the model by the settings (TRELLIS_LM), or use the runner `local`.",
        )
    try:  # an extra
        import dask
        from distributed import Client, LocalCluster
    except ImportError as error:
        expected = f"`pip install 'trellis-rag[dask]'` first ({error}), or runner local"
        raise SettingsError("runner", "dask", expected) from error
    count = settings.runner_workers or os.cpu_count() or 1
    patience = {"distributed.scheduler.no-workers-timeout": PATIENCE}
    async with AsyncExitStack() as held:
        try:
            with dask.config.set(patience):
                address: Any = settings.runner_address
                if address is None:
                    cluster = LocalCluster(
                        n_workers=count,
                        threads_per_worker=1,
                        dashboard_address=None,
                        asynchronous=True,
                    )
                    address = await held.enter_async_context(cluster)
                client = Client(address, timeout=PATIENCE, asynchronous=True, set_as_default=False)
                await held.enter_async_context(client)
            await client.wait_for_workers(1, timeout=PATIENCE)
        except (OSError, TimeoutError) as error:
            place = settings.runner_address or "this machine"
            words = str(error) or type(error).__name__
            raise RunnerFailed(f"no worker answers at {place} ({words})") from error
        yield DaskRunner(runtime, client, list(await client.nthreads()))


@step("extract", PATIENT, asks_model=True)
async def _extract_elsewhere(runner: DaskRunner, job: "Job") -> "Outcome":
    """Extract a batch of chunks on a worker; a chunk that fails becomes a dead letter."""
    return await runner.do(job)


@step("embed", PATIENT, asks_model=True)
async def _embed_elsewhere(runner: DaskRunner, job: "Job") -> "Outcome":
    """Embed a batch of texts on a worker."""
    return await runner.do(job)


def shared_out(settings: Settings, workers: int, machines: int) -> Settings:
    """Return the settings of one worker, with its share of the limits.

    Calls in flight are divided by the workers; calls and tokens a minute by the machines, each of
    which counts those of its workers together.
    """
    share: dict[str, int | None] = {"concurrency": max(1, settings.concurrency // workers)}
    for name, limit in (("rpm", settings.rpm), ("tpm", settings.tpm)):
        share[name] = None if limit is None else max(1, limit // machines)
    return settings.model_copy(update=share)


# --- in a worker ---


@dataclass(frozen=True)
class Place:
    """The machine of a run, and there the file of its caches and the folder of its limits."""

    machine: str
    caches: Path
    limits: Path

    @classmethod
    def of(cls, settings: Settings) -> "Place":
        """Return the place of a run with these settings."""
        folder = (settings.cache_dir or settings.workspace).absolute()
        name = "caches.sqlite" if settings.cache_dir else "side.sqlite"
        return cls(socket.gethostname(), folder / name, folder)

    def here(self) -> "Place":
        """Return the place for this machine: elsewhere than on the run's own a folder of the
        worker's, since SQLite does not work on network drives.

        Raises StorageError where that is a link, or belongs to another user.
        """
        if socket.gethostname() == self.machine:
            return self
        folder = private_folder("trellis-worker")
        if folder is None:
            problem = "the folder trellis-worker in it is a link, a file, or another user's"
            raise StorageError(tempfile.gettempdir(), problem, "Set TMPDIR for the workers.")
        return Place(self.machine, folder / "caches.sqlite", folder)


@dataclass(frozen=True)
class Job:
    """A batch: chunks to extract with the weights of their triples, or texts to embed by hash."""

    settings: Settings
    place: Place
    chunks: tuple[Chunk, ...] = ()
    weights: Weights = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """The result of a job or the error that ended it, and the cost of its calls."""

    extracts: Extracts | None = None
    vectors: Mapping[str, Floats] = field(default_factory=dict)
    error: TrellisError | EngineError | None = None
    usage: tuple[tuple[str, str, Spent], ...] = ()


def run_job(job: Job) -> Outcome:
    """Do a job in a worker."""
    return run_sync(_do(job))


async def _do(job: Job) -> Outcome:
    meter, settings, outcome = Meter(), job.settings, Outcome()
    try:
        models, embedder = _opened(settings, job.place)
        if job.texts:
            vectors = await embed(dict(job.texts), embedder.metered(meter))
            outcome = Outcome(vectors=vectors)
        else:
            metered, tailoring = models.metered(meter), settings.tailoring
            reader = extractor(
                metered, settings.gleanings, tailoring, settings.claims, settings.graph_schema
            )
            with models.without_history():
                outcome = Outcome(extracts=await extract(job.chunks, reader, job.weights))
    except (TrellisError, EngineError) as error:
        outcome = Outcome(error=error)
    return replace(outcome, usage=tuple(meter.rows()))


_LOCK = threading.Lock()
_LAST: list[tuple[Settings, Place, tuple[Models, Embedder]]] = []


def _opened(settings: Settings, place: Place) -> tuple[Models, Embedder]:
    """Return the models and the embedder of a run; the worker keeps those of the last run open."""
    with _LOCK:
        if not _LAST or _LAST[0][:2] != (settings, place):
            settings.keep_secrets()
            own = place.here()
            caches = WorkspaceDatabase(own.caches)
            models = open_models(settings, caches, own.limits)
            embedder = open_embedding(settings, caches.embeddings)
            _LAST[:] = [(settings, place, (models, embedder))]
        return _LAST[0][2]
