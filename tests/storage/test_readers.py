"""What is written into a room is what is read from it."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import strategies as st

from storage.database import Database
from storage.errors import StorageError, WorkspaceFormatError
from storage.export import export
from storage.graph import GraphRows
from storage.graph_records import Entity, Occurrence
from storage.records import DeadLetter, Document, Part, Triple
from storage.staging import Staging
from storage.workspace import Workspace
from tests.storage.samples import (
    ALIASES,
    COMMUNITIES,
    ENTITIES,
    RELATIONS,
    REPORTS,
    chunks_of,
    document,
    extraction,
    occurrences,
    put,
    text_part,
    triple_part,
)


@pytest.fixture
def staging(tmp_path: Path) -> Iterator[Staging]:
    with Workspace(tmp_path / "ws").write() as opened:
        yield opened


words = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
triples = st.builds(Triple, s=words, p=words, o=words, weight=st.floats(0, 10))
metadata = st.dictionaries(
    words,
    st.one_of(words, st.integers(), st.floats(allow_nan=False), st.booleans(), st.none()),
    max_size=3,
)
pages = st.lists(st.integers(0, 1000), max_size=3).map(tuple)
text_parts = st.builds(
    Part,
    document=st.just("d"),
    source=words,
    path=words,
    kind=st.just("text"),
    title=words,
    text=words,
    metadata=metadata,
    pages=pages,
)
triple_parts = st.builds(triple_part, st.just("d"), st.lists(triples, max_size=3).map(tuple))
loose_parts = st.builds(lambda part, text: replace(part, text=text), triple_parts, words)
documents = st.builds(
    lambda parts, text, title, extra, starts: Document(
        id="d",
        title=title,
        text="\n\n".join(p.text for p in parts) if text is None else text,
        language="zh",
        parts=tuple(parts),
        metadata=extra,
        pages=starts,
    ),
    st.lists(st.one_of(text_parts, triple_parts, loose_parts), max_size=4),
    st.one_of(st.none(), words),
    words,
    metadata,
    pages,
)


def test_chunks_come_in_order_and_by_document(staging: Staging) -> None:
    second, first = put(staging, "b", "y" * 250), put(staging, "a", "x" * 50)
    assert staging.documents.chunks() == first + second
    assert staging.documents.chunks(documents=["b"]) == second
    assert staging.documents.chunks(ids=[second[11].id, first[1].id, "chk_none"]) == [
        first[1],
        second[11],
    ]
    assert staging.documents.chunks(ids=[]) == []


def test_chunks_that_stay_keep_what_was_derived(staging: Staging) -> None:
    before = put(staging, "a", "x" * 60)
    put(staging, "b", "y" * 20)
    staging.documents.put_chunks(before[:2])
    kept = {c.id for c in before[:2]} | {"chk_b_0"}
    assert {c.id for c in staging.documents.chunks()} == kept
    assert set(staging.extractions.inputs()) == kept == staging.documents.chunks_with_postings()
    assert {w.chunk for w in staging.vectors.windows()} == kept
    staging.documents.put_chunks([], documents=["a"])
    assert [c.document for c in staging.documents.chunks()] == ["b"]


def test_removing_a_document_removes_all_that_hangs_on_it(staging: Staging) -> None:
    put(staging, "a", "x" * 60)
    expected = export(staging)
    put(staging, "b", "y" * 60)
    assert export(staging) != expected
    staging.documents.remove_documents(["b"])
    assert export(staging) == expected
    assert staging.documents.postings().columns == ["a", "common"]
    assert {w.document for w in staging.vectors.windows()} == {"a"}


def test_a_text_that_is_not_unicode_is_refused_and_nothing_is_left(staging: Staging) -> None:
    with pytest.raises(StorageError, match="Unicode"):
        staging.documents.put_documents(
            [document("good", text_part("good", "x")), document("bad", text_part("bad", "\ud800"))]
        )
    assert staging.documents.ids() == []
    put(staging, "a", "still writable")


def test_extractions_come_back_as_saved(staging: Staging) -> None:
    chunks = chunks_of(document("a", text_part("a", "x" * 60)))
    saved = [extraction(chunks[0]), extraction(chunks[1])._replace(mentions=(), relations=())]
    staging.extractions.save_extractions(saved, {e.chunk: "h" for e in saved})
    assert staging.extractions.extractions() == saved
    again = saved[0]._replace(relations=saved[0].relations[:1])
    staging.extractions.save_extractions([again], {again.chunk: "h2"})
    assert staging.extractions.extractions([again.chunk]) == [again]
    assert staging.extractions.inputs() == {saved[0].chunk: "h2", saved[1].chunk: "h"}


def test_dead_letters_are_replaced_by_item_and_step(staging: Staging) -> None:
    letters = [
        DeadLetter(item=i, step=s, error="e") for s in ("extract", "report") for i in ("1", "2")
    ]
    staging.extractions.put_dead_letters(letters)
    newer = DeadLetter(item="1", step="extract", error="other", remedy="r")
    staging.extractions.put_dead_letters([newer])
    assert staging.extractions.dead_letters() == [newer, *letters[1:]]
    staging.extractions.remove_dead_letters(["1"], step="extract")
    staging.extractions.remove_dead_letters(["2"])
    assert staging.extractions.dead_letters() == [letters[2]]


def test_the_graph_is_replaced_whole(staging: Staging) -> None:
    chunk = put(staging, "a", "x" * 20)[0].id
    stray = [Occurrence(item="rel_1", chunk=chunk, start=0, end=5)]
    staging.graph.replace_graph(GraphRows([Entity(id="ent_9", name="old", kind="k")]))
    staging.graph.replace_graph(GraphRows(ENTITIES, ALIASES, occurrences(chunk), RELATIONS, stray))
    graph = staging.graph
    assert graph.entities() == ENTITIES
    assert graph.entities(["ent_2", "ent_9"]) == ENTITIES[1:]
    assert graph.aliases() == ALIASES == graph.aliases(["ent_1"])
    assert graph.relations() == RELATIONS
    assert graph.relations_at(["ent_2"]) == RELATIONS
    assert graph.relations_at(["ent_1"]) == RELATIONS[:1]
    assert graph.occurrences("entity") == occurrences(chunk)
    assert graph.occurrences("relation", ["rel_1"]) == stray
    pairs = graph.entity_chunk_pairs()
    assert (pairs.rows, pairs.columns, pairs.counts.toarray().tolist()) == (
        ["ent_1", "ent_2"],
        [chunk],
        [[2], [1]],
    )


def test_communities_and_reports_come_back_in_order(staging: Staging) -> None:
    staging.communities.replace_communities(COMMUNITIES, REPORTS)
    assert staging.communities.communities() == COMMUNITIES
    assert staging.communities.communities(level=1) == COMMUNITIES[1:]
    assert staging.communities.reports() == REPORTS
    assert staging.communities.reports(level=0) == REPORTS[:1]
    other = REPORTS[0].model_copy(update={"title": "Another"})
    staging.communities.replace_communities(COMMUNITIES[:1], [other], [other.community])
    assert staging.communities.communities() == COMMUNITIES
    assert staging.communities.reports() == [other, *REPORTS[1:]]
    assert staging.communities.reports(of=[other.community]) == [other]
    unwritten = other.model_copy(update={"inputs": ""})
    changed = REPORTS[1].model_copy(update={"inputs": "inp_1", "stale": 0.2})
    staging.communities.replace_communities(
        COMMUNITIES, [unwritten, changed], [other.community, changed.community]
    )
    assert staging.communities.unfit_reports(0.2) == [other.community]
    assert staging.communities.unfit_reports(0.1) == [other.community, changed.community]


def test_a_transaction_is_undone_whole(staging: Staging) -> None:
    put(staging, "a", "x")

    def fail_half_way() -> None:
        with staging.transaction():
            put(staging, "b", "y")
            staging.documents.remove_documents(["a"])
            raise KeyError

    with pytest.raises(KeyError):
        fail_half_way()
    assert staging.documents.ids() == ["a"]


def test_another_schema_version_and_a_foreign_file_are_refused(tmp_path: Path) -> None:
    database = Database.create(tmp_path / "x.duckdb")
    database.execute("UPDATE meta SET value = '99' WHERE key = 'schema_version'")
    database.close()
    with pytest.raises(WorkspaceFormatError, match=r"version 99.*Upgrade"):
        Database.open(tmp_path / "x.duckdb")
    (tmp_path / "y.duckdb").write_bytes(b"not a database" * 1000)
    with pytest.raises(StorageError, match="its content is damaged"):
        Database.open(tmp_path / "y.duckdb")
