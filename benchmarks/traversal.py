"""How well and how fast questions are answered by walking a graph, and what typing them costs."""

import asyncio
import hashlib
import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from benchmarks.runner import Cell, Run, measure, share
from benchmarks.sets import Row, index, read_rows, write_rows
from flows.query import answer_question
from flows.question import AskOptions
from flows.session import Session, open_session
from flows.settings import load_settings
from prompts.offline.traverse import classify_offline
from storage.answer_records import Answer
from storage.evaluation_records import EvaluationQuestion
from tasks.evaluate.measures import set_f1
from tasks.question_sets.load import load_set
from tasks.watching import watched

T = TypeVar("T")

GRAPH, QUESTIONS, TYPED = (
    f"kgqa/{name}.jsonl.gz" for name in ("pathquestion_2h_kb", "pathquestion_2h_questions", "polyg_typed_sample")
)
PARTS = 3


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


@measure(files=[GRAPH, QUESTIONS, TYPED])
def traversal(run: Run) -> None:
    """How well and how fast does walking a graph answer questions, and what does typing them cost?

    PathQuestion (a graph of triples; paraphrased questions of two hops with the path that answers them) is answered
    through the ask path, offline unless a model is configured; PolyG's sample has questions with their type. The
    relation words were tuned on the questions of one third of the paths (told by a hash); only the others count.
    """
    run.table("types of questions, by rules", typed(load_set("polyg", run.file(TYPED)).questions))
    rows = spread(list(read_rows(run.file(QUESTIONS))), run.limit)
    clock = Stopwatch()
    with open_graph(run) as session, watched(clock):
        session.warm()
        pairs = asyncio.run(_answered(rows, session))
    run.table("values of the answers", {name: _matches(own) for name, own in (
        ("held out", [pair for pair in pairs if part_of(pair[0]["path"])]),
        ("tuned on", [pair for pair in pairs if not part_of(pair[0]["path"])]),
    )})  # fmt: skip
    seconds = sorted(spent for _, _, spent in pairs)
    tokens: Counter[str] = Counter()
    for _, answer, _ in pairs:
        for step, used in answer.usage.by_step.items():
            tokens[step] += used.input_tokens + used.output_tokens
    shares: dict[str, Cell] = {step: spent / sum(seconds) for step, spent in clock.spent.most_common()}
    run.table("share of the time by step (published for typing by a model: about 10%)", {"share": shares})
    run.table("cost of a question (published share of tokens for typing: about 30%)", {"all": {
        "median ms": statistics.median(seconds) * 1000, "95% within ms": seconds[int(len(seconds) * 0.95)] * 1000,
        "tokens": tokens.total() / len(pairs), "of these typing": tokens["plan"] / tokens.total() if tokens else None,
    }})  # fmt: skip
    wrong = [(row, answer) for row, answer, _ in pairs if sorted(answer.values) != sorted(row["answers"])]
    run.show(
        f"  {row['question']}: {row['answers']}, not {answer.values} {answer.answer[:100]}" for row, answer in wrong
    )


def open_graph(run: Run) -> Session:
    """The triples of PathQuestion, imported below the run's folder and opened."""
    folder = run.workspace("pathquestion_2h")
    write_rows(read_rows(run.file(GRAPH)), folder / "kb.jsonl")
    settings = load_settings({"workspace": folder / "workspace", "embedding": "none"})
    return open_session(index([folder / "kb.jsonl"], settings)[0])


def part_of(path: Sequence[str]) -> int:
    """Which third a path and all its paraphrases belong to; 0 was tuned on."""
    return int(hashlib.sha1("|".join(path).encode(), usedforsecurity=False).hexdigest(), 16) % PARTS


def held_out(data: Path) -> list[Row]:
    """The questions of the paths on which nothing was tuned."""
    return [row for row in read_rows(data / QUESTIONS) if part_of(row["path"])]


def spread(rows: Sequence[T], limit: int | None) -> list[T]:
    """At most so many rows, evenly taken."""
    many = min(limit or len(rows), len(rows))
    return [rows[place * len(rows) // many] for place in range(many)]


def facts_of(path: Sequence[str]) -> Iterator[str]:
    """The triples of a path, as passages write them."""
    for source, predicate, target in zip(path[:-2:2], path[1::2], path[2::2], strict=True):
        yield f"{source} -[{predicate}]-> {target}"


async def _answered(rows: Sequence[Row], session: Session) -> list[tuple[Row, Answer, float]]:
    """Every question through the ask path, one after another, with its seconds."""
    found = []
    for row in rows:
        started = time.perf_counter()
        answer = await answer_question(row["question"], AskOptions(mode="traverse"), session)
        found.append((row, answer, time.perf_counter() - started))
    return found


def _matches(pairs: Sequence[tuple[Row, Answer, float]]) -> dict[str, Cell]:
    right = [(row, answer) for row, answer, _ in pairs if sorted(answer.values) == sorted(row["answers"])]
    return {
        "questions": len(pairs),
        "exact": len(right) / len(pairs) if pairs else None,
        "F1": share([set_f1(answer.values, row["answers"]) for row, answer, _ in pairs]),
        "right ones that cite the path": share([_cites(answer, row["path"]) for row, answer in right]),
    }


def _cites(answer: Answer, path: Sequence[str]) -> bool:
    return set(facts_of(path)) <= {citation.quote for citation in answer.citations if citation.verified}


def typed(questions: Sequence[EvaluationQuestion]) -> dict[str, dict[str, Cell]]:
    """The accuracy of the rules on questions with a known type: by type, over all, and the mean over the types."""
    right: dict[str, list[bool]] = defaultdict(list)
    started = time.perf_counter()
    for question in questions:
        right[question.kind].append(classify_offline(question.question, question.names).type == question.kind)
    ms = 1000 * (time.perf_counter() - started) / len(questions)
    shares: dict[str, dict[str, Cell]] = {
        kind: {"questions": len(marks), "right": share(marks)} for kind, marks in sorted(right.items())
    }
    every = [mark for marks in right.values() for mark in marks]
    balanced = statistics.mean(sum(marks) / len(marks) for marks in right.values())
    return {**shares, "all": {"questions": len(every), "right": share(every), "balanced": balanced, "ms": ms}}
