"""What a fault of the disk or of a file does to each command: how it ends, and what it says."""

import asyncio
import logging
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path

import pytest

from flows.query import answer_question
from flows.question import AskOptions
from flows.session import Sessions
from tests.copying import copy_of
from tests.faults.disk import flip, full, read_only, truncate
from tests.flows.conftest import Command, indexed_by_command
from tests.patience import quick_are

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
WHO_REMEMBERS = {"ask", "retrieve"}  # the others only look, and that may work
WRITERS = {
    "index": ("index", "SOURCE", "--full"),
    "forget": ("forget", "reyd"),
    "clean": ("clean",),
    "clean --vectors": ("clean", "--vectors"),
    "rollback": ("rollback", "1"),
    "archive": ("archive", "TARGET/kept.tar"),
    "export": ("export", "TARGET/export"),
}


@pytest.fixture(scope="module")
def unasked(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace that nobody has asked: what is remembered of a like question would spare the
    writing.
    """
    return indexed_by_command(source, tmp_path_factory.mktemp("unasked"))


@pytest.fixture
def opened(unasked: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Command]:
    """The command on a copy that every user can reach; pytest's own folders are for theirs
    alone.
    """
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Command(copy_of(unasked, Path(folder) / "ws"), capsys)


def refusing(fault: str, folder: Path) -> AbstractContextManager[None]:
    return read_only(folder) if fault == "read-only" else full()


def words_of(command: tuple[str, ...], source: Path, target: Path) -> list[str]:
    return [word.replace("SOURCE", str(source)).replace("TARGET", str(target)) for word in command]


@contextmanager
def warnings_of(*names: str) -> Iterator[list[str]]:
    """What these loggers warn of inside the block, whatever stands around them."""
    warned: list[str] = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: warned.append(record.getMessage())  # type: ignore[method-assign]
    loggers = [logging.getLogger(name) for name in names]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.addHandler(handler)
        logger.setLevel(logging.WARNING)
    yield warned
    for logger, level in zip(loggers, levels, strict=True):
        logger.removeHandler(handler)
        logger.setLevel(level)


@pytest.mark.parametrize("fault", ["read-only", "full"])
@pytest.mark.parametrize("name", READERS)
def test_who_reads_goes_on(opened: Command, source: Path, fault: str, name: str) -> None:
    copy = Path(opened.workspace.parent, "docs.jsonl")
    copy.write_bytes(source.read_bytes())
    with (
        refusing(fault, opened.workspace.parent),
        warnings_of("flows", "tasks", "prompts", "storage") as warned,
    ):
        ended = opened(*words_of(READERS[name], copy, opened.workspace))
    assert (ended.code, "Traceback" in ended.err) == (0, False), ended.err
    said = [line for line in warned if "is remembered" in line]
    assert len(said) == 1 or (len(said) == 0 and name not in WHO_REMEMBERS), ended.out + ended.err
    assert warned == said
    assert all(("may not be" if fault == "read-only" else "no room") in line for line in said)


@pytest.mark.parametrize(("fault", "kind"), [("read-only", "NotPermitted"), ("full", "DiskFull")])
@pytest.mark.parametrize("name", WRITERS)
def test_who_writes_is_told_what_to_do(
    opened: Command, source: Path, fault: str, kind: str, name: str
) -> None:
    place = opened.workspace.parent
    copy = Path(place, "docs.jsonl")
    copy.write_bytes(source.read_bytes())
    with refusing(fault, place):
        ended = opened(*words_of(WRITERS[name], copy, place), "--json")
    assert (ended.code, "Traceback" in ended.err) == (1, False), ended.err
    error = ended.json["error"]
    assert error["type"] == kind, error
    assert ("permissions" if fault == "read-only" else "Make room") in error["remedy"]
    assert "Move" not in error["remedy"]
    assert sorted(path.name for path in place.iterdir() if path.name != "export") == [
        "docs.jsonl",
        "ws",
    ]
    assert opened("ask", QUESTION).code == 0


def garble(path: Path) -> None:
    path.write_bytes(b"garbage" * 1_000)


def flip_inside(path: Path) -> None:
    flip(path, 300_000)


ASK, SHOW, EXPORT, STATUS = (
    ("ask", QUESTION),
    ("show", "bridge"),
    ("export", "TARGET/export"),
    ("status",),
)
GENERATION, SIDE = "generations/000001/generation.duckdb", "side.sqlite"


def settled(workspace: Path) -> Path:
    """The workspace's database, its log written into it: one that is whole would stand in for the
    file.
    """
    with closing(sqlite3.connect(workspace / SIDE)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return workspace / SIDE


@pytest.mark.parametrize(
    ("damage", "command"), [(garble, ASK), (garble, SHOW), (truncate, EXPORT), (flip_inside, ASK)]
)
def test_a_damaged_generation_is_told_with_what_is_lost(
    opened: Command, tmp_path: Path, damage: Callable[[Path], None], command: tuple[str, ...]
) -> None:
    damage(opened.workspace / GENERATION)
    ended = opened(*words_of(command, tmp_path, tmp_path), "--json")
    assert (ended.code, ended.json["error"]["type"]) == (1, "Damaged"), ended.err
    assert all(
        word in ended.json["error"]["remedy"] for word in ("Index again", "trellis rollback N")
    )


def in_the_middle(path: Path) -> None:
    """Garbage in all pages but the first: the file opens."""
    content = path.read_bytes()
    path.write_bytes(content[:4096] + b"garbage!" * ((len(content) - 4096) // 8))


def a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


BESIDE = {
    "garbled": garble,
    "cut": truncate,
    "garbled behind its first page": in_the_middle,
    "a folder": a_folder,
}
MEND = ("move the file away", "memory", "paid again")


@pytest.mark.parametrize("damage", quick_are(("garbled behind its first page", "a folder"), BESIDE))
def test_a_damaged_workspace_database_keeps_no_question_from_its_answer(
    opened: Command, source: Path, tmp_path: Path, damage: str
) -> None:
    """Who asks is told once and answered; who writes is refused, before it publishes where the file
    does not open.
    """
    before = opened(*ASK, "--json").json["answer"]
    side = settled(opened.workspace)
    BESIDE[damage](side)
    ours = ("flows", "tasks", "prompts", "storage")
    for name, command in READERS.items():
        with warnings_of(*ours) as warned:
            ended = opened(*words_of(command, source, tmp_path))
        assert (ended.code, "Traceback" in ended.err) == (0, False), ended.err
        assert len(warned) == (1 if name in WHO_REMEMBERS | {"status", "dry run"} else 0), warned
        assert all(str(side) in line and MEND[0] in line for line in warned)
    assert opened(*ASK, "--json").json["answer"] == before
    (problem,) = opened(*STATUS, "--json").json["problems"]
    examined = opened("doctor", "--json")
    assert examined.code == 1
    assert all(
        word in problem["remedy"] and word in examined.json["workspace"]["advice"] for word in MEND
    )
    with (
        warnings_of(*ours) as warned,
        closing(Sessions()) as sessions,
        sessions.hold(opened.workspace) as session,
    ):
        answers = [
            asyncio.run(answer_question(QUESTION, AskOptions(), session)).answer for _ in range(2)
        ]
    assert (answers, len(warned)) == ([before, before], 1)

    damaged = None if side.is_dir() else side.read_bytes()
    changes = {name: WRITERS[name] for name in ("index", "forget", "archive")}
    changes["edit"] = ("graph", "edit", "Tomas Reyd", "--kind", "person")
    for name, command in changes.items():
        ended = opened(*words_of(command, source, tmp_path), "--json")
        assert (name, ended.code in (1, 2), "Traceback" in ended.err) == (
            name,
            True,
            False,
        ), ended.err
        assert "side.sqlite" in str(ended.json["error"]) or "database is damaged" in str(
            ended.json["error"]
        )
        if damage != "garbled behind its first page":  # which opens, and is told where it is read
            assert [row["number"] for row in opened("generations", "--json").json] == [1], name
    assert damaged is None or side.read_bytes() == damaged
    side.rename(tmp_path / "away")
    assert opened(*words_of(WRITERS["index"], source, tmp_path)).code == 0
