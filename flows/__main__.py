"""The command `trellis`: it runs what was asked for and brings its end to the shell.

Exit codes: 0 done, 1 some rows of a batch or a model failed, 2 usage, 3 budget reached, 4 locked, 5 failure gate,
6 evaluation gate, 130 interrupted. An error is told on standard error as what happened and what to do; with `--json`
also as `{"error": {"type", "message", "remedy"}}` on standard output.
"""

import atexit
import gc
import importlib
import os
import sys
import traceback
from argparse import Namespace
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

HOME = Path(__file__).resolve().parent.parent
BESIDE = ("tasks", "prompts", "storage")
INTERRUPTED = 130
GARBAGE = 100_000  # new objects, after which cyclic garbage is looked for


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; `arguments` are those of the process by default."""
    foreign = [f"{name} ({place})" for name in BESIDE if (place := _place(name)) != HOME / name]
    if foreign:
        sys.stderr.write(
            f"trellis: other packages take the names of Trellis' own: {', '.join(foreign)}.\n"
            f"Theirs come first on Python's path. Unset PYTHONPATH, or start trellis from another folder.\n"
        )
        return 2
    from flows.cli.parser import build_parser

    options = build_parser().parse_args(arguments)
    # Sources, of which there may be several, are files: their bytes stand for themselves. All else is text.
    given = [text for text in vars(options).values() if isinstance(text, str)]
    if unreadable := next((text for text in given if _no_text(text)), None):
        sys.stderr.write(f"trellis: the argument {unreadable!a} is not UTF-8.\nWrite it in UTF-8.\n")
        return 2
    if arguments is not None:
        return _run(options)
    # Only where the process is ours: what loading makes lives as long as it does, and the collector walks it in vain.
    gc.set_threshold(GARBAGE)
    ending = _Ending()
    ending.code = _run(options)
    return ending.code


class _Ending:
    """Ends the process without the last checks of extension modules.

    Prefect, and answers that were broken off, keep threads and modules to the very end, and DuckDB's binding then
    reports every object of its own as leaked. To be made before Prefect is imported: the handlers that it registers
    later, which stop its temporary server, run first.
    """

    def __init__(self) -> None:
        self.code = 1
        atexit.register(self._leave)

    def _leave(self) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(self.code)


def _no_text(text: str) -> bool:
    return any("\ud800" <= sign <= "\udfff" for sign in text)


def _place(name: str) -> Path | None:
    """The folder that `import name` would take, without importing it."""
    spec = find_spec(name)
    places = list(spec.submodule_search_locations or ()) if spec else []
    return Path(places[0]).resolve() if places else Path(spec.origin) if spec and spec.origin else None


def _run(options: Namespace) -> int:
    """The command, with the errors that are raised on purpose told in words."""
    from flows.cli.screen import Screen
    from prompts.engine.errors import EngineError
    from prompts.engine.key_masking import mask_keys, mask_logs
    from storage.errors import TrellisError
    from storage.faults import DATABASE_ERRORS, fault_of

    screen = Screen(as_json=options.json)
    mask_logs()
    module, _, function = options.run.partition(":")
    try:
        code = int(getattr(importlib.import_module(module), function)(options, screen) or 0)
        sys.stdout.flush()
    except (TrellisError, EngineError) as error:
        screen.error(error)
        return getattr(error, "exit_code", 1)
    except BrokenPipeError:
        # Whoever read our output has seen enough; the interpreter must not complain when it closes the pipe.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (OSError, MemoryError, *DATABASE_ERRORS) as error:
        screen.error(fault_of(error, getattr(error, "filename", None) or "A file") or error)
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return INTERRUPTED
    except Exception:  # noqa: BLE001 -- a fault, told in full as Python tells it, but for the keys
        sys.stderr.write(mask_keys(traceback.format_exc()))
        return 1
    return code


if __name__ == "__main__":
    sys.exit(main())
