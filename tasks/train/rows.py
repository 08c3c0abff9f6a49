"""Rows to train on: read, checked against evaluation sets, divided, and stored as they are made."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from prompts.text.words import is_han
from storage.errors import UsageError
from storage.evaluation_records import EvaluationQuestion
from storage.files import text_of_file
from storage.records import by_key
from storage.training_records import (
    FilterRow,
    PreferenceRow,
    RewriteRow,
    Row,
    RowSource,
    TrainedStep,
)
from tasks.evaluate.measures import squeezed
from tasks.question_sets.load import load_questions

R = TypeVar("R", PreferenceRow, RewriteRow, FilterRow)
Asked = TypeVar("Asked", bound="Row")
KINDS: Mapping[TrainedStep, type[PreferenceRow] | type[RewriteRow] | type[FilterRow]] = {
    "router": PreferenceRow,
    "rewriter": RewriteRow,
    "filter": FilterRow,
}
ROWS = "rows.jsonl"
_HELD_OUT = 5  # One question of as many is held out


def sha256_of(content: bytes) -> str:
    """Return the hash that identifies files and rows."""
    return hashlib.sha256(content).hexdigest()


def read_rows(path: Path, step: TrainedStep, licence: str = "") -> tuple[list[Row], RowSource]:
    """Read the rows of a JSON Lines file (.gz too), and say where they come from.

    Besides our own form: StructRAG's preference data (query, doc_info, chosen, rejected), tasks
    labelled with a `type`, and pairs for natural language inference (a, b, entailment) as passage
    and hypothesis. UsageError names a line that is no row.
    """
    if step not in KINDS:
        raise UsageError(
            f"There are no rows for a step {step!r}.",
            "Name questions with their gold: --questions.",
        )
    rows: list[Row] = []
    for number, line in enumerate(_lines(path), 1):
        try:
            raw = _in_our_form(json.loads(line), path.name, number)
            rows.append(KINDS[step].model_validate({"source": path.name, **raw}))
        except (ValueError, AttributeError, KeyError) as error:
            raise UsageError(
                f"{path}, line {number} is no row for a {step}: {_problem(error)}.",
                "docs/train.md has the fields of rows.",
            ) from error
    if not rows:
        raise UsageError(f"{path} holds no rows.", "Name a file of JSON lines.")
    sha256 = sha256_of(path.read_bytes())
    return rows, RowSource(name=path.name, sha256=sha256, rows=len(rows), licence=licence)


def _problem(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False)[0]
        return f"{'.'.join(map(str, first['loc']))} {first['msg']}".strip()
    return f"{error} is missing" if isinstance(error, KeyError) else str(error)


def _lines(path: Path) -> list[str]:
    if not path.is_file():
        raise UsageError(f"There is no file {path}.", "Name a file of JSON lines.")
    try:
        return [line for line in text_of_file(path).split("\n") if line.strip()]
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is no text in UTF-8.", "Name a file of JSON lines.") from error


def _in_our_form(row: Mapping[str, Any], name: str, number: int) -> dict[str, Any]:
    own: dict[str, Any] = {"id": str(row.get("id", f"{name}-{number}"))}
    if "doc_info" in row:
        kept = {field: row[field] for field in ("language", "chosen", "rejected")}
        return own | kept | {"question": row["query"], "documents": _titles(row["doc_info"])}
    if "type" in row and "chosen" not in row:
        kept = {field: row[field] for field in ("documents", "language") if field in row}
        return own | kept | {"question": row["question"], "chosen": row["type"]}
    if "entailment" in row and "a" in row:
        return own | {"question": row["b"], "passage": row["a"], "label": row["entailment"].lower()}
    return {**row, **own}


def _titles(core_content: str) -> list[str]:
    """Return the titles of a published row, which stand in quotes or in Chinese brackets."""
    opened = core_content.replace("《", '"').replace("》", '"').split('"')
    return [title.strip() for title in opened if title.strip()]


@dataclass
class EvaluationSets:
    """The questions that nothing may be trained on, and the hashes of their files."""

    questions: set[str] = field(default_factory=set)
    hashes: set[str] = field(default_factory=set)

    @classmethod
    def read(cls, paths: Iterable[Path]) -> "EvaluationSets":
        """Read JSON Lines with a `question` (or `query`, or `b`) each."""
        sets = cls()
        for path in paths:
            for number, line in enumerate(_lines(path), 1):
                if not (question := _question_in(line)):
                    raise UsageError(
                        f"{path}, line {number} has no question.",
                        "Name a set of questions as JSON lines.",
                    )
                sets.questions.add(squeezed(question))
            sets.hashes.add(sha256_of(path.read_bytes()))
        return sets

    def refuse(self, source: RowSource) -> None:
        """Raise UsageError where the source is one of the sets."""
        if source.sha256 and source.sha256 in self.hashes:
            raise UsageError(
                f"{source.name} is a set to evaluate on: nothing is trained on it.",
                "Train on other rows.",
            )

    def holds(self, question: str) -> bool:
        """Whether the sets hold this question."""
        return squeezed(question) in self.questions


def _question_in(line: str) -> str:
    try:
        row = json.loads(line)
        return next((str(row[name]) for name in ("question", "query", "b") if row.get(name)), "")
    except (ValueError, AttributeError):
        return ""


def read_questions(path: Path) -> list[EvaluationQuestion]:
    """Read the questions that have gold; UsageError where none has, or for a row that is none."""
    known = [
        question for question in load_questions(path) if question.gold_documents or question.answers
    ]
    if not known:
        raise UsageError(
            f"{path} has no question with gold.", "Give each `gold_documents`, or `answers`."
        )
    return known


def divided(rows: Sequence[Asked]) -> tuple[list[Asked], list[Asked]]:
    """Divide rows into four fifths and one held out, by a hash of the question."""
    sides: tuple[list[Asked], list[Asked]] = [], []
    for row in rows:
        held_out = int(sha256_of(squeezed(row.question).encode())[:8], 16) % _HELD_OUT == 0
        sides[held_out].append(row)
    return sides


def balanced(rows: Sequence[PreferenceRow]) -> list[PreferenceRow]:
    """Keep equally many questions of each language and type, as many as the rarest has."""
    once = {squeezed(row.question): row for row in rows}
    cells = by_key(((language_of_row(row), row.chosen), row) for _, row in sorted(once.items()))
    most = min(map(len, cells.values()), default=0)
    return [row for _, cell in sorted(cells.items()) for row in cell[:most]]


def language_of_row(row: PreferenceRow) -> str:
    """Return the row's own language, else `zh`, or `en` for every other language."""
    return row.language or _language_of(row.question)


def _language_of(question: str) -> str:
    return "zh" if is_han(question) else "en"


def counts_of(rows: Sequence[Row]) -> dict[str, int]:
    """Count the rows by language and label."""
    counts: Counter[str] = Counter()
    for row in rows:
        language, label = _language_of(row.question), "rows"
        if isinstance(row, PreferenceRow):
            language, label = language_of_row(row), row.chosen
        elif isinstance(row, FilterRow):
            label = row.label
        counts[f"{language} {label}"] += 1
    return dict(sorted(counts.items()))


# --- stored rows ----------------------------------------------------------------------------------


def stored(path: Path, kind: type[R]) -> list[R]:
    """Read the rows that an earlier run stored.

    Where a kill cut off the last line, the rows before it that have its question are removed too.
    """
    if not path.exists():
        return []
    content = path.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    rows = [kind.model_validate_json(line) for line in whole.splitlines()]
    if len(whole) < len(content):
        cut = {row.question for row in rows[-1:]}
        rows = [row for row in rows if row.question not in cut]
        replace(path, rows)
    return rows


def append(path: Path, rows: Iterable[Row]) -> None:
    """Add rows to the stored ones, in one write."""
    with path.open("a", encoding="utf-8") as file:
        file.write("".join(row.model_dump_json() + "\n" for row in rows))


def replace(path: Path, rows: Iterable[Row]) -> None:
    """Replace the stored rows."""
    path.unlink(missing_ok=True)
    append(path, rows)


def hash_of(rows: Iterable[Row]) -> str:
    """Return the hash of rows in their order."""
    return sha256_of("".join(row.model_dump_json() for row in rows).encode())
