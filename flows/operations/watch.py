"""Watched questions: asked again after every publication, to report answers that change."""

import difflib
import logging
from collections.abc import Sequence
from dataclasses import replace

from flows.modes.registry import check_mode
from flows.query import answer_question
from flows.question import AskOptions
from flows.runtime import Runtime
from flows.session import Session, open_session
from prompts.engine.errors import EngineError
from prompts.engine.key_masking import mask_keys
from prompts.text.segment import sentences
from storage.answer_records import Answer, Mode
from storage.errors import TrellisError, UsageError
from storage.evaluation_records import WatchedQuestion
from storage.records import content_id
from storage.run_records import AnswerChange
from tasks.step import step

logger = logging.getLogger(__name__)


def watch(question: str, mode: Mode, runtime: Runtime) -> WatchedQuestion:
    """Store a question to ask after every publication. Raises UsageError for an empty one."""
    if not question.strip():
        raise UsageError("The question is empty.", "Write it in quotes after `trellis watch add`.")
    check_mode(mode)
    watched = WatchedQuestion(
        id=content_id("wat", question, mode)[:10], question=question, mode=mode
    )
    stored = runtime.workspace.database.watched
    if watched.id not in {known.id for known in stored.list()}:
        stored.put(watched)
    return watched


async def ask_watched(runtime: Runtime, only: str | None = None) -> tuple[AnswerChange, ...]:
    """Ask the watched questions (`only`: the one with this id) of the current generation, and
    return the answers that changed since they were last asked.

    A first answer is no change. A question that fails is a change with an error, never raised.
    Memory is off: it may hold what was true before.
    """
    questions = [row for row in runtime.workspace.database.watched.list() if only in {None, row.id}]
    return await _ask_again(questions, runtime) if questions else ()


@step("watch", asks_model=True)
async def _ask_again(
    questions: Sequence[WatchedQuestion], runtime: Runtime
) -> tuple[AnswerChange, ...]:
    settings = runtime.settings.model_copy(update={"memory": "off"})
    changes = []
    with (
        runtime.models.without_history(),
        open_session(replace(runtime, settings=settings)) as session,
    ):
        for watched in questions:
            change, answer = await _ask(watched, session)
            if change is not None:
                changes.append(change)
            kept = {"change": change or watched.change, "answer": answer or watched.answer}
            runtime.workspace.database.watched.put(watched.model_copy(update=kept))
    return tuple(changes)


async def watched_after(runtime: Runtime) -> tuple[AnswerChange, ...]:
    """Ask the watched questions after a publication; log whatever goes wrong as a warning."""
    try:
        changes = await ask_watched(runtime)
    # What was published stands, whatever happens to a question.
    except Exception as error:  # noqa: BLE001
        logger.warning("The watched questions could not be asked: %s", mask_keys(str(error)))
        return ()
    for change in changes:
        logger.warning("The answer to the watched question %s has changed.", change.id)
    return changes


async def _ask(
    watched: WatchedQuestion, session: Session
) -> tuple[AnswerChange | None, Answer | None]:
    try:
        answer = await answer_question(watched.question, AskOptions(mode=watched.mode), session)
    except Exception as error:
        if not isinstance(error, TrellisError | EngineError):
            logger.warning("The watched question %r failed", watched.question, exc_info=True)
        change = AnswerChange(
            id=watched.id,
            question=watched.question,
            generation=session.number,
            error=mask_keys(str(error)) or type(error).__name__,
        )
        return change, None
    return (None if watched.answer is None else _changed(watched, watched.answer, answer)), answer


def _changed(watched: WatchedQuestion, before: Answer, after: Answer) -> AnswerChange | None:
    """Compare the sentences and the cited documents of two answers; None where they are equal."""
    lines = difflib.ndiff(_sentences(before.answer), _sentences(after.answer))
    diff = tuple(line.rstrip() for line in lines if line.startswith(("- ", "+ ")))
    cited_before, cited_after = (
        {citation.document for citation in answer.citations} for answer in (before, after)
    )
    if not diff and cited_before == cited_after:
        return None
    return AnswerChange(
        id=watched.id,
        question=watched.question,
        generation=after.generation,
        before=before.generation,
        diff=diff,
        cited=tuple(sorted(cited_after - cited_before)),
        no_longer_cited=tuple(sorted(cited_before - cited_after)),
    )


def _sentences(text: str) -> list[str]:
    return [" ".join(text[start:end].split()) for start, end in sentences(text)]
