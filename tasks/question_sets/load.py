"""Question sets: the one format in which Trellis reads and writes them.

A row is a question with what is known of its right answer, in the fields of `EvaluationQuestion`:
`question` must be there; `id`, `answers`, `values`, `gold_documents`, `gold_spans`, `answerable`,
`documents`, `history`, `kind`, `group` and `names` may be. `answer` stands for the only one of
`answers`. Other fields are passed over, so that a row may hold what its owner wants.

A file is JSON Lines or, where its name ends so, CSV with a head; in a cell of CSV a list is written
as in JSON, or as its only text. Either may be zipped (.gz).
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
_REMEDY = "A row is {id, question, answers?, gold_documents?, …}: see docs/measures.md."


def load_questions(path: Path, first: int | None = None) -> tuple[EvaluationQuestion, ...]:
    """The questions of a file, or its first ones.

    Raises SourceNotFound where it is missing, UsageError for a row that is no question.
    """
    if not path.is_file():
        raise SourceNotFound(path, "Name a file of questions.")
    questions = []
    try:
        for number, row in enumerate(_rows(path), 1):
            if number - 1 == first:
                break
            questions.append(question_of(row, number))
    except (ValueError, TypeError, csv.Error) as error:  # pydantic and JSON raise ValueErrors
        words = str(error)
        if isinstance(error, ValidationError):
            problem = error.errors(include_url=False)[0]
            words = " ".join([*map(str, problem["loc"]), problem["msg"]])
        message = f"{path}, row {len(questions) + 1} is no question ({words[:200]})."
        raise UsageError(message, _REMEDY) from error
    return tuple(questions)


def question_of(row: Row, number: int) -> EvaluationQuestion:
    """The question of a row, whose id is the number where it has none.

    Raises ValueError or TypeError for a row that is no question.
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
    """Writes questions as JSON Lines, which `trellis ask --questions` reads too."""
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
