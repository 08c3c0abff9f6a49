"""Index runs that the service starts, follows and cancels: each a process of its own, one at a time
for a workspace.
"""

import asyncio
import json
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
from storage.errors import NotFound, UsageError
from storage.records import Record, utc_now
from storage.run_records import IndexReport, StepUsage

MOST_KEPT = 200  # runs
MOST_WAITING = 100  # and running
HOME = str(Path(flows.__file__).resolve().parent.parent)  # where a run finds our packages
END_WITHIN = 20.0  # seconds; then a cancelled run's process is killed, which harms no workspace
LINE = 64 << 20  # bytes of the longest line that a run may write: its report


class RunRequest(Record):
    """What to index. No sources: the uploaded files, and those that `trellis serve` was given."""

    sources: tuple[str, ...] = ()
    full: bool = False
    allow_removals: bool = False
    remake: bool = False


class IndexRun(Record):
    """An index run. `step` says what it does now, `done` of `total` items, `usage` what models have
    taken so far; times are UTC in ISO form.

    `report` is there where it completed, `error` ({type, message, remedy}) where it failed.
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
    """The runs of a service; `published` is told the workspace of each run that completes."""

    def __init__(self, published: Callable[[str], Coroutine[Any, Any, None]]) -> None:
        self._published = published
        self._runs: dict[str, IndexRun] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._turns: dict[Path, asyncio.Lock] = defaultdict(asyncio.Lock)

    def start(self, workspace: str, folder: Path, wanted: RunRequest) -> IndexRun:
        """Begin a run, or put it in line."""
        if not wanted.sources:
            raise UsageError(
                "There is nothing to index.", "Upload documents first, or name sources."
            )
        if len(self._tasks) >= MOST_WAITING:
            raise TooOften(
                f"{len(self._tasks)} index runs wait already.", "Wait until some are done."
            )
        name = f"run_{uuid.uuid4().hex[:12]}"
        run = IndexRun(id=name, workspace=workspace, sources=wanted.sources, started=utc_now())
        self._runs[run.id] = run
        for old in list(self._runs)[:-MOST_KEPT]:
            if old not in self._tasks:
                del self._runs[old]
        self._tasks[run.id] = asyncio.create_task(self._run(run.id, folder, wanted))
        return run

    def list(self) -> list[IndexRun]:
        """List the runs, the newest first."""
        return list(reversed(self._runs.values()))

    def get(self, run: str) -> IndexRun:
        """Give a run as it is now. Raises NotFound."""
        if run not in self._runs:
            remedy = "GET /api/v1/index-runs lists those there are."
            raise NotFound(f"There is no index run {run[:80]!r}.", remedy)
        return self._runs[run]

    async def cancel(self, run: str) -> IndexRun:
        """End a run's process and wait for that."""
        self.get(run)
        if task := self._tasks.get(run):
            task.cancel()
            await asyncio.wait([task])
        return self._runs[run]

    async def close(self) -> None:
        """Cancel what goes on."""
        for run in list(self._tasks):
            await self.cancel(run)

    def _tell(self, run: str, **change: object) -> None:
        self._runs[run] = IndexRun.model_validate(dict(self._runs[run]) | change)

    async def _run(self, run: str, folder: Path, wanted: RunRequest) -> None:
        try:
            async with self._turns[folder]:
                self._tell(run, state="running")
                end = await self._work(run, folder, wanted)
            if "report" in end:
                await self._published(self._runs[run].workspace)
            state = "completed" if "report" in end else "failed"
            self._tell(run, state=state, finished=utc_now(), **end)
        except asyncio.CancelledError:
            self._tell(run, state="cancelled", finished=utc_now())
        except Exception as error:  # noqa: BLE001 -- told to who follows the run
            self._tell(run, state="failed", finished=utc_now(), error=shown_error(error))
        finally:
            del self._tasks[run]

    async def _work(self, run: str, folder: Path, wanted: RunRequest) -> Mapping[str, Any]:
        """Have a process do the run; give the last thing that it says: a report, or an error."""
        path = os.pathsep.join(filter(None, (HOME, os.environ.get("PYTHONPATH"))))
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "flows.service.index_process"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=LINE,
            start_new_session=True,
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
                self._tell(run, **message)
            code = await process.wait()
            raise UsageError(f"The run ended with code {code}.", "The service's log says more.")
        except asyncio.CancelledError:
            process.stdin.close()
            with suppress(TimeoutError):
                rest = await asyncio.wait_for(process.stdout.read(), END_WITHIN)
                ends = [
                    message
                    for line in rest.splitlines()
                    if "report" in (message := json.loads(line))
                ]
                if ends:
                    return dict(ends[0])  # it had published before it was told
            raise
        finally:
            process.stdin.close()  # the run ends when that is closed, whatever we die of
            try:
                await asyncio.wait_for(process.wait(), END_WITHIN)
            except TimeoutError:
                process.kill()
                await process.wait()
