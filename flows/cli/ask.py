"""`trellis ask` and `retrieve`: one question, or a file of them, each row by itself and in order."""

import asyncio
import json
import logging
import sys
from argparse import Namespace
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from pydantic import BaseModel, ConfigDict, Field, StrictInt, StrictStr, ValidationError

from flows.cli.screen import Screen, runtime_of
from flows.modes.registry import check_mode
from flows.query import answer_question, retrieve_passages
from flows.question import AskOptions, check_question
from flows.session import Session, open_session
from flows.usage import error_of, in_place_of, in_short, source_line
from prompts.engine.errors import EngineError
from storage.answer_records import Ambiguity, Answer, Retrieval
from storage.errors import TrellisError, UsageError
from storage.files import text_of_file
from tasks.retrieve.pages import FolderRetriever
from tasks.rewrite import turns

FALLBACKS = {
    "none": "supported by the sources above",
    "partial": "partly supported by the sources above",
    "ungrounded": "from the model alone: no source supports it",
    "abstained": "the documents do not say",
}
EXCERPTS = {
    "partial": "excerpts, not an answer: no model has read them",
    "abstained": "nothing was found that speaks of this",
}
UNCOMPARED = "cites the sources above; whether they support it cannot be told by words"
BOUND_BY_PROGRAM = "the model named no source: these are the sentences that say the same"
MOST_FLAGGED = 3
HISTORY_FORM = (
    'Write a list of turns, oldest first: texts, or {"role": "user" or "assistant", "content": its text}; '
    "or one of them a line."
)


def ask(options: Namespace, screen: Screen) -> int:
    """Answer; 1 where rows of a batch failed."""
    wanted = _wanted(options)
    if options.record:
        answer = _recorded(options)
    else:
        with open_session(runtime_of(options, reading=True), options.as_of) as session:
            if options.questions:
                return run_batch(options.questions, wanted, answer_question, session, screen)
            with screen.draft() as on_text:
                answer = asyncio.run(answer_question(options.question, replace(wanted, on_text=on_text), session))
    show_answer(answer, screen, with_structure=options.structure is not None)
    return 0


def retrieve(options: Namespace, screen: Screen) -> int:
    """List passages; 1 where rows of a batch failed."""
    wanted = _wanted(options)
    with open_session(runtime_of(options, reading=True), options.as_of) as session:
        if options.questions:
            return run_batch(options.questions, wanted, retrieve_passages, session, screen)
        result = asyncio.run(retrieve_passages(options.question, wanted, session))
    screen.result(result, lambda: _show_passages(result, screen))
    return 0


def _wanted(options: Namespace) -> AskOptions:
    """What was typed; what cannot be meant fails here, before anything is opened."""
    if (options.question is None) == (options.questions is None):
        raise UsageError("One question, or a file of them.", "Write QUESTION in quotes, or --questions FILE.")
    check_mode(options.mode)
    if options.question is not None:
        check_question(options.question)
    history = getattr(options, "history", None)
    if history is not None and (options.question is None or options.record):
        raise UsageError(
            "--history goes with one QUESTION, without --questions and --record.",
            "Give each row of --questions its own `history`.",
        )
    if options.where is not None:
        from storage.filters import check_filter

        check_filter(options.where)
    return AskOptions(
        mode=options.mode, structure=getattr(options, "structure", None), k=options.k, level=options.level,
        where=() if options.where is None else (options.where,), effort=options.effort, response=options.response,
        retriever=FolderRetriever(options.pages) if options.pages else None,
        history=_history(history) if history is not None else (),
    )  # fmt: skip


def _history(path: str) -> tuple[str, ...]:
    """The turns in a file: one list in JSON, or a line of JSON for each; "-" is standard input."""
    text = _text_of(path, "history", "--history")
    try:
        rows = json.loads(text) if text.lstrip().startswith("[") else None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"The history in {path} is no list in JSON: {error}.", HISTORY_FORM) from error
    if rows is not None:
        return turns(rows)
    rows = []
    for number, line in enumerate(text.split("\n"), 1):
        try:
            rows += [json.loads(line)] if line.strip() else []
        except (ValueError, RecursionError) as error:
            raise UsageError(f"{path}, line {number} is no JSON: {error}.", HISTORY_FORM) from error
    return turns(rows)


def _text_of(path: str, what: str, option: str) -> str:
    """A file of JSON that an option names. Raises UsageError where it cannot be read."""
    try:
        return sys.stdin.read() if path == "-" else text_of_file(path)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise UsageError(f"The {what} in {path} cannot be read: {reason}.", f"Check the path of {option}.") from error


def _recorded(options: Namespace) -> Answer:
    from flows.orchestration.local_server import keep_server
    from flows.query import query

    if options.questions:
        raise UsageError("--record records one question.", "Leave out --questions, or --record.")
    keep_server()
    run = query(
        options.question, workspace=options.workspace, mode=options.mode, structure=options.structure, k=options.k,
        where=options.where, as_of=options.as_of, pages=options.pages, effort=options.effort, response=options.response,
    )  # fmt: skip
    return asyncio.run(run)


def show_answer(
    answer: Answer, screen: Screen, *, with_structure: bool = False, most_sources: int | None = None
) -> None:
    """The answer, its sources (or the first of them), the structure where it was asked for, and how it was found."""
    if screen.as_json:
        screen.json(answer)
        return
    trace = answer.trace
    screen.line(answer.answer, style="bold")
    if answer.citations:
        screen.line()
        screen.rows([source_line(citation) for citation in answer.citations], most_sources, indent=0, more=" sources")
        if any(citation.bound_by == "program" for citation in answer.citations):
            screen.line(BOUND_BY_PROGRAM, style="yellow")
    if used_reports := [report for report in trace.reports if report.points]:
        screen.line()
        screen.line("from the reports", style="bold")
        titles = [f"{report.community} {report.title} (level {report.level})" for report in used_reports]
        screen.rows(titles, most_sources, indent=0)
    for structure in trace.structures if with_structure else ():
        screen.line()
        screen.line(structure.description, style="bold")
        screen.rows(structure.text.splitlines(), None)
    flagged = [answer.answer[row.start : row.end] for row in answer.grounding if row.supported is False]
    for sentence in flagged[:MOST_FLAGGED]:
        screen.line(f"no source supports: {' '.join(sentence.split())}", style="yellow")
    screen.rows([_open_question(ambiguity) for ambiguity in trace.ambiguity], None, indent=0, style="yellow")
    screen.line()
    supported = (EXCERPTS if trace.answered_by == "excerpts" else FALLBACKS)[answer.fallback]
    supported = UNCOMPARED if answer.is_uncompared else supported
    screen.line(
        f"{supported} · mode {trace.mode} · structure {trace.structure or trace.route.type} "
        f"· generation {answer.generation} · {answer.usage.seconds:.2f} s",
        style="dim",
    )
    if trace.decision is not None:
        others = "".join(f"; {mode.mode} gave nothing" for mode in trace.decision.tried)
        screen.line(f"mode chosen: {trace.decision.reason}{others}", style="dim")
    for row in trace.degraded:
        screen.line(f"{row.step}: {in_place_of(row)}", style="yellow")
    if used := in_short(answer.usage):
        screen.line(used, style="dim")


def _open_question(ambiguity: Ambiguity) -> str:
    """What a question leaves open, on one line."""
    if not ambiguity.readings:
        return f'ambiguous: "{ambiguity.text}" stands for nothing that was named'
    others = "; ".join(reading for reading in ambiguity.readings if reading != ambiguity.taken)
    return f'ambiguous: "{ambiguity.text}" was read as {ambiguity.taken}, not as {others}'


def _show_passages(result: Retrieval, screen: Screen) -> None:
    if not result.passages:
        screen.line("No passage has anything in common with the question.", style="yellow")
    for rank, passage in enumerate(result.passages, 1):
        screen.line(f"{rank}. {passage.title} ({passage.document})", style="bold")
        if passage.also:
            screen.line(f"also in {', '.join(passage.also)}", indent=3)
        screen.line(" ".join(passage.text.split()), indent=3)


AHEAD = 16
ROW_FORM = "{id, question, documents?, where?, history?}, one JSON object a line"

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


def run_batch(path: str, options: AskOptions, answering: Answering, session: Session, screen: Screen) -> int:
    """Write one JSON line for each row: `id` and the fields of the result, or `id` and `error`; 1 where any failed.

    Blank lines are passed over; "-" is standard input. Raises UsageError where the file cannot be read.
    """
    text = _text_of(path, "questions", "--questions")
    lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    return asyncio.run(_answer_all(lines, options, answering, session, screen))


async def _answer_all(
    lines: Sequence[tuple[int, str]], options: AskOptions, answering: Answering, session: Session, screen: Screen
) -> int:
    """Answer up to AHEAD rows at once, and write each as soon as all before it are written."""
    slots = asyncio.Semaphore(AHEAD)

    async def answered(number: int, line: str) -> dict[str, object]:
        row: object = None
        try:
            row = json.loads(line)
            asked = Asked.model_validate(row)
            where = (*options.where, asked.where) if asked.where else options.where
            wanted = replace(options, documents=asked.documents, where=where, history=turns(asked.history))
            async with slots:
                return {"id": asked.id, **(await answering(asked.question, wanted, session)).model_dump()}
        except Exception as error:  # a fault in one question must not cost the answers to the others
            name = row.get("id") if isinstance(row, dict) and isinstance(row.get("id"), str | int) else None
            if isinstance(error, ValidationError):
                first = error.errors(include_url=False)[0]
                place = ".".join(map(str, first["loc"]))
                error = UsageError(f"Line {number}: {place}: {first['msg']}.", f"A row is {ROW_FORM}.")
            elif isinstance(error, ValueError | RecursionError) and row is None:
                error = UsageError(f"Line {number}: {error}", f"A row is {ROW_FORM}.")
            elif not isinstance(error, TrellisError | EngineError):
                log.warning("question %r failed", name, exc_info=True)
            return {"id": name, "error": error_of(error)}

    tasks = [asyncio.create_task(answered(number, line)) for number, line in lines]
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
        screen.note(f"{failed} of {len(lines)} questions failed.")
    return 1 if failed else 0
