"""Runs one command and brings its end to the shell.

Exit codes: 0 done, 1 some rows of a batch or a model failed, 2 usage, 3 budget reached, 4 locked,
5 failure gate, 6 evaluation gate, 130 interrupted. An error is told on standard error as what
happened and what to do; with `--json` also as `{"error": {"type", "message", "remedy"}}` on
standard output.
"""

import os
import sys
import traceback
from collections.abc import Callable

from flows.cli.screen import Screen
from prompts.engine.errors import EngineError
from prompts.engine.key_masking import mask_keys, mask_logs
from storage.errors import TrellisError
from storage.faults import DATABASE_ERRORS, fault_of

INTERRUPTED = 130


def run(command: Callable[[], int | None], as_json: bool) -> int:
    """Run a command and return its exit code; tell the errors that it raises."""
    screen = Screen(as_json)
    mask_logs()
    try:
        code = command() or 0
        sys.stdout.flush()
    except (TrellisError, EngineError) as error:
        screen.error(error)
        return getattr(error, "exit_code", 1)
    except BrokenPipeError:
        # Whoever read our output has seen enough. Python would complain when it closes the pipe.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (OSError, MemoryError, *DATABASE_ERRORS) as error:
        screen.error(fault_of(error, getattr(error, "filename", None) or "A file") or error)
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return INTERRUPTED
    except Exception:  # noqa: BLE001 -- a fault of ours: shown as Python shows it, without the keys
        sys.stderr.write(mask_keys(traceback.format_exc()))
        return 1
    return code
