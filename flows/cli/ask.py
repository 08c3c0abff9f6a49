"""`trellis ask` and `retrieve`, for one question or a file of questions."""

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console
from rich.live import Live
from rich.text import Text

from flows.answer_page import answer_sections
from flows.batch import Answering, answer_rows, read_turns
from flows.cli.common import COMMON, Common
from flows.cli.options import AsOf, Count, CountFrom0, Input, Record
from flows.cli.running import command
from flows.cli.screen import Screen, harmless
from flows.modes.lazy_search import LAZY, forecast_question
from flows.modes.registry import mode_names
from flows.orchestration.local_server import keep_server
from flows.query import answer_question, query, retrieve_passages
from flows.question import AUTO, AskOptions, check_question
from flows.session import Session, open_session
from flows.usage import forecast_in_words
from prompts.engine.effort import Effort
from prompts.engine.streaming import Show, Withdrawn
from storage.answer_records import Answer, Retrieval, StructureType
from storage.errors import UsageError, did_you_mean
from storage.files import text_of_file
from storage.filters import check_filter
from storage.run_records import QuestionForecast
from tasks.retrieve.pages import FolderRetriever


def known_mode(_type: object, mode: str) -> None:
    """Raise ValueError for an unknown mode."""
    if mode not in mode_names():
        near = did_you_mean(mode, mode_names())
        raise ValueError(f"{near}Use one of {', '.join(mode_names())}.")


MODES = ", ".join(f"{name} (default)" if name == AUTO else name for name in mode_names())
Mode = Annotated[str, Parameter(validator=known_mode, metavar="MODE", help=MODES)]
Question = Annotated[str | None, Parameter(help="One question.")]


@Parameter(name="*")
@dataclass(frozen=True)
class SearchArguments:
    """The common options of `ask` and `retrieve`."""

    questions: Input | None = None
    """Rows {id, question, documents?, where?, history?} (- for stdin); one JSON line each."""
    mode: Mode = AUTO
    level: CountFrom0 | None = None
    """The level of the reports that mode global reads; 0 is the broadest."""
    budget: Count | None = None
    """How many passages mode lazy tests for relevance (default: 100, 500, 1500 by effort)."""
    effort: Effort | None = None
    """How much models read (default: TRELLIS_EFFORT, medium)."""
    response: str = ""
    """The form of the answer: "a list", "one paragraph", "in German"."""
    k: Count | None = None
    """At most K passages for an answer (default: what fits), K listed (default 8)."""
    where: str | None = None
    """Only documents with: "year >= 2020 and language = 'en'"."""
    pages: Path | None = None
    """Search the files of this folder in addition to the index."""
    as_of: AsOf = None

    def options(self, question: str | None) -> AskOptions:
        """Convert the arguments to options. Raises UsageError."""
        if (question is None) == (self.questions is None):
            raise UsageError(
                "One question, or a file of them.", "Write QUESTION in quotes, or --questions FILE."
            )
        if question is not None:
            check_question(question)
        if self.where is not None:
            check_filter(self.where)
        return AskOptions(
            mode=self.mode,
            k=self.k,
            level=self.level,
            budget=self.budget,
            where=() if self.where is None else (self.where,),
            effort=self.effort,
            response=self.response,
            retriever=FolderRetriever(self.pages) if self.pages else None,
        )


SEARCH = SearchArguments()


@command
def ask(
    question: Question = None,
    /,
    *,
    asked: SearchArguments = SEARCH,
    structure: StructureType | None = None,
    history: Input | None = None,
    record: Record = False,
    dry_run: bool = False,
    common: Common = COMMON,
) -> int:
    """Answer; return 1 if questions of a file failed.

    Args:
        dry_run: Tell what a question in mode lazy takes at most; asks nothing.
        structure: How the evidence is organised (default: the router chooses).
        history: A file of earlier turns, oldest first: texts or {role, content}, as a list in JSON
            or one JSON line each (- for stdin).
    """
    screen = common.screen
    options = replace(asked.options(question), structure=structure)
    if dry_run:
        with open_session(common.runtime(reading=True), asked.as_of) as session:
            plan = forecast_question(options, session)
        screen.result(plan, lambda: _show_forecast(plan, screen))
        return 0
    if history is not None:
        if question is None or record:
            raise UsageError(
                "--history goes with one QUESTION, without --questions and --record.",
                "Give each row of --questions its own `history`.",
            )
        turns = read_turns(_read(history, "history", "--history"), history)
        options = replace(options, history=turns)
    if record:
        answer = _recorded(question, asked, structure, common.workspace)
    else:
        with open_session(common.runtime(reading=True), asked.as_of) as session:
            if options.mode == LAZY.name and (plan := forecast_question(options, session)).calls:
                screen.note(f"A question takes at most {forecast_in_words(plan)}.")
            if question is None:
                return _answer_file(asked, options, answer_question, session, screen)
            with _live_draft(screen) as on_text:
                drafting = replace(options, on_text=on_text)
                answer = asyncio.run(answer_question(question, drafting, session))
    show_answer(answer, screen, with_structure=structure is not None)
    return 0


def _show_forecast(plan: QuestionForecast, screen: Screen) -> None:
    screen.title("Forecast: nothing was asked")
    facts = [("relevance tests", f"at most {plan.tests:,}"), ("models", forecast_in_words(plan))]
    facts += [(step.step, f"{step.model}: {forecast_in_words(step)}") for step in plan.steps]
    screen.facts(facts, indent=2)


@contextmanager
def _live_draft(screen: Screen) -> Iterator[Show | None]:
    """Show the pieces of a draft on a terminal, and remove it at the end; elsewhere yield None."""
    if screen.as_json or not sys.stdout.isatty():
        yield None
        return
    live = Live(console=Console(file=sys.stdout), transient=True, vertical_overflow="ellipsis")
    draft = ""

    def show(piece: str | Withdrawn) -> None:
        nonlocal draft
        draft = "" if isinstance(piece, Withdrawn) else draft + harmless(piece)
        live.start()  # not earlier: without a model there is no draft
        live.update(Text(draft, style="dim"))

    try:
        yield show
    finally:
        live.stop()


@command
def retrieve(
    question: Question = None, /, *, asked: SearchArguments = SEARCH, common: Common = COMMON
) -> int:
    """List passages; return 1 if questions of a file failed."""
    screen = common.screen
    options = asked.options(question)
    with open_session(common.runtime(reading=True), asked.as_of) as session:
        if question is None:
            return _answer_file(asked, options, retrieve_passages, session, screen)
        result = asyncio.run(retrieve_passages(question, options, session))
    screen.result(result, lambda: _show_passages(result, screen))
    return 0


def _recorded(
    question: str | None,
    asked: SearchArguments,
    structure: StructureType | None,
    workspace: str | None,
) -> Answer:
    if question is None:
        raise UsageError("--record records one question.", "Leave out --questions, or --record.")
    keep_server()
    run = query(
        question,
        workspace=workspace,
        mode=asked.mode,
        structure=structure,
        k=asked.k,
        where=asked.where,
        as_of=asked.as_of,
        level=asked.level,
        budget=asked.budget,
        pages=None if asked.pages is None else str(asked.pages),
        effort=asked.effort,
        response=asked.response,
    )
    answer: Answer = asyncio.run(run)
    return answer


def _answer_file(
    asked: SearchArguments,
    options: AskOptions,
    answering: Answering,
    session: Session,
    screen: Screen,
) -> int:
    """Write one line of JSON for each question of the file; return 1 if any failed."""
    text = _read(asked.questions or "", "questions", "--questions")

    async def answer_all() -> tuple[int, int]:
        rows = failed = 0
        async for row in answer_rows(text, options, answering, session):
            rows, failed = rows + 1, failed + ("error" in row)
            screen.json(row)
        return rows, failed

    rows, failed = asyncio.run(answer_all())
    if failed:
        screen.note(f"{failed} of {rows} questions failed.")
    return int(failed > 0)


def _read(path: str, what: str, option: str) -> str:
    """Read the file of an option. Raises UsageError."""
    try:
        return sys.stdin.read() if path == "-" else text_of_file(path)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise UsageError(
            f"The {what} in {path} cannot be read: {reason}.", f"Check the path of {option}."
        ) from error


def show_answer(answer: Answer, screen: Screen, *, with_structure: bool = False) -> None:
    """Show an answer, its sources and how it was found."""
    if screen.as_json:
        screen.json(answer)
        return
    screen.title(answer.answer)
    for section in answer_sections(answer, with_structure):
        screen.line()
        if section.title:
            screen.title(section.title)
        screen.rows(section.lines, indent=0, style=section.style)


def _show_passages(result: Retrieval, screen: Screen) -> None:
    if not result.passages:
        screen.line("No passage has anything in common with the question.", style="yellow")
    for rank, passage in enumerate(result.passages, 1):
        screen.title(f"{rank}. {passage.title} ({passage.document})")
        if passage.also:
            screen.line(f"also in {', '.join(passage.also)}", indent=3)
        screen.line(" ".join(passage.text.split()), indent=3)
