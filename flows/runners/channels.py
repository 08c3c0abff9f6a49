"""Channels that bring jobs to workers: processes of this machine, Dask or Ray.

`distributed` is used as it is: an index run is recorded by Prefect or not, and the same code serves both.
"""

import asyncio
import atexit
import logging
import multiprocessing
import os
import threading
import uuid
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.synchronize import Event
from typing import Any

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # it ships no types

from flows.runners.runner import RETRIES, Job, Outcome, RunnerFailed, missing, run_job

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
                return await asyncio.wrap_future(pool.submit(_work_in_process, job))
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


def _work_in_process(job: Job) -> Outcome:
    return run_job(job, lambda: not _STOP[0].is_set())


PATIENCE = 30.0  # seconds for a cluster to answer


class DaskChannel:
    """A client of a cluster. What it started ends with it; of a cluster that was joined, only its own jobs end."""

    def __init__(self, client: Any, cluster: Any) -> None:
        from distributed import Event

        workers = client.scheduler_info(n_workers=-1)["workers"].values()
        self.workers = len(workers)
        self.machines = len({worker["host"] for worker in workers})
        self._client = client  # neither is typed by its package
        self._cluster = cluster
        self._stop = Event(f"trellis-stop-{uuid.uuid4().hex}", client=client)

    @classmethod
    def open(cls, address: str | None, workers: int) -> "DaskChannel":
        """Join the cluster at the address, or start so many workers on this machine. Blocks for some seconds."""
        try:
            import dask
            from distributed import Client, LocalCluster
        except ImportError as error:
            raise missing("dask", error) from error
        cluster = None
        if address is None:
            # Dask has workers return memory at once, which makes embedding cost half as much processor time again.
            threads = {f"{library}_NUM_THREADS": 1 for library in ("OMP", "MKL", "OPENBLAS")}
            with dask.config.set({"distributed.nanny.pre-spawn-environ": threads}):
                cluster = LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None)
        try:
            client = Client(cluster or address, timeout=PATIENCE, set_as_default=False)
            client.wait_for_workers(1, timeout=PATIENCE)
        except (OSError, TimeoutError) as error:
            if cluster is not None:
                cluster.close()
            raise RunnerFailed("dask", f"no worker answers at {address or 'this machine'} ({error})") from error
        if cluster is not None:
            client.run(atexit.register, os._exit, 0)  # else DuckDB counts what it has left behind, on the terminal
        return cls(client, cluster)

    async def run(self, job: Job) -> Outcome:
        from distributed import KilledWorker

        loop = asyncio.get_running_loop()
        ended = asyncio.Event()
        future = self._client.submit(_work_on_dask, job, self._stop.name, pure=False, retries=RETRIES)
        future.add_done_callback(lambda _: loop.call_soon_threadsafe(ended.set))
        try:
            await ended.wait()
            outcome: Outcome = await asyncio.to_thread(future.result)
        except KilledWorker as error:
            raise RunnerFailed("dask", "workers died again and again over one batch") from error
        finally:
            future.release()
        return outcome

    async def aclose(self) -> None:
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        self._stop.set()
        self._client.close()
        if self._cluster is not None:
            self._cluster.close()


def _work_on_dask(job: Job, stop: str) -> Outcome:
    from distributed import Event

    event = Event(stop)
    return run_job(job, lambda: not event.is_set())


class RayChannel:
    """This process as a driver of Ray; the connection, and what was started for it, ends with the channel."""

    def __init__(self, ray: Any) -> None:
        self.workers = int(ray.cluster_resources().get("CPU", 1))
        self.machines = len([node for node in ray.nodes() if node["Alive"]])
        self._ray = ray  # the module: its decorators have no usable types
        self._work = ray.remote(num_cpus=1, max_retries=RETRIES)(_work_on_ray)
        self._running: set[Any] = set()

    @classmethod
    def open(cls, address: str | None, workers: int) -> "RayChannel":
        """Join the cluster at the address, or start one on this machine. Blocks for some seconds."""
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # it would report its use to its makers
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # else it warns of its future
        try:
            import ray
        except ImportError as error:
            raise missing("ray", error) from error
        try:
            if address is None:
                ray.init(
                    num_cpus=workers, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR,
                    _node_ip_address="127.0.0.1",
                )  # fmt: skip
            else:
                ray.init(address, log_to_driver=False, logging_level=logging.ERROR)
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise RunnerFailed("ray", f"no cluster at {address or 'this machine'} ({error})") from error
        return cls(ray)

    async def run(self, job: Job) -> Outcome:
        from ray.exceptions import RayError

        reference = self._work.remote(job)
        self._running.add(reference)
        try:
            outcome: Outcome = await asyncio.wrap_future(reference.future())
        except RayError as error:
            raise RunnerFailed("ray", str(error).strip().splitlines()[0]) from error
        else:
            self._running.discard(reference)
        return outcome

    async def aclose(self) -> None:
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        for reference in self._running:
            self._ray.cancel(reference, force=True)
        self._ray.shutdown()


def _work_on_ray(job: Job) -> Outcome:
    return run_job(job, lambda: True)  # Ray ends the process of a job that is cancelled
