"""Prefect's server: check the configured one, or run one of our own."""

import tasks.prefect_environment  # noqa: F401 -- before Prefect

import asyncio
import atexit
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import httpx
from prefect.settings import PREFECT_API_URL, get_current_settings, temporary_settings

from prompts.engine.bridge import waiting
from storage.errors import StorageError, UsageError
from storage.system import APART

HOST = "127.0.0.1"
DEFAULT_PORT = 4200
HEARTBEAT = 30  # seconds between two heartbeats of a run: the shortest that Prefect accepts
START_WITHIN = 600.0  # seconds; the first start creates the database
END_WITHIN = 10.0  # seconds
ANSWERS_WITHIN = 5.0  # seconds; Prefect's own clients wait for minutes
LOG = "trellis-server.log"
REMEDY = (
    "Start it (`prefect server start`), correct PREFECT_API_URL, or unset it: `trellis serve` and "
    "recorded runs then start their own."
)
# A busy SQLite gets time, the server writes in batches, and its pages call no other host.
SETTINGS = {
    "PREFECT_SERVER_DATABASE_TIMEOUT": "60",
    # What `prefect deployment run --watch` prints.
    "PREFECT_SERVER_LOGS_STREAM_OUT_ENABLED": "true",
    "PREFECT_SERVER_LOGS_STREAM_PUBLISHING_ENABLED": "true",
    "PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT": "false",
    "PREFECT_SERVER_UI_V2_ENABLED": "false",  # it asks amplitude.com, analytics or not
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_BATCH_SIZE": "200",
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_READ_BATCH_SIZE": "200",
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_FLUSH_INTERVAL": "1",
    "PREFECT_SERVER_SERVICES_EVENT_PERSISTER_BATCH_SIZE": "500",
    "PREFECT_SERVER_SERVICES_EVENT_PERSISTER_READ_BATCH_SIZE": "200",
    "PREFECT_SERVER_SERVICES_EVENT_PERSISTER_FLUSH_INTERVAL": "1",
}


async def check_server(address: str) -> None:
    """Raise StorageError where no server answers at the address of its API.

    Any answer below HTTP 500 will do: Prefect Cloud asks for a key first.
    """
    try:
        async with asyncio.timeout(ANSWERS_WITHIN), httpx.AsyncClient() as client:
            response = await client.get(f"{address.rstrip('/')}/health")
    except (TimeoutError, httpx.HTTPError, httpx.InvalidURL) as error:
        problem = f"the server cannot be reached ({str(error) or type(error).__name__})"
    else:
        if response.status_code < 500:
            return
        problem = f"the server answers HTTP {response.status_code}"
    raise StorageError(address, problem, REMEDY)


@contextmanager
def prefect_server() -> Iterator[str]:
    """Give the address of the configured API, or that of our own server on any free port.

    Raises StorageError where the configured server does not answer.
    """
    if configured := get_current_settings().api.url:
        waiting(check_server)(configured)
    with server_in_use(None if configured else 0) as (address, _):
        yield address


def keep_server() -> None:
    """Keep a `prefect_server` until this process ends: Prefect sends the last events then."""
    held = ExitStack()
    # Registered before Prefect's workers are, so that the server ends after them.
    atexit.register(held.close)
    held.enter_context(prefect_server())


@contextmanager
def server_in_use(port: int | None) -> Iterator[tuple[str, bool]]:
    """Give the address of Prefect's API for the block, and whether its server is our own.

    Raises UsageError for a port where PREFECT_API_URL names a server.
    """
    settings = get_current_settings()
    if settings.api.url:
        if port is not None:
            raise UsageError(
                f"--port {port} is for a server of our own, and PREFECT_API_URL names "
                f"{settings.api.url}.",
                "Leave --port out, or unset PREFECT_API_URL.",
            )
        yield settings.api.url, False
        return
    with (
        own_server(port, settings.home) as address,
        temporary_settings({PREFECT_API_URL: address}),
    ):
        yield address, True


@contextmanager
def own_server(port: int | None, home: Path) -> Iterator[str]:
    """Start a server, give the address of its API, and end it with the block or this process.

    Without a port it listens on Prefect's usual one, or another where that is taken. `home` takes
    its log. Variables of the environment override our settings. Raises UsageError where the port
    is not available.
    """
    chosen = _port(port)
    address = f"http://{HOST}:{chosen}/api"
    home.mkdir(parents=True, exist_ok=True)
    log = home / LOG
    command = ["server", "start", "--host", HOST, "--port", str(chosen)]
    with log.open("w") as output:
        process = subprocess.Popen(  # noqa: S603 -- Python itself and our own words
            [sys.executable, "-P", "-m", "flows.orchestration.server_process", *command],
            env={
                **SETTINGS,
                **os.environ,
                "PREFECT_API_URL": address,
                "PREFECT_SERVER_UI_API_URL": address,
            },
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            **APART,  # Ctrl-C is for us: runs that end still need their server
        )
    try:
        _wait(process, address, log)
        yield address
    finally:
        _end(process)


def _port(wanted: int | None) -> int:
    """Return a port that is free now: the one wanted, else Prefect's own, else any."""
    port = DEFAULT_PORT if wanted is None else wanted
    try:
        return _free_port(port)
    except (OSError, OverflowError) as error:
        if _is_prefect(port):
            raise UsageError(
                f"A Prefect server runs on port {port} already.",
                f"Use it: PREFECT_API_URL=http://{HOST}:{port}/api; or give another --port and "
                "a PREFECT_HOME of its own.",
            ) from error
        if wanted is None:
            with suppress(OSError):
                return _free_port(0)
        raise UsageError(
            f"Port {port} cannot be used ({error}).", "Give another --port, or none for a free one."
        ) from error


def _free_port(port: int) -> int:
    """Return the port, or any free one for 0. Raises OSError, or OverflowError for no port."""
    with socket.create_server((HOST, port)) as probe:
        return int(probe.getsockname()[1])


def _is_prefect(port: int) -> bool:
    try:
        answer = httpx.get(
            f"http://{HOST}:{port}/api/health", timeout=ANSWERS_WITHIN, trust_env=False
        )
    except (httpx.HTTPError, httpx.InvalidURL):
        return False
    return answer.status_code == 200 and answer.text == "true"


def _wait(process: subprocess.Popen[bytes], address: str, log: Path) -> None:
    until = time.monotonic() + START_WITHIN
    with httpx.Client(timeout=ANSWERS_WITHIN, trust_env=False) as client:
        while time.monotonic() < until:
            if process.poll() is not None:
                raise StorageError(
                    log,
                    f"the Prefect server ended at its start: {_last_words(log)}",
                    "See that file.",
                )
            with suppress(httpx.HTTPError):
                if client.get(f"{address}/health").status_code == 200:
                    return
            time.sleep(0.1)
    raise StorageError(
        log, f"the Prefect server is not ready after {START_WITHIN:.0f} s", "See that file."
    )


def _last_words(log: Path) -> str:
    text = log.read_text(encoding="utf-8", errors="replace")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "it said nothing"


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.stdin is not None:
        process.stdin.close()
    try:
        process.wait(timeout=END_WITHIN)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
