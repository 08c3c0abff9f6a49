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
from tests.storage.samples import MODEL, SIZE, publish, put, served_by, vector


@contextmanager
def windows_in(folder: Path) -> Iterator[chromadb.Collection]:
    """Opens a Chroma folder as any user of Chroma would."""
    settings = Settings(anonymized_telemetry=False)
    client = cast("Client", chromadb.PersistentClient(str(folder), settings))
    with client:
        yield client.get_collection("windows")


# --- stored vectors ---


def test_unused_vectors_are_dropped(tmp_path: Path) -> None:
    with Workspace(tmp_path).write() as staging:
        put(staging, "a", "x" * 30)
        hashes = {window.text_hash for window in staging.vectors.windows()}
        staging.vectors.put(MODEL, {"old": vector("o")})
        assert staging.vectors.have(MODEL, [*hashes, "none"]) == hashes
        assert staging.vectors.have("other", hashes) == set()
        assert np.array_equal(staging.vectors.get(MODEL, ["old"])["old"], vector("o"))
        staging.vectors.drop_unused()
        assert staging.vectors.have(MODEL, [*hashes, "old"]) == hashes


def test_the_vectors_of_the_windows_model_are_searched(tmp_path: Path) -> None:
    with Workspace(tmp_path).write() as staging:
        put(staging, "a", "x" * 30)
        staging.vectors.put("other", {"h": np.ones(4, dtype=np.float32)})
        staging.vectors.remove_windows()
        window = Window(id="chk_a_0#0-1", chunk="chk_a_0", document="a", text_hash="h")
        staging.vectors.put_windows("other", [window])
        staging.publish()
    with Workspace(tmp_path).read() as generation:
        search = generation.vectors.search
        assert search(np.ones(4, dtype=np.float32), 1) == [("chk_a_0", 1.0)]
        with pytest.raises(StorageError, match=r"shape \(3,\).*Embed the question with other"):
            search(np.ones(3, dtype=np.float32), 1)


@pytest.mark.parametrize(
    "bad", [np.zeros(SIZE), np.full(SIZE, np.nan), np.ones(SIZE + 1), np.ones((1, SIZE))]
)
def test_unusable_vectors_are_refused(tmp_path: Path, bad: np.ndarray) -> None:
    with Workspace(tmp_path).write() as staging:
        staging.vectors.put(MODEL, {"good": vector("g")})
        with pytest.raises(StorageError, match="vector of bad"):
            staging.vectors.put(MODEL, {"bad": bad.astype(np.float32)})
        assert staging.vectors.have(MODEL, ["bad"]) == set()


def test_a_window_is_the_stretch_that_its_id_names(tmp_path: Path) -> None:
    with Workspace(tmp_path).write() as staging:
        chunk = put(staging, "a", "x" * 19 + "y" * 21, embed=False)[1]
        row = Window(id=f"{chunk.id}#5-12", chunk=chunk.id, document="a", text_hash="h")
        staging.vectors.put(MODEL, {"h": vector("h")})
        staging.vectors.put_windows(MODEL, [row])
        ((entry,),) = staging.vectors.entries(10)
    assert entry.text == "y" * 7
    assert (entry.metadata["start"], entry.metadata["end"]) == (25, 32)
    assert np.array_equal(entry.vector, vector("h"))


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
    with served_by("chroma", tmp_path).write() as staging:
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


def test_an_address_without_the_name_of_its_store_is_refused(tmp_path: Path) -> None:
    given = {"workspace": tmp_path, "vector_url": "http://localhost:6333"}
    with pytest.raises(SettingsError, match=r"TRELLIS_VECTOR_URL, such as qdrant or pgvector"):
        open_runtime(load_settings(given, {}))


def test_a_store_of_ones_own_serves_a_run_and_a_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "site" / "my_store-1.0.dist-info"
    package.mkdir(parents=True)
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: my-store\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text(
        "[trellis.vector_stores]\n"
        "memory = tests.storage.memory_store:open_store\n"
        "lost = tests.storage.memory_store:no_such_store\n"
        "milvus = storage.milvus_store:open_store\n"
    )
    monkeypatch.syspath_prepend(tmp_path / "site")
    with pytest.raises(SettingsError, match="no_such_store"):
        open_vector_store("lost", tmp_path)
    with pytest.raises(SettingsError, match=r"pip install 'trellis-rag\[milvus\]'"):
        open_vector_store("milvus", tmp_path)  # One of ours, whose extra is missing
    source = tmp_path / "bridge.txt"
    source.write_text("Orla Bridge was designed by Tomas Reyd and opened in 1931.")
    given = {"workspace": tmp_path / "ws", "vector_store": "memory"}
    runtime = open_runtime(load_settings(given, {}))
    asyncio.run(build_index([source], IndexOptions(), runtime))
    with open_session(runtime) as session:
        (found,) = session.dense(["Who designed the bridge?"])
    (store,) = (store for root, store in STORES.items() if root.is_relative_to(tmp_path))
    assert (store.prepared, list(store.indexes)) == (1, [1])
    assert store.indexes[1].searches > 0
    assert len(found) == 1
