"""The workspace's database keeps what many processes write, within its bounds, from version to version."""

import signal
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from storage.errors import StorageError, WorkspaceFormatError
from storage.evaluation_records import Feedback, WatchedQuestion
from storage.memory import MemoryEntry
from storage.workspace import Workspace
from storage.workspace_db import DatabaseLimits, RunRow, WorkspaceDatabase
from tests.patience import PATIENCE
from tests.storage.conftest import Start
from tests.storage.samples import vector

FILE = "side.sqlite"


@pytest.fixture
def db(tmp_path: Path) -> WorkspaceDatabase:
    return WorkspaceDatabase(tmp_path / FILE)


def entry(title: str, evidence: str, source: str = "q", content: str = "c", generation: int = 3) -> MemoryEntry:
    return MemoryEntry(
        source=source, title=title, content=content, evidence=tuple(evidence), documents=(f"doc-{title}",),
        generation=generation,
    )  # fmt: skip


def titles(db: WorkspaceDatabase) -> list[str]:
    return [one.title for one in db.memory.entries()]


def test_opening_a_workspace_makes_no_database(tmp_path: Path) -> None:
    database = Workspace(tmp_path / "ws").database
    assert database.model_answers.get("k") is None
    assert (database.parts(), database.holes()) == ([], 0)
    assert not (tmp_path / "ws").exists(), "nor does reading from it"
    database.model_answers.put("k", "v")
    assert (tmp_path / "ws" / FILE).exists()


def test_memory_replaces_by_source_and_title(db: WorkspaceDatabase) -> None:
    for stored in (entry("t", "ba"), entry("t", "c", source="r"), entry("t", "dab", content="new 𝄞")):
        db.memory.put([stored])
    assert db.memory.entries() == [entry("t", "abd", content="new 𝄞"), entry("t", "c", source="r")]


def test_memory_is_found_by_its_rarest_keys(db: WorkspaceDatabase) -> None:
    for number in range(600):  # more than a common key is looked up by
        db.memory.put([entry(f"t{number}", "a")], ["bridge", f"name{number}"])
    db.memory.put([entry("t7", "a", source="r")], ["bridge", "name7"])
    assert {(e.source, e.title) for e in db.memory.found_by(["name7"])} == {("q", "t7"), ("r", "t7")}
    found = db.memory.found_by(["bridge", "name7", "name9", "name11", "never put"])
    assert {e.title for e in found} == {"t7", "t9", "t11"}, "the common key adds nothing"
    assert len(db.memory.found_by(["bridge"], limit=10)) == 10
    assert db.memory.found_by(["never put"]) == db.memory.found_by([]) == []
    db.memory.put([entry("t7", "b")], ["other"])
    assert [e.source for e in db.memory.found_by(["name7"])] == ["r"], "replaced, with its keys"


def test_a_title_with_other_surroundings_is_out_of_date(db: WorkspaceDatabase) -> None:
    more = {"support": "partial", "surroundings": "near_1", "ranked": ("b", "a")}
    first = entry("t", "ab").model_copy(update=more)
    db.memory.put([first], ["k"])
    assert db.memory.found_by(["k"]) == db.memory.entries() == [first]
    newer = first.model_copy(update={"source": "r", "surroundings": "near_2"})
    db.memory.put([newer])
    assert db.memory.entries() == [newer]
    db.memory.put([newer.model_copy(update={"source": "s"})])
    assert [e.source for e in db.memory.entries()] == ["r", "s"]


def test_memory_goes_with_its_evidence_and_documents(db: WorkspaceDatabase) -> None:
    for stored in (entry("1", "ab"), entry("2", "bc"), entry("3", ""), entry("4", "b")):
        db.memory.put([stored])
    assert [db.memory.expire({"a", "b"}) for _ in range(2)] == [1, 0]
    assert titles(db) == ["1", "3", "4"]
    assert [db.memory.remove_documents([name, "other"]) for name in ("doc-4", "none")] == [1, 0]
    assert titles(db) == ["1", "3"]


def test_memory_is_bounded_and_the_oldest_generation_goes_first(tmp_path: Path) -> None:
    db = WorkspaceDatabase(tmp_path / FILE, DatabaseLimits(memory=10))
    for number in range(40):
        db.memory.put([entry(f"old-{number:02}", "", generation=1)])
    for number in range(10):
        db.memory.put([entry(f"new-{number}", "", generation=2)])
    assert titles(db) == [f"new-{number}" for number in range(10)]


def test_what_was_used_longest_ago_goes_first_whatever_it_is(tmp_path: Path) -> None:
    now = [1000.0]
    db = WorkspaceDatabase(tmp_path / FILE, DatabaseLimits(cache_bytes=10_000), lambda: now[0])
    db.model_answers.put("first", "1" * 1000)
    db.embeddings.put_many("m", {"old": vector("old")})
    for i in range(40):
        now[0] += 100
        assert db.model_answers.get("first") == "1" * 1000
        db.model_answers.put(f"k{i}", "x" * 1000)
    assert db.model_answers.get("k0") is None
    assert db.model_answers.get("k39") == "x" * 1000
    assert db.embeddings.get_many("m", ["old"]) == {}
    assert sum(part.size_bytes for part in db.parts()) <= 10_000


def test_embeddings_come_back_equal(db: WorkspaceDatabase) -> None:
    vectors = {f"h{i}": vector(f"h{i}") for i in range(1100)}
    db.embeddings.put_many("m", vectors)
    found = db.embeddings.get_many("m", [*vectors, "none"])
    assert found.keys() == vectors.keys()
    assert all(np.array_equal(found[h], v) and found[h].dtype == np.float32 for h, v in vectors.items())
    assert db.embeddings.get_many("other", vectors) == {}
    db.embeddings.put_many("other", {"h1": vector("h1")})
    db.model_answers.put("h1", "an answer")
    assert db.embeddings.remove(["h1", "none"]) == 2, "of whatever model"
    assert db.model_answers.get("h1") == "an answer"


def test_answers_are_removed_by_what_they_say(db: WorkspaceDatabase) -> None:
    for number in range(1_200):
        db.model_answers.put(f"k{number}", "of Zoë" if number % 3 == 0 else "of others")
    db.embeddings.put_many("m", {"h": vector("h")})
    assert db.model_answers.remove_where(lambda text: "Zoë" in text) == 400
    assert (db.model_answers.get("k3"), db.model_answers.get("k4")) == (None, "of others")
    db.model_answers.remove("k4")
    assert db.model_answers.get("k4") is None
    assert len(db.embeddings.get_many("m", ["h"])) == 1


def test_what_was_removed_leaves_holes_until_the_file_is_written_anew(db: WorkspaceDatabase) -> None:
    for number in range(200):
        db.model_answers.put(f"key-{number}", "answer " * 200)
    db.memory.put([entry("stays", "")])
    assert db.holes() == 0
    db.forget_caches()
    assert db.holes() > 200_000
    db.compact()
    assert db.holes() == 0
    assert {part.name: part.rows for part in db.parts() if part.rows} == {"memory": 1}


def test_run_history_is_newest_first_and_bounded(tmp_path: Path) -> None:
    db = WorkspaceDatabase(tmp_path / FILE, DatabaseLimits(runs=3))
    rows = [
        RunRow(kind=k, started="2026-01-01", finished="", state="done", summary=f'{{"n": {n}}}')
        for n, k in enumerate("abbab")
    ]
    for row in rows:
        db.runs.append(row)
    assert db.runs.list() == [rows[4], rows[3], rows[2]]
    assert db.runs.list(limit=1) == [rows[4]]


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


EARLIER = [(Path(__file__).parent / name).read_text("utf-8") for name in ("version_1.sql", "version_1_last.sql")]


@pytest.mark.parametrize("added", ["", EARLIER[1]], ids=["first", "last"])
def test_what_an_earlier_version_kept_is_carried_over(tmp_path: Path, added: str) -> None:
    with sqlite3.connect(tmp_path / FILE) as connection:
        connection.executescript(EARLIER[0] + added)
    db = WorkspaceDatabase(tmp_path / FILE)
    first, second = db.memory.entries()
    told = {"support": "partial", "surroundings": "near", "ranked": ("b", "a")} if added else {}
    assert first == entry("t", "ab", content="c 𝄞").model_copy(update=told)
    assert (second.content, second.generation) == ("d", 2)
    assert db.memory.found_by(["bridge"]) == ([first] if added else [])
    assert (db.model_answers.get("k"), db.model_answers.get("l")) == ('{"text": "é"}', "x")
    assert db.embeddings.get_many("m", ["h"])["h"].tolist() == [1.0, 2.0]
    assert [run.kind for run in db.runs.list()] == ["index"]
    assert db.memory.expire({"b"}) == 1
    again = WorkspaceDatabase(tmp_path / FILE)
    assert (titles(again), again.model_answers.get("l")) == (["u"], "x")
    with sqlite3.connect(tmp_path / FILE) as after:
        names = {name for (name,) in after.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    assert names == {
        "memory_entries", "memory_index", "cache", "runs", "evaluated_answers", "watched_questions", "feedback"
    }  # fmt: skip


def test_a_file_of_version_2_gets_the_tables_that_it_lacks(tmp_path: Path) -> None:
    WorkspaceDatabase(tmp_path / FILE).memory.put([entry("t", "a")])
    gone = "DROP TABLE evaluated_answers; DROP TABLE watched_questions; DROP TABLE feedback; PRAGMA user_version = 2;"
    with sqlite3.connect(tmp_path / FILE) as connection:
        connection.executescript(gone)
    db = WorkspaceDatabase(tmp_path / FILE)
    db.watched.put(WatchedQuestion(id="w", question="Who?"))
    assert ([row.question for row in db.watched.list()], titles(db)) == (["Who?"], ["t"])
    right = Feedback(id="a", question="Who?", answer="Ana", helpful=True, documents=("d",), generation=1, at="")
    wrong = right.model_copy(update={"id": "b", "helpful": False, "note": "Tomas"})
    for row in (right, wrong, right):
        db.feedback.put(row)
    assert [(row.answers, row.gold_documents) for row in (kept.as_question for kept in db.feedback.list())] == [
        (("Tomas",), ()), (("Ana",), ("d",)),
    ]  # fmt: skip
    assert (db.feedback.forget_where(lambda text: "Tomas" in text), db.feedback.list()) == (1, [right])


def test_a_foreign_or_newer_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "garbage.sqlite").write_bytes(b"garbage" * 1000)
    with pytest.raises(StorageError, match=r"a new one is made\. With it go memory"):
        WorkspaceDatabase(tmp_path / "garbage.sqlite").runs.list()
    connection = sqlite3.connect(tmp_path / "newer.sqlite")
    connection.execute("PRAGMA user_version = 9")
    connection.close()
    with pytest.raises(WorkspaceFormatError, match="version 9"):
        WorkspaceDatabase(tmp_path / "newer.sqlite").runs.list()
