"""Whether questions over many financial reports are answered exactly."""

import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.loong_rule import LEVELS, is_right
from benchmarks.runner import Cell, Run, measure, names_of, option, share
from benchmarks.sets import index, read_rows, settings_in, write_rows
from flows.query import answer_question
from flows.question import AskOptions
from flows.session import Session, open_session
from prompts.text.words import is_han
from storage.answer_records import Answer
from storage.evaluation_records import EvaluationQuestion
from storage.records import Record

QUESTIONS, DOCUMENTS = (f"router/loong_financial_{name}.jsonl.gz" for name in ("questions", "docs"))
MODES: dict[str, AskOptions] = {
    "full": AskOptions(mode="struct"),
    "chunk": AskOptions(structure="chunk"),
    "naive": AskOptions(mode="naive"),
}


class Result(Record):
    """How one question was answered, and the seconds that it took, by the clock and of the
    processor.
    """

    question: EvaluationQuestion
    right: bool
    answer: Answer
    wall: float
    cpu: float


@measure(
    option(
        "--modes",
        type=names_of(MODES),
        default=list(MODES),
        metavar="A,B",
        help=f"ways of asking: {', '.join(MODES)}",
    ),
    option("--embedding", default="bundled", help="as in the settings (bundled; none is faster)"),
    files=[QUESTIONS, DOCUMENTS],
)
def loong(run: Run) -> None:
    """Are questions over many financial reports answered exactly, and what does it cost?

    Loong's financial questions of its four tasks, each asked over its own documents, offline:
    `full` lets the structure be chosen, `chunk` fixes it to passages, `naive` is plain vector and
    word search. Exact match by task and language; the rule is stated in benchmarks/loong_rule.py
    and is ours.
    """
    options = run.options
    questions = questions_in(options.data)[: run.limit]
    said = [is_right(question, (), question.answers[0]) for question in questions]
    run.table(
        "the gold answers by the rule, as bare text",
        {"all": {"questions": len(said), "right": share(said)}},
    )
    folder = run.workspace("loong")
    wanted = {name for question in questions for name in question.gold_documents}
    reports = [row for row in read_rows(run.file(DOCUMENTS)) if options.keep or row["id"] in wanted]
    write_rows(
        ({name: row[name] for name in ("id", "title", "text")} for row in reports),
        folder / "corpus.jsonl",
    )
    runtime, _ = index([folder / "corpus.jsonl"], settings_in(folder, embedding=options.embedding))
    with open_session(runtime) as session:
        session.warm()
        for mode in options.modes:
            results = asyncio.run(answered(questions, MODES[mode], session))
            run.table(f"{mode}: exact match", exact_match(results))
            usages = [result.answer.usage for result in results]
            cost = {
                "seconds": share([result.wall for result in results]),
                "CPU s": share([result.cpu for result in results]),
                "excerpts": share(
                    [result.answer.trace.answered_by == "excerpts" for result in results]
                ),
                "calls": share([usage.calls for usage in usages]),
                "tokens": share([usage.input_tokens + usage.output_tokens for usage in usages]),
            }
            run.table(f"{mode}: a question", {"mean": cost})
            run.show(line for result in results for line in shown(result))


def questions_in(data: Path) -> list[EvaluationQuestion]:
    """Loong's financial questions."""
    return [
        EvaluationQuestion(
            id=row["id"],
            question=row["question"],
            kind=LEVELS[row["level"] - 1],
            group=f"set {row['set']}",
            answers=(_text(row["answer"]),),
            gold_documents=tuple(row["doc_ids"]),
            documents=tuple(row["doc_ids"]),
            names=tuple(row["doc"]),
        )
        for row in read_rows(data / QUESTIONS)
    ]


def _text(answer: object) -> str:
    return answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)


def language_in(question: EvaluationQuestion) -> str:
    """By its script."""
    return "zh" if is_han(question.question) else "en"


async def answered(
    questions: Sequence[EvaluationQuestion], options: AskOptions, session: Session
) -> list[Result]:
    """Every question in one mode."""
    results = []
    for question in questions:
        wall, cpu = time.monotonic(), time.process_time()
        answer = await answer_question(
            question.question, replace(options, documents=question.documents), session
        )
        wall, cpu = time.monotonic() - wall, time.process_time() - cpu
        right = is_right(question, answer.values, answer.answer)
        results.append(Result(question=question, right=right, answer=answer, wall=wall, cpu=cpu))
    return results


def exact_match(results: Sequence[Result]) -> dict[str, dict[str, Cell]]:
    """The share of right answers by task, and of those in each language."""
    rows: dict[str, dict[str, Cell]] = {}
    for kind in [
        kind for kind in LEVELS if any(result.question.kind == kind for result in results)
    ]:
        own = [result for result in results if result.question.kind == kind]
        rows[kind] = {"questions": len(own), "right": share([result.right for result in own])}
        for language in ("en", "zh"):
            rows[kind][language] = share(
                [one.right for one in own if language_in(one.question) == language]
            )
    return rows


def shown(result: Result) -> list[str]:
    """A question with its gold answer and what was answered."""
    question, answer = result.question, result.answer
    return [
        f"{'RIGHT' if result.right else 'WRONG'} {question.kind} {question.question}",
        f"   gold:     {question.answers[0]}",
        f"   answered: {list(answer.values)} [{answer.trace.structure}, {answer.fallback}]",
        *(f"             {line}" for line in answer.answer.splitlines()[:9]),
    ]
