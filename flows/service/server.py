"""The server of the service, in a thread of its own: the main one is left to Prefect's runner."""

import asyncio
import json
import logging
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from flows.service.access import HEADER_BYTES
from storage.errors import StorageError, UsageError

DEFAULT_PORT = 8100
CONNECTIONS = 1000  # at once; who comes after is told 503
END_WITHIN = 10  # seconds that answers under way get to finish when the service ends
TAKEN_WITHIN = 60  # seconds in which a client takes some of what is sent to it

logger = logging.getLogger("trellis.service")


@contextmanager
def serving(
    app: FastAPI, host: str = "127.0.0.1", port: int | None = None, taken_within: int = TAKEN_WITHIN
) -> Iterator[str]:
    """Serve while the block lasts; gives the address. Answers under way are finished first, runs are cancelled.

    The connection of a client that takes nothing of its answer for `taken_within` seconds is cut (on Linux). Without a
    port it is the usual one, or another where something else listens there; 0 is any free one. Raises UsageError where
    the address cannot be had.
    """
    listener = _listener(host, port)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, taken_within * 1000)
    config = uvicorn.Config(
        app, loop="asyncio", http=_Connection, ws="none", lifespan="on", log_config=None, access_log=False,
        server_header=False, proxy_headers=False, h11_max_incomplete_event_size=HEADER_BYTES,
        timeout_graceful_shutdown=END_WITHIN,
    )  # fmt: skip
    server, begun = uvicorn.Server(config), threading.Event()
    app.state.begun = begun.set
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, name="trellis-service", daemon=True)
    thread.start()
    try:
        if not begun.wait(60) or not thread.is_alive():
            raise StorageError(host, "the service did not start", "The log above says why.")
        shown, number = f"[{host}]" if ":" in host else host, listener.getsockname()[1]
        yield f"http://{shown}:{number}"
    finally:
        server.should_exit = True
        thread.join()
        listener.close()


class _Connection(H11Protocol):
    """A connection; the server's own errors have the form of the service's."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take it in; beyond CONNECTIONS each request of it is refused."""
        super().connection_made(transport)
        if len(self.connections) > CONNECTIONS:
            self.app = _busy

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no request, and end the connection."""
        body = _told(400, "InvalidRequest", "This is no HTTP/1.1 request, or its headers are too large.")
        head = b"".join(b"%s: %s\r\n" % header for header in _headers(body))
        self.transport.write(b"HTTP/1.1 400 Bad Request\r\n%s\r\n%s" % (head, body))
        self.transport.close()


async def _busy(scope: Scope, receive: Receive, send: Send) -> None:
    body = _told(503, "TooManyConnections", f"The service has {CONNECTIONS:,} connections already.", "Try again later.")
    await send({"type": "http.response.start", "status": 503, "headers": _headers(body)})
    await send({"type": "http.response.body", "body": body})


def _told(status: int, kind: str, message: str, remedy: str = "Send another request.") -> bytes:
    logger.warning("refused", extra={"fields": {"status": status, "type": kind}})
    return json.dumps({"error": {"type": kind, "message": message, "remedy": remedy}}).encode()


def _headers(body: bytes) -> list[tuple[bytes, bytes]]:
    return [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
    ]


def _listener(host: str, port: int | None) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for number in (DEFAULT_PORT, 0) if port is None else (port,):
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, number))
            listener.listen()  # who comes before the server accepts has to wait, and is not refused
        except (OSError, OverflowError) as error:
            listener.close()
            problem = error
        else:
            return listener
    raise UsageError(f"{host}:{port} cannot be listened on ({problem}).", "Name another with --listen HOST:PORT.")
