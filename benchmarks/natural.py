"""Whether the best excerpts answer natural questions: measured on a handbook, read by hand on our
own documents.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from benchmarks.runner import DATA, Cell, Run, measure, option, share
from benchmarks.sets import index, read_rows, settings_in, write_rows
from flows.query import retrieve_passages
from flows.question import AskOptions
from flows.runtime import open_runtime
from flows.session import Session, open_session
from flows.settings import Settings
from prompts.engine.embedders import cosines
from prompts.offline.excerpts import OfferedPassage, best_excerpts, shown
from prompts.text.segment import sentences
from prompts.text.words import content_terms, terms
from storage.records import Record
from tasks.evaluate.measures import word_recall

CORPUS, QUESTIONS = "natural/medical_corpus.jsonl.gz", "natural/medical_dev_questions.jsonl.gz"
PLAIN = ("Fact Retrieval", "Complex Reasoning")
SHOWN, PASSAGES, POOR = 450, 12, 0.4


class Row(Record):
    """A question with the recall of its answer, and of the two plain ways beside it."""

    kind: str
    abstained: bool
    recall: float
    first: float
    lines: float


@measure(
    option(
        "--own",
        metavar="NAME=WORKSPACE",
        help="print what our own questions over that corpus (docs, seeds) get",
    ),
    files=[CORPUS, QUESTIONS],
    optional=True,
)
def natural(run: Run) -> None:
    """Do the best excerpts answer natural questions over a medical handbook?

    An answer is its first 450 characters as they are shown; its recall is the share of the gold
    answer's content words in them. Beside it stand the first 450 characters of the first passage,
    and fifteen lines that rank sentences by rare words. --own docs=WORKSPACE prints what our own
    questions (`natural_questions.jsonl`) get, to be judged by hand.
    """
    if run.options.own:
        name, _, workspace = run.options.own.partition("=")
        with open_session(
            open_runtime(Settings(workspace=Path(workspace), memory="off"))
        ) as session:
            print("\n".join(own_answers(name, session)))
    if run.options.data is None:
        return
    questions = list(read_rows(run.file(QUESTIONS)))[: run.limit]
    folder = run.workspace("medical")
    write_rows(read_rows(run.file(CORPUS)), folder / "corpus.jsonl")
    with open_session(index([folder / "corpus.jsonl"], settings_in(folder))[0]) as session:
        rows = [_row(question, session) for question in questions]
        spent = _milliseconds([question["question"] for question in questions[:40]], session)
    parts = {"all": rows, "odd places": rows[1::2], "even places": rows[::2]}
    figures = {
        name: figures_of([row for row in part if row.kind in PLAIN]) for name, part in parts.items()
    }
    others = figures_of([row for row in rows if row.kind not in PLAIN])
    run.table(
        f"handbook: choosing the excerpts takes {spent:.1f} CPU ms a question",
        {**figures, "summaries and the like": others},
    )


def offered(question: str, session: Session) -> list[OfferedPassage]:
    """The passages that are found for a question, with the headings in force where they begin."""
    found = asyncio.run(retrieve_passages(question, AskOptions(k=PASSAGES), session)).passages
    headings = {chunk.id: chunk.heading for chunk in session.index.chunks}
    return [
        OfferedPassage(number, passage.title, headings.get(passage.chunk, ""), passage.text)
        for number, passage in enumerate(found, 1)
    ]


def _row(question: Mapping[str, str], session: Session) -> Row:
    rarity = session.index.lexicon.idf_of
    passages = offered(question["question"], session)
    answer = best_excerpts(
        question["question"], passages, rarity, partial(cosines, session.runtime.embedder)
    )
    return Row(
        kind=question["question_type"],
        abstained=not answer.excerpts,
        recall=recall(question["answer"], shown(answer).text),
        first=recall(question["answer"], passages[0].text if passages else ""),
        lines=recall(question["answer"], fifteen_lines(question["question"], passages, rarity)),
    )


def recall(gold: str, answer: str) -> float:
    """The share of the gold answer's content words in what is shown first."""
    return word_recall(answer[:SHOWN], gold)


def fifteen_lines(
    question: str, passages: Sequence[OfferedPassage], rarity: Callable[[str], float]
) -> str:
    """The three best sentences of the first six passages by the question's rare words alone."""
    wanted = content_terms(question)
    ranked: list[tuple[float, str]] = []
    for passage in passages[:6]:
        for start, end in sentences(passage.text):
            held = terms(passage.text[start:end])
            weight = sum(rarity(term) for term in wanted if term in held)
            ranked.append(
                (weight / (1 + 0.02 * len(held)) - 0.03 * passage.number, passage.text[start:end])
            )
    ranked.sort(key=lambda pair: -pair[0])
    return " ".join(text for _, text in ranked[:3])


def _milliseconds(questions: Sequence[str], session: Session) -> float:
    """What choosing costs where the passages have been seen before."""
    found = [(question, offered(question, session)) for question in questions]
    started = time.process_time()
    for question, passages in found:
        best_excerpts(
            question,
            passages,
            session.index.lexicon.idf_of,
            partial(cosines, session.runtime.embedder),
        )
    return 1000 * (time.process_time() - started) / max(len(found), 1)


def figures_of(rows: Sequence[Row]) -> dict[str, Cell]:
    """The figures of some rows."""
    return {
        "questions": len(rows),
        "recall": share([row.recall for row in rows]),
        "first passage": share([row.first for row in rows]),
        "fifteen lines": share([row.lines for row in rows]),
        "poor": share([row.recall < POOR for row in rows]),
        "abstained": share([row.abstained for row in rows]),
    }


def own_answers(corpus: str, session: Session) -> list[str]:
    """Our own questions over a corpus with what would be useful and what is answered."""
    lines = []
    for row in read_rows(DATA / "natural_questions.jsonl"):
        if row["corpus"] == corpus:
            answer = best_excerpts(
                row["question"],
                offered(row["question"], session),
                session.index.lexicon.idf_of,
                partial(cosines, session.runtime.embedder),
            )
            lines += [f"{row['id']}: {row['question']}", f"  useful: {row['useful']}"]
            lines += [shown(answer).text, ""]
    return lines
