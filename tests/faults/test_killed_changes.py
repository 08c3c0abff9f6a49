"""kill -9 within an edit, a forget, an archive and a restore, as each puts a file in place: nothing
is lost, and the command given again does its work, without a model and with one.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from flows.__main__ import main
from storage.export import Export, export
from tests.copying import copy_of
from tests.server.client import ROOT, Server
from tests.workspaces import indexed, opened, quays

KILLED = """
import os, signal, sys
from flows.__main__ import main
place = sys.argv[1]
ending = lambda event, about: event == "os.rename" and str(about[1]).endswith(place)
sys.addaudithook(lambda event, about: ending(event, about) and os.kill(os.getpid(), signal.SIGKILL))
main(sys.argv[2:])
"""
EDIT, FORGET = ("graph", "edit", "Ana Korb", "--kind", "place"), ("forget", "d1")
ARCHIVE, RESTORE = ("archive", "made.tar"), ("restore", "whole.tar")


def graph_of(workspace: Path) -> tuple[Export, tuple[str, ...]]:
    with opened(workspace).workspace.read() as generation:
        return export(generation), tuple(generation.documents.ids())


def kill(place: str, *command: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", KILLED, place, *command],
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert ended.returncode == -signal.SIGKILL, "the command comes to this point"


@pytest.fixture(params=["offline", "model"], autouse=True)
def workspace(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    model_server: Server,
) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRELLIS_EMBEDDING", "none")
    model = {"lm": "openai/m", "lm_base_url": model_server.base_url, "lm_api_key": "k"}
    model = model if request.param == "model" else {}
    for name, value in model.items():
        monkeypatch.setenv(f"TRELLIS_{name.upper()}", value)
    return indexed(tmp_path, quays(4), **model)


@pytest.mark.patient
@pytest.mark.parametrize("command", [EDIT, FORGET], ids=["edit", "forget"])
@pytest.mark.parametrize("place", ["manifest.json", "000002", "CURRENT"])
def test_a_killed_change_is_made_whole_or_not(
    command: tuple[str, ...], place: str, workspace: Path, tmp_path: Path
) -> None:
    before, undisturbed = graph_of(workspace), copy_of(workspace, tmp_path / "undisturbed")
    assert main([*command, "--workspace", str(undisturbed)]) == 0
    kill(place, *command, "--workspace", str(workspace))
    made = graph_of(undisturbed)
    assert graph_of(workspace) in (before, made)
    assert main([*command, "--workspace", str(workspace)]) == 0
    assert graph_of(workspace) == made != before
    assert list((workspace / "staging").iterdir()) == []
    if command == FORGET:
        files = [path for path in workspace.rglob("*") if path.is_file()]
        assert [path for path in files if b"Quay 1 of Velin" in path.read_bytes()] == []


@pytest.mark.patient
def test_a_killed_archive_or_restore_leaves_nothing(workspace: Path, tmp_path: Path) -> None:
    kill("made.tar", *ARCHIVE, "--workspace", str(workspace))
    assert not (tmp_path / "made.tar").exists()
    assert main([*ARCHIVE, "--workspace", str(workspace)]) == 0
    (tmp_path / "made.tar").rename(tmp_path / "whole.tar")
    kill("/again", *RESTORE, "--workspace", "again")
    assert not (tmp_path / "again").exists()
    assert main([*RESTORE, "--workspace", "again"]) == 0
    assert graph_of(tmp_path / "again") == graph_of(workspace)
