"""Servers of a published index: each in its own folder, all at what was published last."""

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import httpx
import pytest

from flows.__main__ import main
from flows.index import IndexOptions, build_index
from flows.runtime import open_runtime
from flows.settings import load_settings
from storage.layout import Layout
from tests.object_store import bucket
from tests.patience import PATIENCE, wait_for
from tests.service.conftest import ASK, ASKED, DOCUMENTS, client_of, refused
from tests.service.test_serve import served
from tests.workspaces import write_rows

NEW = {"id": "mole", "title": "The mole", "text": "The mole of Velin was built by Ines Varga."}


@pytest.fixture
def address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A place in an S3 store where its driver is installed, else a folder."""
    if find_spec("s3fs") and find_spec("moto"):
        with bucket(monkeypatch) as name:
            yield f"{name}/kb"
    else:
        yield f"file://{tmp_path}/published"


def has_generation(client: httpx.Client, number: int) -> bool:
    return bool(client.get("/api/v1/status").json()["generation"] == number)


@pytest.mark.slow
def test_two_servers_follow_one_published_index(
    workspace: Path, address: str, tmp_path: Path
) -> None:
    assert main(["publish", address, "--workspace", str(workspace)]) == 0
    with ExitStack() as stack:
        clients = []
        for name in ("one", "two"):
            place = {"TRELLIS_WORKSPACE": address, "TRELLIS_PUBLISHED_DIR": str(tmp_path / name)}
            log = tmp_path / f"{name}.log"
            facts, _ = stack.enter_context(served(log=log, TRELLIS_FOLLOW_SECONDS="0.2", **place))
            client = httpx.Client(base_url=facts["service"], timeout=PATIENCE, trust_env=False)
            clients.append(stack.enter_context(client))
        for client in clients:
            assert "Tomas Reyd" in client.post(ASK, json=ASKED).json()["answer"]
        runtime = open_runtime(load_settings({"workspace": workspace}))
        rows = write_rows(tmp_path / "new.jsonl", [NEW])
        asyncio.run(build_index([rows], IndexOptions(), runtime))
        assert main(["publish", address, "--workspace", str(workspace), "--keep", "1"]) == 0
        for client in clients:
            wait_for(partial(has_generation, client, 2), "the server has the second publication")
            asked = client.post(ASK, json={"question": "Who built the mole of Velin?"}).json()
            assert "Ines Varga" in asked["answer"]
            assert asked["citations"][0]["document"] == "mole"
        for name in ("one", "two"):
            (folder,) = (tmp_path / name).iterdir()
            assert (folder / "side.sqlite").exists()
            assert Layout(folder).origin() == address


def test_a_server_of_a_published_index_changes_nothing(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = f"file://{tmp_path}/published"
    assert main(["publish", address, "--workspace", str(workspace)]) == 0
    monkeypatch.setenv("TRELLIS_PUBLISHED_DIR", str(tmp_path / "reader"))
    with client_of(address) as client:  # type: ignore[arg-type]  # an address in a path's place
        assert client.get("/api/v1/status").json()["copy_of"] == address
        attempts = (
            client.put(f"{DOCUMENTS}/new.md", content=b"text"),
            client.delete(f"{DOCUMENTS}/bridge"),
            client.post("/api/v1/index-runs", json={"sources": ["docs"]}),
        )
        for answer in attempts:
            assert address in refused(answer, 400, "ReadOnlyWorkspace")["remedy"]


def test_a_further_workspace_may_be_published(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = f"file://{tmp_path}/published"
    assert main(["publish", address, "--workspace", str(workspace)]) == 0
    monkeypatch.setenv("TRELLIS_PUBLISHED_DIR", str(tmp_path / "reader"))
    with client_of(tmp_path / "empty", workspaces={"kb": address}) as client:
        asked = client.post(ASK, json={**ASKED, "workspace": "kb"})
        assert "Tomas Reyd" in asked.json()["answer"]


def test_commands_that_write_are_refused(
    workspace: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    address = f"file://{tmp_path}/published"
    assert main(["publish", address, "--workspace", str(workspace)]) == 0
    monkeypatch.setenv("TRELLIS_PUBLISHED_DIR", str(tmp_path / "reader"))
    monkeypatch.setenv("TRELLIS_WORKSPACE", address)
    assert main(["retrieve", "Orla Bridge"]) == 0
    for command in (
        ("index", str(workspace)),
        ("forget", "bridge"),
        ("rollback", "1"),
        ("clean",),
        ("dead-letter", "--retry"),
        ("serve", str(workspace)),
    ):
        capsys.readouterr()
        assert main(list(command)) == 2, command
        assert f"trellis publish {address}" in capsys.readouterr().err


def test_a_password_in_an_address_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TRELLIS_WORKSPACE", "ftp://ann:made-up@host/kb")
    assert main(["status"]) == 2
    told = capsys.readouterr().err
    assert "an address without a password" in told
    assert "made-up" not in told
