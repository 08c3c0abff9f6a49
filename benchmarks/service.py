"""The service under load: questions of many clients while index runs publish, and its memory over
many requests.
"""

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median, quantiles

import httpx

from benchmarks.overhead import PASSAGES, passages, questions_about
from benchmarks.runner import Cell, Run, measure, option, whole_number
from benchmarks.sets import write_rows
from flows.runtime import open_runtime
from flows.settings import load_settings
from storage.answer_records import Answer
from storage.records import Record

ROOT = Path(__file__).resolve().parents[1]
CHANGED = 10  # every such passage has another text in each generation
PUBLICATIONS = 2


class Reply(Record):
    """An answer as a client got it, or the error in its place; `seconds` is how long it took."""

    seconds: float
    answer: Answer | None = None
    error: str = ""


@measure(
    option("--passages", type=whole_number, default=600, metavar="N", help="(600)"),
    option("--clients", type=whole_number, default=50, metavar="N", help="that ask at once (50)"),
    option(
        "--questions",
        type=whole_number,
        default=20,
        metavar="N",
        help="of each client, one after another (20)",
    ),
    option(
        "--requests",
        type=whole_number,
        default=5000,
        metavar="N",
        help="for the figures of memory (5000)",
    ),
    files=[PASSAGES],
)
def service(run: Run) -> None:
    """How many questions does the service answer a second, alone and while two index runs publish,
    and is its memory flat over many requests?

    The first passages of the 2Wiki corpus without a model; questions of ten classes; memory of
    answers off, so that each is found anew. Every answer is held against the generation that it
    names.
    """
    options, folder = run.options, run.workspace("service")
    rows = passages(options.data, options.passages)
    source, workspace = folder / "corpus.jsonl", folder / "ws"
    os.environ.update(TRELLIS_MEMORY="off", TRELLIS_KEEP_GENERATIONS="9")
    write_rows(edition(rows, 0), source)
    questions = [question for _, question in questions_about([row["title"] for row in rows], 10)]
    with served(workspace) as (address, process):
        asyncio.run(indexed(address, source))
        turns = [
            [questions[(client * 7 + turn) % len(questions)] for turn in range(options.questions)]
            for client in range(options.clients)
        ]

        async def publish(runs: int) -> None:
            for number in range(1, runs + 1):
                write_rows(edition(rows, number), source)
                await indexed(address, source)

        for title, runs in (
            ("questions alone", 0),
            (f"while {PUBLICATIONS} runs publish", PUBLICATIONS),
        ):
            replies, seconds = asyncio.run(_load(address, turns, publish(runs)))
            run.table(title, {"all": _figures(replies, seconds, workspace)})
        sizes = asyncio.run(
            _memory(address, process.pid, questions, options.clients, options.requests)
        )
        run.table(
            "resident memory, MB", {str(count): {"MB": size} for count, size in sizes.items()}
        )


@contextmanager
def served(workspace: Path) -> Iterator[tuple[str, "subprocess.Popen[str]"]]:
    """A service in a process of its own: its address, and the process."""
    words = ("serve", "--no-prefect", "--listen", "0", "--json", "--workspace", str(workspace))
    process = subprocess.Popen(  # noqa: S603 -- Python itself and our own words
        [sys.executable, "-m", "flows", *words],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        line = process.stdout.readline() if process.stdout else ""
        yield json.loads(line)["service"], process
    finally:
        process.terminate()
        process.wait()


def edition(rows: Sequence[Mapping[str, str]], number: int) -> list[dict[str, str]]:
    """The passages, some of which say which edition they are of."""
    words = f" This is edition {number}."
    return [
        {**row, "text": row["text"] + words * (place % CHANGED == 0)}
        for place, row in enumerate(rows)
    ]


async def indexed(address: str, source: Path) -> None:
    """Index the source and wait for the end."""
    async with httpx.AsyncClient(base_url=address, timeout=600, trust_env=False) as client:
        run = (
            (await client.post("/api/v1/index-runs", json={"sources": [str(source)]}))
            .raise_for_status()
            .json()
        )
        while run["state"] in {"waiting", "running"}:
            await asyncio.sleep(0.2)
            run = (await client.get(f"/api/v1/index-runs/{run['id']}")).json()
        if run["state"] != "completed":
            raise RuntimeError(f"the index run ended as {run['state']}: {run['error']}")


async def _load(
    address: str, turns: Sequence[Sequence[str]], publishing: Coroutine[object, object, None]
) -> tuple[list[Reply], float]:
    """What clients got, each of which asks its questions one after another, and the seconds that it
    took.
    """
    limits = httpx.Limits(max_connections=len(turns))
    async with httpx.AsyncClient(
        base_url=address, timeout=600, limits=limits, trust_env=False
    ) as http:

        async def client(questions: Sequence[str]) -> list[Reply]:
            return [await _asked(http, question) for question in questions]

        await _asked(http, turns[0][0])
        published, started = asyncio.create_task(publishing), time.monotonic()
        replies = [reply for own in await asyncio.gather(*map(client, turns)) for reply in own]
        seconds = time.monotonic() - started
        while (
            not published.done()
        ):  # all publications are asked through, however long the runs take
            replies += await asyncio.gather(*(_asked(http, own[0]) for own in turns))
            seconds = time.monotonic() - started
        await published
    return replies, seconds


async def _asked(http: httpx.AsyncClient, question: str) -> Reply:
    started = time.monotonic()
    try:
        response = await http.post("/api/v1/ask", json={"question": question})
    except httpx.HTTPError as error:
        return Reply(seconds=time.monotonic() - started, error=repr(error))
    seconds = time.monotonic() - started
    if not response.is_success:
        return Reply(seconds=seconds, error=response.text)
    return Reply(seconds=seconds, answer=Answer.model_validate_json(response.content))


def _figures(replies: Sequence[Reply], seconds: float, workspace: Path) -> dict[str, Cell]:
    answers = [reply.answer for reply in replies if reply.answer is not None]
    times = [reply.seconds for reply in replies]
    return {
        "questions": len(replies),
        "errors": len(replies) - len(answers),
        "mixed": len(mixed(answers, workspace)),
        "generations": len({answer.generation for answer in answers}),
        "a second": len(replies) / seconds,
        "p50 s": median(times),
        "p95 s": quantiles(times, n=20)[-1],
        "longest s": max(times),
    }


def mixed(answers: Sequence[Answer], workspace: Path) -> list[Answer]:
    """The answers that hold anything that the generation which they name does not."""
    stored, wrong = open_runtime(load_settings({"workspace": workspace})).workspace, []
    for number in {answer.generation for answer in answers}:
        with stored.read(number) as generation:
            chunks = {chunk.id: chunk.text for chunk in generation.documents.chunks()}
            texts = {document.id: document.text for document in generation.documents.documents()}
        for answer in (answer for answer in answers if answer.generation == number):
            passages_hold = all(chunks.get(row.chunk) == row.text for row in answer.passages)
            quotes = (
                texts.get(row.document, "")[row.start : row.end] == row.quote
                for row in answer.citations
            )
            if not (passages_hold and all(quotes)):
                wrong.append(answer)
    return wrong


async def _memory(
    address: str, pid: int, questions: Sequence[str], clients: int, requests: int
) -> dict[int, Cell]:
    """The megabytes that the service takes, before and after each tenth of so many requests of five
    kinds.
    """
    sizes: dict[int, Cell] = {0: _resident(pid)}
    async with httpx.AsyncClient(base_url=address, timeout=600, trust_env=False) as http:
        slots, tenth = asyncio.Semaphore(clients), max(requests // 10, 1)

        async def ask(number: int) -> None:
            async with slots:
                await _requested(http, number, questions[number % len(questions)])

        for count in range(tenth, requests + 1, tenth):
            await asyncio.gather(*(ask(number) for number in range(tenth)))
            sizes[count] = _resident(pid)
    return sizes


async def _requested(http: httpx.AsyncClient, number: int, question: str) -> None:
    """One of five kinds of requests by turns, each of which has to succeed."""
    looks = ("entities?limit=50", "documents?limit=100", "reports?level=0")
    if number % 5 < len(looks):
        response = await http.get(f"/api/v1/{looks[number % 5]}")
    else:
        kind = "ask" if number % 5 == len(looks) else "retrieve"
        response = await http.post(f"/api/v1/{kind}", json={"question": question})
    response.raise_for_status()


def _resident(pid: int) -> float:
    line = next(
        line
        for line in Path(f"/proc/{pid}/status").read_text().splitlines()
        if line.startswith("VmRSS")
    )
    return int(line.split()[1]) / 1000
