"""No published generation is lost, whatever becomes of CURRENT or of a generation's files, and nothing forgotten
returns."""

import json
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from storage.errors import NoGeneration, NotPermitted, StorageError, UnknownGeneration
from storage.workspace import Workspace, rehearsal
from tests.copying import copy_of
from tests.storage.conftest import Start
from tests.storage.samples import put, served_by, vector

Change = Callable[[Path], object]
LONG = "zebra crossing "


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


def publish(root: Path, texts: dict[str, str], keep: int = 5, embed: bool = False) -> int:
    with served_by("chroma", root, keep).write() as staging:
        for name, text in texts.items():
            put(staging, name, text, embed)
        return staging.publish()


def folder(root: Path, number: int) -> Path:
    return root / "generations" / f"{number:06d}"


def files(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def databases(root: Path, *numbers: int) -> list[bytes]:
    return [(folder(root, number) / "generation.duckdb").read_bytes() for number in numbers]


def ids(root: Path, number: int | None = None) -> str:
    with Workspace(root).read(number) as generation:
        return "".join(generation.documents.ids())


def numbers(root: Path) -> list[int]:
    return [info.number for info in Workspace(root).generations()]


def as_earlier(root: Path) -> Path:
    """As earlier versions left a workspace."""
    for path in root.rglob("PUBLISHED"):
        path.unlink()
    return root


def point(text: str) -> Change:
    return lambda root: (root / "CURRENT").write_text(text)


def lose(root: Path) -> None:
    (root / "CURRENT").unlink()


# --- CURRENT ---------------------------------------------------------------------------------------------------------

BROKEN: dict[str, Change] = {
    "missing": lose,
    "empty": point(""),
    "garbage": point("seven"),
    "no text": lambda root: (root / "CURRENT").write_bytes(b"\xff\x00" * 9),
    "points to nothing": point('{"current":7,"last":7}'),
    "older": point('{"current":1,"last":1}'),
    "names none": point("{}"),
}


@pytest.mark.parametrize("change", BROKEN.values(), ids=BROKEN)
def test_the_next_run_goes_on_from_the_newest_generation(
    root: Path, change: Change, caplog: pytest.LogCaptureFixture
) -> None:
    change(root)
    before = databases(root, 1, 2, 3)
    with Workspace(root).write() as staging:
        assert staging.base_number == 3
        put(staging, "d", "delta", embed=False)
        number = staging.publish()
    assert number == (8 if change is BROKEN["points to nothing"] else 4), "a number is not given twice"
    assert databases(root, 1, 2, 3) == before
    assert numbers(root) == [1, 2, 3, number]
    assert [ids(root, one) for one in (1, 2, 3, number)] == ["a", "ab", "abc", "abcd"]
    assert "CURRENT was mended" in caplog.text


@pytest.mark.parametrize("change", BROKEN.values(), ids=BROKEN)
def test_a_rollback_mends_it_and_looking_only_tells(root: Path, change: Change) -> None:
    change(root)
    before = files(root)
    workspace = Workspace(root)
    assert numbers(root) == [1, 2, 3]
    assert "trellis rollback N" in workspace.problems()[0].remedy
    assert ids(root, 2) == "ab"
    assert files(root) == before
    workspace.rollback(2)
    assert (workspace.current(), ids(root), workspace.problems()) == (2, "ab", [])
    assert numbers(root) == [1, 2, 3]


@pytest.mark.parametrize("name", ["missing", "empty", "garbage", "points to nothing"])
def test_a_reader_is_told_that_it_is_broken(root: Path, name: str) -> None:
    BROKEN[name](root)
    with pytest.raises(StorageError, match="trellis rollback N"):
        Workspace(root).read()


def test_a_clean_up_mends_it_and_removes_nothing_that_is_kept(root: Path) -> None:
    lose(root)
    assert Workspace(root).clean() == []
    assert json.loads((root / "CURRENT").read_text()) == {"current": 3, "last": 3}


def test_a_rollback_is_kept_when_the_pointer_is_lost(root: Path) -> None:
    Workspace(root).rollback(1)
    lose(root)
    assert publish(root, {"d": "delta"}) == 4
    assert ids(root) == "ad"
    lose(root)
    assert publish(root, {"e": "e"}) == 5
    assert ids(root) == "ade"


def test_what_may_not_be_read_is_not_damaged(root: Path) -> None:
    (folder(root, 3) / "manifest.json").chmod(0)
    if not unreadable(folder(root, 3) / "manifest.json"):
        pytest.skip("this user may read everything")
    with pytest.raises(NotPermitted):
        Workspace(root).write()


def unreadable(path: Path) -> bool:
    try:
        path.read_bytes()
    except PermissionError:
        return True
    return False


# --- damaged files ---------------------------------------------------------------------------------------------------


def cut(name: str, share: float = 0.5) -> Change:
    def change(place: Path) -> None:
        data = (place / name).read_bytes()
        (place / name).write_bytes(data[: int(len(data) * share)])

    return change


def flip(place: Path) -> None:
    """One bit of a stored text: nobody notices before the block is read."""
    data = bytearray((place / "generation.duckdb").read_bytes())
    data[data.index(LONG.encode())] ^= 1
    (place / "generation.duckdb").write_bytes(data)


DAMAGE: dict[str, Change] = {
    "no database": lambda place: (place / "generation.duckdb").unlink(),
    "empty database": cut("generation.duckdb", 0),
    "half a database": cut("generation.duckdb"),
    "most of a database": cut("generation.duckdb", 0.9),
    "no database at all": lambda place: (place / "generation.duckdb").write_bytes(b"none" * 9_000),
    "a flipped bit": flip,
    "no manifest": lambda place: (place / "manifest.json").unlink(),
    "half a manifest": cut("manifest.json"),
    "another's manifest": lambda place: shutil.copy(place.parent / "000001" / "manifest.json", place),
    "no folder": shutil.rmtree,
}
SPARED: dict[str, Change] = {
    "no lease": lambda place: (place / "LEASE").unlink(),
    "no vectors": lambda place: shutil.rmtree(place / "chroma-1"),
    "half the vectors": cut("chroma-1/chroma.sqlite3"),
    "no mark": lambda place: (place / "PUBLISHED").unlink(),
}


@pytest.mark.parametrize("pointer", [None, lose], ids=["pointed to", "pointer lost"])
@pytest.mark.parametrize("change", DAMAGE.values(), ids=DAMAGE)
def test_a_run_starts_from_the_newest_sound_generation(
    root: Path, change: Change, pointer: Change | None, caplog: pytest.LogCaptureFixture
) -> None:
    change(folder(root, 3))
    if pointer:
        pointer(root)
    before = {name: data for name, data in files(root).items() if name.startswith("generations/000003")}
    there = folder(root, 3).exists()
    workspace = Workspace(root)
    workspace.recover()
    assert ids(root) == "ab", "readers need not wait for the run"
    with workspace.write() as staging:
        assert staging.base_number == 2
        put(staging, "d", "delta", embed=False)
        number = staging.publish()
    assert number == (3 if not there and pointer else 4)
    assert files(root).items() >= before.items(), "what is damaged is left as it is"
    assert (ids(root), numbers(root)) == ("abd", [1, 2, 3, 4] if there else [1, 2, number])
    assert caplog.text
    if there and change is not flip:
        assert [info.number for info in workspace.generations() if info.damage] == [3]
        with pytest.raises(StorageError):
            workspace.rollback(3)


@pytest.mark.parametrize("change", SPARED.values(), ids=SPARED)
def test_what_can_be_made_again_is_no_reason_to_go_back(root: Path, change: Change) -> None:
    publish(root, {"c": f"{LONG}c " * 40}, embed=True)
    change(folder(root, 4))
    assert publish(root, {"d": "delta"}) == 5
    with served_by("chroma", root).read() as generation:
        assert generation.documents.ids() == list("abcd")
        found = generation.vectors.search(vector("q"), 3)
        assert [chunk for chunk, _ in found] == [c for c, _ in generation.vectors.exact_search(vector("q"), 3)]
    assert ids(root, 4) == "abc"


def test_damage_that_a_reader_meets_is_told_with_a_remedy_that_works(root: Path) -> None:
    flip(folder(root, 3))
    with Workspace(root).read() as generation, pytest.raises(StorageError, match="damaged") as raised:
        (generation.documents.documents(), generation.documents.chunks(), generation.documents.parts())
    assert "Index again" in raised.value.remedy
    assert publish(root, {"d": "delta"}) == 4
    assert ids(root) == "abd"


def test_a_damaged_generation_is_kept_and_does_not_count(root: Path) -> None:
    cut("manifest.json")(folder(root, 2))
    publish(root, {"d": "delta"}, keep=2)
    assert numbers(root) == [2, 3, 4]
    assert Workspace(root).clean(keep=1) == [3]
    assert numbers(root) == [2, 4]


def test_the_only_generation_is_made_whole_or_begun_anew(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    root = tmp_path / "ws"
    publish(root, {"a": "alpha"})
    cut("manifest.json")(folder(root, 1))
    with Workspace(root).write() as staging:
        assert staging.base_number == 1
    assert Workspace(root).generations()[0].counts["documents"] == 1
    cut("generation.duckdb")(folder(root, 1))
    assert publish(root, {"b": "beta"}) == 2
    assert "begins with nothing" in caplog.text
    assert (ids(root), numbers(root)) == ("b", [1, 2])
    with pytest.raises(StorageError):
        Workspace(root).read(1)


# --- runs that died --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lost", [False, True], ids=["", "CURRENT lost"])
@pytest.mark.parametrize("moment", ["000002", "RETIRED", "CURRENT", "PUBLISHED"])
def test_a_run_that_forgets_is_killed(tmp_path: Path, start: Start, moment: str, lost: bool) -> None:
    """Generation 2 retires 1. Until CURRENT is switched, 1 stands; after that it never comes back."""
    root = tmp_path / "ws"
    publish(root, {"a": "alpha"})
    assert start("die_writing", root, moment).wait() == -signal.SIGKILL
    workspace = Workspace(root)
    if lost:
        lose(root)
    else:
        assert ids(root) == ("adoomed" if moment == "PUBLISHED" else "a")
    if lost and moment in ("CURRENT", "PUBLISHED"):
        # Nothing tells one from the other: a person must, and what may be forgotten is not shown.
        before = files(root)
        with pytest.raises(StorageError, match="rollback N`, N of 2"):
            workspace.write()
        with pytest.raises(StorageError):
            workspace.read(1)
        assert files(root) == before | {"LOCK": (root / "LOCK").read_bytes()}
        workspace.rollback(2)
    survived = moment == "PUBLISHED" or (lost and moment == "CURRENT")
    number = publish(root, {"b": "beta"})
    assert number == (2 if moment == "000002" else 3)
    assert ids(root) == ("abdoomed" if survived else "ab")
    assert numbers(root) == ([2, 3] if survived else [1, number])
    aside = not survived and moment != "000002"
    assert workspace.set_aside() == ([2] if aside else [])
    if aside:
        assert any("000002" in problem.message for problem in workspace.problems())
        workspace.rollback(2)
        assert (ids(root), workspace.set_aside()) == ("adoomed", [])


def test_the_first_run_is_killed_before_it_is_published(tmp_path: Path, start: Start) -> None:
    root = tmp_path / "ws"
    root.mkdir()
    (root / "CURRENT").write_text("{}")
    assert start("die_writing", root, "CURRENT").wait() == -signal.SIGKILL
    with pytest.raises(NoGeneration):
        Workspace(root).read()
    assert publish(root, {"a": "alpha"}) == 2
    assert Workspace(root).set_aside() == [1]


# --- what was forgotten ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("change", [lose, BROKEN["older"], BROKEN["garbage"]], ids=["missing", "older", "garbage"])
def test_what_was_retired_never_comes_back(tmp_path: Path, change: Change) -> None:
    root = tmp_path / "ws"
    publish(root, {"a": "alpha"})
    with Workspace(root).read() as reading:
        with Workspace(root).write() as staging:
            staging.documents.remove_documents(["a"])
            put(staging, "b", "beta")
            staging.publish(retire=[1], afresh=True)
        change(root)
        assert numbers(root) == [2]
        with pytest.raises((StorageError, UnknownGeneration)):
            Workspace(root).read(1)
        with pytest.raises(UnknownGeneration):
            Workspace(root).rollback(1)
        assert publish(root, {"c": "gamma"}) == 3
        assert (ids(root), Workspace(root).retired()) == ("bc", [1])
        assert reading.documents.ids() == ["a"]
    assert Workspace(root).clean() == [1]


def test_an_older_generation_does_not_take_in_again_what_a_damaged_one_kept_out(root: Path) -> None:
    with Workspace(root).write() as staging:
        staging.documents.remove_documents(["a"])
        staging.documents.forget("a", ())
        staging.publish()
    cut("generation.duckdb")(folder(root, 4))
    with pytest.raises(StorageError, match="still holds what it forgot: a"):
        Workspace(root).write()
    Workspace(root).rollback(3)
    assert ids(root) == "abc"


# --- earlier versions ------------------------------------------------------------------------------------------------


def test_a_workspace_of_an_earlier_version_is_gone_on_with(root: Path) -> None:
    as_earlier(root)
    before = files(root)
    assert (ids(root), numbers(root), Workspace(root).problems()) == ("abc", [1, 2, 3], [])
    with rehearsal(Workspace(root)) as stage, stage.write() as staging:
        put(staging, "d", "delta")
        staging.publish()
    assert files(root) == before
    assert publish(root, {"d": "delta"}) == 4
    lose(root)
    assert publish(root, {"e": "e"}) == 5
    assert numbers(root) == [1, 2, 3, 4, 5]


def test_where_it_lost_its_pointer_a_person_says_what_was_published(root: Path) -> None:
    lose(as_earlier(root))
    before = databases(root, 1, 2, 3)
    workspace = Workspace(root)
    for refused in (workspace.write, workspace.clean, workspace.recover):
        with pytest.raises(StorageError, match="trellis rollback N"):
            refused()
    assert databases(root, 1, 2, 3) == before
    workspace.rollback(2)
    assert (ids(root), numbers(root), workspace.set_aside()) == ("ab", [1, 2], [3])
    workspace.rollback(3)
    assert (ids(root), numbers(root), workspace.set_aside()) == ("abc", [1, 2, 3], [])
    assert publish(root, {"d": "delta"}) == 4


def test_what_an_older_pointer_of_it_does_not_explain_is_set_aside(root: Path) -> None:
    BROKEN["older"](as_earlier(root))
    before = databases(root, 2, 3)
    assert publish(root, {"d": "delta"}) == 4
    assert (numbers(root), Workspace(root).set_aside()) == ([1, 4], [2, 3])
    aside = [(root / "set-aside" / name / "generation.duckdb").read_bytes() for name in ("000002", "000003")]
    assert aside == before
