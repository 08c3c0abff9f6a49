"""The context of a community report, within a limit of tokens (GraphRAG, section 2.5).

All of its edges where they fit: by the combined degree of their ends, each with the two entities that it ties, and what
is claimed of these. Where they do not fit, sub-communities give way to their own reports, the one with the longest
element summaries first, until the rest fits. What then still is too much is cut at the end of that order.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from prompts.report import StatementGiven
from prompts.text.tokens import count_tokens
from storage.graph_records import Claim, Community, Entity, Occurrence, Relation, Report, TextSpan
from storage.records import Chunk, Record, content_id

_BETWEEN = 4  # tokens: a number, brackets, quotes and the line's end


class Evidence(Record):
    """What reports are written from; `reports` are those that stand, and stand in for sub-communities."""

    entities: tuple[Entity, ...]
    relations: tuple[Relation, ...]
    places: tuple[Occurrence, ...]
    chunks: tuple[Chunk, ...]
    claims: tuple[Claim, ...] = ()
    reports: tuple[Report, ...] = ()


class Source(Record):
    """A statement with the place that says it."""

    given: StatementGiven
    document: str
    start: int
    end: int
    more: tuple[TextSpan, ...] = ()

    @property
    def places(self) -> tuple[TextSpan, ...]:
        """All places that say it, the telling one first."""
        return (TextSpan(document=self.document, start=self.start, end=self.end), *self.more)


class Context(Record):
    """What one report is written from, and the hash of it.

    `members`: (name, description) of entities, and (title, summary) of the reports that stand in for sub-communities
    (`replaced`, by id). Where not everything fits, `tokens_before` is the size of all element summaries and `tokens`
    that of what is given; elsewhere they are not counted (0).
    """

    members: tuple[tuple[str, str], ...]
    sources: tuple[Source, ...]
    inputs: str
    replaced: tuple[str, ...] = ()
    tokens_before: int = 0
    tokens: int = 0

    @property
    def given(self) -> list[StatementGiven]:
        return [source.given for source in self.sources]


@dataclass(frozen=True, slots=True)
class _Edge:
    """A statement and the entities at its ends, a claim and whom it is about, or a sub-community's finding, which has
    the report's title instead."""

    text: str
    ends: tuple[str, ...]
    degree: int
    document: str
    start: int
    end: int
    report: str = ""
    more: tuple[TextSpan, ...] = ()


@dataclass(frozen=True, slots=True)
class _Elements:
    """Entities and edges in the order in which they are given, and reports in place of others."""

    members: Sequence[str]
    edges: Sequence[_Edge]
    reports: Sequence[Report] = ()


class Desk:
    """The evidence of a generation, indexed for what lies inside a community, and the reports written so far."""

    def __init__(self, evidence: Evidence, communities: Sequence[Community], limit: int) -> None:
        self.limit = limit
        self.reports: dict[str, Report] = {}
        self._counted: dict[str, int] = {}
        self._entities: Mapping[str, Entity] = {entity.id: entity for entity in evidence.entities}
        self._chunks: Mapping[str, Chunk] = {chunk.id: chunk for chunk in evidence.chunks}
        self._touching: dict[str, list[Relation]] = defaultdict(list)
        for relation in evidence.relations:
            self._touching[relation.source].append(relation)
        self._claims: dict[str, list[Claim]] = defaultdict(list)
        for claim in evidence.claims:
            self._claims[claim.subject].append(claim)
        self._places: dict[str, list[Occurrence]] = defaultdict(list)
        for place in evidence.places:
            self._places[place.item].append(place)
        self._below: dict[str, list[Community]] = defaultdict(list)
        for community in communities:
            self._below[community.parent or ""].append(community)

    def whole(self, community: Community, model: str) -> Context | None:
        """All element summaries as the context of what `model` writes; None where they do not fit."""
        elements = self._elements(community.members)
        texts = self._texts(elements)
        # No text has more tokens than bytes, and counting takes longer than all else here.
        at_most = sum(len(text.encode()) + _BETWEEN for text in texts)
        fits = at_most <= self.limit or self._tokens(texts) <= self.limit
        return self._context(elements, model) if fits else None

    def shortened(self, community: Community, model: str) -> Context:
        """The context where not everything fits. The reports of the sub-communities must be there already."""
        everything = self._elements(community.members)
        before = self._size(everything)
        replaced: list[Community] = []
        elements = everything
        for part in self._longest_first(community):
            replaced.append(part)
            elements = self._without(everything, replaced)
            if self._size(elements) <= self.limit:
                break
        if self._size(elements) > self.limit:
            elements = self._cut(elements)
        context = self._context(elements, model)
        stand_in = {"replaced": tuple(part.id for part in replaced)}
        return context.model_copy(update=stand_in | {"tokens_before": before, "tokens": self._size(elements)})

    # --- elements ----------------------------------------------------------------------------------------------------

    def _elements(self, ids: Iterable[str]) -> _Elements:
        inside = set(ids)
        relations = [r for member in sorted(inside) for r in self._touching.get(member, ()) if r.target in inside]
        relations.sort(key=lambda r: (-self._degree(r), r.id))
        edges: dict[tuple[str, str, int], _Edge] = {}
        for relation in relations:
            edge = self._edge(relation)
            edges.setdefault((edge.text, edge.document, edge.start), edge)
        return _Elements(self._by_rank(inside), self._with_claims(list(edges.values()), self._by_rank(inside)))

    def _with_claims(self, edges: Sequence[_Edge], members: Sequence[str]) -> list[_Edge]:
        """Before each edge the claims about its ends; at last those about members without an edge.

        What an edge says already is not said again.
        """
        said = {(edge.text, edge.document, edge.start) for edge in edges}
        left = {member: [self._claim(one, members) for one in self._claims.get(member, ())] for member in members}
        ordered: list[_Edge] = []
        for edge in [*edges, _Edge("", tuple(members), 0, "", 0, 0)]:
            for claim in (claim for end in edge.ends for claim in left.pop(end, ())):
                if (claim.text, claim.document, claim.start) not in said:
                    said.add((claim.text, claim.document, claim.start))
                    ordered.append(replace(claim, degree=edge.degree))
            ordered += [edge] if edge.text else []
        return ordered

    def _claim(self, claim: Claim, members: Sequence[str]) -> _Edge:
        chunk, quoted = self._chunks[claim.chunk], self._quoted(claim)
        # The source's own words tell how sure they are; a description may not.
        doubted = f" ({claim.status})" if claim.status != "true" and claim.description != quoted else ""
        ends = tuple(end for end in (claim.subject, claim.object or "") if end in members)
        return _Edge(claim.description + doubted, ends, 0, chunk.document, claim.start, claim.end)

    def _by_rank(self, ids: Iterable[str]) -> list[str]:
        """Most connected first."""
        entities = [self._entities[one] for one in ids]
        return [e.id for e in sorted(entities, key=lambda e: (-e.degree, -e.mentions, e.name, e.id))]

    def _edge(self, relation: Relation) -> _Edge:
        places = self._places[relation.id]
        # Of several statements that one is cited whose words are given; a description in a model's words rests on all.
        place, more = places[0], places[1:]
        if more and (quoted := next((one for one in places if relation.description in self._quoted(one)), None)):
            place, more = quoted, []
        text = relation.description or self._quoted(place)
        ends = (relation.source, relation.target)
        rest = tuple(map(self._span, more)) if relation.description else ()
        first = self._span(place)
        return _Edge(text, ends, self._degree(relation), first.document, first.start, first.end, more=rest)

    def _span(self, place: Occurrence) -> TextSpan:
        return TextSpan(document=self._chunks[place.chunk].document, start=place.start, end=place.end)

    def _quoted(self, place: Occurrence | Claim) -> str:
        chunk = self._chunks[place.chunk]
        return " ".join(chunk.text[place.start - chunk.start : place.end - chunk.start].split())

    def _degree(self, relation: Relation) -> int:
        return self._entities[relation.source].degree + self._entities[relation.target].degree

    # --- sub-communities ---------------------------------------------------------------------------------------------

    def _longest_first(self, community: Community) -> list[Community]:
        """The sub-communities whose report is shorter than their element summaries, by the size of these."""
        below = self._below.get(community.id, [])
        while len(below) == 1:  # taken over unchanged: what splits it lies further down
            below = self._below.get(below[0].id, [])
        sizes = {part.id: self._size(self._elements(part.members)) for part in below if part.id in self.reports}
        shorter = [part for part in below if part.id in sizes and self._report(part) < sizes[part.id]]
        return sorted(shorter, key=lambda part: (-sizes[part.id], part.id))

    def _report(self, community: Community) -> int:
        """The size of its report."""
        return self._size(_Elements([], [], [self.reports[community.id]]))

    def _without(self, everything: _Elements, replaced: Sequence[Community]) -> _Elements:
        """Reports in place of some sub-communities; edges between two communities stay."""
        home = {member: part.id for part in replaced for member in part.members}
        return _Elements(
            [member for member in everything.members if member not in home],
            [edge for edge in everything.edges if not _is_within(edge, home)],
            [self.reports[part.id] for part in replaced],
        )

    def _cut(self, elements: _Elements) -> _Elements:
        """As much of the order as fits: reports, then edge by edge with its ends."""
        left = self.limit
        reports, edges, members = list[Report](), list[_Edge](), dict[str, None]()
        for report in elements.reports:
            left -= self._size(_Elements([], [], [report]))
            if left < 0:
                return _Elements([], [], reports or elements.reports[:1])
            reports.append(report)
        alone = set(elements.members)
        for edge in elements.edges:
            new = [end for end in edge.ends if end in alone and end not in members]
            left -= self._tokens([edge.text, *map(self._said_of, new)])
            if left < 0:
                break
            edges.append(edge)
            members |= dict.fromkeys(new)
        return _Elements(self._by_rank(members), edges, reports)

    # --- context -----------------------------------------------------------------------------------------------------

    def _size(self, elements: _Elements) -> int:
        return self._tokens(self._texts(elements))

    def _texts(self, elements: _Elements) -> list[str]:
        texts = [edge.text for edge in elements.edges] + [self._said_of(member) for member in elements.members]
        for report in elements.reports:
            texts += [report.title, report.summary, *(finding.explanation for finding in report.findings)]
        return texts

    def _said_of(self, member: str) -> str:
        entity = self._entities[member]
        return f"{entity.name}: {entity.description}"

    def _context(self, elements: _Elements, model: str) -> Context:
        members = [(report.title, report.summary) for report in elements.reports]
        members += [(self._entities[one].name, self._entities[one].description) for one in elements.members]
        edges = [
            _Edge(finding.explanation, (), 0, finding.document, finding.start, finding.end, report.title, finding.more)
            for report in elements.reports
            for finding in report.findings
        ]
        sources = tuple(self._source(edge, number) for number, edge in enumerate([*edges, *elements.edges], 1))
        said = [(s.given.text, s.given.entities, s.given.degree, s.document, s.start, s.end, *s.more) for s in sources]
        inputs = content_id("inp", model, repr(members), repr(said))
        return Context(members=tuple(members), sources=sources, inputs=inputs)

    def _source(self, edge: _Edge, number: int) -> Source:
        names = (edge.report,) if edge.report else tuple(self._entities[end].name for end in edge.ends)
        given = StatementGiven(number=number, text=edge.text, entities=names, degree=edge.degree)
        return Source(given=given, document=edge.document, start=edge.start, end=edge.end, more=edge.more)

    def _tokens(self, texts: Sequence[str]) -> int:
        new = [text for text in dict.fromkeys(texts) if text not in self._counted]
        self._counted.update(zip(new, count_tokens(new), strict=True))
        return sum(self._counted[text] + _BETWEEN for text in texts)


def _is_within(edge: _Edge, home: Mapping[str, str]) -> bool:
    """Whether one sub-community holds all that an edge or claim is about; `home`: by member."""
    return len({home.get(end) for end in edge.ends}) == 1 and edge.ends[0] in home
