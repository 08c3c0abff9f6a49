"""Another system beside ours, by the same model server, passages and questions: fast-graphrag, in
an environment of its own that is made by hand.
"""

import asyncio
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import IO, Any, cast, get_args

from benchmarks.overhead import (
    PASSAGES,
    WARM_QUESTION,
    WARM_UP,
    Spent,
    on_server,
    passages,
    questions_about,
    spent_on,
)
from benchmarks.runner import Cell, DataMissingError, Run, measure, option, whole_number
from benchmarks.sets import write_rows
from flows.index import IndexOptions, index_documents
from flows.query import answer_question
from flows.question import AskOptions
from flows.runtime import Runtime, open_runtime
from flows.session import open_session
from flows.settings import load_settings
from storage.answer_records import Effort
from tests.server.client import Server, serving

SCRIPT = Path(__file__).parent / "peers" / "fast_graphrag_run.py"
REMEDY = (
    "Make an environment: python -m venv ENV && ENV/bin/pip install fast-graphrag==0.0.5 "
    "sentencepiece==0.2.0, and name its interpreter: --python ENV/bin/python."
)
DIMENSION = 384  # of the scripted server's vectors
AT_ONCE = "16"  # calls in flight, as ours by default
UNKNOWN = ("No relevant information", "Sorry, I'm not able")
Asked = list[tuple[str, "QuestionSpent"]]  # by class


class IndexSpent(Spent):
    """What an index run took, and the entities and relations that it made."""

    entities: int
    relations: int


class QuestionSpent(Spent):
    """What a question took by the server's counters, and whether an answer came."""

    calls: int
    embeddings: int
    tokens_in: int
    answered: bool


@measure(
    option(
        "--python",
        type=Path,
        metavar="FILE",
        help="the interpreter of the environment that holds fast-graphrag",
    ),
    option("--passages", type=whole_number, default=600, metavar="N", help="(600)"),
    option("--latency-ms", type=float, default=50, metavar="MS", help="of the models (50)"),
    option(
        "--rounds",
        type=whole_number,
        default=3,
        metavar="N",
        help="index runs of each, by turns (3)",
    ),
    option(
        "--questions", type=whole_number, default=4, metavar="N", help="questions of each class (4)"
    ),
    files=[PASSAGES],
)
def peers(run: Run) -> None:
    """What do an index, one document more and a question cost fast-graphrag, and what Trellis:
    calls, tokens, processor time, waiting?

    The first passages of the 2Wiki corpus against the scripted model server of the tests, which
    answers both by the same rules. Processor time is that of the client's process, after an index
    of two other passages and a question about them, which load everything.
    """
    options, folder = run.options, run.workspace("peers")
    if options.python is None or not options.python.is_file():
        raise DataMissingError(
            f"There is no interpreter {options.python} with fast-graphrag. {REMEDY}"
        )
    *rows, first, second, third = passages(options.data, options.passages + 3)
    questions = [WARM_QUESTION, *questions_about([row["title"] for row in rows], options.questions)]
    with serving() as server, fast_graphrag(options.python, server, folder) as (version, ask):
        on_server(server)
        theirs = f"fast-graphrag {version}"

        def indexed_there(documents: Sequence[Mapping[str, str]], name: str) -> IndexSpent:
            texts = [f"{row['title']}\n{row['text']}" for row in documents]
            return IndexSpent.model_validate(
                ask({"index": texts, "folder": str(folder / f"{name}-peer")})
            )

        def indexed_here(documents: Sequence[Mapping[str, str]], name: str) -> IndexSpent:
            source = folder / f"{name}-{documents[0]['id']}.jsonl"
            write_rows(documents, source)
            work = index_documents([source], IndexOptions(), _runtime(folder / name))
            cost, report = asyncio.run(spent_on(work))
            return IndexSpent(
                **cost.model_dump(), entities=report.entities, relations=report.relations
            )

        indexers = {theirs: indexed_there, "Trellis": indexed_here}
        for work in indexers.values():
            work(WARM_UP, "warm")
        server.settle(latency_ms=options.latency_ms)
        costs: dict[str, list[IndexSpent]] = {name: [] for name in indexers}
        counted: dict[str, dict[str, Cell]] = {}
        for number in range(options.rounds):
            for name in sorted(indexers, reverse=bool(number % 2)):
                server.reset()
                costs[name].append(indexers[name](rows, f"round-{number}"))
                counted[name] = _counters(server)
        conditions = f"{options.passages} passages at {options.latency_ms:g} ms"
        title = f"index, {conditions}, medians of {options.rounds} runs, {_load()}"
        run.table(
            title,
            {name: {**_index_row(costs[name], len(rows)), **counted[name]} for name in indexers},
        )

        more = {
            name: [work([row], "round-0") for row in (first, second, third)]
            for name, work in indexers.items()
        }
        title = f"one document more, given alone, among {conditions}: medians of three, {_load()}"
        run.table(title, {name: _index_row(costs, 1) for name, costs in more.items()})

        ask({"open": str(folder / "round-0-peer")})
        asked = {theirs: [(kind, _asked_there(text, ask, server)) for kind, text in questions][1:]}
        for effort in get_args(Effort):
            # A copy each: what one effort has asked would stand in the caches of the next.
            copied = shutil.copytree(folder / "round-0", folder / f"asked-{effort}")
            asked[f"Trellis {effort}"] = asyncio.run(
                _asked_here(questions, copied, effort, server)
            )[1:]
    title = f"questions over {conditions}, medians of {options.questions} of each class, {_load()}"
    run.table(
        title, {name: _question_row([cost for _, cost in own]) for name, own in asked.items()}
    )
    for title, figure in (
        ("CPU ms", lambda cost: 1000 * cost.cpu),
        ("tokens in", lambda cost: cost.tokens_in),
    ):
        run.table(
            f"{title} by class", {name: _by_class(own, figure) for name, own in asked.items()}
        )


@contextmanager
def fast_graphrag(
    python: Path, server: Server, folder: Path
) -> Iterator[tuple[str, Callable[[Mapping[str, object]], dict[str, Any]]]]:
    """Its version, and what answers a line of `fast_graphrag_run.py`; DataMissingError where it
    cannot be started.
    """
    environment = {
        **os.environ,
        "CONCURRENT_TASK_LIMIT": AT_ONCE,
        "NO_PROXY": "127.0.0.1",
        "no_proxy": "127.0.0.1",
    }
    log = folder / "fast-graphrag.log"
    with (
        log.open("w", encoding="utf-8") as errors,
        subprocess.Popen(  # noqa: S603 -- the interpreter that was named
            [str(python.absolute()), str(SCRIPT), server.base_url, str(DIMENSION)],
            cwd=folder,
            env=environment,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
        ) as process,
    ):
        said, given = cast(IO[str], process.stdout), cast(IO[str], process.stdin)

        def read() -> dict[str, Any]:
            if line := said.readline():
                found: dict[str, Any] = json.loads(line)
                return found
            last = log.read_text(encoding="utf-8").strip().rpartition("\n")[2]
            raise DataMissingError(f"fast-graphrag ended: {last or 'it said nothing'}. {REMEDY}")

        def ask(line: Mapping[str, object]) -> dict[str, Any]:
            given.write(json.dumps(line) + "\n")
            given.flush()
            return read()

        yield read()["version"], ask
        given.close()


def _asked_there(
    question: str, ask: Callable[[Mapping[str, object]], dict[str, Any]], server: Server
) -> QuestionSpent:
    server.reset()
    said = ask({"question": question})
    spent = Spent(wall=said["wall"], cpu=said["cpu"])
    return _question(spent, server, answered=not said["answer"].startswith(UNKNOWN))


async def _asked_here(
    questions: Sequence[tuple[str, str]], workspace: Path, effort: Effort, server: Server
) -> Asked:
    costs = []
    with open_session(_runtime(workspace)) as session:
        for kind, question in questions:
            server.reset()
            spent, answer = await spent_on(
                answer_question(question, AskOptions(effort=effort), session)
            )
            costs.append((kind, _question(spent, server, answered=answer.fallback != "abstained")))
    return costs


def _question(spent: Spent, server: Server, *, answered: bool) -> QuestionSpent:
    counted = server.stats()
    embeddings = counted["steps"].get("embeddings", {}).get("calls", 0)
    calls = counted["calls"] - embeddings
    return QuestionSpent(
        **spent.model_dump(),
        calls=calls,
        embeddings=embeddings,
        tokens_in=counted["prompt_tokens"],
        answered=answered,
    )


def _counters(server: Server) -> dict[str, Cell]:
    """What the server counted of an index run."""
    counted = server.stats()
    embedding = counted["steps"]["embeddings"]
    texts = [row["body"]["input"] for row in server.requests() if row["step"] == "embeddings"]
    return {
        "model calls": counted["calls"] - embedding["calls"],
        "tokens in": counted["prompt_tokens"] - embedding["prompt_tokens"],
        "tokens out": counted["completion_tokens"],
        "embedding calls": embedding["calls"],
        "texts": sum(map(len, texts)),
        "their tokens": embedding["prompt_tokens"],
        "at once": counted["most_in_flight"],
    }


def _index_row(costs: Sequence[IndexSpent], passages: int) -> dict[str, Cell]:
    cpu = [cost.cpu for cost in costs]
    return {
        "CPU s": median(cpu),
        "least": min(cpu),
        "most": max(cpu),
        "CPU ms a passage": 1000 * median(cpu) / passages,
        "wall s": median(cost.wall for cost in costs),
        "entities": costs[-1].entities,
        "relations": costs[-1].relations,
    }


def _question_row(costs: Sequence[QuestionSpent]) -> dict[str, Cell]:
    calls = [cost.calls for cost in costs]
    return {
        "model calls": median(calls),
        "range": f"{min(calls)}-{max(calls)}",
        "embedding calls": median(cost.embeddings for cost in costs),
        "tokens in": median(cost.tokens_in for cost in costs),
        "CPU ms": 1000 * median(cost.cpu for cost in costs),
        "wall ms": 1000 * median(cost.wall for cost in costs),
        "answered": sum(cost.answered for cost in costs),
        "of": len(costs),
    }


def _by_class(asked: Asked, figure: Callable[[QuestionSpent], float]) -> dict[str, Cell]:
    kinds = dict.fromkeys(kind for kind, _ in asked)
    return {kind: median(figure(cost) for own, cost in asked if own == kind) for kind in kinds}


def _load() -> str:
    return f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"


def _runtime(workspace: Path) -> Runtime:
    return open_runtime(load_settings({"workspace": workspace}))
