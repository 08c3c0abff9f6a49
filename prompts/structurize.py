"""What does a document say, in the structure that the question needs? (StructRAG, section 2.3)

A table of figures, a graph of triples, an algorithm of steps, a catalogue of headed lines, or plain chunks. Every
element quotes its source and is compared with it; a document with nothing to say gives no element and says so.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import dspy
from pydantic import BaseModel, Field

from prompts.engine.step import Step
from prompts.reading.evidence import Evidence
from prompts.reading.relevance import Relevance
from prompts.structures.checks import StructureName, checked
from prompts.structures.offline import elements_of

NOT_FOUND = "not found"


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


@dataclass(frozen=True, slots=True)
class Built:
    """(k_i, b_i): the elements of one document, a description of them, and how many were refused by the checks."""

    document: str
    title: str
    description: str
    elements: tuple[Evidence, ...]
    refused: int = 0


class Structurize(Step):
    """Evidence → its elements in the chosen structure; of one document, or of several small ones in one call."""

    step = "structurize"
    role = "structurize"
    task = BuildStructure

    async def run(self, structure: StructureName, evidence: Sequence[Evidence], wanted: str) -> list[Built]:
        """What a model makes of the evidence, one Built for each document, in the order of the evidence.

        `wanted` is the question, or what the schema pass says is to be found. An element that names no sentence is
        refused.
        """
        by_number = {piece.number: piece for piece in evidence}
        titles = list(dict.fromkeys(piece.title for piece in evidence))
        lead = "[{number}] {title}: {text}" if len(titles) > 1 else "[{number}] {text}"
        prediction = await self.acall(
            question=wanted,
            structure=structure,
            title="; ".join(titles),
            sentences=[lead.format(number=piece.number, title=piece.title, text=piece.text) for piece in evidence],
        )
        built: StructureBuilt = prediction.built
        found: dict[str, list[Evidence]] = {piece.document: [] for piece in evidence}
        for element in built.elements:
            piece = by_number.get(element.sentence)
            if piece is not None:
                made = replace(piece, label=element.label, attribute=element.attribute, value=element.value)
                found[piece.document].append(made)
        nowhere = sum(element.sentence not in by_number for element in built.elements)
        title_of = {piece.document: piece.title for piece in evidence}
        made_of = [_built(structure, name, title_of[name], made, built.description) for name, made in found.items()]
        return [replace(made_of[0], refused=made_of[0].refused + nowhere), *made_of[1:]]


def structurize_offline(structure: StructureName, evidence: Sequence[Evidence], relevance: Relevance) -> Built:
    """The elements that the evidence of one document gives without a model; `evidence` has one piece at least."""
    found = elements_of(structure, evidence, relevance)
    return _built(structure, evidence[0].document, evidence[0].title, found, "")


def _built(structure: StructureName, document: str, title: str, found: Sequence[Evidence], about: str) -> Built:
    held = checked(structure, found)
    said = f"{len(held.elements)} elements" + (f" ({about})" if about else "")
    return Built(document, title, f"{title}: {said if held.elements else NOT_FOUND}", held.elements, held.refused)
