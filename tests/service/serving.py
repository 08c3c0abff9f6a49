"""A service in this process for tests and pictures: the application on a port of its own, over a
fresh workspace.
"""

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
from flows.settings import Settings, load_settings
from storage.evaluation_records import Feedback
from tests.workspaces import write_rows


@dataclass(frozen=True)
class Served:
    """Where it answers, and its workspace."""

    url: str
    settings: Settings

    def feedback(self) -> list[Feedback]:
        """What was kept on answers."""
        return open_runtime(self.settings).workspace.database.feedback.list()


@contextmanager
def served(folder: Path, source: Sequence[Any], **service: object) -> Iterator[Served]:
    """The service of a workspace in the folder, which holds the rows or files."""
    files = [row for row in source if isinstance(row, Path)]
    sources = files or [write_rows(folder / "rows.jsonl", source)]
    runtime = open_runtime(load_settings({"workspace": folder / "ws"}))
    with ThreadPoolExecutor(1) as pool:  # this thread may have a loop: Playwright's
        pool.submit(lambda: asyncio.run(build_index(sources, IndexOptions(), runtime))).result()
    with served_workspace(folder / "ws", **service) as service_:
        yield service_


@contextmanager
def served_workspace(workspace: Path, **service: object) -> Iterator[Served]:
    """The service of a workspace that is there, with these settings of its own."""
    settings = load_settings({"workspace": workspace, "service": service})
    with serving(create_app(settings), port=0) as address:
        yield Served(address, settings)
