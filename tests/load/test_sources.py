"""Reading sources: which files, which ids, what is skipped and what becomes a dead letter."""

import gzip
import itertools
import json
import os
from pathlib import Path
from typing import BinaryIO

import networkx as nx
import numpy as np
import pytest

from storage.errors import SourceNotFound, TooLittle
from storage.records import Document
from tasks.load.discover import SourceFile
from tasks.load.encodings import Unreadable
from tasks.load.rows import TooManyDocuments, collect
from tasks.load.sources import Loaded, compose, read_sources, read_unchanged
from tests.faults.disk import no_more_files

CORPUS = Path(__file__).parents[2] / "examples" / "corpus"


def load(*sources: Path | str) -> tuple[Loaded, dict[str, Document]]:
    loaded = read_sources(sources)
    return loaded, {document.id: document for document in compose(loaded.parts)}


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def rows(path: Path, *values: object) -> Path:
    lines = [value if isinstance(value, str) else json.dumps(value) for value in values]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def reasons(loaded: Loaded) -> dict[str, str]:
    """The reason for each file that was skipped, without its details."""
    return {Path(one.path).name: one.reason.split(" (")[0] for one in loaded.skipped}


# --- files ---


def test_ids_are_relative_to_the_source(tmp_path: Path) -> None:
    write(tmp_path, {"a.md": "# A\n\nOne.", "sub/b.txt": "Two words"})
    assert sorted(load(tmp_path)[1]) == ["a.md", "sub/b.txt"]
    assert sorted(load(tmp_path / "sub" / "b.txt")[1]) == ["b.txt"]
    loaded, documents = load(str(tmp_path / "**" / "*.txt"))
    assert sorted(documents) == ["sub/b.txt"]
    assert loaded.sources == ((tmp_path / "**" / "*.txt").as_posix(),)


@pytest.mark.parametrize("source", ["a.md", "sub"])
def test_without_open_files_left_nothing_counts_as_removed(source: str, tmp_path: Path) -> None:
    write(tmp_path, {"a.md": "One.", "sub/b.txt": "Two words"})
    with no_more_files(), pytest.raises(TooLittle, match="Too many open files"):
        read_sources([tmp_path / source])


def test_a_missing_source_stops_before_anything_is_read(tmp_path: Path) -> None:
    assert load(tmp_path)[0].parts == (), "an empty folder is allowed"
    for missing in (tmp_path / "none", tmp_path / "*.pdf"):
        with pytest.raises(SourceNotFound, match=missing.name.replace("*", r"\*")):
            read_sources([tmp_path, missing])


def test_hidden_files_are_ignored_and_unreadable_ones_reported(tmp_path: Path) -> None:
    names = ["good.md", ".git/c.md", "node_modules/d.md", "e.xyz"]
    write(tmp_path, {**dict.fromkeys(names, "x"), "f.txt": " \n", "j.json": "{"})
    (tmp_path / "g.txt").write_bytes(b"a\0b")
    (tmp_path / "h.pdf").write_bytes(b"%PDF-1.4 broken")
    (tmp_path / "i.docx").write_bytes(b"PK\x03\x04 broken")
    (tmp_path / "k.jsonl.gz").write_bytes(b"no gzip")
    (tmp_path / "l.graphml").write_text("<html/>")
    os.mkfifo(tmp_path / "m.txt")
    loaded, documents = load(tmp_path)
    assert list(documents) == ["good.md"]
    assert reasons(loaded) == {
        "e.xyz": "unsupported type .xyz",
        "f.txt": "empty",
        "g.txt": "binary, or text of an unknown encoding",
        "h.pdf": "broken PDF",
        "i.docx": "broken file",
        "j.json": "broken JSON",
        "k.jsonl.gz": "broken gzip file",
        "l.graphml": "broken GraphML",
        "m.txt": "not a regular file",
    }


def test_links_out_of_the_source_are_not_followed(tmp_path: Path) -> None:
    outside, inside = tmp_path / "outside", tmp_path / "inside"
    write(outside, {"secret.md": "secret"})
    write(inside, {"a.md": "x"})
    (inside / "link.md").symlink_to(outside / "secret.md")
    (inside / "folder").symlink_to(outside)
    (inside / "loop").symlink_to(inside)
    (inside / "broken.md").symlink_to(inside / "gone.md")
    loaded, documents = load(inside)
    assert list(documents) == ["a.md"]
    assert sorted(reasons(loaded)) == ["broken.md", "folder", "link.md", "loop"]


def test_plain_text_under_other_names_is_read(tmp_path: Path) -> None:
    text = "The weir fee is 55.\n"
    write(tmp_path, dict.fromkeys(("a.log", "b.rst", "README", "sub/README"), text))
    write(tmp_path, {"c.xhtml": f"<html><body>{text}</body></html>"})
    rows(tmp_path / "d.ndjson", {"text": text})
    loaded, documents = load(tmp_path)
    assert sorted(documents) == ["README", "a.log", "b.rst", "c.xhtml", "d.ndjson#1", "sub/README"]
    assert {document.text.strip() for document in documents.values()} == {text.strip()}
    assert not loaded.skipped


@pytest.mark.parametrize(
    ("sample", "name", "reason"),
    [
        ("bearing-manual.pdf", "a.txt", "a PDF file under the name of .txt: name it .pdf"),
        ("survey-2024.docx", "a.csv", "a zip archive under the name of .csv: name it .docx"),
        ("survey-2024.docx", "a.pdf", "a zip archive under the name of .pdf: name it .docx"),
    ],
)
def test_a_file_under_a_false_name_is_skipped(
    sample: str, name: str, reason: str, tmp_path: Path
) -> None:
    [path] = CORPUS.rglob(f"*{sample}")
    (tmp_path / name).write_bytes(path.read_bytes())
    assert [one.reason for one in load(tmp_path)[0].skipped] == [reason]


@pytest.mark.parametrize(("times", "text"), [(0, "one two"), (1, "one three"), (2, "one four")])
def test_a_file_that_changes_meanwhile_is_read_again(times: int, text: str, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("one two")
    written = iter(["one three", "one four"][:times])

    def read(file: BinaryIO) -> bytes:
        data = file.read(4)
        if (later := next(written, None)) is not None:
            path.write_text(later)
            os.utime(path, ns=(0, len(later)))  # The clocks of disks are coarse.
        return data + file.read()

    assert read_unchanged(str(path), read) == text.encode()


def test_a_file_that_never_stops_changing_is_skipped(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text("one\n")

    def read(file: BinaryIO) -> bytes:
        with path.open("a") as log:
            log.write("two\n")
        return file.read()

    with pytest.raises(Unreadable, match="being written: index again"):
        read_unchanged(str(path), read)


# --- rows ---


def test_rows_become_documents_triples_and_dead_letters(tmp_path: Path) -> None:
    path = rows(
        tmp_path / "mixed.jsonl",
        {
            "id": 7,
            "title": "Orla",
            "text": "Orla is\r\na bridge.",
            "year": 1932,
            "tags": ["a", "b"],
        },
        {"text": "No id here"},
        {"s": "x_y", "p": "part of", "o": "z"},
        {"s": "x_y", "p": "part of", "o": "z", "weight": 2},
        {"s": "Orla", "p": "spans", "o": "Elbe", "document": "7"},
        "{broken",
        {"title": "neither"},
        {"s": "", "p": "p", "o": "o"},
        ["list"],
        {"text": 5},
        {"s": "a", "p": "b", "o": "c", "weight": "heavy"},
    )
    loaded, documents = load(path)
    assert sorted(documents) == ["7", "mixed.jsonl", "mixed.jsonl#2"]
    seven = documents["7"]
    assert seven.text == "Orla is\na bridge.\n\nOrla -[spans]-> Elbe"
    assert (seven.title, seven.metadata) == ("Orla", {"year": 1932, "tags": "a, b"})
    assert documents["mixed.jsonl"].text == "x_y -[part of]-> z"
    assert documents["mixed.jsonl"].parts[0].triples[0].weight == 3
    assert [letter.item for letter in loaded.dead_letters] == [f"{path}:{n}" for n in range(6, 12)]
    assert all(letter.step == "load" and letter.remedy for letter in loaded.dead_letters)


def test_a_csv_holds_triples_or_rows(tmp_path: Path) -> None:
    triples, table = "s,p,o,weight\nA,knows,B,2\nA,,B,1\nA,knows,B,\n", tmp_path / "r.csv"
    write(tmp_path, {"t.csv": triples})
    table.write_text('Bridge;Length (m);Note\nOrla;1.308,463;"two\nlines"\nNeva;412;\n')
    loaded, documents = load(tmp_path)
    assert documents["t.csv"].parts[0].triples[0].weight == 3
    assert [letter.item for letter in loaded.dead_letters] == [f"{tmp_path}/t.csv:3"]
    assert documents["r.csv"].text.splitlines() == [
        "Bridge | Length (m) | Note",
        "Bridge: Orla | Length (m): 1.308,463 | Note: two lines",
        "Bridge: Neva | Length (m): 412",
    ]


def test_json_is_rows_or_readable_text(tmp_path: Path) -> None:
    given = [{"id": "a", "text": "x"}, {"s": "1", "p": "2", "o": "3"}, {"bad": 1}]
    free = '{"name": "Orla", "length": 1.10, "spans": [{"m": 5, "x": null}]}'
    write(tmp_path, {"rows.json": json.dumps(given), "free.json": free})
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(b'{"text": "hello"}\n'))
    loaded, documents = load(tmp_path)
    assert sorted(documents) == ["a", "b.jsonl.gz#1", "free.json", "rows.json"]
    assert documents["free.json"].text == "name: Orla\nlength: 1.10\nspans:\nm: 5 | x: none"
    assert [letter.item for letter in loaded.dead_letters] == [f"{tmp_path}/rows.json:3"]


def test_a_row_without_a_title_is_titled_by_its_opening(tmp_path: Path) -> None:
    path = rows(
        tmp_path / "rows.jsonl",
        {"id": "a", "text": "Ada Korb (born 1871) was an engineer. She built bridges."},
        {"id": "b", "text": "It was built in 1903 and painted red, as all was that year."},
        {"id": "c", "title": "Given", "text": "Velin is a town."},
    )
    documents = load(path)[1]
    assert (documents["a"].title, documents["c"].title) == ("Ada Korb", "Given")
    assert documents["b"].title != "It"


def test_control_characters_and_lone_surrogates_are_removed(tmp_path: Path) -> None:
    rows(tmp_path / "a.jsonl", '{"id": "a", "text": "x\\u0000\\u001b[1m\\ud800y\\tz\\r\\n1\\r2"}')
    assert load(tmp_path)[1]["a"].text == "x[1my\tz\n1\n2"


def test_more_documents_than_a_run_can_hold_are_refused_at_once(tmp_path: Path) -> None:
    write(tmp_path, {"a.jsonl": '{"text": "a"}\n' * 3, "b.md": "b", "c.pdf": "never read"})
    assert len(read_sources([tmp_path], most=4).parts) == 4
    with pytest.raises(TooManyDocuments, match=r"more than 3 documents\. Index them into several"):
        read_sources([tmp_path], most=3)
    endless = enumerate({"text": "a"} for _ in itertools.count())
    with pytest.raises(TooManyDocuments):
        collect(endless, SourceFile(source="a", path="/a", id="a"), most=3)


# --- documents ---


def test_a_second_text_under_one_id_is_a_dead_letter(tmp_path: Path) -> None:
    write(tmp_path, {"a/x.md": "One", "b/x.md": "Two"})
    loaded, documents = load(tmp_path / "a", tmp_path / "b")
    [letter] = loaded.dead_letters
    assert (documents["x.md"].text, letter.item) == ("One", f"{tmp_path}/b/x.md")
    assert "a/x.md" in letter.error
    write(tmp_path, {"b/x.md": "One"})
    assert len(load(tmp_path / "a", tmp_path / "b")[1]["x.md"].parts) == 1


def test_a_copy_of_triples_in_another_source_counts_once(tmp_path: Path) -> None:
    write(tmp_path, dict.fromkeys(("a/facts.csv", "b/facts.csv"), "s,p,o\nAda,knows,Bob\n"))
    [document] = load(tmp_path / "a", tmp_path / "b")[1].values()
    assert document.text == "Ada -[knows]-> Bob"


def test_the_order_of_parts_does_not_matter(tmp_path: Path) -> None:
    triples = [{"s": f"s{n}", "p": "p", "o": "o", "document": "d"} for n in range(4)]
    rows(tmp_path / "a.jsonl", *triples[:3])
    rows(tmp_path / "b.jsonl", {"id": "d", "text": "Text."}, triples[3])
    parts = read_sources([tmp_path]).parts
    assert compose(parts) == compose(parts[::-1])
    assert compose(parts)[0].text.startswith("Text.\n\ns0 -[p]-> o\ns1")


def test_front_matter_becomes_metadata_and_title(tmp_path: Path) -> None:
    front = (
        "---\ntitle: >-\n  A\n  title\ndate: 2024-07-27\ntags: [x, y]\nheader: {theme: ocean}\n"
        "parts: [[1]]\n---\n\n# Heading\n\nText."
    )
    broken = "---\nno: [front\n---\ntext"
    write(tmp_path, {"a.md": front, "b.txt": front, "c.md": broken, "d.md": "## **H** [l](u)\n\nx"})
    documents = load(tmp_path)[1]
    for name in ("a.md", "b.txt"):
        assert documents[name].title == "A title"
        assert documents[name].text == "# Heading\n\nText."
        assert documents[name].metadata == {
            "date": "2024-07-27",
            "tags": "x, y",
            "header.theme": "ocean",
        }
    assert documents["c.md"].text == broken
    assert documents["d.md"].title == "H l"


# --- graphs ---


def graph_of(*edges: tuple[str, str, dict[str, object]], name: str = "") -> nx.MultiDiGraph:
    graph = nx.MultiDiGraph(name=name)
    graph.add_edges_from(edges)
    return graph


def triples_of(loaded: Loaded) -> set[tuple[str, str, str, str, float]]:
    return {
        (part.document, fact.s, fact.p, fact.o, fact.weight)
        for part in loaded.parts
        for fact in part.triples
    }


def test_the_edges_of_a_networkx_graph_are_triples(tmp_path: Path) -> None:
    graph = graph_of(
        ("a", "b", {"predicate": "spans", "weight": 2, "document": "d"}),
        ("a", "b", {"relation": "crosses"}),
        ("b", "c", {"label": "part of", "weight": np.float32(0.5)}),
        ("c", "a", {}),
        ("c", "c", {"predicate": "is", "weight": 0}),
        name="my graph",
    )
    graph.nodes["a"]["name"] = "Orla Bridge"
    loaded = read_sources([write(tmp_path, {"a.md": "x"}), graph])
    assert loaded.sources == (tmp_path.as_posix(), "networkx:my graph")
    assert triples_of(loaded) == {
        ("d", "Orla Bridge", "spans", "b", 2.0),
        ("my graph", "Orla Bridge", "crosses", "b", 1.0),
        ("my graph", "b", "part of", "c", 0.5),
        ("my graph", "c", "related to", "Orla Bridge", 1.0),
    }
    (letter,) = loaded.dead_letters
    assert (letter.item, "not a number above zero" in letter.error) == ("networkx:my graph:5", True)


def test_graphml_is_read_as_the_graph_that_it_holds(tmp_path: Path) -> None:
    crosses = {"predicate": "crosses", "weight": 3.0}
    graph = graph_of(("a", "b", {"predicate": "spans"}), ("a", "b", crosses))
    nx.write_graphml(graph, tmp_path / "good.graphml")
    (tmp_path / "cut.graphml").write_bytes((tmp_path / "good.graphml").read_bytes()[:-20])
    loaded = read_sources([tmp_path])
    assert triples_of(loaded) == {
        ("good.graphml", "a", "spans", "b", 1.0),
        ("good.graphml", "a", "crosses", "b", 3.0),
    }
    assert reasons(loaded) == {"cut.graphml": "broken GraphML"}
