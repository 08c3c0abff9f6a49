"""Makes a disk refuse, for root and for everybody else, with and without the right to mount."""

import importlib
import logging
import os
import pkgutil
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest

import flows.cli
import storage
from prompts.text.languages import language_of

_NOBODY = 65534


@cache
def _import_all() -> None:
    """Imports what the commands import on their way: a user who is nobody may not read this
    Python's own files.
    """
    for package in (flows.cli, storage):
        for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
    for name in ("encodings.cp437", "tarfile", "zipfile"):
        importlib.import_module(name)
    language_of("unos perros andaluces")


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Nothing in the folder may be written inside the block. Root, whom permissions do not bind, is
    nobody there.
    """
    # Our own folders.
    subprocess.run(["chmod", "-R", "a-w,a+rX", str(folder)], check=True)  # noqa: S607
    was = os.geteuid()
    _import_all()
    try:
        if was == 0:
            os.seteuid(_NOBODY)
            if not all(
                os.access(place, os.R_OK, effective_ids=True)
                for place in (sys.prefix, Path(__file__))
            ):
                pytest.skip("this Python is for root alone")
        yield
    finally:
        os.seteuid(was)
        subprocess.run(["chmod", "-R", "u+w", str(folder)], check=True)  # noqa: S607


@contextmanager
def full() -> Iterator[None]:
    """No file can grow inside the block, wherever it lies: what a full disk or a quota does.

    Pytest keeps what is printed in a file, which cannot grow either. A log handler that an earlier
    test made (Prefect's writes to that file) would report so, with a traceback, which says nothing
    of the command.
    """
    limits, reported = resource.getrlimit(resource.RLIMIT_FSIZE), logging.raiseExceptions
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))
    logging.raiseExceptions = False
    try:
        yield
    finally:
        logging.raiseExceptions = reported
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@contextmanager
def no_more_files() -> Iterator[None]:
    """This process can open no further file inside the block."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = os.open(os.devnull, os.O_RDONLY)
    os.close(free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def flip(path: Path, at: int) -> None:
    """Changes one bit; `at` counts from the end where it is negative."""
    content = bytearray(path.read_bytes())
    content[at] ^= 4
    path.write_bytes(content)


def truncate(path: Path) -> None:
    """Leaves half of a file."""
    os.truncate(path, path.stat().st_size // 2)
