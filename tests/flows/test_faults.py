"""What a fault of the disk or of a file does to each command: how it ends, and what it says."""

import logging
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path

import pytest

from tests.copying import copy_of
from tests.faults.disk import flip, full, read_only, truncate
from tests.flows.conftest import Command, indexed_by_command

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
    """A workspace that nobody has asked: what is remembered of a like question would spare the writing."""
    return indexed_by_command(source, tmp_path_factory.mktemp("unasked"))


@pytest.fixture
def opened(unasked: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Command]:
    """The command on a copy that every user can reach; pytest's own folders are for theirs alone."""
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
    with refusing(fault, opened.workspace.parent), warnings_of("flows", "tasks", "prompts", "storage") as warned:
        ended = opened(*words_of(READERS[name], copy, opened.workspace))
    assert (ended.code, "Traceback" in ended.err) == (0, False), ended.err
    said = [line for line in warned if "is remembered" in line]
    assert len(said) == 1 or (len(said) == 0 and name not in WHO_REMEMBERS), ended.out + ended.err
    assert warned == said
    assert all(("may not be" if fault == "read-only" else "no room") in line for line in said)


@pytest.mark.parametrize(("fault", "kind"), [("read-only", "NotPermitted"), ("full", "DiskFull")])
@pytest.mark.parametrize("name", WRITERS)
def test_who_writes_is_told_what_to_do(opened: Command, source: Path, fault: str, kind: str, name: str) -> None:
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
    assert sorted(path.name for path in place.iterdir() if path.name != "export") == ["docs.jsonl", "ws"]
    assert opened("ask", QUESTION).code == 0


def garble(path: Path) -> None:
    path.write_bytes(b"garbage" * 1_000)


def flip_inside(path: Path) -> None:
    flip(path, 300_000)


ASK, SHOW, EXPORT, STATUS = ("ask", QUESTION), ("show", "bridge"), ("export", "TARGET/export"), ("status",)
GENERATION, SIDE = "generations/000001/generation.duckdb", "side.sqlite"
REMEDIES = {GENERATION: ("Index again", "trellis rollback N"), SIDE: ("move the file away", "memory", "paid again")}


@pytest.mark.parametrize(
    ("file", "damage", "command"),
    [
        (GENERATION, garble, ASK), (GENERATION, garble, SHOW), (GENERATION, truncate, EXPORT),
        (GENERATION, flip_inside, ASK), (SIDE, garble, ASK), (SIDE, truncate, ASK), (SIDE, truncate, STATUS),
    ],
)  # fmt: skip
def test_a_damaged_database_is_told_with_what_is_lost(
    opened: Command, tmp_path: Path, file: str, damage: Callable[[Path], None], command: tuple[str, ...]
) -> None:
    with closing(sqlite3.connect(opened.workspace / SIDE)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # else a log that is whole stands in for the file
    damage(opened.workspace / file)
    ended = opened(*words_of(command, tmp_path, tmp_path), "--json")
    assert (ended.code, ended.json["error"]["type"]) == (1, "Damaged"), ended.err
    assert all(word in ended.json["error"]["remedy"] for word in REMEDIES[file])


def test_a_damaged_generation_is_among_the_problems_of_the_workspace(opened: Command) -> None:
    truncate(opened.workspace / GENERATION)
    ended = opened(*STATUS, "--json")
    assert (ended.code, ended.json["generation"]) == (0, 1), ended.err
    assert ["Generation 1 is damaged" in problem["message"] for problem in ended.json["problems"]] == [True]
    assert all(word in ended.json["problems"][0]["remedy"] for word in ("trellis index", "trellis rollback N"))
