"""What a process measures of itself while it indexes or asks against the scripted model server of the tests."""

import asyncio
import itertools
import os
import resource
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TypeVar

import httpx

from benchmarks.runner import DATA, DataMissingError
from benchmarks.sets import SETS, read_rows
from flows.index import IndexOptions
from flows.operations.history import index_run
from flows.query import answer_question
from flows.question import AskOptions
from flows.runtime import open_runtime
from flows.session import open_session
from flows.settings import load_settings
from storage.answer_records import Effort
from storage.records import Record
from storage.run_records import IndexReport
from tests.server.client import Server

T = TypeVar("T")

PASSAGES = SETS["2wiki_6119"].corpus
WARM_UP = (
    '{"id": "w1", "title": "Warm Bridge", "text": "Warm Bridge was built by Ada Warm in 1900. It is in Old Town."}\n'
    '{"id": "w2", "title": "Ada Warm", "text": "Ada Warm was born in Old Town. Ada Warm met Bert Cold there."}\n'
)
WARM_QUESTION = ("warm-up", "When did Ada Warm die?")


class ServerAddress(Record):
    """Where the scripted server is (`control`: its root, for settings and counters), and how long it takes."""

    base_url: str
    control: str
    latency_ms: float

    @classmethod
    def of(cls, server: Server, latency_ms: float) -> "ServerAddress":
        return cls(base_url=server.base_url, control=server.url, latency_ms=latency_ms)

    def settle(self, latency_ms: float) -> None:
        """Set the latency and zero the counters."""
        with httpx.Client(base_url=self.control, trust_env=False) as client:
            client.post("/settings", json={"latency_ms": latency_ms}).raise_for_status()
            client.post("/reset", json={}).raise_for_status()

    def environment(self) -> dict[str, str]:
        """Every role and the embedding on the server."""
        lm = {"TRELLIS_LM": "openai/scripted", "TRELLIS_LM_BASE_URL": self.base_url, "TRELLIS_LM_API_KEY": "none"}
        return {**lm, "TRELLIS_EMBEDDING": "openai/scripted", "TRELLIS_EMBEDDING_BASE_URL": self.base_url}


class IndexJob(Record):
    """An index run to measure, plainly or recorded by Prefect's server at `api`."""

    corpus: Path
    workspace: Path
    server: ServerAddress
    api: str = ""
    recorded: bool = False


class AskJob(Record):
    """(class, question) pairs to ask of a workspace that is indexed: at an effort of the server's model, or offline,
    where they are recorded by Prefect's server at `api` too."""

    workspace: Path
    questions: tuple[tuple[str, str], ...]
    effort: Effort = "medium"
    server: ServerAddress | None = None
    api: str = ""


class Spent(Record):
    """Seconds of the wall, and of this process' processor time."""

    wall: float
    cpu: float


class IndexCost(Spent):
    """What a run took, after what loading everything took; megabytes at the peak."""

    startup: float
    peak_mb: int
    entities: int
    relations: int
    reports: int


class QuestionCost(Spent):
    """What a question took; `steps` are its calls by step."""

    kind: str
    calls: int
    tokens_in: int
    steps: dict[str, int]


class RecordingCost(Record):
    """What one question took both ways."""

    plain: Spent
    recorded: Spent


def cpu_seconds() -> float:
    """Of this process alone, all threads."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def passages(data: Path, count: int) -> list[dict[str, str]]:
    """The first passages of the 2Wiki corpus, each with an id, a title and a text."""
    rows = list(itertools.islice(read_rows(data / PASSAGES), count))
    if len(rows) < count:
        raise DataMissingError(f"{data / PASSAGES} has {len(rows)} passages, not {count}. Ask for fewer.")
    return [{"id": str(number), "title": row["title"], "text": row["text"]} for number, row in enumerate(rows)]


def questions_about(titles: Sequence[str], each: int) -> tuple[tuple[str, str], ...]:
    """(class, question) pairs: `each` of every class of `question_classes.jsonl`, about titles spread evenly over the
    corpus."""
    classes = {row["class"]: row["form"] for row in read_rows(DATA / "question_classes.jsonl")}
    names = [title.partition(" (")[0] for title in titles if title]
    made, at = [], 0
    wide = max(1, len(names) // (each * len(classes) + 1))
    for name, form in classes.items():
        for _ in range(each):
            made.append((name, form.format(a=names[at % len(names)], b=names[(at + 1) % len(names)])))
            at += wide
    return tuple(made)


def index_once(job: IndexJob) -> IndexCost:
    """What the run took, after one of two passages in a workspace of its own, which loads everything."""
    _environment(job.workspace, job.api, **job.server.environment())
    return asyncio.run(_index_once(job))


async def _index_once(job: IndexJob) -> IndexCost:
    job.server.settle(0)
    with tempfile.TemporaryDirectory(dir=job.workspace.parent) as place:
        corpus = Path(place) / "warm.jsonl"
        corpus.write_text(WARM_UP, encoding="utf-8")
        startup, _ = await _spent(lambda: _index(corpus, Path(place) / "workspace", job.recorded))
    job.server.settle(job.server.latency_ms)
    spent, report = await _spent(lambda: _index(job.corpus, job.workspace, job.recorded))
    return IndexCost(
        wall=spent.wall, cpu=spent.cpu, startup=startup.wall, entities=report.entities, relations=report.relations,
        reports=report.reports, peak_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    )  # fmt: skip


async def _index(corpus: Path, workspace: Path, recorded: bool) -> IndexReport:
    if recorded:
        from flows.index import index

        return await index(str(corpus), workspace=str(workspace))
    return await index_run([corpus], IndexOptions(), open_runtime(load_settings({"workspace": workspace})))


def ask_once(job: AskJob) -> list[QuestionCost]:
    """Every question once, one after another, after one that is not counted (it opens the index)."""
    if job.server is not None:
        job.server.settle(job.server.latency_ms)
        _environment(job.workspace, job.api, **job.server.environment())
    return asyncio.run(_ask_once(job))


async def _ask_once(job: AskJob) -> list[QuestionCost]:
    costs = []
    with open_session(open_runtime(load_settings({"workspace": job.workspace}))) as session:
        for kind, question in [WARM_QUESTION, *job.questions]:
            began = cpu_seconds()
            usage = (await answer_question(question, AskOptions(effort=job.effort), session)).usage
            costs.append(
                QuestionCost(
                    kind=kind, wall=usage.seconds, cpu=cpu_seconds() - began, tokens_in=usage.input_tokens,
                    # A call that another question has made already comes from the cache; it would be one by itself.
                    calls=usage.calls + usage.cached_calls,
                    steps={name: step.calls + step.cached_calls for name, step in usage.by_step.items()},
                )
            )  # fmt: skip
    return costs[1:]


def ask_both_ways(job: AskJob) -> list[RecordingCost]:
    """Every question plainly and recorded, by turns; the first, which opens the index, is not counted."""
    _environment(job.workspace, job.api, TRELLIS_MEMORY="off")  # memory would answer the second time
    return asyncio.run(_ask_both_ways(job))


async def _ask_both_ways(job: AskJob) -> list[RecordingCost]:
    from flows.query import aask, query

    workspace = str(job.workspace)
    costs = []
    for number, (_, question) in enumerate([WARM_QUESTION, *job.questions]):
        ways: list[Callable[[], Awaitable[object]]] = [
            lambda asked=question: aask(asked, workspace=workspace),  # type: ignore[misc]
            lambda asked=question: query(asked, workspace=workspace),  # type: ignore[misc]
        ]
        first = number % 2
        spent = {way: (await _spent(ways[way]))[0] for way in (first, 1 - first)}
        costs.append(RecordingCost(plain=spent[0], recorded=spent[1]))
    return costs[1:]


async def _spent(work: Callable[[], Awaitable[T]]) -> tuple[Spent, T]:
    """What some work took, and what it gave."""
    cpu, wall = cpu_seconds(), time.monotonic()
    result = await work()
    return Spent(wall=time.monotonic() - wall, cpu=cpu_seconds() - cpu), result


def _environment(workspace: Path, api: str, **more: str) -> None:
    recording = {"PREFECT_API_URL": api, "PREFECT_HOME": str(workspace.parent / "client")} if api else {}
    os.environ.update(DO_NOT_TRACK="1", PREFECT_LOGGING_LEVEL="WARNING", **recording, **more)
