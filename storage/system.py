"""What differs between operating systems: locks, moving and removing files, limits, signals.

Every other module is the same on Linux, macOS and Windows. What Windows does otherwise:

- A lock is on bytes of a file and never shared, and a folder cannot be opened: a folder is locked
  by a file beside it, of which each reader locks one byte, and who wants it alone all bytes.
- An open file can be neither replaced, moved nor removed, nor can a folder that holds one.
- A process cannot send itself a signal, and its event loop does not handle signals.
"""

import asyncio
import os
import random
import re
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

if sys.platform == "win32":
    import msvcrt

    # Far beyond the content of any locked file: nobody else can read locked bytes.
    _LOCKED_FROM = 1 << 30
    _LOCKED_BYTES = 1 << 20
    _SHARED_ATTEMPTS = 16  # two readers meet on one byte once in a million times
    _REPLACE_ATTEMPTS = 100
    _REPLACE_PAUSE = 0.02  # seconds
    # What is not allowed in a name, or is taken for a device, a stream or another name.
    _NO_NAME = re.compile(
        r'[<>:"|?*]|[ .]$|^(con|prn|aux|nul|com\d|lpt\d)(\.|$)', flags=re.IGNORECASE
    )

    HANDLES_SIGNALS = False
    # The arguments of a new process that Ctrl-C in the terminal does not reach.
    APART: dict[str, Any] = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}

    def lock(descriptor: int, shared: bool = False) -> bool:
        """Lock an open file for this descriptor without waiting; return whether that succeeded.

        Many may hold a `shared` lock at once. The system frees it when the descriptor is closed or
        the process ends in any way.
        """
        place = os.lseek(descriptor, 0, os.SEEK_CUR)
        offsets = random.sample(range(_LOCKED_BYTES), _SHARED_ATTEMPTS) if shared else [0]
        try:
            for offset in offsets:
                os.lseek(descriptor, _LOCKED_FROM + offset, os.SEEK_SET)
                with suppress(PermissionError):
                    msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1 if shared else _LOCKED_BYTES)
                    return True
            return False
        finally:
            os.lseek(descriptor, place, os.SEEK_SET)  # what is written next belongs there

    def open_folder_lock(folder: Path) -> int:
        """Open what is locked for a folder. Raises FileNotFoundError, NotADirectoryError."""
        if not folder.is_dir():
            raise FileNotFoundError(folder)
        return os.open(folder.with_name(f".{folder.name}.lock"), os.O_RDWR | os.O_CREAT)

    def is_still_there(descriptor: int, folder: Path) -> bool:
        """Whether the folder for which a lock was opened was not moved or removed meanwhile."""
        return folder.is_dir()

    def sync(path: Path) -> None:
        """Force a file's content to the disk; the list of a folder's names cannot be forced."""
        if path.is_dir():
            return
        with path.open("r+b") as file:
            os.fsync(file.fileno())

    def replace(source: Path, target: Path) -> None:
        """Move a closed file to the place of another; wait for 2 s where somebody reads that."""
        for _ in range(_REPLACE_ATTEMPTS):
            with suppress(PermissionError):
                source.replace(target)
                return
            time.sleep(_REPLACE_PAUSE)
        source.replace(target)

    def replace_open(file: BinaryIO, target: Path) -> None:
        """Move an open file to the place of another, and close it."""
        file.close()
        replace(Path(file.name), target)

    def discard(file: BinaryIO) -> None:
        """Close an open file, and remove it if it is still there."""
        file.close()
        Path(file.name).unlink(missing_ok=True)

    def remove_unlocked(path: Path) -> bool:
        """Remove a file. Raises PermissionError where somebody has it open."""
        path.unlink()
        return True

    def is_name(part: str) -> bool:
        """Whether a part of a path can be the name of a file."""
        return not _NO_NAME.search(part)

    def is_file_size_limited() -> bool:
        """Whether a limit of the process may keep a file from growing."""
        return False

    def private_folder(name: str) -> Path | None:
        """Make a folder among the temporary ones, which each user has; None where it is none."""
        folder = Path(tempfile.gettempdir()) / name
        with suppress(FileExistsError):
            folder.mkdir()
        return folder if folder.is_dir() else None

    def send_to_itself(number: signal.Signals) -> None:
        """Let this process handle a signal, from any of its threads."""
        signal.raise_signal(number)  # os.kill would end the process at once

    def on_signals(numbers: Sequence[signal.Signals], call: Callable[[], object]) -> None:
        """Let the running event loop make a call for each of these signals from now on."""
        loop = asyncio.get_running_loop()
        for number in numbers:
            signal.signal(number, lambda *_: loop.call_soon_threadsafe(call))

else:
    import fcntl
    import resource

    HANDLES_SIGNALS = True
    # The arguments of a new process that Ctrl-C in the terminal does not reach.
    APART: dict[str, Any] = {"start_new_session": True}

    def lock(descriptor: int, shared: bool = False) -> bool:
        """Lock an open file or folder for this descriptor without waiting; return whether that
        succeeded.

        Many may hold a `shared` lock at once. The system frees it when the descriptor is closed or
        the process ends in any way.
        """
        kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def open_folder_lock(folder: Path) -> int:
        """Open what is locked for a folder. Raises FileNotFoundError, NotADirectoryError."""
        return os.open(folder, os.O_RDONLY)

    def is_still_there(descriptor: int, folder: Path) -> bool:
        """Whether the folder for which a lock was opened was not moved or removed meanwhile."""
        try:
            return os.path.samestat(os.fstat(descriptor), folder.stat())
        except FileNotFoundError:
            return False

    def sync(path: Path) -> None:
        """Force a file's content, or the list of a folder's names, to the disk."""
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def replace(source: Path, target: Path) -> None:
        """Move a file to the place of another."""
        source.replace(target)

    def replace_open(file: BinaryIO, target: Path) -> None:
        """Move an open file to the place of another; it stays open, and locked."""
        file.flush()
        Path(file.name).replace(target)

    def discard(file: BinaryIO) -> None:
        """Remove an open file, if it is still there."""
        Path(file.name).unlink(missing_ok=True)

    def remove_unlocked(path: Path) -> bool:
        """Remove a file; return False where somebody has locked it. Raises OSError."""
        with path.open("rb") as file:
            if not lock(file.fileno()):
                return False
            path.unlink()
        return True

    def is_name(part: str) -> bool:
        """Whether a part of a path can be the name of a file."""
        return True

    def is_file_size_limited() -> bool:
        """Whether a limit of the process may keep a file from growing."""
        return resource.getrlimit(resource.RLIMIT_FSIZE)[0] != resource.RLIM_INFINITY

    def private_folder(name: str) -> Path | None:
        """Make a folder of this user's among the temporary ones; None where it is a link, a file,
        or somebody else's.
        """
        folder = Path(tempfile.gettempdir()) / f"{name}-{os.getuid()}"
        with suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        found = folder.lstat()  # any user may have made a link to a folder of this one's
        return folder if stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() else None

    def send_to_itself(number: signal.Signals) -> None:
        """Let this process receive a signal, from any of its threads."""
        os.kill(os.getpid(), number)

    def on_signals(numbers: Sequence[signal.Signals], call: Callable[[], object]) -> None:
        """Let the running event loop make a call for each of these signals from now on."""
        for number in numbers:
            asyncio.get_running_loop().add_signal_handler(number, call)


def open_without_waiting(path: str | Path) -> int:
    """Open a file for reading; a pipe to which nobody writes does not block."""
    flags = ("O_NONBLOCK", "O_CLOEXEC", "O_BINARY")  # those that the system has
    return os.open(path, os.O_RDONLY | sum(getattr(os, flag, 0) for flag in flags))
