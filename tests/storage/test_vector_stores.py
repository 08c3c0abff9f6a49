"""Every vector store gives what the database says: Chroma, exact search, and one of a user's own.

Add a new store to `STORES`. A Chroma server takes seconds to start and has its own tests.
"""

import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from storage.chroma import ChromaFolders
from storage.exact_store import ExactStore
from storage.vector_store import VectorStore
from storage.workspace import Workspace
from tests.storage.memory_store import MemoryStore
from tests.storage.samples import MODEL, SIZE, publish, put, same_ranking, vector, window

STORES: dict[str, Callable[[Path], VectorStore]] = {
    "exact": lambda root: ExactStore(),
    "memory": lambda root: MemoryStore(),
    "chroma": ChromaFolders,
}


@pytest.fixture(params=STORES)
def workspace(request: pytest.FixtureRequest, tmp_path: Path) -> Workspace:
    return Workspace(tmp_path, 2, STORES[request.param](tmp_path))


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def in_memory(store: MemoryStore, tmp_path: Path) -> Workspace:
    return Workspace(tmp_path, 2, store)


def assert_search_is_exact(workspace: Workspace, caplog: pytest.LogCaptureFixture) -> None:
    """Searches through the store: one that falls back to the database warns."""
    caplog.clear()
    with workspace.read() as generation:
        for text in ("one", "two"):
            found = generation.vectors.search(vector(text), 4)
            assert same_ranking(found, generation.vectors.nearest_chunks(vector(text), 4))
            assert len(found) == 4
        generation.vectors.check()
    assert caplog.messages == []


def test_a_chunk_scores_by_its_best_window(workspace: Workspace) -> None:
    with workspace.write() as staging:
        chunk = put(staging, "a", "x" * 20, embed=False)[0]
        other = put(staging, "b", "y" * 20, embed=False)[0]
        windows = [window(chunk, 0), window(chunk, 1), window(other, 0)]
        hashes = [one.text_hash for one in windows]
        vectors = dict(zip(hashes, np.eye(3, SIZE, dtype=np.float32), strict=True))
        vectors[hashes[1]] = np.full(SIZE, 2.0, dtype=np.float32)
        staging.vectors.put(MODEL, vectors)
        staging.vectors.put_windows(MODEL, windows)
        staging.publish()
    with workspace.read() as generation:
        question = np.zeros(SIZE, dtype=np.float32)
        question[0] = 3
        search = generation.vectors.search
        assert [name for name, _ in search(question, 5)] == [chunk.id, other.id]
        assert [score for _, score in search(question, 5)] == pytest.approx([1, 0])
        assert search(question, 5, documents=["b"]) == [(other.id, 0.0)]
        assert search(question, 5, documents=[]) == search(question, 0) == []


def test_equal_scores_come_by_id(workspace: Workspace) -> None:
    publish(workspace, {"a": "x" * 400})  # Chunks with the same text have the same vector
    with workspace.read() as generation:
        found = generation.vectors.search(vector("q"), 20)
        chunks = generation.documents.chunks()
        assert [chunk for chunk, _ in found] == sorted(chunk.id for chunk in chunks)


def test_an_index_follows_every_change(
    workspace: Workspace, caplog: pytest.LogCaptureFixture
) -> None:
    publish(workspace, {name: f"{name} " * 60 for name in "abcdef"})
    assert_search_is_exact(workspace, caplog)
    with workspace.write() as staging:
        staging.documents.remove_documents(["a"])
        put(staging, "g", "gamma " * 10)
        put(staging, "b", "changed " * 8)
        staging.publish()
    assert_search_is_exact(workspace, caplog)
    for number, documents in ((1, "abcdef"), (2, "bcdefg")):
        with workspace.read(number) as generation:
            found = generation.vectors.search(vector("q"), 1000)
            windows = generation.vectors.windows()
            assert {chunk for chunk, _ in found} == {window.chunk for window in windows}
            assert {window.document for window in windows} == set(documents)


def test_a_rebuilt_index_does_not_disturb_an_open_reader(
    workspace: Workspace, caplog: pytest.LogCaptureFixture
) -> None:
    publish(workspace, {"a": "alpha " * 50})
    with workspace.read() as generation:
        before = generation.vectors.search(vector("q"), 3)
        assert workspace.rebuild_vectors(1) == 15
        assert generation.vectors.search(vector("q"), 3) == before
    assert_search_is_exact(workspace, caplog)


def test_a_generation_without_vectors_finds_nothing(workspace: Workspace) -> None:
    publish(workspace, {"a": "全部中文"}, embed=False)
    with workspace.read() as generation:
        assert generation.vectors.model() is None
        assert generation.vectors.search(vector("q"), 3) == []
        generation.vectors.check()
    assert workspace.rebuild_vectors() == 0


def test_many_threads_search_one_index(workspace: Workspace) -> None:
    publish(workspace, {name: f"{name} " * 60 for name in "abc"})
    with workspace.read() as generation, ThreadPoolExecutor(8) as threads:
        results = list(threads.map(generation.vectors.search, [vector("q")] * 8, [3] * 8))
    assert results == [results[0]] * 8


# --- what goes wrong ---


def test_without_its_index_the_database_answers(
    store: MemoryStore, in_memory: Workspace, caplog: pytest.LogCaptureFixture
) -> None:
    publish(in_memory, {name: f"{name} " * 60 for name in "abc"})
    store.indexes.clear()
    with in_memory.read() as generation:
        exact = generation.vectors.nearest_chunks(vector("q"), 3)
        assert [generation.vectors.search(vector("q"), 3) for _ in range(2)] == [exact, exact]
    assert [message.count("`trellis clean --vectors`") for message in caplog.messages] == [1]
    assert in_memory.rebuild_vectors() == 18
    assert_search_is_exact(in_memory, caplog)
    assert store.indexes[1].searches > 0


def test_an_index_that_misses_windows_is_completed(
    store: MemoryStore, in_memory: Workspace
) -> None:
    publish(in_memory, {"a": " ".join(str(number) for number in range(100))})
    store.indexes[1].unreachable = 2
    with in_memory.read() as generation:
        total = generation.vectors.count()
        assert len(generation.vectors.search(vector("q"), 3)) == 3
        exact = generation.vectors.nearest_chunks(vector("q"), total)
        assert generation.vectors.search(vector("q"), total) == exact


def test_an_index_goes_with_its_generation(store: MemoryStore, in_memory: Workspace) -> None:
    for name in "abc":
        publish(in_memory, {name: f"{name} " * 60})
    assert sorted(store.indexes) == [2, 3]
    assert store.prepared == 3


def test_a_damaged_chroma_folder_is_rebuilt(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    workspace = Workspace(tmp_path, 5, ChromaFolders(tmp_path))
    publish(workspace, {name: f"{name} " * 60 for name in "abc"})
    for damage in (shutil.rmtree, garble):
        (folder,) = tmp_path.glob("generations/000001/chroma-*")
        damage(folder)
        with workspace.read() as generation:
            exact = generation.vectors.nearest_chunks(vector("q"), 3)
            assert generation.vectors.search(vector("q"), 3) == exact
        assert "`trellis clean --vectors`" in caplog.text
        assert workspace.rebuild_vectors() == 18
        assert_search_is_exact(workspace, caplog)
    (folder,) = tmp_path.glob("generations/000001/chroma-*")
    garble(folder)
    publish(workspace, {"d": "delta"})
    assert "is built anew" in caplog.text
    assert_search_is_exact(workspace, caplog)


def garble(folder: Path) -> None:
    (folder / "chroma.sqlite3").write_bytes(b"garbage" * 1000)
