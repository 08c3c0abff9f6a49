"""The history of runs: each that got as far as working leaves an entry."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress

from flows.runtime import Runtime
from prompts.engine.errors import EngineError
from prompts.engine.key_masking import mask_keys
from storage.errors import StorageError, TrellisError, UsageError
from storage.records import utc_now
from storage.workspace_db import RunRow


@asynccontextmanager
async def remembered(kind: str, runtime: Runtime) -> AsyncIterator[dict[str, object]]:
    """A row in the history: what the block puts into the summary (nothing: no row), or how the
    block failed.
    """
    started, summary = utc_now(), dict[str, object]()
    try:
        yield summary
    except UsageError:
        raise
    except BaseException as error:  # others than ours: cancelled, interrupted, or a fault of ours
        details = {"error": mask_keys(error.message)} if isinstance(error, TrellisError | EngineError) else {}
        with suppress(StorageError):  # where not even that can be written, the failure itself is what is to be told
            _remember(runtime, kind, started, "failed" if details else "stopped", details)
        raise
    if summary:
        _remember(runtime, kind, started, "completed", summary)


def note(kind: str, runtime: Runtime, **summary: object) -> None:
    """A row in the history for what is done in a moment and was done."""
    _remember(runtime, kind, utc_now(), "completed", summary)


def _remember(runtime: Runtime, kind: str, started: str, state: str, summary: Mapping[str, object]) -> None:
    """With the calls that were paid for, however the run ended: forecasts learn from them."""
    paid = [
        {
            "step": step,
            "model": model,
            "calls": spent.calls,
            "input_tokens": spent.input_tokens,
            "output_tokens": spent.output_tokens,
            "seconds": round(spent.seconds, 3),
            "busy_seconds": round(spent.busy_seconds, 3),
        }
        for step, model, spent in runtime.models.meter.rows()
        if spent.calls
    ]
    text = json.dumps({**summary, **({"usage": paid} if paid else {})}, ensure_ascii=False)
    runtime.workspace.database.runs.append(
        RunRow(kind=kind, started=started, finished=utc_now(), state=state, summary=text)
    )
