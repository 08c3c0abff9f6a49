"""The frame of every command: it shows errors and sets the exit code.

An error is written to standard error as a message and a remedy; with `--json` also to standard
output as `{"error": {"type", "message", "remedy"}}`. docs/commands.md lists the exit codes.
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
    """Decorate the function of a command: show its errors and return its exit code."""

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
            # The reader has closed the pipe; without this, Python reports an error at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        except (OSError, MemoryError, *DATABASE_ERRORS) as error:
            screen.error(fault_of(error, getattr(error, "filename", None) or "A file") or error)
            return 1
        except KeyboardInterrupt:
            sys.stderr.write("interrupted\n")
            return INTERRUPTED
        except Exception:  # noqa: BLE001 -- a program fault: the usual traceback, without keys
            sys.stderr.write(mask_keys(traceback.format_exc()))
            return 1
        return code

    return run
