"""Wherever the batches of an index run are done, the same is published, and all calls count."""

import asyncio
import importlib.util
import logging
import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from flows.index import IndexOptions, build_index
from flows.runners import Place, shared_out
from flows.runtime import Runtime, open_runtime
from storage.errors import SettingsError, StorageError
from storage.export import Export, export
from storage.run_records import IndexReport
from tests.flows.conftest import KEY, ROWS
from tests.patience import wait_for
from tests.server.client import Server
from tests.settings import load_settings
from tests.workspaces import quays, write_rows

pytestmark = pytest.mark.slow

Run = tuple[IndexReport, Export]
needs_dask = pytest.mark.skipif(
    importlib.util.find_spec("distributed") is None,
    reason="it is not installed: pip install 'trellis-rag[dask]'",
)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two batches and a half of chunks, and a triple whose weight has to travel."""
    triple = {"s": "Quay 3", "p": "lies in", "o": "Velin", "weight": 2.5}
    return write_rows(tmp_path_factory.mktemp("runners") / "docs.jsonl", [*quays(160), triple])


def opened(workspace: Path, **settings: object) -> Runtime:
    # The bundled embedder takes seconds to load in each worker: one test embeds.
    given = {"runner_workers": 2, "embedding": "none", "concurrency": 32, **settings}
    return open_runtime(load_settings({"workspace": workspace, **given}))


async def indexed(corpus: Path, runtime: Runtime) -> Run:
    report = await build_index([corpus], IndexOptions(), runtime)
    with runtime.workspace.read() as generation:
        return report, export(generation)


@pytest.fixture(scope="module")
def expected(corpus: Path, server_process: Server, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """What a run in this process gives."""
    server_process.reset()
    server_process.settle(latency_ms=0)
    model = {"lm": "openai/scripted", "lm_base_url": server_process.base_url, "lm_api_key": KEY}
    return asyncio.run(indexed(corpus, opened(tmp_path_factory.mktemp("here") / "ws", **model)))


@pytest.fixture
def discreet(capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Fail the test in which this process, or a worker on its terminal, shows the key."""
    with caplog.at_level(logging.DEBUG):
        yield
    said = capfd.readouterr()
    assert KEY not in said.out + said.err + caplog.text


@needs_dask
@pytest.mark.usefixtures("discreet")
async def test_dask_publishes_the_same_and_accounts_for_all(
    corpus: Path, expected: Run, tmp_path: Path, model_server: Server
) -> None:
    here, published = expected
    there, found = await indexed(corpus, opened(tmp_path / "there", runner="dask"))
    assert found == published
    calls = {name: counted["calls"] for name, counted in model_server.stats()["steps"].items()}
    assert {name: used.calls for name, used in there.usage.by_step.items()} == calls
    assert there.usage.input_tokens == here.usage.input_tokens


@pytest.fixture
def cluster() -> Iterator[Any]:
    """A cluster of two workers on this machine."""
    from distributed import LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as started:
        yield started


@pytest.fixture
def joined(cluster: Any, expected: Run, model_server: Server, tmp_path: Path) -> Runtime:
    """A runtime on that cluster, with a slow model."""
    model_server.settle(latency_ms=300)
    return opened(tmp_path / "there", runner="dask", runner_address=cluster.scheduler_address)


async def begun(corpus: Path, runtime: Runtime, server: Server) -> "asyncio.Task[Run]":
    """An index run that has made some calls."""
    run = asyncio.create_task(indexed(corpus, runtime))
    await asyncio.to_thread(wait_for, lambda: server.stats()["calls"] >= 20, "calls of the run")
    return run


@needs_dask
async def test_a_cancelled_run_leaves_a_joined_cluster(
    cluster: Any, corpus: Path, expected: Run, joined: Runtime, model_server: Server
) -> None:
    run = await begun(corpus, joined, model_server)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    model_server.settle(latency_ms=0)
    _, found = await indexed(corpus, joined)
    assert found == expected[1]
    assert len(cluster.scheduler.workers) == 2


@needs_dask
async def test_a_batch_outlives_the_worker_that_had_it(
    cluster: Any, corpus: Path, expected: Run, joined: Runtime, model_server: Server
) -> None:
    run = await begun(corpus, joined, model_server)
    os.kill(next(iter(cluster.workers.values())).pid, signal.SIGKILL)
    report, found = await run
    assert (found, report.dead_letters) == (expected[1], 0)


async def test_a_runner_without_its_package_says_what_to_install(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)  # as if it were not installed
    with pytest.raises(SettingsError, match=r"pip install 'trellis-rag\[dask\]'"):
        await indexed(corpus, opened(tmp_path, runner="dask"))


@needs_dask
async def test_vectors_come_from_the_workers(tmp_path: Path) -> None:
    source = write_rows(tmp_path / "docs.jsonl", ROWS)
    vectors = []
    for runner in ("local", "dask"):
        runtime = opened(tmp_path / runner, runner=runner, embedding="bundled", runner_workers=1)
        await build_index([source], IndexOptions(), runtime)
        with runtime.workspace.read() as generation:
            hashes = [window.text_hash for window in generation.vectors.windows()]
            vectors.append(generation.vectors.get(runtime.embedder.name, hashes))
    here, there = vectors
    assert len(here) == 2
    assert here.keys() == there.keys()
    assert all(np.allclose(vector, there[key], atol=1e-5) for key, vector in here.items())


def test_a_worker_refuses_a_link_in_place_of_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    elsewhere = Place("no machine has this name", tmp_path / "caches.sqlite", tmp_path)
    folder, other = tmp_path / f"trellis-worker-{os.getuid()}", tmp_path / "other"
    other.mkdir()
    for target in (other, tmp_path / "nothing"):
        folder.symlink_to(target)
        with pytest.raises(StorageError, match=r"it is a link.*TMPDIR"):
            elsewhere.here()
        folder.unlink()
    assert elsewhere.here().limits == elsewhere.here().limits == folder
    assert folder.stat().st_mode & 0o077 == 0


def test_workers_keep_the_limits_together() -> None:
    settings = load_settings({"concurrency": 16, "rpm": 100, "tpm": 1000}, {})
    shared = shared_out(settings, workers=4, machines=2)
    assert (shared.concurrency, shared.rpm, shared.tpm) == (4, 50, 500)
