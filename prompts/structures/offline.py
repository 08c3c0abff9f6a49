"""Which elements do rules read out of evidence, for each structure? (StructRAG, section 2.3, without a model)"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache

from prompts.language.relations import Statement, statements
from prompts.language.values import values_in
from prompts.reading.evidence import Evidence
from prompts.reading.pick import names_of
from prompts.reading.relevance import Relevance
from prompts.structures.checks import StructureName
from prompts.structures.procedure import steps_of

# The share of a question's words from which a sentence is worth being taken apart.
NEAR = 0.25


def elements_of(structure: StructureName, evidence: Sequence[Evidence], relevance: Relevance) -> list[Evidence]:
    """The elements of one document's evidence; each is the piece that says it, with label, attribute and value."""
    return _BUILDERS[structure](evidence, relevance)


def is_exact(structure: StructureName, evidence: Sequence[Evidence]) -> bool:
    """Whether rules make this structure of a document's evidence without loss: sentences, rows, numbered steps."""
    if structure in {"table", "graph"}:
        return all(piece.cells for piece in evidence)
    return structure == "chunk" or (structure == "algorithm" and any(piece.attribute == "step" for piece in evidence))


def _plain(evidence: Sequence[Evidence]) -> list[Evidence]:
    return [piece for piece in evidence if not piece.label]


def _chunk(evidence: Sequence[Evidence], relevance: Relevance) -> list[Evidence]:
    return _plain(evidence)


def _table(evidence: Sequence[Evidence], relevance: Relevance) -> list[Evidence]:
    """Cells: those of rows, and each figure or date of a sentence under the sentence's own words."""
    cells = []
    for piece in _plain(evidence):
        if piece.cells:
            row = piece.cells[0][1]
            cells += [
                replace(piece, label=row, attribute=column, value=value) for column, value in piece.cells[1:] if value
            ]
        else:
            cells += [
                replace(piece, label=piece.title, attribute=piece.text, value=v.text) for v in values_in(piece.text)
            ]
    return cells


def _graph(evidence: Sequence[Evidence], relevance: Relevance) -> list[Evidence]:
    """Triples: those of rows, and of the sentences that share much with the question."""
    triples = []
    for piece in _plain(evidence):
        if piece.cells:
            head = piece.cells[0][1]
            triples += [
                replace(piece, label=head, attribute=column, value=value) for column, value in piece.cells[1:] if value
            ]
            continue
        if relevance.judge(piece).coverage >= NEAR:
            triples += [
                replace(piece, label=said.source, attribute=said.predicate, value=said.target)
                for said in _stated(piece.text, piece.title)
            ]
    return triples


@lru_cache(maxsize=20_000)
def _stated(text: str, title: str) -> tuple[Statement, ...]:
    """The relations that a sentence states between the names in it."""
    return tuple(statements(text, 0, len(text), list(names_of(text)), title))


def _algorithm(evidence: Sequence[Evidence], relevance: Relevance) -> list[Evidence]:
    return steps_of(evidence)


def _catalogue(evidence: Sequence[Evidence], relevance: Relevance) -> list[Evidence]:
    """Under each heading its most telling sentences, numbered 1, 1.1, 1.2, 2, …"""
    sections: dict[str, list[Evidence]] = {}
    for piece in _plain(evidence):
        if not piece.text.lstrip().startswith("#"):
            sections.setdefault(piece.heading, []).append(piece)
    lines = []
    for number, pieces in enumerate(sections.values(), 1):
        best = sorted(relevance.rank(pieces)[:3], key=lambda scored: scored.evidence.number)
        for place, scored in enumerate(best, 1):
            label = f"{number}.{place}"
            lines.append(
                replace(scored.evidence, label=label, attribute=scored.evidence.heading, value=scored.evidence.text)
            )
    return lines


_BUILDERS: dict[StructureName, Callable[[Sequence[Evidence], Relevance], list[Evidence]]] = {
    "table": _table,
    "graph": _graph,
    "algorithm": _algorithm,
    "catalogue": _catalogue,
    "chunk": _chunk,
}
