"""`trellis watch`: questions that are asked again after every publication."""

import asyncio
from typing import Annotated

from cyclopts import App, Parameter

from flows.cli.ask import Mode
from flows.cli.common import COMMON, Common
from flows.cli.options import OPTIONS
from flows.cli.running import command
from flows.cli.screen import Screen
from flows.operations import watch as watching
from flows.question import AUTO
from flows.usage import change_in_words
from storage.evaluation_records import WatchedQuestion

EPILOGUE = """\
Examples:
  trellis watch                     their last answers, and how they changed
  trellis watch add "Who is director of the institute?"
  trellis watch run                 ask them now
  trellis watch remove wat_3f2a91"""

watch = App(
    name="watch",
    help="Keep questions that are asked again after every publication.",
    help_epilogue=EPILOGUE,
    default_parameter=OPTIONS,
)


@watch.default
@command
def show(*, common: Common = COMMON) -> None:
    """List the watched questions with their latest answers."""
    screen = common.screen
    rows = common.runtime().workspace.database.watched.list()
    screen.result(rows, lambda: _show(rows, screen))


@watch.command
@command
def add(*question: str, mode: Mode = AUTO, common: Common = COMMON) -> None:
    """Watch a question, and ask it now if the workspace has an index.

    Args:
        question: The question, with or without quotes.
    """
    runtime = common.runtime()
    kept = watching.watch(" ".join(question), mode, runtime)
    if runtime.workspace.current() is not None:  # Later answers are compared with this one.
        asyncio.run(watching.ask_watched(runtime, kept.id))
    shown = kept.model_dump(include={"id", "question", "mode"})
    common.screen.result(shown, f"Watched: {kept.id} {kept.question}", without=shown)


@watch.command
@command
def remove(name: Annotated[str, Parameter(metavar="ID")], /, *, common: Common = COMMON) -> None:
    """Stop watching a question.

    Args:
        name: The id of the question, as `trellis watch` lists it.
    """
    common.runtime().workspace.database.watched.remove(name)
    shown = {"removed": name}
    common.screen.result(shown, f"{name} is not watched any more", without=shown)


@watch.command
@command
def run(*, common: Common = COMMON) -> None:
    """Ask the watched questions now and show the changed answers."""
    screen = common.screen
    changed = asyncio.run(watching.ask_watched(common.runtime()))
    lines = [line for change in changed for line in change_in_words(change)]
    screen.result(changed, lambda: screen.rows(lines or ["No answer has changed."], indent=0))


def _show(rows: list[WatchedQuestion], screen: Screen) -> None:
    for row in rows:
        screen.title(f"{row.id}  {row.question}")
        answer = "not asked yet"
        if row.answer is not None:
            answer = f"generation {row.answer.generation}: {row.answer.answer}"
        screen.line(answer, indent=2)
        if row.change is not None:
            lines = change_in_words(row.change)
            screen.rows(lines if row.change.error else lines[1:], style="yellow")
    if not rows:
        screen.line("No question is watched. Add one: trellis watch add QUESTION")
