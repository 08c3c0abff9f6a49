"""The process of one index run. It reads its order as a line of JSON from standard input and writes
its progress and its result as lines of JSON to standard output.
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
from storage.system import send_to_itself

EVERY = 0.2  # seconds between two messages about one step

logger = logging.getLogger("trellis.service")


def main() -> None:
    """Do the run. If the service closes standard input, or dies, the run ends without a trace."""
    mask_logs()
    # A shell may have set it to "ignore"; asyncio needs it to cancel the run.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    order = json.loads(sys.stdin.readline())
    try:
        settings = load_settings({"workspace": order["workspace"]})
    except TrellisError as error:
        _send({"error": shown_error(error)})
        return
    with log_to_stderr(settings.service.log_texts, order["run"]):
        end = _work(order, settings)
        # The service closes standard input when it has read the end of the run.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        _send(end)


def _work(order: Mapping[str, Any], settings: Settings) -> dict[str, object]:
    """Do the run and return its last message: {report} or {error}."""
    last: tuple[str, float] = "", 0.0
    started, meter = time.monotonic(), Meter()

    def progress(step: str, done: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        if step != last[0] or done >= total or now - last[1] >= EVERY:
            last = step, now
            usage = usage_of(meter, now - started).model_dump(include={*StepUsage.model_fields})
            _send({"step": step, "done": done, "total": total, "usage": usage})

    async def run() -> object:
        nonlocal meter
        runtime = open_runtime(settings, progress)
        meter = runtime.models.meter
        options = IndexOptions(order["full"], order["allow_removals"], order["remake"])
        return await index_documents(order["sources"], options, runtime)

    try:
        threading.Thread(target=_interrupt_at_end_of_input, daemon=True).start()
        return {"report": to_jsonable_python(asyncio.run(run()))}
    except KeyboardInterrupt:
        # A normal exit would let DuckDB report the objects of the cancelled run as leaked.
        os._exit(130)
    except (TrellisError, EngineError) as error:
        return {"error": shown_error(error)}
    except (OSError, *DATABASE_ERRORS) as error:
        fault = fault_of(error, getattr(error, "filename", None) or "A file")
        return {"error": shown_error(fault or error)}
    except Exception as error:
        logger.exception("index run failed")
        return {"error": shown_error(error)}


def _interrupt_at_end_of_input() -> None:
    sys.stdin.read()
    send_to_itself(signal.SIGINT)


def _send(message: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
