"""Index runs that the service starts, follows and cancels: each a process of its own, one at a time for a workspace."""

import asyncio
import json
import logging
import os
import sys
import uuid
from collections import defaultdict
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, cast

import flows
from flows.service.access import TooOften, shown_error
from storage.errors import NotFound, UsageError
from storage.records import Record, utc_now
from storage.run_records import IndexReport, StepUsage

RunState = Literal["waiting", "running", "completed", "failed", "cancelled"]
MOST_KEPT = 200  # runs
MOST_WAITING = 100  # and running
HOME = str(Path(flows.__file__).resolve().parent.parent)  # where a run finds the packages of this program
END_WITHIN = 20.0  # seconds; then a cancelled run's process is killed, which harms no workspace
LINE = 64 << 20  # bytes of the longest line that a run may write: its report
_PIECE = 64 << 10  # bytes that are read at once of what a run logs

logger = logging.getLogger("trellis.service")


class RunRequest(Record):
    """What to index. No sources: the uploaded files, and those that `trellis serve` was given."""

    sources: tuple[str, ...] = ()
    full: bool = False
    allow_removals: bool = False
    remake: bool = False


class IndexRun(Record):
    """An index run. `step` says what it does now, `done` of `total` items, and what models have taken so
    far; times are UTC in ISO form.

    `report` is there where it completed, `error` ({type, message, remedy}) where it failed; `url` is its page in
    Prefect.
    """

    id: str
    workspace: str
    sources: tuple[str, ...]
    state: RunState = "waiting"
    step: str = ""
    done: int = 0
    total: int = 0
    usage: StepUsage | None = None
    started: str
    finished: str | None = None
    report: IndexReport | None = None
    error: dict[str, str] | None = None
    url: str | None = None


def no_such_run(run: str) -> NotFound:
    """There is no run of this id, or it is forgotten."""
    return NotFound(f"There is no index run {run[:80]!r}.", "GET /api/v1/index-runs lists those there are.")


class LocalRuns:
    """Each run in a process of its own, so that questions are answered meanwhile; `published` is told of its end."""

    def __init__(self, published: Callable[[str], Coroutine[Any, Any, None]]) -> None:
        self._published = published
        self._runs: dict[str, IndexRun] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._turns: dict[Path, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def start(self, workspace: str, folder: Path, wanted: RunRequest) -> IndexRun:
        """Begin a run, or put it in line."""
        if not wanted.sources:
            raise UsageError("There is nothing to index.", "Upload documents first, or name sources.")
        if len(self._tasks) >= MOST_WAITING:
            raise TooOften(f"{len(self._tasks)} index runs wait already.", "Wait until some are done.")
        run = IndexRun(
            id=f"run_{uuid.uuid4().hex[:12]}", workspace=workspace, sources=wanted.sources, started=utc_now()
        )
        self._runs[run.id] = run
        for old in list(self._runs)[:-MOST_KEPT]:
            if old not in self._tasks:
                del self._runs[old]
        self._tasks[run.id] = asyncio.create_task(self._run(run.id, folder, wanted))
        return run

    async def list(self) -> Sequence[IndexRun]:
        """The newest first."""
        return list(reversed(self._runs.values()))

    async def get(self, run: str) -> IndexRun:
        """The run as it is now."""
        if run not in self._runs:
            raise no_such_run(run)
        return self._runs[run]

    async def cancel(self, run: str) -> IndexRun:
        """End its process and wait for that."""
        await self.get(run)
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
            self._tell(run, state="completed" if "report" in end else "failed", finished=utc_now(), **end)
        except asyncio.CancelledError:
            self._tell(run, state="cancelled", finished=utc_now())
        except Exception as error:  # noqa: BLE001 -- told to who follows the run
            self._tell(run, state="failed", finished=utc_now(), error=shown_error(error))
        finally:
            del self._tasks[run]

    async def _work(self, run: str, folder: Path, wanted: RunRequest) -> Mapping[str, object]:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-P", "-m", "flows.service.index_process",
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            limit=LINE, start_new_session=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (HOME, os.environ.get("PYTHONPATH"))))},
        )  # fmt: skip
        orders, lines = cast(asyncio.StreamWriter, process.stdin), cast(asyncio.StreamReader, process.stdout)
        log = asyncio.create_task(relay_log(run, cast(asyncio.StreamReader, process.stderr)))
        try:
            order = {"workspace": str(folder), **wanted.model_dump()}
            orders.write(json.dumps(order).encode() + b"\n")  # left open: the run ends when we do
            async for line in lines:
                message = json.loads(line)
                if "step" not in message:
                    return dict(message)
                self._tell(run, **message)
            raise UsageError(f"The run ended with code {await process.wait()}.", "The log of the service says more.")
        except asyncio.CancelledError:
            with suppress(TimeoutError):
                orders.close()  # heard whenever the process gets so far, where a signal would come too early
                rest = await asyncio.wait_for(lines.read(), END_WITHIN)
                ends = [message for line in rest.splitlines() if "report" in (message := json.loads(line))]
                if ends:
                    return dict(ends[0])  # it had published before it was told
            raise
        finally:
            if process.returncode is None:
                orders.close()
                try:
                    await asyncio.wait_for(process.wait(), END_WITHIN)
                except TimeoutError:
                    process.kill()
                    await process.wait()
            await asyncio.wait([log], timeout=END_WITHIN)


async def relay_log(run: str, errors: asyncio.StreamReader) -> None:
    """Enter into the log what a run writes to standard error: its records as they are, all else as
    text.
    """
    text = b""
    while piece := await errors.read(_PIECE):
        *lines, text = (text + piece).split(b"\n")
        if len(text) > _PIECE:
            lines, text = [*lines, text], b""
        for line in lines:
            _enter(run, line)
    _enter(run, text)


def _enter(run: str, line: bytes) -> None:
    text = line.decode("utf-8", "replace").strip()
    try:
        record = json.loads(text)
        level = logging.getLevelNamesMapping()[record.pop("level").upper()]
        event, fields = record.pop("event"), record
    except (ValueError, KeyError, TypeError, AttributeError):
        level, event, fields = logging.WARNING, "index run", {"said": text}
    if text:
        logger.log(level, "%s", event, extra={"fields": {"run": run, **fields}})
