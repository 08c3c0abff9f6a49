"""`trellis export`, `archive`, `restore` and `clean`: files are whole, and room is freed."""

import csv
import json
import re
from pathlib import Path
from typing import get_args

import duckdb
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
            path.relative_to(tmp_path / name).as_posix(): path.read_bytes()
            for path in exported(trellis, tmp_path / name, form).rglob("*.*")
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


def test_parquet_holds_the_rows_and_the_vectors(trellis: Command, tmp_path: Path) -> None:
    out = exported(trellis, tmp_path / "it's out", "parquet")
    with Workspace(trellis.workspace).read() as generation:
        records = export(generation)
        windows = generation.vectors.windows()
    for kind in ("entities", "relations", "relation_occurrences", "chunks", "claims", "facts"):
        read = duckdb.read_parquet(str(out / f"{kind}.parquet"))
        rows = [dict(zip(read.columns, row, strict=True)) for row in read.fetchall()]
        assert sorted(rows, key=str) == sorted(records[kind], key=str)
    vectors = duckdb.read_parquet(str(out / "windows.parquet"))
    assert len(vectors.fetchall()) == len(windows) > 0


def neo4j_rows(path: Path) -> list[dict[str, str]]:
    """Read a file as Neo4j does with legacy quoting: a backslash escapes."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, doublequote=False, escapechar="\\"))


def test_neo4j_files_hold_the_graph_whatever_its_signs(
    fresh: Command, tmp_path: Path, unembedded: None
) -> None:
    odd = 'Orla \\"Big\\" Bridge, of\nVelin\\'
    rows = [{"s": odd, "p": "stands; in", "o": "Velin"}, {"s": "Velin", "p": "near", "o": "Holm"}]
    source = write_rows(tmp_path / "odd.jsonl", rows)
    assert fresh("index", str(source)).code == 0
    out = exported(fresh, tmp_path / "out", "neo4j")
    nodes = {row["id:ID(Entity)"]: row["name"] for row in neo4j_rows(out / "entity.csv")}
    assert set(nodes.values()) == {
        name for s, _, o in triples_of(fresh.workspace) for name in (s, o)
    }
    said = {
        (nodes[row[":START_ID(Entity)"]], row["predicate"], nodes[row[":END_ID(Entity)"]])
        for row in neo4j_rows(out / "relates.csv")
    }
    assert said == triples_of(fresh.workspace)
    passages = {row["id:ID(Passage)"]: row for row in neo4j_rows(out / "passage.csv")}
    with Workspace(fresh.workspace).read() as generation:
        chunks = generation.documents.chunks()
        occurrences = list(generation.graph.occurrences("entity"))
    assert [passages[chunk.id]["text"] for chunk in chunks] == [chunk.text for chunk in chunks]
    mentioned = {
        (row[":END_ID(Entity)"], row[":START_ID(Passage)"], int(start), int(end))
        for row in neo4j_rows(out / "mentions.csv")
        for start, end in zip(
            *(row[name].split("\x1f") for name in ("starts:int[]", "ends:int[]")), strict=True
        )
    }
    assert mentioned == {tuple(occurrence) for occurrence in occurrences}


def test_neo4j_scripts_name_every_file_and_column(trellis: Command, tmp_path: Path) -> None:
    out = exported(trellis, tmp_path / "out", "neo4j")
    shell, cypher = ((out / name).read_text() for name in ("import.sh", "load.cypher"))
    for path in out.glob("*.csv"):
        assert f"={path.name} " in shell
        _, found, statement = cypher.partition(f"'file:///{path.name}'")
        statement = statement.partition(";")[0]
        header = path.read_text(encoding="utf-8").splitlines()[0]
        assert found, path.name
        assert all(f"row.`{name[1:-1]}`" in statement for name in header.split(","))


def test_notes_link_and_show_no_markdown_of_texts(
    fresh: Command, tmp_path: Path, unembedded: None
) -> None:
    text = "Orla Bridge spans Velin Town. ![x](http://a.example/x.png) [[Holm]] <b>#tag %%"
    rows = [
        {"id": "a", "title": "CON", "text": text},
        {"id": "b", "title": "Orla: *Bridge*/..", "text": "Orla Bridge closed."},
        {"id": "c", "title": "con", "text": "Orla Bridge opened again."},
        {"id": "d", "title": "桥" * 100, "text": "奥拉桥(Orla Bridge)于1931年通车。"},
    ]
    source = write_rows(tmp_path / "docs.jsonl", rows)
    assert fresh("index", str(source)).code == 0
    out = tmp_path / "vault"
    (out / "Entities").mkdir(parents=True)
    assert exported(fresh, out, "obsidian") == out
    notes = {path.relative_to(out).as_posix()[:-3]: path.read_text() for path in out.rglob("*.md")}
    names = [name.rpartition("/")[2] for name in notes]
    assert len({name.casefold() for name in notes}) == len(notes)
    assert all(len(name.encode()) < 200 and not set(name) & set('\\/:*?"<>|#^[]') for name in names)
    linked = {name for note in notes.values() for name in re.findall(r"\[\[([^|\]]+)\|", note)}
    assert linked <= set(notes)
    assert "Entities/Orla Bridge" in linked
    shown = next(note for name, note in notes.items() if name.startswith("Documents/CON"))
    assert r"\!\[x\](http://a.example/x.png) \[\[Holm\]\] \<b\>\#tag \%\%" in shown
    assert "(http" not in re.sub(r"\\\]\(", "", shown)


def test_an_export_into_a_vault_keeps_notes_of_the_person(trellis: Command, tmp_path: Path) -> None:
    out = exported(trellis, tmp_path / "vault", "obsidian")
    first = set(out.rglob("*.md"))
    (note,) = out.glob("Documents/Orla Bridge.md")
    note.unlink()
    own = out / "Documents" / "orla bridge.md"
    own.write_text("mine")
    manifest = json.loads((out / MANIFEST).read_text())
    manifest["files"]["../outside.md"] = 1
    (out / MANIFEST).write_text(json.dumps(manifest))
    outside = tmp_path / "outside.md"
    outside.write_text("mine too")
    exported(trellis, out, "obsidian")
    assert (own.read_text(), outside.read_text()) == ("mine", "mine too")
    assert len(list(out.rglob("*.md"))) == len(first) + 1


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
