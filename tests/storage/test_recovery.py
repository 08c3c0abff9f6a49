"""Generations survive damage to CURRENT and to their files, and nothing forgotten returns."""

import os
import shutil
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from storage.archive import write_archive
from storage.errors import StorageError, TooLittle, UnknownGeneration
from storage.recovery import damage
from storage.workspace import Workspace
from tests.copying import copy_of
from tests.faults.disk import no_more_files
from tests.storage import samples
from tests.storage.conftest import Start
from tests.storage.samples import put

Change = Callable[[Path], object]
LONG = "zebra crossing "
publish = partial(samples.publish, embed=False)


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Generations 1, 2 and 3 with the documents a, ab and abc; tests copy it."""
    root = tmp_path_factory.mktemp("three") / "ws"
    for name in "abc":
        publish(root, {name: f"{LONG}{name} " * 40})
    return root


@pytest.fixture
def root(three: Path, tmp_path: Path) -> Path:
    return copy_of(three, tmp_path / "ws")


def folder(root: Path, number: int) -> Path:
    return root / "generations" / f"{number:06d}"


def files(root: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}


def ids(root: Path, number: int | None = None) -> str:
    with Workspace(root).read(number) as generation:
        return "".join(generation.documents.ids())


def numbers(root: Path) -> list[int]:
    return [info.number for info in Workspace(root).generations()]


def point(text: str) -> Change:
    return lambda root: (root / "CURRENT").write_text(text)


def lose(root: Path) -> None:
    (root / "CURRENT").unlink()


BROKEN: dict[str, Change] = {
    "missing": lose,
    "garbage": point("seven"),
    "no text": lambda root: (root / "CURRENT").write_bytes(b"\xff\x00" * 9),
    "points to nothing": point('{"current":7,"last":7}'),
    "older": point('{"current":1,"last":1}'),
    "names none": point("{}"),
}


@pytest.mark.parametrize("change", BROKEN.values(), ids=BROKEN)
def test_without_current_the_newest_generation_is_current(
    root: Path, change: Change, caplog: pytest.LogCaptureFixture
) -> None:
    change(root)
    before = files(root)
    workspace = Workspace(root)
    assert (numbers(root), workspace.current()) == ([1, 2, 3], 3)
    assert (ids(root), ids(root, 2)) == ("abc", "ab")
    assert "trellis rollback N" in workspace.problems()[0].remedy
    assert files(root) == before, "reading changes nothing"
    assert workspace.clean() == []
    assert "CURRENT was repaired" in caplog.text
    assert (workspace.problems(), workspace.current()) == ([], 3)
    number = publish(root, {"d": "delta"})
    assert number == (8 if change is BROKEN["points to nothing"] else 4), "numbers are not reused"
    assert [ids(root, one) for one in (1, 2, 3, number)] == ["a", "ab", "abc", "abcd"]


def test_lost_generations_are_not_replaced_unasked(root: Path) -> None:
    (root / "generations").rename(root / "aside")
    workspace = Workspace(root)
    for work in (
        lambda: publish(root, {"d": "delta"}),
        workspace.read,
        lambda: workspace.read(2),
        workspace.clean,
        lambda: write_archive(root, root.with_name("ws.tar.gz")),
    ):
        with pytest.raises(StorageError, match=r"generation 3.*is not there.*Put the folder back"):
            work()
    (root / "aside").rename(root / "generations")
    assert publish(root, {"d": "delta"}) == 4
    (root / "generations").rename(root / "aside")
    lose(root)
    assert ids(root, publish(root, {"d": "delta"})) == "d", "without CURRENT it is a new workspace"


def cut(name: str, share: float = 0.5) -> Change:
    def change(place: Path) -> None:
        data = (place / name).read_bytes()
        (place / name).write_bytes(data[: int(len(data) * share)])

    return change


def flip(place: Path) -> None:
    """Flips one bit of a stored text, which shows only when its block is read."""
    data = bytearray((place / "generation.duckdb").read_bytes())
    data[data.index(LONG.encode())] ^= 1
    (place / "generation.duckdb").write_bytes(data)


DAMAGE: dict[str, Change] = {
    "no database": lambda place: (place / "generation.duckdb").unlink(),
    "empty database": cut("generation.duckdb", 0),
    "most of a database": cut("generation.duckdb", 0.9),
    "another file": lambda place: (place / "generation.duckdb").write_bytes(b"none" * 9_000),
    "a flipped bit": flip,
    "no manifest": lambda place: (place / "manifest.json").unlink(),
    "half a manifest": cut("manifest.json"),
    "another's manifest": lambda place: shutil.copy(
        folder(place.parents[1], 1) / "manifest.json", place
    ),
    "no folder": shutil.rmtree,
}


@pytest.mark.parametrize("change", DAMAGE.values(), ids=DAMAGE)
def test_a_run_starts_from_the_newest_sound_generation(
    root: Path, change: Change, caplog: pytest.LogCaptureFixture
) -> None:
    change(folder(root, 3))
    before = files(folder(root, 3))
    there = folder(root, 3).exists()
    workspace = Workspace(root)
    workspace.recover()
    assert ids(root) == "ab", "readers need not wait for the run"
    assert publish(root, {"d": "delta"}) == 4
    assert files(folder(root, 3)) == before, "what is damaged is not changed"
    assert (ids(root), numbers(root)) == ("abd", [1, 2, 3, 4] if there else [1, 2, 4])
    assert caplog.text
    if there and change is not flip:
        assert [info.number for info in workspace.generations() if info.damage] == [3]
        with pytest.raises(StorageError):
            workspace.rollback(3)


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
@pytest.mark.parametrize("name", ["manifest.json", "generation.duckdb"])
def test_a_pipe_or_a_folder_in_place_of_a_file_is_damage(
    root: Path, name: str, make: Change
) -> None:
    (folder(root, 3) / name).unlink()
    make(folder(root, 3) / name)
    assert damage(folder(root, 3), 3) == f"{name} is missing"
    assert publish(root, {"d": "delta"}) == 4
    assert ids(root) == "abd"


def test_without_a_sound_generation_a_run_begins_empty(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    root = tmp_path / "ws"
    publish(root, {"a": "alpha"})
    cut("generation.duckdb")(folder(root, 1))
    with pytest.raises(StorageError, match="no generation can be read"):
        Workspace(root).clean()
    assert publish(root, {"b": "beta"}) == 2
    assert "begins with nothing" in caplog.text
    assert (ids(root), numbers(root)) == ("b", [1, 2])
    with pytest.raises(StorageError):
        Workspace(root).read(1)


@pytest.mark.parametrize(
    ("moment", "lost"),
    [("transaction", False), ("000002", True), ("CURRENT", False), ("CURRENT", True)],
)
def test_a_run_that_forgets_is_killed(
    tmp_path: Path, start: Start, moment: str, lost: bool
) -> None:
    """Generation 2 retires 1: it is current until 2 is in place, and never afterwards."""
    root = tmp_path / "ws"
    publish(root, {"a": "alpha"})
    assert start("die_writing", root, moment).wait() == -signal.SIGKILL
    if lost:
        lose(root)
    published = moment == "CURRENT"
    assert (ids(root), numbers(root)) == (("adoomed", [2]) if published else ("a", [1]))
    with pytest.raises(UnknownGeneration):
        Workspace(root).read(1 if published else 2)
    assert publish(root, {"b": "beta"}) == (3 if published else 2)
    assert (ids(root), numbers(root)) == (("abdoomed", [2, 3]) if published else ("ab", [1, 2]))
    assert not folder(root, 1).exists() or not published
    assert list((root / "staging").iterdir()) == []


@pytest.mark.parametrize("broken", ["missing", "older", "garbage"])
def test_what_was_retired_never_comes_back(tmp_path: Path, broken: str) -> None:
    root = tmp_path / "ws"
    publish(root, {"a": "alpha"})
    with Workspace(root).read() as reading:
        with Workspace(root).write() as staging:
            staging.documents.remove_documents(["a"])
            put(staging, "b", "beta")
            staging.publish(retire=[1], afresh=True)
        for existing in ([2], [2, 3]):
            BROKEN[broken](root)
            assert numbers(root) == existing
            for refused in (Workspace(root).read, Workspace(root).rollback):
                with pytest.raises(UnknownGeneration):
                    refused(1)
            publish(root, {"c": "gamma"})
            assert (ids(root), Workspace(root).retired()) == ("bc", [1])
        assert reading.documents.ids() == ["a"]
    assert Workspace(root).clean() == [1]


def test_with_too_few_descriptors_nothing_is_taken_for_damaged(root: Path) -> None:
    damage(folder(root, 3), 3)
    (folder(root, 3) / "generation.duckdb").touch()  # so that it is opened anew
    with no_more_files(), pytest.raises(TooLittle):
        Workspace(root).recover(from_nothing=True)
    assert (Workspace(root).current(), ids(root)) == (3, "abc")
