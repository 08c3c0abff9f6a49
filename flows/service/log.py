"""The log of the service: one JSON object a line on standard error, without questions, names and
texts of documents.
"""

import json
import logging
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from flows.usage import masked

_INFORMED = ("trellis.service",)
_WARNED = ("uvicorn.error", "flows", "tasks", "prompts", "storage", "mcp", "asyncio", "py.warnings")
_OF_DOCUMENTS = "tasks."  # what these loggers fill in are names of documents


class JsonLines(logging.Formatter):
    """A record as one line of JSON with its `fields`, keys masked.

    Of an error the places and kinds are told. Its words, which may name a document or quote it,
    only with `texts`.
    """

    def __init__(self, texts: bool = False) -> None:
        super().__init__()
        self._texts = texts

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        hidden = record.name.startswith(_OF_DOCUMENTS) and not self._texts
        line: dict[str, object] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(record.created)),
            "level": record.levelname.lower(),
            "event": str(record.msg) if hidden else record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info and record.exc_info[1] is not None:
            line["error"] = self._told(record.exc_info[1])
        return masked(json.dumps(line, ensure_ascii=False, default=str))

    def _told(self, error: BaseException) -> str:
        if self._texts:
            return "".join(traceback.format_exception(error))
        told, cause = list[str](), error.__cause__ or error.__context__
        if cause is not None:
            told += [self._told(cause), "which led to:\n"]
        return "".join([*told, *traceback.format_tb(error.__traceback__), type(error).__name__, "\n"])


@contextmanager
def log_to_stderr(texts: bool = False) -> Iterator[None]:
    """Write the service's log, and all warnings with it, to standard error while the block lasts."""
    informed, warned = (logging.StreamHandler(sys.stderr) for _ in range(2))
    for handler in (informed, warned):
        handler.setFormatter(JsonLines(texts))
    # The handler has the level: a flow run in this process shows more of the same loggers on its page.
    warned.setLevel(logging.WARNING)
    handlers = dict.fromkeys(_INFORMED, informed) | dict.fromkeys(_WARNED, warned)
    loggers = {logging.getLogger(name): handler for name, handler in handlers.items()}
    before = {logger: (logger.level, logger.propagate) for logger in loggers}
    logging.captureWarnings(capture=True)
    for logger, handler in loggers.items():
        logger.addHandler(handler)
        logger.propagate = False
        if handler is informed:
            logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logging.captureWarnings(capture=False)
        for logger, (level, propagate) in before.items():
            logger.removeHandler(loggers[logger])
            logger.propagate = propagate
            logger.setLevel(level)
