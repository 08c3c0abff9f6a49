"""What all flows share: their logs on the run's page with keys masked, progress, a clean end on
SIGTERM, and a final state in words.
"""

import asyncio
import logging
import signal
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import wraps
from typing import Any, ParamSpec, TypeVar, cast

from prefect import State
from prefect.context import FlowRunContext, TaskRunContext
from prefect.exceptions import TerminationSignal
from prefect.logging.handlers import APILogHandler
from prefect.runtime import flow_run
from prefect.settings import get_current_settings
from prefect.states import Completed, Failed

from flows.orchestration.artifacts import Progress
from flows.orchestration.run_folder import keep_parameters
from flows.settings import Settings
from prompts.engine.errors import EngineError
from prompts.engine.key_masking import LogMask, mask_error, mask_keys
from storage.errors import BudgetReached, TrellisError
from storage.records import Record
from storage.system import HANDLES_SIGNALS, on_signals

P = ParamSpec("P")
RecordT = TypeVar("RecordT", bound=Record)
FlowFunction = Callable[P, Coroutine[Any, Any, RecordT]]

LAYERS = ("flows", "tasks", "prompts", "storage")
# Prefect's loggers for what a run logs, and for the error that it fails with.
RUNS = ("prefect.flow_runs", "prefect.task_runs", "prefect.extra")


def index_run_name() -> str:
    """Name an index run after its sources and its workspace."""
    parameters = flow_run.parameters
    source = parameters.get("source") or []
    sources = [source] if isinstance(source, str) else [str(path) for path in source]
    more = f" and {len(sources) - 3} more" if len(sources) > 3 else ""
    into = f" into {parameters['workspace']}" if parameters.get("workspace") else ""
    return f"index {', '.join(sources[:3])}{more}{into}"


@asynccontextmanager
async def recorded(settings: Settings) -> AsyncIterator[Progress]:
    """Enclose the work of a flow, from the moment that its settings are known."""
    settings.keep_secrets()
    _show_logs()
    if settings.workspace.is_dir():
        keep_parameters(settings.workspace)
    async with _ended_by_signals(), Progress() as progress:
        yield progress


def ends_in_words(
    in_words: Callable[[RecordT], str],
) -> Callable[[FlowFunction[P, RecordT]], FlowFunction[P, RecordT]]:
    """Give a flow's final state a message for people; callers still get its result or its error.

    Prefect takes a state that a flow returns as its final one. Of a raised error it would show a
    traceback first.
    """

    def decorate(function: FlowFunction[P, RecordT]) -> FlowFunction[P, RecordT]:
        @wraps(function)
        async def run(*args: P.args, **kwargs: P.kwargs) -> RecordT:
            state: State[RecordT] | State[Exception]
            try:
                result = await function(*args, **kwargs)
            except Exception as error:
                mask_error(error)  # Prefect sends its text to the server
                if not isinstance(error, TrellisError | EngineError):
                    raise
                state = Failed(message=str(error), data=error)
            else:
                state = Completed(message=mask_keys(in_words(result)), data=result)
            return cast(RecordT, state)

        return run

    return decorate


@asynccontextmanager
async def within(minutes: float | None) -> AsyncIterator[None]:
    """Raise BudgetReached where the block takes longer; None sets no limit."""
    try:
        async with asyncio.timeout(None if minutes is None else minutes * 60) as limit:
            yield
    except TimeoutError:
        if minutes is not None and limit.expired():
            raise BudgetReached(minutes, minutes, "minutes") from None
        raise


@asynccontextmanager
async def _ended_by_signals() -> AsyncIterator[None]:
    """Cancel the block on SIGTERM, whatever the main thread is doing.

    Prefect's handler raises in whatever the main thread executes. Inside a callback of the event
    loop asyncio only logs that, and the run would go on: so the loop cancels the work as well.
    Prefect's handler stays installed, where its runner looks for it.
    """
    task = asyncio.current_task()
    handled = HANDLES_SIGNALS and threading.current_thread() is threading.main_thread()
    if task is None or not handled:  # Windows ends a process without a signal
        yield
        return
    loop, prefects_handler = asyncio.get_running_loop(), signal.getsignal(signal.SIGTERM)
    signalled = over = False

    def cancel() -> None:
        nonlocal signalled
        signalled = True
        if not over and not task.cancelling():
            task.cancel()

    on_signals((signal.SIGTERM,), cancel)
    # This does not silence the loop, which listens at the wake-up descriptor.
    signal.signal(signal.SIGTERM, prefects_handler)
    try:
        yield
    except asyncio.CancelledError:
        if signalled:
            task.uncancel()
            raise TerminationSignal(signal=signal.SIGTERM) from None
        raise
    finally:
        over = True
        loop.remove_signal_handler(signal.SIGTERM)
        signal.signal(signal.SIGTERM, prefects_handler)


class RunLog(APILogHandler):
    """Send log records to the page of the current run; outside of a run there is none."""

    def emit(self, record: logging.LogRecord) -> None:
        if FlowRunContext.get() is not None or TaskRunContext.get() is not None:
            super().emit(record)


def _show_logs() -> None:
    """Send our loggers' records, from Prefect's log level on, to the page of a run.

    Prefect's own setting for this (PREFECT_LOGGING_EXTRA_LOGGERS) is read when Prefect is imported,
    which a worker does long before it loads a flow.
    """
    for layer in LAYERS:
        own = logging.getLogger(layer)
        if not any(isinstance(handler, APILogHandler) for handler in own.handlers):
            own.addHandler(RunLog())
        if own.level == logging.NOTSET:
            own.setLevel(get_current_settings().logging.level)
    loggers = [logging.getLogger(name) for name in (*RUNS, *LAYERS, "")]
    for handler in {handler for one in loggers for handler in one.handlers}:
        if not any(isinstance(known, LogMask) for known in handler.filters):
            handler.addFilter(LogMask())
