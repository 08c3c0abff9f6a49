"""The process of one index run: its order is a line of JSON on standard input; what it does and how
it ends are lines on standard output.
"""

import asyncio
import json
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Mapping
from typing import Any

from pydantic_core import to_jsonable_python

from flows.index import IndexOptions, index_documents
from flows.runtime import open_runtime, usage_of
from flows.service.access import shown_error
from flows.service.log import log_to_stderr
from flows.settings import Settings, load_settings
from prompts.engine.errors import EngineError
from prompts.engine.key_masking import mask_logs
from prompts.engine.spending import Meter
from storage.errors import TrellisError
from storage.faults import DATABASE_ERRORS, fault_of
from storage.run_records import StepUsage

EVERY = 0.2  # seconds between two lines on one step

logger = logging.getLogger("trellis.service")


def main() -> None:
    """Do the run. Where who ordered it closes standard input, or dies, the run ends without a
    trace.
    """
    mask_logs()
    signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # whatever the shell said: asyncio cancels the run
    order = json.loads(sys.stdin.readline())
    try:
        settings = load_settings({"workspace": order["workspace"]})
    except TrellisError as error:
        _tell({"error": shown_error(error)})
        return
    with log_to_stderr(settings.service.log_texts, order["run"]):
        _work(order, settings)


def _work(order: Mapping[str, Any], settings: Settings) -> None:
    last: tuple[str, float] = "", 0.0
    started, meter = time.monotonic(), Meter()

    def progress(step: str, done: int, total: int) -> None:
        nonlocal last
        if step != last[0] or done >= total or time.monotonic() - last[1] >= EVERY:
            last = step, time.monotonic()
            usage = usage_of(meter, time.monotonic() - started).model_dump(
                include={*StepUsage.model_fields}
            )
            _tell({"step": step, "done": done, "total": total, "usage": usage})

    async def run() -> object:
        nonlocal meter
        runtime = open_runtime(settings, progress)
        meter = runtime.models.meter
        options = IndexOptions(order["full"], order["allow_removals"], order["remake"])
        return await index_documents(order["sources"], options, runtime)

    try:
        threading.Thread(target=_end_with_input, daemon=True).start()
        _tell({"report": to_jsonable_python(asyncio.run(run()))})
    except KeyboardInterrupt:
        os._exit(
            130
        )  # what the run was doing is held to the very end, and DuckDB would report it as leaked
    except (TrellisError, EngineError) as error:
        _tell({"error": shown_error(error)})
    except (OSError, *DATABASE_ERRORS) as error:
        _tell(
            {
                "error": shown_error(
                    fault_of(error, getattr(error, "filename", None) or "A file") or error
                )
            }
        )
    except Exception as error:
        logger.exception("index run failed")
        _tell({"error": shown_error(error)})


def _end_with_input() -> None:
    sys.stdin.read()
    os.kill(os.getpid(), signal.SIGINT)


def _tell(message: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
