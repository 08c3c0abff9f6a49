"""Rows to train on: read in our form or a published one, kept from evaluation sets, divided, stored
as they come.
"""

import hashlib
import json
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from prompts.text.words import is_han
from storage.errors import UsageError
from storage.evaluation_records import EvaluationQuestion
from storage.files import content_of_file
from storage.records import by_key
from storage.training_records import (
    FilterRow,
    PreferenceRow,
    RewriteRow,
    Row,
    RowSource,
    TrainedStep,
)
from tasks.question_sets.load import load_questions

R = TypeVar("R", PreferenceRow, RewriteRow, FilterRow)
Asked = TypeVar("Asked", bound="Row")
KINDS: Mapping[TrainedStep, type[PreferenceRow] | type[RewriteRow] | type[FilterRow]] = {
    "router": PreferenceRow,
    "rewriter": RewriteRow,
    "filter": FilterRow,
}
ROWS = "rows.jsonl"
_HELD_OUT = 5  # one of so many questions is held out


def fold(question: str) -> str:
    """A question without what does not tell it from another: case, width, spaces, marks."""
    return "".join(
        sign for sign in unicodedata.normalize("NFKC", question).casefold() if sign.isalnum()
    )


def sha256_of(content: bytes) -> str:
    """The hash by which files and rows are known."""
    return hashlib.sha256(content).hexdigest()


def read_rows(path: Path, step: TrainedStep, licence: str = "") -> tuple[list[Row], RowSource]:
    """The rows of a JSONL file (.gz too) and where they came from; UsageError names a line that is
    no row.

    Beside our own form: StructRAG's preference data (query, doc_info, chosen, rejected), tasks
    labelled with a `type`, and pairs for natural language inference (a, b, entailment) as passage
    and hypothesis.
    """
    rows: list[Row] = []
    if step not in KINDS:
        raise UsageError(
            f"There are no rows for a step {step!r}.",
            "Name questions with their gold: --questions.",
        )
    for number, line in enumerate(_lines(path), 1):
        try:
            raw = _in_our_form(json.loads(line), path.name, number)
            rows.append(KINDS[step].model_validate({"source": path.name, **raw}))
        except (ValidationError, ValueError, AttributeError) as error:
            problem = (
                error.errors(include_url=False)[0]
                if isinstance(error, ValidationError)
                else {"msg": str(error)}
            )
            place = ".".join(map(str, problem.get("loc", ())))
            raise UsageError(
                f"{path}, line {number} is no row for a {step}: "
                f"{' '.join(filter(None, [place, problem['msg']]))}.",
                "docs/train.md has the fields of rows.",
            ) from error
    if not rows:
        raise UsageError(f"{path} holds no rows.", "Name a file of JSON lines.")
    return rows, RowSource(
        name=path.name, sha256=sha256_of(path.read_bytes()), rows=len(rows), licence=licence
    )


def _lines(path: Path) -> list[str]:
    if not path.is_file():
        raise UsageError(f"There is no file {path}.", "Name a file of JSON lines.")
    return [line for line in content_of_file(path).decode("utf-8").split("\n") if line.strip()]


def _in_our_form(row: Mapping[str, Any], name: str, number: int) -> dict[str, Any]:
    own: dict[str, Any] = {"id": str(row.get("id", f"{name}-{number}"))}
    if "doc_info" in row:
        own |= {
            "question": row["query"],
            "documents": _titles(row["doc_info"]),
            "language": row["language"],
        }
        return own | {"chosen": row["chosen"], "rejected": row["rejected"]}
    if "type" in row and "chosen" not in row:
        own |= {
            "question": row["question"],
            "documents": row.get("documents", []),
            "chosen": row["type"],
        }
        return own | {"language": row.get("language", "")}
    if "entailment" in row and "a" in row:
        return own | {"question": row["b"], "passage": row["a"], "label": row["entailment"].lower()}
    return {**row, **own}


def _titles(core_content: str) -> list[str]:
    """The titles of a published row, which stand in quotes or brackets."""
    opened = core_content.replace("《", '"').replace("》", '"').split('"')
    return [title.strip() for title in opened if title.strip()]


@dataclass
class EvaluationSets:
    """The questions of sets that nothing may be trained on, and the hashes of their files."""

    questions: set[str] = field(default_factory=set)
    hashes: set[str] = field(default_factory=set)

    @classmethod
    def read(cls, paths: Iterable[Path]) -> "EvaluationSets":
        """Each file is JSON lines with a `question` (or `query`, or `b`)."""
        sets = cls()
        for path in paths:
            for number, line in enumerate(_lines(path), 1):
                row = json.loads(line)
                question = next(
                    (str(row[name]) for name in ("question", "query", "b") if row.get(name)), ""
                )
                if not question:
                    raise UsageError(
                        f"{path}, line {number} has no question.",
                        "Name a set of questions as JSON lines.",
                    )
                sets.questions.add(fold(question))
            sets.hashes.add(sha256_of(path.read_bytes()))
        return sets

    def refuse(self, source: RowSource) -> None:
        """UsageError where the source is one of the sets."""
        if source.sha256 and source.sha256 in self.hashes:
            raise UsageError(
                f"{source.name} is a set to evaluate on: nothing is trained on it.",
                "Train on other rows.",
            )

    def holds(self, question: str) -> bool:
        """Whether the sets ask this too."""
        return fold(question) in self.questions


def read_questions(path: Path) -> list[EvaluationQuestion]:
    """Questions with their gold. Raises UsageError for a row that is no question, or where none has
    gold.
    """
    known = [
        question for question in load_questions(path) if question.gold_documents or question.answers
    ]
    if not known:
        raise UsageError(
            f"{path} has no question with gold.", "Give each `gold_documents`, or `answers`."
        )
    return known


def divided(rows: Sequence[Asked]) -> tuple[list[Asked], list[Asked]]:
    """A fifth of the questions held out, by a hash of their text: one question never stands on both
    sides.
    """
    apart = [int(sha256_of(fold(row.question).encode())[:8], 16) % _HELD_OUT == 0 for row in rows]
    return (
        [row for row, held_out in zip(rows, apart, strict=True) if not held_out],
        [row for row, held_out in zip(rows, apart, strict=True) if held_out],
    )


def balanced(rows: Sequence[PreferenceRow]) -> list[PreferenceRow]:
    """As many rows of each language and type as the rarest of the types that there are has; a
    question counts once.
    """
    once = {fold(row.question): row for row in rows}
    cells = by_key(((language_of_row(row), row.chosen), row) for _, row in sorted(once.items()))
    most = min(map(len, cells.values()), default=0)
    return [row for _, cell in sorted(cells.items()) for row in cell[:most]]


def language_of_row(row: PreferenceRow) -> str:
    """`zh` or `en` (which stands for every other too)."""
    return row.language or ("zh" if is_han(row.question) else "en")


def counts_of(rows: Sequence[Row]) -> dict[str, int]:
    """How many rows there are of each language and label."""
    labels: Counter[str] = Counter()
    for row in rows:
        label = (
            row.chosen
            if isinstance(row, PreferenceRow)
            else row.label
            if isinstance(row, FilterRow)
            else "rows"
        )
        language = (
            language_of_row(row)
            if isinstance(row, PreferenceRow)
            else "zh"
            if is_han(row.question)
            else "en"
        )
        labels[f"{language} {label}"] += 1
    return dict(sorted(labels.items()))


# --- rows as they come ----------------------------------------------------------------------------


def stored(path: Path, kind: type[R]) -> list[R]:
    """The rows that an earlier run has stored; a last line that a kill has cut is taken away."""
    if not path.exists():
        return []
    content = path.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    if len(whole) < len(content):
        path.write_bytes(whole)
    return [kind.model_validate_json(line) for line in whole.splitlines()]


def append(path: Path, rows: Iterable[Row]) -> None:
    """Store rows behind those that are there."""
    with path.open("a", encoding="utf-8") as file:
        file.writelines(row.model_dump_json() + "\n" for row in rows)


def replace(path: Path, rows: Iterable[Row]) -> None:
    """Store these rows in place of those that are there."""
    path.unlink(missing_ok=True)
    append(path, rows)


def hash_of(rows: Iterable[Row]) -> str:
    """Of the rows, in their order."""
    return sha256_of("".join(row.model_dump_json() for row in rows).encode())
