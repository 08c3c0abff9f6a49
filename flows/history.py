"""Which index runs have there been? Each that got as far as working leaves a row in the workspace."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from flows.indexing import IndexOptions, build_index
from flows.runtime import Runtime
from storage.errors import TrellisError, UsageError
from storage.records import IndexReport
from storage.runs import RunRow


async def index_run(sources: Sequence[str | Path], options: IndexOptions, runtime: Runtime) -> IndexReport:
    """`build_index`, remembered. A request that could not be met as it was put (UsageError) is no run."""
    started = _now()
    try:
        report = await build_index(sources, options, runtime)
    except UsageError:
        raise
    except TrellisError as error:
        _remember(runtime, started, "failed", {"error": error.message})
        raise
    summary = {"generation": report.generation, "published": report.published, "seconds": round(report.seconds, 2)}
    _remember(runtime, started, "completed", summary | {"documents": report.documents.model_dump()})
    return report


def _remember(runtime: Runtime, started: str, state: str, summary: dict[str, object]) -> None:
    text = json.dumps(summary, ensure_ascii=False)
    runtime.workspace.side.runs.append(
        RunRow(kind="index", started=started, finished=_now(), state=state, summary=text)
    )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
