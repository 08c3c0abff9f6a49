"""A Chroma server serves the generations of a workspace; without it the database answers."""

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

import chromadb
import httpx
import pytest
from chromadb.config import Settings

from storage.errors import SettingsError, StorageError
from storage.vector_store import ServerAddress
from storage.workspace import Workspace
from tests.patience import PATIENCE, wait_for
from tests.storage.samples import publish, put, same_ranking, served_by, vector

pytestmark = pytest.mark.slow


class Running:
    """A `chroma run` that can be stopped and started again."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        self.url = f"http://127.0.0.1:{self.port}"
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        if self._process is not None:
            return
        chroma = str(Path(sys.executable).with_name("chroma"))
        place = ["--path", str(self._folder), "--port", str(self.port), "--host", "127.0.0.1"]
        self._process = subprocess.Popen(
            [chroma, "run", *place],
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

    def collections(self, workspace: Workspace) -> set[str]:
        """The collections of a workspace, without the prefix that they share."""
        settings = Settings(anonymized_telemetry=False)
        client = chromadb.HttpClient("127.0.0.1", self.port, settings=settings)
        prefix = f"trellis-{(workspace.root / 'IDENTITY').read_text().strip()}-"
        names = [collection.name for collection in client.list_collections()]
        return {name.removeprefix(prefix) for name in names if name.startswith(prefix)}


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    running = Running(tmp_path_factory.mktemp("chroma"))
    yield running
    running.stop()


@pytest.fixture
def server(process: Running) -> Running:
    process.start()
    return process


def served(root: Path, url: str) -> Workspace:
    return served_by("auto", root, 2, ServerAddress(url))


def test_each_kept_generation_has_a_collection(
    server: Running, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    workspace, other = (served(tmp_path / name, server.url) for name in ("ws", "other"))
    publish(other, {"a": "a"})
    for number in (1, 2, 3):
        assert publish(workspace, {f"d{number}": f"text {number} " * 30}) == number
    assert server.collections(workspace) == {"000002", "000003"}
    assert server.collections(other) == {"000001"}
    assert not list(tmp_path.glob("ws/generations/*/chroma-*"))
    for number in (2, 3):
        with workspace.read(number) as generation:
            found = generation.vectors.search(vector("q"), 5)
            assert same_ranking(found, generation.vectors.nearest_chunks(vector("q"), 5))
    assert caplog.messages == []


def test_without_its_server_the_database_answers(
    server: Running, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    workspace = served(tmp_path, server.url)
    publish(workspace, {"a": "alpha " * 60})
    with workspace.read() as generation:
        expected = generation.vectors.search(vector("q"), 3)
        server.stop()
        for _ in range(3):
            assert same_ranking(generation.vectors.search(vector("q"), 3), expected)
    (warning,) = caplog.messages
    assert "slower" in warning
    assert server.url in warning
    with pytest.raises(StorageError, match=r"no Chroma server answers.*TRELLIS_CHROMA_URL"):
        workspace.write()
    server.start()
    publish(workspace, {"b": "beta"})  # The lock was released


def test_a_server_that_dies_in_a_run_does_not_stop_it(
    server: Running, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    workspace = served(tmp_path, server.url)
    with workspace.write() as staging:
        put(staging, "a", "alpha " * 60)
        server.stop()
        staging.publish()
    assert "searched in the database" in caplog.text
    server.start()
    assert workspace.rebuild_vectors() == 18
    caplog.clear()
    with workspace.read() as generation:
        assert len(generation.vectors.search(vector("q"), 3)) == 3
    assert caplog.messages == []
    assert server.collections(workspace) == {"000001"}


def test_clean_removes_what_a_dead_run_left(server: Running, tmp_path: Path) -> None:
    workspace = served(tmp_path, server.url)
    publish(workspace, {"a": "alpha " * 20})
    with workspace.write() as staging:
        put(staging, "b", "never published " * 20)
        staging.build_index()
    assert server.collections(workspace) == {"000001", "000002"}
    workspace.clean()
    assert server.collections(workspace) == {"000001"}


@pytest.mark.parametrize(
    "url", ["", "localhost:8000", "ftp://localhost", "http://localhost:8000/api/v2"]
)
def test_an_unusable_address_is_refused_at_once(url: str, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="http://localhost:8000"):
        served(tmp_path, url)


def test_the_set_tenant_and_database_are_used(server: Running, tmp_path: Path) -> None:
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
        return served_by("chroma-server", tmp_path, 2, address)

    publish(workspace("handbook"), {"a": "alpha " * 60})
    client = chromadb.HttpClient("127.0.0.1", server.port, tenant="acme", database="handbook")
    (collection,) = client.list_collections()
    assert len(collection.get(where={"year": 1999})["ids"]) == 18
    assert not server.collections(workspace("handbook")), "nothing is in the default tenant"
    for name, problem in (
        ("manuals", r"'acme' has no database 'manuals'.*TRELLIS_CHROMA_DATABASE"),
        ("kb", r"has no database 'kb' there \(.*at least 3 characters"),
    ):
        with pytest.raises(StorageError, match=problem):
            workspace(name).write()


@contextmanager
def guarded(upstream: str, expected: dict[str, str]) -> Iterator[str]:
    """A proxy that lets only requests with these headers pass; its host and port."""

    class Gate(BaseHTTPRequestHandler):
        def forward(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            if all(self.headers.get(name) == value for name, value in expected.items()):
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


TOKEN = {"x-chroma-token": "tok-123", "Authorization": "Bearer tok-123"}
PASSWORD = {"Authorization": f"Basic {b64encode(b'ada:p@ss').decode()}"}


@pytest.mark.parametrize(
    ("headers", "user", "token"), [(TOKEN, "", "tok-123"), (PASSWORD, "ada:p%40ss@", None)]
)
def test_a_guarded_server_gets_the_credentials(
    server: Running,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    headers: dict[str, str],
    user: str,
    token: str | None,
) -> None:
    with guarded(server.url, headers) as host:
        address = ServerAddress(f"http://{user}{host}", token=token)
        workspace = served_by("chroma-server", tmp_path, 2, address)
        publish(workspace, {"a": "alpha " * 60})
        with workspace.read() as generation:
            assert len(generation.vectors.search(vector("q"), 3)) == 3
        assert caplog.messages == []
        stranger = served_by("chroma-server", tmp_path, 2, ServerAddress(f"http://{host}"))
        with pytest.raises(StorageError, match=r"HTTP 401.*TRELLIS_CHROMA_API_KEY"):
            stranger.write()
