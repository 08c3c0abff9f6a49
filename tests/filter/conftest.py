"""The scripted model server for the tests of the filter: one process, its rules and counters anew for each test."""

from collections.abc import Iterator

import pytest

from tests.server.client import Server, serving


@pytest.fixture(scope="session")
def server_process() -> Iterator[Server]:
    with serving() as server:
        yield server


@pytest.fixture
def model_server(server_process: Server) -> Server:
    server_process.reset()
    server_process.settle(latency_ms=0)
    return server_process
