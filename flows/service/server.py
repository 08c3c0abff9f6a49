"""The HTTP server of the service, in its own thread: Prefect's runner needs the main one."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI

from storage.errors import StorageError, UsageError

DEFAULT_PORT = 8100
CONNECTIONS = 1000  # at a time; further ones get 503
HEADER_BYTES = 32 << 10  # of the request line and all headers together
END_WITHIN = 10  # seconds for unfinished answers when the service ends
TAKEN_WITHIN = 60  # seconds after which a client that receives nothing is disconnected


@contextmanager
def serving(app: FastAPI, host: str = "127.0.0.1", port: int | None = None) -> Iterator[str]:
    """Serve during the block and yield the address; at its end answers get time to finish.

    Without a port it is DEFAULT_PORT, or any free one if that is taken; port 0 is any free one.
    Raises UsageError if the address cannot be used.
    """
    listener = _listener(host, port)
    if hasattr(socket, "TCP_USER_TIMEOUT"):  # only on Linux
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, TAKEN_WITHIN * 1000)
    config = uvicorn.Config(
        app,
        http="h11",
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=CONNECTIONS,
        h11_max_incomplete_event_size=HEADER_BYTES,
        timeout_graceful_shutdown=END_WITHIN,
    )
    server, begun = uvicorn.Server(config), threading.Event()
    app.state.begun = begun.set
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        if not begun.wait(60) or not thread.is_alive():
            raise StorageError(host, "the service did not start", "The log above says why.")
        shown = f"[{host}]" if ":" in host else host
        yield f"http://{shown}:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        listener.close()


def _listener(host: str, port: int | None) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for number in (DEFAULT_PORT, 0) if port is None else (port,):
        try:
            # Clients that connect before the server is ready wait and are not refused.
            return socket.create_server((host, number), family=family)
        except (OSError, OverflowError) as error:
            problem = error
    message = f"{host}:{port} cannot be listened on ({problem})."
    raise UsageError(message, "Name another with --listen HOST:PORT.")
