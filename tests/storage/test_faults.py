"""Each fault of a disk or a file has its own error with a remedy, and stops no reader."""

import errno
import random
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import duckdb
import pytest

from storage.database import Database
from storage.errors import (
    Damaged,
    DiskFailed,
    DiskFull,
    InUse,
    NotPermitted,
    StorageError,
    TooLittle,
    WorkspaceFormatError,
)
from storage.faults import fault_of
from storage.memory import MemoryEntry
from storage.workspace_db import RunRow, WorkspaceDatabase
from tests.faults.disk import flip, full, truncate

MANY = "INSERT INTO t SELECT hex(randomblob(5000)) FROM (VALUES (1), (2), (3))"


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (errno.EACCES, NotPermitted),
        (errno.EROFS, NotPermitted),
        (errno.ENOSPC, DiskFull),
        (errno.EDQUOT, DiskFull),
        (errno.EIO, DiskFailed),
        (errno.EMFILE, TooLittle),
        (errno.ENOMEM, TooLittle),
    ],
)
def test_errors_of_the_system_are_told_apart(number: int, kind: type[StorageError]) -> None:
    assert type(fault_of(OSError(number, "what the system says"), "x")) is kind


def fault(work: Callable[[], object], place: str | Path) -> StorageError | None:
    """The fault that an error of SQLite or DuckDB stands for."""
    with pytest.raises((sqlite3.Error, duckdb.Error)) as caught:
        work()
    return fault_of(caught.value, place, "Do this.")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    with closing(sqlite3.connect(tmp_path / "x.sqlite")) as connection, connection:
        connection.execute("CREATE TABLE t (value TEXT)")
    return tmp_path / "x.sqlite"


def test_errors_of_sqlite_are_told_apart(file: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as connection:
        assert type(fault(lambda: connection.execute(MANY), file)) is NotPermitted
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA max_page_count = 2")
        assert type(fault(lambda: connection.execute(MANY), file)) is DiskFull
    with closing(sqlite3.connect(file)) as one, closing(sqlite3.connect(file, timeout=0)) as other:
        one.execute("BEGIN EXCLUSIVE")
        assert type(fault(lambda: other.execute(MANY), file)) is InUse
    with full(), closing(sqlite3.connect(file)) as connection:
        assert type(fault(lambda: connection.execute(MANY), file)) is DiskFull
    assert type(fault(lambda: sqlite3.connect(tmp_path), tmp_path)) is Damaged


@pytest.mark.parametrize(
    "damage", [truncate, lambda path: flip(path, 0), lambda path: flip(path, 100)]
)
def test_a_damaged_sqlite_file_has_the_given_remedy(
    file: Path, damage: Callable[[Path], None]
) -> None:
    damage(file)
    with closing(sqlite3.connect(file)) as connection:
        found = fault(lambda: connection.execute(MANY), file)
    assert isinstance(found, Damaged)
    assert found.remedy == "Do this."


def test_errors_of_duckdb_are_told_apart(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "flipped.duckdb")) as connection:
        connection.execute("CREATE TABLE t AS SELECT range AS value FROM range(100)")
    flip(tmp_path / "flipped.duckdb", 100)
    with pytest.raises(Damaged, match="rollback N"):
        Database.open(tmp_path / "flipped.duckdb")
    with full(), pytest.raises(DiskFull):
        Database.create(tmp_path / "new.duckdb")
    with duckdb.connect() as connection:
        assert type(fault(lambda: connection.execute("SELECT nothing"), "x")) is StorageError


def test_a_disk_that_fills_up_stops_no_reader(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    db = WorkspaceDatabase(tmp_path / "side.sqlite", reading=True)
    db.model_answers.put("k", "v")
    with full():
        db.model_answers.put("k2", "v" * 99_999)
        db.memory.put([MemoryEntry(source="q", title="t", content="c", generation=1)])
        assert db.model_answers.get("never") is None
    (warning,) = caplog.messages
    assert "Nothing is remembered" in warning
    assert WorkspaceDatabase(tmp_path / "side.sqlite").model_answers.get("k") == "v"


def damaged(content: bytes, seed: int) -> bytes:
    """Flips few or many bits in all or the first page, clears a page, or cuts the content."""
    chance, data = random.Random(seed), bytearray(content)  # noqa: S311 -- which damage
    kind = seed % 5
    if kind == 3:
        data[(page := 4096 * chance.randrange(len(data) // 4096)) : page + 4096] = bytes(4096)
    elif kind == 4:
        del data[chance.randrange(len(data)) :]
    for _ in range((5, 40, 3_000, 0, 0)[kind]):
        data[chance.randrange(4096 if kind == 0 else len(data))] ^= 1 << chance.randrange(8)
    return bytes(data)


NAMES = [f"name {number}" for number in range(60)]
KEYS = [f"key {number % 7}" for number in range(60)]
ENTRIES = [MemoryEntry(source=n, title=n, content="c" * 200, generation=1) for n in NAMES]


def use(db: WorkspaceDatabase) -> None:
    db.model_answers.put("new", "v")
    db.memory.put(ENTRIES[:3], KEYS[:2])
    db.memory.found_by(KEYS)
    db.memory.entries()
    db.runs.append(RunRow(kind="index", started="", finished="", state="completed"))
    db.runs.list()
    for name in NAMES:
        db.model_answers.get(name)


def test_damage_of_any_kind_stops_no_reader(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A reader gets one warning at most; a writer is refused."""
    path = tmp_path / "side.sqlite"
    db = WorkspaceDatabase(path)
    for name, entry, key in zip(NAMES, ENTRIES, KEYS, strict=True):
        db.model_answers.put(name, "v" * 200)
        db.memory.put([entry], [key])
    use(db)
    db.compact()
    db.close()
    whole, warned, refused = path.read_bytes(), 0, 0
    for seed in range(100):
        (path := tmp_path / f"{seed}" / path.name).parent.mkdir()
        path.write_bytes(damaged(whole, seed))
        caplog.clear()
        with suppress(WorkspaceFormatError):  # The damage may be in the number of the version
            use(WorkspaceDatabase(path, reading=True))
        assert len(caplog.messages) < 2
        assert all("move the file away" in line for line in caplog.messages)
        warned += len(caplog.messages)
        try:
            use(WorkspaceDatabase(path))
        except (Damaged, WorkspaceFormatError):
            refused += 1
    assert warned > 50
    assert refused > 50
