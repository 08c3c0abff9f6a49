"""Every vector store gives what the database says: ours, those of extras, and one of a user's own.

Add a new store to `STORES`. A Chroma server takes seconds to start and has its own tests.
"""

import shutil
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from importlib.metadata import EntryPoint
from pathlib import Path

import numpy as np
import pytest

from storage.chroma import ChromaFolders
from storage.errors import SettingsError, StorageError
from storage.exact_store import ExactStore
from storage.server_store import ServerStore
from storage.vector_store import ENTRY_POINTS, REBUILD, ServerAddress, StoreMaker, VectorStore
from storage.workspace import Workspace
from tests.storage.memory_store import MemoryStore
from tests.storage.samples import MODEL, SIZE, publish, put, same_ranking, vector, window
from tests.storage.vector_servers import postgres, qdrant

PROJECT = Path(__file__).parents[2] / "pyproject.toml"
Making = Callable[[Path], VectorStore]
STORES: dict[str, Making] = {
    "exact": lambda root: ExactStore(),
    "memory": lambda root: MemoryStore(),
    "chroma": ChromaFolders,
}
# The library of each extra, and the fixture that gives its server's address.
EXTRAS = {
    "usearch": ("usearch", None),
    "qdrant": ("qdrant_client", None),
    "qdrant server": ("qdrant_client", "qdrant_url"),
    "pgvector": ("pgvector", "postgres_url"),
}
SERVED = [name for name, (_, server) in EXTRAS.items() if server]


@pytest.fixture(scope="module")
def postgres_url() -> Iterator[str]:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, postgres(folder) as url:
        yield url


@pytest.fixture(scope="module")
def qdrant_url() -> Iterator[str]:
    with qdrant() as url:
        yield url


@pytest.fixture
def making(request: pytest.FixtureRequest) -> Making:
    """What makes the store `request.param` of a folder."""
    if request.param in STORES:
        return STORES[request.param]
    library, server = EXTRAS[request.param]
    pytest.importorskip(library, reason=f"needs the extra {request.param.split()[0]}")
    maker = declared()[request.param.split()[0]]
    address = ServerAddress(request.getfixturevalue(server)) if server else None
    return lambda root: maker(root, address)


def declared() -> dict[str, StoreMaker]:
    """The stores that this project declares as entry points, whatever is installed."""
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    entries = project["entry-points"][ENTRY_POINTS]
    return {name: EntryPoint(name, value, ENTRY_POINTS).load() for name, value in entries.items()}


@pytest.fixture
def workspace(making: Making, tmp_path: Path) -> Workspace:
    return Workspace(tmp_path, 2, making(tmp_path))


every_store = pytest.mark.parametrize("making", [*STORES, *EXTRAS], indirect=True)
every_server = pytest.mark.parametrize("making", SERVED, indirect=True)


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


@every_store
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


@every_store
def test_equal_scores_come_by_id(workspace: Workspace) -> None:
    publish(workspace, {"a": "x" * 400})  # Chunks with the same text have the same vector
    with workspace.read() as generation:
        found = generation.vectors.search(vector("q"), 20)
        chunks = generation.documents.chunks()
        assert [chunk for chunk, _ in found] == sorted(chunk.id for chunk in chunks)


@every_store
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
    publish(workspace, {"h": "only more " * 10})
    assert_search_is_exact(workspace, caplog)


@every_store
def test_a_rebuilt_index_does_not_disturb_an_open_reader(
    workspace: Workspace, caplog: pytest.LogCaptureFixture
) -> None:
    publish(workspace, {"a": "alpha " * 50})
    with workspace.read() as generation:
        before = generation.vectors.search(vector("q"), 3)
        assert workspace.rebuild_vectors(1) == 15
        assert generation.vectors.search(vector("q"), 3) == before
    assert_search_is_exact(workspace, caplog)


@every_store
def test_a_generation_without_vectors_finds_nothing(workspace: Workspace) -> None:
    publish(workspace, {"a": "全部中文"}, embed=False)
    with workspace.read() as generation:
        assert generation.vectors.model() is None
        assert generation.vectors.search(vector("q"), 3) == []
        generation.vectors.check()
    assert workspace.rebuild_vectors() == 0


@every_store
def test_many_threads_search_one_index(workspace: Workspace) -> None:
    publish(workspace, {name: f"{name} " * 60 for name in "abc"})
    with workspace.read() as generation, ThreadPoolExecutor(8) as threads:
        results = list(threads.map(generation.vectors.search, [vector("q")] * 8, [3] * 8))
    assert results == [results[0]] * 8


@every_store
def test_long_vectors_and_any_character_are_kept(
    workspace: Workspace, caplog: pytest.LogCaptureFixture
) -> None:
    with workspace.write() as staging:
        text = " ".join(f"{number}\0 中文 𝄞" for number in range(20))
        windows = [window(chunk) for chunk in put(staging, "a", text, embed=False)]
        rows = np.eye(len(windows), 2_500, dtype=np.float32)
        hashes = [one.text_hash for one in windows]
        staging.vectors.put(MODEL, dict(zip(hashes, rows, strict=True)))
        staging.vectors.put_windows(MODEL, windows)
        staging.publish()
    with workspace.read() as generation:
        assert generation.vectors.search(2 * rows[3], 1) == [(windows[3].chunk, 1.0)]
        generation.vectors.check()
    assert caplog.messages == []


@every_store
def test_the_nearest_are_those_that_numpy_finds(workspace: Workspace) -> None:
    publish(workspace, {"a": " ".join(str(number) for number in range(1500))})
    with workspace.read() as generation:
        entries = [entry for page in generation.vectors.entries(1_000) for entry in page]
        rows = np.stack([entry.vector for entry in entries])
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        for text in ("one", "two", "三"):
            asked = vector(text)
            cosines = rows @ (asked / np.linalg.norm(asked))
            best = [(entries[at].id.partition("#")[0], cosines[at]) for at in np.argsort(-cosines)]
            found = generation.vectors.search(asked, 10)
            assert same_ranking(found, [(chunk, float(cosine)) for chunk, cosine in best[:10]])


@every_store
def test_readers_are_served_while_an_index_is_rebuilt(workspace: Workspace) -> None:
    publish(workspace, {name: f"{name} " * 60 for name in "abc"})

    def answer(_: int) -> list[tuple[str, float]]:
        with workspace.read() as generation:
            return generation.vectors.search(vector("q"), 3)

    expected = answer(0)
    with ThreadPoolExecutor(4) as threads:
        answers = threads.map(answer, range(24))
        for _ in range(3):
            workspace.rebuild_vectors()
        assert all(same_ranking(found, expected) for found in answers)


@every_store
def test_another_process_opens_what_was_built(
    making: Making, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    built = making(tmp_path)
    publish(Workspace(tmp_path, 2, built), {"文": "全部中文 " * 30})
    # What is in memory alone does not outlive its process
    again = built if isinstance(built, MemoryStore) else making(tmp_path)
    assert_search_is_exact(Workspace(tmp_path, 2, again), caplog)


@every_server
def test_workspaces_on_one_server_do_not_mix(
    making: Making, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    one, other = (Workspace(tmp_path / name, 2, making(tmp_path / name)) for name in "ab")
    for text in ("alpha", "beta", "gamma"):
        publish(one, {text: f"{text} " * 30})
        publish(other, {text: f"{text} of another " * 30})
    one.clean(1)
    for workspace in (one, other):
        assert_search_is_exact(workspace, caplog)


@every_server
def test_a_server_keeps_the_indexes_of_kept_generations(making: Making, tmp_path: Path) -> None:
    store = making(tmp_path)
    workspace = Workspace(tmp_path, 2, store)
    for text in ("alpha", "beta", "gamma"):
        publish(workspace, {text: f"{text} " * 30})
    with workspace.write() as staging:
        put(staging, "d", "never published " * 20)
        staging.build_index()
    workspace.rebuild_vectors()
    assert len(indexes(store, tmp_path)) == 4
    workspace.clean()
    assert [name.split("_")[2] for name in indexes(store, tmp_path)] == ["000002", "000003"]


def indexes(store: VectorStore, root: Path) -> list[str]:
    assert isinstance(store, ServerStore)
    identity = (root / "IDENTITY").read_text(encoding="utf-8").strip()
    return sorted(name for name in store.server.names() if identity in name)


@pytest.mark.parametrize("making", ["pgvector"], indirect=True)
def test_a_lost_connection_is_made_anew(
    making: Making, workspace: Workspace, postgres_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    import psycopg

    publish(workspace, {"a": "alpha " * 60})
    with workspace.read() as generation:
        before = generation.vectors.search(vector("q"), 3)
        with psycopg.connect(postgres_url) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
            )
        assert generation.vectors.search(vector("q"), 3) == before
    assert caplog.messages == []


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


def all_garbled(folder: str, pattern: str) -> Callable[[Path, VectorStore], None]:
    def damage(root: Path, store: VectorStore) -> None:
        (file,) = root.glob(f"generations/*/{folder}/{pattern}")
        file.write_bytes(b"garbage" * 1000)

    return damage


def one_byte_changed(root: Path, store: VectorStore) -> None:
    (file,) = root.glob("generations/*/usearch-*/graph.usearch")
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def removed_on_the_server(root: Path, store: VectorStore) -> None:
    assert isinstance(store, ServerStore)
    for name in indexes(store, root):
        store.server.remove(name)


def removed(root: Path, store: VectorStore) -> None:
    for folder in root.glob("generations/*/*-*"):
        shutil.rmtree(folder)


@pytest.mark.parametrize(
    ("making", "damage"),
    [
        ("chroma", removed),
        ("chroma", all_garbled("chroma-*", "chroma.sqlite3")),
        ("usearch", removed),
        ("usearch", all_garbled("usearch-*", "graph.usearch")),
        ("usearch", one_byte_changed),
        *((name, removed_on_the_server) for name in SERVED),
    ],
    indirect=["making"],
)
def test_a_damaged_index_is_told_and_rebuilt(
    making: Making,
    damage: Callable[[Path, VectorStore], None],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = making(tmp_path)
    workspace = Workspace(tmp_path, 5, store)
    publish(workspace, {name: f"{name} " * 60 for name in "abc"})
    damage(tmp_path, store)
    with workspace.read() as generation:
        with pytest.raises(StorageError) as told, closing(store.open(generation.vectors)):
            pass
        assert told.value.remedy == REBUILD
        exact = generation.vectors.nearest_chunks(vector("q"), 3)
        assert generation.vectors.search(vector("q"), 3) == exact
    assert REBUILD in caplog.text
    assert workspace.rebuild_vectors() == 18
    assert_search_is_exact(workspace, caplog)
    damage(tmp_path, store)
    publish(workspace, {"d": "delta"})
    assert_search_is_exact(workspace, caplog)


@pytest.mark.parametrize(
    ("name", "library", "url", "problem"),
    [
        ("qdrant", "qdrant_client", "localhost:6333", r"vector_url.*http://localhost:6333"),
        ("pgvector", "pgvector", None, r"vector_url.*postgresql://USER@localhost"),
        ("pgvector", "pgvector", "mysql://ada:p4ssw0rd@db/x", r"'mysql://db/x'"),
    ],
)
def test_an_unusable_address_of_a_server_is_refused(
    name: str, library: str, url: str | None, problem: str, tmp_path: Path
) -> None:
    pytest.importorskip(library, reason=f"needs the extra {name}")
    with pytest.raises(SettingsError, match=problem) as told:
        declared()[name](tmp_path, ServerAddress(url) if url else None)
    assert "p4ssw0rd" not in str(told.value)


@pytest.mark.parametrize(
    ("name", "library", "url"),
    [
        ("qdrant", "qdrant_client", "http://127.0.0.1:9"),
        ("pgvector", "pgvector", "postgresql://ada:p4ssw0rd@127.0.0.1:9/x"),
    ],
)
def test_a_run_ends_at_once_without_its_server(
    name: str, library: str, url: str, tmp_path: Path
) -> None:
    pytest.importorskip(library, reason=f"needs the extra {name}")
    store = declared()[name](tmp_path, ServerAddress(url))
    with pytest.raises(StorageError, match=r"127\.0\.0\.1:9.*TRELLIS_VECTOR_URL") as told:
        Workspace(tmp_path, 2, store).write()
    assert "p4ssw0rd" not in str(told.value)


def test_a_guarded_qdrant_server_gets_the_key(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    pytest.importorskip("qdrant_client", reason="needs the extra qdrant")
    maker = declared()["qdrant"]
    with qdrant("key-4711") as url:
        workspace = Workspace(tmp_path, 2, maker(tmp_path, ServerAddress(url, token="key-4711")))
        publish(workspace, {"a": "alpha " * 60})
        assert_search_is_exact(workspace, caplog)
        with pytest.raises(StorageError, match=r"401.*TRELLIS_VECTOR_API_KEY"):
            Workspace(tmp_path, 2, maker(tmp_path, ServerAddress(url))).write()
