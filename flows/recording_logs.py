"""What of our loggers does the page of a run show, and what does no page show?"""

import logging

from prefect.context import FlowRunContext, TaskRunContext
from prefect.logging.handlers import APILogHandler
from prefect.settings import get_current_settings

from prompts.engine.redact import LogMask

LAYERS = ("flows", "tasks", "prompts", "storage")
# Those of Prefect that hold what a run says, and what it fails with.
RUNS = ("prefect.flow_runs", "prefect.task_runs", "prefect.extra")


class RunLog(APILogHandler):
    """Sends what is logged inside of a run to its page; outside of one there is no page."""

    def emit(self, record: logging.LogRecord) -> None:
        if FlowRunContext.get() is not None or TaskRunContext.get() is not None:
            super().emit(record)


def show_logs() -> None:
    """Let the loggers of all our layers reach the page of the run; once is enough for a process.

    From the level on that Prefect's own setting names, INFO by default.

    Prefect's own setting for this (PREFECT_LOGGING_EXTRA_LOGGERS) is read when Prefect is imported, which a worker does
    long before it loads a flow.
    """
    extra = logging.getLogger("prefect.extra").handlers
    for layer in LAYERS:
        logger = logging.getLogger(layer)
        if not any(isinstance(handler, APILogHandler) for handler in logger.handlers):
            logger.addHandler(RunLog())
        if logger.level == logging.NOTSET:
            logger.setLevel(get_current_settings().logging.level)
    loggers = [logging.getLogger(name) for name in (*RUNS, *LAYERS, "")]
    for handler in {*extra, *(handler for logger in loggers for handler in logger.handlers)}:
        if not any(isinstance(known, LogMask) for known in handler.filters):
            handler.addFilter(LogMask())
