"""An archive holds a workspace as it was at one moment, and of a file from elsewhere nothing is
believed.
"""

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

Entries = dict[str, bytes]
REMEMBERED = MemoryEntry(
    source="a", title="Who?", content="Zoë", evidence=("chk_a_0",), generation=2
)


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


def rewritten(archive: Path, target: Path, change: Callable[[Entries], None]) -> Path:
    """A copy of an archive with other entries."""
    entries: Entries = {}
    with tarfile.open(archive) as read:
        for entry in read:
            stream = read.extractfile(entry)
            assert stream is not None
            entries[entry.name] = stream.read()
    change(entries)
    with tarfile.open(target, "w") as made:
        for name, data in entries.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            made.addfile(entry, io.BytesIO(data))
    return target


def test_a_workspace_comes_back_equal(root: Path, archive: Path, tmp_path: Path) -> None:
    report = read_archive(archive, tmp_path / "ws")
    assert (report.generation, report.generations) == (2, (1, 2))
    before, after = Workspace(root), Workspace(tmp_path / "ws")
    for number in (1, 2):
        with before.read(number) as old, after.read(number) as new:
            assert export(old) == export(new)
        assert after.rebuild_vectors(number) > 0
    assert after.database.memory.entries() == [REMEMBERED]
    assert (tmp_path / "ws" / "tailoring.toml").read_text() == (root / "tailoring.toml").read_text()
    assert publish(tmp_path / "ws", {"c": "gamma"}) == 3
    with after.read() as generation:
        assert generation.documents.ids() == ["a", "b", "c"]


def test_it_is_whole_while_a_run_writes(tmp_path: Path) -> None:
    """A run holds the lock, publishes and removes the old generation; the archive is of one moment
    all the same.
    """
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
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    with pytest.raises(UsageError, match="not empty"):
        read_archive(archive, tmp_path / "full")
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["mine.txt"]
    with pytest.raises(UsageError, match="there already"):
        write_archive(root, archive)
    (tmp_path / "empty").mkdir()
    assert read_archive(archive, tmp_path / "empty").generation == 2


@pytest.mark.parametrize("name", ["kept.zip", "kept", "kept.tar.zst"])
def test_other_endings_are_refused(root: Path, tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="ending"):
        write_archive(root, tmp_path / name)


GENERATION = "generations/000001/generation.duckdb"


OF_SQLITE = {
    "trigger": "CREATE TRIGGER t AFTER INSERT ON runs BEGIN DELETE FROM memory_entries; END",
    "another version": "PRAGMA user_version = 99",
}


def sql_of_strangers(root: Path, where: str) -> None:
    if where in OF_SQLITE:
        with closing(sqlite3.connect(root / "side.sqlite")) as connection:
            connection.execute(OF_SQLITE[where])
        return
    with duckdb.connect(str(root / "generations" / "000001" / "generation.duckdb")) as connection:
        if where == "view":
            connection.execute("ALTER TABLE documents RENAME TO hidden")
            connection.execute(
                "CREATE VIEW documents AS SELECT * REPLACE (version() AS text) FROM hidden"
            )
        elif where == "other view":
            connection.execute("CREATE OR REPLACE VIEW relations AS SELECT version() AS id")
        elif where == "macro":
            connection.execute("CREATE MACRO contains(a, b) AS true")
        else:
            connection.execute("ALTER TABLE documents ALTER title SET DEFAULT version()")


@pytest.mark.parametrize("where", ["view", "other view", "macro", "default", *OF_SQLITE])
def test_a_database_with_more_than_data_is_refused(
    root: Path, archive: Path, tmp_path: Path, where: str
) -> None:
    copy = copy_of(root, tmp_path / "copy")
    sql_of_strangers(copy, where)

    def put_in(entries: Entries) -> None:
        entries["side.sqlite"] = (copy / "side.sqlite").read_bytes()
        entries[GENERATION] = (copy / GENERATION).read_bytes()
        manifest = json.loads(entries["generations/000001/manifest.json"])
        manifest["database_bytes"] = len(entries[GENERATION])
        entries["generations/000001/manifest.json"] = json.dumps(manifest).encode()

    with pytest.raises(
        (ArchiveError, WorkspaceFormatError), match=r"other things than ours|version 99"
    ):
        read_archive(rewritten(archive, tmp_path / "strange.tar", put_in), tmp_path / "ws")


def test_an_archive_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no archive"):
        read_archive(tmp_path / "none.tar", tmp_path / "ws")


@pytest.mark.parametrize("compress", [gzip.compress, bytes])
@pytest.mark.parametrize("damage", ["cut", "flipped", "no tar", "empty"])
def test_a_damaged_file_is_no_archive(
    archive: Path, tmp_path: Path, compress: Callable[[bytes], bytes], damage: str
) -> None:
    content = bytearray(
        compress(b"no tar" * 99 if damage == "no tar" else gzip.decompress(archive.read_bytes()))
    )
    if damage in {"cut", "empty"}:
        del content[len(content) // 2 if damage == "cut" else 0 :]
    elif damage == "flipped":
        content[len(content) // 3] ^= 0x55
    (tmp_path / "damaged").write_bytes(content)
    with pytest.raises(ArchiveError, match="not restored"):
        read_archive(tmp_path / "damaged", tmp_path / "in" / "ws")
    assert list((tmp_path / "in").iterdir()) == []


def test_a_target_without_room_is_told_and_holds_no_half(
    root: Path, archive: Path, tmp_path: Path
) -> None:
    with full(), pytest.raises(DiskFull, match="Make room"):
        write_archive(root, tmp_path / "kept.tar")
    with full(), pytest.raises(DiskFull, match="Make room"):
        read_archive(archive, tmp_path / "ws")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "name",
    [
        "uploads/../x",
        "uploads//x",
        "uploads/.x",
        "uploads/",
        "uploads/a\nb",
        "programs/a/b.json",
        "programs/x.py",
    ],
)
def test_no_file_of_another_name_is_unpacked(archive: Path, tmp_path: Path, name: str) -> None:
    strange = rewritten(
        archive, tmp_path / "strange.tar", lambda entries: entries.update({name: b"{}"})
    )
    with pytest.raises(ArchiveError, match="is not of a workspace"):
        read_archive(strange, tmp_path / "ws")
    assert [path.name for path in tmp_path.iterdir()] == ["strange.tar"]


def test_a_compiled_step_that_is_no_json_is_refused(archive: Path, tmp_path: Path) -> None:
    strange = rewritten(
        archive, tmp_path / "s.tar", lambda entries: entries.update({"programs/a.json": b"{"})
    )
    with pytest.raises(ArchiveError, match=r"programs/a\.json cannot be understood"):
        read_archive(strange, tmp_path / "ws")
