"""Are all figures of financial reports found where they stand, and is the one that a question asks for among them?

`python -m benchmarks.tables --data DIR` reads Loong's 161 financial reports with the project's own loader, and the
questions of level 1 (one figure of one company). Rules and weights were chosen on the questions of levels 2 to 4
(`--levels 4` measures those whose answers state a figure for each document).
"""

import argparse
import gzip
import json
import re
import sys
import time
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from pydantic import BaseModel

from prompts.language.words import fold_name
from storage.records import Document
from storage.structures import Cell, Schema
from tasks.load.compose import compose
from tasks.load.sources import read_sources
from tasks.structurize.schema import schema_of
from tasks.structurize.tables import cells_in, matching, thing_of

DOCUMENTS = "router/loong_financial_docs.jsonl.gz"
QUESTIONS = "router/loong_financial_questions.jsonl.gz"
_FIGURE = re.compile(r"[(（]?\s*[$¥]?\s*[(（]?\s*[-−]?\s*[$¥]?\s*\d[\d,]*(?:\.\d+)?\s*[)）]?")
_LARGE = re.compile(r"(?<![\d.,])(\d[\d,]*(?:\.(\d+))?)\s*(亿|万|million|billion)")
_SIZES = {"亿": 1e8, "万": 1e4, "million": 1e6, "billion": 1e9}
_THOUSAND = re.compile(r"thousand|千元")
_CLOSE = 1e-9


class Question(BaseModel):
    """A row of the questions."""

    language: str
    level: int
    question: str
    answer: object
    doc: tuple[str, ...]
    doc_ids: tuple[str, ...]


def read_documents(data: Path) -> list[Document]:
    """The reports as the project stores them."""
    return compose(read_sources([data / DOCUMENTS]).parts)


def read_questions(data: Path, levels: Sequence[int]) -> list[Question]:
    """The questions of the levels."""
    with gzip.open(data / QUESTIONS, "rt", encoding="utf-8") as lines:
        rows = [Question.model_validate_json(line) for line in lines]
    return [row for row in rows if row.level in levels]


def figures_in(text: str) -> list[float]:
    """The amounts that a text states, with sign, years left out; "$2,181 thousand" gives 2181 and 2181000."""
    found = []
    for match in _FIGURE.finditer(text):
        number = float(re.sub(r"[^\d.]", "", match.group()))
        if 1990 <= number <= 2035 and "," not in match.group():
            continue
        signed = -number if re.search(r"[(（−-]", match.group()) else number
        found += [signed, signed * 1000] if _THOUSAND.search(text) else [signed]
    return found


def is_gold(cell: Cell, amounts: Iterable[float], raw: str) -> bool:
    """Whether a cell holds a gold figure: the amount, as shown or with its scale, rounded as gold is, or the string."""
    if cell.number is None:
        return bool(cell.raw) and _folded(cell.raw) == _folded(raw)
    shown = cell.number / cell.scale
    if any(abs(one - other) <= _CLOSE * max(1.0, abs(one)) for one in amounts for other in (cell.number, shown)):
        return True
    return any(
        abs(float(match[1].replace(",", "")) * _SIZES[match[3]] - abs(cell.number))
        <= 0.51 * _SIZES[match[3]] * 10 ** -len(match[2] or "")
        for match in _LARGE.finditer(raw)  # the gold figure is rounded: "1336.80亿元"
    )


def _folded(text: str) -> str:
    return re.sub(r"[\s$¥元]", "", unicodedata.normalize("NFKC", text))


def is_called(document: Document, name: str) -> bool:
    """Whether a document's subject is called so."""
    key = fold_name(name)
    return bool(key) and any(key in fold_name(own) or fold_name(own) in key for own in thing_of(document))


def ranks(question: Question, documents: dict[str, Document]) -> list[int | None]:
    """For each document that the question is about the place of the gold cell: 0 and up in the matching cells of its
    attribute, -1 anywhere else in the document, None nowhere."""
    names = [name for one in question.doc_ids if one in documents for name in thing_of(documents[one])]
    schema = schema_of(question.question, names)
    answer = str(question.answer)
    amounts = figures_in(answer) or figures_in(question.question)
    about = [documents[one] for one in question.doc_ids if one in documents]
    if question.level == 1:
        asked = schema.things if figures_in(answer) else (answer,)
        about = [one for one in about if any(is_called(one, name) for name in asked)][:1]
        if not about:
            return [None]
    return [_rank(document, schema, amounts, answer) for document in about]


def _rank(document: Document, schema: Schema, amounts: Sequence[float], answer: str) -> int | None:
    cells = cells_in(document)
    for found in matching(schema, cells).values():
        for place, cell in enumerate(found):
            if is_gold(cell, amounts, answer):
                return place
    return -1 if any(is_gold(cell, amounts, answer) for cell in cells) else None


def check_cells(documents: Sequence[Document]) -> list[str]:
    """The lines on all cells: how many, how many stand where they say, and the time."""
    started = time.process_time()
    found = [cells_in(document) for document in documents]
    seconds = time.process_time() - started
    total = sum(len(cells) for cells in found)
    raw = quoted = 0
    for document, cells in zip(documents, found, strict=True):
        for cell in cells:
            raw += document.text[cell.start : cell.end] == cell.raw != ""
            quote = document.text[cell.quote_start : cell.quote_start + len(cell.quote)]
            quoted += quote == cell.quote and cell.quote_start <= cell.start and cell.raw in quote
    size = sum(len(document.text) for document in documents)
    figures = sum(cell.number is not None for cells in found for cell in cells)
    return [
        f"{len(documents)} documents, {size / 1e6:.2f} million characters, {total} cells ({figures} figures)",
        f"  source[start:end] == raw: {raw / total:.4f}; quote holds it: {quoted / total:.4f}",
        f"  {seconds / size * 1e6:.2f} CPU seconds per million characters",
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; exit 2 where the data is absent."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--levels", type=int, nargs="+", default=[1])
    parser.add_argument("--verbose", action="store_true", help="print the questions whose cell is not the first")
    options = parser.parse_args(arguments)
    if not (options.data / DOCUMENTS).exists():
        print(f"{options.data / DOCUMENTS} is absent: give the folder that holds it with --data", file=sys.stderr)
        return 2
    documents = read_documents(options.data)
    print("\n".join(check_cells(documents)))
    by_id = {document.id: document for document in documents}
    places: dict[str, list[int | None]] = defaultdict(list)
    for question in read_questions(options.data, options.levels):
        found = ranks(question, by_id)
        places[question.language] += found
        if options.verbose and found != [0] * len(found):
            print(f"  {found} {question.question} | {json.dumps(question.answer, ensure_ascii=False)[:120]}")
    for language, found in sorted(places.items()):
        anywhere = sum(place is not None for place in found)
        first, three = (sum(place is not None and 0 <= place < most for place in found) for most in (1, 3))
        print(
            f"{language}: {len(found)} figures asked for; in the cells {anywhere / len(found):.3f}, "
            f"first {first / len(found):.3f}, among the first three {three / len(found):.3f}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
