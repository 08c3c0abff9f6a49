"""Rows of the published data that the measures read: of questions, of passages, of triples."""

import gzip
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from storage.evaluation_records import EvaluationQuestion
from tasks.question_sets.load import question_of
from tasks.question_sets.public_sets import Row, passage_row, question_row


def read_rows(path: Path) -> Iterator[Row]:
    """The rows of a file of JSON Lines, zipped or not."""
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8") as lines:
        yield from (json.loads(line) for line in lines if line.strip())


def write_rows(rows: Iterable[Mapping[str, object]], path: Path) -> int:
    """Write rows as JSON Lines for indexing; returns how many."""
    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
    path.write_text("".join(lines), encoding="utf-8")
    return len(lines)


def read_questions(path: Path, limit: int | None = None) -> list[EvaluationQuestion]:
    """The questions of a file, with the fields that the data have in place of the product's."""
    rows = list(read_rows(path))[:limit]
    return [question_of(question_row(row), place) for place, row in enumerate(rows)]


def read_passages(path: Path) -> list[Row]:
    """The passages of a file as `trellis index` reads them: rows {id, title, text}, or triples."""
    return [row if "s" in row else passage_row(row) for row in read_rows(path)]
