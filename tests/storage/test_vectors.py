"""Vectors: any store gives what the database says, whatever happens to its folder, and another one is four methods."""

import asyncio
import logging
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
import pytest

from flows.index import IndexOptions, build_index
from flows.runtime import open_runtime
from flows.session import open_session
from storage.chroma import open_folder
from storage.errors import SettingsError, StorageError
from storage.exact_store import ExactIndex
from storage.records import Scalar
from storage.vector_stores import StoreBySize, open_vector_store
from storage.vectors import Window
from storage.workspace import Workspace
from tests.settings import load_settings
from tests.storage.memory_store import STORES, MemoryStore
from tests.storage.samples import MODEL, SIZE, publish, put, same_ranking, served_by, vector, window

if TYPE_CHECKING:
    from chromadb.api.client import Client


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "workspace"


def chroma(root: Path) -> Workspace:
    return served_by("chroma", root)


def index_folders(root: Path, number: int) -> list[str]:
    return sorted(f.name for f in (root / "generations" / f"{number:06d}").glob("chroma-*"))


def assert_search_is_exact(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Through Chroma, that is: a search that fell back to the database has warned."""
    caplog.clear()
    with chroma(root).read() as generation:
        for text in ("one", "two"):
            found = generation.vectors.search(vector(text), 4)
            assert same_ranking(found, generation.vectors.exact_search(vector(text), 4))
            assert len(found) == 4
    assert caplog.messages == []


def test_search_scores_a_chunk_by_its_best_window(root: Path) -> None:
    with chroma(root).write() as staging:
        chunk = put(staging, "a", "x" * 20, embed=False)[0]
        other = put(staging, "b", "y" * 20, embed=False)[0]
        windows = [window(chunk, 0), window(chunk, 1), window(other, 0)]
        vectors = dict(zip([w.text_hash for w in windows], np.eye(3, SIZE, dtype=np.float32), strict=True))
        vectors[windows[1].text_hash] = np.full(SIZE, 2.0, dtype=np.float32)
        staging.vectors.put(MODEL, vectors)
        staging.vectors.put_windows(MODEL, windows)
        staging.publish()
    with chroma(root).read() as generation:
        question = np.zeros(SIZE, dtype=np.float32)
        question[0] = 3
        assert generation.vectors.search(question, 5) == [(chunk.id, 1.0), (other.id, 0.0)]
        assert generation.vectors.search(question, 5, documents=["b"]) == [(other.id, 0.0)]
        assert generation.vectors.search(question, 5, documents=[]) == []
        assert generation.vectors.search(question, 0) == []
        with pytest.raises(StorageError, match=r"shape \(3,\).*Embed the question with tiny"):
            generation.vectors.search(question[:3], 5)


def test_equal_scores_come_by_id(root: Path) -> None:
    with chroma(root).write() as staging:
        chunks = put(staging, "a", "x" * 400)
        staging.publish()
    with chroma(root).read() as generation:
        # All full chunks have the same text, so the same vector.
        found = generation.vectors.search(vector("q"), len(chunks))
        assert [chunk for chunk, _ in found] == sorted(c.id for c in chunks)


def test_the_index_follows_additions_changes_and_removals(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    publish(root, {name: f"{name} " * 60 for name in "abcdef"}, store="chroma")
    assert_search_is_exact(root, caplog)
    (root / "generations" / "000001" / "chroma-1" / "marker").touch()
    with chroma(root).write() as staging:
        staging.documents.remove_documents(["a"])
        put(staging, "g", "gamma " * 10)
        put(staging, "b", "changed " * 8)
        staging.publish()
    assert caplog.messages == []
    assert (root / "generations" / "000002" / "chroma-1" / "marker").exists(), "carried over, not built anew"
    assert_search_is_exact(root, caplog)
    with chroma(root).read() as generation:
        documents = {w.document for w in generation.vectors.windows()}
        assert documents == set("bcdefg")
        everything = generation.vectors.search(vector("q"), 1000)
        assert {c for c, _ in everything} == {w.chunk for w in generation.vectors.windows()}
        many = [f"no-{i}" for i in range(30_000)]
        assert generation.vectors.search(vector("q"), 3, [*many, "g"]) == generation.vectors.exact_search(
            vector("q"), 3, ["g"]
        )


def garble_database(folder: Path) -> None:
    (folder / "chroma.sqlite3").write_bytes(b"garbage" * 1000)


def test_chroma_has_written_all_of_a_graph_so_that_every_opening_finds_the_same(root: Path) -> None:
    """What it has not written it adds at each opening, and its graph differs each time."""
    publish(root, {name: f"{name} " * 60 for name in "abcdef"}, store="chroma")
    with chroma(root).write() as staging:
        put(staging, "g", "gamma " * 10)
        staging.publish()
    for number in (1, 2):
        file = root / "generations" / f"{number:06}" / "chroma-1" / "chroma.sqlite3"
        with closing(sqlite3.connect(file)) as database:
            written = [last for (last,) in database.execute("SELECT seq_id FROM max_seq_id")]  # of graph and table
        assert len(written) == 2
        assert len({*written}) == 1


@pytest.mark.parametrize("damage", [shutil.rmtree, garble_database])
def test_a_damaged_index_is_answered_from_the_database_and_rebuilt(
    root: Path, caplog: pytest.LogCaptureFixture, damage: Callable[[Path], None]
) -> None:
    publish(root, {name: f"{name} " * 60 for name in "abc"}, store="chroma")
    damage(root / "generations" / "000001" / "chroma-1")
    with chroma(root).read() as generation, caplog.at_level(logging.WARNING):
        assert generation.vectors.search(vector("q"), 3) == generation.vectors.exact_search(vector("q"), 3)
        assert "`trellis clean --vectors`" in caplog.text
    assert chroma(root).rebuild_vectors() == 18
    assert len(index_folders(root, 1)) == 1
    assert_search_is_exact(root, caplog)


def test_what_chroma_finds_too_little_of_is_compared_in_the_database(
    root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Many equal vectors cut its graph in two, mostly: either it finds enough, or it is not used."""
    many = 1_500
    vectors = np.random.default_rng(1).standard_normal((many, SIZE)).astype(np.float32)
    vectors[many // 2 :] = vectors[0]
    with chroma(root).write() as staging:
        chunk = put(staging, "a", "x", embed=False)[0]
        hashes = [f"h{i}" for i in range(many)]
        staging.vectors.put(MODEL, dict(zip(hashes, vectors, strict=True)))
        windows = [
            Window(id=f"{chunk.id}#{i}", chunk=chunk.id, document="a", text_hash=h) for i, h in enumerate(hashes)
        ]
        staging.vectors.put_windows(MODEL, windows)
        staging.publish()
    with chroma(root).read() as generation:
        assert len(generation.vectors.search(vector("q"), 1)) == 1
    assert index_folders(root, 1) in (["chroma-1"], ["chroma-unfit"])
    assert "searched in the database" not in caplog.text, "nothing is wrong"


def test_rebuilding_does_not_disturb_an_open_reader(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    publish(root, {"a": "alpha " * 50}, store="chroma")
    with chroma(root).read() as generation:
        before = generation.vectors.search(vector("q"), 3)
        assert chroma(root).rebuild_vectors(1) == 15
        assert index_folders(root, 1) == ["chroma-2"]
        assert generation.vectors.search(vector("q"), 3) == before
    assert_search_is_exact(root, caplog)


def test_a_generation_without_vectors_works(root: Path) -> None:
    publish(root, {"a": "全部中文"}, store="chroma", embed=False)
    with chroma(root).read() as generation:
        assert generation.vectors.model() is None
        assert generation.vectors.search(vector("q"), 3) == []
    assert chroma(root).rebuild_vectors() == 0
    assert index_folders(root, 1) == []
    publish(root, {"b": "beta"}, store="chroma")
    assert index_folders(root, 2) == ["chroma-1"]


def test_vectors_are_stored_once_and_dropped_when_unused(root: Path) -> None:
    with chroma(root).write() as staging:
        put(staging, "a", "x" * 30)
        hashes = {w.text_hash for w in staging.vectors.windows()}
        staging.vectors.put(MODEL, {"old": vector("o")})
        assert staging.vectors.have(MODEL, [*hashes, "none"]) == hashes
        assert staging.vectors.have("other", hashes) == set()
        assert np.array_equal(staging.vectors.get(MODEL, ["old"])["old"], vector("o"))
        staging.vectors.drop_unused()
        assert staging.vectors.have(MODEL, [*hashes, "old"]) == hashes
        staging.vectors.put("other", {"h": np.ones(4, dtype=np.float32)})
        staging.vectors.remove_windows()
        staging.vectors.put_windows("other", [Window(id="chk_a_0#0-1", chunk="chk_a_0", document="a", text_hash="h")])
        staging.publish()
    with chroma(root).read() as generation:
        assert generation.vectors.search(np.ones(4, dtype=np.float32), 1) == [("chk_a_0", 1.0)]


@pytest.mark.parametrize("bad", [np.zeros(SIZE), np.full(SIZE, np.nan), np.ones(SIZE + 1), np.ones((1, SIZE))])
def test_unusable_vectors_are_refused(root: Path, bad: np.ndarray) -> None:
    with chroma(root).write() as staging:
        staging.vectors.put(MODEL, {"good": vector("g")})
        with pytest.raises(StorageError, match="vector of bad"):
            staging.vectors.put(MODEL, {"bad": bad.astype(np.float32)})
        assert staging.vectors.have(MODEL, ["bad"]) == set()


def test_a_user_of_chroma_finds_documents_metadata_and_cosines(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    import chromadb

    publish(root, {name: f"{name} " + " ".join(map(str, range(40))) for name in "abc"}, store="chroma")
    folder = root / "generations" / "000001" / "chroma-1"
    client = cast("Client", chromadb.PersistentClient(path=str(folder)))
    collection = client.get_collection("windows")
    assert collection.metadata["embedding_model"] == MODEL
    with chroma(root).read() as generation:
        window = generation.vectors.windows()[0]
        chunk = generation.documents.chunks()[0]
    found = collection.query(
        query_embeddings=[vector(window.text_hash).tolist()], n_results=2,
        where={"$and": [{"year": 1999}, {"document": "a"}]}, where_document={"$contains": "a 0 1"},
    )  # fmt: skip
    assert found["ids"][0][0] == window.id
    assert found["distances"] is not None
    assert found["distances"][0][0] == pytest.approx(0, abs=1e-5)
    assert found["documents"] is not None
    assert found["documents"][0][0] == chunk.text
    assert found["metadatas"] is not None
    assert found["metadatas"][0][0] == {
        "document": "a", "chunk": chunk.id, "title": "On a", "heading": "A > B", "path": "a.md", "language": "en",
        "kind": "text", "start": 0, "end": 20, "year": 1999,
    }  # fmt: skip
    with chroma(root).read() as generation:
        assert len(generation.vectors.search(vector("q"), 3)) == 3
    assert "different settings" in caplog.text, "who has it open in this very process makes us search the database"
    client.close()
    assert_search_is_exact(root, caplog)


def test_a_window_is_the_stretch_of_its_chunk_that_its_id_names(root: Path) -> None:
    with chroma(root).write() as staging:
        chunk, other = put(staging, "a", "x" * 19 + "y" * 21, embed=False)[:2]
        rows = [Window(id=f"{one.id}#5-12", chunk=one.id, document="a", text_hash=one.id) for one in (chunk, other)]
        staging.vectors.put(MODEL, {row.text_hash: vector(row.id) for row in rows})
        staging.vectors.put_windows(MODEL, rows)
        first, second = next(staging.vectors.entries(10))
    assert (first.text, second.text) == ("x" * 7, "y" * 7)
    assert (second.metadata["start"], second.metadata["end"]) == (25, 32)


def test_an_index_that_is_carried_over_has_the_new_metadata(root: Path) -> None:
    publish(root, {name: f"{name} " * 60 for name in "abc"}, store="chroma")
    (root / "generations" / "000001" / "chroma-1" / "marker").touch()
    with chroma(root).write() as staging:
        (stored,) = staging.documents.documents(["a"])
        odd: dict[str, Scalar] = {"": 1, "#tag": "x", "$and": 1, "chroma:document": "y", "share": float("nan")}
        staging.documents.put_documents([replace(stored, metadata={"year": 2001, **odd})])
        staging.publish()
    carried = root / "generations" / "000002" / "chroma-1"
    assert (carried / "marker").exists()
    with open_folder(carried) as index:
        found = index._collection.get(where={"year": 2001})["metadatas"]
    assert {row["document"] for row in found or []} == {"a"}
    assert all(row.keys().isdisjoint(odd.keys()) for row in found or [])


TEXTS = {
    "bridge": "Orla Bridge was designed by Tomas Reyd and opened in 1931.",
    "ferry": "The Velin Ferry carried cattle across the lake until 1950.",
    "bread": "Rye bread is baked from flour, water and sourdough.",
}


def index_and_retrieve(folder: Path, store: str) -> list[dict[str, float]]:
    """A real run over documents, and what a question finds in it by its vector."""
    for name, text in TEXTS.items():
        (folder / f"{name}.txt").write_text(text, encoding="utf-8")
    settings = load_settings({"workspace": folder / store, "vector_store": store, "keep_generations": 1}, {})
    runtime = open_runtime(settings)
    asyncio.run(build_index([folder / f"{name}.txt" for name in TEXTS], IndexOptions(), runtime))
    with open_session(runtime) as session:
        return [dict(found) for found in session.dense(["Who designed the bridge?", "What is bread made of?"])]


def test_a_store_of_ones_own_serves_an_index_run_and_a_question(tmp_path: Path) -> None:
    found = index_and_retrieve(tmp_path, "tests.storage.memory_store:open_store")
    (store,) = (store for root, store in STORES.items() if root.is_relative_to(tmp_path))
    assert (store.prepared, list(store.indexes), store.indexes[1].searches > 0) == (1, [1], True)
    expected = index_and_retrieve(tmp_path, "exact")
    assert [list(one) for one in found] == [list(one) for one in expected]
    assert all(len(one) == len(TEXTS) for one in found)


def test_its_indexes_go_with_their_generations_and_can_be_built_anew(tmp_path: Path) -> None:
    store = MemoryStore()
    workspace = Workspace(tmp_path, 2, store)
    for name in "abc":
        publish(workspace, {name: f"{name} " * 60})
    assert sorted(store.indexes) == [2, 3]
    store.indexes.clear()
    assert workspace.rebuild_vectors() == 18
    with workspace.read() as generation:
        assert generation.vectors.search(vector("q"), 3) == generation.vectors.exact_search(vector("q"), 3)
    assert store.indexes[3].searches > 0


def test_what_an_approximate_index_does_not_find_the_database_does(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = MemoryStore()
    workspace = Workspace(tmp_path, 2, store)
    publish(workspace, {"a": " ".join(str(n) for n in range(100))})
    store.indexes[1].unreachable = 2
    with workspace.read() as generation:
        total = generation.vectors.count()
        assert len(generation.vectors.search(vector("q"), 3)) == 3
        assert generation.vectors.search(vector("q"), total) == generation.vectors.exact_search(vector("q"), total)
    assert caplog.messages == []


def test_few_windows_are_all_compared_and_many_are_indexed(tmp_path: Path) -> None:
    larger = MemoryStore()
    workspace = Workspace(tmp_path, 5, StoreBySize(larger, exact_up_to=10 * SIZE))
    for name, built in (("a", []), ("b", [2])):
        publish(workspace, {name: f"{name} " * 60})
        assert list(larger.indexes) == built, "a small workspace has no index"
    for number in (1, 2):
        with workspace.read(number) as generation:
            assert generation.vectors.search(vector("q"), 3) == generation.vectors.exact_search(vector("q"), 3)
        assert bool(larger.indexes[2].searches) == (number == 2)


def test_memory_and_database_find_the_same_windows_and_order_equals_by_id(root: Path) -> None:
    with chroma(root).write() as staging:
        chunks = [put(staging, name, name * 20, embed=False)[0] for name in "dbca"]
        windows = [window(chunk, number) for chunk in chunks for number in range(3)]
        vectors = {w.text_hash: np.roll(np.ones(SIZE, dtype=np.float32), 1) for w in windows}
        vectors |= {windows[n].text_hash: vector(str(n)) for n in (2, 5, 7)}
        staging.vectors.put(MODEL, vectors)
        staging.vectors.put_windows(MODEL, windows)
        staging.publish()
    with chroma(root).read() as generation:
        index = ExactIndex(generation.vectors)
        for asked in (vector("q"), np.ones(SIZE, dtype=np.float32)):
            for count in (0, 1, 4, len(windows)):
                for of in (None, [], ["a"], ["c", "d", "no such"]):
                    assert index.search(asked, count, of) == generation.vectors.nearest(asked, count, of)


def test_an_unknown_store_is_refused_with_the_choices(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="auto, exact, chroma, chroma-server"):
        open_vector_store("faiss", tmp_path)
    for name in ("no_such_module:store", "tests.storage.memory_store:no_such_store"):
        with pytest.raises(SettingsError, match=r"imported.*no_such"):
            open_vector_store(name, tmp_path)
    with pytest.raises(SettingsError, match="http://localhost:8000"):
        open_vector_store("chroma-server", tmp_path)
