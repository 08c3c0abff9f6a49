"""Opens the files that a user names, and refuses those that would block or never end.

A pipe that nobody writes to, a device or a kernel log is such a file. Sources, archives, questions,
settings and training rows are all opened here.
"""

import gzip
import io
import os
import stat
import zlib
from pathlib import Path

from storage.errors import UsageError
from storage.system import open_without_waiting

_INHERITED = ("/dev/stdin", "/dev/fd/")  # open files of the process, such as `<(…)` of a shell
_KERNEL = ("/proc/", "/sys/")  # "regular" files, but reading `/proc/kmsg` never ends and empties it
_LARGEST = 100_000_000  # bytes


def open_file(path: str | Path) -> io.BufferedReader:
    """Open a regular file, or one that the process inherited, for reading.

    Raises UsageError for anything else, and OSError.
    """
    if str(path).startswith(_INHERITED):
        return Path(path).open("rb")
    is_regular = stat.S_ISREG(Path(path).stat().st_mode)
    if not is_regular or os.path.realpath(path).startswith(_KERNEL):
        raise UsageError(
            f"{path} is no regular file, but a pipe, a device or the like.", "Name a file."
        )
    return os.fdopen(open_without_waiting(path), "rb")


def content_of_file(path: str | Path) -> bytes:
    """Read a file, unpacked if its name ends in .gz.

    Raises UsageError also for content of more than 100 MB.
    """
    with open_file(path) as stream:
        reader = gzip.GzipFile(fileobj=stream) if Path(path).suffix == ".gz" else stream
        try:
            content = reader.read(_LARGEST + 1)
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise UsageError(
                f"{path} is a broken gzip file ({error}).", "Use another copy of it."
            ) from error
    if len(content) > _LARGEST:
        raise UsageError(f"{path} is larger than {_LARGEST // 1_000_000:,} MB.", "Divide it.")
    return content


def text_of_file(path: str | Path) -> str:
    """Read UTF-8 text without a byte order mark, with "\\n" for every line end.

    Raises UnicodeDecodeError for other encodings.
    """
    return io.TextIOWrapper(io.BytesIO(content_of_file(path)), encoding="utf-8-sig").read()
