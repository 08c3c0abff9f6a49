"""For every test: no network beyond this machine, no state outside temporary folders."""

import asyncio
import logging
import os
import shutil
import socket
import tempfile
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from prompts.engine.refusals import HABITS
from tests.server.client import Server, serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser

# No verdict depends on how busy the machine is.
settings.register_profile("steady", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("steady")

LOOPBACK = {"localhost", "::1", "0.0.0.0", "::", ""}  # noqa: S104 -- compared, never bound
ISOLATED = {
    "DO_NOT_TRACK": "1",
    "HAYSTACK_TELEMETRY_ENABLED": "False",
    "HF_HUB_OFFLINE": "1",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "PREFECT_LOGGING_TO_API_WHEN_MISSING_FLOW": "ignore",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "TOKENIZERS_PARALLELISM": "false",
}


class NetworkBlockedError(OSError):
    """A test connected to another machine."""


def is_local(host: object) -> bool:
    """Whether an address is loopback, a wildcard, or the path of a Unix socket."""
    if not isinstance(host, str):
        return True
    return host in LOOPBACK or host.startswith(("127.", "::ffff:127.", "/"))


def guarded(original: Callable[..., Any], position: int, reached: list[str]) -> Callable[..., Any]:
    """Wrap a function to refuse a target that is not local: its argument at `position`."""

    def call(*args: Any, **options: Any) -> Any:
        target = args[position] if len(args) > position else options.get("host")
        host = target[0] if isinstance(target, tuple) else target
        host = host.decode() if isinstance(host, bytes) else host
        if not is_local(host):
            reached.append(f"{original.__name__}({host})")
            raise NetworkBlockedError(
                f"tests run without a network, but something called {reached[-1]}"
            )
        return original(*args, **options)

    return call


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--data",
        type=Path,
        # Read here, because `pytest_configure` removes all of our variables.
        default=os.environ.get("TRELLIS_TEST_DATA"),
        help="folder with recorded data; without it the tests that need it are skipped",
    )


def weight(items: Iterable[pytest.Item]) -> int:
    """Rank a file: 0 with a Prefect server, 1 with a slow test, else 2."""
    tests = list(items)
    if any("api" in getattr(item, "fixturenames", ()) for item in tests):
        return 0
    return 1 if any(item.get_closest_marker("slow") for item in tests) else 2


# Tests whose path starts so run in one process, to share a Prefect server or slow imports.
TOGETHER = {
    "prefect": ("flows/recorded/",),
    "torch": (
        "engine/test_embedders",
        "engine/test_rerankers",
        "flows/test_reranking",
        "train/test_models_of_this_machine",
    ),
    "cdlib": ("test_communities", "flows/test_reports", "flows/test_incremental"),
}


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]

    class Together(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            path = nodeid.partition("::")[0]
            known = path.removeprefix("tests/")
            return next(
                (name for name, begins in TOGETHER.items() if known.startswith(begins)), path
            )

    return Together(config, log) if config.getoption("dist") == "loadfile" else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    # Long files begin first, so that no process is left alone with one at the end.
    files = {path: list(group) for path, group in groupby(items, lambda item: item.path)}
    weights = {path: weight(group) for path, group in files.items()}
    items.sort(key=lambda item: weights[item.path])
    # Patient tests are listed as skipped, because a run without them does not show their facts.
    if "patient" not in config.getoption("-m"):
        for item in items:
            if item.get_closest_marker("patient"):
                item.add_marker(pytest.mark.skip(reason="not shown by this run: make patient"))


def pytest_configure(config: pytest.Config) -> None:
    """Set the environment before a library reads it, without the person's own settings."""
    for name in list(os.environ):
        if name.startswith(("TRELLIS_", "PREFECT_", "OPENAI_")):
            del os.environ[name]
    os.environ.update(ISOLATED)
    home = tempfile.TemporaryDirectory(prefix="trellis-tests-", ignore_cleanup_errors=True)
    config.add_cleanup(home.cleanup)
    for name, folder in {
        "HOME": "",
        "PREFECT_HOME": "prefect",
        "XDG_CACHE_HOME": "cache",
        "HF_HOME": "hf",
    }.items():
        os.environ[name] = str(Path(home.name, folder))


@pytest.fixture(scope="session")
def network_attempts() -> Iterator[list[str]]:
    """Guard the ways out of the process; the list holds refused calls not yet reported."""
    reached: list[str] = []
    patch = pytest.MonkeyPatch()
    for name in ("connect", "connect_ex"):
        patch.setattr(socket.socket, name, guarded(getattr(socket.socket, name), 1, reached))
    patch.setattr(socket.socket, "sendto", guarded(socket.socket.sendto, -1, reached))
    for name in ("getaddrinfo", "gethostbyname"):
        patch.setattr(socket, name, guarded(getattr(socket, name), 0, reached))
    yield reached
    patch.undo()


@pytest.fixture(autouse=True)
def no_network(network_attempts: list[str]) -> Iterator[list[str]]:
    """Fail a test that used the network, even where the code swallowed the refusal."""
    yield network_attempts
    reached = sorted(set(network_attempts))
    network_attempts.clear()
    if reached:
        pytest.fail(f"reached for the network: {', '.join(reached)}")


@pytest.fixture
def caplog(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    """Attach pytest's handler to our own loggers too, because Prefect may replace the root's.

    A record that arrives both ways is kept once.
    """

    def once(record: logging.LogRecord) -> bool:
        known = "heard" in vars(record)
        vars(record)["heard"] = True
        return not known

    caplog.handler.addFilter(once)
    loggers = [
        logging.getLogger(name) for name in ("flows", "tasks", "prompts", "storage", "trellis")
    ]
    for logger in loggers:
        logger.addHandler(caplog.handler)
    yield caplog
    for logger in loggers:
        logger.removeHandler(caplog.handler)
    caplog.handler.removeFilter(once)


@pytest.fixture(scope="module")
def browser() -> "Iterator[Browser]":
    """The installed Chromium; without one the test is skipped."""
    sync_api = pytest.importorskip(
        "playwright.sync_api", reason="playwright: pip install 'trellis-rag[dev]'"
    )
    chromium = next(
        filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
    )
    if chromium is None:
        pytest.skip("no Chromium: apt-get install chromium, or another system's package")
    with sync_api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture(scope="session")
def sample_corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample corpus, indexed offline and without vectors; tests only read it."""
    from flows.index import IndexOptions, build_index
    from tests.workspaces import opened

    workspace = tmp_path_factory.mktemp("samples") / "ws"
    corpus = Path(__file__).parents[1] / "examples" / "corpus"
    asyncio.run(build_index([corpus], IndexOptions(), opened(workspace)))
    return workspace


@pytest.fixture(scope="session")
def server_process() -> Iterator[Server]:
    """The scripted model server, which all tests of this process share."""
    with serving() as server:
        yield server


@pytest.fixture
def model_server(server_process: Server) -> Server:
    """The scripted server with fresh counters and rules, of which nothing was learnt."""
    HABITS.clear()
    server_process.reset()
    server_process.settle(latency_ms=0, dimension=384)
    return server_process


@pytest.fixture
def scripted(model_server: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    """The scripted server as the model of every role."""
    monkeypatch.setenv("TRELLIS_LM", "openai/m")
    monkeypatch.setenv("TRELLIS_LM_BASE_URL", model_server.base_url)
    monkeypatch.setenv("TRELLIS_LM_API_KEY", "made-up-key-4711")
    return model_server
