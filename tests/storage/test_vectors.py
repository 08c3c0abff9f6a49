"""Searching through Chroma gives what the database says, whatever happens to Chroma's folder."""

import logging
import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from storage.chroma import SEAL
from storage.errors import StorageError
from storage.vector_stores import open_vector_store
from storage.vectors import LEAST_RECALL, Window, measured_recall
from storage.workspace import Workspace
from tests.storage.samples import MODEL, SIZE, publish, put, same_ranking, served_by, vector, window


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
    with chroma(root).write() as staging:
        staging.documents.remove_documents(["a"])
        put(staging, "g", "gamma " * 10)
        put(staging, "b", "changed " * 8)
        staging.publish()
    assert caplog.messages == []  # carried over, not built anew
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


def test_the_base_index_is_carried_over_not_built_again(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    publish(root, {"a": "alpha " * 50}, store="chroma")
    (root / "generations" / "000001" / "chroma-1" / "marker").touch()
    publish(root, {"b": "b"}, store="chroma")
    assert (root / "generations" / "000002" / "chroma-1" / "marker").exists()
    assert_search_is_exact(root, caplog)


def delete_index(folder: Path) -> None:
    shutil.rmtree(folder)


def garble_database(folder: Path) -> None:
    (folder / "chroma.sqlite3").write_bytes(b"garbage" * 1000)


def garble_graph(folder: Path) -> None:
    for file in folder.glob("*/*.bin"):
        file.write_bytes(b"garbage" * 100)
    (folder / "chroma.sqlite3").write_bytes((folder / "chroma.sqlite3").read_bytes()[:5000])


@pytest.mark.parametrize("damage", [delete_index, garble_database, garble_graph])
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


def test_a_lost_search_graph_is_noticed(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Chroma then still opens and counts every window, but finds hardly any."""
    texts = {"a": " ".join(str(n) for n in range(6_000))}  # it writes its graph to files from 1,000 windows on
    publish(root, texts, store="chroma")
    graph = [f for f in (root / "generations" / "000001" / "chroma-1").iterdir() if f.is_dir()]
    assert len(list(graph[0].glob("*.bin"))) > 1
    shutil.rmtree(graph[0])
    (graph[0].parent / SEAL).unlink()  # as in an index of an earlier version
    with chroma(root).read() as generation:
        found = generation.vectors.search(vector("q"), 30)
        assert found == generation.vectors.exact_search(vector("q"), 30)
    assert "found" in caplog.text
    publish(root, {"b": "beta"}, store="chroma")
    assert_search_is_exact(root, caplog)


def test_what_chroma_finds_too_little_of_is_compared_in_the_database(
    root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A few thousand equal vectors cut its graph in two."""
    many = 1_500
    vectors = np.random.default_rng(1).standard_normal((many, SIZE)).astype(np.float32)
    vectors[many // 2 :] = vectors[0]
    with chroma(root).write() as staging:
        chunk = put(staging, "a", "x", embed=False)[0]
        hashes = [f"h{i}" for i in range(many)]
        staging.vectors.put(MODEL, dict(zip(hashes, vectors, strict=True)))
        windows = [Window(id=f"w{i}", chunk=chunk.id, document="a", text_hash=h) for i, h in enumerate(hashes)]
        staging.vectors.put_windows(MODEL, windows)
        staging.publish()
    with chroma(root).read() as generation:
        with closing(open_vector_store("chroma", root).open(generation.vectors)) as index:
            assert measured_recall(index, generation.vectors) >= LEAST_RECALL
        assert len(generation.vectors.search(vector("q"), 1)) == 1
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


def test_the_next_run_mends_a_damaged_index(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    publish(root, {"a": "alpha " * 50}, store="chroma")
    garble_database(root / "generations" / "000001" / "chroma-1")
    publish(root, {"b": "beta"}, store="chroma")
    assert_search_is_exact(root, caplog)


def test_rebuilding_does_not_disturb_an_open_reader(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    publish(root, {"a": "alpha " * 50}, store="chroma")
    with chroma(root).read() as generation:
        before = generation.vectors.search(vector("q"), 3)
        assert chroma(root).rebuild_vectors(1) == 15
        assert index_folders(root, 1) == ["chroma-2"]
        assert generation.vectors.search(vector("q"), 3) == before
    assert_search_is_exact(root, caplog)


def test_a_generation_without_vectors_works(root: Path) -> None:
    with chroma(root).write() as staging:
        put(staging, "a", "全部中文", embed=False)
        staging.publish()
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
        staging.vectors.put(MODEL, {"entity": vector("e"), "old": vector("o")})
        assert staging.vectors.have(MODEL, [*hashes, "none"]) == hashes
        assert staging.vectors.have("other", hashes) == set()
        staging.vectors.drop_unused(keep=["entity"])
        assert staging.vectors.have(MODEL, [*hashes, "entity", "old"]) == hashes | {"entity"}
        kept = staging.vectors.get(MODEL, ["entity"])["entity"]
        assert kept.dtype == np.float32
        assert np.array_equal(kept, vector("e"))


@pytest.mark.parametrize("bad", [np.zeros(SIZE), np.full(SIZE, np.nan), np.ones(SIZE + 1), np.ones((1, SIZE))])
def test_unusable_vectors_are_refused(root: Path, bad: np.ndarray) -> None:
    with chroma(root).write() as staging:
        staging.vectors.put(MODEL, {"good": vector("g")})
        with pytest.raises(StorageError, match="vector of bad"):
            staging.vectors.put(MODEL, {"bad": bad.astype(np.float32)})
        assert staging.vectors.have(MODEL, ["bad"]) == set()


def test_a_generation_is_served_by_one_model(root: Path) -> None:
    with chroma(root).write() as staging:
        chunk = put(staging, "a", "x")[0]
        staging.vectors.put("other", {"h": np.ones(4, dtype=np.float32)})
        foreign = Window(id="w", chunk=chunk.id, document="a", text_hash="h")
        with pytest.raises(StorageError, match="embedded by tiny, not other"):
            staging.vectors.put_windows("other", [foreign])
        staging.vectors.remove_windows()
        with pytest.raises(StorageError, match="no vector of other for text g"):
            staging.vectors.put_windows("other", [foreign.model_copy(update={"text_hash": "g"})])
        staging.vectors.put_windows("other", [foreign])
        staging.publish()
    with chroma(root).read() as generation:
        assert generation.vectors.search(np.ones(4, dtype=np.float32), 1) == [(chunk.id, 1.0)]


def test_chroma_is_not_imported_before_it_is_needed(root: Path) -> None:
    import subprocess
    import sys

    code = "import sys; from storage.workspace import Workspace; assert 'chromadb' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code], check=False, cwd=Path(__file__).parents[2]).returncode == 0
