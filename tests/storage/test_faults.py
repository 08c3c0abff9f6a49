"""Each fault of a disk or a file has its own error and a remedy that is true; only locks are waited
for.
"""

import errno
import random
import shutil
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

OF_THE_SYSTEM = [
    (errno.EACCES, NotPermitted),
    (errno.EPERM, NotPermitted),
    (errno.EROFS, NotPermitted),
    (errno.ENOSPC, DiskFull),
    (errno.EDQUOT, DiskFull),
    (errno.EFBIG, DiskFull),
    (errno.EIO, DiskFailed),
    (errno.EMFILE, TooLittle),
    (errno.ENFILE, TooLittle),
    (errno.ENOMEM, TooLittle),
]


@pytest.mark.parametrize(("number", "kind"), OF_THE_SYSTEM)
def test_errors_of_the_system_are_told_apart(number: int, kind: type[StorageError]) -> None:
    error = OSError(number, "what the system says")
    assert type(fault_of(error, "x")) is kind


def raised(work: Callable[[], object]) -> sqlite3.Error | duckdb.Error:
    with pytest.raises((sqlite3.Error, duckdb.Error)) as caught:
        work()
    error = caught.value
    assert isinstance(error, sqlite3.Error | duckdb.Error)
    return error


@pytest.fixture
def file(tmp_path: Path) -> Path:
    with closing(sqlite3.connect(tmp_path / "x.sqlite")) as connection, connection:
        connection.execute("CREATE TABLE t (value TEXT)")
    return tmp_path / "x.sqlite"


def test_errors_of_sqlite_are_told_apart(file: Path, tmp_path: Path) -> None:
    many = "INSERT INTO t SELECT hex(randomblob(5000)) FROM (VALUES (1), (2), (3))"
    with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as connection:
        assert type(fault_of(raised(lambda: connection.execute(many)), file)) is NotPermitted
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA max_page_count = 2")
        assert type(fault_of(raised(lambda: connection.execute(many)), file)) is DiskFull
    with closing(sqlite3.connect(file)) as one, closing(sqlite3.connect(file, timeout=0)) as other:
        one.execute("BEGIN EXCLUSIVE")
        assert type(fault_of(raised(lambda: other.execute(many)), file)) is InUse
    with full(), closing(sqlite3.connect(file)) as connection:
        assert type(fault_of(raised(lambda: connection.execute(many)), file)) is DiskFull
    (tmp_path / "folder").mkdir()
    error = raised(lambda: sqlite3.connect(tmp_path / "folder"))
    assert type(fault_of(error, tmp_path / "folder")) is Damaged
    for damage in (truncate, lambda path: flip(path, 0), lambda path: flip(path, 100)):
        copy = Path(shutil.copy(file, tmp_path / "copy.sqlite"))
        damage(copy)
        with closing(sqlite3.connect(copy)) as connection:
            fault = fault_of(raised(lambda: connection.execute(many)), copy, "Do this.")
        assert isinstance(fault, Damaged)
        assert fault.remedy == "Do this."


def test_errors_of_duckdb_are_told_apart(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "whole.duckdb")) as connection:
        connection.execute("CREATE TABLE t AS SELECT range AS value FROM range(100)")
    for damage in (
        truncate,
        lambda path: flip(path, 100),
        lambda path: path.write_bytes(b"garbage" * 999),
    ):
        copy = Path(shutil.copy(tmp_path / "whole.duckdb", tmp_path / "copy.duckdb"))
        damage(copy)
        with pytest.raises(Damaged, match="rollback N"):
            Database.open(copy)
    with full(), pytest.raises(DiskFull):
        Database.create(tmp_path / "new.duckdb")
    with duckdb.connect() as connection:
        error = raised(lambda: connection.execute("SELECT nothing"))
        assert type(fault_of(error, "x")) is StorageError


def test_a_disk_that_fills_up_stops_no_reader(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    db = WorkspaceDatabase(tmp_path / "side.sqlite", reading=True)
    db.model_answers.put("k", "v")
    with full():
        db.model_answers.put("k2", "v" * 99_999)
        db.memory.put([MemoryEntry(source="q", title="t", content="c", generation=1)])
        assert db.model_answers.get("never") is None
    assert len(caplog.messages) == 1
    assert "Nothing is remembered" in caplog.messages[0]
    assert WorkspaceDatabase(tmp_path / "side.sqlite").model_answers.get("k") == "v"


def damaged(content: bytes, seed: int) -> bytes:
    """With flipped bits, few or many, in the whole or the first page; a zeroed page; or cut."""
    chance, data = random.Random(seed), bytearray(content)  # noqa: S311 -- which damage
    kind = seed % 5
    if kind == 3:
        data[(page := 4096 * chance.randrange(len(data) // 4096)) : page + 4096] = bytes(4096)
    elif kind == 4:
        del data[chance.randrange(len(data)) :]
    for _ in range((5, 40, 3_000, 0, 0)[kind]):
        data[chance.randrange(4096 if kind == 0 else len(data))] ^= 1 << chance.randrange(8)
    return bytes(data)


def test_damage_of_any_kind_stops_no_reader(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Of 100 kinds each is passed over by who reads, with one warning at most, and told to who
    writes.
    """
    path = tmp_path / "side.sqlite"
    db = WorkspaceDatabase(path)
    names = [f"name {number}" for number in range(60)]
    entries = [
        MemoryEntry(source=name, title=name, content="c" * 200, generation=1) for name in names
    ]
    keys = [f"key {number % 7}" for number in range(60)]
    run = RunRow(kind="index", started="", finished="", state="completed")

    def use(db: WorkspaceDatabase) -> None:
        db.model_answers.put("new", "v")
        db.memory.put(entries[:3], keys[:2])
        db.memory.found_by(keys)
        db.memory.entries()
        db.runs.append(run)
        db.runs.list()
        for name in names:
            db.model_answers.get(name)

    for name, entry, key in zip(names, entries, keys, strict=True):
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
        with suppress(WorkspaceFormatError):  # the damage may be in the version's number
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
