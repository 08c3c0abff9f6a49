"""Recording: what the flows use of Prefect, with nothing of it leaving the machine.

Prefect reports its use to its makers, the client when it is imported and the server while it runs, unless the
environment says otherwise. So the environment is settled here, before the one place where flows import Prefect.

Every run opens three clients, and each reads the certificates of all authorities, 25 ms a time, also where its server
is reached over plain HTTP and none is ever looked at. There it reads one that has signed nothing: a recorded question
takes half the time.
"""

import logging
import os
from pathlib import Path
from typing import TypeVar, cast
from urllib.parse import urlsplit

# Not ours to decide where the person has decided.
os.environ.setdefault("DO_NOT_TRACK", "1")
os.environ.setdefault("PREFECT_SERVER_ANALYTICS_ENABLED", "false")
# The server that Prefect starts where none is configured takes longer than its 20 s on a busy machine.
os.environ.setdefault("PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS", "120")

from prefect.context import FlowRunContext, TaskRunContext, refresh_global_settings_context
from prefect.logging.handlers import APILogHandler
from prefect.settings import get_current_settings
from prefect.states import Completed, Failed

from flows.settings import Settings
from prompts.engine.errors import EngineError
from prompts.engine.key_masking import LogMask, mask_error, mask_keys
from storage.errors import TrellisError

R = TypeVar("R")

_CERTIFICATES = "PREFECT_API_SSL_CERT_FILE"
_NO_AUTHORITY = str(Path(__file__).with_name("no_authority.pem"))


def spare_certificates() -> None:
    """Read no authorities' certificates for a server that is reached over plain HTTP.

    Where the person has named a file of certificates, it stays.
    """
    api = get_current_settings().api
    plain = api.url is None or urlsplit(api.url).scheme == "http"
    if plain and api.ssl_cert_file in {None, os.environ.get("SSL_CERT_FILE")}:
        os.environ[_CERTIFICATES] = _NO_AUTHORITY
        refresh_global_settings_context()


spare_certificates()


def begin(settings: Settings) -> None:
    """To be called as soon as a run knows its settings: their keys are hidden, and our loggers reach its page."""
    settings.keep_secrets()
    show_logs()


def done(message: str, result: R) -> R:
    """What a flow returns so that its run ends with a message for people; whoever called the flow gets `result`."""
    # Prefect takes a state in place of a result, and gives the result out of it to the caller.
    return cast(R, Completed(message=mask_keys(message), data=result))


def failed(error: Exception, kind: type[R]) -> R:
    """What a flow returns so that its run fails with the error's own words; whoever called the flow gets it raised.

    For errors raised on purpose: Prefect's own way would put a traceback between a person and the message.
    """
    mask_error(error)
    return cast(R, Failed(message=str(error), data=error))  # `kind` only says what the flow promised


# --- logs ------------------------------------------------------------------------------------------------------------

LAYERS = ("flows", "tasks", "prompts", "storage")
# Those of Prefect that hold what a run says, and what it fails with.
RUNS = ("prefect.flow_runs", "prefect.task_runs", "prefect.extra")


class _Short(logging.Filter):
    """Takes the traceback off errors that are raised on purpose: their message says what to do."""

    def filter(self, record: logging.LogRecord) -> bool:
        if record.exc_info and isinstance(record.exc_info[1], TrellisError | EngineError):
            record.exc_info = record.exc_text = None
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
        if not any(isinstance(known, LogMask) for known in handler.filters):
            handler.addFilter(_Short())
            handler.addFilter(LogMask())
