"""The guard of the tests holds: otherwise "nothing calls out" would be an empty claim."""

import asyncio
import os
import socket
import threading
from pathlib import Path

import httpx
import pytest

ELSEWHERE = "192.0.2.1"  # reserved for documentation: no such host exists


@pytest.mark.parametrize("kind", [socket.SOCK_STREAM, socket.SOCK_DGRAM])
def test_a_connection_elsewhere_is_refused(kind: int, no_network: list[str]) -> None:
    with (
        socket.socket(socket.AF_INET, kind) as client,
        pytest.raises(OSError, match="without a network"),
    ):
        client.connect((ELSEWHERE, 80))
    assert no_network == [f"connect({ELSEWHERE})"]
    no_network.clear()


async def test_async_clients_are_refused(no_network: list[str]) -> None:
    with pytest.raises(OSError, match="without a network"):
        await asyncio.open_connection(ELSEWHERE, 80)
    async with httpx.AsyncClient(trust_env=False) as client:
        with pytest.raises(httpx.ConnectError):
            await client.get("http://example.invalid/")
    assert no_network[-1] == "getaddrinfo(example.invalid)"
    no_network.clear()


def test_an_attempt_in_a_thread_is_remembered(no_network: list[str]) -> None:
    def swallow() -> None:
        with socket.socket() as client:
            client.connect_ex((ELSEWHERE, 80))

    failures: list[object] = []
    previous, threading.excepthook = threading.excepthook, failures.append
    try:
        thread = threading.Thread(target=swallow)
        thread.start()
        thread.join()
    finally:
        threading.excepthook = previous
    assert failures
    assert no_network == [f"connect_ex({ELSEWHERE})"]
    no_network.clear()


def test_the_home_folder_is_a_temporary_one() -> None:
    assert "trellis-tests-" in str(Path.home())
    assert os.environ["PREFECT_HOME"].startswith(str(Path.home()))
