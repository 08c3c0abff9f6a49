"""A tiny corpus, indexed by the command once a session."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from flows.__main__ import main
from tests.copying import copy_of
from tests.server.client import Server
from tests.workspaces import write_rows

KEY = "made-up-key-4711"
BRIDGE = "Orla Bridge was designed by Tomas Reyd.\nIt opened in 1931 and is 412 metres long."
ROWS = (
    {"id": "bridge", "title": "Orla Bridge", "text": BRIDGE.replace("\n", "\r\n"), "year": 1931},
    {
        "id": "reyd",
        "title": "Tomas Reyd",
        "text": "Tomas Reyd was born in Velin. He studied under Ana Korb.",
    },
    {
        "id": "桥",
        "title": "奥拉桥",
        "text": "奥拉桥(Orla Bridge)于1931年通车,全长412米,设计者是托马斯·雷德。",
    },
)


PEOPLE = ("Ana Korb", "Tomas Reyd", "Ines Varga", "Olle Brandt", "Mira Sand")
PLACES = ("Velin Town", "Orla Bridge", "Holm Light", "Kestrel Quay", "Tern Rock")


def row(number: int) -> Mapping[str, object]:
    """A long passage on a place and three people."""
    place, who = PLACES[number % 5], [PEOPLE[(number + turn) % 5] for turn in range(3)]
    text = (
        f"{place} was planned by {who[0]} in {1900 + number}, when the harbour was still small. "
        f"{who[1]} built it with stone from the hills behind the town. Many years later {who[2]} "
        f"repaired {place} after the flood of the long winter. {who[0]} and {who[2]} met there "
        "once, on a day when it rained and nobody else was out."
    )
    return {"id": f"d{number}", "title": place, "text": text}


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def rows(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


class Command:
    """The command in this process, in one workspace."""

    def __init__(self, workspace: Path, captured: pytest.CaptureFixture[str]) -> None:
        self.workspace = workspace
        self._captured = captured

    def __call__(self, *arguments: str) -> Ended:
        self._captured.readouterr()
        try:
            code = main([*arguments, "--workspace", str(self.workspace)])
        except SystemExit as ended:
            code = int(ended.code or 0)
        said = self._captured.readouterr()
        return Ended(code, said.out, said.err)


@pytest.fixture(scope="session")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_rows(tmp_path_factory.mktemp("source") / "docs.jsonl", ROWS)


def indexed_by_command(source: Path, folder: Path) -> Path:
    """The workspace that the command makes of the source."""
    assert main(["index", str(source), "--workspace", str(folder / "ws"), "--json"]) == 0
    return folder / "ws"


@pytest.fixture(scope="session")
def indexed(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace that tests only read."""
    return indexed_by_command(source, tmp_path_factory.mktemp("indexed"))


@pytest.fixture
def trellis(indexed: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    """The command on the workspace that is only read."""
    return Command(indexed, capsys)


@pytest.fixture
def copied(indexed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    """The command on a copy of that workspace, for what would be remembered there."""
    return Command(copy_of(indexed, tmp_path / "copied"), capsys)


@pytest.fixture
def fresh(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    """The command on a workspace that does not exist yet."""
    return Command(tmp_path / "ws", capsys)


@pytest.fixture
def unembedded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Indexes without vectors, for tests that need none."""
    monkeypatch.setenv("TRELLIS_EMBEDDING", "none")


@pytest.fixture
def model_server(model_server: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    """The scripted model server, well-behaved, as the model of every role."""
    monkeypatch.setenv("TRELLIS_LM", "openai/scripted")
    monkeypatch.setenv("TRELLIS_LM_BASE_URL", model_server.base_url)
    monkeypatch.setenv("TRELLIS_LM_API_KEY", KEY)
    return model_server


@pytest.fixture
def without_settings(model_server: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    """The scripted server, which no setting names."""
    for name in ("TRELLIS_LM", "TRELLIS_LM_BASE_URL", "TRELLIS_LM_API_KEY"):
        monkeypatch.delenv(name)
    return model_server
