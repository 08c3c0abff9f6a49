"""A service over a real socket, on a small workspace without vectors."""

import asyncio
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from flows.index import IndexOptions, build_index
from flows.runtime import open_runtime
from flows.service.access import RequestLimits, Role, new_key
from flows.service.app import create_app
from flows.service.server import serving
from tests.copying import copy_of
from tests.flows.conftest import ROWS
from tests.patience import PATIENCE
from tests.settings import load_settings
from tests.workspaces import write_rows

ASK = "/api/v1/ask"
DOCUMENTS = "/api/v1/documents"
QUESTION = "Who designed Orla Bridge?"
ASKED = {"question": QUESTION}
# Starts a service with these settings of `[service]` and returns a client for it.
Start = Callable[..., httpx.Client]


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace to be copied."""
    folder = tmp_path_factory.mktemp("service")
    runtime = open_runtime(load_settings({"workspace": folder / "ws", "embedding": "none"}, {}))
    asyncio.run(build_index([write_rows(folder / "rows.jsonl", ROWS)], IndexOptions(), runtime))
    return folder / "ws"


@pytest.fixture
def workspace(small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the workspace for one test."""
    monkeypatch.setenv("TRELLIS_EMBEDDING", "none")
    return copy_of(small, tmp_path / "ws")


@pytest.fixture(scope="module")
def kept(small: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the workspace for the tests of a file that change nothing in it."""
    return copy_of(small, tmp_path_factory.mktemp("kept") / "ws")


@pytest.fixture(scope="module")
def client(kept: Path) -> Iterator[httpx.Client]:
    """A client of one service for those tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRELLIS_EMBEDDING", "none")
        with client_of(kept) as client:
            yield client


@pytest.fixture
def start(workspace: Path) -> Iterator[Start]:
    """Starts services that end with the test."""
    with ExitStack() as stack:

        def begin(
            key: str = "", limits: RequestLimits | None = None, **service: object
        ) -> httpx.Client:
            return stack.enter_context(client_of(workspace, key, limits, **service))

        yield begin


@contextmanager
def client_of(
    workspace: Path, key: str = "", limits: RequestLimits | None = None, **service: object
) -> Iterator[httpx.Client]:
    """A client of a new service; `key` is sent with each request."""
    app = create_app(load_settings({"workspace": workspace, "service": service}), limits=limits)
    headers = {"authorization": f"Bearer {key}"} if key else {}
    with (
        serving(app, port=0) as address,
        httpx.Client(
            base_url=address, headers=headers, timeout=PATIENCE, trust_env=False
        ) as client,
    ):
        yield client


def keys_of(*roles: Role) -> tuple[list[str], list[str]]:
    """A key for each role, and the rows of the setting."""
    pairs = [new_key(f"the-{role}", role) for role in roles]
    return [key for key, _ in pairs], [row for _, row in pairs]


def connected(client: httpx.Client, head: str, body: bytes) -> socket.socket:
    """A connection that has sent a head and part of its body."""
    place = urlsplit(str(client.base_url))
    connection = socket.create_connection((place.hostname, place.port), timeout=PATIENCE)
    connection.sendall(head.replace("\n", "\r\n").encode() + body)
    return connection


def refused(answer: httpx.Response, status: int, kind: str) -> dict[str, str]:
    """The error of an answer, which has the form of all errors."""
    assert answer.status_code == status, answer.text
    error: dict[str, str] = answer.json()["error"]
    assert ({*error}, error["type"]) == ({"type", "message", "remedy"}, kind)
    assert all(error.values())
    return error
