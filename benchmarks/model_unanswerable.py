"""Whether a model abstains from what the corpus cannot answer, or claims support for it."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.answers import CHINESE, ENGLISH, FOREIGN, halves, known_here
from benchmarks.model_answers import WAYS, AnswerRow, AskedSet, figures, rows_of
from benchmarks.runner import Cell, Run
from benchmarks.sets import SETS, index, settings_in
from flows.query import retrieve_passages
from flows.question import AskOptions
from flows.runtime import open_runtime
from flows.session import open_session
from storage.evaluation_records import EvaluationQuestion

QUESTIONS = 30
FOUND = 8  # passages in which an answer is looked for all the same
# Nobody has listed passages that answer these questions.
UNANSWERABLE_WAYS = tuple(way for way in WAYS if way != "gold")
PROMPT = """Answer the question using the passages. \
Reply with the answer only, as short as possible.
If the passages do not say, answer: unknown.

{passages}

Question: {question}
Answer:"""
SHOWN = ("n", "abstained", "supported", "failed", "calls", "in", "out", "s")


def measure_unanswerable(run: Run, model: str) -> None:
    """Ask questions of other corpora in each way; a table for each language.

    English: MuSiQue's questions over HotpotQA's passages, without those whose answer stands in a
    passage that is found. Chinese: every second passage of CMRC 2018 is indexed, and questions on
    the others are asked.
    """
    run.need(*(name for known in (ENGLISH, FOREIGN, CHINESE) for name in SETS[known].files))
    data: Path = run.options.data
    for asked, questions in (_english(run, data), _chinese(run, data)):
        ways = [way for way in run.options.ways if way in UNANSWERABLE_WAYS]
        table: dict[str, Mapping[str, Cell]] = {}
        for way in ways:
            rows = rows_of(run, asked, way, questions)
            table[way] = {name: value for name, value in figures(rows).items() if name in SHOWN}
            run.show(_lines(rows))
        run.table(f"unanswerable, {asked.name}: {len(questions)} questions, {model}", table)


def _lines(rows: Sequence[AnswerRow]) -> list[str]:
    return [f"{row.way:7}{row.fallback or '–'}: {row.question} | {row.said!r:.200}" for row in rows]


def _english(run: Run, data: Path) -> tuple[AskedSet, list[EvaluationQuestion]]:
    """HotpotQA's passages, and the questions of MuSiQue that they do not answer."""
    folder = run.workspace(ENGLISH)
    index(SETS[ENGLISH].write(data, folder), settings_in(folder))
    every = SETS[FOREIGN].read_questions(data, None)
    asked = replace(
        AskedSet.of(SETS[ENGLISH], data, folder), kept="unanswerable.jsonl", prompt=PROMPT
    )
    return asked, asyncio.run(_unknown(every, folder, run.limit or QUESTIONS))


async def _unknown(
    questions: Sequence[EvaluationQuestion], folder: Path, many: int
) -> list[EvaluationQuestion]:
    """The first so many questions that no passage found for them answers."""
    chosen: list[EvaluationQuestion] = []
    with open_session(open_runtime(settings_in(folder))) as session:
        for question in questions:
            if len(chosen) == many:
                break
            found = await retrieve_passages(question.question, AskOptions(k=FOUND), session)
            if not known_here(question, found.passages):
                chosen.append(question)
    return chosen


def _chinese(run: Run, data: Path) -> tuple[AskedSet, list[EvaluationQuestion]]:
    """Every second passage of CMRC 2018, and questions on the others."""
    folder = run.workspace(f"{CHINESE}_half")
    corpus, _, outside = halves(data, folder)
    index([corpus], settings_in(folder))
    asked = replace(
        AskedSet.of(SETS[CHINESE], data, folder), kept="unanswerable.jsonl", prompt=PROMPT
    )
    return asked, outside[: run.limit or QUESTIONS]
