"""A process that opens many runtimes keeps no file open behind them, also while nobody collects
garbage.
"""

import asyncio
import gc
from collections.abc import Callable
from pathlib import Path

import pytest

from flows.index import IndexOptions, build_index
from flows.query import answer_question
from flows.question import AskOptions
from flows.session import open_session
from tests.workspaces import indexed, opened, quays, write_rows


def look(workspace: Path) -> None:
    opened(workspace).workspace.database.runs.list(5)


def ask(workspace: Path) -> None:
    with open_session(opened(workspace)) as session:
        asyncio.run(answer_question("Where is Quay 1 of Velin?", AskOptions(), session))


def index(workspace: Path) -> None:
    source = write_rows(workspace.parent / "rows.jsonl", quays(3))
    asyncio.run(build_index([source], IndexOptions(), opened(workspace)))


def descriptors() -> list[str]:
    return sorted(
        str(file.readlink()) for file in Path("/proc/self/fd").iterdir() if file.is_symlink()
    )


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
        assert [file for file in descriptors() if file.startswith(str(workspace))] == [
            file for file in before if file.startswith(str(workspace))
        ]
        assert len(descriptors()) <= len(before) + 1
    finally:
        gc.enable()
