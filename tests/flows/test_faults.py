"""What a fault of the disk or of a file does to each command: how it ends, and what it says."""

import asyncio
import logging
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing
from pathlib import Path

import pytest

from flows.session import Sessions
from tests.copying import copy_of
from tests.faults.disk import flip, full, read_only, truncate
from tests.flows.conftest import Command, Ended, indexed_by_command
from tests.patience import quick_are
from tests.workspaces import asked

QUESTION = "Who designed Orla Bridge?"
READERS = {
    "ask": ("ask", QUESTION),
    "retrieve": ("retrieve", QUESTION),
    "status": ("status",),
    "generations": ("generations",),
    "show": ("show", "bridge"),
    "reports": ("reports",),
    "graph": ("graph", "Orla Bridge"),
    "diff": ("diff", "1", "1"),
    "dry run": ("index", "SOURCE", "--dry-run"),
}
WHO_REMEMBERS = {"ask", "retrieve"}  # the others only look, and need write nothing
WRITERS = {
    "index": ("index", "SOURCE", "--full"),
    "forget": ("forget", "reyd"),
    "clean": ("clean",),
    "clean --vectors": ("clean", "--vectors"),
    "rollback": ("rollback", "1"),
    "archive": ("archive", "TARGET/kept.tar"),
    "export": ("export", "TARGET/export"),
}
FAULTS: dict[str, Callable[[Path], AbstractContextManager[None]]] = {
    "read-only": read_only,
    "full": lambda _: full(),
}


@pytest.fixture(scope="module")
def unasked(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace that nobody has asked: a remembered question would spare the writing."""
    return indexed_by_command(source, tmp_path_factory.mktemp("unasked"))


@pytest.fixture
def opened(unasked: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Command]:
    """The command on a copy that every user can reach, unlike pytest's own folders."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Command(copy_of(unasked, Path(folder) / "ws"), capsys)


@pytest.fixture
def docs(opened: Command, source: Path) -> Path:
    """The source beside that copy."""
    copy = opened.workspace.with_name("docs.jsonl")
    copy.write_bytes(source.read_bytes())
    return copy


def run(opened: Command, command: tuple[str, ...], source: Path, *options: str) -> Ended:
    """Run a command; TARGET is the folder of the source."""
    words = [
        word.replace("SOURCE", str(source)).replace("TARGET", str(source.parent))
        for word in command
    ]
    ended = opened(*words, *options)
    assert "Traceback" not in ended.err
    return ended


def warned(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What our loggers have warned of since the last look."""
    layers = {"flows", "tasks", "prompts", "storage"}
    records = [record for record in caplog.records if record.name.partition(".")[0] in layers]
    messages = [record.getMessage() for record in records if record.levelno >= logging.WARNING]
    caplog.clear()
    return messages


@pytest.mark.parametrize(("fault", "said"), [("read-only", "may not be"), ("full", "no room")])
def test_who_reads_goes_on(
    opened: Command, docs: Path, fault: str, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    with FAULTS[fault](docs.parent):
        for name, command in READERS.items():
            ended = run(opened, command, docs)
            assert ended.code == 0, (name, ended.err)
            lines = warned(caplog)
            assert len(lines) == 1 or (not lines and name not in WHO_REMEMBERS), name
            assert all("is remembered" in line and said in line for line in lines)


@pytest.mark.parametrize(
    ("fault", "kind", "remedy"),
    [("read-only", "NotPermitted", "permissions"), ("full", "DiskFull", "Make room")],
)
def test_who_writes_is_told_what_to_do(
    opened: Command, docs: Path, fault: str, kind: str, remedy: str
) -> None:
    for name, command in WRITERS.items():
        with FAULTS[fault](docs.parent):
            ended = run(opened, command, docs, "--json")
        assert ended.code == 1, (name, ended.err)
        error = ended.json["error"]
        assert error["type"] == kind, (name, error)
        assert (remedy in error["remedy"], "Move" in error["remedy"]) == (True, False), name
        left = {path.name for path in docs.parent.iterdir()} - {"export"}
        assert left == {"docs.jsonl", "ws"}, name
    assert opened("ask", QUESTION).code == 0


def garble(path: Path) -> None:
    path.write_bytes(b"garbage" * 1_000)


def flip_inside(path: Path) -> None:
    flip(path, 300_000)


@pytest.mark.parametrize(
    ("damage", "command"),
    [
        (garble, READERS["ask"]),
        (garble, READERS["show"]),
        (truncate, WRITERS["export"]),
        (flip_inside, READERS["ask"]),
    ],
)
def test_a_damaged_generation_is_told_with_what_is_lost(
    opened: Command, docs: Path, damage: Callable[[Path], None], command: tuple[str, ...]
) -> None:
    damage(opened.workspace / "generations/000001/generation.duckdb")
    ended = run(opened, command, docs, "--json")
    assert (ended.code, ended.json["error"]["type"]) == (1, "Damaged"), ended.err
    remedy = ended.json["error"]["remedy"]
    assert all(words in remedy for words in ("Index again", "trellis rollback N"))


def in_the_middle(path: Path) -> None:
    """Put garbage into all pages but the first: the file opens."""
    content = path.read_bytes()
    path.write_bytes(content[:4096] + b"garbage!" * ((len(content) - 4096) // 8))


def a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


OPENS = "garbled behind its first page"
DAMAGES = {"garbled": garble, "cut": truncate, OPENS: in_the_middle, "a folder": a_folder}
REMEDY = ("move the file away", "memory", "paid again")


@pytest.fixture(params=quick_are((OPENS, "a folder"), DAMAGES))
def damage(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def side(opened: Command, damage: str) -> Path:
    """The workspace's database, damaged."""
    file = opened.workspace / "side.sqlite"
    with closing(sqlite3.connect(file)) as connection:
        # The log goes into the file: a whole log would stand in for it.
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    DAMAGES[damage](file)
    return file


def test_questions_pass_over_a_damaged_workspace_database(
    unasked: Path,
    opened: Command,
    docs: Path,
    side: Path,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    whole = Command(copy_of(unasked, docs.with_name("whole")), capsys)
    before = whole(*READERS["ask"], "--json").json["answer"]
    assert warned(caplog) == []
    for name, command in READERS.items():
        ended = run(opened, command, docs)
        assert ended.code == 0, (name, ended.err)
        lines = warned(caplog)
        assert len(lines) == (name in WHO_REMEMBERS | {"status", "dry run"}), (name, lines)
        assert all(str(side) in line and REMEDY[0] in line for line in lines)
    assert opened(*READERS["ask"], "--json").json["answer"] == before
    (problem,) = opened("status", "--json").json["problems"]
    examined = opened("doctor", "--json")
    assert examined.code == 1
    advice = examined.json["workspace"]["advice"]
    assert all(words in problem["remedy"] and words in advice for words in REMEDY)
    warned(caplog)
    with closing(Sessions()) as sessions, sessions.hold(opened.workspace) as session:
        answers = [asyncio.run(asked(QUESTION, session)).answer for _ in range(2)]
    assert (answers, len(warned(caplog))) == ([before, before], 1)


def test_a_damaged_workspace_database_refuses_writers(
    opened: Command, docs: Path, side: Path, damage: str
) -> None:
    damaged = None if side.is_dir() else side.read_bytes()
    changes = {name: WRITERS[name] for name in ("index", "forget", "archive")}
    changes["edit"] = ("graph", "edit", "Tomas Reyd", "--kind", "person")
    for name, command in changes.items():
        ended = run(opened, command, docs, "--json")
        assert ended.code in {1, 2}, (name, ended.err)
        error = str(ended.json["error"])
        assert "side.sqlite" in error or "database is damaged" in error
        if damage != OPENS:  # it is refused before anything is published
            assert [row["number"] for row in opened("generations", "--json").json] == [1], name
    assert damaged is None or side.read_bytes() == damaged
    side.rename(docs.with_name("away"))
    assert run(opened, WRITERS["index"], docs).code == 0
