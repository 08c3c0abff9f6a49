"""The log of the service: one JSON object a line on standard error, without questions and without
names and texts of documents.
"""

import json
import logging
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from flows.usage import masked

# The lowest level of each logger that is written.
LEVELS = {"trellis.service": logging.INFO} | dict.fromkeys(
    ("uvicorn.error", "flows", "tasks", "prompts", "storage", "mcp", "asyncio", "py.warnings"),
    logging.WARNING,
)
OF_DOCUMENTS = "tasks."  # The arguments of these loggers are names of documents.


class JsonLines(logging.Formatter):
    """Formats a record as one line of JSON with its `fields` and masked keys.

    An error is written as its traceback and its type. Its message, which may quote a document, is
    written only with `texts`. `run` is the id of the index run that this process does.
    """

    def __init__(self, texts: bool = False, run: str = "") -> None:
        super().__init__()
        self._texts = texts
        self._run = {"run": run} if run else {}

    def format(self, record: logging.LogRecord) -> str:
        hidden = record.name.startswith(OF_DOCUMENTS) and not self._texts
        line: dict[str, object] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(record.created)),
            "level": record.levelname.lower(),
            "event": str(record.msg) if hidden else record.getMessage(),
            **self._run,
            **getattr(record, "fields", {}),
        }
        if record.exc_info and record.exc_info[1] is not None:
            line["error"] = self._traceback(record.exc_info[1])
        return masked(json.dumps(line, ensure_ascii=False, default=str))

    def _traceback(self, error: BaseException) -> str:
        if self._texts:
            return "".join(traceback.format_exception(error))
        cause = error.__cause__ or error.__context__
        before = f"{self._traceback(cause)}which led to:\n" if cause is not None else ""
        frames = "".join(traceback.format_tb(error.__traceback__))
        return f"{before}{frames}{type(error).__name__}\n"


@contextmanager
def log_to_stderr(texts: bool = False, run: str = "") -> Iterator[None]:
    """Write the log and all warnings to standard error during the block."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines(texts, run))
    before = {
        name: (logging.getLogger(name).level, logging.getLogger(name).propagate) for name in LEVELS
    }
    logging.captureWarnings(capture=True)
    for name, level in LEVELS.items():
        logger = logging.getLogger(name)
        logger.addHandler(handler)
        logger.propagate = False
        logger.setLevel(level)
    try:
        yield
    finally:
        logging.captureWarnings(capture=False)
        for name, (level, propagate) in before.items():
            logger = logging.getLogger(name)
            logger.removeHandler(handler)
            logger.propagate = propagate
            logger.setLevel(level)
