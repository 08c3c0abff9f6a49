"""A bound on the wait for a server's whole reply, for clients whose own limit begins anew with each byte."""

import ssl
import time
from collections.abc import Iterable
from typing import Any

import httpcore
import httpx

_PIECE = 1 << 16


def bound_replies(client: httpx.Client, seconds: float) -> None:
    """From now on a request, and the reply to it, come within so many seconds each, or a TimeoutException is raised."""
    # The package takes no backend of one's own. Its mounts are the proxies that the environment names.
    for transport in (client._transport, *client._mounts.values()):  # noqa: SLF001
        if isinstance(transport, httpx.HTTPTransport):
            pool = transport._pool  # noqa: SLF001
            pool._network_backend = _Bounded(pool._network_backend, seconds)  # noqa: SLF001


class _Bounded(httpcore.NetworkBackend):
    def __init__(self, backend: httpcore.NetworkBackend, seconds: float) -> None:
        self._backend = backend
        self._seconds = seconds

    def connect_tcp(
        self, host: str, port: int, timeout: float | None = None, local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:  # fmt: skip
        return _Stream(self._backend.connect_tcp(host, port, timeout, local_address, socket_options), self._seconds)


class _Stream(httpcore.NetworkStream):
    """One connection: what is written after a read is a new request."""

    def __init__(self, stream: httpcore.NetworkStream, seconds: float) -> None:
        self._stream = stream
        self._seconds = seconds
        self._until = time.monotonic() + seconds
        self._has_read = False

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        if not self._has_read:
            self._begin(has_read=True)
        return self._stream.read(max_bytes, self._left(httpcore.ReadTimeout, timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        if self._has_read:
            self._begin(has_read=False)
        for start in range(0, len(buffer), _PIECE):
            self._stream.write(buffer[start : start + _PIECE], self._left(httpcore.WriteTimeout, timeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        return _Stream(self._stream.start_tls(ssl_context, server_hostname, timeout), self._seconds)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)

    def _begin(self, has_read: bool) -> None:
        self._until, self._has_read = time.monotonic() + self._seconds, has_read

    def _left(self, error: type[httpcore.TimeoutException], timeout: float | None) -> float:
        left = self._until - time.monotonic()
        if left <= 0:
            raise error(f"not whole within {self._seconds:g} s")
        return left if timeout is None else min(left, timeout)
