"""Which passages does the knowledge filter have to judge, and which of them are evidence? Retrieved for published
questions; from search engines for RGB's."""

import asyncio
import gzip
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.questions import SETS
from flows.asking_view import relevance_of
from flows.indexing import IndexOptions, build_index
from flows.runtime import Runtime, open_runtime
from flows.session import Session, open_session
from flows.settings import Settings
from prompts.language.question import ask
from prompts.language.words import fold_name
from prompts.reading.entail import Candidate, Hypothesis, Signs, signs_of, strength
from prompts.reading.relevance import Relevance
from storage.records import Passage, Record
from tasks.evidence import pool_of
from tasks.filter_signs import shares
from tasks.retrieve.search import retrieve
from tasks.route import hypothesis_of

RGB = "rgb_en_fact"
RGB_FILE = "qa/rgb_en_fact.jsonl.gz"
TOP = 20

Flags = NDArray[np.bool_]


class RgbRow(Record):
    """A question of RGB with passages that hold its answer, copies of them with another answer, and others."""

    query: str
    positive: tuple[str, ...]
    positive_wrong: tuple[str, ...]
    negative: tuple[str, ...]


@dataclass(frozen=True)
class Case:
    """A question with its candidates, best first: which are evidence, and which of those the question names.

    `milliseconds` of CPU: what judging them took, its search not counted.
    """

    hypothesis: Hypothesis
    candidates: Sequence[Candidate]
    relevance: Relevance
    gold: Flags
    named: Flags
    milliseconds: float

    def signs(self, hypothesis: Hypothesis | None = None) -> list[Signs]:
        """Of each candidate, under the question's own hypothesis unless another is asked for."""
        return signs_of(hypothesis or self.hypothesis, self.candidates, self.relevance)

    def strengths(self) -> NDArray[np.float64]:
        """How far above the floor each candidate is."""
        return np.array([strength(self.hypothesis, one) for one in self.signs()])


def rgb_rows(data: Path) -> list[RgbRow]:
    """The rows in the file's order."""
    with gzip.open(data / RGB_FILE, "rt", encoding="utf-8") as lines:
        return [RgbRow(**{name: row[name] for name in RgbRow.model_fields}) for row in map(json.loads, lines)]


def cases(name: str, data: Path, keep: Path, top: int = TOP) -> list[Case]:
    """The cases of a set, from a workspace in `keep` that is made unless it is there already."""
    folder = keep / name
    folder.mkdir(parents=True, exist_ok=True)
    corpus = folder / "corpus.jsonl"
    asked: list[tuple[str, tuple[str, ...], list[str] | None]]
    if name == RGB:
        rows = rgb_rows(data)
        texts = {
            one: text
            for number, row in enumerate(rows)
            for one, text in zip(_ids(number, row), _texts(row), strict=True)
        }
        corpus.write_text("".join(json.dumps({"id": one, "text": text}) + "\n" for one, text in texts.items()))
        asked = [
            (row.query, tuple(_ids(number, row)[: len(row.positive)]), _ids(number, row))
            for number, row in enumerate(rows)
        ]
    else:
        known = next(one for one in SETS if one.name == name)
        known.write_corpus(data, corpus)
        asked = [(question.text, question.gold, None) for question in known.read_questions(data, None)]
    runtime = open_runtime(Settings(workspace=folder / "workspace"))
    asyncio.run(build_index([corpus], IndexOptions(), runtime))
    return asyncio.run(_judged(runtime, asked, top))


def _ids(number: int, row: RgbRow) -> list[str]:
    return [f"{number}.{place}" for place in range(len(row.positive) + len(row.negative))]


def _texts(row: RgbRow) -> tuple[str, ...]:
    return (*row.positive, *row.negative)


async def _judged(
    runtime: Runtime, asked: Sequence[tuple[str, tuple[str, ...], list[str] | None]], top: int
) -> list[Case]:
    with open_session(runtime) as session:
        return [await _case(session, question, gold, documents, top) for question, gold, documents in asked]


async def _case(session: Session, question: str, gold: Sequence[str], documents: list[str] | None, top: int) -> Case:
    near = session.dense([question], documents)
    passages = await retrieve(session.index, [question], near, top, documents)
    taken = ask(question)
    relevance = relevance_of(taken, session)
    started = time.process_time()
    together = shares(session.index, question, near[0], [passage.chunk for passage in passages])
    units = pool_of([session.index.chunk(passage.chunk) for passage in passages]).by_chunk()
    candidates = [Candidate(units.get(one.chunk, ()), one.text, one.title, together.get(one.chunk)) for one in passages]
    signs_of(hypothesis_of(taken), candidates, relevance)
    spent = 1000 * (time.process_time() - started)
    return Case(
        hypothesis_of(taken), candidates, relevance, np.array([one.document in gold for one in passages], bool),
        np.array([_is_named(one, question) for one in passages], bool), spent,
    )  # fmt: skip


def _is_named(passage: Passage, question: str) -> bool:
    title = fold_name(passage.title)
    return bool(title) and f" {title} " in f" {fold_name(question)} "


def area(scores: NDArray[np.float64], gold: Flags) -> float:
    """The area under the ROC curve: how often a passage of evidence comes before another one."""
    return before(scores[gold], scores[~gold])


def before(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """The share of pairs in which the first has the higher score; ties count half."""
    higher = (first[:, None] > second[None, :]).sum() + 0.5 * (first[:, None] == second[None, :]).sum()
    return float(higher / max(len(first) * len(second), 1))
