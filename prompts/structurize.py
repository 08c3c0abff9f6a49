"""What does a document say, in the structure that the question needs? (StructRAG, section 2.3)

A table of figures, a graph of triples, an algorithm of steps, a catalogue of headed lines, or plain chunks. Every
element quotes its source; a document with nothing to say gives no element and says so.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Literal

import dspy
from pydantic import BaseModel, Field

from prompts.engine.step import Step
from prompts.language.relations import Statement, statements
from prompts.language.values import values_in
from prompts.reading.evidence import Evidence
from prompts.reading.pick import names_of
from prompts.reading.relevance import Relevance
from prompts.reading.sure import nearest

StructureName = Literal["table", "graph", "algorithm", "catalogue", "chunk"]
NOT_FOUND = "not found"
# The share of a question's words from which a sentence is worth being taken apart.
NEAR = 0.25
# What a model reads of the evidence.
SHOWN_TOKENS = 900


class Element(BaseModel):
    """One element of a structure: a cell, a triple, a step, a line or a sentence."""

    label: str = Field(
        description="Table: row. Graph: head. Algorithm: step number. Catalogue: 1, 1.1, … Chunk: empty."
    )
    attribute: str = Field(description="Table: column. Graph: relation. Algorithm: condition or empty. Else empty.")
    value: str = Field(description="Table: the cell exactly as in the text. Graph: tail. Else the text.")
    sentence: int = Field(description="Number of the sentence that says it.")


class StructureBuilt(BaseModel):
    """A document's elements and one sentence on what they cover."""

    description: str = Field(description="One sentence on what they cover.")
    elements: list[Element]


class BuildStructure(dspy.Signature):
    """Restructure the numbered sentences, in their language, so that they serve the question. Copy figures exactly;
    leave out what is not asked; no element where the document says nothing."""

    question: str = dspy.InputField()
    structure: StructureName = dspy.InputField()
    title: str = dspy.InputField()
    sentences: list[str] = dspy.InputField()
    built: StructureBuilt = dspy.OutputField()


class Structurize(Step):
    """Evidence → its elements in the chosen structure; of one document, or of several in one call."""

    step = "structurize"
    role = "structurize"
    task = BuildStructure

    async def run(
        self, structure: StructureName, evidence: Sequence[Evidence], relevance: Relevance
    ) -> tuple[str, list[Evidence]]:
        """(description, elements); each element is evidence with label, attribute and value filled."""
        if self.is_offline:
            return structurize_offline(structure, evidence, relevance)
        shown = nearest(evidence, relevance, SHOWN_TOKENS)
        by_number = {piece.number: piece for piece in shown}
        titles = list(dict.fromkeys(piece.title for piece in shown))
        lead = "[{number}] {title}: {text}" if len(titles) > 1 else "[{number}] {text}"
        prediction = await self.acall(
            question=relevance.ask.text,
            structure=structure,
            title="; ".join(titles),
            sentences=[lead.format(number=piece.number, title=piece.title, text=piece.text) for piece in shown],
        )
        built: StructureBuilt = prediction.built
        elements = [
            replace(by_number[e.sentence], label=e.label, attribute=e.attribute, value=e.value)
            for e in built.elements
            if e.sentence in by_number
        ]
        return built.description, elements


def is_exact(structure: StructureName, evidence: Sequence[Evidence]) -> bool:
    """Whether rules make this structure of a document's evidence without loss: sentences, rows, numbered steps."""
    if structure in {"table", "graph"}:
        return all(piece.cells for piece in evidence)
    return structure == "chunk" or (structure == "algorithm" and any(piece.attribute == "step" for piece in evidence))


def structurize_offline(
    structure: StructureName, evidence: Sequence[Evidence], relevance: Relevance
) -> tuple[str, list[Evidence]]:
    """The elements that one document's evidence gives without a model."""
    elements = _BUILDERS[structure](evidence, relevance)
    title = evidence[0].title if evidence else ""
    return f"{title}: {len(elements)} elements" if elements else f"{title}: {NOT_FOUND}", elements


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
    """The steps of numbered lists, in order."""
    return [replace(piece, value=piece.text) for piece in evidence if piece.attribute == "step"]


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
