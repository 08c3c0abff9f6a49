"""`trellis ask` and `trellis retrieve`: one question, or a file of them, each row by itself and in order."""

import asyncio
import json
import logging
import sys
from argparse import Namespace
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, StrictInt, StrictStr, ValidationError

from flows.cli.screen import Screen, error_of, session_of, shorten_errors
from flows.query import answer_question, retrieve_passages
from flows.question import AskOptions
from flows.session import Session
from flows.usage import in_short
from prompts.engine.errors import EngineError
from storage.answer_records import Ambiguity, Answer, Citation, ModeDecision, Retrieval
from storage.errors import TrellisError, UsageError
from storage.filters import check_filter
from tasks.retrieve.pages import FolderRetriever, Retriever
from tasks.rewrite import turns

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
    _check(options)
    if options.record:
        return _recorded(options, screen)
    with session_of(options) as session:
        if options.questions:
            return run_batch(options.questions, _wanted(options), answer_question, session, screen)
        with screen.draft() as on_text:
            wanted = replace(_wanted(options), on_text=on_text)
            answer = asyncio.run(answer_question(options.question, wanted, session))
    show_answer(answer, screen, with_structure=options.structure is not None)
    return 0


def retrieve(options: Namespace, screen: Screen) -> int:
    """List passages; 1 where rows of a batch failed."""
    _check(options)
    wanted = AskOptions(mode=options.mode, k=options.k, where=_where(options), retriever=_pages(options))
    with session_of(options) as session:
        if options.questions:
            return run_batch(options.questions, wanted, retrieve_passages, session, screen)
        found = asyncio.run(retrieve_passages(options.question, wanted, session))
    screen.result(found, lambda: _show_passages(found, screen))
    return 0


def show_answer(
    answer: Answer, screen: Screen, *, with_structure: bool = False, most_sources: int | None = None
) -> None:
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
        f"{supported(answer)} · mode {answer.trace.mode} · structure {structure} "
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
        screen.line(f"{rank}. {passage.title} ({passage.document})", style="bold")
        screen.line(" ".join(passage.text.split()), indent=3)


def _recorded(options: Namespace, screen: Screen) -> int:
    from flows.query import query

    shorten_errors()
    if options.questions:
        raise UsageError("--record records one question.", "Leave out --questions, or --record.")
    run = query(
        options.question, workspace=options.workspace, mode=options.mode, structure=options.structure, k=options.k,
        where=options.where, as_of=options.as_of, pages=options.pages, effort=options.effort, response=options.response,
    )  # fmt: skip
    show_answer(asyncio.run(run), screen, with_structure=options.structure is not None)
    return 0


def _check(options: Namespace) -> None:
    if options.question is not None and not options.question.strip():
        raise UsageError("The question is empty.", "Write it in quotes after the command.")


def _wanted(options: Namespace) -> AskOptions:
    return AskOptions(
        mode=options.mode, structure=options.structure, k=options.k, where=_where(options), retriever=_pages(options),
        level=options.level, effort=options.effort, response=options.response,
    )  # fmt: skip


def _where(options: Namespace) -> tuple[str, ...]:
    """The filter, read before anything is opened: one that cannot be read fails at once, not in each row."""
    if options.where is None:
        return ()
    check_filter(options.where)
    return (options.where,)


def _pages(options: Namespace) -> Retriever | None:
    return FolderRetriever(options.pages) if options.pages else None


AHEAD = 16

Answering = Callable[[str, AskOptions, Session], Awaitable[Answer | Retrieval]]
log = logging.getLogger(__name__)


class Asked(BaseModel):
    """A row of the file; other fields than these are passed over."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    id: StrictStr | StrictInt | None = None
    question: StrictStr = Field(pattern=r"\S")
    documents: tuple[StrictStr, ...] | None = None
    where: StrictStr | None = None
    history: tuple[StrictStr | dict[str, object], ...] = ()


@dataclass(frozen=True)
class Row:
    """One line of the file: what it asks, or what is wrong with it."""

    id: object
    asked: Asked | None = None
    problem: UsageError | None = None


def run_batch(path: str, options: AskOptions, answering: Answering, session: Session, screen: Screen) -> int:
    """Write one JSON line for each row: `id` and the fields of the result, or `id` and `error`; 1 where any failed.

    Raises UsageError where the file cannot be read.
    """
    rows = list(read_rows(path))
    return asyncio.run(_answer_all(rows, options, answering, session, screen))


def read_rows(path: str) -> Iterator[Row]:
    """The rows of a JSON Lines file ("-" for standard input); blank lines are passed over."""
    try:
        text = sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        message = f"The questions in {path} cannot be read: {reason}."
        raise UsageError(message, "Check the path of --questions.") from error
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield _row(line, number)


def _row(line: str, number: int) -> Row:
    try:
        value = json.loads(line)
    except ValueError as error:
        return Row(None, problem=UsageError(f"Line {number} is not JSON: {error}.", "Write one JSON object a line."))
    if not isinstance(value, dict):
        return Row(None, problem=UsageError(f"Line {number} is not a JSON object.", "Write one JSON object a line."))
    try:
        asked = Asked.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = ".".join(str(part) for part in first["loc"])
        problem = UsageError(
            f"Line {number}: {name}: {first['msg']}.", "A row is {id, question, documents?, where?, history?}."
        )
        return Row(value.get("id"), problem=problem)
    return Row(asked.id, asked=asked)


async def _answer_all(
    rows: Sequence[Row], options: AskOptions, answering: Answering, session: Session, screen: Screen
) -> int:
    """Answer up to AHEAD rows at once, and write each as soon as all before it are written."""
    slots = asyncio.Semaphore(AHEAD)

    async def answered(row: Row) -> dict[str, object]:
        async with slots:
            return await _row_answered(row, options, answering, session)

    tasks = [asyncio.create_task(answered(row)) for row in rows]
    failed = 0
    try:
        for task in tasks:
            result = await task
            failed += "error" in result
            screen.json(result)
    finally:
        for task in tasks:
            task.cancel()
    if failed:
        screen.note(f"{failed} of {len(rows)} questions failed.")
    return 1 if failed else 0


async def _row_answered(row: Row, options: AskOptions, answering: Answering, session: Session) -> dict[str, object]:
    if row.asked is None:
        return {"id": row.id, "error": error_of(row.problem or UsageError("The row is empty."))}
    asked = row.asked
    where = (*options.where, asked.where) if asked.where else options.where
    try:
        wanted = replace(options, documents=asked.documents, where=where, history=turns(asked.history))
        result = await answering(asked.question, wanted, session)
    except (TrellisError, EngineError) as error:
        return {"id": row.id, "error": error_of(error)}
    except Exception as error:  # a fault in one question must not cost the answers to the others
        log.warning("question %r failed", row.id, exc_info=True)
        return {"id": row.id, "error": error_of(error)}
    return {"id": row.id, **result.model_dump()}
