"""Structures of knowledge: how each is written, and the check of its elements.

They are Markdown, triples, pseudo-code, numbered lines or text (StructRAG 2.3). Published
structurizers change figures while they copy them (section 5), so every element is compared with the
sentence that it names, and those that differ are counted.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Literal

from prompts.text.evidence import Evidence
from prompts.text.thesaurus import concept_terms
from prompts.text.words import is_han

StructureName = Literal["table", "graph", "algorithm", "catalogue", "chunk"]
# The share of the words of an element that its sentence (with title and heading) must have.
SAID = 0.6
_FIGURE = re.compile(r"\d(?:[\d.,:/\u00a0-]*\d)?")
_NUMBERED = re.compile(r"\d+(?:\.\d+)*")


def as_written(structure: StructureName, evidence: Sequence[Evidence]) -> list[Evidence]:
    """The elements of one document's evidence that already has the structure; empty for others.

    Cells of rows are also triples; the steps of a numbered list are an algorithm.
    """
    if structure in {"table", "graph"}:
        pieces = [piece for piece in evidence if not piece.label]
        rows = (
            pieces if all(piece.cells or " | " in piece.text for piece in pieces) else []
        )  # or the names of columns
        return [
            piece._replace(label=piece.cells[0][1], attribute=column, value=value)
            for piece in rows
            for column, value in piece.cells[1:]
        ]
    if structure == "algorithm":
        return [piece._replace(value=piece.text) for piece in evidence if piece.attribute == "step"]
    return [piece for piece in evidence if not piece.label] if structure == "chunk" else []


def unverified(structure: StructureName, elements: Sequence[Evidence]) -> int:
    """The number of elements whose words or figures are not those of their sentence.

    A paraphrase, or a name in place of a pronoun, counts too and is still kept.
    """
    if structure == "chunk":
        return 0
    return sum(
        not (element.value.strip() and _said(element.value, element))
        or (structure == "graph" and not _said(element.label, element))
        for element in elements
    )


def _said(part: str, element: Evidence) -> bool:
    """Whether the sentence in its context has the exact figures of a part, and most words."""
    around = f"{element.title}\n{element.heading}\n{element.before}\n{element.text}"
    terms = set(concept_terms(part))
    return has_figures(part, around) and len(terms & set(concept_terms(around))) >= SAID * len(
        terms
    )


def has_figures(value: str, source: str) -> bool:
    """Whether the source has every figure of a statement as written ("1,308", not "1308")."""
    known = set(_FIGURE.findall(source))
    return all(figure in known for figure in _FIGURE.findall(value))


def numbered(lines: Sequence[Evidence]) -> list[Evidence]:
    """Catalogue lines in their order under valid hierarchical numbers (1, 1.1, 1.2, 2).

    A line is at most one level deeper than the one above it.
    """
    counters: list[int] = []
    catalogue = []
    for line in lines:
        depth = min(_depth(line.label), len(counters) + 1)
        counters = [
            *counters[: depth - 1],
            (counters[depth - 1] if len(counters) >= depth else 0) + 1,
        ]
        catalogue.append(line._replace(label=".".join(map(str, counters))))
    return catalogue


def _depth(label: str) -> int:
    match = _NUMBERED.search(label)
    return match.group().count(".") + 1 if match else 1


_OPENERS = frozenset("if when whenever unless until once before after in only as where".split())
_DENSE = 50  # percent of cells from which a table is written with a column for each attribute


def rendered(structure: StructureName, elements: Sequence[Evidence]) -> str:
    """The elements as text; empty without elements."""
    return _FORMS[structure](elements) if elements else ""


def _table(elements: Sequence[Evidence]) -> str:
    """Rows by columns where most cells have a value, else one cell a line."""
    rows = list(dict.fromkeys(element.label for element in elements))
    columns = list(dict.fromkeys(element.attribute for element in elements))
    cells: dict[tuple[str, str], list[str]] = {}
    for element in elements:
        cells.setdefault((element.label, element.attribute), []).append(element.value)
    if 100 * len(cells) >= _DENSE * len(rows) * len(columns):
        lines = [
            [row, *("; ".join(cells.get((row, column), ())) for column in columns)] for row in rows
        ]
        return markdown_table(["", *columns], lines)
    return markdown_table(
        ["row", "column", "cell"],
        [[element.label, element.attribute, element.value] for element in elements],
    )


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table, with each cell on one line and its bars escaped."""
    lines = [
        [" ".join(cell.split()).replace("|", "\\|") for cell in row]
        for row in (head, ["---"] * len(head), *rows)
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _graph(elements: Sequence[Evidence]) -> str:
    """Triples, one a line: "Ilse Marrand -[founded]-> Marrand & Oke"."""
    return "\n".join(
        dict.fromkeys(
            f"{element.label} -[{element.attribute}]-> {element.value}" for element in elements
        )
    )


def _algorithm(elements: Sequence[Evidence]) -> str:
    """One step a line, in order, after its condition in the source's words ("IF it rains: …")."""
    lines = []
    for number, step in enumerate(elements, 1):
        condition = (
            "" if step.attribute in {"", "step"} else f"{_opened(_one_line(step.attribute))}: "
        )
        lines.append(f"{step.label or number}. {condition}{_one_line(step.value)}")
    return "\n".join(lines)


def _opened(condition: str) -> str:
    word, _, rest = condition.partition(" ")
    if is_han(condition):
        return condition
    return f"{word.upper()} {rest}" if word.lower() in _OPENERS else f"IF {condition}"


def _catalogue(elements: Sequence[Evidence]) -> str:
    return "\n".join(
        f"{'  ' * element.label.count('.')}{element.label} {_one_line(element.value)}"
        for element in elements
    )


def _chunk(elements: Sequence[Evidence]) -> str:
    return "\n".join(_one_line(element.text) for element in elements)


def _one_line(text: str) -> str:
    return " ".join(text.split())


_FORMS: dict[StructureName, Callable[[Sequence[Evidence]], str]] = {
    "table": _table,
    "graph": _graph,
    "algorithm": _algorithm,
    "catalogue": _catalogue,
    "chunk": _chunk,
}
