"""The guard of the tests holds, so that passing tests show that nothing calls out."""

import asyncio
import os
import socket
import threading
from pathlib import Path

import httpx
import pytest

ELSEWHERE = "192.0.2.1"  # reserved for documentation


@pytest.mark.parametrize("kind", [socket.SOCK_STREAM, socket.SOCK_DGRAM])
def test_a_connection_elsewhere_is_refused(kind: int, no_network: list[str]) -> None:
    refused = pytest.raises(OSError, match="without a network")
    with socket.socket(socket.AF_INET, kind) as client, refused:
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
    def connect() -> None:
        with socket.socket() as client, pytest.raises(OSError, match="without a network"):
            client.connect_ex((ELSEWHERE, 80))

    thread = threading.Thread(target=connect)
    thread.start()
    thread.join()
    assert no_network == [f"connect_ex({ELSEWHERE})"]
    no_network.clear()


def test_the_home_folder_is_a_temporary_one() -> None:
    assert "trellis-tests-" in str(Path.home())
    assert os.environ["PREFECT_HOME"].startswith(str(Path.home()))
