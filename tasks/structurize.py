"""Structurize: bring the documents found into the structure that the question needs (StructRAG,
section 2.3).

The results are the elements of each document, and a description of each. No model is asked for a
text that has the structure already (rows of tables, numbered steps). It structures the others,
large documents in calls of their own, side by side.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain

from prompts.engine.helper import helped
from prompts.engine.messages import first_fitting, portions, rough_tokens
from prompts.structures import as_written, rendered
from prompts.structurize import NOT_FOUND, BuiltStructure, Structurize, built_of
from prompts.text.evidence import Evidence
from storage.answer_records import DocumentStructure, StructureType
from storage.records import by_key
from tasks.answer import Note
from tasks.batches import gather_or_cancel
from tasks.citations import LazySequence, Source, number_of
from tasks.retrying import BRIEF
from tasks.step import step

MOST_SHOWN = 2_000  # characters of a document's structure in the trace
AS_WRITTEN = "what is not written in that structure is read as it stands"
EXACT = "rows and numbered steps are structured as they stand"
NUMBER_TOKENS = 3  # of a piece in a prompt


@dataclass(frozen=True)
class Structured:
    """The structure of each document (`built`), even of those without elements, and descriptions.

    `type` is chunk if the chosen structure fitted no document. `by_model`: a model made elements.
    """

    type: StructureType
    descriptions: Sequence[str]
    pool: Sequence[Evidence]
    built: tuple[BuiltStructure, ...] = ()
    by_model: bool = False


@step("structurize", BRIEF, asks_model=True)
async def structurize(
    pool: Sequence[Evidence], question: str, builder: Structurize, *, wanted: bool = False
) -> Structured:
    """Bring the documents of a pool into the builder's structure, or leave chunks if it fits none.

    Without a model a document keeps the structure in which it is written, if any. `wanted`: the
    user asked for the structure, so that no profile spares the call.
    """
    if builder.structure == "chunk":
        # Seldom read, and a pool is large.
        descriptions = LazySequence(
            lambda: (
                _written("chunk", name, own).description for name, own in _by_document(pool).items()
            )
        )
        return Structured("chunk", descriptions, pool)
    return await helped(
        builder, lambda step: _structured(pool, question, step), AS_WRITTEN, wanted=wanted
    )


async def _structured(pool: Sequence[Evidence], question: str, builder: Structurize) -> Structured:
    structure = builder.structure
    by_rules, by_document = builder.is_offline, _by_document(pool)
    built: dict[str, BuiltStructure] = {}
    left: list[list[Evidence]] = []
    for document, pieces in by_document.items():
        written = _written(structure, document, pieces)
        if by_rules or (written.elements and builder.spares(EXACT)):
            built[document] = written
        else:
            left.append([piece for piece in pieces if piece.attribute != "step"])
    built |= await _by_model(left, question, builder) if left else {}
    ordered = tuple(built[document] for document in by_document)
    descriptions = tuple(document.description for document in ordered)
    if not any(document.elements for document in ordered):
        return Structured("chunk", descriptions, pool, ordered)
    return Structured(structure, descriptions, pool, ordered, by_model=not by_rules)


def _written(structure: StructureType, document: str, pieces: Sequence[Evidence]) -> BuiltStructure:
    return built_of(structure, document, pieces[0].title, as_written(structure, pieces), "")


def _by_document(pool: Sequence[Evidence]) -> dict[str, list[Evidence]]:
    return by_key((piece.document, piece) for piece in pool)


async def _by_model(
    documents: Sequence[Sequence[Evidence]], question: str, builder: Structurize
) -> dict[str, BuiltStructure]:
    limits = builder.policy.limits
    calls, most = list[list[Evidence]](), limits.structures
    for pieces in documents:
        if most >= _size(pieces[0]):
            read = first_fitting(pieces, _size, most)
            most -= sum(map(_size, read))
            # The pieces of a document stay together if a call can hold them.
            calls += portions(read, map(_size, read), limits.structure)
    batches = portions(calls, (sum(map(_size, call)) for call in calls), limits.structure)
    packed = [list(chain.from_iterable(batch)) for batch in batches]
    structures: dict[str, BuiltStructure] = {}
    for built in chain.from_iterable(
        await gather_or_cancel(_built(batch, question, builder) for batch in packed)
    ):
        first = structures.get(built.document)
        structures[built.document] = _joined(first, built) if first else built
    for piece in (pieces[0] for pieces in documents):
        if piece.document not in structures:
            reason = "not read: the limit is reached"
            structures[piece.document] = _empty(piece.document, piece.title, reason)
    return structures


def _empty(document: str, title: str, reason: str) -> BuiltStructure:
    return BuiltStructure(document, title, f"{title}: {NOT_FOUND} ({reason})", ())


async def _built(
    pieces: Sequence[Evidence], question: str, builder: Structurize
) -> list[BuiltStructure]:
    """Structure pieces in one call; without a usable answer their documents have no elements."""
    titles = {piece.document: piece.title for piece in pieces}
    unread = [
        _empty(document, title, "the model gave no usable answer")
        for document, title in titles.items()
    ]
    return await helped(
        builder,
        lambda step: step.run(pieces, question),
        AS_WRITTEN,
        otherwise=lambda: unread,
        wanted=True,
    )


def _size(piece: Evidence) -> int:
    return rough_tokens(piece.text) + rough_tokens(piece.title) + NUMBER_TOKENS


def _joined(first: BuiltStructure, second: BuiltStructure) -> BuiltStructure:
    both = (*first.elements, *second.elements)
    description = f"{first.title}: {len(both)} elements" if both else first.description
    return replace(
        first,
        description=description,
        elements=both,
        unverified=first.unverified + second.unverified,
    )


def traced_structures(structured: Structured) -> tuple[DocumentStructure, ...]:
    """Return the structure of each document for the trace, as a bounded text."""
    traced = []
    for built in structured.built if structured.type != "chunk" else ():
        text = rendered(structured.type, built.elements)
        if len(text) > MOST_SHOWN:
            cut = text[:MOST_SHOWN]
            text = (cut.rpartition("\n")[0] or cut) + "\n…"
        traced.append(
            DocumentStructure(
                document=built.document,
                title=built.title,
                description=built.description,
                elements=len(built.elements),
                unverified=built.unverified,
                text=text,
            )
        )
    return tuple(traced)


LABELS = {
    "table": "Table made of the documents",
    "graph": "Relations stated in the documents",
    "algorithm": "Steps made of the documents",
    "catalogue": "Catalogue made of the documents",
}


def structure_note(structured: Structured, sources: Sequence[Source]) -> list[Note]:
    """Return a note for each document with elements of a model; others are in the sources."""
    if structured.type not in LABELS or not structured.by_model:
        return []
    notes = []
    for built in filter(lambda built: built.elements, structured.built):
        places = [structured.pool[element.number] for element in built.elements]
        numbers = {number_of(sources, place.document, place.start, place.end) for place in places}
        shown = "".join(f"[{number}]" for number in sorted(filter(None, numbers)))
        label = f"{LABELS[structured.type]}: {built.title} {shown}".strip()
        notes.append(Note(label, rendered(structured.type, built.elements)))
    return notes
