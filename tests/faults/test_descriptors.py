"""A process that opens many runtimes keeps no file open, also without garbage collection."""

import asyncio
import gc
from collections.abc import Callable
from pathlib import Path

import pytest

from flows.index import IndexOptions, build_index
from flows.session import open_session
from tests.workspaces import asked, indexed, opened, quays, write_rows


def look(workspace: Path) -> None:
    opened(workspace).workspace.database.runs.list(5)


def ask(workspace: Path) -> None:
    with open_session(opened(workspace)) as session:
        asyncio.run(asked("Where is Quay 1 of Velin?", session))


def index(workspace: Path) -> None:
    source = write_rows(workspace.parent / "rows.jsonl", quays(3))
    asyncio.run(build_index([source], IndexOptions(), opened(workspace)))


def descriptors() -> list[str]:
    files = [file for file in Path("/proc/self/fd").iterdir() if file.is_symlink()]
    return sorted(str(file.readlink()) for file in files)


@pytest.mark.parametrize(("use", "times"), [(look, 50), (ask, 50), (index, 5)])
def test_many_runtimes_leave_no_file_open(
    use: Callable[[Path], None], times: int, tmp_path: Path
) -> None:
    workspace = indexed(tmp_path, quays(2))
    use(workspace)
    gc.collect()
    before = descriptors()
    gc.disable()
    try:
        for _ in range(times):
            use(workspace)
        after = descriptors()
    finally:
        gc.enable()
    inside = [[f for f in files if f.startswith(str(workspace))] for files in (before, after)]
    assert inside[0] == inside[1]
    assert len(after) <= len(before) + 1
