"""`trellis export`, `archive`, `restore` and `clean`: files are whole, and room is freed."""

import json
from pathlib import Path
from typing import get_args

import networkx as nx
import pytest

from flows import graph
from flows.operations.export import MANIFEST, ExportFormat
from storage.export import export
from storage.workspace import Workspace
from tests.flows.conftest import Command
from tests.workspaces import write_rows

QUESTION = "Who designed Orla Bridge?"


def exported(trellis: Command, folder: Path, form: str = "json") -> Path:
    assert trellis("export", str(folder), "--format", form).code == 0
    return folder


@pytest.mark.parametrize("form", get_args(ExportFormat))
def test_an_export_is_whole_and_the_same_each_time(
    trellis: Command, tmp_path: Path, form: str
) -> None:
    one, two = (
        {
            path.name: path.read_bytes()
            for path in exported(trellis, tmp_path / name, form).iterdir()
        }
        for name in ("one", "two")
    )
    assert one == two
    manifest = json.loads(one[MANIFEST])
    assert (manifest["version"], manifest["format"]) == (1, form)
    assert {MANIFEST, *manifest["files"]} == set(one)


def test_json_holds_every_record_and_can_be_indexed_as_it_is(
    trellis: Command, fresh: Command, tmp_path: Path
) -> None:
    out = exported(trellis, tmp_path / "out")
    with Workspace(trellis.workspace).read() as generation:
        records = export(generation)
    for kind, rows in records.items():
        lines = (out / f"{kind}.jsonl").read_text(encoding="utf-8").splitlines()
        assert [json.loads(line) for line in lines] == rows
    report = fresh("index", str(out / "documents.jsonl"), "--json").json
    assert report["documents"]["added"] == len(records["documents"])
    assert (report["skipped"], report["dead_letters"]) == ([], 0)


def test_graphml_and_python_give_the_same_graphs(trellis: Command, tmp_path: Path) -> None:
    out = exported(trellis, tmp_path / "out", "graphml")
    whole, ties = graph.directed(trellis.workspace), graph.undirected(trellis.workspace)
    read = nx.read_graphml(out / "graph.graphml", force_multigraph=True)
    assert set(read.edges(keys=True)) == set(whole.edges(keys=True)) != set()
    read_ties, weights = (
        {frozenset(pair): weight for pair, weight in nx.get_edge_attributes(view, "weight").items()}
        for view in (nx.read_graphml(out / "graph-undirected.graphml"), ties)
    )
    assert read_ties == weights


def triples_of(workspace: Path) -> set[tuple[str, str, str]]:
    whole = graph.directed(workspace)
    names = nx.get_node_attributes(whole, "name")
    return {
        (names[source], said["predicate"], names[target])
        for source, target, said in whole.edges(data=True)
    }


def test_a_graph_goes_out_and_comes_back_in(
    trellis: Command, fresh: Command, tmp_path: Path, unembedded: None
) -> None:
    before = triples_of(trellis.workspace)
    assert before
    report = graph.index_graph(graph.directed(trellis.workspace), fresh.workspace)
    assert (report.published, report.documents.added) == (True, 1)
    assert triples_of(fresh.workspace) == before
    out = exported(trellis, tmp_path / "out", "graphml")
    report_again = fresh("index", str(out / "graph.graphml"), "--json").json
    assert report_again["documents"]["added"] == 1
    assert triples_of(fresh.workspace) == before
    assert not graph.index_graph(graph.directed(trellis.workspace), fresh.workspace).published


def test_a_restored_workspace_answers_and_goes_on(
    copied: Command, fresh: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRELLIS_VECTOR_STORE", "chroma")
    before = copied("ask", QUESTION, "--json").json
    file = tmp_path / "kept.tar.gz"
    made = copied("archive", str(file), "--json").json
    assert (made["generation"], made["size_bytes"]) == (1, file.stat().st_size)
    restored = fresh("restore", str(file), "--json")
    assert (restored.code, restored.json["created"]) == (0, made["created"])
    after = fresh("ask", QUESTION, "--json").json
    assert (after["answer"], after["citations"]) == (before["answer"], before["citations"])
    assert list(fresh.workspace.glob("generations/*/chroma-*")), "the vectors are served as before"
    source = write_rows(tmp_path / "docs.jsonl", [{"id": "new", "text": "Velin Ferry closed."}])
    assert fresh("index", str(source), "--json").json["generation"] == 2
    assert fresh("restore", str(file)).code == copied("archive", str(file)).code == 2


def test_a_clean_up_gives_room_back_but_what_is_read(copied: Command, tmp_path: Path) -> None:
    for number in range(2):
        rows = [{"id": "new", "text": f"Note {number} names Velin."}]
        assert copied("index", str(write_rows(tmp_path / "more.jsonl", rows))).code == 0
    with Workspace(copied.workspace).read(1):
        assert copied("clean", "--keep", "1", "--json").json["removed"] == [2]
    with Workspace(copied.workspace).write():
        locked = copied("clean", "--json")
    assert (locked.code, locked.json["error"]["type"]) == (4, "WorkspaceLocked")
    cleaned = copied("clean", "--keep", "1", "--json").json
    assert (cleaned["removed"], cleaned["freed_bytes"] > 100_000) == ([1], True)
    assert copied("ask", QUESTION, "--json").json["generation"] == 3
    copied("clean")  # what the question wrote may be packed
    assert copied("clean").out.startswith("Removed no generation; freed 0.0 MB")
