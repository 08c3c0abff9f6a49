"""What is published at an address is read whole, by any number of readers, and never half of it."""

import json
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from fsspec.core import url_to_fs
from pydantic import ValidationError

from storage.errors import (
    NothingPublished,
    ReadOnlyWorkspace,
    StorageError,
    TrellisError,
    UsageError,
)
from storage.export import export
from storage.layout import Layout
from storage.memory import MemoryEntry
from storage.publication import PublishedFile, PublishedIndex
from storage.published_copy import PublishedCopy, open_copy
from storage.workspace import Workspace
from tests.object_store import bucket
from tests.storage.samples import publish, put, served_by, vector

PUBLISHERS = 4


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patch, bucket(patch) as address:
        yield address


@pytest.fixture(params=["file", "s3"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A place where nothing is published yet."""
    if request.param == "file":
        return f"file://{tmp_path}/published"
    return f"{request.getfixturevalue('s3')}/{tmp_path.name}/索引"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A workspace with one generation, a tailoring and a compiled step."""
    root = tmp_path / "ws"
    publish(root, {"a": "Zoë met Ada in Velin.", "桥": "桥由雷德设计。" * 9})
    (root / "tailoring.toml").write_text('[tailoring]\npersona = "an engineer"\n')
    (root / "programs").mkdir()
    (root / "programs" / "answer.json").write_text("{}")
    return root


def copy_at(folder: Path, address: str) -> Workspace:
    """The copy of an address in a folder, as it is now."""
    open_copy(folder, address)
    PublishedCopy(folder, address).refresh()
    return Workspace(folder)


def stored(address: str) -> dict[str, int]:
    """The sizes of the files at an address by their last two names."""
    fs, path = url_to_fs(address, use_listings_cache=False, skip_instance_cache=True)
    found: dict[str, dict[str, Any]] = fs.find(path, detail=True)
    return {"/".join(name.split("/")[-2:]): info["size"] for name, info in found.items()}


def test_a_reader_holds_what_was_published(root: Path, address: str, tmp_path: Path) -> None:
    report = Workspace(root).publish(address)
    assert (report.publication, report.files, report.uploaded) == (1, 3, 3)
    reader = copy_at(tmp_path / "reader", address)
    with Workspace(root).read() as old, reader.read() as new:
        assert export(old) == export(new)
        assert new.vectors.search(vector("x"), 3) == old.vectors.search(vector("x"), 3)
    for name in ("tailoring.toml", "programs/answer.json"):
        assert (tmp_path / "reader" / name).read_bytes() == (root / name).read_bytes()
    assert (reader.problems(), reader.origin) == ([], address)


def test_only_what_is_new_is_uploaded(root: Path, address: str) -> None:
    workspace = Workspace(root)
    workspace.publish(address)
    before = stored(address)
    again = workspace.publish(address)
    assert (again.publication, again.uploaded, stored(address)) == (1, 0, before)
    publish(root, {"b": "beta"})
    report = workspace.publish(address)
    assert (report.publication, report.generation, report.uploaded) == (2, 2, 1)
    workspace.rollback(1)
    report = workspace.publish(address)  # readers go back too
    assert (report.publication, report.generation, report.uploaded) == (3, 1, 0)


def test_a_reader_moves_on_and_drops_the_old(root: Path, address: str, tmp_path: Path) -> None:
    Workspace(root).publish(address)
    reader = copy_at(tmp_path / "reader", address)
    with reader.read() as held:
        publish(root, {"b": "beta"})
        (root / "programs" / "answer.json").unlink()
        Workspace(root).publish(address)
        copy_at(tmp_path / "reader", address)
        assert reader.changed(held)
        assert held.documents.ids() == ["a", "桥"]
        with reader.read() as new:
            assert (new.number, new.documents.ids()) == (2, ["a", "b", "桥"])
        assert reader.retired() == [1]
    copy_at(tmp_path / "reader", address)
    assert Layout(tmp_path / "reader").folders() == [2]
    assert not (tmp_path / "reader" / "programs").exists()


def test_a_chroma_folder_travels(tmp_path: Path) -> None:
    address = f"file://{tmp_path}/published"
    with served_by("chroma", tmp_path / "ws").write() as staging:
        put(staging, "a", "alpha beta gamma " * 20)
        staging.publish()
    origin = served_by("chroma", tmp_path / "ws")
    origin.publish(address)
    copy_at(tmp_path / "reader", address)
    reader = served_by("chroma", tmp_path / "reader")
    assert reader.examined() == []
    with reader.read() as generation:
        found = generation.vectors.search(vector("x"), 5)
    with origin.read() as generation:
        assert generation.vectors.search(vector("x"), 5) == found
    assert origin.publish(address).uploaded == 0  # reading changes no file


def test_nothing_is_published_yet(address: str, tmp_path: Path) -> None:
    with pytest.raises(NothingPublished, match="trellis publish"):
        open_copy(tmp_path / "reader", address)


@pytest.mark.parametrize("damage", ["cut", "other", "gone", "no publication"])
def test_half_a_publication_is_not_read(
    root: Path, tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    place = tmp_path / "published"
    Workspace(root).publish(f"file://{place}")
    reader = copy_at(tmp_path / "reader", f"file://{place}")
    publish(root, {"b": "beta"})
    there = {*place.glob("files/*")}
    Workspace(root).publish(f"file://{place}")
    (new,) = {*place.glob("files/*")} - there
    if damage == "cut":
        new.write_bytes(new.read_bytes()[:-1])
    elif damage == "other":
        new.write_bytes(new.read_bytes()[:-1] + b"?")
    elif damage == "gone":
        new.unlink()
    else:
        (place / "publications" / "000002.json").write_text('{"number": 2')
    with pytest.raises(StorageError, match=r"published|cannot be used|understood"):
        copy_at(tmp_path / "reader", f"file://{place}")
    with reader.read() as generation:
        assert generation.documents.ids() == ["a", "桥"]
    if damage == "other":
        new.unlink()  # a file of the right size is taken to be whole
    Workspace(root).publish(f"file://{place}")  # mends it
    with copy_at(tmp_path / "reader", f"file://{place}").read() as generation:
        assert generation.documents.ids() == ["a", "b", "桥"]


def test_an_address_that_fails_leaves_the_copy(
    root: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    address = f"file://{tmp_path}/published"
    Workspace(root).publish(address)
    folder = tmp_path / "reader"
    PublishedCopy(folder, address).refresh()
    shutil.rmtree(tmp_path / "published")
    open_copy(folder, address)
    assert "What was fetched before is used" in caplog.text
    with Workspace(folder).read() as generation:
        assert generation.documents.ids() == ["a", "桥"]


def test_publishers_at_once_give_whole_publications(address: str, tmp_path: Path) -> None:
    roots = [tmp_path / f"ws{number}" for number in range(PUBLISHERS)]
    for number, root in enumerate(roots):
        publish(root, {f"d{number}": "the same text in each"})
    with ThreadPoolExecutor(PUBLISHERS) as pool:
        reports = list(pool.map(lambda root: Workspace(root).publish(address), roots))
    assert sorted(report.publication for report in reports) == [1, 2, 3, 4]
    index, there = PublishedIndex(address), stored(address)
    for number in index.numbers():
        for file in index.read(number).files:
            assert there[f"files/{file.sha256}"] == file.size
    assert len(there) == 2 * PUBLISHERS


def test_old_publications_go_with_their_files(root: Path, address: str) -> None:
    workspace = Workspace(root)
    for name in ("b", "c"):
        workspace.publish(address)
        publish(root, {name: "text of it"})
    report = workspace.publish(address, keep=1)
    assert (report.publication, report.removed) == (3, (1, 2))
    held = [f"files/{file.sha256}" for file in PublishedIndex(address).read(3).files]
    assert sorted(stored(address)) == sorted([*held, "publications/000003.json"])


def test_a_copy_forgets_with_its_origin(root: Path, tmp_path: Path) -> None:
    address = f"file://{tmp_path}/published"
    Workspace(root).publish(address)
    reader = copy_at(tmp_path / "reader", address)
    entries = [
        MemoryEntry(source=name, title=name, content="text", generation=1, documents=(name,))
        for name in ("a", "桥")
    ]
    reader.database.memory.put(entries)
    with Workspace(root).write() as staging:
        staging.documents.remove_documents(["桥"])
        staging.documents.forget("桥", ())
        staging.publish(retire=[1], afresh=True)
    Workspace(root).publish(address)
    copy_at(tmp_path / "reader", address)
    assert [entry.source for entry in reader.database.memory.entries()] == ["a"]
    assert Layout(tmp_path / "reader").folders() == [2]


def test_a_copy_is_not_written(root: Path, tmp_path: Path) -> None:
    address = f"file://{tmp_path}/published"
    Workspace(root).publish(address)
    reader = copy_at(tmp_path / "reader", address)
    attempts = (
        reader.write,
        reader.recover,
        reader.clean,
        reader.rebuild_vectors,
        lambda: reader.rollback(1),
        lambda: reader.publish(address),
    )
    for attempt in attempts:
        with pytest.raises(ReadOnlyWorkspace, match="trellis publish file://"):
            attempt()


@pytest.mark.parametrize(
    "path",
    [
        "../outside",
        "generation/../../outside",
        "generation",
        "generation//x",
        "/etc/passwd",
        "CURRENT",
        "side.sqlite",
        "programs/deep/x.json",
        "generation/a\\b",
    ],
)
def test_a_published_path_leads_nowhere_else(path: str) -> None:
    with pytest.raises(ValidationError, match="no file of a workspace"):
        PublishedFile(path=path, size=1, sha256="0" * 64)


def test_a_database_of_another_kind_is_refused(root: Path, tmp_path: Path) -> None:
    place = tmp_path / "published"
    Workspace(root).publish(f"file://{place}")
    file = place / "publications" / "000001.json"
    content = json.loads(file.read_text())
    (tailoring,) = [row for row in content["files"] if row["path"] == "tailoring.toml"]
    content["files"] = [{**tailoring, "path": "generation/generation.duckdb"}]
    file.write_text(json.dumps(content))
    with pytest.raises(StorageError, match="publication 1 cannot be used"):
        open_copy(tmp_path / "reader", f"file://{place}")


@pytest.mark.parametrize(
    ("address", "words"),
    [("dropbox://x/kb", "No driver for dropbox://x/kb"), ("unknown://x/y", "no address")],
)
def test_a_missing_driver_is_named(root: Path, address: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        Workspace(root).publish(address)


def test_a_missing_bucket_is_an_error(root: Path, s3: str) -> None:
    with pytest.raises(TrellisError, match="cannot be used"):
        Workspace(root).publish("s3://there-is-no-such-bucket/kb")
