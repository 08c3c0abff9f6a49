"""The history of runs, and the next generation for changes that need no sources."""

import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress

from flows.runtime import Runtime, usage_of
from flows.tracing import note_usage
from prompts.engine.errors import EngineError
from prompts.engine.key_masking import mask_keys
from prompts.engine.spans import span
from storage.errors import StorageError, TrellisError, UsageError
from storage.records import utc_now
from storage.staging import Staging
from storage.workspace_db import RunRow


@contextmanager
def next_generation(runtime: Runtime, from_nothing: bool = False) -> Iterator[Staging]:
    """Open the next generation of a workspace for changes; the block publishes it.

    Raises NoGeneration before anything is written, unless it may begin `from_nothing`.
    """
    runtime.workspace.recover()
    if not from_nothing:
        runtime.workspace.read().close()
    with runtime.workspace.write() as staging, runtime.models.without_history():
        yield staging


@asynccontextmanager
async def remembered(kind: str, runtime: Runtime) -> AsyncIterator[dict[str, object]]:
    """Enter into the history the summary that the block fills, or how the block failed.

    An empty summary and a UsageError leave no entry. The block is a span of the traces.
    """
    started, summary = utc_now(), dict[str, object]()
    try:
        with span(kind):
            yield summary
            note_usage(usage_of(runtime.models.meter, 0))
    except UsageError:
        raise
    except BaseException as error:  # also cancellation, interrupts and bugs
        expected = isinstance(error, TrellisError | EngineError)
        details = {"error": mask_keys(str(getattr(error, "message", "")))} if expected else {}
        # The first failure is the one to report, also where the history cannot be written.
        with suppress(StorageError):
            _remember(runtime, kind, started, "failed" if expected else "stopped", details)
        raise
    if summary:
        _remember(runtime, kind, started, "completed", summary)


def note(kind: str, runtime: Runtime, **summary: object) -> None:
    """Enter an action that took no time."""
    _remember(runtime, kind, utc_now(), "completed", summary)


def _remember(
    runtime: Runtime, kind: str, started: str, state: str, summary: Mapping[str, object]
) -> None:
    """Enter a run with the calls that it paid for: forecasts are made from them."""
    paid = [
        {
            "step": step,
            "model": model,
            "calls": spent.calls,
            "input_tokens": spent.input_tokens,
            "output_tokens": spent.output_tokens,
            "busy_seconds": round(spent.busy_seconds, 3),
        }
        for step, model, spent in runtime.models.meter.rows()
        if spent.calls
    ]
    text = json.dumps({**summary, **({"usage": paid} if paid else {})}, ensure_ascii=False)
    row = RunRow(kind=kind, started=started, finished=utc_now(), state=state, summary=text)
    runtime.workspace.database.runs.append(row)
