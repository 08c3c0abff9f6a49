"""Runs a command and tells how it ended.

Exit codes: 0 done, 1 some rows of a batch or a model failed, 2 usage, 3 budget reached, 4 locked,
5 failure gate, 6 evaluation gate, 130 interrupted. An error is told on standard error as what
happened and what to do; with `--json` also as `{"error": {"type", "message", "remedy"}}` on
standard output.
"""

import os
import sys
import traceback
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, cast

from flows.cli.common import COMMON, Common
from prompts.engine.errors import EngineError
from prompts.engine.key_masking import mask_keys, mask_logs
from storage.errors import TrellisError
from storage.faults import DATABASE_ERRORS, fault_of

P = ParamSpec("P")
INTERRUPTED = 130


def command(function: Callable[P, int | None]) -> Callable[P, int]:
    """Make a function a command: its errors are told, and its exit code is returned."""

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> int:
        screen = cast("Common", kwargs.get("common", COMMON)).screen
        mask_logs()
        try:
            code = function(*args, **kwargs) or 0
            sys.stdout.flush()
        except (TrellisError, EngineError) as error:
            screen.error(error)
            return getattr(error, "exit_code", 1)
        except BrokenPipeError:
            # Whoever read our output has seen enough. Python would complain at the pipe's end.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        except (OSError, MemoryError, *DATABASE_ERRORS) as error:
            screen.error(fault_of(error, getattr(error, "filename", None) or "A file") or error)
            return 1
        except KeyboardInterrupt:
            sys.stderr.write("interrupted\n")
            return INTERRUPTED
        except Exception:  # noqa: BLE001 -- shown as Python shows it, without the keys
            sys.stderr.write(mask_keys(traceback.format_exc()))
            return 1
        return code

    return run
