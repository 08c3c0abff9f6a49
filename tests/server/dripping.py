"""A server whose replies never end, with every byte in time."""

import itertools
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress

HEAD = b"HTTP/1.1 200 OK\r\nX-Long: "
PROVISIONAL = b"HTTP/1.1 102 Processing\r\n\r\n" * 1000
BODY = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n"


@contextmanager
def dripping(beginning: bytes) -> Iterator[tuple[str, list[bytes]]]:
    """Its address, and the requests that came; what follows the beginning is one letter, fifty
    times a second.
    """
    requests: list[bytes] = []
    over = threading.Event()

    def serve(connection: socket.socket) -> None:
        with closing(connection), suppress(OSError):
            requests.append(connection.recv(65_536))
            for byte in itertools.chain(beginning, itertools.repeat(ord("a"))):
                connection.sendall(bytes([byte]))
                if over.wait(0.02):
                    return

    def accept() -> None:
        while not over.is_set():
            with suppress(TimeoutError):
                threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.1)
        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", requests
        over.set()
        thread.join()
