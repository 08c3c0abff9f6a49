"""`trellis export` and the graph from Python: what is written is whole, is the same each time, and others read it."""

import json
from pathlib import Path
from typing import Any

import duckdb
import networkx as nx
import pytest

from flows import graph
from flows.cli.parser import FORMATS
from flows.cli.workspace import MANIFEST
from storage.export import export
from storage.workspace import Workspace
from tests.flows.conftest import Command, write_rows


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("form", FORMATS)
def test_an_export_is_whole_and_the_same_each_time(trellis: Command, tmp_path: Path, form: str) -> None:
    report = trellis("export", str(tmp_path / "one"), "--format", form, "--json").json
    manifest = json.loads((tmp_path / "one" / MANIFEST).read_text())
    assert manifest == {"version": 1, "format": form, "files": report["files"]}
    assert {MANIFEST, *report["files"]} == set(bytes_of(tmp_path / "one"))
    assert trellis("export", str(tmp_path / "two"), "--format", form).code == 0
    assert bytes_of(tmp_path / "one") == bytes_of(tmp_path / "two")


def test_json_holds_every_record_and_can_be_indexed_as_it_is(trellis: Command, fresh: Command, tmp_path: Path) -> None:
    trellis("export", str(tmp_path / "out"))
    with Workspace(trellis.workspace).read() as generation:
        records = export(generation)
    for kind, rows in records.items():
        lines = (tmp_path / "out" / f"{kind}.jsonl").read_text(encoding="utf-8").splitlines()
        assert [json.loads(line) for line in lines] == rows
    report = fresh("index", str(tmp_path / "out" / "documents.jsonl"), "--json").json
    assert report["documents"]["added"] == len(records["documents"])
    assert (report["skipped"], report["dead_letters"]) == ([], 0)


def rows_in(sql: str) -> list[dict[str, Any]]:
    """What another program reads."""
    with duckdb.connect() as connection:
        result = connection.execute(sql)
        names = [column[0] for column in result.description or ()]
        return [dict(zip(names, row, strict=True)) for row in result.fetchall()]


def test_parquet_has_the_tables_of_the_records(trellis: Command, tmp_path: Path) -> None:
    report = trellis("export", str(tmp_path / "it's"), "--format", "parquet", "--json").json
    with Workspace(trellis.workspace).read() as generation:
        records = export(generation)
    kinds = "documents", "entities", "relations", "mentions", "relation_occurrences", "chunks", "communities"
    tables = {
        kind: rows_in(f"SELECT * FROM read_parquet('{tmp_path}/it''s/{kind}.parquet')")  # noqa: S608 -- our own names
        for kind in kinds
    }
    for kind, rows in tables.items():
        assert len(rows) == len(records[kind]) == report["files"][f"{kind}.parquet"] > 0
        assert set(records[kind][0]) - set(rows[0]) <= {"parts"}
    texts = {row["id"]: row["text"] for row in tables["documents"]}
    owner = {row["id"]: row["document"] for row in tables["chunks"]}
    places = [row for row in tables["mentions"] if row["end"] > row["start"]]
    assert places
    for row in places:
        assert texts[owner[row["chunk"]]][row["start"] : row["end"]] == row["name"]


def test_graphml_and_python_give_the_same_graphs(trellis: Command, tmp_path: Path) -> None:
    trellis("export", str(tmp_path / "out"), "--format", "graphml")
    whole, ties = graph.directed(trellis.workspace), graph.undirected(trellis.workspace)
    read = nx.read_graphml(tmp_path / "out" / "graph.graphml", force_multigraph=True)
    assert set(read.edges(keys=True)) == set(whole.edges(keys=True))
    assert read.number_of_edges() > 0
    weights = nx.get_edge_attributes(nx.read_graphml(tmp_path / "out" / "graph-undirected.graphml"), "weight")
    assert {frozenset(pair): weight for pair, weight in weights.items()} == {
        frozenset(pair): weight for pair, weight in nx.get_edge_attributes(ties, "weight").items()
    }


@pytest.mark.parametrize("manifest", ["", "[]", '{"files": 5}'])
def test_a_folder_that_holds_other_files_is_left_alone(trellis: Command, tmp_path: Path, manifest: str) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    if manifest:
        (tmp_path / MANIFEST).write_text(manifest)
    done = trellis("export", str(tmp_path), "--json")
    assert (done.code, done.json["error"]["type"]) == (2, "UsageError")
    assert (tmp_path / "mine.txt").read_text() == "mine"
    assert trellis("export", str(tmp_path / "mine.txt")).code == 2


def test_another_export_takes_the_place_of_the_first_and_of_nothing_else(copied: Command, tmp_path: Path) -> None:
    before, now = tmp_path / "before", tmp_path / "now"
    copied("index", str(write_rows(tmp_path / "more.jsonl", [{"id": "more", "text": "Ana Korb met Ivo Lamm."}])))
    copied("export", str(before), "--as-of", "1")
    copied("export", str(now))
    assert '"more"' not in (before / "documents.jsonl").read_text()
    assert '"more"' in (now / "documents.jsonl").read_text()
    older, newer = graph.directed(copied.workspace, as_of=1), graph.directed(copied.workspace)
    assert older.number_of_nodes() < newer.number_of_nodes()
    (now / "notes.jsonl").write_text("mine")
    assert copied("export", str(now), "--format", "graphml").code == 0
    assert sorted(bytes_of(now)) == ["export.json", "graph-undirected.graphml", "graph.graphml", "notes.jsonl"]
