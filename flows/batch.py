"""Batches: answers to a file of questions, in the order of its rows."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Any

from pydantic import BaseModel, Field, StrictInt, StrictStr, ValidationError

from flows.question import AskOptions
from flows.session import Session
from flows.usage import error_of
from prompts.engine.errors import EngineError
from storage.answer_records import Answer, Retrieval
from storage.errors import TrellisError, UsageError
from tasks.rewrite import turns

AT_ONCE = 16
ROW_FORM = "{id, question, documents?, where?, history?}, one JSON object a line"

Answering = Callable[[str, AskOptions, Session], Awaitable[Answer | Retrieval]]
log = logging.getLogger(__name__)


class AskedRow(BaseModel, frozen=True):
    """A row of the file; other fields are ignored."""

    id: StrictStr | StrictInt | None = None
    question: StrictStr = Field(pattern=r"\S")
    documents: tuple[StrictStr, ...] | None = None
    where: StrictStr | None = None
    history: tuple[StrictStr | dict[str, object], ...] = ()

    def options(self, common: AskOptions) -> AskOptions:
        """Add the options of this row to those of all rows."""
        where = (*common.where, self.where) if self.where else common.where
        history = turns(self.history)
        return replace(common, documents=self.documents, where=where, history=history)


async def answer_rows(
    text: str, options: AskOptions, answering: Answering, session: Session
) -> AsyncIterator[dict[str, object]]:
    """Answer the rows of a text; yield `id` with the fields of the result, or with `error`."""
    slots = asyncio.Semaphore(AT_ONCE)

    async def answered(number: int, line: str) -> dict[str, object]:
        row: object = None
        try:
            row = json.loads(line)
            asked = AskedRow.model_validate(row)
            async with slots:
                result = await answering(asked.question, asked.options(options), session)
            return {"id": asked.id, **result.model_dump()}
        except Exception as error:  # noqa: BLE001 -- the other questions go on
            name = row.get("id") if isinstance(row, dict) else None
            name = name if isinstance(name, str | int) else None
            return {"id": name, "error": error_of(_row_error(error, number, row is not None))}

    lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    tasks = [asyncio.create_task(answered(number, line)) for number, line in lines]
    try:
        for task in tasks:
            yield await task
    finally:
        for task in tasks:
            task.cancel()


def _row_error(error: Exception, number: int, is_json: bool) -> Exception:
    """Return the error of a row; one in its form names the line."""
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        return UsageError(f"Line {number}: {place}: {first['msg']}.", f"A row is {ROW_FORM}.")
    if isinstance(error, ValueError | RecursionError) and not is_json:
        return UsageError(f"Line {number}: {error}", f"A row is {ROW_FORM}.")
    if not isinstance(error, TrellisError | EngineError):
        log.warning("line %d failed", number, exc_info=error)
    return error


def read_turns(text: str, place: str) -> tuple[str, ...]:
    """Read earlier turns: one list in JSON, or a line of JSON for each.

    Raises UsageError, which names `place`, for anything else.
    """
    form = (
        'Write a list of turns, oldest first: texts, or {"role": "user" or "assistant", "content": '
        "its text}; or one of them a line."
    )
    is_list = text.lstrip().startswith("[")
    rows: list[Any] = []
    for number, line in enumerate([text] if is_list else text.split("\n"), 1):
        try:
            rows += [json.loads(line)] if line.strip() else []
        except (ValueError, RecursionError) as error:
            where = f"The history in {place}" if is_list else f"{place}, line {number}"
            raise UsageError(f"{where} is no JSON: {error}.", form) from error
    return turns(rows[0] if is_list else rows)
