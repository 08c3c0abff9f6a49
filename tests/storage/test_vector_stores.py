"""Which store serves the vectors is a setting; another one is a class of four methods, whose index has two."""

import asyncio
import logging
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from flows.index import IndexOptions, build_index
from flows.runtime import open_runtime
from flows.session import open_session
from flows.settings import load_settings
from storage.errors import SettingsError, StorageError
from storage.vector_stores import VECTOR_STORES, StoreBySize, open_vector_store
from storage.vectors import REBUILD, ExactIndex, Hit, StoredVectors, Vector, Window, check_recall
from storage.workspace import Workspace
from tests.storage.samples import publish, put, vector

TEXTS = {
    "bridge": "Orla Bridge was designed by Tomas Reyd and opened in 1931.",
    "ferry": "The Velin Ferry carried cattle across the lake until 1950.",
    "bread": "Rye bread is baked from flour, water and sourdough.",
}


@dataclass
class MemoryStore:
    """Keeps every index in a dictionary; all that a vector store of one's own has to do."""

    indexes: dict[int, "MemoryIndex"] = field(default_factory=dict)
    prepared: int = 0

    def prepare(self) -> None:
        self.prepared += 1

    def build(self, stored: StoredVectors, base: StoredVectors | None) -> None:
        windows = stored.windows()
        rows = stored.vectors_of(windows)
        self.indexes[stored.number] = MemoryIndex(windows, rows / np.linalg.norm(rows, axis=1, keepdims=True))

    def open(self, stored: StoredVectors) -> "MemoryIndex":
        if stored.number not in self.indexes:
            raise StorageError("memory", "the index is gone", REBUILD)
        return self.indexes[stored.number]

    def keep_only(self, numbers: Collection[int]) -> None:
        self.indexes = {number: index for number, index in self.indexes.items() if number in numbers}


@dataclass
class MemoryIndex:
    windows: list[Window]
    rows: np.ndarray
    searches: int = 0
    unreachable: int = 0  # as in a graph that no path leads through

    def search(self, vector: Vector, count: int, documents: Collection[str] | None) -> list[Hit]:
        self.searches += 1
        cosines = self.rows @ (vector / np.linalg.norm(vector))
        reached = [i for i in np.argsort(-cosines) if i >= self.unreachable]
        inside = [i for i in reached if documents is None or self.windows[i].document in documents]
        return [
            Hit(window=self.windows[i].id, chunk=self.windows[i].chunk, cosine=float(cosines[i]))
            for i in inside[:count]
        ]

    def close(self) -> None:
        pass


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
    store = MemoryStore()
    VECTOR_STORES["memory"] = lambda root, url: store
    try:
        found = index_and_retrieve(tmp_path, "memory")
    finally:
        del VECTOR_STORES["memory"]
    assert (store.prepared, list(store.indexes), store.indexes[1].searches > 0) == (1, [1], True)
    expected = index_and_retrieve(tmp_path, "exact")
    assert [list(one) for one in found] == [list(one) for one in expected]
    assert all(len(one) == len(TEXTS) for one in found)


def test_its_indexes_go_with_their_generations_and_can_be_built_anew(tmp_path: Path) -> None:
    store = MemoryStore()
    workspace = Workspace(tmp_path, 2, store)
    for name in "abc":
        with workspace.write() as staging:
            put(staging, name, f"{name} " * 60)
            staging.publish()
    assert sorted(store.indexes) == [2, 3]
    store.indexes.clear()
    assert workspace.rebuild_vectors() == 18
    with workspace.read() as generation:
        assert generation.vectors.search(vector("q"), 3) == generation.vectors.exact_search(vector("q"), 3)
    assert store.indexes[3].searches > 0


def test_an_index_that_is_gone_is_told_and_searched_around(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    workspace = Workspace(tmp_path, 2, MemoryStore())
    publish(tmp_path, {"a": "alpha " * 60})
    with workspace.read() as generation:
        for _ in range(2):
            assert generation.vectors.search(vector("q"), 3) == generation.vectors.exact_search(vector("q"), 3)
    assert ["the index is gone" in line and REBUILD in line for line in caplog.messages] == [True]


@pytest.mark.parametrize(("unreachable", "told"), [(0, False), (2, False), (50, True)])
def test_an_approximate_index_is_not_a_broken_one(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, unreachable: int, told: bool
) -> None:
    """Which it is, is measured: one that misses a few windows is used on, one that misses most of them is told."""
    store = MemoryStore()
    workspace = Workspace(tmp_path, 2, store)
    with workspace.write() as staging:
        put(staging, "a", " ".join(str(n) for n in range(100)))
        staging.publish()
    store.indexes[1].unreachable = unreachable
    with workspace.read() as generation:
        total = generation.vectors.count()
        assert len(generation.vectors.search(vector("q"), 3)) == 3
        for _ in range(2):
            assert generation.vectors.search(vector("q"), total) == generation.vectors.exact_search(vector("q"), total)
    assert ["found" in line and REBUILD in line for line in caplog.messages] == [True] * told


def test_recall_is_measured_against_all_vectors(tmp_path: Path) -> None:
    publish(tmp_path, {"a": " ".join(str(n) for n in range(100)), "b": "same " * 60})
    with Workspace(tmp_path).read() as generation:
        stored = generation.vectors
        check_recall(ExactIndex(stored), stored)
        store = MemoryStore()
        store.build(stored, None)
        check_recall(store.indexes[1], stored)
        store.indexes[1].unreachable = 30
        with pytest.raises(StorageError, match=r"found \d+% of the nearest windows"):
            check_recall(store.indexes[1], stored)


def test_few_windows_are_all_compared_and_many_are_indexed(tmp_path: Path) -> None:
    larger = MemoryStore()
    workspace = Workspace(tmp_path, 5, StoreBySize(larger, exact_up_to=10))
    for name, built in (("a", []), ("b", [2])):
        with workspace.write() as staging:
            put(staging, name, f"{name} " * 60)
            staging.publish()
        assert list(larger.indexes) == built
    for number in (1, 2):
        with workspace.read(number) as generation:
            assert generation.vectors.search(vector("q"), 3) == generation.vectors.exact_search(vector("q"), 3)
        assert bool(larger.indexes[2].searches) == (number == 2)


def test_a_small_workspace_has_no_index_and_says_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    publish(tmp_path, {"a": "alpha " * 60})
    assert not list(tmp_path.glob("generations/*/chroma-*"))
    with caplog.at_level(logging.INFO), Workspace(tmp_path).read() as generation:
        assert len(generation.vectors.search(vector("q"), 3)) == 3
    assert caplog.messages == []


def test_an_unknown_store_is_refused_with_the_choices(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="auto, exact, chroma, chroma-server"):
        open_vector_store("faiss", tmp_path)
    with pytest.raises(SettingsError, match="http://localhost:8000"):
        open_vector_store("chroma-server", tmp_path)
