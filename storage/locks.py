"""Who writes a workspace, and who still reads a generation?

Both are `flock` locks, which the system frees when their process ends, however it ends.
"""

import fcntl
import json
import os
import socket
from datetime import UTC, datetime
from pathlib import Path

from storage.errors import WorkspaceLocked
from storage.faults import faults_told


class WriterLock:
    """Held from construction until `release`. Raises WorkspaceLocked, naming the holder, where another holds it."""

    def __init__(self, path: Path) -> None:
        with faults_told(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._descriptor)
            raise _locked(path) from None
        holder = {
            "pid": os.getpid(),
            "host": socket.gethostname(),
            "since": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        try:
            with faults_told(path):
                os.ftruncate(self._descriptor, 0)
                os.pwrite(self._descriptor, json.dumps(holder).encode(), 0)
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _locked(path: Path) -> WorkspaceLocked:
    try:
        holder = json.loads(path.read_bytes())
        return WorkspaceLocked(path.parent, int(holder["pid"]), str(holder["host"]), str(holder["since"]))
    except (ValueError, KeyError, TypeError):
        # The holder has the lock but has not written its name yet.
        return WorkspaceLocked(path.parent, 0, "", "")


class Lease:
    """A hold on a generation's folder through its lease file: shared by readers, exclusive for whoever removes it."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    @classmethod
    def take(cls, path: Path, exclusive: bool = False) -> "Lease | None":
        """None where the folder is gone or going, or (exclusive) where it has readers."""
        try:
            with faults_told(path):
                descriptor = os.open(path, os.O_RDONLY)
        except FileNotFoundError:
            return None
        try:
            fcntl.flock(descriptor, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)
            # The folder may have been removed between opening and locking: the lock is then on a file without a name.
            if os.path.samestat(os.fstat(descriptor), path.stat()):
                return cls(descriptor)
        except (BlockingIOError, FileNotFoundError):
            pass
        os.close(descriptor)
        return None

    def release(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
