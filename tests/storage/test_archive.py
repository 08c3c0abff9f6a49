"""An archive holds a workspace as of one moment, and a file from elsewhere is not trusted."""

import gzip
import io
import json
import sqlite3
import tarfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import duckdb
import pytest

from storage.archive import read_archive, write_archive
from storage.errors import ArchiveError, DiskFull, UsageError, WorkspaceFormatError
from storage.export import export
from storage.memory import MemoryEntry
from storage.workspace import Workspace
from tests.copying import copy_of
from tests.faults.disk import full
from tests.storage.samples import publish, put

GENERATION = "generations/000001/generation.duckdb"
MANIFEST = "generations/000001/manifest.json"
REMEMBERED = MemoryEntry(source="a", title="Who?", content="Zoë", generation=2)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two generations and something remembered; tests only read it."""
    root = tmp_path_factory.mktemp("archive") / "ws"
    publish(root, {"a": "Zoë met Ada in Velin."})
    publish(root, {"b": "beta " * 30})
    (root / "tailoring.toml").write_text('[tailoring]\npersona = "an engineer"\n')
    Workspace(root).database.memory.put([REMEMBERED])
    return root


@pytest.fixture(scope="module")
def archive(root: Path) -> Path:
    file = root.parent / "kept.tar.gz"
    assert write_archive(root, file).generations == (1, 2)
    return file


def rewritten(archive: Path, target: Path, entries: dict[str, bytes]) -> Path:
    """A copy of an archive with these entries replaced or added."""
    with tarfile.open(archive) as read:
        before = {entry.name: read.extractfile(entry) for entry in read}
        content = {name: stream.read() for name, stream in before.items() if stream} | entries
    with tarfile.open(target, "w") as made:
        for name, data in content.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            made.addfile(entry, io.BytesIO(data))
    return target


def test_a_workspace_comes_back_equal(root: Path, archive: Path, tmp_path: Path) -> None:
    copy = tmp_path / "ws"
    report = read_archive(archive, copy)
    assert (report.generation, report.generations) == (2, (1, 2))
    before, after = Workspace(root), Workspace(copy)
    for number in (1, 2):
        with before.read(number) as old, after.read(number) as new:
            assert export(old) == export(new)
        assert after.rebuild_vectors(number) > 0
    assert after.database.memory.entries() == [REMEMBERED]
    assert (copy / "tailoring.toml").read_text() == (root / "tailoring.toml").read_text()
    assert publish(copy, {"c": "gamma"}) == 3
    with after.read() as generation:
        assert generation.documents.ids() == ["a", "b", "c"]


def test_it_is_whole_while_a_run_writes(tmp_path: Path) -> None:
    root = tmp_path / "ws"
    publish(root, {"a": "alpha"})
    with Workspace(root, keep_generations=1).write() as staging:
        put(staging, "b", "beta")
        write_archive(root, tmp_path / "during.tar")
        staging.publish()
    write_archive(root, tmp_path / "after.tar")
    for name, ids in (("during", ["a"]), ("after", ["a", "b"])):
        read_archive(tmp_path / f"{name}.tar", tmp_path / name)
        with Workspace(tmp_path / name).read() as generation:
            assert generation.documents.ids() == ids


def test_nothing_is_overwritten(root: Path, archive: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(UsageError, match="not empty"):
        read_archive(archive, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    with pytest.raises(UsageError, match="there already"):
        write_archive(root, archive)
    (tmp_path / "empty").mkdir()
    assert read_archive(archive, tmp_path / "empty").generation == 2


@pytest.mark.parametrize("name", ["kept.zip", "kept", "kept.tar.zst"])
def test_other_endings_are_refused(root: Path, tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="ending"):
        write_archive(root, tmp_path / name)


STRANGE = {
    "view": (
        GENERATION,
        "ALTER TABLE documents RENAME TO hidden; "
        "CREATE VIEW documents AS SELECT * REPLACE (version() AS text) FROM hidden",
    ),
    "other view": (GENERATION, "CREATE OR REPLACE VIEW relations AS SELECT version() AS id"),
    "macro": (GENERATION, "CREATE MACRO contains(a, b) AS true"),
    "default": (GENERATION, "ALTER TABLE documents ALTER title SET DEFAULT version()"),
    "trigger": (
        "side.sqlite",
        "CREATE TRIGGER t AFTER INSERT ON runs BEGIN DELETE FROM memory_entries; END",
    ),
    "another version": ("side.sqlite", "PRAGMA user_version = 99"),
}


def execute(file: Path, sql: str) -> None:
    if file.suffix == ".sqlite":
        with closing(sqlite3.connect(file)) as side:
            side.execute(sql)
    else:
        with duckdb.connect(str(file)) as generation:
            generation.execute(sql)


@pytest.mark.parametrize(("name", "sql"), STRANGE.values(), ids=STRANGE)
def test_a_database_with_more_than_data_is_refused(
    root: Path, archive: Path, tmp_path: Path, name: str, sql: str
) -> None:
    copy = copy_of(root, tmp_path / "copy")
    execute(copy / name, sql)
    manifest = json.loads((copy / MANIFEST).read_text())
    manifest["database_bytes"] = (copy / GENERATION).stat().st_size
    entries = {name: (copy / name).read_bytes(), MANIFEST: json.dumps(manifest).encode()}
    with pytest.raises(
        (ArchiveError, WorkspaceFormatError), match=r"other things than ours|version 99"
    ):
        read_archive(rewritten(archive, tmp_path / "strange.tar", entries), tmp_path / "ws")


def test_a_missing_archive_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no archive"):
        read_archive(tmp_path / "none.tar", tmp_path / "ws")


@pytest.mark.parametrize("compress", [gzip.compress, bytes])
@pytest.mark.parametrize("damage", ["cut", "flipped", "no tar", "empty"])
def test_a_damaged_file_is_no_archive(
    archive: Path, tmp_path: Path, compress: Callable[[bytes], bytes], damage: str
) -> None:
    whole = b"no tar" * 99 if damage == "no tar" else gzip.decompress(archive.read_bytes())
    content = bytearray(compress(whole))
    if damage in {"cut", "empty"}:
        del content[len(content) // 2 if damage == "cut" else 0 :]
    elif damage == "flipped":
        content[len(content) // 3] ^= 0x55
    (tmp_path / "damaged").write_bytes(content)
    with pytest.raises(ArchiveError, match="not restored"):
        read_archive(tmp_path / "damaged", tmp_path / "in" / "ws")
    assert list((tmp_path / "in").iterdir()) == []


def test_a_full_disk_leaves_no_half_file(root: Path, archive: Path, tmp_path: Path) -> None:
    with full(), pytest.raises(DiskFull, match="Make room"):
        write_archive(root, tmp_path / "kept.tar")
    with full(), pytest.raises(DiskFull, match="Make room"):
        read_archive(archive, tmp_path / "ws")
    assert list(tmp_path.iterdir()) == []


NO_JSON = r"programs/a\.json cannot be understood"
FOREIGN = [
    "uploads/../x",
    "uploads//x",
    "uploads/.x",
    "uploads/",
    "uploads/a\nb",
    "uploads/\udcff",
    "programs/a/b.json",
    "programs/x.py",
]


@pytest.mark.parametrize(
    ("name", "problem"),
    [*((name, "is not of a workspace") for name in FOREIGN), ("programs/a.json", NO_JSON)],
)
def test_foreign_entries_are_refused(
    archive: Path, tmp_path: Path, name: str, problem: str
) -> None:
    strange = rewritten(archive, tmp_path / "strange.tar", {name: b"{"})
    with pytest.raises(ArchiveError, match=problem):
        read_archive(strange, tmp_path / "ws")
    assert [path.name for path in tmp_path.iterdir()] == ["strange.tar"]
