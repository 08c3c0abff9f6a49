"""A Chroma server serves the generations of a workspace; without it the database answers, and says
so once.
"""

import logging
import os
import socket
import subprocess
import sys
import threading
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest

from storage.errors import SettingsError, StorageError
from storage.vector_search import open_vector_store
from storage.vector_store import ServerAddress
from storage.workspace import Workspace
from tests.patience import PATIENCE, wait_for
from tests.storage.samples import publish, put, same_ranking, served_by, vector

pytestmark = pytest.mark.slow


class Running:
    """A `chroma run` of the test's own, that can be stopped and started again."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        self.url = f"http://127.0.0.1:{self.port}"
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Where it does not run already."""
        if self._process is not None:
            return
        command = [
            Path(sys.executable).with_name("chroma"),
            "run",
            "--path",
            self._folder,
            "--port",
            str(self.port),
        ]
        self._process = subprocess.Popen(
            [*map(str, command), "--host", "127.0.0.1"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "ANONYMIZED_TELEMETRY": "False"},
        )
        wait_for(self.listens, "a Chroma server that listens")

    def listens(self) -> bool:
        with socket.socket() as client:
            return client.connect_ex(("127.0.0.1", self.port)) == 0

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def collections(self) -> set[str]:
        import chromadb
        from chromadb.config import Settings

        client = chromadb.HttpClient(
            "127.0.0.1", self.port, settings=Settings(anonymized_telemetry=False)
        )
        return {collection.name for collection in client.list_collections()}


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    running = Running(tmp_path_factory.mktemp("chroma"))
    running.start()
    yield running
    running.stop()


@pytest.fixture
def server(process: Running) -> Running:
    process.start()
    return process


def served(root: Path, url: str) -> Workspace:
    return served_by("auto", root, 2, url)


def names(workspace: Workspace, *numbers: int, aside: str = "") -> set[str]:
    identity = (workspace.root / "IDENTITY").read_text().strip()
    return {f"trellis-{identity}-{number:06d}{aside}" for number in numbers}


def mine(server: Running, workspace: Workspace) -> set[str]:
    identity = (workspace.root / "IDENTITY").read_text().strip()
    return {name for name in server.collections() if identity in name}


def test_each_generation_has_a_collection_and_takes_it_along(
    server: Running, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    workspace = served(tmp_path / "ws", server.url)
    for number in (1, 2, 3):
        assert publish(workspace, {f"d{number}": f"text {number} " * 30}) == number
    assert mine(server, workspace) == names(workspace, 2, 3)
    assert not list(tmp_path.glob("ws/generations/*/chroma-*"))
    for number in (2, 3):
        with workspace.read(number) as generation:
            assert len({window.document for window in generation.vectors.windows()}) == number
            found = generation.vectors.search(vector("q"), 5, ["d1", "d2"])
            assert same_ranking(
                found, generation.vectors.nearest_chunks(vector("q"), 5, ["d1", "d2"])
            )
            assert len(found) == 5
    # Another workspace on the same server is left alone.
    publish(served(tmp_path / "other", server.url), {"a": "a"})
    publish(workspace, {"d4": "four"})
    assert len(mine(server, Workspace(tmp_path / "other"))) == 1
    assert caplog.messages == []


def test_without_its_server_the_database_answers_and_says_so_once(
    server: Running, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    workspace = served(tmp_path, server.url)
    publish(workspace, {"a": "alpha " * 60})
    with workspace.read() as generation:
        expected = generation.vectors.search(vector("q"), 3)
        server.stop()
        for _ in range(3):
            assert same_ranking(generation.vectors.search(vector("q"), 3), expected)
    with workspace.read() as generation:
        assert same_ranking(generation.vectors.search(vector("q"), 3), expected)
    assert [message.count("slower") for message in caplog.messages] == [1, 1]
    assert server.url in caplog.text
    with pytest.raises(StorageError, match=r"no Chroma server answers.*TRELLIS_CHROMA_URL"):
        workspace.write()
    server.start()
    publish(workspace, {"b": "beta"})  # the lock was let go


def test_a_server_that_dies_in_a_run_costs_the_run_nothing(
    server: Running, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    workspace = served(tmp_path, server.url)
    with workspace.write() as staging:
        put(staging, "a", "alpha " * 60)
        server.stop()
        staging.publish()
    assert "searched in the database" in caplog.text
    server.start()
    with caplog.at_level(logging.WARNING), workspace.read() as generation:
        exact = generation.vectors.search(vector("q"), 3)
    assert workspace.rebuild_vectors() == 18
    caplog.clear()
    with workspace.read() as generation:
        assert same_ranking(generation.vectors.search(vector("q"), 3), exact)
    assert caplog.messages == []
    assert mine(server, workspace) == names(workspace, 1)


def test_what_a_dead_run_left_is_removed_by_the_next(server: Running, tmp_path: Path) -> None:
    workspace = served(tmp_path, server.url)
    publish(workspace, {"a": "alpha " * 20})
    with workspace.write() as staging:
        put(staging, "b", "never published " * 20)
        staging.build_index()
    assert mine(server, workspace) == names(workspace, 1, 2)
    workspace.clean()
    assert mine(server, workspace) == names(workspace, 1)


@pytest.mark.parametrize(
    "url", ["localhost:8000", "ftp://localhost", "http://localhost:8000/api/v2"]
)
def test_an_address_that_is_none_is_refused_at_once(url: str, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="http://localhost:8000"):
        served(tmp_path, url)


def test_the_tenant_and_its_database_are_those_that_are_set(
    server: Running, tmp_path: Path
) -> None:
    import chromadb
    from chromadb.config import Settings

    settings = Settings(
        chroma_api_impl="chromadb.api.fastapi.FastAPI",
        chroma_server_host="127.0.0.1",
        chroma_server_http_port=server.port,
        anonymized_telemetry=False,
    )
    admin = chromadb.AdminClient(settings)
    admin.create_tenant("acme")
    admin.create_database("handbook", tenant="acme")

    def workspace(database: str) -> Workspace:
        address = ServerAddress(server.url, "acme", database)
        return Workspace(
            tmp_path / "ws", 2, open_vector_store("chroma-server", tmp_path / "ws", address)
        )

    publish(workspace("handbook"), {"a": "alpha " * 60})
    client = chromadb.HttpClient("127.0.0.1", server.port, tenant="acme", database="handbook")
    (collection,) = client.list_collections()
    assert {collection.name} == names(workspace("handbook"), 1)
    assert not mine(server, workspace("handbook")), "nothing in the default tenant"
    documents = collection.get(where={"year": 1999})["documents"] or []
    assert len(documents) == collection.count() == 18
    with workspace("handbook").read() as generation:
        exact = generation.vectors.nearest_chunks(vector("q"), 3)
        assert same_ranking(generation.vectors.search(vector("q"), 3), exact)
    with pytest.raises(
        StorageError, match=r"'acme' has no database 'manuals'.*TRELLIS_CHROMA_DATABASE"
    ):
        workspace("manuals").write()
    with pytest.raises(StorageError, match=r"has no database 'kb' there \(.*at least 3 characters"):
        workspace("kb").write()


@contextmanager
def guarded(upstream: str, header: str, value: str) -> Iterator[str]:
    """A proxy that lets only requests with this header pass; its address without a scheme."""

    class Gate(BaseHTTPRequestHandler):
        def forward(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            if self.headers.get(header) == value:
                sent = {"content-type": self.headers.get("content-type") or "application/json"}
                answer = onward.request(self.command, self.path, content=body, headers=sent)
                status, content = answer.status_code, answer.content
            else:
                status, content = 401, b"{}"
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        # The names that the handler looks for.
        do_GET = do_POST = do_PUT = do_DELETE = forward  # noqa: N815

        def log_request(self, code: object = "-", size: object = "-") -> None:
            """Nobody reads it."""

    with (
        httpx.Client(base_url=upstream, timeout=PATIENCE, trust_env=False) as onward,
        ThreadingHTTPServer(("127.0.0.1", 0), Gate) as proxy,
    ):
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{proxy.server_port}"
        proxy.shutdown()


@pytest.mark.parametrize(
    ("header", "value", "user"),
    [
        ("x-chroma-token", "tok-123", ""),
        ("Authorization", "Bearer tok-123", ""),
        ("Authorization", f"Basic {b64encode(b'ada:p@ss').decode()}", "ada:p%40ss@"),
    ],
)
def test_a_guarded_server_is_told_who_asks(
    server: Running,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    header: str,
    value: str,
    user: str,
) -> None:
    with guarded(server.url, header, value) as host:
        address = ServerAddress(f"http://{user}{host}", token=None if user else "tok-123")
        workspace = Workspace(tmp_path, 2, open_vector_store("chroma-server", tmp_path, address))
        publish(workspace, {"a": "alpha " * 60})
        with workspace.read() as generation:
            assert len(generation.vectors.search(vector("q"), 3)) == 3
        assert caplog.messages == []
        stranger = Workspace(
            tmp_path,
            2,
            open_vector_store("chroma-server", tmp_path, ServerAddress(f"http://{host}")),
        )
        with pytest.raises(StorageError, match=r"HTTP 401.*TRELLIS_CHROMA_API_KEY") as caught:
            stranger.write()
        assert "p@ss" not in str(caught.value)
