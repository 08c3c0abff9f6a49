"""What is claimed of each entity? Claims with the entities that their names mean (GraphRAG, section 2.2)."""

from collections.abc import Callable, Mapping, Sequence

from storage.records import Claim, ClaimMention, Found, content_id

# The entity that a name means in a document.
EntityOf = Callable[[str, str], str]


def claims_of(extractions: Sequence[Found], documents: Mapping[str, str], entity: EntityOf) -> tuple[Claim, ...]:
    """The claims by id; what two overlapping chunks claim of the same words is one. `documents`: by chunk.

    An object that turns out to be the subject is none.
    """
    found: dict[str, Claim] = {}
    for extraction in extractions:
        for said in extraction.claims:
            document = documents[extraction.chunk]
            subject = entity(document, said.subject)
            other = entity(document, said.object) if said.object else None
            claim = _claim(said, document, subject, None if other == subject else other)
            if claim.id not in found or claim.chunk < found[claim.id].chunk:
                found[claim.id] = claim
    return tuple(found[key] for key in sorted(found))


def _claim(said: ClaimMention, document: str, subject: str, other: str | None) -> Claim:
    told = (said.kind, said.status, said.since or "", said.until or "", said.description)
    return Claim(
        id=content_id("clm", subject, other or "", *told, document, str(said.start), str(said.end)),
        subject=subject, object=other, kind=said.kind, status=said.status, since=said.since, until=said.until,
        description=said.description, chunk=said.chunk, start=said.start, end=said.end,
    )  # fmt: skip
