"""`trellis ask` and `trellis retrieve`: one question, or a file of them."""

import asyncio
from argparse import Namespace
from dataclasses import replace
from typing import TYPE_CHECKING

from flows.cli.opening import session_of
from flows.cli.screen import Screen
from flows.usage import in_short
from storage.errors import UsageError
from storage.filters import parse
from storage.records import Ambiguity, Answer, Citation, ModeDecision, Retrieval

if TYPE_CHECKING:
    from flows.asking import AskOptions
    from tasks.retrieve.pages import Retriever

FALLBACKS = {
    "none": "supported by the sources above",
    "partial": "partly supported by the sources above",
    "ungrounded": "from the model alone: no source supports it",
    "abstained": "the documents do not say",
}
EXCERPTS = {
    "none": "the excerpts hold what is asked for",
    "partial": "the excerpts that come nearest",
    "abstained": "the documents do not speak of this",
}
MOST_FLAGGED = 3


def ask(options: Namespace, screen: Screen) -> int:
    """Answer; 1 where rows of a batch failed."""
    from flows.asking import answer_question
    from flows.cli.batch import run_batch

    _check(options)
    if options.record:
        return _recorded(options, screen)
    with session_of(options) as session:
        if options.questions:
            return run_batch(options.questions, _wanted(options), answer_question, session, screen)
        with screen.draft() as on_text:
            wanted = replace(_wanted(options), on_text=on_text)
            answer = asyncio.run(answer_question(options.question, wanted, session))
    show(answer, screen, with_structure=options.structure is not None)
    return 0


def retrieve(options: Namespace, screen: Screen) -> int:
    """List passages; 1 where rows of a batch failed."""
    from flows.asking import AskOptions, retrieve_passages
    from flows.cli.batch import run_batch

    _check(options)
    wanted = AskOptions(mode=options.mode, k=options.k, where=_where(options), retriever=_pages(options))
    with session_of(options) as session:
        if options.questions:
            return run_batch(options.questions, wanted, retrieve_passages, session, screen)
        found = asyncio.run(retrieve_passages(options.question, wanted, session))
    if screen.as_json:
        screen.json(found)
    else:
        _show_passages(found, screen)
    return 0


def show(answer: Answer, screen: Screen, *, with_structure: bool = False, most_sources: int | None = None) -> None:
    """The answer, its sources (or the first of them), the structure where it was asked for, and how it was found."""
    if screen.as_json:
        screen.json(answer)
        return
    screen.line(answer.answer, style="bold")
    _show_sources(answer, screen, most_sources)
    for one in answer.trace.structures if with_structure else ():
        screen.line()
        screen.line(one.description, style="bold")
        for line in one.text.splitlines():
            screen.line(line, indent=2)
    for sentence in unsupported(answer)[:MOST_FLAGGED]:
        screen.line(f"no source supports: {sentence}", style="yellow")
    for open_to in answer.trace.ambiguity:
        screen.line(ambiguous(open_to), style="yellow")
    route = answer.trace.route
    structure = answer.trace.structure or route.type
    screen.line()
    screen.line(
        f"{answer.fallback}: {supported(answer)} · mode {answer.trace.mode} · structure {structure} "
        f"· generation {answer.generation} · {answer.usage.seconds:.2f} s",
        style="dim",
    )
    if answer.trace.decision is not None:
        screen.line(decided(answer.trace.decision), style="dim")
    if used := in_short(answer.usage):
        screen.line(used, style="dim")


def supported(answer: Answer) -> str:
    """How well the answer is supported, in words."""
    excerpts = answer.trace.answered_by == "excerpts" and answer.fallback in EXCERPTS
    return EXCERPTS[answer.fallback] if excerpts else FALLBACKS[answer.fallback]


def unsupported(answer: Answer) -> list[str]:
    """The sentences that no source supports, each on one line."""
    flagged = [row for row in answer.grounding if row.supported is False]
    return [" ".join(answer.answer[row.start : row.end].split()) for row in flagged]


def _show_sources(answer: Answer, screen: Screen, most: int | None) -> None:
    """The cited places, and the community reports that gave something."""
    if answer.citations:
        screen.line()
    for citation in answer.citations[:most]:
        screen.line(cited(citation))
    if most is not None and len(answer.citations) > most:
        screen.line(f"and {len(answer.citations) - most} sources more", style="dim")
    if told := [one for one in answer.trace.reports if one.points]:
        screen.line()
        screen.line("from the reports", style="bold")
    for report in told[:most]:
        screen.line(f"{report.community} {report.title} (level {report.level})")


def decided(decision: ModeDecision) -> str:
    """Why this mode, on one line."""
    others = "".join(f"; {one.mode} gave nothing" for one in decision.tried)
    return f"mode chosen: {decision.reason}{others}"


def ambiguous(one: Ambiguity) -> str:
    """What a question leaves open, on one line."""
    if not one.readings:
        return f'ambiguous: "{one.text}" stands for nothing that was named'
    others = "; ".join(reading for reading in one.readings if reading != one.taken)
    return f'ambiguous: "{one.text}" was read as {one.taken}, not as {others}'


def cited(citation: Citation) -> str:
    """A source on one line: where it is, and what it says."""
    marker = citation.marker if citation.marker.startswith("[") else f"[{citation.marker}]"
    page = f", p. {citation.page}" if citation.page else ""
    title = f"{citation.title} ({citation.document}{page})" if citation.title else f"{citation.document}{page}"
    return f'{marker} {title}: "{" ".join(citation.quote.split())}"'


def _show_passages(found: Retrieval, screen: Screen) -> None:
    if not found.passages:
        screen.line("No passage has anything in common with the question.", style="yellow")
    for rank, passage in enumerate(found.passages, 1):
        screen.line(f"{rank}. {passage.title} ({passage.document})  {passage.score:.3f}", style="bold")
        screen.line(" ".join(passage.text.split()), indent=3)


def _recorded(options: Namespace, screen: Screen) -> int:
    from flows.cli.recorded import shorten_errors
    from flows.query import query

    shorten_errors()
    if options.questions:
        raise UsageError("--record records one question.", "Leave out --questions, or --record.")
    run = query(
        options.question, workspace=options.workspace, mode=options.mode, structure=options.structure, k=options.k,
        where=options.where, as_of=options.as_of, pages=options.pages, effort=options.effort, response=options.response,
    )  # fmt: skip
    show(asyncio.run(run), screen, with_structure=options.structure is not None)
    return 0


def _check(options: Namespace) -> None:
    if options.question is not None and not options.question.strip():
        raise UsageError("The question is empty.", "Write it in quotes after the command.")


def _wanted(options: Namespace) -> "AskOptions":
    from flows.asking import AskOptions

    return AskOptions(
        mode=options.mode, structure=options.structure, k=options.k, where=_where(options), retriever=_pages(options),
        level=options.level, effort=options.effort, response=options.response,
    )  # fmt: skip


def _where(options: Namespace) -> tuple[str, ...]:
    """The filter, read before anything is opened: one that cannot be read fails at once, not in each row."""
    if options.where is None:
        return ()
    parse(options.where)
    return (options.where,)


def _pages(options: Namespace) -> "Retriever | None":
    from tasks.retrieve.pages import FolderRetriever

    return FolderRetriever(options.pages) if options.pages else None
