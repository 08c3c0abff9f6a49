"""`trellis questions`: make a question set for your documents."""

import asyncio
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from flows.cli.common import COMMON, Common
from flows.cli.options import Count, CountFrom0, Names, names_of
from flows.cli.running import command
from flows.cli.screen import Screen
from flows.operations.question_set import (
    QuestionSetOptions,
    QuestionsReport,
    make_question_set,
)
from flows.usage import facts_of


@command
def questions(
    sources: Annotated[tuple[str, ...], Parameter(metavar="SOURCE")] = (),
    /,
    *,
    output: Annotated[Path, Parameter(name="-o", metavar="FILE")],
    kind: Names = "global",
    number: Annotated[Count, Parameter(name="-n")] = 125,
    seed: CountFrom0 = 0,
    common: Common = COMMON,
) -> int:
    """Make the questions and write them; return 1 if there are fewer than requested.

    Args:
        sources: Files, folders or glob patterns (default: what is indexed).
        output: The file of rows {id, question, answers, gold_documents, …}.
        kind: global (default), single_fact, multi_hop, comparison, unanswerable, cloze.
        number: How many in all (default 125).
        seed: Another number draws other passages.
    """
    screen = common.screen
    options = QuestionSetOptions(names_of(kind), number, seed)
    with screen.progress() as progress:
        runtime = common.runtime(progress, reading=True)
        report = asyncio.run(make_question_set(sources, options, output, runtime))
    screen.result(report, lambda: _show(report, number, screen))
    return int(report.questions < number)


def _show(report: QuestionsReport, wanted: int, screen: Screen) -> None:
    screen.line(f"Wrote {report.questions} questions to {report.path}", style="bold green")
    kinds = ", ".join(f"{count} {kind}" for kind, count in report.kinds.items())
    dropped = f"{report.duplicates} duplicates, {report.rejected} that failed their check"
    facts = {"kinds": kinds, "dropped and replaced": dropped, "usage": report.usage}
    screen.facts(facts_of(facts), indent=2)
    if report.questions < wanted:
        screen.warn(f"The documents gave no more: {wanted} were asked for")
