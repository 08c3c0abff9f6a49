"""How is a file of questions answered? Each row by itself, in order, over one open session."""

import asyncio
import json
import logging
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, StrictInt, StrictStr, ValidationError

from flows.asking import AskOptions
from flows.cli.screen import Screen, error_of
from flows.session import Session
from prompts.engine.errors import EngineError
from storage.errors import TrellisError, UsageError
from storage.records import Answer, Retrieval
from tasks.rewrite import turns

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
            return await _answered(row, options, answering, session)

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


async def _answered(row: Row, options: AskOptions, answering: Answering, session: Session) -> dict[str, object]:
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
