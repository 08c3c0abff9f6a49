"""Makes a fresh process like one of Windows, as far as Linux can be: `become_windows()`.

Our modules have no `fcntl`, `resource` or `pwd`, and open no folder. `storage.system` is that of
Windows, on a `msvcrt` whose locks are Linux's locks of bytes by descriptor. A file that this
process has open, and a folder that holds one, can be neither moved nor removed.

It does not show what other libraries do on Windows, its file names, consoles or signals.
"""

import asyncio  # noqa: F401 -- storage.system imports it while the platform is another
import builtins
import errno
import fcntl
import os
import struct
import subprocess
import sys
import tempfile  # noqa: F401 -- the same
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

OURS = ("flows", "tasks", "prompts", "storage")
POSIX_ONLY = ("fcntl", "grp", "pwd", "resource", "termios")
_import: Callable[..., ModuleType] = builtins.__import__


class Msvcrt(ModuleType):
    """The part of `msvcrt` that we use."""

    LK_NBLCK = 2

    @staticmethod
    def locking(descriptor: int, _: int, count: int) -> None:
        """Lock bytes from the place of the descriptor on. Raises PermissionError."""
        start = os.lseek(descriptor, 0, os.SEEK_CUR)
        lock = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, start, count, 0)
        try:
            fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, lock)
        except BlockingIOError as error:
            raise PermissionError(errno.EACCES, "locked") from error


def importing(
    name: str, variables: Mapping[str, Any] | None = None, *rest: Any, **named: Any
) -> ModuleType:
    """Import for our modules what Windows has."""
    importer = str((variables or {}).get("__name__", "")).partition(".")[0]
    if importer in OURS and name in POSIX_ONLY:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    if importer in OURS and name == "msvcrt":
        return Msvcrt(name)
    return _import(name, variables, *rest, **named)


def refuse(event: str, arguments: Sequence[Any]) -> None:
    """Raise PermissionError for what Windows refuses; an audit hook."""
    if event == "open":
        ours = sys._getframe(1).f_globals.get("__name__", "").partition(".")[0] in OURS
        if ours and isinstance(arguments[0], str | Path) and Path(arguments[0]).is_dir():
            raise PermissionError(errno.EACCES, "a folder", str(arguments[0]))
    elif event in {"os.rename", "os.remove", "os.rmdir"}:
        moved = event == "os.rename"
        for name, folder in zip(arguments[: 1 + moved], arguments[1 + moved :], strict=False):
            base = "" if folder in {-1, None} else Path(f"/proc/self/fd/{folder}").readlink()
            if is_open(str(Path(base, os.fsdecode(name)).resolve())):
                raise PermissionError(errno.EACCES, "in use", name)


def is_open(path: str) -> bool:
    """Whether this process has the file open, or a file in the folder."""
    for descriptor in list(Path("/proc/self/fd").iterdir()):
        try:
            target = descriptor.readlink()
        except FileNotFoundError:  # that of the list itself
            continue
        if target.is_relative_to(path) and target.is_file():
            return True
    return False


def become_windows() -> None:
    """From now on our modules find what the module says."""
    subprocess.CREATE_NEW_PROCESS_GROUP = 0  # type: ignore[attr-defined]
    builtins.__import__ = importing  # type: ignore[assignment]
    platform, sys.platform = sys.platform, "win32"
    _import("storage.system")  # the modules that it needs are there already
    sys.platform = platform
    sys.addaudithook(refuse)
