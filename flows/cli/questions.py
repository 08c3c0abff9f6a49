"""`trellis questions`: a question set for one's own documents."""

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from flows.cli.options import Count, CountFrom0, Names, names_of
from flows.cli.screen import COMMON, Common, Screen
from flows.runtime import Runtime, usage_of
from flows.usage import facts_of
from storage.records import Chunk, Record
from storage.run_records import Usage
from tasks.chunk import chunk
from tasks.load.sources import compose, load
from tasks.question_sets.load import write_questions
from tasks.question_sets.synthesize import make_questions


class QuestionsReport(Record):
    """How many questions of each kind, what was dropped and made up for, and what it took."""

    path: str
    questions: int
    kinds: dict[str, int]
    duplicates: int
    rejected: int
    usage: Usage


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
    """Make the questions and write them; 1 where the documents gave fewer than were asked for.

    Args:
        sources: Files, folders or glob patterns (default: what is indexed).
        output: The file of rows {id, question, answers, gold_documents, …}.
        kind: global (default), single_fact, multi_hop, comparison, unanswerable, cloze.
        number: How many in all (default 125).
        seed: Another number, other passages.
    """
    screen, started = common.screen, time.monotonic()
    with screen.progress() as progress:
        runtime = common.runtime(progress, reading=True)
        chunks = asyncio.run(_chunks(sources, runtime))
        making = make_questions(chunks, names_of(kind), number, runtime.models, seed)
        made = asyncio.run(making)
    write_questions(made.questions, output)
    report = QuestionsReport(
        path=str(output),
        questions=len(made.questions),
        kinds=Counter(question.kind for question in made.questions),
        duplicates=made.duplicates,
        rejected=made.rejected,
        usage=usage_of(runtime.models.meter, time.monotonic() - started),
    )
    screen.result(report, lambda: _show(report, number, screen))
    return int(report.questions < number)


async def _chunks(sources: Sequence[str], runtime: Runtime) -> list[Chunk]:
    """The chunks of the sources, as an index run cuts them; without sources the stored ones."""
    if not sources:
        with runtime.workspace.read() as generation:
            return generation.documents.chunks()
    loaded = await load(sources)
    settings = runtime.settings
    return await chunk(compose(loaded.parts), settings.chunk_tokens, settings.chunk_overlap)


def _show(report: QuestionsReport, wanted: int, screen: Screen) -> None:
    screen.line(f"Wrote {report.questions} questions to {report.path}", style="bold green")
    kinds = ", ".join(f"{count} {kind}" for kind, count in report.kinds.items())
    dropped = f"{report.duplicates} like others, {report.rejected} that failed their check"
    facts = {"kinds": kinds, "dropped and made up for": dropped, "usage": report.usage}
    screen.facts(facts_of(facts), indent=2)
    if report.questions < wanted:
        line = f"The documents gave no more: {wanted} were asked for"
        screen.warn(line)
