"""Which runs have there been? Each that got as far as working leaves a row in the workspace."""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

from flows.indexing import IndexOptions, build_index
from flows.retrying import RetryReport, retry
from flows.runtime import Runtime
from prompts.engine.errors import EngineError
from storage.errors import TrellisError, UsageError
from storage.records import IndexReport
from storage.runs import RunRow
from tasks.redact import redacted


async def index_run(sources: Sequence[str | Path], options: IndexOptions, runtime: Runtime) -> IndexReport:
    """`build_index`, remembered. A request that could not be met as it was put (UsageError) is no run."""
    started = _now()
    async with _failures_remembered("index", started, runtime):
        report = await build_index(sources, options, runtime)
    summary = {"generation": report.generation, "published": report.published, "seconds": round(report.seconds, 2)}
    _remember(runtime, "index", started, "completed", summary | {"documents": report.documents.model_dump()})
    return report


async def retry_run(runtime: Runtime) -> RetryReport:
    """`retry`, remembered where there was something to try."""
    started = _now()
    async with _failures_remembered("retry", started, runtime):
        report = await retry(runtime)
    if report.tried:
        summary = {"generation": report.generation, "published": report.published, "succeeded": report.succeeded}
        _remember(runtime, "retry", started, "completed", {**summary, "seconds": round(report.usage.seconds, 2)})
    return report


@asynccontextmanager
async def _failures_remembered(kind: str, started: str, runtime: Runtime) -> AsyncIterator[None]:
    try:
        yield
    except UsageError:
        raise
    except (TrellisError, EngineError) as error:
        _remember(runtime, kind, started, "failed", {"error": redacted(error.message)})
        raise
    except BaseException:  # cancelled, interrupted, or a fault of ours
        _remember(runtime, kind, started, "stopped", {})
        raise


def _remember(runtime: Runtime, kind: str, started: str, state: str, summary: dict[str, object]) -> None:
    text = json.dumps(summary, ensure_ascii=False)
    runtime.workspace.side.runs.append(RunRow(kind=kind, started=started, finished=_now(), state=state, summary=text))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
