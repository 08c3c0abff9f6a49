"""How do jobs run on Dask: on workers started for the run, or on a cluster that is joined?

`distributed` is used as it is: an index run is recorded by Prefect or not, and the same code serves both.
"""

import asyncio
import atexit
import os
import uuid
from typing import Any

from flows.runners.channel import RETRIES, RunnerFailed, missing
from flows.runners.jobs import Job, Outcome, run_job

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
        future = self._client.submit(_work, job, self._stop.name, pure=False, retries=RETRIES)
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


def _work(job: Job, stop: str) -> Outcome:
    from distributed import Event

    event = Event(stop)
    return run_job(job, lambda: not event.is_set())
