"""The index runs of a service. Each is a process, and a workspace has only one at a time."""

import asyncio
import json
import logging
import os
import sys
import uuid
from collections import defaultdict
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import flows
from flows.service.access import TooOften, shown_error
from prompts.engine.errors import EngineError
from storage.errors import NotFound, TrellisError, UsageError
from storage.records import Record, utc_now
from storage.run_records import IndexReport, StepUsage
from storage.system import APART

MOST_KEPT = 200  # runs
MOST_UNFINISHED = 100  # runs
HOME = str(Path(flows.__file__).resolve().parent.parent)  # where the process finds our packages
END_WITHIN = 20.0  # seconds for a cancelled run; then its process is killed, which is safe
LINE = 64 << 20  # bytes of the longest line of the process: its report

logger = logging.getLogger("trellis.service")


class RunRequest(Record):
    """What to index; without sources the uploads and the sources of `trellis serve`."""

    sources: tuple[str, ...] = ()
    full: bool = False
    allow_removals: bool = False
    remake: bool = False


class IndexRun(Record):
    """An index run: its current `step`, of which `done` of `total` items are finished, and the
    model calls so far (`usage`). Times are UTC in ISO form.

    A completed run has a `report`, a failed one an `error` ({type, message, remedy}). A completed
    one has both where what it published could not be opened.
    """

    id: str
    workspace: str
    sources: tuple[str, ...]
    state: Literal["waiting", "running", "completed", "failed", "cancelled"] = "waiting"
    step: str = ""
    done: int = 0
    total: int = 0
    usage: StepUsage | None = None
    started: str
    finished: str | None = None
    report: IndexReport | None = None
    error: dict[str, str] | None = None


class IndexRuns:
    """The index runs of a service; `published` is called with the workspace of a completed run."""

    def __init__(self, published: Callable[[str], Coroutine[Any, Any, None]]) -> None:
        self._published = published
        self._runs: dict[str, IndexRun] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._turns: dict[Path, asyncio.Lock] = defaultdict(asyncio.Lock)

    def start(self, workspace: str, folder: Path, wanted: RunRequest) -> IndexRun:
        """Start a run, or queue it behind another of the workspace. Raises UsageError, TooOften."""
        if not wanted.sources:
            raise UsageError(
                "There is nothing to index.", "Upload documents first, or name sources."
            )
        if len(self._tasks) >= MOST_UNFINISHED:
            raise TooOften(
                f"{len(self._tasks)} index runs wait already.", "Wait until some are done."
            )
        name = f"run_{uuid.uuid4().hex[:12]}"
        run = IndexRun(id=name, workspace=workspace, sources=wanted.sources, started=utc_now())
        self._runs[name] = run
        for old in list(self._runs)[:-MOST_KEPT]:
            if old not in self._tasks:
                del self._runs[old]
        self._tasks[name] = asyncio.create_task(self._run(name, folder, wanted))
        return run

    def list(self) -> list[IndexRun]:
        """List the runs, newest first."""
        return list(reversed(self._runs.values()))

    def get(self, run: str) -> IndexRun:
        """Return the current state of a run. Raises NotFound."""
        if run not in self._runs:
            remedy = "GET /api/v1/index-runs lists those there are."
            raise NotFound(f"There is no index run {run[:80]!r}.", remedy)
        return self._runs[run]

    async def cancel(self, run: str) -> IndexRun:
        """Cancel a run and wait for its end. Raises NotFound."""
        self.get(run)
        if task := self._tasks.get(run):
            task.cancel()
            await asyncio.wait([task])
        return self._runs[run]

    async def close(self) -> None:
        """Cancel all unfinished runs."""
        for run in list(self._tasks):
            await self.cancel(run)

    def _update(self, run: str, **change: object) -> None:
        self._runs[run] = IndexRun.model_validate(dict(self._runs[run]) | change)

    async def _run(self, run: str, folder: Path, wanted: RunRequest) -> None:
        state = "failed"
        try:
            async with self._turns[folder]:
                self._update(run, state="running")
                end = await self._work(run, folder, wanted)
            self._update(run, **end)
            if "report" in end:
                await self._published(self._runs[run].workspace)
        except asyncio.CancelledError:
            state = "cancelled"
        except (TrellisError, EngineError) as error:
            self._update(run, error=shown_error(error))
        except Exception as error:
            logger.exception("index run failed")
            self._update(run, error=shown_error(error))
        finally:
            # What is published stays, whether it could be opened or not.
            state = "completed" if self._runs[run].report is not None else state
            self._update(run, state=state, finished=utc_now())
            del self._tasks[run]

    async def _work(self, run: str, folder: Path, wanted: RunRequest) -> Mapping[str, Any]:
        """Do the run in a process and return its last message: a report or an error."""
        path = os.pathsep.join(filter(None, (HOME, os.environ.get("PYTHONPATH"))))
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "flows.service.index_process"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=LINE,
            **APART,
            env={**os.environ, "PYTHONPATH": path},
        )
        assert process.stdin is not None  # noqa: S101 -- both are pipes
        assert process.stdout is not None  # noqa: S101
        try:
            order = {"run": run, "workspace": str(folder), **wanted.model_dump()}
            process.stdin.write(json.dumps(order).encode() + b"\n")
            async for line in process.stdout:
                message: dict[str, Any] = json.loads(line)
                if "step" not in message:
                    return message
                self._update(run, **message)
            code = await process.wait()
            raise UsageError(f"The run ended with code {code}.", "The service's log says more.")
        except asyncio.CancelledError:
            process.stdin.close()
            with suppress(TimeoutError):
                rest = await asyncio.wait_for(process.stdout.read(), END_WITHIN)
                for message in map(json.loads, rest.splitlines()):
                    if "report" in message:  # It published before it was cancelled.
                        return message
            raise
        finally:
            process.stdin.close()  # This ends the run, however this block is left.
            try:
                await asyncio.wait_for(process.wait(), END_WITHIN)
            except TimeoutError:
                process.kill()
                await process.wait()
