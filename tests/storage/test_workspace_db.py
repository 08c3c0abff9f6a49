"""The workspace's database keeps what many processes write, within its limits."""

import signal
import sqlite3
from pathlib import Path

import pytest

from storage.errors import Damaged, StorageError, WorkspaceFormatError
from storage.evaluation_records import Feedback
from storage.memory import MemoryEntry
from storage.workspace_db import SCHEMA, WorkspaceDatabase
from tests.patience import PATIENCE
from tests.storage.conftest import Start, next_line
from tests.storage.samples import vector


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "side.sqlite"


@pytest.fixture
def db(file: Path) -> WorkspaceDatabase:
    return WorkspaceDatabase(file)


def entry(title: str, evidence: str, source: str = "q", content: str = "c") -> MemoryEntry:
    return MemoryEntry(
        source=source,
        title=title,
        content=content,
        evidence=tuple(evidence),
        documents=(f"doc-{title}",),
        generation=3,
    )


def titles(db: WorkspaceDatabase) -> list[str]:
    return [one.title for one in db.memory.entries()]


def test_memory_replaces_by_source_and_title(db: WorkspaceDatabase) -> None:
    other = entry("t", "c", source="r")
    for stored in (entry("t", "ba"), other, entry("t", "dab", content="new 𝄞")):
        db.memory.put([stored])
    assert db.memory.entries() == [entry("t", "abd", content="new 𝄞"), other]


def test_memory_is_found_by_its_rarest_keys(db: WorkspaceDatabase) -> None:
    entries = [entry(f"t{number}", "a") for number in range(100)]
    for number, one in enumerate(entries):
        db.memory.put([one], ["bridge", f"name{number}"])
    found_by = db.memory.found_by
    assert found_by(["name7"]) == [entries[7]]
    found = found_by(["bridge", "name7", "name9", "name11", "never put"])
    assert {one.title for one in found} == {"t7", "t9", "t11"}, "the common key adds nothing"
    assert len(found_by(["bridge"])) == 64
    assert found_by(["never put"]) == found_by([]) == []
    db.memory.put([entry("t7", "b")], ["other"])
    assert found_by(["name7"]) == [], "its keys are replaced too"


def test_memory_goes_with_its_evidence_and_documents(db: WorkspaceDatabase) -> None:
    db.memory.put([entry("1", "ab"), entry("2", "bc"), entry("3", ""), entry("4", "b")])
    assert [db.memory.expire({"a", "b"}) for _ in range(2)] == [1, 0]
    assert titles(db) == ["1", "3", "4"]
    assert [db.memory.remove_documents([name, "other"]) for name in ("doc-4", "none")] == [1, 0]
    assert titles(db) == ["1", "3"]


@pytest.mark.parametrize("damaged", ['{"evidence": [1', '{"eviden": ["a"]}'])
def test_a_damaged_memory_entry_has_a_remedy(
    damaged: str, db: WorkspaceDatabase, file: Path
) -> None:
    db.memory.put([entry("1", "ab")])
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE memory_entries SET entry = ?", [damaged])
    with pytest.raises(Damaged, match="move the file away"):
        db.memory.expire({"a"})


def test_the_least_recently_used_value_goes_first(file: Path) -> None:
    now = [1000.0]
    db = WorkspaceDatabase(file, cache_bytes=10_000, clock=lambda: now[0])
    db.model_answers.put("first", "1" * 1000)
    db.embeddings.put_many("m", {"old": vector("old")})
    for i in range(40):
        now[0] += 100
        assert db.model_answers.get("first") == "1" * 1000
        db.model_answers.put(f"k{i}", "x" * 1000)
    assert db.model_answers.get("k0") is None
    assert db.model_answers.get("k39") == "x" * 1000
    assert db.embeddings.get_many("m", ["old"]) == {}
    with sqlite3.connect(file) as connection:
        assert connection.execute("SELECT sum(bytes) FROM cache").fetchone()[0] <= 10_000


def test_four_processes_write_at_once(db: WorkspaceDatabase, tmp_path: Path, start: Start) -> None:
    writers = [start("write_database", tmp_path, f"w{i}") for i in range(4)]
    assert [w.wait(timeout=PATIENCE) for w in writers] == [0, 0, 0, 0]
    names = [f"w{p}-{i}" for p in range(4) for i in range(50)]
    assert all(db.model_answers.get(name) for name in names)
    assert len(db.embeddings.get_many("tiny", names)) == 200
    assert len(db.memory.entries()) == 40


def test_what_was_acknowledged_survives_a_kill(
    db: WorkspaceDatabase, tmp_path: Path, start: Start
) -> None:
    writer = start("write_until_killed", tmp_path)
    last = [int(next_line(writer)) for _ in range(30)][-1]
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    assert all(db.model_answers.get(f"k{i}") == "v" * 100 for i in range(last + 1))


def test_feedback_is_kept_as_questions(db: WorkspaceDatabase) -> None:
    right = Feedback(
        id="a", question="Who?", answer="Ana", helpful=True, documents=("d",), generation=1, at=""
    )
    wrong = right.model_copy(update={"id": "b", "helpful": False, "note": "Tomas"})
    for row in (right, wrong, right):
        db.feedback.put(row)
    questions = [kept.as_question for kept in db.feedback.list()]
    assert [(row.answers, row.gold_documents) for row in questions] == [
        (("Tomas",), ()),
        (("Ana",), ("d",)),
    ]
    assert db.feedback.forget_where(lambda text: "Tomas" in text) == 1
    assert db.feedback.list() == [right]


def test_a_foreign_file_is_refused(db: WorkspaceDatabase, file: Path) -> None:
    file.write_bytes(b"garbage" * 1000)
    with pytest.raises(StorageError, match=r"a new one is made\. With it go memory"):
        db.runs.list()


@pytest.mark.parametrize("version", [SCHEMA.since - 1, SCHEMA.version + 1])
def test_another_version_is_refused(db: WorkspaceDatabase, file: Path, version: int) -> None:
    with sqlite3.connect(file) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
    with pytest.raises(WorkspaceFormatError, match=f"version {version}"):
        db.runs.list()
