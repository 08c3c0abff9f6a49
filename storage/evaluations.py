"""Evaluations of a workspace: the finished ones in a DuckDB file, answers under way, watched
questions and feedback in SQLite.

DuckDB has one writer, and an evaluation may take hours: its answers go to the workspace's database one by one, where
any process reads and writes beside it, and what is finished is published to DuckDB in one short transaction.
"""

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.resources import files
from pathlib import Path

import duckdb

from storage.database import Database
from storage.errors import InUse, UsageError
from storage.evaluation_records import (
    EvaluatedAnswer,
    Evaluation,
    EvaluationResult,
    Feedback,
    Score,
    Verdict,
    WatchedQuestion,
)
from storage.faults import faults_told, make_folder
from storage.sqlite import SqliteFile

_WAIT = 30.0  # seconds, for another process that reads or writes
_PAUSE = 0.05
_DAMAGED = "Put back a copy of it (an archive holds one), or move it away: only finished evaluations are lost."
# Of one process, reading and writing connections to a file exclude each other.
_TURN = threading.RLock()


class RunningAnswers:
    """The answers of evaluations that have not ended, by the key of the evaluation."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file

    def put(self, key: str, answer: EvaluatedAnswer) -> None:
        """Stores an answer; it is safe from then on."""
        with self._file.transaction() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO evaluated_answers (evaluation, system, question, answer) VALUES (?, ?, ?, ?)",
                (key, answer.system, answer.question, answer.model_dump_json()),
            )

    def get(self, key: str) -> list[EvaluatedAnswer]:
        """Those of an evaluation."""
        sql = "SELECT answer FROM evaluated_answers WHERE evaluation = ?"
        return self._file.read(sql, partial(EvaluatedAnswer.model_validate_json, extra="ignore"), [key])

    def remove(self, key: str) -> None:
        """Removes those of an evaluation."""
        with self._file.transaction() as connection:
            connection.execute("DELETE FROM evaluated_answers WHERE evaluation = ?", [key])

    def remove_where(self, holds: Callable[[str], bool]) -> int:
        """Removes the answers of whose JSON text this is true; returns how many."""
        rows = self._file.rows("SELECT rowid, answer FROM evaluated_answers")
        gone = [(row,) for row, answer in rows if holds(str(answer))]
        with self._file.transaction() as connection:
            connection.executemany("DELETE FROM evaluated_answers WHERE rowid = ?", gone)
        return len(gone)


class WatchedQuestions:
    """The watched questions of a workspace."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file

    def put(self, watched: WatchedQuestion) -> None:
        """Stores one; the same id replaces."""
        with self._file.transaction() as connection:
            sql = "INSERT OR REPLACE INTO watched_questions (id, watched) VALUES (?, ?)"
            connection.execute(sql, (watched.id, watched.model_dump_json()))

    def list(self) -> list[WatchedQuestion]:
        """All, by id."""
        sql = "SELECT watched FROM watched_questions ORDER BY id"
        return self._file.read(sql, partial(WatchedQuestion.model_validate_json, extra="ignore"))

    def remove(self, name: str) -> None:
        """UsageError where there is none with this id."""
        with self._file.transaction() as connection:
            if not connection.execute("DELETE FROM watched_questions WHERE id = ?", [name]).rowcount:
                raise UsageError(f"No watched question {name!r}.", "See `trellis watch` for their ids.")

    def forget_where(self, holds: Callable[[str], bool]) -> int:
        """Forgets the last answers of whose JSON text this is true; the questions stay. Returns how many."""
        stale = [watched for watched in self.list() if holds(watched.model_dump_json())]
        for watched in stale:
            self.put(watched.model_copy(update={"answer": None, "change": None}))
        return len(stale)


MOST_FEEDBACK = 10_000  # as many as memory keeps: whoever may ask may also rate


class FeedbackRows:
    """What people thought of answers."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file

    def put(self, feedback: Feedback) -> None:
        """Stores one; the same id replaces, and beyond MOST_FEEDBACK the oldest go."""
        with self._file.transaction() as connection:
            sql = "INSERT OR REPLACE INTO feedback (id, feedback) VALUES (?, ?)"
            connection.execute(sql, (feedback.id, feedback.model_dump_json()))
            newest = "SELECT rowid FROM feedback ORDER BY rowid DESC LIMIT ?"
            connection.execute(f"DELETE FROM feedback WHERE rowid NOT IN ({newest})", (MOST_FEEDBACK,))

    def list(self) -> list[Feedback]:
        """All, the oldest first."""
        return self._file.read("SELECT feedback FROM feedback ORDER BY rowid", Feedback.model_validate_json)

    def forget_where(self, holds: Callable[[str], bool]) -> int:
        """Removes those of whose JSON text this is true; returns how many."""
        stale = [(row.id,) for row in self.list() if holds(row.model_dump_json())]
        with self._file.transaction() as connection:
            connection.executemany("DELETE FROM feedback WHERE id = ?", stale)
        return len(stale)


FORGOTTEN = "(forgotten)"  # in place of a question that held a text which had to go


class EvaluationStore:
    """The finished evaluations, in a DuckDB file that is opened for each use and made at the first write."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def publish(self, result: EvaluationResult) -> int:
        """Stores a finished evaluation, whole; returns its number."""
        evaluation = result.evaluation
        with self.opened() as database, database.transaction():
            number = 1 + database.number("SELECT coalesce(max(number), 0) FROM evaluations")
            row = {
                "number": number, "name": evaluation.name, "key": evaluation.key, "started": evaluation.started,
                "finished": evaluation.finished, "systems": _json(evaluation.systems),
                "questions": _json(evaluation.questions), "measures": json.dumps(evaluation.measures),
                "accepted": evaluation.accepted,
            }  # fmt: skip
            database.insert_rows("evaluations", list(row), [list(row.values())])
            answers = [(number, row.system, row.question, row.model_dump_json()) for row in result.answers]
            database.insert_rows("answers", ("evaluation", "system", "question", "answer"), answers)
            scores = [
                (number, row.system, row.question, row.measure, row.value)
                for row in result.scores if row.value is not None
            ]  # fmt: skip
            database.insert_rows("scores", ("evaluation", "system", "question", "measure", "value"), scores)
            verdicts = [(number, row.model_dump_json()) for row in result.verdicts]
            database.insert_rows("verdicts", ("evaluation", "verdict"), verdicts)
        return number

    def list(self) -> list[Evaluation]:
        """All, ascending."""
        if not self.path.exists():
            return []
        with self.opened(reading=True) as database:
            rows = database.mappings("SELECT * FROM evaluations ORDER BY number")
        lists = ("systems", "questions", "measures")
        read = ({**row, **{name: json.loads(str(row[name])) for name in lists}} for row in rows)
        return [Evaluation.model_validate(row, extra="ignore") for row in read]

    def read(self, number: int) -> EvaluationResult:
        """Raises UsageError where there is none of this number."""
        evaluation = next((row for row in self.list() if row.number == number), None)
        if evaluation is None:
            raise UsageError(f"There is no evaluation {number}.", "See `trellis evaluate --list`.")
        with self.opened(reading=True) as database:
            answers = database.strings("SELECT answer FROM answers WHERE evaluation = ?", [number])
            scores = database.records(
                Score, "SELECT system, question, measure, value FROM scores WHERE evaluation = ?", [number]
            )
            verdicts = database.strings("SELECT verdict FROM verdicts WHERE evaluation = ?", [number])
        return EvaluationResult(
            evaluation=evaluation,
            answers=tuple(EvaluatedAnswer.model_validate_json(row, extra="ignore") for row in answers),
            scores=tuple(scores), verdicts=tuple(map(Verdict.model_validate_json, verdicts)),
        )  # fmt: skip

    def accept(self, number: int) -> None:
        """Makes it one that gates compare with. UsageError where there is none of this number."""
        self.read(number)
        with self.opened() as database:
            database.execute("UPDATE evaluations SET accepted = true WHERE number = ?", [number])

    def remove(self, number: int) -> None:
        """Removes it, and all that came of it. UsageError where there is none of this number."""
        self.read(number)
        with self.opened() as database, database.transaction():
            database.execute("DELETE FROM evaluations WHERE number = ?", [number])
            for table in ("answers", "scores", "verdicts"):
                database.execute(f"DELETE FROM {table} WHERE evaluation = ?", [number])

    def forget_where(self, holds: Callable[[str], bool]) -> int:
        """Removes the answers of whose JSON text this is true, the judge's words on those questions, and of questions
        the words and right answers; scores stay. Returns how many answers went. The file is written anew: nothing of
        them is left in it."""
        if not self.path.exists():
            return 0
        with self.opened() as database, database.transaction():
            rows = database.rows("SELECT rowid, evaluation, question, answer FROM answers")
            gone = [row for row in rows if holds(str(row[3]))]
            for row, evaluation, question, _ in gone:
                database.execute("DELETE FROM answers WHERE rowid = ?", [int(str(row))])
                database.execute(
                    "DELETE FROM verdicts WHERE evaluation = ? AND json_extract_string(verdict, '$.question') = ?",
                    [int(str(evaluation)), str(question)],
                )
            texts = database.rows("SELECT number, questions FROM evaluations")
            stale = [(number, text) for number, text in texts if holds(str(text))]
            for number, text in stale:
                rest = [
                    {"id": row["id"], "question": FORGOTTEN} if holds(json.dumps(row, ensure_ascii=False)) else row
                    for row in json.loads(str(text))
                ]
                sql = "UPDATE evaluations SET questions = ? WHERE number = ?"
                database.execute(sql, [json.dumps(rest, ensure_ascii=False), int(str(number))])
        if gone or stale:
            with _TURN:
                Database.rewrite(self.path)
        return len(gone)

    def copy_to(self, path: Path) -> None:
        """Writes what the file holds into a new one."""
        with self.opened(reading=True) as database:
            database.copy_to(path)

    @contextmanager
    def opened(self, reading: bool = False) -> Iterator[Database]:
        """The database, in the form of this version. Waits for another process that holds it; then raises InUse."""
        end = time.monotonic() + _WAIT
        with _TURN:
            while True:
                try:
                    with faults_told(self.path, _DAMAGED):
                        make_folder(self.path.parent)
                        connection = duckdb.connect(str(self.path), read_only=reading)
                    break
                except InUse:
                    if time.monotonic() > end:
                        raise
                    time.sleep(_PAUSE)
            database = Database(self.path, connection, reading)
            try:
                if not reading:
                    database.execute(files("storage").joinpath("evaluations.sql").read_text("utf-8"))
                yield database
            finally:
                database.close()


def _json(records: Sequence[object]) -> str:
    return json.dumps([row.model_dump(mode="json") for row in records], ensure_ascii=False)  # type: ignore[attr-defined]
