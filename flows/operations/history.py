"""The history of runs: each that got as far as working leaves a row in the workspace."""

import json
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

from flows.index import IndexOptions, build_index
from flows.operations.forget import ForgetReport, forget
from flows.operations.retry import RetryReport, retry
from flows.runtime import Runtime, usage_rows
from prompts.engine.errors import BudgetSpent, EngineError
from prompts.engine.redact import redacted
from prompts.engine.roles import Role
from prompts.forecast import Written
from storage.errors import BudgetReached, StorageError, TrellisError, UsageError
from storage.run_records import IndexReport
from storage.side import RunRow

logger = logging.getLogger(__name__)

_RUNS_READ = 200
# The steps of an index run whose answers have a length, and whose models they ask.
_ROLES: dict[str, Role] = {
    "extract": "extract", "glean": "extract", "resolve": "resolve", "summarize": "summarize", "relate": "summarize",
    "report": "report",
}  # fmt: skip


async def index_run(sources: Sequence[str | Path], options: IndexOptions, runtime: Runtime) -> IndexReport:
    """`build_index`, remembered; memory of passages that are gone is forgotten.

    A request that could not be met as it was put (UsageError) is no run. Raises BudgetReached where too little is left.
    """
    runtime.workspace.recover(from_nothing=True)
    async with _remembered("index", runtime) as summary:
        try:
            report = await build_index(sources, options, runtime)
        except BudgetSpent as end:
            raise BudgetReached(end.spent, end.budget, end.unit, end.needed) from end
        summary |= {"generation": report.generation, "published": report.published, "seconds": round(report.seconds, 2)}
        summary["documents"] = report.documents.model_dump()
    if report.published:
        with runtime.workspace.read() as generation:
            runtime.workspace.side.memory.expire(generation.documents.chunk_ids())
    return report


async def retry_run(runtime: Runtime) -> RetryReport:
    """`retry`, remembered where there was something to try."""
    async with _remembered("retry", runtime) as summary:
        report = await retry(runtime)
        if report.tried:
            summary |= {"generation": report.generation, "published": report.published, "succeeded": report.succeeded}
            summary["seconds"] = round(report.usage.seconds, 2)
    return report


async def forget_run(documents: Sequence[str], runtime: Runtime, keep_history: bool) -> ForgetReport:
    """`forget`, remembered by how much it removed and not by what."""
    async with _remembered("forget", runtime) as summary:
        report = await forget(documents, runtime, keep_history)
        summary |= {"generation": report.generation, "documents": len(report.documents), "chunks": report.chunks}
        summary["seconds"] = round(report.usage.seconds, 2)
    return report


def written_before(runtime: Runtime) -> dict[str, Written]:
    """By step, of the models that the steps have now."""
    found: dict[str, Written] = {}
    for run in runtime.workspace.side.runs.list(limit=_RUNS_READ):
        for row in json.loads(run.summary).get("usage", ()):
            step = str(row["step"])
            if step not in _ROLES or row["model"] != runtime.models.name(_ROLES[step]):
                continue
            before = found.get(step, Written())
            calls, tokens = before.calls + int(row["calls"]), before.output_tokens + int(row["output_tokens"])
            found[step] = Written(calls=calls, output_tokens=tokens)
    return found


@asynccontextmanager
async def _remembered(kind: str, runtime: Runtime) -> AsyncIterator[dict[str, object]]:
    """A row in the history: what the block puts into the summary (nothing: no row), or how the block failed."""
    started, summary = _now(), dict[str, object]()
    try:
        yield summary
    except UsageError:
        raise
    except (TrellisError, EngineError) as error:
        _remember_failure(runtime, kind, started, "failed", {"error": redacted(error.message)})
        raise
    except BaseException:  # cancelled, interrupted, or a fault of ours
        _remember_failure(runtime, kind, started, "stopped", {})
        raise
    if summary:
        _remember(runtime, kind, started, "completed", summary)


def _remember(runtime: Runtime, kind: str, started: str, state: str, summary: dict[str, object]) -> None:
    """With the calls that were paid for, however the run ended: forecasts learn from them."""
    paid = [
        {"step": row.step, "model": row.model, "calls": row.calls, "output_tokens": row.output_tokens}
        for row in usage_rows(runtime.models.meter)
        if row.calls
    ]
    text = json.dumps(summary | {"usage": paid} if paid else summary, ensure_ascii=False)
    runtime.workspace.side.runs.append(RunRow(kind=kind, started=started, finished=_now(), state=state, summary=text))


def _remember_failure(runtime: Runtime, kind: str, started: str, state: str, summary: dict[str, object]) -> None:
    """Where not even that can be written, the failure itself is what is to be told."""
    try:
        _remember(runtime, kind, started, state, summary)
    except StorageError as error:
        logger.debug("This run is not in the history: %s", error)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
