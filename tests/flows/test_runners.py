"""Wherever the batches of an index run are done, the same is published and everything is accounted for."""

import asyncio
import importlib.util
import logging
import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from flows.index import IndexOptions, build_index
from flows.runners import DaskChannel, Job, Place, ProcessChannel, RunnerFailed, shared_out
from flows.runtime import Runtime, open_runtime
from storage.errors import SettingsError
from storage.export import Export, export
from storage.records import Chunk
from storage.run_records import IndexReport
from tests.flows.conftest import KEY, ROWS
from tests.patience import wait_for
from tests.server.client import Server
from tests.settings import load_settings
from tests.workspaces import quays, write_rows

pytestmark = pytest.mark.slow


needs_dask = pytest.mark.skipif(
    importlib.util.find_spec("distributed") is None, reason="it is not installed: pip install 'trellis-rag[dask]'"
)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two batches and a half of chunks, and triples whose weights have to travel."""
    triple = {"s": "Quay 3", "p": "lies in", "o": "Velin", "weight": 2.5}
    return write_rows(tmp_path_factory.mktemp("runners") / "docs.jsonl", [*quays(160), triple])


def opened(workspace: Path, **settings: object) -> Runtime:
    # The model of embeddings takes seconds to load in each worker: one test embeds.
    given = {"workspace": workspace, "runner_workers": 2, "embedding": "none", "concurrency": 32, **settings}
    return open_runtime(load_settings(given))


async def indexed(corpus: Path, runtime: Runtime) -> tuple[IndexReport, Export]:
    report = await build_index([corpus], IndexOptions(), runtime)
    with runtime.workspace.read() as generation:
        return report, export(generation)


@pytest.fixture(scope="module")
def expected(
    corpus: Path, server_process: Server, tmp_path_factory: pytest.TempPathFactory
) -> tuple[IndexReport, Export]:
    """What a run in this process gives."""
    server_process.reset()
    server_process.settle(latency_ms=0)
    model = {"lm": "openai/scripted", "lm_base_url": server_process.base_url, "lm_api_key": KEY}
    return asyncio.run(indexed(corpus, opened(tmp_path_factory.mktemp("here") / "ws", **model)))


@pytest.fixture
def discreet(capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Fails the test in which this process, or a worker on its terminal, tells the key."""
    with caplog.at_level(logging.DEBUG):
        yield
    said = capfd.readouterr()
    assert KEY not in said.out + said.err + caplog.text


@pytest.mark.usefixtures("discreet")
@pytest.mark.parametrize("runner", ["processes", pytest.param("dask", marks=needs_dask)])
async def test_the_same_is_published_and_all_is_accounted_for(
    runner: str, corpus: Path, expected: tuple[IndexReport, Export], tmp_path: Path, model_server: Server
) -> None:
    here, published = expected
    there, found = await indexed(corpus, opened(tmp_path / "there", runner=runner))
    assert found == published
    assert {name: used.calls for name, used in there.usage.by_step.items()} == {
        name: counted["calls"] for name, counted in model_server.stats()["steps"].items()
    }
    assert there.usage.input_tokens == here.usage.input_tokens


async def test_a_batch_outlives_the_worker_that_had_it(
    corpus: Path, expected: tuple[IndexReport, Export], tmp_path: Path, model_server: Server
) -> None:
    run = await begun(corpus, opened(tmp_path / "there", runner="processes"), model_server)
    os.kill(max(workers()), signal.SIGKILL)
    report, found = await run
    assert found == expected[1]
    assert report.dead_letters == 0


async def test_a_worker_that_stands_still_is_replaced_and_holds_up_no_end(tmp_path: Path) -> None:
    runtime = opened(tmp_path / "ws")
    text = "Anna Weil designed the Harbour Bridge."
    chunk = Chunk(
        id="chk_1", document="d", ordinal=0, start=0, end=len(text), text=text, tokens=7, language="en", title="d"
    )
    job = Job(runtime.settings, Place.of(runtime.settings), (chunk,))
    channel = ProcessChannel(1, silence=5)
    try:
        expected = (await channel.run(job)).extracts
        (worker,) = multiprocessing.active_children()
        os.kill(worker.pid or 0, signal.SIGSTOP)
        assert (await channel.run(job)).extracts == expected
        (other,) = multiprocessing.active_children()
        assert other.pid != worker.pid
        os.kill(other.pid or 0, signal.SIGSTOP)
    finally:
        await asyncio.to_thread(channel.close)
    assert not multiprocessing.active_children()


async def test_a_cancelled_run_calls_nobody_any_more(corpus: Path, tmp_path: Path, model_server: Server) -> None:
    before = workers()
    run = await begun(corpus, opened(tmp_path / "ws", runner="processes"), model_server)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    model_server.reset()
    await asyncio.sleep(1)
    assert model_server.stats()["calls"] == 0
    assert workers() <= before


@pytest.fixture
def cluster() -> Iterator[Any]:
    """A cluster of two workers on this machine."""
    from distributed import LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as started:
        yield started


@needs_dask
async def test_a_cluster_that_was_joined_stays(
    cluster: Any, corpus: Path, expected: tuple[IndexReport, Export], tmp_path: Path, model_server: Server
) -> None:
    there = opened(tmp_path / "there", runner="dask", runner_address=cluster.scheduler_address)
    run = await begun(corpus, there, model_server)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    model_server.settle(latency_ms=0)
    _, found = await indexed(corpus, there)
    assert found == expected[1]
    assert len(cluster.scheduler.workers) == 2


@needs_dask
async def test_a_cluster_that_loses_a_worker_does_the_run_and_one_that_loses_all_ends_it_in_words(
    cluster: Any, corpus: Path, expected: tuple[IndexReport, Export], tmp_path: Path, model_server: Server
) -> None:
    there = opened(tmp_path / "there", runner="dask", runner_address=cluster.scheduler_address)
    run = await begun(corpus, there, model_server)
    os.kill(next(iter(cluster.workers.values())).pid, signal.SIGKILL)
    report, found = await run
    assert (found, report.dead_letters) == (expected[1], 0)
    channels = [DaskChannel(cluster.scheduler_address, 2, silence) for silence in (3, 1_000)]
    job = Job(there.settings, Place.of(there.settings))
    await asyncio.to_thread(cluster.scale, 0)
    with pytest.raises(RunnerFailed, match=r"no worker for 3 s.*Run again"):
        await channels[0].run(job)
    waiting = asyncio.create_task(channels[1].run(job))
    await asyncio.sleep(1)
    await asyncio.to_thread(cluster.close)
    with pytest.raises(RunnerFailed, match="the cluster has gone"):
        await waiting
    for channel in channels:
        await asyncio.to_thread(channel.close)


ELSEWHERE = """
import sys
from distributed import LocalCluster
with LocalCluster(n_workers=1, processes=False, host="127.0.0.1", protocol="tcp", dashboard_address=None) as cluster:
    print(cluster.scheduler_address, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def cluster_elsewhere() -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """The address of a cluster, and the process that its scheduler is in."""
    command = [sys.executable, "-c", ELSEWHERE]
    with subprocess.Popen(command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip(), process
        process.kill()


@needs_dask
async def test_a_cluster_that_stands_still_ends_a_run_in_words_and_is_not_joined(
    cluster_elsewhere: tuple[str, subprocess.Popen[str]], tmp_path: Path
) -> None:
    address, process = cluster_elsewhere
    there = opened(tmp_path, runner="dask", runner_address=address)
    channel = DaskChannel(address, 1, silence=3)
    process.send_signal(signal.SIGSTOP)
    with pytest.raises(RunnerFailed, match=r"no worker for 3 s.*Run again"):
        await channel.run(Job(there.settings, Place.of(there.settings)))
    await asyncio.to_thread(channel.close)
    with pytest.raises(RunnerFailed, match=r"no worker answers at tcp.*nothing within 4 s"):
        await asyncio.to_thread(DaskChannel, address, 1, patience=2)


async def test_a_runner_without_its_package_says_what_to_install(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)  # as if it were not installed
    with pytest.raises(SettingsError, match=r"pip install 'trellis-rag\[dask\]'"):
        await indexed(corpus, opened(tmp_path, runner="dask"))


async def begun(corpus: Path, runtime: Runtime, server: Server) -> "asyncio.Task[tuple[IndexReport, Export]]":
    """An index run on a slow model server that has had calls of it."""
    server.settle(latency_ms=300)
    run = asyncio.create_task(indexed(corpus, runtime))
    await asyncio.to_thread(wait_for, lambda: server.stats()["calls"] >= 20, "calls of the run")
    return run


def workers() -> set[int]:
    """The processes that this one has started to do jobs."""
    return {process.pid for process in multiprocessing.active_children() if process.pid is not None}


async def test_vectors_come_from_the_workers(tmp_path: Path) -> None:
    source = write_rows(tmp_path / "docs.jsonl", ROWS)
    vectors = []
    for runner in ("local", "processes"):
        runtime = opened(tmp_path / runner, runner=runner, embedding="bundled", runner_workers=1)
        await build_index([source], IndexOptions(), runtime)
        with runtime.workspace.read() as generation:
            hashes = [window.text_hash for window in generation.vectors.windows()]
            vectors.append(generation.vectors.get(runtime.embedder.name, hashes))
    assert len(vectors[0]) == 2
    assert vectors[0].keys() == vectors[1].keys()
    for key, vector in vectors[0].items():
        assert np.allclose(vector, vectors[1][key], atol=1e-5)


def test_workers_keep_the_limits_together() -> None:
    shared = shared_out(load_settings({"concurrency": 16, "rpm": 100, "tpm": 1000}, {}), workers=4, machines=2)
    assert (shared.concurrency, shared.rpm, shared.tpm) == (4, 50, 500)


def test_settings_are_not_shown_with_their_secrets(tmp_path: Path) -> None:
    """Dask writes a job that failed to its log as Python shows it."""
    settings = load_settings({"workspace": tmp_path, "lm": "openai/x", "lm_api_key": KEY}, {})
    assert KEY not in repr(Job(settings, Place.of(settings)))
