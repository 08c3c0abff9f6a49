"""A generation is published whole or not at all, and a reader keeps what it began with."""

import errno
import fcntl
from pathlib import Path

import pytest

from storage.errors import NoGeneration, NoLocks, StorageError, UnknownGeneration, WorkspaceLocked
from storage.workspace import Workspace
from tests.patience import PATIENCE
from tests.storage.conftest import Start
from tests.storage.samples import publish, put


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "workspace"


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


def test_a_run_starts_from_the_current_generation(root: Path) -> None:
    assert publish(root, {"a": "alpha"}) == 1
    workspace = Workspace(root)
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
    assert [(i.number, i.current, i.counts["documents"]) for i in infos] == [
        (1, False, 1),
        (2, True, 1),
    ]
    assert infos[0].size_bytes > 10_000
    assert infos[0].created.endswith("+00:00")


def test_leaving_without_publishing_discards(root: Path) -> None:
    publish(root, {"a": "alpha"})
    workspace = Workspace(root)
    with workspace.write() as staging:
        put(staging, "b", "beta")

    def fail() -> None:
        with workspace.write() as staging:
            put(staging, "c", "gamma")
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert ids(workspace) == ["a"]
    assert list((root / "staging").iterdir()) == []
    assert publish(root, {"d": "delta"}) == 2
    assert ids(workspace) == ["a", "d"]


def test_only_unread_old_generations_are_removed(root: Path) -> None:
    publish(root, {"a": "alpha"})
    workspace = Workspace(root, keep_generations=2)
    with workspace.read(1) as held:
        for name in "bcd":
            publish(root, {name: name}, keep=2)
        assert [i.number for i in workspace.generations()] == [1, 3, 4]
        assert workspace.clean() == []
        assert held.documents.ids() == ["a"]
    (root / "staging" / "left").write_bytes(b"x" * 5_000)
    assert workspace.clean() == [1]
    assert list((root / "staging").iterdir()) == []
    with pytest.raises(UnknownGeneration, match="Kept: 3, 4"):
        workspace.read(1)
    with pytest.raises(StorageError, match="at least one"):
        Workspace(root, keep_generations=0)


def test_the_lock_names_its_holder(root: Path, start: Start) -> None:
    publish(root, {"a": "alpha"})
    holder = start("hold_lock", root)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "locked\n"
    workspace = Workspace(root)
    for refused in (workspace.write, workspace.clean, lambda: workspace.rollback(1)):
        with pytest.raises(WorkspaceLocked, match=f"process {holder.pid} on .* since 20") as caught:
            refused()
        assert caught.value.exit_code == 4
    assert ids(workspace) == ["a"]
    holder.kill()
    holder.wait()
    with workspace.write() as staging:
        assert staging.documents.ids() == ["a"]
    with workspace.write(), pytest.raises(WorkspaceLocked):
        Workspace(root).write()


@pytest.mark.slow
def test_readers_beside_a_writer_see_whole_generations_only(root: Path, start: Start) -> None:
    texts = {name: f"1 {name * 200}" for name in "abc"}
    publish(root, texts, store="chroma")
    readers = [start("read_on", root) for _ in range(2)]
    for reader in readers:
        assert reader.stdout is not None
        assert reader.stdout.readline() == "reading\n"
    for number in range(2, 5):
        assert (
            publish(
                root,
                {name: f"{number} {name * (200 + number)}" for name in "abc"},
                keep=1,
                store="chroma",
            )
            == number
        )
    (root / "stop").touch()
    for reader in readers:
        outcome, _ = reader.communicate(timeout=PATIENCE)
        word, reads, generations = outcome.split(maxsplit=2)
        assert word == "done", outcome
        assert int(reads) >= int(generations) >= 2


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP])
def test_a_disk_without_locks_is_told(
    root: Path, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on network disks: the system's own call refuses."""

    def refuse(_descriptor: int, _operation: int) -> None:
        raise OSError(number, "refused")

    publish(root, {"a": "alpha"})
    with monkeypatch.context() as system:
        system.setattr(fcntl, "flock", refuse)
        for refused in (
            Workspace(root).read,
            Workspace(root).write,
            Workspace(root.with_name("new")).write,
        ):
            with pytest.raises(NoLocks, match="not supported"):
                refused()
    assert ids(Workspace(root)) == ["a"]


@pytest.mark.parametrize(
    ("names", "following"),
    [(["odd", "9" * 20, "000000", "\u0660\u0660\u0660\u0660\u0660\u0669"], 2), (["000009"], 10)],
)
@pytest.mark.parametrize("folder", [True, False], ids=["folder", "file"])
def test_odd_entries_beside_generations_harm_none(
    root: Path, names: list[str], following: int, folder: bool
) -> None:
    publish(root, {"a": "alpha"})
    entries = [root / "generations" / name for name in names]
    for entry in entries:
        entry.mkdir() if folder else entry.touch()
    workspace = Workspace(root)
    assert {info.number for info in workspace.generations() if not info.damage} == {1}
    workspace.recover()
    assert ids(workspace) == ["a"]
    assert publish(root, {"b": "beta"}) == following
    assert ids(workspace) == ["a", "b"]
    assert all(entry.exists() for entry in entries)
