"""`trellis export` and the graph from Python: what is written is whole, is the same each time, and others read it."""

import json
import shutil
from pathlib import Path
from typing import Any

import duckdb
import networkx as nx
import pytest

from flows import graph
from flows.operations.export import FORMATS, MANIFEST
from storage.export import export
from storage.workspace import Workspace
from tests.flows.conftest import Command


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


def test_json_holds_every_record(trellis: Command, tmp_path: Path) -> None:
    trellis("export", str(tmp_path / "out"))
    with Workspace(trellis.workspace).read() as generation:
        found = export(generation)
    for kind, rows in found.items():
        lines = (tmp_path / "out" / f"{kind}.jsonl").read_text(encoding="utf-8").splitlines()
        assert [json.loads(line) for line in lines] == rows


def test_exported_documents_can_be_indexed_as_they_are(trellis: Command, fresh: Command, tmp_path: Path) -> None:
    trellis("export", str(tmp_path / "out"))
    report = fresh("index", str(tmp_path / "out" / "documents.jsonl"), "--json").json
    assert report["documents"]["added"] == len(trellis("status", "--json").json["documents"])
    assert (report["skipped"], report["dead_letters"]) == ([], 0)


def rows_in(sql: str) -> list[dict[str, Any]]:
    """What another program reads."""
    with duckdb.connect() as connection:
        result = connection.execute(sql)
        names = [column[0] for column in result.description or ()]
        return [dict(zip(names, row, strict=True)) for row in result.fetchall()]


def test_parquet_has_the_tables_of_the_records(trellis: Command, tmp_path: Path) -> None:
    report = trellis("export", str(tmp_path / "it's"), "--format", "parquet", "--json").json
    assert {"entities.parquet", "relations.parquet", "mentions.parquet", "reports.parquet"} <= set(report["files"])
    with Workspace(trellis.workspace).read() as generation:
        found = export(generation)
    tables = {
        kind: rows_in(f"SELECT * FROM read_parquet('{tmp_path}/it''s/{kind}.parquet')")  # noqa: S608 -- our own names
        for kind in ("documents", "entities", "relations", "mentions", "relation_occurrences", "chunks", "communities")
    }
    for kind, rows in tables.items():
        assert len(rows) == len(found[kind]) == report["files"][f"{kind}.parquet"] > 0
        assert set(found[kind][0]) - set(rows[0]) <= {"parts"}
    texts = {one["id"]: one["text"] for one in tables["documents"]}
    owner = {one["id"]: one["document"] for one in tables["chunks"]}
    places = [one for one in tables["mentions"] if one["end"] > one["start"]]
    assert places
    for one in places:
        assert texts[owner[one["chunk"]]][one["start"] : one["end"]] == one["name"]


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
    assert max(weights.values()) == 1.0


def test_another_export_takes_the_place_of_the_first_and_of_nothing_else(trellis: Command, tmp_path: Path) -> None:
    out = tmp_path / "out"
    trellis("export", str(out))
    (out / "notes.jsonl").write_text("mine")
    assert trellis("export", str(out), "--format", "graphml").code == 0
    assert sorted(bytes_of(out)) == ["export.json", "graph-undirected.graphml", "graph.graphml", "notes.jsonl"]


@pytest.mark.parametrize("manifest", ["", "[]", '{"files": 5}'])
def test_a_folder_that_holds_other_files_is_left_alone(trellis: Command, tmp_path: Path, manifest: str) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    if manifest:
        (tmp_path / MANIFEST).write_text(manifest)
    done = trellis("export", str(tmp_path), "--json")
    assert (done.code, done.json["error"]["type"]) == (2, "UsageError")
    assert (tmp_path / "mine.txt").read_text() == "mine"
    assert trellis("export", str(tmp_path / "mine.txt")).code == 2
    assert trellis("export", str(tmp_path / "x"), "--format", "yaml").code == 2


def test_an_earlier_generation_can_be_exported(copied: Command, tmp_path: Path) -> None:
    (tmp_path / "more.jsonl").write_text('{"id": "more", "text": "Ana Korb met Ivo Lamm."}\n')
    assert copied("index", str(tmp_path / "more.jsonl")).code == 0
    copied("export", str(tmp_path / "before"), "--as-of", "1")
    copied("export", str(tmp_path / "now"))
    assert "more" not in (tmp_path / "before" / "documents.jsonl").read_text()
    assert '"more"' in (tmp_path / "now" / "documents.jsonl").read_text()
    assert (
        graph.directed(copied.workspace, as_of=1).number_of_nodes() < graph.directed(copied.workspace).number_of_nodes()
    )
    shutil.rmtree(copied.workspace)
    assert copied("export", str(tmp_path / "none")).code == 2
    assert not (tmp_path / "none").exists()
