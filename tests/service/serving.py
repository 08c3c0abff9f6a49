"""A service in this process, on a fresh workspace: for the page's tests and pictures."""

import asyncio
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flows.index import IndexOptions, build_index
from flows.runtime import open_runtime
from flows.service.app import create_app
from flows.service.server import serving
from flows.settings import load_settings
from tests.workspaces import write_rows


@dataclass(frozen=True)
class Served:
    """A service at an address."""

    url: str


@contextmanager
def served(folder: Path, source: Sequence[Any], **service: object) -> Iterator[Served]:
    """The service of a workspace in the folder, made of the rows or files."""
    files = [row for row in source if isinstance(row, Path)]
    sources = files or [write_rows(folder / "rows.jsonl", source)]
    runtime = open_runtime(load_settings({"workspace": folder / "ws"}))
    with ThreadPoolExecutor(1) as pool:  # Playwright has an event loop in this thread.
        pool.submit(lambda: asyncio.run(build_index(sources, IndexOptions(), runtime))).result()
    with served_workspace(folder / "ws", **service) as service_:
        yield service_


@contextmanager
def served_workspace(workspace: Path, **service: object) -> Iterator[Served]:
    """The service of an existing workspace, with these settings of `[service]`."""
    settings = load_settings({"workspace": workspace, "service": service})
    with serving(create_app(settings), port=0) as address:
        yield Served(address)
