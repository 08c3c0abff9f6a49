"""Rows of the published data that the measures read: of questions, of passages, of triples."""

import gzip
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from storage.evaluation_records import EvaluationQuestion
from tasks.question_sets.load import question_of

Row = dict[str, Any]

# What the data call the documents of a question's evidence.
_GOLD = ("gold_documents", "gold_ids", "gold_pos", "context_id")


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
    return [question_of(_as_ours(row), place) for place, row in enumerate(rows)]


def _as_ours(row: Row) -> Row:
    gold: Any = next((row[name] for name in _GOLD if name in row), [])
    answers = row.get("answers", [row["answer"]] if "answer" in row else [])
    answers = [*dict.fromkeys([*map(str, answers), *row.get("aliases", [])])]
    hops = f"{row['hops']} hops" if "hops" in row else ""
    ours = {
        "answers": answers,
        "values": answers if "path" in row else [],  # answers at the ends of a path in a graph
        "gold_documents": gold if isinstance(gold, list) else [gold],
        "kind": str(row.get("type") or hops),
    }
    named = {"id": row["i"]} if "i" in row else {}
    return {**ours, **named, **row, "answers": answers}


def read_passages(path: Path) -> list[Row]:
    """The passages of a file as `trellis index` reads them: rows {id, title, text}, or triples."""
    return [_passage(row) for row in read_rows(path)]


def _passage(row: Row) -> Row:
    if "s" in row:
        return row
    if "part" in row:  # of an episode
        return {"id": f"{row['doc']} #{row['part']}", "title": row["doc"], "text": row["text"]}
    return {"id": str(row.get("id", row.get("pos"))), "title": row["title"], "text": row["text"]}
