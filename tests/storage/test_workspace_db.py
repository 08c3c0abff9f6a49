"""The workspace's database keeps what many processes write, within its bounds, from version to
version.
"""

import signal
import sqlite3
from pathlib import Path

import pytest

from storage.errors import StorageError, WorkspaceFormatError
from storage.evaluation_records import Feedback
from storage.memory import MemoryEntry
from storage.workspace_db import SCHEMA, WorkspaceDatabase
from tests.patience import PATIENCE
from tests.storage.conftest import Start
from tests.storage.samples import vector

FILE = "side.sqlite"


@pytest.fixture
def db(tmp_path: Path) -> WorkspaceDatabase:
    return WorkspaceDatabase(tmp_path / FILE)


def entry(
    title: str, evidence: str, source: str = "q", content: str = "c", generation: int = 3
) -> MemoryEntry:
    return MemoryEntry(
        source=source,
        title=title,
        content=content,
        evidence=tuple(evidence),
        documents=(f"doc-{title}",),
        generation=generation,
    )


def titles(db: WorkspaceDatabase) -> list[str]:
    return [one.title for one in db.memory.entries()]


def test_memory_replaces_by_source_and_title(db: WorkspaceDatabase) -> None:
    for stored in (
        entry("t", "ba"),
        entry("t", "c", source="r"),
        entry("t", "dab", content="new 𝄞"),
    ):
        db.memory.put([stored])
    assert db.memory.entries() == [entry("t", "abd", content="new 𝄞"), entry("t", "c", source="r")]


def test_memory_is_found_by_its_rarest_keys(db: WorkspaceDatabase) -> None:
    for number in range(600):  # more than a common key is looked up by
        db.memory.put([entry(f"t{number}", "a")], ["bridge", f"name{number}"])
    db.memory.put([entry("t7", "a", source="r")], ["bridge", "name7"])
    assert {(e.source, e.title) for e in db.memory.found_by(["name7"])} == {
        ("q", "t7"),
        ("r", "t7"),
    }
    found = db.memory.found_by(["bridge", "name7", "name9", "name11", "never put"])
    assert {e.title for e in found} == {"t7", "t9", "t11"}, "the common key adds nothing"
    assert len(db.memory.found_by(["bridge"], limit=10)) == 10
    assert db.memory.found_by(["never put"]) == db.memory.found_by([]) == []
    db.memory.put([entry("t7", "b")], ["other"])
    assert [e.source for e in db.memory.found_by(["name7"])] == ["r"], "replaced, with its keys"


def test_memory_goes_with_its_evidence_and_documents(db: WorkspaceDatabase) -> None:
    for stored in (entry("1", "ab"), entry("2", "bc"), entry("3", ""), entry("4", "b")):
        db.memory.put([stored])
    assert [db.memory.expire({"a", "b"}) for _ in range(2)] == [1, 0]
    assert titles(db) == ["1", "3", "4"]
    assert [db.memory.remove_documents([name, "other"]) for name in ("doc-4", "none")] == [1, 0]
    assert titles(db) == ["1", "3"]


def test_what_was_used_longest_ago_goes_first_whatever_it_is(tmp_path: Path) -> None:
    now = [1000.0]
    db = WorkspaceDatabase(tmp_path / FILE, cache_bytes=10_000, clock=lambda: now[0])
    db.model_answers.put("first", "1" * 1000)
    db.embeddings.put_many("m", {"old": vector("old")})
    for i in range(40):
        now[0] += 100
        assert db.model_answers.get("first") == "1" * 1000
        db.model_answers.put(f"k{i}", "x" * 1000)
    assert db.model_answers.get("k0") is None
    assert db.model_answers.get("k39") == "x" * 1000
    assert db.embeddings.get_many("m", ["old"]) == {}
    with sqlite3.connect(tmp_path / FILE) as connection:
        assert connection.execute("SELECT sum(bytes) FROM cache").fetchone()[0] <= 10_000


def test_four_processes_write_at_once(tmp_path: Path, start: Start) -> None:
    writers = [start("write_database", tmp_path, f"w{i}") for i in range(4)]
    assert [w.wait(timeout=PATIENCE) for w in writers] == [0, 0, 0, 0]
    db = WorkspaceDatabase(tmp_path / FILE)
    names = [f"w{p}-{i}" for p in range(4) for i in range(50)]
    assert all(db.model_answers.get(name) for name in names)
    assert len(db.embeddings.get_many("tiny", names)) == 200
    assert len(db.memory.entries()) == 40


def test_what_was_acknowledged_survives_a_kill(tmp_path: Path, start: Start) -> None:
    writer = start("write_until_killed", tmp_path)
    assert writer.stdout is not None
    for _ in range(30):
        last = writer.stdout.readline()
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    db = WorkspaceDatabase(tmp_path / FILE)
    assert all(db.model_answers.get(f"k{i}") == "v" * 100 for i in range(int(last) + 1))


def test_what_people_think_of_answers_is_kept_as_questions(db: WorkspaceDatabase) -> None:
    right = Feedback(
        id="a", question="Who?", answer="Ana", helpful=True, documents=("d",), generation=1, at=""
    )
    wrong = right.model_copy(update={"id": "b", "helpful": False, "note": "Tomas"})
    for row in (right, wrong, right):
        db.feedback.put(row)
    assert [
        (row.answers, row.gold_documents)
        for row in (kept.as_question for kept in db.feedback.list())
    ] == [
        (("Tomas",), ()),
        (("Ana",), ("d",)),
    ]
    assert (db.feedback.forget_where(lambda text: "Tomas" in text), db.feedback.list()) == (
        1,
        [right],
    )


def test_a_foreign_file_or_one_of_another_version_is_refused(tmp_path: Path) -> None:
    (tmp_path / "garbage.sqlite").write_bytes(b"garbage" * 1000)
    with pytest.raises(StorageError, match=r"a new one is made\. With it go memory"):
        WorkspaceDatabase(tmp_path / "garbage.sqlite").runs.list()
    for version in (SCHEMA.since - 1, SCHEMA.version + 1):
        with sqlite3.connect(tmp_path / "other.sqlite") as connection:
            connection.execute(f"PRAGMA user_version = {version}")
        with pytest.raises(WorkspaceFormatError, match=f"version {version}"):
            WorkspaceDatabase(tmp_path / "other.sqlite").runs.list()
