"""What does the client cost beside the models: processor time, calls, tokens and waiting, to index and to ask?

`python -m benchmarks.overhead --data FILE.jsonl` indexes the first passages of the file (rows with `title` and `text`)
against the scripted model server of the tests, every role and the embedding on it. Each figure comes from a process of
its own that has indexed two other passages before: imports and the server are not counted.
"""

import argparse
import gzip
import itertools
import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import TypeVar, get_args

from benchmarks.overhead_client import IN_FLIGHT, Asked, Floor, Index, Indexed, Questions, ask_all, floor_of, index_once
from benchmarks.overhead_questions import questions_about
from storage.answer_records import Effort
from tests.server.client import Server, serving

T = TypeVar("T")
J = TypeVar("J")


@dataclass(frozen=True)
class Called:
    """What the server counted: calls and tokens by step, and the most calls at once."""

    steps: dict[str, dict[str, int]]
    most_in_flight: int

    @classmethod
    def of(cls, server: Server) -> "Called":
        stats = server.stats()
        return cls(stats["steps"], stats["most_in_flight"])

    def sum(self, what: str, steps: Iterable[str] | None = None) -> int:
        return sum(self.steps.get(step, {}).get(what, 0) for step in steps or self.steps)

    def __str__(self) -> str:
        if not self.steps:
            return "0 calls"
        by_step = ", ".join(
            f"{step} {counted['calls']} ({counted['prompt_tokens']:,}/{counted['completion_tokens']:,})"
            for step, counted in self.steps.items()
        )
        return f"{self.sum('calls')} calls by step (tokens in/out): {by_step}"


class Bench:
    """One server, and a folder for the workspaces."""

    def __init__(self, server: Server, folder: Path, rows: Sequence[dict[str, str]]) -> None:
        self.server = server
        self.folder = folder
        self.rows = rows

    def corpus(self, count: int) -> Path:
        path = self.folder / f"first-{count}.jsonl"
        if not path.exists():
            path.write_text("".join(json.dumps(row) + "\n" for row in self.rows[:count]), encoding="utf-8")
        return path

    def index(self, workspace: str, corpus: Path, latency: float) -> tuple[Indexed, Called]:
        job = Index(
            corpus=corpus, workspace=self.folder / workspace, base_url=self.server.base_url,
            control=self.server.url, latency_ms=latency,
        )  # fmt: skip
        measured = apart(index_once, job)
        return measured, Called.of(self.server)

    def floor(self, called: Called, latency: float) -> float:
        job = Floor(
            calls=called.sum("calls"), base_url=self.server.base_url, control=self.server.url, latency_ms=latency
        )
        return apart(floor_of, job)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; 2 where the data are absent or too few."""
    options = _parser().parse_args(arguments)
    most = max([*options.passages, options.base + 1])
    if not options.data.is_file():
        print(f"There is no file {options.data}. Name one with a passage a line: --data FILE.jsonl.", file=sys.stderr)
        return 2
    rows = read_rows(options.data, most)
    if len(rows) < most:
        print(
            f"{options.data} has {len(rows)} passages, not {most}. Ask for fewer: --passages, --base.", file=sys.stderr
        )
        return 2
    with tempfile.TemporaryDirectory(prefix="trellis-bench-") as folder, serving() as server:
        bench = Bench(server, Path(folder), rows)
        for count, latency in itertools.product(options.passages, options.latency_ms):
            print(f"\n{count} passages at {latency:g} ms", flush=True)
            measured, called = bench.index(f"index-{count}-{latency:g}", bench.corpus(count), latency)
            floor = bench.floor(called, latency) if latency else 0.0
            print("\n".join(index_lines(count, latency, measured, called, floor)), flush=True)
        if options.base:
            _more(bench, options.base, options.questions)
    return 0


def index_lines(count: int, latency: float, measured: Indexed, called: Called, floor: float) -> list[str]:
    """The figures of one index run; `floor`: the seconds that its calls take a bare client, just after it."""
    calls = called.sum("calls")
    extract = [called.sum(what, ["extract"]) / count for what in ("prompt_tokens", "completion_tokens")]
    ideal = calls * latency / 1000 / IN_FLIGHT
    waiting = ""
    if floor:
        waiting = f" = {measured.wall / ideal:.2f} × calls × latency / {IN_FLIGHT} (a bare client: {floor:.2f} s)"
    return [
        f"  CPU {1000 * measured.cpu / count:.1f} ms per passage, wall {measured.wall:.2f} s{waiting}, at most "
        f"{called.most_in_flight} calls at once, peak memory {measured.peak_mb} MB, start-up {measured.startup:.1f} s",
        f"  {called}",
        f"  tokens in/out {called.sum('prompt_tokens'):,}/{called.sum('completion_tokens'):,}; extraction of a passage "
        f"{extract[0]:.0f}/{extract[1]:.0f}",
        f"  {measured.entities} entities, {measured.relations} relations, {measured.reports} reports",
        _by_step(measured),
    ]


def _by_step(measured: Indexed) -> str:
    steps = sorted(measured.by_step.items(), key=lambda item: -item[1][0])[:10]
    return "  CPU/wall s by step: " + ", ".join(f"{name} {cpu:.2f}/{wall:.2f}" for name, (cpu, wall) in steps)


def _more(bench: Bench, base: int, each: int) -> None:
    """An unchanged run, one document more, and questions, on an index of `base` passages."""
    workspace = f"base-{base}"
    bench.index(workspace, bench.corpus(base), 0)
    for name, source in (("unchanged", Bench.corpus), ("one document more", _grown)):
        measured, called = bench.index(workspace, source(bench, base), 0)
        print(f"\n{name} ({base} passages): CPU {measured.cpu:.2f} s, wall {measured.wall:.2f} s")
        print(f"  {called}\n{_by_step(measured)}", flush=True)
    questions = questions_about([row["title"] for row in bench.rows[:base]], each)
    for effort in get_args(Effort):
        # A copy each: what one effort has asked would stand in the memory and the caches of the next.
        copied = shutil.copytree(bench.folder / workspace, bench.folder / f"{workspace}-{effort}")
        job = Questions(
            questions=questions, effort=effort, workspace=copied, base_url=bench.server.base_url,
            control=bench.server.url, latency_ms=50,
        )  # fmt: skip
        asked = apart(ask_all, job)
        print(f"\nask, auto, effort {effort}, at {job.latency_ms:g} ms: medians of {each} questions a class")
        for name in dict.fromkeys(one.kind for one in asked):
            print(_asked_line(name, [one for one in asked if one.kind == name]))
        print(_asked_line("all", asked), flush=True)


def _grown(bench: Bench, base: int) -> Path:
    """The corpus with one passage more, under the same name: a source is known by its path."""
    path = bench.corpus(base)
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(bench.rows[base]) + "\n")
    return path


def _asked_line(name: str, asked: Sequence[Asked]) -> str:
    calls, tokens = [one.calls for one in asked], [one.tokens_in for one in asked]
    steps = dict.fromkeys(step for one in asked for step in one.steps)
    used = ", ".join(f"{step} {sum(one.steps.get(step, 0) for one in asked) / len(asked):.1f}" for step in steps)
    return (
        f"  {name:9} {median(calls):4.1f} calls ({min(calls)}-{max(calls)}), {median(tokens):5.0f} tokens in, "
        f"{1000 * median(one.wall for one in asked):4.0f} ms, CPU {1000 * median(one.cpu for one in asked):3.0f} ms "
        f"(mean calls: {used or 'none'})"
    )


def apart(function: Callable[[J], T], job: J) -> T:
    """The result of a function in a process of its own: its processor time and peak memory are its own."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(function, job).result()


def read_rows(path: Path, count: int) -> list[dict[str, str]]:
    """The first rows of a file of passages, each with an id, a title and a text."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in itertools.islice(file, count)]
    return [
        {"id": str(number), "title": str(row.get("title", "")), "text": row["text"]} for number, row in enumerate(rows)
    ]


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.overhead", description="Measure the client's own cost.")
    parser.add_argument("--data", type=Path, default=Path("passages.jsonl.gz"), metavar="FILE", help="a passage a line")
    parser.add_argument("--passages", type=_numbers, default=[150, 600, 2400], metavar="N,N", help="(150,600,2400)")
    parser.add_argument("--latency-ms", type=_numbers, default=[0, 50], metavar="MS,MS", help="(0,50)")
    parser.add_argument("--base", type=int, default=600, metavar="N", help="passages for the runs after (600; 0: none)")
    parser.add_argument("--questions", type=int, default=8, metavar="N", help="questions of each class (8)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
