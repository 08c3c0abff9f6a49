"""A generation is published whole or not at all, and a reader keeps the one that it opened."""

import errno
import fcntl
from collections.abc import Callable
from pathlib import Path

import pytest

from storage.errors import NoGeneration, NoLocks, StorageError, UnknownGeneration, WorkspaceLocked
from storage.workspace import Workspace
from tests.patience import PATIENCE
from tests.storage.conftest import Start, next_line
from tests.storage.samples import publish, put


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "workspace"


@pytest.fixture
def workspace(root: Path) -> Workspace:
    """A workspace with a generation that holds document a."""
    publish(root, {"a": "alpha"})
    return Workspace(root)


def ids(workspace: Workspace, number: int | None = None) -> list[str]:
    with workspace.read(number) as generation:
        return generation.documents.ids()


def test_reading_creates_nothing(root: Path) -> None:
    workspace = Workspace(root)
    assert workspace.current() is None
    assert workspace.generations() == []
    for refused in (
        workspace.read,
        workspace.clean,
        workspace.rebuild_vectors,
        lambda: workspace.rollback(1),
    ):
        with pytest.raises(NoGeneration, match="trellis index SOURCE"):
            refused()
    with pytest.raises(UnknownGeneration):
        workspace.read(3)
    assert not root.exists()


def test_a_run_starts_from_the_current_generation(workspace: Workspace) -> None:
    with workspace.write() as staging:
        assert (staging.base_number, staging.number, staging.documents.ids()) == (1, 2, ["a"])
        staging.documents.remove_documents(["a"])
        put(staging, "b", "beta")
        assert ids(workspace) == ["a"]
        assert staging.publish() == 2
        with pytest.raises(StorageError, match="published already"):
            staging.publish()
    assert (ids(workspace), ids(workspace, 1)) == (["b"], ["a"])
    infos = workspace.generations()
    listed = [(info.number, info.current, info.counts["documents"]) for info in infos]
    assert listed == [(1, False, 1), (2, True, 1)]
    assert infos[0].size_bytes > 10_000
    assert infos[0].created.endswith("+00:00")


def test_leaving_without_publishing_discards(root: Path, workspace: Workspace) -> None:
    def fail() -> None:
        with workspace.write() as staging:
            put(staging, "c", "gamma")
            raise KeyError

    with workspace.write() as staging:
        put(staging, "b", "beta")
    with pytest.raises(KeyError):
        fail()
    assert ids(workspace) == ["a"]
    assert list((root / "staging").iterdir()) == []
    assert publish(root, {"d": "delta"}) == 2
    assert ids(workspace) == ["a", "d"]


def test_only_unread_old_generations_are_removed(root: Path, workspace: Workspace) -> None:
    with workspace.read(1) as held:
        for name in "bcd":
            publish(root, {name: name}, keep=2)
        assert [i.number for i in workspace.generations()] == [1, 3, 4]
        assert workspace.clean(keep=2) == []
        assert held.documents.ids() == ["a"]
    (root / "staging" / "left").write_bytes(b"x" * 5_000)
    assert workspace.clean(keep=2) == [1]
    assert list((root / "staging").iterdir()) == []
    with pytest.raises(UnknownGeneration, match="Kept: 3, 4"):
        workspace.read(1)


def test_the_lock_names_its_holder(root: Path, workspace: Workspace, start: Start) -> None:
    holder = start("hold_lock", root)
    assert next_line(holder) == "locked"
    for refused in (workspace.write, workspace.clean, lambda: workspace.rollback(1)):
        with pytest.raises(WorkspaceLocked, match=f"process {holder.pid} on .* since 20"):
            refused()
    assert ids(workspace) == ["a"]
    holder.kill()
    holder.wait()
    with workspace.write(), pytest.raises(WorkspaceLocked):
        Workspace(root).write()


@pytest.mark.slow
def test_readers_during_runs_see_whole_generations_only(root: Path, start: Start) -> None:
    for number in range(1, 5):
        texts = {name: f"{number} {name * (200 + number)}" for name in "abc"}
        assert publish(root, texts, keep=1, store="chroma") == number
        if number == 1:
            readers = [start("read_on", root) for _ in range(2)]
            assert [next_line(reader) for reader in readers] == ["reading", "reading"]
    (root / "stop").touch()
    for reader in readers:
        outcome, _ = reader.communicate(timeout=PATIENCE)
        word, generations = outcome.split(maxsplit=1)
        assert word == "done", outcome
        assert int(generations) >= 2


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP])
def test_a_disk_without_locks_is_refused(
    root: Path, workspace: Workspace, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The call of the system fails, as on network disks."""

    def refuse(_descriptor: int, _operation: int) -> None:
        raise OSError(number, "refused")

    new = Workspace(root.with_name("new"))
    with monkeypatch.context() as system:
        system.setattr(fcntl, "flock", refuse)
        for refused in (workspace.read, workspace.write, new.write):
            with pytest.raises(NoLocks, match="not supported"):
                refused()
    assert ids(workspace) == ["a"]


@pytest.mark.parametrize(
    ("names", "following"),
    [(["odd", "9" * 20, "000000", "\u0660\u0660\u0660\u0660\u0660\u0669"], 2), (["000009"], 10)],
)
@pytest.mark.parametrize("make", [Path.mkdir, Path.touch])
def test_odd_entries_beside_generations_harm_none(
    root: Path, workspace: Workspace, names: list[str], following: int, make: Callable[[Path], None]
) -> None:
    entries = [root / "generations" / name for name in names]
    for entry in entries:
        make(entry)
    assert {info.number for info in workspace.generations() if not info.damage} == {1}
    workspace.recover()
    assert ids(workspace) == ["a"]
    assert publish(root, {"b": "beta"}) == following
    assert ids(workspace) == ["a", "b"]
    assert all(entry.exists() for entry in entries)
