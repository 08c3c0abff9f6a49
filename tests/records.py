"""Passages and evidence for tests, which set only the fields that matter."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from storage.graph_records import Entity, Occurrence, Relation
from storage.records import Chunk
from tasks.report import ReportEvidence


def chunk_of(
    text: str = "x", document: str = "d", ordinal: int = 0, start: int = 0, **changes: Any
) -> Chunk:
    """A passage; its title is the name of its document."""
    chunk = Chunk(
        id=f"chk_{document}_{ordinal}" if ordinal else f"chk_{document}",
        document=document,
        ordinal=ordinal,
        start=start,
        end=start + len(text),
        text=text,
        tokens=9,
        language="en",
        title=document,
    )
    return replace(chunk, **changes)


def evidence_of(
    stated: Sequence[tuple[str, str, str]], *, described: bool = False
) -> ReportEvidence:
    """Evidence of (source, target, sentence), in one passage; `described` as if by a model."""
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
