"""Workspaces that each version of the schema wrote are opened, asked and brought up to date by this one."""

import asyncio
from pathlib import Path

import pytest

from flows.index import IndexOptions, build_index
from flows.session import open_session
from storage.archive import read_archive
from storage.database import SCHEMA_VERSION
from storage.errors import WorkspaceFormatError
from tests.workspaces import asked, opened, quays, write_rows

WRITTEN = {
    int(path.name.removeprefix("format_").removesuffix(".tar.gz")): path
    for path in (Path(__file__).parents[1] / "storage").glob("format_*.tar.gz")
}


def test_this_version_has_its_workspace() -> None:
    assert SCHEMA_VERSION in WRITTEN, "python -m tests.storage.make_format"


@pytest.mark.parametrize("version", WRITTEN)
def test_a_workspace_of_an_earlier_version(version: int, tmp_path: Path) -> None:
    """Opened with what it holds, or refused with the remedy; nothing between."""
    workspace = tmp_path / "ws"
    if version != SCHEMA_VERSION:
        with pytest.raises(WorkspaceFormatError, match="Index the sources again"):
            read_archive(WRITTEN[version], workspace)
        return
    read_archive(WRITTEN[version], workspace)
    with open_session(opened(workspace)) as session:
        assert session.generation.documents.ids() == ["d0", "d1", "d2", "d3"]
        answer = asyncio.run(asked("Who built Quay 3 of Velin?", session))
        assert "Ana Korb" in answer.answer
        assert all(citation.verified for citation in answer.citations)
    source = write_rows(tmp_path / "more.jsonl", [*quays(6)[4:]])
    report = asyncio.run(build_index([source], IndexOptions(), opened(workspace)))
    assert (report.generation, report.documents.added) == (3, 2)
    assert [info.number for info in opened(workspace).workspace.generations()] == [1, 2, 3]
