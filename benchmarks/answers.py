"""How often the offline answer holds the gold answer, and abstains where the documents do not
say.
"""

import asyncio
import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from benchmarks.runner import Rows, Run, measure, share
from benchmarks.sets import (
    SETS,
    BenchmarkSet,
    files_of,
    index,
    open_set,
    read_rows,
    settings_in,
    write_rows,
)
from flows.query import answer_question
from flows.question import AskOptions
from flows.session import Session, open_session
from prompts.text.languages import names_of
from prompts.text.segment import sentences
from prompts.text.words import fold
from storage.answer_records import Answer, Passage
from storage.evaluation_records import EvaluationQuestion
from storage.records import Record
from tasks.evaluate.measures import holds

T = TypeVar("T")

ENGLISH, FOREIGN, CHINESE = "hotpot_train100", "musique_train100", "cmrc2018_zh"
# Of the Chinese questions in the seed's order the first 500 measure answers, rules were made on
# others, and those from 2,000 on measure abstention.
ASKED, SEED, DEVELOPED = 500, 20180811, 2_000
ABSTAINING = 300
QUOTED = 200
_YES_NO = frozenset({"yes", "no", "是", "否"})


class Row(Record):
    """What a question got, and where its gold answer stands."""

    fallback: str
    in_values: bool
    in_quote: bool
    in_answer: bool
    in_sentence: bool
    in_opening: bool

    @property
    def right(self) -> bool:
        """Whether the answer holds the gold answer."""
        return self.in_values or self.in_quote


COLUMNS: dict[str, Callable[[Row], bool]] = {
    "in values or first quote": lambda row: row.right,
    "in values": lambda row: row.in_values,
    f"in first quote (≤ {QUOTED} characters)": lambda row: row.in_quote,
    "anywhere in what is shown": lambda row: row.in_answer,
    "BM25's first passage, first sentence": lambda row: row.in_sentence,
    f"BM25's first passage, {QUOTED} characters": lambda row: row.in_opening,
    "called supported": lambda row: row.fallback == "none",
    "abstained": lambda row: row.fallback == "abstained",
}


@measure(sets=files_of(ENGLISH, FOREIGN, CHINESE), default=[ENGLISH, CHINESE])
def answers(run: Run) -> None:
    """Does the offline answer hold the gold answer, and would the first sentence found have held
    it?

    An answer holds the gold answer by its values, or by its first quote where that has at most 200
    characters. Beside it stands BM25: the first sentence and the first 200 characters of its first
    passage. Of cmrc2018_zh 500 questions are asked, chosen by a seed; rules were made on others.
    """
    for name in run.options.sets:
        questions = chosen_of(SETS[name].read_questions(run.options.data, None), SETS[name])
        with open_set(run, name) as session:
            rows, cpu_ms = asyncio.run(answered(questions[: run.limit], session))
        shares = {column: share([holds(row) for row in rows]) for column, holds in COLUMNS.items()}
        run.table(
            f"{name}: {len(rows)} questions, {cpu_ms:.0f} CPU ms each",
            {column: {"share": value} for column, value in shares.items()},
        )


@measure(sets=files_of(ENGLISH, FOREIGN, CHINESE))
def abstention(run: Run) -> None:
    """Does the search say that nothing was found where the documents do not answer, and only there?

    English: the questions of hotpot_train100 over its own corpus, and those of musique_train100
    over the same corpus. Chinese: of cmrc2018_zh every second passage is indexed (by its number),
    300 questions are asked of those that are, and 300 of those that are not, chosen by a seed.

    Of the foreign questions those are left out whose gold answer stands in a passage found for
    them, beside every name that the question has: there the other corpus may know the answer after
    all. Excerpts are no abstention.
    """
    data = run.options.data
    if ENGLISH in run.options.sets:
        with open_set(run, ENGLISH) as session:
            own, other = (SETS[name].read_questions(data, run.limit) for name in (ENGLISH, FOREIGN))
            run.table("English", asyncio.run(abstained(own, other, session)))
    if CHINESE in run.options.sets:
        folder = run.workspace(f"{CHINESE}_half")
        indexed, inside, outside = halves(data, folder)
        with open_session(index([indexed], settings_in(folder))[0]) as session:
            own, other = inside[: run.limit], outside[: run.limit]
            run.table("Chinese", asyncio.run(abstained(own, other, session)))


def halves(
    data: Path, folder: Path
) -> tuple[Path, list[EvaluationQuestion], list[EvaluationQuestion]]:
    """The file of every second Chinese passage, and the questions of those and of the others."""
    (corpus,) = SETS[CHINESE].write(data, folder)
    rows = [row for row in read_rows(corpus) if int(row["id"].rpartition("_")[2]) % 2]
    write_rows(rows, corpus)
    known = {row["id"] for row in rows}
    questions = in_seeded_order(SETS[CHINESE].read_questions(data, None))[DEVELOPED:]
    inside = [question for question in questions if question.gold_documents[0] in known]
    outside = [question for question in questions if question.gold_documents[0] not in known]
    return corpus, inside[:ABSTAINING], outside[:ABSTAINING]


async def abstained(
    own: Sequence[EvaluationQuestion], other: Sequence[EvaluationQuestion], session: Session
) -> Rows:
    """Ask both kinds of questions over one corpus: how often each was abstained from."""
    answerable = [await _ask(question, session) for question in own]
    foreign = [(question, await _ask(question, session)) for question in other]
    unanswerable = [
        answer for question, answer in foreign if not known_here(question, answer.passages)
    ]
    return {
        "answerable": {
            "abstained": _abstaining(answerable),
            "questions": len(answerable),
            "left out": 0,
        },
        "unanswerable": {
            "abstained": _abstaining(unanswerable),
            "questions": len(unanswerable),
            "left out": len(foreign) - len(unanswerable),
        },
    }


def _abstaining(given: Sequence[Answer]) -> float | None:
    return share([answer.fallback == "abstained" for answer in given])


async def _ask(question: EvaluationQuestion, session: Session) -> Answer:
    return await answer_question(question.question, AskOptions(), session)


def known_here(question: EvaluationQuestion, passages: Sequence[Passage]) -> bool:
    """Whether a passage that was found holds the gold answer and all that the question names."""
    names = [span.text for span in names_of(question.question)]
    texts = [f"{passage.title}\n{passage.text}" for passage in passages]
    return any(
        holds(text, question.answers) and all(holds(text, [name]) for name in names)
        for text in texts
    )


def in_seeded_order(things: Sequence[T]) -> list[T]:
    """All of them, in the order that the seed gives."""
    return random.Random(SEED).sample(things, len(things))  # noqa: S311 -- a choice, no secret


def chosen_of(questions: list[EvaluationQuestion], known: BenchmarkSet) -> list[EvaluationQuestion]:
    """The questions that a set is measured on, in their order."""
    if not known.chinese:
        return questions
    places = in_seeded_order(range(len(questions)))
    return [questions[place] for place in sorted(places[:ASKED])]


async def answered(
    questions: Sequence[EvaluationQuestion], session: Session
) -> tuple[list[Row], float]:
    """What each question got, one after another, and the CPU milliseconds of one; the first is
    asked twice, since it loads the index.
    """
    await _ask(questions[0], session)
    started = time.process_time()
    given = [await _ask(question, session) for question in questions]
    spent = 1000 * (time.process_time() - started) / len(questions)
    return [
        row_of(question, answer, session) for question, answer in zip(questions, given, strict=True)
    ], spent


def row_of(question: EvaluationQuestion, answer: Answer, session: Session) -> Row:
    """An answer beside its gold answers and beside what BM25 finds first."""
    quote = answer.citations[0].quote if answer.citations else ""
    passage = first_passage(question.question, session)
    first = (passage[start:end] for start, end in sentences(passage) if passage[start:end].strip())
    yes_or_no = {fold(gold) for gold in question.answers} <= _YES_NO

    def held(text: str) -> bool:
        return not yes_or_no and holds(text, question.answers)

    return Row(
        fallback=answer.fallback,
        in_values=any(holds(value, question.answers) for value in answer.values),
        in_quote=len(quote) <= QUOTED and held(quote),
        in_answer=held(answer.answer),
        in_sentence=held(next(first, "")),
        in_opening=held(passage[:QUOTED]),
    )


def first_passage(question: str, session: Session) -> str:
    """The text that BM25 alone ranks first; nothing where it finds nothing."""
    scores = session.index.lexicon.scores(question)
    best = int(scores.argmax())
    return session.index.chunks[best].text if scores[best] > 0 else ""
