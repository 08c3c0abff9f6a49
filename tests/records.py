"""Passages and evidence for tests, of which only what a test looks at is given."""

from collections.abc import Sequence

from pydantic import TypeAdapter

from storage.graph_records import Entity, Occurrence, Relation
from storage.records import Chunk
from tasks.report import ReportEvidence


def chunk_of(
    text: str = "x", document: str = "d", ordinal: int = 0, start: int = 0, **changes: object
) -> Chunk:
    """A passage; its title is the name of its document."""
    fields: dict[str, object] = {
        "id": f"chk_{document}_{ordinal}" if ordinal else f"chk_{document}",
        "document": document,
        "ordinal": ordinal,
        "start": start,
        "end": start + len(text),
        "text": text,
        "tokens": 9,
        "language": "en",
        "title": document,
    }
    return TypeAdapter(Chunk).validate_python(fields | changes)


def evidence_of(
    stated: Sequence[tuple[str, str, str]], *, described: bool = False
) -> ReportEvidence:
    """Of (source, target, sentence), which stand one after another in one passage; `described`: by
    a model.
    """
    text = " ".join(sentence for *_, sentence in stated)
    relations = [
        Relation(
            id=f"rel_{n:02}",
            source=one,
            target=other,
            predicate="p",
            description=sentence if described else "",
        )
        for n, (one, other, sentence) in enumerate(stated)
    ]
    places = [
        Occurrence(item=f"rel_{n:02}", chunk="chk", start=50 + at, end=50 + at + len(sentence))
        for n, (*_, sentence) in enumerate(stated)
        if (at := text.index(sentence)) >= 0
    ]
    ends = [end for *pair, _ in stated for end in pair]
    entities = [
        Entity(
            id=name,
            name=name,
            kind="thing",
            degree=ends.count(name),
            mentions=2,
            description=f"{name} is one",
        )
        for name in dict.fromkeys(ends)
    ]
    return ReportEvidence(
        entities=tuple(entities),
        relations=tuple(relations),
        places=tuple(places),
        chunks=(chunk_of(text, start=50, id="chk"),),
    )
