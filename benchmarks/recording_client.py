"""What does one process measure of itself while it indexes or asks, recorded or plainly?"""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import httpx

from benchmarks.overhead_client import WARM_UP, cpu_seconds
from storage.records import Record


class Run(Record):
    """An index run to measure. `control` is the root of the model server, `api` the address of Prefect's."""

    corpus: Path
    workspace: Path
    base_url: str
    control: str
    api: str
    latency_ms: float
    recorded: bool


class Questions(Record):
    """(class, question) pairs to ask of a workspace that is indexed, offline."""

    workspace: Path
    api: str
    questions: tuple[tuple[str, str], ...]


class Took(Record):
    """Seconds of the wall, and of this process' processor time."""

    wall: float
    cpu: float


class Asked(Record):
    """What one question took both ways."""

    plain: Took
    recorded: Took


def index_run_once(job: Run) -> Took:
    """What the run took, after one of two passages that loads everything."""
    os.environ.update(
        PREFECT_API_URL=job.api, PREFECT_HOME=str(job.workspace.parent / "client"), DO_NOT_TRACK="1",
        PREFECT_LOGGING_LEVEL="WARNING", TRELLIS_LM="openai/scripted", TRELLIS_LM_BASE_URL=job.base_url,
        TRELLIS_LM_API_KEY="none", TRELLIS_EMBEDDING="openai/scripted", TRELLIS_EMBEDDING_BASE_URL=job.base_url,
    )  # fmt: skip
    return asyncio.run(_index_run_once(job))


async def _index_run_once(job: Run) -> Took:
    await _settle(job.control, 0)
    warm = job.workspace.with_name(f"{job.workspace.name}-warm")
    corpus = warm.with_suffix(".jsonl")
    corpus.write_text(WARM_UP, encoding="utf-8")
    await _index(corpus, warm, job.recorded)
    await _settle(job.control, job.latency_ms)
    return await _took(lambda: _index(job.corpus, job.workspace, job.recorded))


async def _index(corpus: Path, workspace: Path, recorded: bool) -> None:
    if recorded:
        from flows.index import index

        await index(str(corpus), workspace=str(workspace))
        return
    from flows.index import IndexOptions
    from flows.operations.history import index_run
    from flows.runtime import open_runtime
    from flows.settings import load_settings

    await index_run([corpus], IndexOptions(), open_runtime(load_settings({"workspace": workspace})))


def ask_twice(job: Questions) -> list[Asked]:
    """Every question both ways, by turns; the first, which opens the index, is not counted."""
    # Memory off: it would answer the second time.
    os.environ.update(
        PREFECT_API_URL=job.api, PREFECT_HOME=str(job.workspace.parent / "client"), DO_NOT_TRACK="1",
        PREFECT_LOGGING_LEVEL="WARNING", TRELLIS_THETA="1000000",
    )  # fmt: skip
    return asyncio.run(_ask_twice(job))


async def _ask_twice(job: Questions) -> list[Asked]:
    from flows.query import aask, query

    workspace = str(job.workspace)
    found = []
    for number, (_, question) in enumerate([("warm-up", "When did Ada Warm die?"), *job.questions]):
        ways: list[Callable[[], Awaitable[object]]] = [
            lambda asked=question: aask(asked, workspace=workspace),  # type: ignore[misc]
            lambda asked=question: query(asked, workspace=workspace),  # type: ignore[misc]
        ]
        first = number % 2
        took = {first: await _took(ways[first]), 1 - first: await _took(ways[1 - first])}
        if number:
            found.append(Asked(plain=took[0], recorded=took[1]))
    return found


async def _took(work: Callable[[], Awaitable[object]]) -> Took:
    cpu, wall = cpu_seconds(), time.monotonic()
    await work()
    return Took(wall=time.monotonic() - wall, cpu=cpu_seconds() - cpu)


async def _settle(control: str, latency_ms: float) -> None:
    """Set the latency and zero the counters."""
    async with httpx.AsyncClient(base_url=control, trust_env=False) as client:
        (await client.post("/settings", json={"latency_ms": latency_ms})).raise_for_status()
        (await client.post("/reset", json={})).raise_for_status()
