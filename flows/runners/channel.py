"""How do jobs get to workers, and what can go wrong on the way?"""

from typing import Protocol

from flows.runners.jobs import Job, Outcome
from storage.errors import SettingsError, TrellisError

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
