"""What the client costs beside the models: processor time, calls, tokens and waiting, and what
recording adds.
"""

import asyncio
import itertools
import os
import shutil
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, TypeVar, get_args

from prefect.settings import PREFECT_API_URL, temporary_settings

from benchmarks.runner import (
    DATA,
    Cell,
    DataMissingError,
    Run,
    cpu_seconds,
    measure,
    option,
    whole_number,
)
from benchmarks.sets import SETS, read_rows, write_rows
from flows.index import IndexOptions, index, index_documents
from flows.orchestration.local_server import own_server
from flows.query import aask, answer_question, query
from flows.question import AskOptions
from flows.runtime import Runtime, open_embedding, open_runtime
from flows.session import open_session
from flows.settings import load_settings
from prompts.engine.embedders import Embedder
from prompts.engine.lm import ServedLM
from prompts.engine.messages import Call, Reply
from storage.answer_records import Effort
from storage.records import Record
from tests.server.client import Server, serving

T = TypeVar("T")
PASSAGES = SETS["2wiki_6119"].corpus
ASK_LATENCY = 50
WARM_UP = (
    {
        "id": "w1",
        "title": "Warm Bridge",
        "text": "Warm Bridge was built by Ada Warm in 1900. It is in Old Town.",
    },
    {
        "id": "w2",
        "title": "Ada Warm",
        "text": "Ada Warm was born in Old Town. Ada Warm met Bert Cold there.",
    },
)
WARM_QUESTION = ("warm-up", "When did Ada Warm die?")


class Spent(Record):
    """Seconds of the wall, and of this process' processor time."""

    wall: float
    cpu: float


class QuestionCost(Spent):
    """What a question took; `steps` are its calls by step, `model_cpu` the seconds of processor
    time of its requests to models, sent once more by themselves: DSPy, its client and HTTP, of the
    embedding its own client, in all threads.
    """

    kind: str
    model_cpu: float
    calls: int
    tokens_in: int
    steps: dict[str, int]


@measure(
    option(
        "--passages", type=whole_number, nargs="+", default=[150, 600, 2400], help="(150 600 2400)"
    ),
    option(
        "--latency-ms",
        type=float,
        nargs="+",
        default=[0, 50],
        metavar="MS",
        help="of the models (0 50)",
    ),
    option(
        "--base",
        type=whole_number,
        default=600,
        metavar="N",
        help="passages for the runs after (600)",
    ),
    option(
        "--questions", type=whole_number, default=8, metavar="N", help="questions of each class (8)"
    ),
    files=[PASSAGES],
)
def overhead(run: Run) -> None:
    """What does the client cost beside the models: processor time, calls, tokens and waiting, to
    index and to ask?

    The first passages of the 2Wiki corpus against the scripted model server of the tests, every
    role and the embedding on it, after two other passages, which load everything. Then, on an index
    of --base passages: an unchanged run, one document more, and questions of ten classes at each
    effort.
    """
    options, folder = run.options, run.workspace("overhead")
    base, rows = options.base, passages(options.data, max([*options.passages, options.base + 1]))
    workspace = folder / f"base-{base}"
    with serving() as server:
        on_server(server)
        _indexed(server, WARM_UP, folder / "warm", 0)
        for count, latency in itertools.product(options.passages, options.latency_ms):
            figures = _indexed(server, rows[:count], folder / f"{count}-{latency:g}", latency)
            run.table(f"{count} passages at {latency:g} ms", figures)
        for name, count in (
            (f"{base} passages", base),
            ("unchanged", base),
            ("one document more", base + 1),
        ):
            run.table(name, _indexed(server, rows[:count], workspace, 0))
        questions = questions_about([row["title"] for row in rows[:base]], options.questions)
        server.settle(latency_ms=ASK_LATENCY)
        for effort in get_args(Effort):
            # A copy each: what one effort has asked would stand in the memory and the caches of the
            # next.
            copied = shutil.copytree(workspace, folder / f"base-{base}-{effort}")
            costs = asyncio.run(asked(questions, copied, effort))
            kinds = {"all": costs}
            for cost in costs:
                kinds.setdefault(cost.kind, []).append(cost)
            title = (
                f"effort {effort}, at {ASK_LATENCY} ms: medians of {options.questions} questions a "
                "class"
            )
            run.table(title, {kind: _medians(own) for kind, own in kinds.items()})


@measure(
    option("--passages", type=whole_number, default=600, metavar="N", help="(600)"),
    option(
        "--latency-ms",
        type=float,
        default=50,
        metavar="MS",
        help="of the models while indexing (50)",
    ),
    option(
        "--pairs",
        type=whole_number,
        default=4,
        metavar="N",
        help="index runs, plain and recorded (4)",
    ),
    option(
        "--questions", type=whole_number, default=8, metavar="N", help="questions of each class (8)"
    ),
    files=[PASSAGES],
)
def recording(run: Run) -> None:
    """What does recording cost: an index run and a question with Prefect and without, against a
    running server?

    The first passages of the 2Wiki corpus are indexed against the scripted model server of the
    tests, by turns plainly and recorded, after two other passages. Then questions are asked about
    them, each plainly and recorded, one after another.
    """
    options, folder = run.options, run.workspace("recording")
    rows = passages(options.data, options.passages)
    questions = questions_about([row["title"] for row in rows], options.questions)
    os.environ.update(
        PREFECT_HOME=str(folder / "prefect"), TRELLIS_MEMORY="off"
    )  # memory would answer the second time
    with (
        serving() as models,
        own_server(None, folder) as api,
        temporary_settings({PREFECT_API_URL: api}),
    ):
        on_server(models)

        async def indexed(
            documents: Sequence[Mapping[str, str]], pair: int, recorded: bool
        ) -> Spent:
            write_rows(documents, folder / "corpus.jsonl")
            workspace = folder / f"ws-{pair}-{recorded}"
            if recorded:
                return (
                    await spent_on(index(str(folder / "corpus.jsonl"), workspace=str(workspace)))
                )[0]
            return (
                await spent_on(
                    index_documents([folder / "corpus.jsonl"], IndexOptions(), _runtime(workspace))
                )
            )[0]

        async def both(
            pairs: int, work: Callable[[int, bool], Awaitable[Spent]]
        ) -> dict[bool, list[Spent]]:
            """By turns, after a pair that is not counted."""
            spent: dict[bool, list[Spent]] = {False: [], True: []}
            for number in range(pairs + 1):
                for recorded in (False, True) if number % 2 else (True, False):
                    spent[recorded].append(await work(number, recorded))
            return {recorded: costs[1:] for recorded, costs in spent.items()}

        async def answered(number: int, recorded: bool) -> Spent:
            question = [WARM_QUESTION, *questions][number][1]
            return (
                await spent_on(
                    (query if recorded else aask)(question, workspace=str(folder / "ws-1-False"))
                )
            )[0]

        models.settle(latency_ms=options.latency_ms)
        spent = asyncio.run(
            both(options.pairs, lambda pair, way: indexed(rows if pair else WARM_UP, pair, way))
        )
        run.table(
            f"index, {options.passages} passages at {options.latency_ms:g} ms",
            _both(spent[False], spent[True]),
        )
        spent = asyncio.run(both(len(questions), answered))
        run.table(f"{len(questions)} questions", _both(spent[False], spent[True]))


def on_server(server: Server) -> None:
    """Put every role and the embedding on the scripted server."""
    names = ("TRELLIS_LM", "TRELLIS_EMBEDDING")
    os.environ.update(dict.fromkeys(names, "openai/scripted"))
    os.environ.update({f"{name}_BASE_URL": server.base_url for name in names})
    os.environ.update(TRELLIS_LM_API_KEY="none", DO_NOT_TRACK="1", PREFECT_LOGGING_LEVEL="WARNING")


def passages(data: Path, count: int) -> list[dict[str, str]]:
    """The first passages of the 2Wiki corpus, each with an id, a title and a text."""
    rows = list(itertools.islice(read_rows(data / PASSAGES), count))
    if len(rows) < count:
        raise DataMissingError(
            f"{data / PASSAGES} has {len(rows)} passages, not {count}. Ask for fewer."
        )
    return [
        {"id": str(number), "title": row["title"], "text": row["text"]}
        for number, row in enumerate(rows)
    ]


def questions_about(titles: Sequence[str], each: int) -> tuple[tuple[str, str], ...]:
    """(class, question) pairs: `each` of every class of `question_classes.jsonl`, about titles
    spread evenly over the corpus.
    """
    classes = {row["class"]: row["form"] for row in read_rows(DATA / "question_classes.jsonl")}
    names = [title.partition(" (")[0] for title in titles if title]
    made, at = [], 0
    wide = max(1, len(names) // (each * len(classes) + 1))
    for name, form in classes.items():
        for _ in range(each):
            made.append(
                (name, form.format(a=names[at % len(names)], b=names[(at + 1) % len(names)]))
            )
            at += wide
    return tuple(made)


def _indexed(
    server: Server, documents: Sequence[Mapping[str, str]], workspace: Path, latency: float
) -> dict[str, dict[str, Cell]]:
    """What an index run cost the client, and the calls and tokens that the server counted, in all
    and by step.
    """
    corpus = workspace.with_suffix(".jsonl")
    write_rows(documents, corpus)
    server.settle(latency_ms=latency)
    server.reset()
    cost, report = asyncio.run(
        spent_on(index_documents([corpus], IndexOptions(), _runtime(workspace)))
    )
    counted = server.stats()
    steps: dict[str, dict[str, Cell]] = counted["steps"]
    names = ("calls", "prompt_tokens", "completion_tokens")
    whole = {name: sum(step[name] for step in counted["steps"].values()) for name in names}
    made = report.model_dump(include={"entities", "relations", "reports"})
    return {
        "all": {
            **whole,
            "CPU s": cost.cpu,
            "wall s": cost.wall,
            "at once": counted["most_in_flight"],
            **made,
        },
        **steps,
    }


async def asked(
    questions: Sequence[tuple[str, str]], workspace: Path, effort: Effort
) -> list[QuestionCost]:
    """Every question once, one after another, after one that is not counted (it opens the
    index).
    """
    costs = []
    with open_session(_runtime(workspace)) as session:
        lm = _RecordingLM(session.runtime.query_models.lm("answer"))
        embedder = open_embedding(session.runtime.settings, None)
        for kind, question in [WARM_QUESTION, *questions]:
            spent, answer = await spent_on(
                answer_question(question, AskOptions(effort=effort), session)
            )
            usage = answer.usage
            embedded = usage.by_step["embed"].calls if "embed" in usage.by_step else 0
            again, _ = await spent_on(lm.send_again())
            vectors, _ = await spent_on(_embedded(embedder, question, embedded))
            costs.append(
                QuestionCost(
                    **spent.model_dump(),
                    kind=kind,
                    tokens_in=usage.input_tokens,
                    model_cpu=again.cpu + vectors.cpu,
                    # A call that another question has made already comes from the cache; it would
                    # be one by itself.
                    calls=usage.calls + usage.cached_calls,
                    steps={
                        name: step.calls + step.cached_calls for name, step in usage.by_step.items()
                    },
                )
            )
    return costs[1:]


async def _embedded(embedder: Embedder, text: str, times: int) -> None:
    """Ask an embedder that keeps nothing so often."""
    for _ in range(times):
        embedder.embed([text], query=True)


class _RecordingLM:
    """Keeps the calls that a model is sent."""

    def __init__(self, lm: ServedLM) -> None:
        self._lm = lm
        self._calls: list[Call] = []
        self._send = lm.send
        lm.send = self._sent  # type: ignore[method-assign]  # what is measured stands between

    async def _sent(self, call: Call, show: Any = None) -> Reply:
        self._calls.append(call)
        return await self._send(call, show)

    async def send_again(self) -> None:
        """Send what was sent since the last time once more, one after another."""
        for call in self._calls:
            await self._send(call)
        self._calls.clear()


def _runtime(workspace: Path) -> Runtime:
    return open_runtime(load_settings({"workspace": workspace}))


async def spent_on(work: Awaitable[T]) -> tuple[Spent, T]:
    """What some work took, and what it gave."""
    cpu, wall = cpu_seconds(), time.monotonic()
    result = await work
    return Spent(wall=time.monotonic() - wall, cpu=cpu_seconds() - cpu), result


def _medians(costs: Sequence[QuestionCost]) -> dict[str, Cell]:
    calls = [cost.calls for cost in costs]
    steps = dict.fromkeys(step for cost in costs for step in cost.steps)
    return {
        "calls": median(calls),
        "range": f"{min(calls)}-{max(calls)}",
        "tokens in": median(cost.tokens_in for cost in costs),
        "ms": 1000 * median(cost.wall for cost in costs),
        "CPU ms": 1000 * median(cost.cpu for cost in costs),
        "of it calls of models": 1000 * median(cost.model_cpu for cost in costs),
        "beside them": 1000 * median(cost.cpu - cost.model_cpu for cost in costs),
        **{
            f"{step} (mean)": sum(cost.steps.get(step, 0) for cost in costs) / len(costs)
            for step in steps
        },
    }


def _both(plain: Sequence[Spent], recorded: Sequence[Spent]) -> dict[str, dict[str, Cell]]:
    """Medians of both ways, and of the differences within a pair."""
    more = [
        Spent(wall=two.wall - one.wall, cpu=two.cpu - one.cpu)
        for one, two in zip(plain, recorded, strict=True)
    ]
    return {
        name: {
            "wall s": median(one.wall for one in own),
            "CPU s": median(one.cpu for one in own),
            "least": min(one.wall for one in own),
            "most": max(one.wall for one in own),
            "times": len(own),
        }
        for name, own in (("plain", plain), ("recorded", recorded), ("recorded minus plain", more))
    }
