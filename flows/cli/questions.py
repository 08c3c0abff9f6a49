"""`trellis questions`: a question set for one's own documents."""

import asyncio
import time
from argparse import Namespace
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from flows.cli.screen import Screen, runtime_of
from flows.runtime import Runtime, usage_of
from flows.usage import facts_of
from storage.records import Chunk, Record
from storage.run_records import Usage
from tasks.chunk import chunk
from tasks.load.sources import compose, load
from tasks.question_sets.load import write_questions
from tasks.question_sets.synthesize import MadeQuestions, make_questions


class QuestionsReport(Record):
    """What was made: how many of each kind, what was dropped and made up for, and what it took."""

    path: str
    questions: int
    kinds: dict[str, int]
    duplicates: int
    rejected: int
    usage: Usage


def questions(options: Namespace, screen: Screen) -> int:
    """Make the questions and write them; 1 where the documents gave fewer than were asked for."""
    started = time.monotonic()
    with screen.progress() as progress:
        runtime = runtime_of(options, progress, reading=True)
        made = asyncio.run(_made(options, runtime))
    path = Path(options.o)
    write_questions(made.questions, path)
    report = QuestionsReport(
        path=str(path), questions=len(made.questions), kinds=Counter(question.kind for question in made.questions),
        duplicates=made.duplicates, rejected=made.rejected,
        usage=usage_of(runtime.models.meter, time.monotonic() - started),
    )  # fmt: skip
    screen.result(report, lambda: _show(report, options.n, screen))
    return int(report.questions < options.n)


async def _made(options: Namespace, runtime: Runtime) -> MadeQuestions:
    chunks = await _chunks(options.sources, runtime)
    return await make_questions(chunks, options.kind.split(","), options.n, runtime.models, options.seed)


async def _chunks(sources: Sequence[str], runtime: Runtime) -> list[Chunk]:
    """The chunks of the sources, cut as an index run cuts them; without sources those of the current generation."""
    if not sources:
        with runtime.workspace.read() as generation:
            return generation.documents.chunks()
    loaded = await load(sources)
    return await chunk(compose(loaded.parts), runtime.settings.chunk_tokens, runtime.settings.chunk_overlap)


def _show(report: QuestionsReport, wanted: int, screen: Screen) -> None:
    screen.line(f"Wrote {report.questions} questions to {report.path}", style="bold green")
    kinds = ", ".join(f"{count} {kind}" for kind, count in report.kinds.items())
    dropped = f"{report.duplicates} like others, {report.rejected} that failed their check"
    screen.facts(facts_of({"kinds": kinds, "dropped and made up for": dropped, "usage": report.usage}), indent=2)
    if report.questions < wanted:
        screen.line(f"The documents gave no more: {wanted} were asked for", indent=2, style="yellow")
