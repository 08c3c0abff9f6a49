"""What of our loggers does the page of a run show, and what does no page show?"""

import logging
import traceback

from prefect.context import FlowRunContext, TaskRunContext
from prefect.logging.handlers import APILogHandler
from prefect.settings import get_current_settings

from tasks.redact import redacted

LAYERS = ("flows", "tasks", "prompts", "storage")
# Those of Prefect that hold what a run says, and what it fails with.
RUNS = ("prefect.flow_runs", "prefect.task_runs", "prefect.extra")


class Redaction(logging.Filter):
    """Takes what is secret out of a record: out of its message, its arguments and its traceback."""

    def filter(self, record: logging.LogRecord) -> bool:
        message = record.getMessage()
        if (clean := redacted(message)) != message:
            record.msg, record.args = clean, ()
        if record.exc_info and record.exc_info[1] is not None:
            written = "".join(traceback.format_exception(record.exc_info[1]))
            if (clean := redacted(written)) != written:
                record.exc_info, record.exc_text = None, clean
        return True


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
        if not any(isinstance(known, Redaction) for known in handler.filters):
            handler.addFilter(Redaction())
