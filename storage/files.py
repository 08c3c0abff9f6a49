"""Opens the files that a user names, so that nobody waits for what is no file.

A pipe that nobody writes to, a device or a log of the kernel would be waited for without end, or
never ends. Files of a source, archives, questions, settings, rows to train on: all are opened here.
"""

import gzip
import io
import os
import stat
import zlib
from pathlib import Path

from storage.errors import UsageError

_HANDED = ("/dev/stdin", "/dev/fd/")  # what a process was started with: `<(…)` of a shell is one
_OF_THE_KERNEL = (
    "/proc/",
    "/sys/",
)  # regular files, they say; `/proc/kmsg` never ends, and who reads it empties it
_LARGEST = 100_000_000  # bytes


def open_file(path: str | Path) -> io.BufferedReader:
    """A regular file, or what the process was handed, opened for reading.

    UsageError for anything else; OSError.
    """
    if str(path).startswith(_HANDED):
        return Path(path).open("rb")
    if not stat.S_ISREG(Path(path).stat().st_mode) or os.path.realpath(path).startswith(
        _OF_THE_KERNEL
    ):
        raise UsageError(
            f"{path} is no regular file, but a pipe, a device or the like.", "Name a file."
        )
    return os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")


def content_of_file(path: str | Path, largest: int = _LARGEST) -> bytes:
    """Reads a file whole, and unpacks it where it is called .gz.

    Raises UsageError also where it has more bytes than the largest.
    """
    with open_file(path) as stream:
        try:
            content = (
                gzip.GzipFile(fileobj=stream) if Path(path).suffix == ".gz" else stream
            ).read(largest + 1)
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise UsageError(
                f"{path} is a broken gzip file ({error}).", "Use another copy of it."
            ) from error
    if len(content) > largest:
        raise UsageError(f"{path} is larger than {largest // 1_000_000:,} MB.", "Divide it.")
    return content


def text_of_file(path: str | Path) -> str:
    """The same as text, without a byte order mark; UnicodeDecodeError where it is no UTF-8."""
    return io.TextIOWrapper(io.BytesIO(content_of_file(path)), encoding="utf-8-sig").read()
