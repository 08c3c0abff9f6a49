"""A generation returns what was written into it."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.database import Database
from storage.documents import DocumentStore
from storage.errors import StorageError, WorkspaceFormatError
from storage.export import export
from storage.graph import GraphRows
from storage.graph_records import Entity, Occurrence
from storage.records import DeadLetter, Part, Triple
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


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> DocumentStore:
    return DocumentStore(Database.create(tmp_path_factory.mktemp("store") / "x.duckdb"))


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
TRIPLES = st.lists(
    st.builds(Triple, s=TEXTS, p=TEXTS, o=TEXTS, weight=st.floats(0, 10)), max_size=3
).map(lambda triples: triple_part("d", triples))
PARTS = st.one_of(
    TEXTS.map(lambda text: text_part("d", text)),
    TRIPLES,
    st.builds(lambda part, text: replace(part, text=text), TRIPLES, TEXTS),
)


@given(parts=st.lists(PARTS, max_size=4), text=st.none() | TEXTS)
def test_a_document_comes_back_as_stored(
    store: DocumentStore, parts: list[Part], text: str | None
) -> None:
    stored = document("d", *parts)
    if text is not None:
        stored = replace(stored, text=text)
    store.put_documents([stored])
    assert store.documents() == [stored]
    assert store.hashes() == {"d": stored.hash}


def test_chunks_come_in_order_and_by_document(staging: Staging) -> None:
    second, first = put(staging, "b", "y" * 250), put(staging, "a", "x" * 50)
    chunks = staging.documents.chunks
    assert chunks() == first + second
    assert chunks(documents=["b"]) == second
    assert chunks(ids=[second[11].id, first[1].id, "chk_none"]) == [first[1], second[11]]
    assert chunks(ids=[]) == []


def test_chunks_that_stay_keep_what_was_derived(staging: Staging) -> None:
    before = put(staging, "a", "x" * 60)
    put(staging, "b", "y" * 20)
    staging.documents.put_chunks([before[0], replace(before[1], start=27, end=47)])
    kept = {c.id for c in before[:2]} | {"chk_b_0"}
    assert {c.id for c in staging.documents.chunks()} == kept
    assert set(staging.extractions.inputs()) == kept == staging.documents.chunks_with_postings()
    assert {w.chunk for w in staging.vectors.windows()} == kept
    (moved,) = staging.extractions.extractions([before[1].id])
    assert [(m.start, m.end) for m in moved.mentions] == [(27, 30)] * 2
    staging.documents.put_chunks([], documents=["a"])
    assert [c.document for c in staging.documents.chunks()] == ["b"]


def test_removing_a_document_removes_what_was_derived(staging: Staging) -> None:
    put(staging, "a", "x" * 60)
    expected = export(staging)
    put(staging, "b", "y" * 60)
    assert export(staging) != expected
    staging.documents.remove_documents(["b"])
    assert export(staging) == expected
    assert staging.documents.postings().columns == ["a", "common"]
    assert {w.document for w in staging.vectors.windows()} == {"a"}


def test_text_that_is_no_unicode_is_refused_whole(staging: Staging) -> None:
    texts = {"good": "x", "bad": "\ud800"}
    with pytest.raises(StorageError, match="Unicode"):
        staging.documents.put_documents(
            [document(name, text_part(name, text)) for name, text in texts.items()]
        )
    assert staging.documents.ids() == []
    put(staging, "a", "still writable")


def test_extractions_come_back_as_saved(staging: Staging) -> None:
    chunks = chunks_of(document("a", text_part("a", "x" * 60)))
    saved = [extraction(chunks[0]), extraction(chunks[1])._replace(mentions=(), relations=())]
    store = staging.extractions
    store.save_extractions(saved, {e.chunk: "h" for e in saved})
    assert store.extractions() == saved
    again = saved[0]._replace(relations=saved[0].relations[:1])
    store.save_extractions([again], {again.chunk: "h2"})
    assert store.extractions([again.chunk]) == [again]
    assert store.inputs() == {saved[0].chunk: "h2", saved[1].chunk: "h"}


def test_dead_letters_are_replaced_by_item_and_step(staging: Staging) -> None:
    letters = [
        DeadLetter(item=i, step=s, error="e") for s in ("extract", "report") for i in ("1", "2")
    ]
    store = staging.extractions
    store.put_dead_letters(letters)
    newer = DeadLetter(item="1", step="extract", error="other", remedy="r")
    store.put_dead_letters([newer])
    assert store.dead_letters() == [newer, *letters[1:]]
    store.remove_dead_letters(["1"], step="extract")
    store.remove_dead_letters(["2"])
    assert store.dead_letters() == [letters[2]]


def test_the_graph_is_replaced_whole(staging: Staging) -> None:
    chunk = put(staging, "a", "x" * 20)[0].id
    places = [Occurrence("rel_1", chunk, 0, 5)]
    graph = staging.graph
    graph.replace_graph(GraphRows([Entity("ent_9", "old", "k")]))
    graph.replace_graph(GraphRows(ENTITIES, ALIASES, occurrences(chunk), RELATIONS, places))
    assert graph.entities() == ENTITIES
    assert graph.entities(["ent_2", "ent_9"]) == ENTITIES[1:]
    assert graph.aliases() == ALIASES == graph.aliases(["ent_1"])
    assert graph.relations() == RELATIONS == graph.relations_at(["ent_2"])
    assert graph.relations_at(["ent_1"]) == RELATIONS[:1]
    assert graph.occurrences("entity") == occurrences(chunk)
    assert graph.occurrences("relation", ["rel_1"]) == places
    pairs = graph.entity_chunk_pairs()
    assert (pairs.rows, pairs.columns) == (["ent_1", "ent_2"], [chunk])
    assert pairs.counts.toarray().tolist() == [[2], [1]]


def test_communities_and_reports_come_back_in_order(staging: Staging) -> None:
    store = staging.communities
    store.replace_communities(COMMUNITIES, REPORTS)
    assert store.communities() == COMMUNITIES
    assert store.communities(level=1) == COMMUNITIES[1:]
    assert store.reports() == REPORTS
    assert store.reports(level=0) == REPORTS[:1]
    other = REPORTS[0].model_copy(update={"title": "Another"})
    store.replace_communities(COMMUNITIES[:1], [other], ["com_1"])
    assert store.communities() == COMMUNITIES
    assert store.reports() == [other, *REPORTS[1:]]
    assert store.reports(of=["com_1"]) == [other]


def test_reports_without_a_model_or_with_drift_are_unfit(staging: Staging) -> None:
    unwritten = REPORTS[0].model_copy(update={"inputs": ""})
    drifted = REPORTS[1].model_copy(update={"stale": 0.2})
    staging.communities.replace_communities(COMMUNITIES, [unwritten, drifted])
    assert staging.communities.unfit_reports(0.2) == ["com_1"]
    assert staging.communities.unfit_reports(0.1) == ["com_1", "com_2"]


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


def test_another_schema_version_is_refused(tmp_path: Path) -> None:
    database = Database.create(tmp_path / "x.duckdb")
    database.execute("UPDATE meta SET value = '99' WHERE key = 'schema_version'")
    database.close()
    with pytest.raises(WorkspaceFormatError, match=r"version 99.*Upgrade"):
        Database.open(tmp_path / "x.duckdb")
