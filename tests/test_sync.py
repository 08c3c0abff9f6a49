"""Sync by content: what is added, changed, renamed, removed or left alone, within the named sources
only.
"""

from collections.abc import Collection
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


def part(document: str, text: str, source: str = "/s", path: str = "") -> Part:
    return Part(
        document=document,
        source=source,
        path=path or f"{source}/{document}",
        kind="text",
        title=document,
        text=text,
    )


def loaded(
    *parts: Part, sources: tuple[str, ...] = ("/s",), skipped: tuple[Skipped, ...] = ()
) -> Loaded:
    return Loaded(sources=sources, parts=parts, skipped=skipped, dead_letters=())


def stored(*parts: Part) -> dict[str, Document]:
    return {document.id: document for document in compose(parts)}


def plan(
    new: Loaded, old: dict[str, Document], allow_removals: bool = False, gone: bool = False
) -> SyncPlan:
    known = [
        PartSummary(document=p.document, source=p.source, path=p.path, kind=p.kind, hash=p.hash)
        for document in old.values()
        for p in document.parts
    ]

    def read(ids: Collection[str]) -> list[Document]:
        assert set(ids) <= {p.document for p in new.parts} | {
            p.document for p in known if p.source in new.sources
        }
        return [old[name] for name in ids]

    return plan_sync(new, known, read, allow_removals, gone=lambda source: gone)


MANY = tuple(part(f"d{n}", f"text {n}") for n in range(10))


def renamed(new: str, number: int) -> Part:
    return replace(part(new, f"text {number}"), title=f"d{number}")


IDS = tuple(document.document for document in MANY)
MOVED = tuple(renamed(f"n{number}", number) for number in range(10))


@pytest.mark.parametrize(
    ("new", "old", "counts", "put", "removed"),
    [
        (MANY, (), {"added": 10}, IDS, ()),
        (MANY, MANY, {"unchanged": 10}, (), ()),
        # GraphRAG compares titles only: an edited file is missed and a deleted one ignored there.
        (
            (part("d0", "other"), *MANY[1:-1]),
            MANY,
            {"changed": 1, "removed": 1, "unchanged": 8},
            ("d0",),
            ("d9",),
        ),
        ((renamed("new", 0), *MANY[1:]), MANY, {"renamed": 1, "unchanged": 9}, ("new",), ("d0",)),
        (MOVED, MANY, {"renamed": 10}, tuple(one.document for one in MOVED), IDS),
    ],
    ids=[
        "the first run",
        "nothing new",
        "an edited and a deleted file",
        "a renamed file",
        "a renamed folder",
    ],
)
def test_what_differs_is_counted_stored_and_removed(
    new: tuple[Part, ...],
    old: tuple[Part, ...],
    counts: dict[str, int],
    put: tuple[str, ...],
    removed: tuple[str, ...],
) -> None:
    found = plan(loaded(*new), stored(*old))
    assert found.counts == DocumentCounts(**counts)
    assert (tuple(document.id for document in found.put), found.removed) == (put, removed)
    assert found.nothing_to_do == (new == old)


def test_many_removals_are_refused_unless_allowed() -> None:
    with pytest.raises(RemovalRefused, match="4"):
        plan(loaded(*MANY[:6]), stored(*MANY))
    assert plan(loaded(*MANY[:6]), stored(*MANY), allow_removals=True).counts.removed == 4
    assert plan(loaded(*MANY[:7]), stored(*MANY)).counts.removed == 3


def test_a_file_that_cannot_be_read_this_time_keeps_its_document() -> None:
    skipped = (Skipped(path="/s/d0", reason="broken"), Skipped(path="/s/d1", reason="empty"))
    found = plan(loaded(*MANY[2:], skipped=skipped), stored(*MANY))
    assert found.removed == ("d1",)


def test_two_sources_with_one_id_and_two_texts_are_an_error() -> None:
    old = stored(part("d", "one", source="/t"))
    with pytest.raises(DuplicateDocument, match="d"):
        plan(loaded(part("d", "two")), old)
    assert plan(loaded(part("d", "one")), old).counts.changed == 0
    assert plan(loaded(part("d", "two")), old, gone=True).counts.changed == 1


def test_a_document_of_two_sources_stays_until_both_are_gone(tmp_path: Path) -> None:
    text = part("d", "one")
    triples = Part(
        document="d", source="/t", path="/t/f", kind="triples", title="d", text="a -[p]-> b"
    )
    old = stored(text, triples)
    found = plan(loaded(), old, allow_removals=True)
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
    ],
)
def test_a_path_lies_in_a_source(source: str, path: str, inside: bool) -> None:
    assert holds(source, path) is inside


@pytest.mark.parametrize("left", [(), ("empty",)])
def test_a_source_that_holds_nothing_any_more_is_refused(left: tuple[str, ...]) -> None:
    """A share that is not mounted is an empty folder; it must not take its documents along, few as
    they may be.
    """
    old = stored(*MANY, part("one", "x", source="/t"))
    skipped = tuple(Skipped(path="/t/one", reason=reason) for reason in left)
    with pytest.raises(SourceEmptied, match="/t holds no document"):
        plan(loaded(*MANY, sources=("/s", "/t"), skipped=skipped), old)
    assert plan(loaded(*MANY, sources=("/s", "/t")), old, allow_removals=True).removed == ("one",)
    moved = replace(part("s/one", "x"), title="one")
    assert plan(loaded(*MANY, moved, sources=("/s", "/t")), old).counts.renamed == 1, (
        "moved is not lost"
    )


def test_a_source_that_is_gone_belongs_to_the_named_one_above_it(tmp_path: Path) -> None:
    here, elsewhere = str(tmp_path / "docs"), str(tmp_path / "other" / "x.md")
    unseen = f"{here}/{'n' * 300}"  # too long a name to look for
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "there.md").touch()
    known = [
        PartSummary(document=source, source=source, path=source, kind="text", hash="h")
        for source in (here, f"{here}/there.md", f"{here}/gone.md", unseen, elsewhere)
    ]
    assert with_gone_inside(loaded(sources=(here,)), known).sources == (here, f"{here}/gone.md")
    inner = part("g", "x", source="/s/gone.md", path="/s/gone.md")
    found = plan(loaded(*MANY, sources=("/s", "/s/gone.md")), stored(*MANY, inner))
    assert found.removed == ("g",), (
        "its folder holds others: nothing looks like a share that is not mounted"
    )


def test_what_was_forgotten_stays_out_wherever_it_is() -> None:
    gone, moved, other = part("d0", "secret"), part("e0", "secret"), part("d1", "y")
    texts = {gone.text_hash: "d0"}

    def kept(
        *parts: Part, known: tuple[str, ...] = ("d1",), sources: tuple[str, ...] = ("/s",)
    ) -> list[str]:
        return [
            p.document
            for p in exclude_forgotten(loaded(*parts, sources=sources), ["d0"], texts, known).parts
        ]

    assert kept(gone, moved, other) == ["d1"]
    assert kept(replace(gone, text="edited"), other) == ["d1"]
    assert kept(moved, other, known=("d1", "e0")) == ["e0", "d1"], (
        "a document that says the same stays"
    )
    alone = part("d0", "secret", source="/s/d0", path="/s/d0")
    assert kept(alone, sources=("/s/d0",)) == ["d0"], "by its name it is let in"
    assert kept(
        *(part(f"d{n}", "secret", source="/f", path=f"/f:{n}") for n in range(2)), sources=("/f",)
    ) == ["d1"]


def test_rows_that_are_called_by_their_line_are_known_by_their_text() -> None:
    secret, next_one = part("f#3", "secret", path="/f:3"), part("f#4", "other", path="/f:4")
    shifted = [part("f#2", "secret", path="/f:2"), part("f#3", "other", path="/f:3")]
    texts = {secret.text_hash: "f#3"}
    first = exclude_forgotten(loaded(secret, next_one), ["f#3"], texts, ["f#2", "f#4"])
    assert [p.document for p in first.parts] == ["f#4"]
    after = exclude_forgotten(loaded(*shifted), ["f#3"], texts, ["f#2", "f#4"])
    assert [(p.document, p.text) for p in after.parts] == [("f#3", "other")]
    assert [skipped.reason for skipped in after.skipped] == ["forgotten: f#3"]


def test_what_tells_of_a_document_is_what_no_other_has() -> None:
    own = ["The dog of Ilse Marrand met a cat by the old water mill.", "的人"]
    traces = DocumentTraces(own, ["A cat was by the old mill; of it met."])
    for text in ("a dog", "Who was Marrand?", r'{"said": "met\na cat by the"}', r'"\u4eba"'):
        assert traces.found_in(text)
    for text in ("the old cat", "met by the mill", ""):
        assert not traces.found_in(text)
