"""Sync finds by content what was added, changed, renamed or removed in the named sources."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from storage.documents import PartSummary
from storage.errors import DuplicateDocument, RemovalRefused, SourceEmptied
from storage.records import Document, Part, Skipped
from storage.run_records import DocumentCounts
from tasks.load.sources import Loaded, compose
from tasks.sync import (
    DocumentTraces,
    SyncPlan,
    exclude_forgotten,
    holds,
    plan_sync,
    with_gone_inside,
)


def part(document: str, text: str, source: str = "/s", path: str = "", title: str = "") -> Part:
    return Part(
        document=document,
        source=source,
        path=path or f"{source}/{document}",
        kind="text",
        title=title or document,
        text=text,
    )


def loaded(*parts: Part, sources: tuple[str, ...] = ("/s",), **skipped: str) -> Loaded:
    """What was read; `skipped` are reasons by the file's name in /s."""
    missed = tuple(Skipped(path=f"/s/{name}", reason=why) for name, why in skipped.items())
    return Loaded(sources=sources, parts=parts, skipped=missed, dead_letters=())


def plan(new: Loaded, *old: Part, allow_removals: bool = False) -> SyncPlan:
    stored = {document.id: document for document in compose(old)}
    known = [
        PartSummary(document=p.document, source=p.source, path=p.path, kind=p.kind, hash=p.hash)
        for p in old
    ]
    may_be_read = {p.document for p in new.parts}
    may_be_read |= {p.document for p in known if p.source in new.sources}

    def read(ids: Collection[str]) -> list[Document]:
        assert set(ids) <= may_be_read
        return [stored[name] for name in ids]

    return plan_sync(new, known, read, allow_removals)


IDS = tuple(f"d{n}" for n in range(10))
MANY = tuple(part(name, f"text {name}") for name in IDS)
RENAMED = tuple(part(f"n{n}", f"text {name}", title=name) for n, name in enumerate(IDS))


@pytest.mark.parametrize(
    ("new", "old", "counts", "put", "removed"),
    [
        (MANY, (), {"added": 10}, IDS, ()),
        (MANY, MANY, {"unchanged": 10}, (), ()),
        # GraphRAG compares titles only: it misses an edited file and ignores a deleted one.
        (
            (part("d0", "other"), *MANY[1:-1]),
            MANY,
            {"changed": 1, "removed": 1, "unchanged": 8},
            ("d0",),
            ("d9",),
        ),
        ((RENAMED[0], *MANY[1:]), MANY, {"renamed": 1, "unchanged": 9}, ("n0",), ("d0",)),
        (RENAMED, MANY, {"renamed": 10}, tuple(one.document for one in RENAMED), IDS),
    ],
    ids=["first run", "nothing new", "edited and deleted", "renamed file", "renamed folder"],
)
def test_what_differs_is_counted_stored_and_removed(
    new: Sequence[Part],
    old: Sequence[Part],
    counts: dict[str, int],
    put: tuple[str, ...],
    removed: tuple[str, ...],
) -> None:
    found = plan(loaded(*new), *old)
    assert found.counts == DocumentCounts(**counts)
    assert (tuple(document.id for document in found.put), found.removed) == (put, removed)
    assert found.nothing_to_do == (new == old)


def test_many_removals_are_refused_unless_allowed() -> None:
    with pytest.raises(RemovalRefused, match="4"):
        plan(loaded(*MANY[:6]), *MANY)
    assert plan(loaded(*MANY[:6]), *MANY, allow_removals=True).counts.removed == 4
    assert plan(loaded(*MANY[:7]), *MANY).counts.removed == 3


def test_a_file_that_cannot_be_read_this_time_keeps_its_document() -> None:
    assert plan(loaded(*MANY[2:], d0="broken", d1="empty"), *MANY).removed == ("d1",)


def test_a_second_text_under_one_id_is_refused(tmp_path: Path) -> None:
    here, gone = str(tmp_path), str(tmp_path / "gone")
    with pytest.raises(DuplicateDocument, match="d"):
        plan(loaded(part("d", "two")), part("d", "one", source=here))
    assert plan(loaded(part("d", "one")), part("d", "one", source=here)).counts.changed == 0
    assert plan(loaded(part("d", "two")), part("d", "one", source=gone)).counts.changed == 1


def test_a_document_of_two_sources_stays_until_both_are_gone() -> None:
    triples = replace(part("d", "a -[p]-> b", source="/t"), kind="triples")
    found = plan(loaded(), part("d", "one"), triples, allow_removals=True)
    assert found.removed == ()
    assert [p.kind for document in found.put for p in document.parts] == ["triples"]


@pytest.mark.parametrize(
    ("source", "path", "inside"),
    [
        ("/d/rows.jsonl", "/d/rows.jsonl:3", True),
        ("/d", "/d/sub/rows.jsonl:3", True),
        ("/d", "/dd/rows.jsonl:3", False),
        ("/d/**/*.jsonl", "/d/rows.jsonl:3", True),
        ("/d/**/*.jsonl", "/d/a/b/rows.jsonl:3", True),
        ("/d/*.jsonl", "/e/rows.jsonl:3", False),
        ("s3://b/d", "s3://b/d/rows.jsonl:3", True),
        ("https://h/rows.jsonl", "https://h/rows.jsonl:3", True),
        ("https://h/", "https://h/rows.jsonl:3", False),
        ("https://h/?", "https://h/a", False),
    ],
)
def test_a_path_lies_in_a_source(source: str, path: str, inside: bool) -> None:
    assert holds(source, path) is inside


def test_a_source_without_any_document_left_is_refused() -> None:
    """A disk that is not mounted is an empty folder: its documents must not go, even if few."""
    old, both = (*MANY, part("one", "x", source="/t")), ("/s", "/t")
    nothing = loaded(*MANY, sources=both)
    empty_file = Skipped(path="/t/one", reason="empty")
    for new in (nothing, nothing.model_copy(update={"skipped": (empty_file,)})):
        with pytest.raises(SourceEmptied, match="/t holds no document"):
            plan(new, *old)
    assert plan(nothing, *old, allow_removals=True).removed == ("one",)
    moved = part("s/one", "x", title="one")
    assert plan(loaded(*MANY, moved, sources=both), *old).counts.renamed == 1


def test_a_source_that_is_gone_belongs_to_the_named_one_above_it(tmp_path: Path) -> None:
    here, elsewhere = str(tmp_path / "docs"), str(tmp_path / "other" / "x.md")
    too_long = f"{here}/{'n' * 300}"
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "there.md").touch()
    known = [
        PartSummary(document=source, source=source, path=source, kind="text", hash="h")
        for source in (here, f"{here}/there.md", f"{here}/gone.md", too_long, elsewhere)
    ]
    assert with_gone_inside(loaded(sources=(here,)), known).sources == (here, f"{here}/gone.md")
    inner = part("g", "x", source="/s/gone.md", path="/s/gone.md")
    found = plan(loaded(*MANY, sources=("/s", "/s/gone.md")), *MANY, inner)
    assert found.removed == ("g",), "its folder still holds others, so it is mounted"


@pytest.mark.parametrize(
    ("named", "inner", "covered"),
    [
        ("s3://b/d", "s3://b/d/sub", True),
        ("s3://b/d", "s3://b/dd", False),
        ("s3://b/*", "s3://b/d/sub", False),
        ("https://h/", "https://h/a", False),
    ],
)
def test_a_folder_of_a_store_covers_what_lay_in_it(named: str, inner: str, covered: bool) -> None:
    known = [PartSummary(document=inner, source=inner, path=inner, kind="text", hash="h")]
    assert (inner in with_gone_inside(loaded(sources=(named,)), known).sources) is covered


# --- forgetting ---

SECRET, MOVED, OTHER = part("d0", "secret"), part("e0", "secret"), part("d1", "y")
ALONE = part("d0", "secret", source="/s/d0", path="/s/d0")
ROWS = [part(f"d{n}", "secret", source="/f", path=f"/f:{n}") for n in range(2)]


@pytest.mark.parametrize(
    ("parts", "source", "known", "kept"),
    [
        ([SECRET, MOVED, OTHER], "/s", ["d1"], ["d1"]),
        ([replace(SECRET, text="edited"), OTHER], "/s", ["d1"], ["d1"]),
        ([MOVED, OTHER], "/s", ["d1", "e0"], ["e0", "d1"]),
        ([ALONE], "/s/d0", ["d1"], ["d0"]),
        (ROWS, "/f", ["d1"], ["d1"]),
    ],
    ids=["moved", "edited", "a known one of the same text", "named by its file", "of two rows"],
)
def test_what_was_forgotten_stays_out_unless_it_is_named(
    parts: list[Part], source: str, known: list[str], kept: list[str]
) -> None:
    texts = {SECRET.text_hash: "d0"}
    found = exclude_forgotten(loaded(*parts, sources=(source,)), ["d0"], texts, known)
    assert [p.document for p in found.parts] == kept


def test_forgotten_rows_without_an_id_are_known_by_their_text() -> None:
    secret, after = part("f#3", "secret", path="/f:3"), part("f#4", "other", path="/f:4")
    shifted = [part("f#2", "secret", path="/f:2"), part("f#3", "other", path="/f:3")]
    for rows, kept in (([secret, after], "f#4"), (shifted, "f#3")):
        texts = {secret.text_hash: "f#3"}
        found = exclude_forgotten(loaded(*rows), ["f#3"], texts, ["f#2", "f#4"])
        assert [(p.document, p.text) for p in found.parts] == [(kept, "other")]
        assert [skipped.reason for skipped in found.skipped] == ["forgotten: f#3"]


def test_a_trace_of_a_document_is_what_no_other_text_has() -> None:
    own = ["The dog of Ilse Marrand met a cat by the old water mill.", "的人"]
    traces = DocumentTraces(own, ["A cat was by the old mill; of it met."])
    for text in ("a dog", "Who was Marrand?", r'{"said": "met\na cat by the"}', r'"\u4eba"'):
        assert traces.found_in(text)
    for text in ("the old cat", "met by the mill", ""):
        assert not traces.found_in(text)
