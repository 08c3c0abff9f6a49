"""Community reports: one cited report for each community (GraphRAG 2.5), and which of them a small
change leaves valid.

A single entity has no report. A report with the same inputs as one of the last generation is taken
over.

A report is written from all edges of its community if they fit: in the order of the combined degree
of their ends, each with the two entities that it ties and the claims about these. If they do not
fit, the reports of sub-communities stand in for their elements, beginning with the community whose
elements are longest, until the rest fits. What is still too much is cut off at the end.

If anything that a community rested on is gone or changed, its report is written again. If something
was only added, the report stands until the additions exceed a set share of the community: otherwise
one new document would rewrite the reports of all levels above it.
"""

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice

from prompts.engine.effort import LIMITS
from prompts.engine.errors import ModelRefused
from prompts.engine.messages import portions
from prompts.report import ReportWritten, StatementGiven, WriteReports, report_offline
from prompts.text.tokens import count_tokens
from storage.graph_records import (
    Claim,
    Community,
    Entity,
    Finding,
    Occurrence,
    Relation,
    Report,
    TextSpan,
)
from storage.records import Chunk, DeadLetter, Record, by_key, content_id
from tasks.batches import gather_or_cancel
from tasks.communities import Hierarchy, level_and_id, roots_of
from tasks.retrying import PATIENT
from tasks.step import step

# The inputs of a report that a model refused to write, so that no later run takes it over.
_REFUSED = ""
REPORT_TOKENS = LIMITS["medium"].report
MOST_ENTITIES = 20_000  # whose evidence is read at once
_BETWEEN = 4  # tokens: a number, brackets, quotes and the end of the line
# Is called with the number of finished reports and of all reports.
Progress = Callable[[int, int], object]


# --- what a report is written from ----------------------------------------------------------------


@dataclass(frozen=True)
class ReportEvidence:
    """What reports are written from; `reports` are those that are still valid."""

    entities: tuple[Entity, ...]
    relations: tuple[Relation, ...]
    places: tuple[Occurrence, ...]
    chunks: tuple[Chunk, ...]
    claims: tuple[Claim, ...] = ()
    reports: tuple[Report, ...] = ()


class ReportContext(Record):
    """What one report is written from, and its hash.

    `members` are (name, description) of entities, and (title, summary) of the reports that stand in
    for sub-communities. `places` are those of each statement in `given`, the best one first.
    """

    members: tuple[tuple[str, str], ...]
    given: tuple[StatementGiven, ...]
    places: tuple[tuple[TextSpan, ...], ...]
    inputs: str


@dataclass(frozen=True, slots=True)
class _Edge:
    """The statement of a relation and its ends, or a claim and the entities that it is about."""

    text: str
    ends: tuple[str, ...]
    degree: int
    places: tuple[TextSpan, ...]

    @property
    def key(self) -> tuple[str, str, int]:
        return self.text, self.places[0].document, self.places[0].start


@dataclass(frozen=True, slots=True)
class _Elements:
    """Entities and edges in order, and the reports that stand in for others."""

    members: Sequence[str]
    edges: Sequence[_Edge]
    reports: Sequence[Report] = ()


class ReportContextBuilder:
    """Finds the evidence of each community; `reports` are those written so far, by community."""

    def __init__(
        self, evidence: ReportEvidence, communities: Sequence[Community], limit: int
    ) -> None:
        self.limit = limit
        self.reports: dict[str, Report] = {}
        self._counted: dict[str, int] = {}
        self._entities: Mapping[str, Entity] = {entity.id: entity for entity in evidence.entities}
        self._chunks: Mapping[str, Chunk] = {chunk.id: chunk for chunk in evidence.chunks}
        self._touching = by_key((relation.source, relation) for relation in evidence.relations)
        self._claims = by_key((claim.subject, claim) for claim in evidence.claims)
        self._places = by_key((place.item, place) for place in evidence.places)
        self._below = by_key((community.parent or "", community) for community in communities)

    def context(self, community: Community, model: str) -> ReportContext:
        """Return the context for a report that `model` writes, shortened to the limit.

        The reports of the sub-communities must be there already.
        """
        elements = everything = self._elements(community.members)
        # No text has more tokens than bytes, and counting tokens takes longest.
        if sum(len(text.encode()) + _BETWEEN for text in self._texts(elements)) > self.limit:
            parts = self._longest_first(community)

            def fits(count: int) -> bool:
                return self._size(self._without(everything, parts[:count])) <= self.limit

            # Each replaced part makes it smaller: these are the fewest that let the rest fit.
            fewest = bisect_left(range(len(parts)), True, key=fits)
            elements = self._without(everything, parts[:fewest])
            if self._size(elements) > self.limit:
                elements = self._cut(elements)
        return self._context(elements, model)

    # --- elements ---------------------------------------------------------------------------------

    def _elements(self, ids: Iterable[str]) -> _Elements:
        inside = set(ids)
        relations = [
            r
            for member in sorted(inside)
            for r in self._touching.get(member, ())
            if r.target in inside
        ]
        relations.sort(key=lambda r: (-self._degree(r), r.id))
        edges: dict[tuple[str, str, int], _Edge] = {}
        for edge in map(self._edge, relations):
            edges.setdefault(edge.key, edge)
        members = self._by_rank(inside)
        return _Elements(members, self._with_claims(edges, members))

    def _with_claims(
        self, edges: Mapping[tuple[str, str, int], _Edge], members: Sequence[str]
    ) -> list[_Edge]:
        """Put the claims about its ends before each edge, and the other claims last.

        Claims that repeat an edge are left out.
        """
        known, inside = set(edges), set(members)
        left = {
            member: [self._claim(claim, inside) for claim in self._claims.get(member, ())]
            for member in members
        }
        ordered: list[_Edge] = []
        groups: list[tuple[Sequence[str], int, list[_Edge]]] = [
            (e.ends, e.degree, [e]) for e in edges.values()
        ]
        for ends, degree, own in [*groups, (members, 0, [])]:
            for claim in (claim for end in ends for claim in left.pop(end, ())):
                if claim.key not in known:
                    known.add(claim.key)
                    ordered.append(replace(claim, degree=degree))
            ordered += own
        return ordered

    def _claim(self, claim: Claim, inside: Collection[str]) -> _Edge:
        # The source's own words say how certain they are; a description may not.
        doubted = claim.status != "true" and claim.description != self._quoted(claim)
        text = claim.description + (f" ({claim.status})" if doubted else "")
        ends = tuple(end for end in (claim.subject, claim.object or "") if end in inside)
        return _Edge(text, ends, 0, (self._span(claim),))

    def _by_rank(self, ids: Iterable[str]) -> list[str]:
        entities = [self._entities[name] for name in ids]
        return [
            e.id for e in sorted(entities, key=lambda e: (-e.degree, -e.mentions, e.name, e.id))
        ]

    def _edge(self, relation: Relation) -> _Edge:
        places = self._places.get(relation.id, [])
        text = relation.description
        if text:
            # A quoted description rests on its own place, one in a model's words on all places.
            quoted = (place for place in places if text in self._quoted(place))
            places = list(islice(quoted, 1)) or places
        else:
            places = places[:1]
            text = self._quoted(places[0])
        spans = tuple(map(self._span, places))
        return _Edge(text, (relation.source, relation.target), self._degree(relation), spans)

    def _span(self, place: Occurrence | Claim) -> TextSpan:
        return TextSpan(
            document=self._chunks[place.chunk].document, start=place.start, end=place.end
        )

    def _quoted(self, place: Occurrence | Claim) -> str:
        chunk = self._chunks[place.chunk]
        return " ".join(chunk.text[place.start - chunk.start : place.end - chunk.start].split())

    def _degree(self, relation: Relation) -> int:
        return self._entities[relation.source].degree + self._entities[relation.target].degree

    # --- sub-communities --------------------------------------------------------------------------

    def _longest_first(self, community: Community) -> list[Community]:
        below = [part for part in self._below.get(community.id, []) if part.id in self.reports]
        sizes = {part.id: self._size(self._elements(part.members)) for part in below}
        shorter = [
            part
            for part in below
            if self._size(_Elements([], [], [self.reports[part.id]])) < sizes[part.id]
        ]
        return sorted(shorter, key=lambda part: (-sizes[part.id], part.id))

    def _without(self, everything: _Elements, replaced: Sequence[Community]) -> _Elements:
        """Put reports in place of sub-communities; keep the edges between two communities."""
        home = {member: part.id for part in replaced for member in part.members}
        return _Elements(
            [member for member in everything.members if member not in home],
            [
                edge
                for edge in everything.edges
                if edge.ends[0] not in home or len(set(map(home.get, edge.ends))) > 1
            ],
            [self.reports[part.id] for part in replaced],
        )

    def _cut(self, elements: _Elements) -> _Elements:
        """Keep what fits: reports first, then edge by edge with its ends."""
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
            left -= self._size(_Elements(new, [edge]))
            if left < 0:
                break
            edges.append(edge)
            members |= dict.fromkeys(new)
        return _Elements(self._by_rank(members), edges, reports)

    # --- context ----------------------------------------------------------------------------------

    def _size(self, elements: _Elements) -> int:
        texts = self._texts(elements)
        new = [text for text in dict.fromkeys(texts) if text not in self._counted]
        self._counted.update(zip(new, count_tokens(new), strict=True))
        return sum(self._counted[text] + _BETWEEN for text in texts)

    def _texts(self, elements: _Elements) -> list[str]:
        texts = [edge.text for edge in elements.edges]
        texts += [
            f"{self._entities[member].name}: {self._entities[member].description}"
            for member in elements.members
        ]
        for report in elements.reports:
            texts += [
                report.title,
                report.summary,
                *(finding.explanation for finding in report.findings),
            ]
        return texts

    def _context(self, elements: _Elements, model: str) -> ReportContext:
        members = [(report.title, report.summary) for report in elements.reports]
        members += [
            (self._entities[member].name, self._entities[member].description)
            for member in elements.members
        ]
        statements = [
            (finding.explanation, (report.title,), 0, finding.places)
            for report in elements.reports
            for finding in report.findings
        ] + [
            (
                edge.text,
                tuple(self._entities[end].name for end in edge.ends),
                edge.degree,
                edge.places,
            )
            for edge in elements.edges
        ]
        given = tuple(
            StatementGiven(number=number, text=text, entities=names, degree=degree)
            for number, (text, names, degree, _) in enumerate(statements, 1)
        )
        inputs = content_id("inp", model, repr(members), repr(statements))
        places = tuple(statement[-1] for statement in statements)
        return ReportContext(members=tuple(members), given=given, places=places, inputs=inputs)


# --- writing --------------------------------------------------------------------------------------


class WrittenReports(Record):
    """Reports in the order of their communities, and dead letters for what a model refused."""

    reports: tuple[Report, ...]
    dead_letters: tuple[DeadLetter, ...]


@step("report", PATIENT, asks_model=True)
async def report(
    communities: Sequence[Community],
    evidence: ReportEvidence,
    writer: WriteReports,
    known: Mapping[str, Report],
    limit: int = REPORT_TOKENS,
    progress: Progress = lambda _done, _total: None,
) -> WrittenReports:
    """Write a report for each community that has several entities and a statement.

    `known` are reports by input hash, which are taken over. Communities whose report is in the
    evidence are skipped. A context has at most `limit` tokens. The reports of a level are written
    side by side, the last level first; `progress` is called after each level. If the model gives no
    usable answer, the statements are quoted, and the next run asks again.
    """
    builder, letters = ReportContextBuilder(evidence, communities, limit), list[DeadLetter]()
    reports = builder.reports
    reports.update({report.community: report for report in evidence.reports})

    async def ask(community: Community, context: ReportContext) -> Report:
        try:
            written = await writer.run(context.members, context.given)
        except ModelRefused as error:
            letter = DeadLetter(
                item=community.id, step="report", error=error.message, remedy=error.remedy
            )
            letters.append(letter)
            quoted = report_offline(context.members, context.given)
            return _finish(community, quoted, context, _REFUSED)
        return _finish(community, written, context, context.inputs)

    author = writer.author
    todo = [community for community in of_several(communities) if community.id not in reports]
    for level in sorted({community.level for community in todo}, reverse=True):
        asked: list[tuple[Community, ReportContext]] = []
        for community in (own for own in todo if own.level == level):
            context = builder.context(community, author)
            if not context.given:
                continue
            if context.inputs in known:
                update = {"community": community.id, "level": level, "stale": 0.0}
                reports[community.id] = known[context.inputs].model_copy(update=update)
            elif (written := writer.sure(context.members, context.given)) is not None:
                reports[community.id] = _finish(community, written, context, context.inputs)
            else:
                asked.append((community, context))
        for made in await gather_or_cancel(ask(*pair) for pair in asked):
            reports[made.community] = made
        progress(sum(community.level >= level for community in todo), len(todo))
    return WrittenReports(
        reports=tuple(
            reports[community.id] for community in communities if community.id in reports
        ),
        dead_letters=tuple(sorted(letters, key=lambda letter: letter.item)),
    )


def by_root(communities: Sequence[Community]) -> list[list[Community]]:
    """Divide communities into portions of up to MOST_ENTITIES, each root with all below it.

    No report depends on what is below another root. A portion is ordered by level.
    """
    root = roots_of(communities)
    below = by_key((root[community.id], community) for community in communities)
    sizes = (len(tree[0].members) for tree in below.values())
    together = portions(below.values(), sizes, MOST_ENTITIES)
    return [sorted(chain.from_iterable(trees), key=level_and_id) for trees in together]


def of_several(communities: Sequence[Community]) -> list[Community]:
    """Return the communities that get a report: those of two entities or more."""
    return [community for community in communities if len(community.members) > 1]


def _finish(
    community: Community, written: ReportWritten, context: ReportContext, inputs: str
) -> Report:
    """Bind each finding to all places of the statements that it cites.

    Numbers of no statement are dropped, and so is a finding without any place.
    """
    places_of = dict(enumerate(context.places, 1))
    findings = []
    for finding in written.findings:
        cited = [place for number in finding.statements for place in places_of.get(number, ())]
        if cited:
            first, *more = dict.fromkeys(cited)
            findings.append(
                Finding(
                    summary=finding.summary,
                    explanation=finding.explanation,
                    document=first.document,
                    start=first.start,
                    end=first.end,
                    more=tuple(more),
                )
            )
    return Report(
        **written.model_dump(exclude={"findings"}),
        community=community.id,
        level=community.level,
        findings=tuple(findings),
        inputs=inputs,
    )


def still_valid_reports(
    hierarchy: Hierarchy,
    reports: Sequence[Report],
    lost: Collection[str],
    touched: Collection[str],
    limit: float,
) -> list[Report]:
    """Return the reports that a change leaves valid, under the new ids of their communities.

    `lost` are entities of which something is gone or changed, `touched` these and the entities to
    which something was added. `limit` is the largest share of touched members, summed up since the
    report was written, that leaves it valid.
    """
    members = {community.id: community.members for community in hierarchy.before}
    written = {report.community: report for report in reports if report.inputs}
    valid = []
    for community in of_several(hierarchy.communities):
        was = hierarchy.was.get(community.id, community.id)
        if (
            was not in written
            or not set(members[was]).isdisjoint(lost)
            or not set(members[was]) <= set(community.members)
        ):
            continue
        added = sum(member in touched for member in community.members) / len(community.members)
        stale = written[was].stale + added
        if stale <= limit:
            update = {"community": community.id, "level": community.level, "stale": stale}
            valid.append(written[was].model_copy(update=update))
    return valid
