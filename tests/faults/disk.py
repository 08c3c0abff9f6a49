"""Make a disk refuse, for root and for everybody else, with and without the right to mount."""

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
from tests.test_project import NEED_AN_EXTRA

_NOBODY = 65534


@cache
def _import_all() -> None:
    """Import what commands import late: the user `nobody` may not read this Python's files."""
    for package in (flows.cli, storage):
        for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            if f"{module.name.rpartition('.')[2]}.py" not in NEED_AN_EXTRA:
                importlib.import_module(module.name)
    for name in ("encodings.cp437", "tarfile", "zipfile"):
        importlib.import_module(name)
    language_of("unos perros andaluces")


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Forbid to write in the folder. Root, whom permissions do not bind, becomes `nobody`."""
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
    """Let no file grow, as on a full disk or beyond a quota.

    Pytest's own file for printed text cannot grow either: log handlers must not report that.
    """
    reported, logging.raiseExceptions = logging.raiseExceptions, False
    try:
        with _limited(resource.RLIMIT_FSIZE, 0):
            yield
    finally:
        logging.raiseExceptions = reported


@contextmanager
def no_more_files() -> Iterator[None]:
    """Let this process open no further file."""
    free = os.open(os.devnull, os.O_RDONLY)
    os.close(free)
    with _limited(resource.RLIMIT_NOFILE, free):
        yield


@contextmanager
def _limited(what: int, most: int) -> Iterator[None]:
    limits = resource.getrlimit(what)
    resource.setrlimit(what, (most, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(what, limits)


def flip(path: Path, at: int) -> None:
    """Change one bit; `at` counts from the end where it is negative."""
    content = bytearray(path.read_bytes())
    content[at] ^= 4
    path.write_bytes(content)


def truncate(path: Path) -> None:
    """Leave half of a file."""
    os.truncate(path, path.stat().st_size // 2)
