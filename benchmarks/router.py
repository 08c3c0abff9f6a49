"""How well the rules without a model tell which structure a question needs, and whether it is about
the whole.
"""

import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from benchmarks.runner import DATA, Cell, Run, measure, option, share
from benchmarks.sets import read_rows
from prompts.offline.route import (
    LEAST_WHOLE,
    STRUCTURES,
    SURELY_PART,
    SURELY_WHOLE,
    ranked,
    whole_offline,
)
from prompts.text.question import is_plain, parse_question
from storage.answer_records import StructureType
from storage.records import Record

PUBLISHED = "router/structrag_router_test.jsonl.gz"


class RoutedQuestion(Record):
    """A question over documents with these titles (the paper's core content), and the type that it
    needs.
    """

    id: str = ""
    question: str
    documents: tuple[str, ...] = ()
    language: str
    type: StructureType


@measure(
    option(
        "--dev",
        action="store_true",
        help="the development questions instead of the lists kept aside",
    ),
    files=[PUBLISHED],
    optional=True,
)
def router(run: Run) -> None:
    """How often do the rules choose the structure that a question's kind of task needs?

    60 balanced questions (6 × 5 types × 2 languages); --dev takes the questions that the weights
    were fitted to. --data adds StructRAG's 181 published rows: they are English → graph and Chinese
    → chunk or table, so a router that only tells the language does well there; that is why they are
    shown by language.
    """
    balanced = "router_dev" if run.options.dev else "router_questions"
    rows = [RoutedQuestion.model_validate(row) for row in read_rows(DATA / f"{balanced}.jsonl")]
    report(run, balanced, rows[: run.limit])
    if run.options.data is not None:
        published = [
            RoutedQuestion(question=row["query"], language=row["language"], type=row["chosen"])
            for row in read_rows(run.file(PUBLISHED))
        ]
        report(run, "published rows", published[: run.limit])


def report(run: Run, name: str, rows: Sequence[RoutedQuestion]) -> None:
    """Accuracy overall, by language and type, and what was taken for what."""
    started = time.process_time()
    structures = [routed(row.question) for row in rows]
    spent = 1000 * (time.process_time() - started) / max(len(rows), 1)
    pairs = list(zip(rows, structures, strict=True))
    table: dict[str, dict[str, Cell]] = {}
    for language in ["", *sorted({row.language for row in rows})]:
        own = [(row, structure) for row, structure in pairs if language in ("", row.language)]
        table[language or "all"] = {
            "questions": len(own),
            "right": share([row.type == structure for row, structure in own]),
            **{
                kind: share([kind == structure for row, structure in own if row.type == kind])
                for kind in STRUCTURES
            },
        }
    run.table(f"{name}: {spent:.2f} CPU ms each", table)
    # What the sparing of calls rests on (`prompts.route.Route`).
    plain = [
        row.type == "chunk"
        for row, structure in pairs
        if structure == "chunk" and is_plain(parse_question(row.question))
    ]
    spared = {"questions": len(plain), "right": share(plain)}
    run.table(f"{name}: plain single facts, of which no model is asked", {"chunk": spared})
    counted = Counter((row.type, structure) for row, structure in pairs)
    run.table(
        f"{name}: needed → chosen",
        {kind: {to: counted[kind, to] for to in STRUCTURES} for kind in STRUCTURES},
    )


def routed(question: str) -> str:
    """The structure that the rules choose for a question."""
    return ranked(parse_question(question), tabular=False)[0].label


@measure(
    option(
        "--list",
        type=Path,
        default=DATA / "auto_questions.jsonl",
        metavar="FILE",
        help="another list",
    )
)
def auto(run: Run) -> None:
    """How often do the rules tell a question about a whole collection from one about a part of it?

    On `auto_questions.jsonl` nothing was tuned. "In doubt": a model would be asked where there is
    one; without one such a question is searched first, and asked of the whole collection if the
    search finds no answer.
    """
    rows = list(read_rows(run.options.list))[: run.limit]
    table = {}
    for language, family in sorted({(row["language"], row["family"]) for row in rows}):
        shares = [
            whole_offline(parse_question(row["question"]))
            for row in rows
            if (row["language"], row["family"]) == (language, family)
        ]
        table[f"{language} {family}"] = {
            "questions": len(shares),
            "right": share([(whole >= LEAST_WHOLE) == (family == "whole") for whole in shares]),
            "in doubt": share([SURELY_PART < whole < SURELY_WHOLE for whole in shares]),
        }
    run.table("the whole or a part", table)
