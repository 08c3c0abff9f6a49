"""What does each community say? One cited report a community (GraphRAG 2.5).

A community that a level took over unchanged from the one above has that one's report; single entities have none. A
report whose inputs did not change is taken over from the last generation.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from prompts.engine.errors import ModelRefused
from prompts.report import ReportWritten, StatementGiven, WriteReports, report_offline
from storage.records import (
    Chunk,
    Community,
    DeadLetter,
    Entity,
    Finding,
    Occurrence,
    Record,
    Relation,
    Report,
    content_id,
)
from tasks.step import step
from tasks.together import together

MAX_STATEMENTS = 60
# As inputs of a report that a model should have written: no later run takes it over.
_NOT_AS_ASKED = ""


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


class _Brief(Record):
    """What one report is written from, and the hash of it."""

    members: tuple[tuple[str, str], ...]
    sources: tuple[_Source, ...]
    inputs: str

    @property
    def given(self) -> list[StatementGiven]:
        return [source.given for source in self.sources]


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

    def brief(self, community: Community, model: str) -> _Brief:
        """What `model` is to report on."""
        members, sources = tuple(self.members(community)), tuple(self.statements(community))
        inputs = content_id("inp", model, repr(list(members)), repr([source.model_dump() for source in sources]))
        return _Brief(members=members, sources=sources, inputs=inputs)

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


class Reported(Record):
    """Reports in the order of their communities; a dead letter for each that a model refused to write."""

    reports: tuple[Report, ...]
    dead_letters: tuple[DeadLetter, ...]


@step("report")
async def report(
    communities: Sequence[Community], evidence: Evidence, writer: WriteReports, known: Mapping[str, Report]
) -> Reported:
    """Reports of all communities that differ from their parent and have a statement; `known`: by input hashes.

    Where a model gives no usable answer the statements are quoted instead, until the next run asks again.
    """
    desk = _Desk(evidence)
    by_id = {community.id: community for community in communities}
    model = writer.models.name(writer.role)
    reports: dict[str, Report] = {}
    asked: list[tuple[Community, _Brief]] = []
    for community in communities:
        parent = by_id.get(community.parent or "")
        if len(community.members) < 2 or (parent is not None and parent.members == community.members):
            continue
        brief = desk.brief(community, model)
        if not brief.sources:
            continue
        if brief.inputs in known:
            kept = {"community": community.id, "level": community.level}
            reports[community.id] = known[brief.inputs].model_copy(update=kept)
        elif (written := writer.sure(brief.members, brief.given)) is not None:
            reports[community.id] = _finish(community, written, brief.sources, brief.inputs)
        else:
            asked.append((community, brief))
    # All levels at once, a task for each call: no report is written from another.
    answers = await together(_written(community, brief, writer) for community, brief in asked)
    reports |= {made.community: made for made, _ in answers}
    return Reported(
        reports=tuple(reports[community.id] for community in communities if community.id in reports),
        dead_letters=tuple(letter for _, letter in answers if letter),
    )


async def _written(community: Community, brief: _Brief, writer: WriteReports) -> tuple[Report, DeadLetter | None]:
    try:
        written = await writer.run(brief.members, brief.given)
    except ModelRefused as error:
        quoted = report_offline(brief.members, brief.given)
        letter = DeadLetter(item=community.id, step="report", error=error.message, remedy=error.remedy)
        return _finish(community, quoted, brief.sources, _NOT_AS_ASKED), letter
    return _finish(community, written, brief.sources, brief.inputs), None
