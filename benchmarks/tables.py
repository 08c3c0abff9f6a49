"""Are the cells of financial reports found where they stand, and is the figure that a question asks for among them?

`python -m benchmarks.tables --data DIR` reads Loong's 161 financial reports with the project's own loader and all their
tables with its reader, and looks for the gold figures of the questions of level 1 (one figure of one company).
"""

import argparse
import gzip
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel

from prompts.text.amounts import amounts_in
from storage.records import Document
from tasks.load.sources import compose, read_sources
from tasks.tables.relations import GridCell, relations_of

DOCUMENTS = "router/loong_financial_docs.jsonl.gz"
QUESTIONS = "router/loong_financial_questions.jsonl.gz"
_CLOSE = 1e-9


class Question(BaseModel):
    """A row of the questions."""

    language: str
    level: int
    answer: object
    doc_ids: tuple[str, ...]


def read_documents(data: Path) -> list[Document]:
    """The reports as the project stores them."""
    return compose(read_sources([data / DOCUMENTS]).parts)


def read_questions(data: Path) -> list[Question]:
    """The questions of level 1."""
    with gzip.open(data / QUESTIONS, "rt", encoding="utf-8") as lines:
        rows = [Question.model_validate_json(line) for line in lines]
    return [row for row in rows if row.level == 1]


def cells_of(document: Document) -> list[GridCell]:
    """All cells of a document's tables beside the names of their rows."""
    return [
        cell
        for table in relations_of([document])
        for row in table.rows
        for place, cell in enumerate(row)
        if cell is not None and place
    ]


def holds(cells: Sequence[GridCell], answer: str) -> bool:
    """Whether a figure of a gold answer is one of the cells, its scale and its sign aside."""
    gold = {abs(amount.number) for amount in amounts_in(answer)} - {0.0}
    return any(
        abs(number - one) <= _CLOSE * one
        for cell in cells
        if cell.number is not None
        for number in {abs(cell.number), abs(cell.number) / cell.scale}
        for one in gold
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; exit 2 where the data is absent."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    options = parser.parse_args(arguments)
    if not (options.data / DOCUMENTS).exists():
        print(f"{options.data / DOCUMENTS} is absent: give the folder that holds it with --data", file=sys.stderr)
        return 2
    documents = read_documents(options.data)
    started = time.process_time()
    cells = {document.id: cells_of(document) for document in documents}
    seconds = time.process_time() - started
    texts = {document.id: document.text for document in documents}
    every = [(texts[name], cell) for name, own in cells.items() for cell in own]
    exact = sum(text[cell.start : cell.end] == cell.raw != "" for text, cell in every)
    size = sum(map(len, texts.values()))
    print(f"{len(documents)} documents, {size / 1e6:.2f} million characters, {len(every)} cells", end=" ")
    print(f"({sum(cell.number is not None for _, cell in every)} figures)")
    print(f"  text[start:end] == raw: {exact / len(every):.4f}; {seconds / size * 1e6:.2f} CPU seconds per million")
    questions = [one for one in read_questions(options.data) if amounts_in(str(one.answer))]
    for language in ("en", "zh"):
        own = [one for one in questions if one.language == language]
        found = sum(any(holds(cells.get(name, ()), str(one.answer)) for name in one.doc_ids) for one in own)
        print(f"{language}: {len(own)} figures asked for; in the cells {found / len(own):.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
