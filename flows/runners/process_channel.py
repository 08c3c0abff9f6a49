"""How do jobs run in processes of this machine, with nothing to install?"""

import asyncio
import atexit
import multiprocessing
import os
import threading
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.synchronize import Event

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # it ships no types

from flows.runners.channel import RETRIES, RunnerFailed
from flows.runners.jobs import Job, Outcome, run_job

_STOP: list[Event] = []


class ProcessChannel:
    """A pool of processes that ends with the run, also with one that is killed."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self.machines = 1
        # Forked, they would inherit threads and locks in any state.
        self._context = multiprocessing.get_context("spawn")
        self._stop = self._context.Event()
        self._pool = self._start()

    async def run(self, job: Job) -> Outcome:
        for _ in range(1 + RETRIES):
            pool = self._pool
            try:
                return await asyncio.wrap_future(pool.submit(_work, job))
            except BrokenProcessPool:
                if self._pool is pool:  # the first of those who wait on it makes the next
                    self._pool = self._start()
        raise RunnerFailed("processes", f"a worker process died {1 + RETRIES} times over one batch")

    async def aclose(self) -> None:
        self._stop.set()
        await asyncio.to_thread(self._pool.shutdown, wait=True, cancel_futures=True)

    def _start(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(self.workers, self._context, _begin, (self._stop,))


def _begin(stop: Event) -> None:
    _STOP[:] = [stop]
    threadpool_limits(1)  # each process is one share of the cores
    atexit.register(os._exit, 0)  # else DuckDB counts what it has left behind, on the person's terminal
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _work(job: Job) -> Outcome:
    return run_job(job, lambda: not _STOP[0].is_set())
