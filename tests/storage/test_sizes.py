"""What a workspace takes is told part by part, bounded, and freed unless somebody reads it."""

import shutil
from pathlib import Path

from storage.layout import size_of
from storage.memory import MemoryEntry
from storage.workspace import Workspace, measure_sizes
from storage.workspace_db import DatabaseLimits, WorkspaceDatabase
from tests.storage.samples import MODEL, publish, put, vector


def entry(title: str, generation: int = 1) -> MemoryEntry:
    return MemoryEntry(source="s", title=title, content="c" * 100, evidence=("e",), generation=generation)


def test_each_part_is_measured_and_bounded(tmp_path: Path) -> None:
    root = tmp_path / "ws"
    for name in "abc":
        publish(root, {name: name})
    workspace = Workspace(root, keep_generations=2)
    workspace.database.memory.put(entry("t"))
    workspace.database.model_answers.put("key", "answer")
    workspace.database.embeddings.put_many(MODEL, {"h": vector("h")})
    found = measure_sizes(workspace)
    assert [(one.number, one.current, one.goes) for one in found.generations] == [
        (1, False, True), (2, False, False), (3, True, False),
    ]  # fmt: skip
    assert all(one.size_bytes > 10_000 for one in found.generations)
    parts = {part.name: part for part in found.database}
    assert {name: part.rows for name, part in parts.items()} == {
        "memory": 1, "model answers": 1, "embeddings": 1, "runs": 0,
    }  # fmt: skip
    assert (parts["memory"].size_bytes, parts["model answers"].size_bytes) == (101, len("key" + "answer"))
    assert all(bool(part.most_rows) != bool(part.most_bytes) for part in parts.values())
    assert found.total_bytes == size_of(root) > found.database_bytes > 0


def test_measuring_nothing_makes_nothing(tmp_path: Path) -> None:
    found = measure_sizes(Workspace(tmp_path / "ws"))
    assert (found.generations, found.database, found.total_bytes) == ((), (), 0)
    assert not (tmp_path / "ws").exists()


def test_a_clean_up_frees_what_was_promised_but_not_what_is_read(tmp_path: Path) -> None:
    root = tmp_path / "ws"
    for name in "abc":
        publish(root, {name: name})
    (root / "staging" / "left").write_bytes(b"x" * 5_000)
    workspace = Workspace(root)
    with workspace.read(1):
        found = measure_sizes(workspace, keep=1)
        assert [(one.read, one.goes) for one in found.generations] == [(True, False), (False, True), (False, False)]
        assert found.leftover_bytes == 5_000
        before = size_of(root)
        assert workspace.clean(keep=1) == [2]
        assert before - size_of(root) == found.freed_bytes - found.holes_bytes
    assert workspace.clean(keep=1) == [1]
    assert [one.number for one in workspace.generations()] == [3]


def test_what_was_removed_leaves_holes_until_the_file_is_written_anew(tmp_path: Path) -> None:
    side = WorkspaceDatabase(tmp_path / "side.sqlite")
    for number in range(200):
        side.model_answers.put(f"key-{number}", "answer " * 200)
    side.memory.put(entry("stays"))
    assert side.holes() == 0
    side.forget_caches()
    assert side.holes() > 200_000
    side.compact()
    assert side.holes() == 0
    assert {part.name: part.rows for part in side.parts() if part.rows} == {"memory": 1}


def test_memory_is_bounded_and_the_oldest_generation_goes_first(tmp_path: Path) -> None:
    side = WorkspaceDatabase(tmp_path / "side.sqlite", DatabaseLimits(memory=10))
    for number in range(40):
        side.memory.put(entry(f"old-{number:02}", generation=1))
    for number in range(10):
        side.memory.put(entry(f"new-{number}", generation=2))
    assert side.memory.titles() == [("s", f"new-{number}") for number in range(10)]
    assert side.memory.remove_document("none") == 0


def test_what_a_run_left_goes_and_an_unpublished_generation_is_set_aside(tmp_path: Path) -> None:
    root = tmp_path / "ws"
    publish(root, {"a": "alpha"})
    workspace = Workspace(root)
    with workspace.write() as staging:
        put(staging, "b", "beta")
        assert measure_sizes(workspace).leftover_bytes > 10_000
    assert measure_sizes(workspace).leftover_bytes == 0
    shutil.copytree(root / "generations" / "000001", root / "generations" / "000002")  # killed before it was pointed at
    found = measure_sizes(workspace)
    assert ([one.number for one in found.generations], found.set_aside_bytes > 10_000) == ([1], True)
    assert workspace.clean() == []
    assert (measure_sizes(workspace).leftover_bytes, measure_sizes(workspace).set_aside_bytes > 10_000) == (0, True)
    assert [folder.name for folder in (root / "set-aside").iterdir()] == ["000002"]
