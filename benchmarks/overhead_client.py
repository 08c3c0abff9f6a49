"""What does one process measure of itself while it indexes or asks against a model server?"""

import asyncio
import resource
import tempfile
import time
from pathlib import Path

import httpx
from pydantic import SecretStr

from flows.index import IndexOptions, build_index
from flows.query import answer_question
from flows.question import AskOptions
from flows.runtime import Runtime, open_runtime
from flows.session import open_session
from flows.settings import Settings
from storage.answer_records import Effort
from storage.records import Record
from storage.run_records import IndexReport
from tasks.step import watched

IN_FLIGHT = 16
WARM_UP = (
    '{"id": "w1", "title": "Warm Bridge", "text": "Warm Bridge was built by Ada Warm in 1900. It is in Old Town."}\n'
    '{"id": "w2", "title": "Ada Warm", "text": "Ada Warm was born in Old Town. Ada Warm met Bert Cold there."}\n'
)


class Index(Record):
    """An index run to measure. `control` is the root of the server, for its settings and counters."""

    corpus: Path
    workspace: Path
    base_url: str
    control: str
    latency_ms: float


class Questions(Record):
    """(class, question) pairs to ask of a workspace that is indexed, at an effort."""

    questions: tuple[tuple[str, str], ...]
    effort: Effort
    workspace: Path
    base_url: str
    control: str
    latency_ms: float


class Floor(Record):
    """So many calls, and nothing else."""

    calls: int
    base_url: str
    control: str
    latency_ms: float


class Indexed(Record):
    """What a run took: seconds of the processor (all threads) and of the wall, also by step; megabytes at the peak."""

    startup: float
    cpu: float
    wall: float
    peak_mb: int
    by_step: dict[str, tuple[float, float]]
    entities: int
    relations: int
    reports: int


class Asked(Record):
    """What a question took; `steps` are its calls by step."""

    kind: str
    calls: int
    tokens_in: int
    wall: float
    cpu: float
    steps: dict[str, int]


class _Watch:
    """Seconds (processor, wall) by the step that runs; what lies between two steps goes under the one before."""

    def __init__(self) -> None:
        self.by_step: dict[str, tuple[float, float]] = {}
        self._running: list[str] = []
        self._name, self._last = "start", (cpu_seconds(), time.monotonic())

    def __call__(self, name: str, begins: bool) -> None:
        self.cut()
        if begins:
            self._running.append(name)
        else:
            self._running.remove(name)
        self._name = " + ".join(sorted(set(self._running))) or f"(after {name})"

    def cut(self) -> None:
        now = (cpu_seconds(), time.monotonic())
        before = self.by_step.get(self._name, (0.0, 0.0))
        self.by_step[self._name] = (before[0] + now[0] - self._last[0], before[1] + now[1] - self._last[1])
        self._last = now


def cpu_seconds() -> float:
    """Of this process alone, all threads."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def index_once(job: Index) -> Indexed:
    """Warm up on two passages of a workspace of their own, then index what the job names."""
    startup = _warm_up(job.base_url, job.control, job.workspace.parent)
    _settle(job.control, job.latency_ms)
    runtime = _runtime(job.workspace, job.base_url)
    watch = _Watch()
    cpu, wall = cpu_seconds(), time.monotonic()
    with watched(watch):
        report = _index(job.corpus, runtime)
    cpu, wall = cpu_seconds() - cpu, time.monotonic() - wall
    watch.cut()
    return Indexed(
        startup=startup, cpu=cpu, wall=wall, peak_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        by_step=watch.by_step, entities=report.entities, relations=report.relations, reports=report.reports,
    )  # fmt: skip


def floor_of(job: Floor) -> float:
    """Seconds that the calls take without us: a bare client that sends one request again and again, 16 at once."""
    _settle(job.control, job.latency_ms)
    return asyncio.run(_floor(job))


async def _floor(job: Floor) -> float:
    import aiohttp

    passage = "Ada Korb met Bert Cold in Old Town."
    text = f'[[ ## title ## ]]\nAda\n\n[[ ## passage ## ]]\n{passage}\n\n[[ ## kinds ## ]]\n["person"]'
    messages = [{"role": "system", "content": "Step: extract"}, {"role": "user", "content": text}]
    left = iter(range(job.calls))
    async with aiohttp.ClientSession() as session:

        async def worker() -> None:
            for _ in left:
                async with session.post(
                    f"{job.base_url}/chat/completions", json={"model": "m", "messages": messages}
                ) as response:
                    await response.json()

        started = time.monotonic()
        await asyncio.gather(*(worker() for _ in range(IN_FLIGHT)))
        return time.monotonic() - started


def ask_all(job: Questions) -> list[Asked]:
    """Every question once, one after another, after one that is not counted (it opens the index)."""
    _settle(job.control, job.latency_ms)
    return asyncio.run(_ask_all(job))


async def _ask_all(job: Questions) -> list[Asked]:
    found = []
    with open_session(_runtime(job.workspace, job.base_url)) as session:
        for number, (kind, question) in enumerate([("warm-up", "When did Ada Warm die?"), *job.questions]):
            cpu = cpu_seconds()
            answer = await answer_question(question, AskOptions(effort=job.effort), session)
            usage = answer.usage
            if number:
                found.append(
                    Asked(
                        kind=kind,
                        # A call that another question has made already comes from the cache; it would be one by itself.
                        calls=usage.calls + usage.cached_calls,
                        tokens_in=usage.input_tokens,
                        wall=usage.seconds,
                        cpu=cpu_seconds() - cpu,
                        steps={name: one.calls + one.cached_calls for name, one in usage.by_step.items()},
                    )
                )
    return found


def _warm_up(base_url: str, control: str, folder: Path) -> float:
    """Load everything that a run loads; the seconds that it took."""
    started = time.monotonic()
    _settle(control, 0)
    # In a folder of its own: where nothing has changed, nothing is loaded.
    with tempfile.TemporaryDirectory(dir=folder) as place:
        corpus = Path(place) / "warm.jsonl"
        corpus.write_text(WARM_UP, encoding="utf-8")
        _index(corpus, _runtime(Path(place) / "workspace", base_url))
    return time.monotonic() - started


def _index(corpus: Path, runtime: Runtime) -> IndexReport:
    return asyncio.run(build_index([corpus], IndexOptions(), runtime))


def _settle(control: str, latency_ms: float) -> None:
    """Set the latency and zero the counters."""
    with httpx.Client(base_url=control, trust_env=False) as client:
        client.post("/settings", json={"latency_ms": latency_ms}).raise_for_status()
        client.post("/reset", json={}).raise_for_status()


def _runtime(workspace: Path, base_url: str) -> Runtime:
    """Every role and the embedding on the server, all else by default, whatever the environment says."""
    return open_runtime(
        Settings(
            workspace=workspace,
            lm="openai/scripted",
            lm_base_url=base_url,
            lm_api_key=SecretStr("none"),
            embedding="openai/scripted",
            embedding_base_url=base_url,
        )
    )
