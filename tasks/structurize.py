"""Structurize: what the documents found say, in the structure that the question needs (StructRAG,
section 2.3).

K = {k_i} and B = {b_i}: the elements of each document and a description of each. Where a text has
the structure already (rows of tables, numbered steps) the call is spared; a model structures the
rest, large documents each in calls of their own, side by side.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain

from prompts.engine.calls import first_fitting, rough_tokens
from prompts.engine.helper import helped
from prompts.structures import as_written, rendered
from prompts.structurize import NOT_FOUND, BuiltStructure, Structurize, built_of
from prompts.text.evidence import Evidence
from storage.answer_records import DocumentStructure, StructureType
from storage.records import by_key
from tasks.answer import Note
from tasks.batches import gather_or_cancel, portions
from tasks.citations import LazySequence, Source, number_of
from tasks.retrying import BRIEF
from tasks.step import step

SHOWN_SIGNS = 2_000  # of one document's structure in the trace
AS_WRITTEN = "what is not written in that structure is read as it stands"
EXACT = "rows and numbered steps are structured as they stand"
NUMBER_TOKENS = 3


@dataclass(frozen=True)
class Structured:
    """K and B: the elements of all documents with their places, and a description of each
    document's part.

    `type` is the structure that was used in the end: chunk where the chosen one fitted no document.
    `built` holds what each document gave: those without elements are there too. `by_model` tells a
    model's work from that of rules.
    """

    type: StructureType
    elements: Sequence[Evidence]
    descriptions: Sequence[str]
    pool: Sequence[Evidence]
    built: tuple[BuiltStructure, ...] = ()
    by_model: bool = False


@step("structurize", BRIEF, asks_model=True)
async def structurize(
    pool: Sequence[Evidence], question: str, builder: Structurize, *, wanted: bool = False
) -> Structured:
    """Bring the pool's documents into the builder's structure. Where it fits no document, fall back
    to chunks.

    Without a model a document has what its text is written in, or nothing. `wanted`: the user asked
    for the structure, whatever the models can do.
    """
    if builder.structure == "chunk":
        plain = LazySequence(
            lambda: [_written("chunk", name, own) for name, own in _by_document(pool).items()]
        )
        elements = LazySequence(
            lambda: (element for document in plain for element in document.elements)
        )
        return Structured(
            "chunk",
            elements,
            LazySequence(lambda: (document.description for document in plain)),
            pool,
        )
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
    made = tuple(element for document in ordered for element in document.elements)
    descriptions = tuple(document.description for document in ordered)
    if not made:
        return Structured(
            "chunk", tuple(p for p in pool if not p.label), descriptions, pool, ordered
        )
    return Structured(structure, made, descriptions, pool, ordered, by_model=not by_rules)


def _written(structure: StructureType, document: str, pieces: Sequence[Evidence]) -> BuiltStructure:
    """What a document's text is written in, as its structure."""
    return built_of(structure, document, pieces[0].title, as_written(structure, pieces), "")


def _by_document(pool: Sequence[Evidence]) -> dict[str, list[Evidence]]:
    return by_key((piece.document, piece) for piece in pool)


async def _by_model(
    documents: Sequence[Sequence[Evidence]], question: str, builder: Structurize
) -> dict[str, BuiltStructure]:
    """The structures of documents by id, in as few calls as they fit in; one that no prompt holds
    says so.
    """
    limits = builder.policy.limits
    calls, most = list[list[Evidence]](), limits.structures
    for pieces in documents:
        if most >= _size(pieces[0]):
            read = first_fitting(pieces, _size, most)
            most -= sum(map(_size, read))
            # A document's pieces stay together as far as a call holds them.
            calls += [
                [read[place] for place in batch]
                for batch in portions([*map(_size, read)], limits.structure)
            ]
    batches = portions([sum(map(_size, call)) for call in calls], limits.structure)
    packed = [[piece for place in batch for piece in calls[place]] for batch in batches]
    structures: dict[str, BuiltStructure] = {}
    for built in chain.from_iterable(
        await gather_or_cancel(_built(batch, question, builder) for batch in packed)
    ):
        first = structures.get(built.document)
        structures[built.document] = _joined(first, built) if first else built
    for first_piece in (pieces[0] for pieces in documents if pieces[0].document not in structures):
        # A document that the token limit left out: said, not passed over.
        description = f"{first_piece.title}: {NOT_FOUND} (not read: the limit is reached)"
        structures[first_piece.document] = BuiltStructure(
            first_piece.document, first_piece.title, description, ()
        )
    return structures


async def _built(
    pieces: Sequence[Evidence], question: str, builder: Structurize
) -> list[BuiltStructure]:
    """What one call makes of these pieces; documents without elements where the model gives no
    usable answer.
    """
    titles = {piece.document: piece.title for piece in pieces}
    unread = [
        BuiltStructure(
            document, title, f"{title}: {NOT_FOUND} (the model gave no usable answer)", ()
        )
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
    """Two parts of one document."""
    both = (*first.elements, *second.elements)
    description = f"{first.title}: {len(both)} elements" if both else first.description
    return replace(
        first,
        description=description,
        elements=both,
        unverified=first.unverified + second.unverified,
    )


def traced_structures(structured: Structured) -> tuple[DocumentStructure, ...]:
    """What the trace tells of each document's structure: its form as text, bounded, and what the
    checks refused.
    """
    traced = []
    for built in structured.built if structured.type != "chunk" else ():
        text = rendered(structured.type, built.elements)
        if len(text) > SHOWN_SIGNS:
            cut = text[:SHOWN_SIGNS]
            text = (cut.rpartition("\n")[0] or cut) + "\n…"
        structure = DocumentStructure(
            document=built.document,
            title=built.title,
            description=built.description,
            elements=len(built.elements),
            unverified=built.unverified,
            text=text,
        )
        traced.append(structure)
    return tuple(traced)


LABELS = {
    "table": "Table made of the documents",
    "graph": "Relations stated in the documents",
    "algorithm": "Steps made of the documents",
    "catalogue": "Catalogue made of the documents",
}


def structure_note(structured: Structured, sources: Sequence[Source]) -> list[Note]:
    """One note a document that gave elements; nothing for what the sources are already: plain
    chunks, and what rules made of them.
    """
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
