"""How well and how fast are questions answered by walking a graph, and what does typing them cost?

    python -m benchmarks.traversal --data DIR [--all]

DIR holds kgqa/pathquestion_2h_{kb,questions}.jsonl.gz (a graph of triples; paraphrased questions of two hops with the
path that answers them) and kgqa/polyg_typed_sample.jsonl.gz (questions with their type). The first is answered through
the ask path, offline unless a model is configured. The relation words were tuned on the questions of one third of the
paths (told by a hash); only the others count. With --all the questions that fail are shown.
"""

import argparse
import asyncio
import gzip
import hashlib
import json
import statistics
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from flows.index import IndexOptions, build_index
from flows.query import answer_question
from flows.question import AskOptions
from flows.runtime import Runtime, open_runtime
from flows.session import open_session
from flows.settings import load_settings
from prompts.offline.traverse import classify_offline
from storage.answer_records import Answer
from tasks.step import watched

GRAPH, QUESTIONS, TYPED = (
    f"kgqa/{name}.jsonl.gz" for name in ("pathquestion_2h_kb", "pathquestion_2h_questions", "polyg_typed_sample")
)
TYPE_OF = {
    "single_entity_abstract": "s**",
    "single_entity_concrete": "sp*",
    "multi_entity_abstract": "s*o",
    "multi_entity_concrete": "spo",
    "nested_question": "nested",
}
PARTS = 3


def rows(path: Path) -> Iterator[dict[str, object]]:
    """The rows of a zipped JSON Lines file."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        yield from map(json.loads, file)


def part_of(path: Sequence[str]) -> int:
    """Which third a path and all its paraphrases belong to; 0 was tuned on."""
    return int(hashlib.sha1("|".join(path).encode(), usedforsecurity=False).hexdigest(), 16) % PARTS


def f1(values: Sequence[str], wanted: Sequence[str]) -> float:
    """The harmonic mean of precision and recall over distinct values, 0 to 1."""
    found, gold = set(values), set(wanted)
    both = len(found & gold)
    return 2 * both / (len(found) + len(gold)) if found or gold else 1.0


@dataclass
class Stopwatch:
    """Seconds spent in each step of the questions."""

    spent: Counter[str] = field(default_factory=Counter)
    _began: dict[str, float] = field(default_factory=dict)

    def __call__(self, step: str, begins: bool) -> None:
        if begins:
            self._began[step] = time.perf_counter()
        else:
            self.spent[step] += time.perf_counter() - self._began.pop(step)  # type: ignore[assignment]


@dataclass
class Outcome:
    """What answering a set of questions gave."""

    right: dict[str, list[bool]] = field(default_factory=lambda: defaultdict(list))
    f1: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    wrong: list[tuple[str, str, str]] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    tokens: Counter[str] = field(default_factory=Counter)
    cited: list[bool] = field(default_factory=list)

    def add(self, row: dict[str, object], answer: Answer, seconds: float) -> None:
        wanted = row["answers"] if isinstance(row["answers"], list) else []
        path = row["path"] if isinstance(row["path"], list) else []
        is_right = sorted(answer.values) == sorted(wanted)
        part = "tuned" if part_of(path) == 0 else "held out"
        self.right[part].append(is_right)
        self.f1[part].append(f1(answer.values, wanted))
        self.seconds.append(seconds)
        if is_right:
            lines = {citation.quote for citation in answer.citations if citation.verified}
            facts = zip(path[:-2:2], path[1::2], path[2::2], strict=True)
            self.cited.append(all(f"{s} -[{p}]-> {o}" in lines for s, p, o in facts))
        else:
            self.wrong.append((str(row["question"]), f"{wanted}", f"{list(answer.values)} {answer.answer[:100]}"))
        for step, used in answer.usage.by_step.items():
            self.tokens[step] += used.input_tokens + used.output_tokens


async def answered(questions: Sequence[dict[str, object]], runtime: Runtime, clock: Stopwatch) -> Outcome:
    """Every question through the ask path, one after another."""
    found = Outcome()
    with open_session(runtime) as session, watched(clock):
        session.warm()
        for row in questions:
            started = time.perf_counter()
            answer = await answer_question(str(row["question"]), AskOptions(mode="traverse"), session)
            found.add(row, answer, time.perf_counter() - started)
    return found


def typed(data: Path) -> None:
    """Prints the accuracy of the rules on questions with a known type: over all, and the mean over the types."""
    right: dict[str, list[bool]] = defaultdict(list)
    started = time.perf_counter()
    for row in rows(data / TYPED):
        given = row["entities"] if isinstance(row["entities"], list) else []
        right[TYPE_OF[str(row["type"])]].append(
            classify_offline(str(row["question"]), given).type == TYPE_OF[str(row["type"])]
        )
    seconds = time.perf_counter() - started
    every = [one for marks in right.values() for one in marks]
    balanced = statistics.mean(statistics.mean(marks) for marks in right.values())
    print(f"types, rules: {statistics.mean(every):.3f} of {len(every)}, balanced {balanced:.3f}, ", end="")
    print(f"{seconds / len(every) * 1000:.2f} ms a question")
    print("  " + ", ".join(f"{kind} {sum(marks)}/{len(marks)}" for kind, marks in sorted(right.items())))


def report(found: Outcome, clock: Stopwatch, show: bool) -> None:
    """Prints what was right, how long it took and which part of that the typing had."""
    for part, marks in sorted(found.right.items()):
        shared = statistics.mean(found.f1[part])
        print(f"exact match of values, {part}: {statistics.mean(marks):.3f} of {len(marks)}, F1 {shared:.3f}")
    print(f"right answers whose citations are the path's own triples: {statistics.mean(found.cited):.3f}")
    p50, p95 = statistics.median(found.seconds), sorted(found.seconds)[int(len(found.seconds) * 0.95)]
    print(f"ms a question: median {p50 * 1000:.1f}, 95% within {p95 * 1000:.1f}")
    whole, tokens = sum(found.seconds), sum(found.tokens.values())
    shares = ", ".join(f"{step} {seconds / whole:.0%}" for step, seconds in clock.spent.most_common())
    print(f"share of time: {shares} (published for typing by a model: about 10%)")
    share = f"{found.tokens['plan'] / tokens:.0%} of {tokens}" if tokens else "none used"
    print(f"tokens for typing: {share} (published: about 30%)")
    for question, wanted, got in found.wrong if show else ():
        print(f"  {question}\n    wanted {wanted}\n    got {got}")


def main() -> None:
    """Import the graph into a temporary workspace, ask, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--all", action="store_true", help="show the questions that fail")
    options = parser.parse_args()
    missing = [name for name in (GRAPH, QUESTIONS, TYPED) if not (options.data / name).is_file()]
    if missing:
        raise SystemExit(f"{options.data} lacks {', '.join(missing)}: give the folder of the data by --data")
    typed(options.data)
    with tempfile.TemporaryDirectory() as folder:
        graph = Path(folder) / "kb.jsonl"
        graph.write_bytes(gzip.decompress((options.data / GRAPH).read_bytes()))
        runtime = open_runtime(load_settings({"workspace": Path(folder) / "ws", "embedding": "none"}))
        asyncio.run(build_index([graph], IndexOptions(), runtime))
        clock = Stopwatch()
        found = asyncio.run(answered(list(rows(options.data / QUESTIONS)), runtime, clock))
    report(found, clock, options.all)


if __name__ == "__main__":
    main()
