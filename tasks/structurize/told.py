"""A structure as the answering model reads it: in the form of its type, with the numbers of the sources."""

from collections.abc import Sequence

from prompts.structures.render import rendered
from tasks.answer import Note
from tasks.sources import Source, number_of
from tasks.structurize.step import Structured

LABELS = {
    "table": "Table made of the documents",
    "graph": "Relations stated in the documents",
    "algorithm": "Steps made of the documents",
    "catalogue": "Catalogue made of the documents",
}


def structure_note(structured: Structured, sources: Sequence[Source]) -> list[Note]:
    """One note a document that gave elements; nothing for what the sources are already: plain chunks, and what rules
    made of them."""
    if structured.type not in LABELS or not structured.by_model:
        return []
    notes = []
    for one in structured.built:
        if not one.elements:
            continue
        places = [structured.pool.places[element.number] for element in one.elements]
        numbers = {number_of(sources, place.document, place.start, place.end) for place in places} - {None}
        shown = "".join(f"[{number}]" for number in sorted(filter(None, numbers)))
        label = f"{LABELS[structured.type]}: {one.title} {shown}".strip()
        notes.append(Note(label, rendered(structured.type, one.elements)))
    return notes
