"""How well and how fast questions are answered by walking a graph, and what typing them costs."""

import asyncio
import statistics
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from benchmarks.runner import Cell, Run, measure, share
from benchmarks.sets import Row, index, read_rows, write_rows
from flows.query import answer_question
from flows.question import AskOptions
from flows.session import Session, open_session
from flows.settings import load_settings
from storage.answer_records import Answer
from tasks.evaluate.measures import set_f1
from tasks.watching import watched

T = TypeVar("T")

GRAPH, QUESTIONS = (
    f"kgqa/{name}.jsonl.gz" for name in ("pathquestion_2h_kb", "pathquestion_2h_questions")
)


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


@measure(files=[GRAPH, QUESTIONS])
def traversal(run: Run) -> None:
    """How well and how fast does walking a graph answer questions, and what does typing them cost?

    PathQuestion (a graph of triples; paraphrased questions of two hops with the path that answers
    them) is answered through the ask path by the configured model; without one only look-ups are
    answered.
    """
    rows = spread(list(read_rows(run.file(QUESTIONS))), run.limit)
    clock = Stopwatch()
    with open_graph(run) as session, watched(clock):
        session.warm()
        pairs = asyncio.run(_answered(rows, session))
    run.table("values of the answers", {"all": _matches(pairs)})
    seconds = sorted(spent for _, _, spent in pairs)
    tokens: Counter[str] = Counter()
    for _, answer, _ in pairs:
        for step, used in answer.usage.by_step.items():
            tokens[step] += used.input_tokens + used.output_tokens
    shares: dict[str, Cell] = {
        step: spent / sum(seconds) for step, spent in clock.spent.most_common()
    }
    run.table(
        "share of the time by step (published for typing by a model: about 10%)", {"share": shares}
    )
    run.table(
        "cost of a question (published share of tokens for typing: about 30%)",
        {
            "all": {
                "median ms": statistics.median(seconds) * 1000,
                "95% within ms": seconds[int(len(seconds) * 0.95)] * 1000,
                "tokens": tokens.total() / len(pairs),
                "of these typing": tokens["plan"] / tokens.total() if tokens else None,
            }
        },
    )
    wrong = [
        (row, answer) for row, answer, _ in pairs if sorted(answer.values) != sorted(row["answers"])
    ]
    run.show(
        f"  {row['question']}: {row['answers']}, not {answer.values} {answer.answer[:100]}"
        for row, answer in wrong
    )


def open_graph(run: Run) -> Session:
    """The triples of PathQuestion, imported below the run's folder and opened."""
    folder = run.workspace("pathquestion_2h")
    write_rows(read_rows(run.file(GRAPH)), folder / "kb.jsonl")
    settings = load_settings({"workspace": folder / "workspace", "embedding": "none"})
    return open_session(index([folder / "kb.jsonl"], settings)[0])


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
    right = [
        (row, answer) for row, answer, _ in pairs if sorted(answer.values) == sorted(row["answers"])
    ]
    return {
        "questions": len(pairs),
        "exact": len(right) / len(pairs) if pairs else None,
        "F1": share([set_f1(answer.values, row["answers"]) for row, answer, _ in pairs]),
        "right ones that cite the path": share(
            [_cites(answer, row["path"]) for row, answer in right]
        ),
    }


def _cites(answer: Answer, path: Sequence[str]) -> bool:
    return set(facts_of(path)) <= {
        citation.quote for citation in answer.citations if citation.verified
    }
