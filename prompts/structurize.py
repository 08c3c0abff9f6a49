"""Structurize: what documents say, in the structure that a question needs (StructRAG, section 2.3).

That is a table of cells, a graph of triples, an algorithm of steps or a catalogue of numbered
lines. An element whose figures or names are not in its sentence is kept and counted as unverified.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import dspy
from pydantic import BaseModel, Field

from prompts.engine.models import Models
from prompts.engine.step import Step
from prompts.structures import StructureName, numbered, unverified
from prompts.text.evidence import Evidence

NOT_FOUND = "not found"
_SENTENCE = "Number of the sentence that says it."


class StructureBuilt(BaseModel):
    """What all structures have: what they cover, before their elements."""

    description: str = Field(description="What they cover, in a sentence.")


class BuiltCell(BaseModel):
    """One figure or fact of one thing."""

    row: str
    column: str
    cell: str
    sentence: int = Field(description=_SENTENCE)


class GraphTriple(BaseModel):
    """One relation between two things."""

    head: str
    relation: str
    tail: str
    sentence: int = Field(description=_SENTENCE)


class ProcedureStep(BaseModel):
    """One thing to do, or to happen."""

    number: str
    condition: str = ""
    action: str
    sentence: int = Field(description=_SENTENCE)


class CatalogueLine(BaseModel):
    """One line of an outline."""

    number: str
    text: str
    sentence: int = Field(description=_SENTENCE)


class TableBuilt(StructureBuilt):
    """Cells, one a figure or fact."""

    cells: list[BuiltCell]


class GraphBuilt(StructureBuilt):
    """Triples."""

    triples: list[GraphTriple]


class AlgorithmBuilt(StructureBuilt):
    """Steps in their order."""

    steps: list[ProcedureStep]


class CatalogueBuilt(StructureBuilt):
    """Lines in their order."""

    lines: list[CatalogueLine]


class _Build(dspy.Signature):
    """What every structure is taken out of."""

    title: str = dspy.InputField()
    sentences: str = dspy.InputField()
    question: str = dspy.InputField()


class BuildTable(_Build):
    """Take from the sentences the cells of the table that the question needs: a row for each thing
    that is compared, counted or listed, a column for each thing told of it.

    Use the wanted names of rows and columns, the same in all documents. Copy a cell letter by
    letter with unit, sign and separators ("$1,308,463"); put period and unit into the column where
    the cell lacks them. Compute nothing. Give a figure once, and leave out what is not asked
    about.
    """

    built: TableBuilt = dspy.OutputField()


class BuildGraph(_Build):
    """Take from the sentences the relations that lead from what the question names to what it asks
    for.

    Give each relation on such a way, also links that may only be needed; leave out the rest. Write
    the full name of a thing, the same everywhere, in place of "he" or "it". The relation is a
    short phrase, read from head to tail; a denial or limit is part of it ("director until 2018").
    State nothing that a sentence does not say.
    """

    built: GraphBuilt = dspy.OutputField()


class BuildAlgorithm(_Build):
    """Take from the sentences the steps of the procedure that is asked for, in the order in which
    they are done.

    A step is one action with all that it needs: quantities, limits, tools, who does it; figures
    and names as written. A condition ("only in winter") stands apart from the action. Alternatives
    are 2a, 2b; a repetition is told in the action. Warnings belong to their step. Invent no step;
    leave out other procedures.
    """

    built: AlgorithmBuilt = dspy.OutputField()


class BuildCatalogue(_Build):
    """Put what the sentences say on the question into an outline with numbers.

    Lines 1, 2, 3 are the topics, the weightiest first; the lines below (1.1, 1.2, 1.1.1) are what
    is said on them, one statement a line in full sentences with names, figures and dates. Say once
    what several sentences say; put what limits or contradicts a statement beside it; leave out
    what is beside the question.
    """

    built: CatalogueBuilt = dspy.OutputField()


@dataclass(frozen=True, slots=True)
class BuiltStructure:
    """(k_i, b_i): the elements of one document and a description of them.

    `unverified` counts those whose figures or names are not in their sentences.
    """

    document: str
    title: str
    description: str
    elements: tuple[Evidence, ...]
    unverified: int = 0


class Structurize(Step):
    """Sentences of one or several documents → their elements in the chosen structure."""

    step = "structurize"
    role = "structurize"
    writes_in = "sentences"
    task = BuildTable
    forms: ClassVar[dict[StructureName, type[dspy.Signature]]] = {
        "table": BuildTable,
        "graph": BuildGraph,
        "algorithm": BuildAlgorithm,
        "catalogue": BuildCatalogue,
    }

    def __init__(self, models: Models | None = None, structure: StructureName = "table") -> None:
        super().__init__(models)
        self.structure = structure
        self.__dict__["task"] = self.forms.get(structure, BuildTable)  # of this instance alone

    @property
    def instruction_names(self) -> tuple[str, ...]:
        """Each structure may have an instruction of its own."""
        return f"{self.step}_{self.structure}", self.step

    async def run(self, evidence: Sequence[Evidence], question: str) -> list[BuiltStructure]:
        """A structure for each document, in the order of the evidence.

        An element without a known sentence goes to the first document, unverified.
        """
        by_number = {piece.number: piece for piece in evidence}
        titles = dict.fromkeys(piece.title for piece in evidence)
        lead = "[{number}] {title}: {text}" if len(titles) > 1 else "[{number}] {text}"
        sentences = [
            lead.format(number=piece.number, title=piece.title, text=" ".join(piece.text.split()))
            for piece in evidence
        ]
        prediction = await self.acall(
            question=question, title="; ".join(titles), sentences="\n".join(sentences)
        )
        pieces: dict[str, list[Evidence]] = {piece.document: [] for piece in evidence}
        for label, attribute, value, sentence in _rows(prediction.built):
            piece = by_number.get(sentence, evidence[0])
            pieces[piece.document].append(
                piece._replace(label=label, attribute=attribute, value=value)
            )
        title_of = {piece.document: piece.title for piece in evidence}
        about = " ".join(prediction.built.description.split())
        return [
            built_of(self.structure, name, title_of[name], elements, about)
            for name, elements in pieces.items()
        ]


def _rows(built: StructureBuilt) -> list[tuple[str, str, str, int]]:
    """(label, attribute, value, sentence) of each element."""
    _, elements = dict(built).values()
    rows = (list(dict(element).values()) for element in elements)
    # A catalogue's lines have no attribute.
    return [(row[0], row[1] if len(row) > 3 else "", row[-2], row[-1]) for row in rows]


def built_of(
    structure: StructureName, document: str, title: str, made: Sequence[Evidence], about: str
) -> BuiltStructure:
    """The structure of one document: distinct elements, and how many are unverified."""
    elements = list(
        dict.fromkeys(element for element in made if element.value.strip() or structure == "chunk")
    )
    if structure == "catalogue":
        elements = numbered(elements)
    summary = f"{len(elements)} elements" + (f" ({about})" if about else "")
    description = f"{title}: {summary if elements else NOT_FOUND}"
    return BuiltStructure(
        document, title, description, tuple(elements), unverified(structure, elements)
    )
