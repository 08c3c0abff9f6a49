"""How do jobs run on Ray: on workers started for the run, or on a cluster that is joined?"""

import asyncio
import logging
import os
from typing import Any

from flows.runners.channel import RETRIES, RunnerFailed, missing
from flows.runners.jobs import Job, Outcome, run_job


class RayChannel:
    """This process as a driver of Ray; the connection, and what was started for it, ends with the channel."""

    def __init__(self, ray: Any) -> None:
        self.workers = int(ray.cluster_resources().get("CPU", 1))
        self.machines = len([node for node in ray.nodes() if node["Alive"]])
        self._ray = ray  # the module: its decorators have no usable types
        self._work = ray.remote(num_cpus=1, max_retries=RETRIES)(_work)
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


def _work(job: Job) -> Outcome:
    return run_job(job, lambda: True)  # Ray ends the process of a job that is cancelled
