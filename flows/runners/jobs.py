"""Jobs: what is sent to a worker, what it does there, and what comes back.

A job is plain values and can be pickled: the settings (with their secrets: they travel in no other way), the records to
work on, and which machine and files the run has. A worker process opens models and embedder once and keeps them.
"""

import asyncio
import os
import socket
import tempfile
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from flows.runtime import open_embedding, shared_budgets
from flows.settings import Settings
from prompts.engine.bridge import run_sync
from prompts.engine.embedder import Embedder, Floats
from prompts.engine.errors import EngineError
from prompts.engine.meter import Meter, Spent
from prompts.engine.models import Models
from prompts.extract import extractor
from storage.errors import StorageError, TrellisError
from storage.records import Chunk
from storage.side import SideStore
from tasks.embed import embed
from tasks.extract import Extracts, extract

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
    work = asyncio.ensure_future(_done(job))
    while not (await asyncio.wait((work,), timeout=_ASKED_EVERY))[0]:
        if not await asyncio.to_thread(wanted):
            work.cancel()
    return await work


async def _done(job: Job) -> Outcome:
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
            budget_of=shared_budgets(settings, here.limits),
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
