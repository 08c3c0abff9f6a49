"""The vectors in the database, the choice of a store by name, and what a user of Chroma finds."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import cast

import chromadb
import numpy as np
import pytest
from chromadb.api.client import Client
from chromadb.config import Settings

from flows.index import IndexOptions, build_index
from flows.runtime import open_runtime
from flows.session import open_session
from storage.errors import SettingsError, StorageError
from storage.records import Scalar
from storage.vector_search import AutoStore, open_vector_store
from storage.vectors import Window
from storage.workspace import Workspace
from tests.settings import load_settings
from tests.storage.memory_store import STORES
from tests.storage.samples import MODEL, SIZE, publish, put, vector


@contextmanager
def windows_in(folder: Path) -> Iterator[chromadb.Collection]:
    """A generation's folder of Chroma's, as somebody opens it who knows Chroma alone."""
    settings = Settings(anonymized_telemetry=False)
    client = cast("Client", chromadb.PersistentClient(str(folder), settings))
    with client:
        yield client.get_collection("windows")


# --- stored vectors ---


def test_vectors_are_stored_once_and_dropped_when_unused(tmp_path: Path) -> None:
    with Workspace(tmp_path).write() as staging:
        put(staging, "a", "x" * 30)
        hashes = {window.text_hash for window in staging.vectors.windows()}
        staging.vectors.put(MODEL, {"old": vector("o")})
        assert staging.vectors.have(MODEL, [*hashes, "none"]) == hashes
        assert staging.vectors.have("other", hashes) == set()
        assert np.array_equal(staging.vectors.get(MODEL, ["old"])["old"], vector("o"))
        staging.vectors.drop_unused()
        assert staging.vectors.have(MODEL, [*hashes, "old"]) == hashes
        staging.vectors.put("other", {"h": np.ones(4, dtype=np.float32)})
        staging.vectors.remove_windows()
        window = Window(id="chk_a_0#0-1", chunk="chk_a_0", document="a", text_hash="h")
        staging.vectors.put_windows("other", [window])
        staging.publish()
    with Workspace(tmp_path).read() as generation:
        found = generation.vectors.search(np.ones(4, dtype=np.float32), 1)
        assert found == [("chk_a_0", 1.0)]


@pytest.mark.parametrize(
    "bad", [np.zeros(SIZE), np.full(SIZE, np.nan), np.ones(SIZE + 1), np.ones((1, SIZE))]
)
def test_unusable_vectors_are_refused(tmp_path: Path, bad: np.ndarray) -> None:
    with Workspace(tmp_path).write() as staging:
        staging.vectors.put(MODEL, {"good": vector("g")})
        with pytest.raises(StorageError, match="vector of bad"):
            staging.vectors.put(MODEL, {"bad": bad.astype(np.float32)})
        assert staging.vectors.have(MODEL, ["bad"]) == set()


def test_a_vector_of_another_model_is_refused(tmp_path: Path) -> None:
    publish(tmp_path, {"a": "alpha"})
    refused = pytest.raises(StorageError, match=r"shape \(3,\).*Embed the question with tiny")
    with Workspace(tmp_path).read() as generation, refused:
        generation.vectors.search(np.ones(3, dtype=np.float32), 5)


def test_a_window_is_the_stretch_that_its_id_names(tmp_path: Path) -> None:
    with Workspace(tmp_path).write() as staging:
        chunk, other = put(staging, "a", "x" * 19 + "y" * 21, embed=False)[:2]
        rows = [
            Window(id=f"{one.id}#5-12", chunk=one.id, document="a", text_hash=one.id)
            for one in (chunk, other)
        ]
        staging.vectors.put(MODEL, {row.text_hash: vector(row.id) for row in rows})
        staging.vectors.put_windows(MODEL, rows)
        first, second = next(staging.vectors.entries(10))
    assert (first.text, second.text) == ("x" * 7, "y" * 7)
    assert (second.metadata["start"], second.metadata["end"]) == (25, 32)
    assert np.array_equal(second.vector, vector(rows[1].id))


# --- Chroma ---


def test_a_user_of_chroma_finds_texts_metadata_and_cosines(tmp_path: Path) -> None:
    texts = {name: f"{name} " + " ".join(map(str, range(40))) for name in "abc"}
    publish(tmp_path, texts, store="chroma")
    with Workspace(tmp_path).read() as generation:
        window = generation.vectors.windows()[0]
        chunk = generation.documents.chunks()[0]
    with windows_in(tmp_path / "generations" / "000001" / "chroma-1") as collection:
        assert collection.metadata["embedding_model"] == MODEL
        found = collection.query(
            query_embeddings=[vector(window.text_hash).tolist()],
            n_results=2,
            where={"$and": [{"year": 1999}, {"document": "a"}]},
            where_document={"$contains": "a 0 1"},
        )
    assert found["ids"][0][0] == window.id
    assert (found["distances"] or [])[0][0] == pytest.approx(0, abs=1e-5)
    assert (found["documents"] or [])[0][0] == chunk.text
    assert (found["metadatas"] or [])[0][0] == {
        "document": "a",
        "chunk": chunk.id,
        "title": "On a",
        "heading": "A > B",
        "path": "a.md",
        "language": "en",
        "kind": "text",
        "start": 0,
        "end": 20,
        "year": 1999,
    }


def test_an_index_that_is_carried_over_has_new_metadata(tmp_path: Path) -> None:
    publish(tmp_path, {name: f"{name} " * 60 for name in "abc"}, store="chroma")
    odd: dict[str, Scalar] = {"": 1, "#tag": "x", "chroma:document": "y", "share": float("nan")}
    store = open_vector_store("chroma", tmp_path)
    with Workspace(tmp_path, store=store).write() as staging:
        (stored,) = staging.documents.documents(["a"])
        changed = replace(stored, metadata={"year": 2001, **odd})
        staging.documents.put_documents([changed])
        staging.publish()
    with windows_in(tmp_path / "generations" / "000002" / "chroma-1") as collection:
        found = collection.get(where={"year": 2001})["metadatas"] or []
    assert {row["document"] for row in found} == {"a"}
    assert all(row.keys().isdisjoint(odd.keys()) for row in found)


# --- the choice of a store ---


def test_many_windows_are_indexed_and_few_are_compared(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path, 5, AutoStore(tmp_path, exact_up_to=10 * SIZE))
    for name in "ab":
        publish(workspace, {name: f"{name} " * 60})
    indexed = [path.parent.name for path in tmp_path.glob("generations/*/chroma-1")]
    assert indexed == ["000002"]
    for number in (1, 2):
        with workspace.read(number) as generation:
            exact = generation.vectors.nearest_chunks(vector("q"), 3)
            assert generation.vectors.search(vector("q"), 3) == exact


def test_an_unknown_store_is_refused_with_the_choices(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="auto, exact, chroma, chroma-server"):
        open_vector_store("os:system", tmp_path)
    with pytest.raises(SettingsError, match="http://localhost:8000"):
        open_vector_store("chroma-server", tmp_path)


TEXTS = {
    "bridge": "Orla Bridge was designed by Tomas Reyd and opened in 1931.",
    "ferry": "The Velin Ferry carried cattle across the lake until 1950.",
    "bread": "Rye bread is baked from flour, water and sourdough.",
}
QUESTIONS = ["Who designed the bridge?", "What is bread made of?"]


def index_and_retrieve(folder: Path, store: str) -> list[dict[str, float]]:
    """A real run over documents, and what questions find in it by their vectors."""
    for name, text in TEXTS.items():
        (folder / f"{name}.txt").write_text(text, encoding="utf-8")
    given = {"workspace": folder / store, "vector_store": store, "keep_generations": 1}
    runtime = open_runtime(load_settings(given, {}))
    sources = [folder / f"{name}.txt" for name in TEXTS]
    asyncio.run(build_index(sources, IndexOptions(), runtime))
    with open_session(runtime) as session:
        return [dict(found) for found in session.dense(QUESTIONS)]


def test_a_store_of_ones_own_serves_a_run_and_a_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "site" / "my_store-1.0.dist-info"
    package.mkdir(parents=True)
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: my-store\nVersion: 1.0\n")
    stores = {"memory": "memory_store:open_store", "lost": "memory_store:no_such_store"}
    entries = [f"{name} = tests.storage.{place}" for name, place in stores.items()]
    head = "[trellis.vector_stores]"
    (package / "entry_points.txt").write_text("\n".join([head, *entries]) + "\n")
    monkeypatch.syspath_prepend(tmp_path / "site")
    with pytest.raises(SettingsError, match="no_such_store"):
        open_vector_store("lost", tmp_path)
    found = index_and_retrieve(tmp_path, "memory")
    (store,) = (store for root, store in STORES.items() if root.is_relative_to(tmp_path))
    assert (store.prepared, list(store.indexes)) == (1, [1])
    assert store.indexes[1].searches > 0
    expected = index_and_retrieve(tmp_path, "exact")
    assert [list(one) for one in found] == [list(one) for one in expected]
    assert all(len(one) == len(TEXTS) for one in found)
