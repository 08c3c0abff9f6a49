"""A power cut as a run publishes, and a disk that fills: the current generation answers or the
fault is told in words, and the next run gives what an undisturbed one gives.
"""

import asyncio
import os
import shutil
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from pathlib import Path
from typing import NamedTuple

import pytest

from flows.index import IndexOptions, index_documents
from storage.errors import Damaged, DiskFull, StorageError
from storage.export import Export
from tasks.watching import watched
from tests.copying import copy_of
from tests.faults.disk import full
from tests.faults.test_kills import STEPS, graph_of, runtime_of
from tests.flows.conftest import row
from tests.patience import quick_are
from tests.workspaces import write_rows

NEW, DATABASE, VECTORS = "generations/000002", "generation.duckdb", "chroma-1/chroma.sqlite3"
Change = Callable[[Path], object]


class Places(NamedTuple):
    """A workspace with generation 1, a copy that also has 2, the source of 2, and both graphs."""

    first: Path
    second: Path
    source: Path
    before: Export
    after: Export


def index(workspace: Path, source: Path) -> None:
    asyncio.run(index_documents([source], IndexOptions(full=True), runtime_of(workspace)))


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Places:
    folder = tmp_path_factory.mktemp("power")
    source = write_rows(folder / "docs.jsonl", map(row, range(6)))
    index(folder / "ws", source)
    before = graph_of(folder / "ws")[1]
    write_rows(source, map(row, range(9)))
    second = copy_of(folder / "ws", folder / "second")
    index(second, source)
    return Places(folder / "ws", second, source, before, graph_of(second)[1])


def write(name: str, content: bytes) -> Change:
    return lambda root: (root / name).write_bytes(content)


def cut(name: str, count: int) -> Change:
    """The last bytes never reached the disk."""
    return lambda root: os.truncate(root / name, max(0, (root / name).stat().st_size - count))


def last(name: str, count: int, content: bytes) -> Change:
    """The last bytes hold something else: what lay there before, or zeros."""

    def change(root: Path) -> None:
        data = (root / name).read_bytes()
        tail = (content * count)[: min(count, len(data))]
        (root / name).write_bytes(data[: len(data) - len(tail)] + tail)

    return change


def gone(name: str) -> Change:
    return lambda root: (
        shutil.rmtree(root / name) if (root / name).is_dir() else (root / name).unlink()
    )


def both(*changes: Change) -> Change:
    return lambda root: [change(root) for change in changes]


OLD = b'{"current":1,"last":1}\n'
NONE = 0  # or a refusal in words: the lost part may have held nothing
# What is left of the writes of a publication, and the generation that may answer then.
LOST: Mapping[str, tuple[Change, int]] = {
    "old CURRENT": (write("CURRENT", OLD), 2),
    "no CURRENT": (gone("CURRENT"), 2),
    "empty CURRENT": (write("CURRENT", b""), 2),
    "half of CURRENT": (write("CURRENT", OLD[:9]), 2),
    "zeros as CURRENT": (write("CURRENT", bytes(len(OLD))), 2),
    "new CURRENT without its folder": (gone(NEW), 1),
    "new CURRENT, empty folder": (both(gone(NEW), lambda root: (root / NEW).mkdir()), NONE),
    "old CURRENT, no manifest": (both(write("CURRENT", OLD), gone(f"{NEW}/manifest.json")), 2),
    "empty manifest": (write(f"{NEW}/manifest.json", b""), 2),
    "half a manifest": (cut(f"{NEW}/manifest.json", 40), 2),
    "zeros as manifest": (last(f"{NEW}/manifest.json", 4096, b"\0"), 2),
    "the database lacks a byte": (cut(f"{NEW}/{DATABASE}", 1), 2),
    "the database lacks a block": (cut(f"{NEW}/{DATABASE}", 262_144), NONE),
    "the database ends in zeros": (last(f"{NEW}/{DATABASE}", 262_144, b"\0"), NONE),
    "the database ends in garbage": (last(f"{NEW}/{DATABASE}", 262_144, b"old "), NONE),
    "the database is empty": (write(f"{NEW}/{DATABASE}", b""), NONE),
    "no vectors": (gone(f"{NEW}/chroma-1"), 2),
    "the vectors lack a page": (cut(f"{NEW}/{VECTORS}", 4096), 2),
    "the vectors end in zeros": (last(f"{NEW}/{VECTORS}", 4096, b"\0"), 2),
    "half a staging folder": (
        lambda root: shutil.copytree(root / NEW, root / "staging" / "000003-x"),
        2,
    ),
    "a lock of nobody": (write("LOCK", b'{"pid": 1, "ho'), 2),
}
QUICK_LOST = (
    "old CURRENT",
    "new CURRENT without its folder",
    "new CURRENT, empty folder",
    "half a manifest",
    "the database lacks a block",
    "the vectors lack a page",
)


@pytest.mark.parametrize("name", quick_are(QUICK_LOST, LOST))
def test_writes_that_were_lost_or_came_in_another_order(
    name: str, places: Places, tmp_path: Path
) -> None:
    change, answering = LOST[name]
    workspace = copy_of(places.second, tmp_path / "ws")
    change(workspace)
    try:
        found = graph_of(workspace)
    except StorageError:
        assert not answering
    else:
        assert found == (answering or 2, places.before if answering == 1 else places.after)
    index(workspace, places.source)
    assert graph_of(workspace)[1] == places.after
    assert (workspace / "generations" / "000001" / DATABASE).stat().st_size, "1 is still there"


SIDE: Mapping[str, Change] = {
    "the log lacks its end": cut("side.sqlite-wal", 5_000),
    "the log ends in zeros": last("side.sqlite-wal", 5_000, b"\0"),
    "the log ends in garbage": last("side.sqlite-wal", 5_000, b"old "),
    "no log": gone("side.sqlite-wal"),
    "no shared memory": lambda root: (root / "side.sqlite-shm").unlink(missing_ok=True),
    "garbled shared memory": write("side.sqlite-shm", b"old " * 8_192),
    "the file ends in zeros": last("side.sqlite", 4_096, b"\0"),
    "the file lacks its last page": cut("side.sqlite", 4_096),
    "the file is empty": write("side.sqlite", b""),
}
QUICK_SIDE = ("the log lacks its end", "the file lacks its last page")


@pytest.mark.parametrize("name", quick_are(QUICK_SIDE, SIDE))
def test_the_last_writes_of_what_outlives_generations(
    name: str, places: Places, tmp_path: Path
) -> None:
    """SQLite drops what was not written whole. The remedy for lost pages is to move the file."""
    workspace = tmp_path / "ws"
    live = copy_of(places.second, tmp_path / "live")
    with closing(sqlite3.connect(live / "side.sqlite")) as connection:
        connection.execute(
            "INSERT INTO runs (kind, started, finished, state, summary) VALUES ('index', '', '', "
            "'', '{}')"
        )
        connection.commit()
        copy_of(live, workspace)  # with its write-ahead log, which closing would empty
    SIDE[name](workspace)
    assert graph_of(workspace) == (2, places.after)
    try:
        index(workspace, places.source)
    except Damaged:  # the remedy
        for file in workspace.glob("side.sqlite*"):
            file.unlink()
        index(workspace, places.source)
    assert graph_of(workspace)[1] == places.after


@pytest.mark.parametrize("point", quick_are(("extract", "publish"), STEPS))
def test_a_disk_that_fills(point: str, places: Places, tmp_path: Path) -> None:
    workspace = copy_of(places.first, tmp_path / "ws")
    with ExitStack() as disk:

        def fill(step: str, begins: bool) -> None:
            if step == point and begins:
                disk.enter_context(full())

        with watched(fill), pytest.raises(DiskFull, match="Make room"):
            index(workspace, places.source)
        assert graph_of(workspace) == (1, places.before)
    index(workspace, places.source)
    assert graph_of(workspace) == (2, places.after)
