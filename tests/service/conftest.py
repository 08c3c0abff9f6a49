"""A service over a real socket, on a small workspace without vectors."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

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

QUESTION = "Who designed Orla Bridge?"
# Starts a service with these settings of `[service]` besides, and gives a client for it.
Start = Callable[..., httpx.Client]


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace that is copied."""
    folder = tmp_path_factory.mktemp("service")
    runtime = open_runtime(load_settings({"workspace": folder / "ws", "embedding": "none"}, {}))
    asyncio.run(build_index([write_rows(folder / "rows.jsonl", ROWS)], IndexOptions(), runtime))
    return folder / "ws"


@pytest.fixture
def workspace(small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy, which the settings in force name."""
    monkeypatch.setenv("TRELLIS_EMBEDDING", "none")
    return copy_of(small, tmp_path / "ws")


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
