"""What does each community say? One cited report a community (GraphRAG 2.5).

A community that a level took over unchanged from the one above has that one's report; single entities have none. A
report whose inputs did not change is taken over from the last generation.
"""

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence

from prompts.report import ReportWritten, StatementGiven, WriteReports
from storage.records import Chunk, Community, Entity, Finding, Occurrence, Record, Relation, Report, content_id
from tasks.step import step

MAX_STATEMENTS = 60


class Evidence(Record):
    """What reports are written from."""

    entities: tuple[Entity, ...]
    relations: tuple[Relation, ...]
    places: tuple[Occurrence, ...]
    chunks: tuple[Chunk, ...]


class _Source(Record):
    """A statement with the place that says it."""

    given: StatementGiven
    document: str
    start: int
    end: int


class _Desk:
    """The evidence, indexed for looking up the statements inside a community."""

    def __init__(self, evidence: Evidence) -> None:
        self.entities: Mapping[str, Entity] = {entity.id: entity for entity in evidence.entities}
        self.chunks: Mapping[str, Chunk] = {chunk.id: chunk for chunk in evidence.chunks}
        self.touching: dict[str, list[Relation]] = defaultdict(list)
        for relation in evidence.relations:
            self.touching[relation.source].append(relation)
        self.places: dict[str, Occurrence] = {}
        for place in evidence.places:
            self.places.setdefault(place.item, place)

    def statements(self, community: Community) -> list[_Source]:
        """The statements of the relations inside a community, by combined degree of their ends, descending."""
        inside = set(community.members)
        relations = [r for member in community.members for r in self.touching.get(member, ()) if r.target in inside]
        relations.sort(key=lambda r: (-self._degree(r), r.id))
        found: dict[tuple[str, int], _Source] = {}
        for relation in relations:
            place = self.places[relation.id]
            chunk = self.chunks[place.chunk]
            if (chunk.document, place.start) not in found and len(found) < MAX_STATEMENTS:
                found[chunk.document, place.start] = self._source(relation, place, chunk, len(found) + 1)
        return list(found.values())

    def _degree(self, relation: Relation) -> int:
        return self.entities[relation.source].degree + self.entities[relation.target].degree

    def _source(self, relation: Relation, place: Occurrence, chunk: Chunk, number: int) -> _Source:
        text = " ".join(chunk.text[place.start - chunk.start : place.end - chunk.start].split())
        names = (self.entities[relation.source].name, self.entities[relation.target].name)
        given = StatementGiven(number=number, text=text, entities=names, degree=self._degree(relation))
        return _Source(given=given, document=chunk.document, start=place.start, end=place.end)

    def members(self, community: Community) -> list[tuple[str, str]]:
        """Name and description of the members, most connected first."""
        entities = sorted(
            (self.entities[member] for member in community.members), key=lambda e: (-e.degree, -e.mentions, e.name)
        )
        return [(entity.name, entity.description) for entity in entities]


def _finish(community: Community, written: ReportWritten, sources: Sequence[_Source], inputs: str) -> Report:
    """Bind findings to places; a number that was not given is dropped, and a finding left without any with it."""
    by_number = {source.given.number: source for source in sources}
    findings = []
    for finding in written.findings:
        source = next((by_number[number] for number in finding.statements if number in by_number), None)
        if source is not None:
            findings.append(
                Finding(
                    summary=finding.summary,
                    explanation=finding.explanation,
                    document=source.document,
                    start=source.start,
                    end=source.end,
                )
            )
    return Report(
        community=community.id,
        level=community.level,
        title=written.title,
        summary=written.summary,
        rating=written.rating,
        rating_reason=written.rating_reason,
        findings=tuple(findings),
        inputs=inputs,
    )


@step("report")
async def report(
    communities: Sequence[Community], evidence: Evidence, writer: WriteReports, known: Mapping[str, Report]
) -> list[Report]:
    """Reports of all communities that differ from their parent and have a statement; `known`: by input hashes."""
    desk = _Desk(evidence)
    by_id = {community.id: community for community in communities}

    async def one(community: Community) -> Report | None:
        parent = by_id.get(community.parent or "")
        if len(community.members) < 2 or (parent is not None and parent.members == community.members):
            return None
        sources = desk.statements(community)
        if not sources:
            return None
        members = desk.members(community)
        inputs = content_id(
            "inp", writer.models.name(writer.role), repr(members), repr([s.model_dump() for s in sources])
        )
        if inputs in known:
            return known[inputs].model_copy(update={"community": community.id, "level": community.level})
        written = await writer.run(members, [source.given for source in sources])
        return _finish(community, written, sources, inputs)

    if writer.is_offline:
        reports = [await one(community) for community in communities]
    else:
        reports = list(await asyncio.gather(*map(one, communities)))
    return [found for found in reports if found is not None]
