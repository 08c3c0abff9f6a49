"""Question sets: the one format in which Trellis reads and writes them.

A row has the fields of `EvaluationQuestion`. Only `question` is required; `answer` may stand for a
single one of `answers`, and unknown fields are ignored.

A file is JSON Lines, or CSV with a header where its name ends in .csv; a list in a CSV cell is
JSON, or a single text. Either may be compressed (.gz).
"""

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pydantic import JsonValue, ValidationError

from storage.errors import SourceNotFound, UsageError
from storage.evaluation_records import EvaluationQuestion
from storage.faults import faults_told
from storage.files import text_of_file

Row = Mapping[str, JsonValue]

_LISTS = ("answers", "values", "gold_documents", "gold_spans", "documents", "history", "names")
_REMEDY = "A row is {id, question, answers?, gold_documents?, …}: see docs/evaluate.md."


def load_questions(path: Path, first: int | None = None) -> tuple[EvaluationQuestion, ...]:
    """Read the questions of a file, or its first ones.

    SourceNotFound where it is missing, UsageError for a row that is no question.
    """
    if not path.is_file():
        raise SourceNotFound(path, "Name a file of questions.")
    questions = []
    try:
        for number, row in enumerate(_rows(path), 1):
            if number - 1 == first:
                break
            questions.append(question_of(row, number))
    except (ValueError, TypeError, csv.Error) as error:
        words = str(error)
        if isinstance(error, ValidationError):
            problem = error.errors(include_url=False)[0]
            words = " ".join([*map(str, problem["loc"]), problem["msg"]])
        message = f"{path}, row {len(questions) + 1} is no question ({words[:200]})."
        raise UsageError(message, _REMEDY) from error
    return tuple(questions)


def question_of(row: Row, number: int) -> EvaluationQuestion:
    """Make a question of a row, with `number` as its id where it has none.

    ValueError or TypeError for a row that is no question.
    """
    if not isinstance(row, Mapping):
        raise TypeError("it is no object of fields")
    known = {
        name: row[name] for name in EvaluationQuestion.model_fields if row.get(name) is not None
    }
    known["id"] = str(row.get("id", number))
    if "answer" in row and "answers" not in known:
        known["answers"] = [str(row["answer"])]
    if isinstance(gold := known.get("gold_documents"), list):
        known["gold_documents"] = [str(document) for document in gold]
    return EvaluationQuestion.model_validate(known)


def write_questions(questions: Sequence[EvaluationQuestion], path: Path) -> None:
    """Write questions as JSON Lines, which `trellis ask --questions` reads too."""
    rows = (question.model_dump(mode="json", exclude_defaults=True) for question in questions)
    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
    with faults_told(path):
        path.write_text("".join(lines), encoding="utf-8")


def _rows(path: Path) -> Iterator[Row]:
    text = text_of_file(path)
    if not path.name.removesuffix(".gz").endswith(".csv"):
        yield from (json.loads(line) for line in text.splitlines() if line.strip())
        return
    for cells in csv.DictReader(io.StringIO(text)):
        yield {name: _value(name, cell) for name, cell in cells.items() if name and cell}


def _value(name: str, cell: str) -> JsonValue:
    if name not in _LISTS:
        return cell
    value: JsonValue = json.loads(cell) if cell.startswith("[") else [cell]
    return value
