"""The side store keeps what many processes write, within its bounds."""

import signal
import sqlite3
import threading
from pathlib import Path

import numpy as np
import pytest

from storage.errors import StorageError, WorkspaceFormatError
from storage.memory import MemoryEntry
from storage.workspace import Workspace
from storage.workspace_db import DatabaseLimits, RunRow, WorkspaceDatabase
from tests.storage.conftest import Start
from tests.storage.samples import vector


class Clock:
    """Time that moves when told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def side(tmp_path: Path) -> WorkspaceDatabase:
    return WorkspaceDatabase(tmp_path / "side.sqlite")


def entry(title: str, evidence: str, source: str = "q", content: str = "c") -> MemoryEntry:
    return MemoryEntry(
        source=source, title=title, content=content, evidence=tuple(evidence), documents=(f"doc-{title}",), generation=3
    )


def test_opening_a_workspace_makes_no_side_store(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "ws")
    assert not (tmp_path / "ws").exists()
    assert workspace.database.model_answers.get("k") is None
    assert not (tmp_path / "ws").exists(), "nor does reading from it"
    workspace.database.model_answers.put("k", "v")
    assert (tmp_path / "ws" / "side.sqlite").exists()


def test_memory_replaces_by_source_and_title(side: WorkspaceDatabase) -> None:
    for stored in (entry("t", "ba"), entry("t", "c", source="r"), entry("t", "dab", content="new 𝄞")):
        side.memory.put(stored)
    assert side.memory.get("q", "t") == entry("t", "abd", content="new 𝄞")
    assert side.memory.titles() == [("q", "t"), ("r", "t")]
    assert [e.content for e in side.memory.entries()] == ["new 𝄞", "c"]
    assert side.memory.get("q", "none") is None


def test_memory_is_found_by_its_rarest_keys(side: WorkspaceDatabase) -> None:
    for number in range(600):  # more than a common key is looked up by
        side.memory.put(entry(f"t{number}", "a"), ["bridge", f"name{number}"])
    side.memory.put(entry("t7", "a", source="r"), ["bridge", "name7"])
    side.memory.put(entry("plain", "a"), ["of its own"])
    assert {(e.source, e.title) for e in side.memory.found_by(["name7"])} == {("q", "t7"), ("r", "t7")}
    found = side.memory.found_by(["bridge", "name7", "name9", "name11", "never put"])
    assert {e.title for e in found} == {"t7", "t9", "t11"}, "the common key adds nothing"
    assert len(side.memory.found_by(["bridge"], limit=10)) == 10
    assert side.memory.found_by(["never put"]) == side.memory.found_by([]) == []
    side.memory.put(entry("t7", "b"), ["other"])
    assert [e.source for e in side.memory.found_by(["name7"])] == ["r"], "replaced, with its keys"
    side.memory.clear()
    assert side.memory.found_by(["bridge"]) == []


def test_what_was_told_of_an_entry_comes_back(side: WorkspaceDatabase) -> None:
    more = {"support": "partial", "surroundings": "near_1", "ranked": ("b", "a"), "shares": (0.75, 0.25)}
    told = entry("t", "ab").model_copy(update=more)
    side.memory.put(told, ["k"])
    assert side.memory.found_by(["k"]) == side.memory.entries() == [told]
    newer = told.model_copy(update={"source": "r", "surroundings": "near_2"})
    side.memory.put(newer)
    assert side.memory.entries() == [newer], "the same title with other surroundings is out of date"
    side.memory.put(newer.model_copy(update={"source": "s"}))
    assert [e.source for e in side.memory.entries()] == ["r", "s"]
    side.memory.put(newer.model_copy(update={"source": "t"}), title_alone=True)
    assert [e.source for e in side.memory.entries()] == ["t"], "as published: the title is the key"


def test_memory_of_an_earlier_version_is_read(tmp_path: Path) -> None:
    """Its tables lack what was added since; what they hold is read, and goes with its evidence."""
    side = WorkspaceDatabase(tmp_path / "side.sqlite")
    side.memory.put(entry("old", "a"))
    side.close()
    with sqlite3.connect(tmp_path / "side.sqlite") as connection:
        for table in ("memory_basis", "memory_keys"):
            connection.execute(f"DROP TABLE {table}")
    again = WorkspaceDatabase(tmp_path / "side.sqlite")
    assert again.memory.entries() == [entry("old", "a")]
    again.memory.put(entry("new", "b"), ["k"])
    assert again.memory.expire({"b"}) == 1
    assert [e.title for e in again.memory.found_by(["k"])] == ["new"]


def test_memory_goes_with_its_evidence_and_documents(side: WorkspaceDatabase) -> None:
    for stored in (entry("1", "ab"), entry("2", "bc"), entry("3", ""), entry("4", "b")):
        side.memory.put(stored)
    assert side.memory.expire({"a", "b"}) == 1
    assert side.memory.expire({"a", "b"}) == 0
    assert [t for _, t in side.memory.titles()] == ["1", "3", "4"]
    assert side.memory.remove_document("doc-4") == 1
    assert [t for _, t in side.memory.titles()] == ["1", "3"]
    side.memory.clear()
    assert side.memory.entries() == []


def test_model_answers_stay_within_their_bytes(tmp_path: Path) -> None:
    clock = Clock()
    side = WorkspaceDatabase(tmp_path / "side.sqlite", DatabaseLimits(model_answer_bytes=10_000), clock)
    side.model_answers.put("first", "1" * 1000)
    for i in range(40):
        clock.now += 100
        assert side.model_answers.get("first") == "1" * 1000
        side.model_answers.put(f"k{i}", "x" * 1000)
    assert side.model_answers.get("k0") is None
    assert side.model_answers.get("k39") == "x" * 1000
    with sqlite3.connect(tmp_path / "side.sqlite") as connection:
        assert connection.execute("SELECT sum(bytes) FROM model_answers").fetchone()[0] <= 10_000


def test_embeddings_come_back_equal_and_bounded(tmp_path: Path) -> None:
    side = WorkspaceDatabase(tmp_path / "side.sqlite", DatabaseLimits(embedding_bytes=1200 * 32))
    vectors = {f"h{i}": vector(f"h{i}") for i in range(1100)}
    side.embeddings.put_many("m", vectors)
    found = side.embeddings.get_many("m", [*vectors, "none"])
    assert found.keys() == vectors.keys()
    assert all(np.array_equal(found[h], v) and found[h].dtype == np.float32 for h, v in vectors.items())
    assert side.embeddings.get_many("other", vectors) == {}
    side.embeddings.put_many("other", vectors)
    assert len(side.embeddings.get_many("m", vectors)) + len(side.embeddings.get_many("other", vectors)) == 1200


def test_what_is_no_longer_kept_goes_from_a_file_of_before(tmp_path: Path) -> None:
    path = tmp_path / "side.sqlite"
    WorkspaceDatabase(path).model_answers.put("k", "v")
    with sqlite3.connect(path) as before:
        before.executescript(
            "CREATE TABLE answers (question TEXT, evidence TEXT, answer TEXT, PRIMARY KEY (question, evidence));"
            "CREATE TABLE answer_documents (question TEXT, evidence TEXT, document TEXT,"
            " FOREIGN KEY (question, evidence) REFERENCES answers (question, evidence));"
            "CREATE TABLE structures (key TEXT, built TEXT);"
            "INSERT INTO answers VALUES ('q', 'e', 'a secret'); INSERT INTO answer_documents VALUES ('q', 'e', 'd');"
        )
    opened = WorkspaceDatabase(path)
    assert opened.model_answers.get("k") == "v"
    with sqlite3.connect(path) as after:
        names = {name for (name,) in after.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    assert names & {"answers", "answer_documents", "structures"} == set()
    assert "model_answers" in names


def test_run_history_is_newest_first_and_bounded(tmp_path: Path) -> None:
    side = WorkspaceDatabase(tmp_path / "side.sqlite", DatabaseLimits(runs=3))
    rows = [
        RunRow(kind=k, started="2026-01-01", finished="", state="done", summary=f'{{"n": {n}}}')
        for n, k in enumerate("abbab")
    ]
    for row in rows:
        side.runs.append(row)
    assert side.runs.list() == [rows[4], rows[3], rows[2]]
    assert side.runs.list(limit=1, kind="b") == [rows[4]]


def test_four_processes_write_at_once(tmp_path: Path, start: Start) -> None:
    writers = [start("write_side", tmp_path, f"w{i}") for i in range(4)]
    assert [w.wait(timeout=60) for w in writers] == [0, 0, 0, 0]
    side = WorkspaceDatabase(tmp_path / "side.sqlite")
    names = [f"w{p}-{i}" for p in range(4) for i in range(50)]
    assert all(side.model_answers.get(name) for name in names)
    assert len(side.embeddings.get_many("tiny", names)) == 200
    assert len(side.memory.entries()) == 40


def test_what_was_acknowledged_survives_a_kill(tmp_path: Path, start: Start) -> None:
    writer = start("write_side_until_killed", tmp_path)
    assert writer.stdout is not None
    for _ in range(30):
        last = writer.stdout.readline()
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    side = WorkspaceDatabase(tmp_path / "side.sqlite")
    assert all(side.model_answers.get(f"k{i}") == "v" * 100 for i in range(int(last) + 1))
    side.model_answers.put("after", "w")
    assert side.model_answers.get("after") == "w"


def test_threads_share_a_store(side: WorkspaceDatabase) -> None:
    def write(name: str) -> None:
        for i in range(30):
            side.model_answers.put(f"{name}{i}", name)

    threads = [threading.Thread(target=write, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [side.model_answers.get(f"{name}{i}") for name in "abcd" for i in range(30)] == [
        n for n in "abcd" for _ in range(30)
    ]
    side.close()
    assert side.model_answers.get("a0") == "a"


def test_a_foreign_or_newer_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "garbage.sqlite").write_bytes(b"garbage" * 1000)
    with pytest.raises(StorageError, match=r"a new one is made\. With it go memory"):
        WorkspaceDatabase(tmp_path / "garbage.sqlite").runs.list()
    connection = sqlite3.connect(tmp_path / "newer.sqlite")
    connection.execute("PRAGMA user_version = 9")
    connection.close()
    with pytest.raises(WorkspaceFormatError, match="version 9"):
        WorkspaceDatabase(tmp_path / "newer.sqlite").runs.list()
