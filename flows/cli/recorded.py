"""How does a command run a flow without Prefect's noise on the terminal?"""

import atexit
import logging
import os
import sys

from prompts.engine.errors import EngineError
from storage.errors import TrellisError


class _Short(logging.Filter):
    """Takes the traceback off errors that are raised on purpose: their message says what to do."""

    def filter(self, record: logging.LogRecord) -> bool:
        if record.exc_info and isinstance(record.exc_info[1], TrellisError | EngineError):
            record.exc_info = record.exc_text = None
        return True


def shorten_errors() -> None:
    """Let Prefect log such errors in one line. Call it before the flow runs; twice does no harm."""
    for name in ("prefect.flow_runs", "prefect.task_runs"):
        logger = logging.getLogger(name)
        if not any(isinstance(known, _Short) for known in logger.filters):
            logger.addFilter(_Short())


class Ending:
    """Ends the process without the last checks of extension modules, where Prefect is loaded.

    Prefect keeps threads and modules to the very end, and DuckDB's binding then reports every object of its own as
    leaked. To be made before Prefect is imported: the handlers that it registers later, which stop its temporary
    server, run first.
    """

    def __init__(self) -> None:
        self.code = 1
        atexit.register(self._leave)

    def _leave(self) -> None:
        if "prefect" not in sys.modules:
            return
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(self.code)
