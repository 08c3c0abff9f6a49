"""Older generations stay what they were, and workspaces of earlier versions open: compared, asked,
gone back to.
"""

import asyncio
from pathlib import Path

import pytest

from flows.index import IndexOptions, build_index
from flows.operations.diff import diff
from flows.session import open_session
from storage.archive import read_archive
from storage.database import SCHEMA_VERSION
from storage.errors import WorkspaceFormatError
from storage.export import KINDS
from storage.workspace import Workspace
from tests.copying import copy_of
from tests.flows.conftest import ROWS, Command
from tests.workspaces import asked, opened, quays, write_rows

LENGTH = "How long is Orla Bridge?"
AFTER = str(ROWS[0]["text"]).replace("412", "430")
FERRY = {
    "id": "ferry",
    "title": "Velin Ferry",
    "text": "The Velin Ferry was run by Ivo Lamm until 1950.",
}


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Generation 2 has another length of the bridge, the ferry, `korb` for `reyd`, and lacks the
    Chinese document.
    """
    folder = tmp_path_factory.mktemp("versions")
    options = IndexOptions(allow_removals=True)
    for rows in (ROWS, [ROWS[0] | {"text": AFTER}, ROWS[1] | {"id": "korb"}, FERRY]):
        source = write_rows(folder / "docs.jsonl", rows)
        asyncio.run(build_index([source], options, opened(folder / "ws")))
    return folder / "ws"


@pytest.fixture
def two(
    changed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], unembedded: None
) -> Command:
    """The command on a copy with both generations."""
    return Command(copy_of(changed, tmp_path / "two"), capsys)


def test_back_is_the_reverse_of_forth(changed: Path) -> None:
    forth, back = diff(1, 2, workspace=changed), diff(2, 1, workspace=changed)
    with Workspace(changed).read(1) as old, Workspace(changed).read(2) as new:
        counts = {
            kind: (len(old.items.prints(kind)), len(new.items.prints(kind))) for kind in KINDS
        }
    for kind in KINDS:
        one, other = forth.of(kind), back.of(kind)
        assert {t.id for t in one.added} == {t.id for t in other.removed}
        assert {t.id for t in one.removed} == {t.id for t in other.added}
        assert (len(one.changed), one.unchanged) == (len(other.changed), other.unchanged)
        kept = len(one.changed) + one.unchanged
        assert (len(one.removed) + kept, len(one.added) + kept) == counts[kind]
    assert not forth.same
    assert diff(2, workspace=changed).same


def test_diff_names_what_changed(two: Command) -> None:
    shown = two("diff", "1").out
    assert shown.startswith("From generation 1 to generation 2\n")
    assert "documents: 1 added, 1 removed, 2 changed, 0 as before" in shown
    assert "  + Velin Ferry (ferry)\n" in shown
    found = two("diff", "1", "2", "--json").json
    assert found["documents"]["added"] == [{"id": "ferry", "label": "Velin Ferry"}]
    fields = {
        one["id"]: {field["field"]: field for field in one["fields"]}
        for one in found["documents"]["changed"]
    }
    # The same text by another name.
    assert fields["korb"] == {"id": {"field": "id", "before": "reyd", "after": "korb"}}
    text = fields["bridge"]["text"]
    assert ("412" in text["before"], "430" in text["after"]) == (True, True)
    assert "Ivo Lamm" in {one["label"] for one in found["entities"]["added"]}
    assert "托马斯·雷德" in {one["label"] for one in found["entities"]["removed"]}


def test_an_unknown_generation_names_those_that_exist(two: Command) -> None:
    unknown = two("diff", "1", "7", "--json")
    assert (unknown.code, unknown.json["error"]["type"]) == (2, "UnknownGeneration")
    assert "Kept: 1, 2" in unknown.json["error"]["remedy"]
    assert two("rollback", "9").code == two("ask", LENGTH, "--as-of", "9").code == 2


def test_generations_can_be_rolled_back_to(two: Command) -> None:
    assert (two("show", "ferry").code, two("show", "ferry", "--as-of", "1").code) == (0, 2)
    assert two("rollback", "1", "--json").json == {"generation": 1, "before": 2}
    assert two("show", "ferry").code == 2


def test_a_rollback_takes_back_what_was_edited(two: Command) -> None:
    def kind() -> object:
        return two("graph", "Tomas Reyd", "--json").json["entities"][0]["kind"]

    before = kind()
    assert two("graph", "edit", "Tomas Reyd", "--kind", "monument").code == 0
    for number, expected in ((2, before), (3, "monument")):
        assert two("rollback", str(number)).code == 0
        assert kind() == expected
    assert len(two("graph", "edits", "--json").json) == 1


def test_a_question_on_an_older_generation(two: Command, tmp_path: Path) -> None:
    now, then = two("ask", LENGTH, "--json").json, two("ask", LENGTH, "--as-of", "1", "--json").json
    assert (now["generation"], then["generation"]) == (2, 1)
    assert ("430" in now["answer"], "412" in then["answer"]) == (True, True)
    rows = [{"id": 1, "question": LENGTH}, {"id": 2, "question": "Velin Ferry"}]
    questions = write_rows(tmp_path / "q.jsonl", rows)
    first, second = two("ask", "--questions", str(questions), "--as-of", "1").rows
    assert "412" in first["answer"]
    assert "Lamm" not in str(second)
    found = two("retrieve", LENGTH, "--as-of", "1", "--json").json
    assert {passage["document"] for passage in found["passages"]} <= {"bridge", "reyd", "桥"}


# --- forgetting ---


def test_forgetting_also_removes_what_cannot_be_looked_into(two: Command) -> None:
    damaged = two.workspace / "generations" / "000001"  # it may hold the document
    (damaged / "manifest.json").unlink()
    (damaged / "generation.duckdb").write_bytes(b"damaged")
    assert two("forget", "ferry").code == 0
    assert [one["number"] for one in two("generations", "--json").json] == [3]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_forgotten_row_leaves_its_uploaded_file(
    encoding: str, fresh: Command, unembedded: None
) -> None:
    uploads = fresh.workspace / "uploads"
    uploads.mkdir(parents=True)
    file = write_rows(uploads / "rows.jsonl", quays(2))
    file.write_text(file.read_text("utf-8"), encoding)
    assert fresh("index", str(uploads)).code == 0
    report = fresh("forget", "d1", "--json").json
    assert (report["uploads"], report["files"]) == (["rows.jsonl"], [])
    left = file.read_text("utf-8")
    assert ("Quay 0" in left, "Quay 1" in left) == (True, False)


def test_an_upload_with_no_row_to_take_out_is_reported_as_left(
    fresh: Command, unembedded: None
) -> None:
    file = fresh.workspace / "uploads" / "rows.jsonl"
    file.parent.mkdir(parents=True)
    write_rows(file, quays(2))
    assert fresh("index", str(file.parent)).code == 0
    file.write_bytes(b"\0\x01 no text any more")
    report = fresh("forget", "d1", "--json").json
    assert (report["uploads"], report["files"]) == ([], [str(file)])


# --- earlier versions ---

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
    source = write_rows(tmp_path / "more.jsonl", quays(6)[4:])
    report = asyncio.run(build_index([source], IndexOptions(), opened(workspace)))
    assert (report.generation, report.documents.added) == (3, 2)
    assert [info.number for info in opened(workspace).workspace.generations()] == [1, 2, 3]
