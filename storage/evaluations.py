"""Evaluations, watched questions and feedback in the workspace's database.

The answers of a running evaluation are stored one by one, so that a run that is killed after hours
repeats no question. A finished evaluation is stored in one transaction.
"""

import sqlite3
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from storage.errors import UsageError
from storage.evaluation_records import (
    EvaluatedAnswer,
    Evaluation,
    EvaluationQuestion,
    EvaluationResult,
    Feedback,
    WatchedQuestion,
)
from storage.records import Record
from storage.sqlite import SqliteFile

FORGOTTEN = "(forgotten)"  # replaces a question that contained a forgotten text
MOST_FEEDBACK = 10_000  # rows, which anybody who may ask can add

R = TypeVar("R", bound=Record)
Holds = Callable[[str], bool]  # whether a JSON text contains what is to be forgotten


class RunningAnswers:
    """The answers of unfinished evaluations, by the key of the evaluation."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file

    def put(self, key: str, answer: EvaluatedAnswer) -> None:
        with self._file.transaction() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO evaluated_answers (evaluation, system, question, answer) "
                "VALUES (?, ?, ?, ?)",
                (key, answer.system, answer.question, answer.model_dump_json()),
            )

    def get(self, key: str) -> list[EvaluatedAnswer]:
        sql = "SELECT answer FROM evaluated_answers WHERE evaluation = ?"
        return self._file.read(sql, _read_as(EvaluatedAnswer), [key])

    def remove(self, key: str) -> None:
        with self._file.transaction() as connection:
            connection.execute("DELETE FROM evaluated_answers WHERE evaluation = ?", [key])

    def remove_where(self, holds: Holds) -> int:
        """Remove the answers that `holds` accepts; return how many."""
        return self._file.delete_where("evaluated_answers", "answer", holds)


class WatchedQuestions:
    """Questions that are asked again after every publication."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file

    def put(self, watched: WatchedQuestion) -> None:
        with self._file.transaction() as connection:
            sql = "INSERT OR REPLACE INTO watched_questions (id, watched) VALUES (?, ?)"
            connection.execute(sql, (watched.id, watched.model_dump_json()))

    def list(self) -> list[WatchedQuestion]:
        sql = "SELECT watched FROM watched_questions ORDER BY id"
        return self._file.read(sql, _read_as(WatchedQuestion))

    def remove(self, name: str) -> None:
        """Remove a question. Raises UsageError for an unknown id."""
        with self._file.transaction() as connection:
            gone = connection.execute("DELETE FROM watched_questions WHERE id = ?", [name])
            if not gone.rowcount:
                problem = f"No watched question {name!r}."
                raise UsageError(problem, "See `trellis watch` for their ids.")

    def forget_where(self, holds: Holds) -> int:
        """Remove the last answers that `holds` accepts, not their questions; return how many."""
        stale = [watched for watched in self.list() if holds(watched.model_dump_json())]
        for watched in stale:
            self.put(watched.model_copy(update={"answer": None, "change": None}))
        return len(stale)


class FeedbackRows:
    """What people thought of answers."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file

    def put(self, feedback: Feedback) -> None:
        """Store a row in place of one with the same id; remove the oldest beyond MOST_FEEDBACK."""
        with self._file.transaction() as connection:
            sql = "INSERT OR REPLACE INTO feedback (id, feedback) VALUES (?, ?)"
            connection.execute(sql, (feedback.id, feedback.model_dump_json()))
            newest = "SELECT rowid FROM feedback ORDER BY rowid DESC LIMIT ?"
            sql = f"DELETE FROM feedback WHERE rowid NOT IN ({newest})"
            connection.execute(sql, (MOST_FEEDBACK,))

    def list(self) -> list[Feedback]:
        return self._file.read("SELECT feedback FROM feedback ORDER BY rowid", _read_as(Feedback))

    def forget_where(self, holds: Holds) -> int:
        return self._file.delete_where("feedback", "feedback", holds)


class EvaluationStore:
    """The finished evaluations, numbered from 1."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file

    def publish(self, result: EvaluationResult) -> int:
        with self._file.transaction() as connection:
            sql = "SELECT coalesce(max(number), 0) + 1 FROM evaluations"
            number = int(connection.execute(sql).fetchone()[0])
            _put(connection, result, number=number)
        return number

    def list(self) -> list[Evaluation]:
        sql = "SELECT evaluation FROM evaluations ORDER BY number"
        return self._file.read(sql, _read_as(Evaluation))

    def read(self, number: int) -> EvaluationResult:
        """Return one result. Raises UsageError for an unknown number."""
        sql = "SELECT result FROM evaluations WHERE number = ?"
        found = self._file.read(sql, _read_as(EvaluationResult), [number])
        if not found:
            raise UsageError(f"There is no evaluation {number}.", "See `trellis evaluate --list`.")
        return found[0]

    def accept(self, number: int) -> None:
        """Let gates compare with an evaluation. Raises UsageError for an unknown number."""
        result = self.read(number)
        with self._file.transaction() as connection:
            _put(connection, result, accepted=True)

    def remove(self, number: int) -> None:
        """Remove an evaluation and its result. Raises UsageError for an unknown number."""
        self.read(number)
        with self._file.transaction() as connection:
            connection.execute("DELETE FROM evaluations WHERE number = ?", [number])

    def forget_where(self, holds: Holds) -> int:
        """Remove the answers that `holds` accepts and the judge's verdicts on their questions.

        A question that it accepts loses its wording and right answers; scores are kept. Returns how
        many answers were removed.
        """
        removed = 0
        for evaluation in self.list():
            result = self.read(evaluation.number)
            gone = {row.question for row in result.answers if holds(row.model_dump_json())}
            stale = {row.id for row in evaluation.questions if holds(row.model_dump_json())}
            answers = tuple(row for row in result.answers if not holds(row.model_dump_json()))
            questions = tuple(
                EvaluationQuestion(id=row.id, question=FORGOTTEN) if row.id in stale else row
                for row in evaluation.questions
            )
            verdicts = tuple(row for row in result.verdicts if row.question not in gone)
            if gone or stale:
                rest = result.model_copy(update={"answers": answers, "verdicts": verdicts})
                with self._file.transaction() as connection:
                    _put(connection, rest, questions=questions)
            removed += len(result.answers) - len(answers)
        return removed


def _put(connection: sqlite3.Connection, result: EvaluationResult, **changes: object) -> None:
    evaluation = result.evaluation.model_copy(update=changes)
    whole = result.model_copy(update={"evaluation": evaluation})
    sql = "INSERT OR REPLACE INTO evaluations (number, evaluation, result) VALUES (?, ?, ?)"
    row = (evaluation.number, evaluation.model_dump_json(), whole.model_dump_json())
    connection.execute(sql, row)


def _read_as(kind: type[R]) -> Callable[..., R]:
    """Return a reader of a record's JSON text that ignores fields of other versions."""
    return partial(kind.model_validate_json, extra="ignore")
