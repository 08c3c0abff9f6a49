"""What is read and written where a small change reaches the graph of the last generation?"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from storage.graph import GraphRows, Outdated
from storage.records import Community, Entity, Occurrence, Relation, Report
from storage.staging import Staging
from tasks.dedupe import Before, Graph
from tasks.report import Evidence


@dataclass(frozen=True)
class Change:
    """What a change did to the graph, in entities: `gone` and `new` ones, ones that something was taken from (`lost`)
    or added to (`gained`); `relations` that came, went or say something else; `moved` counts what partitions notice."""

    gone: frozenset[str]
    new: frozenset[str]
    lost: frozenset[str]
    gained: frozenset[str]
    relations: tuple[Relation, ...]
    moved: int

    @property
    def dirty(self) -> frozenset[str]:
        """The entities that there are, and of which reports may tell something else."""
        return (self.lost | self.gained) - self.gone


def resolved_before(staging: Staging, documents: Collection[str] | None) -> Before:
    """The resolution that the staging starts from; without places where `documents` is None or nothing was resolved."""
    decisions = staging.resolutions.decisions()
    places = {} if documents is None else staging.resolutions.places()
    if not places:
        return Before(None, decisions=decisions)
    letters = staging.extractions.dead_letters()
    failed = frozenset(letter.item for letter in letters if letter.step == "summarize")
    return Before(places, frozenset(documents or ()), failed, decisions)


def store_resolution(staging: Staging, graph: Graph, before: Before) -> None:
    """Where each name went, for the next run; only what differs is written."""
    if before.places is None:
        staging.resolutions.replace_places(None, graph.places)
    else:
        places, earlier = graph.places, before.places
        differ = {place[0] for place, went in places.items() if earlier.get(place) != went}
        differ |= {place[0] for place in earlier if place not in places}
        staging.resolutions.replace_places(
            differ, {place: went for place, went in places.items() if place[0] in differ}
        )
    if before.decisions != graph.decisions:
        staging.resolutions.replace_decisions(graph.decisions)


def store_change(staging: Staging, graph: Graph, entities: Sequence[Entity]) -> Change:
    """Put what a change touches in place of what was there, and say what became of it."""
    stored, touched = staging.graph, graph.touched or ()
    then, now = {one.id: one for one in stored.entities(touched)}, {one.id: one for one in entities}
    before = stored.relations_at(touched)
    said_then = _told(before, stored.occurrences("relation", [one.id for one in before]))
    said_now = _told(graph.relations, graph.relation_occurrences)
    claims_then, claims_now = {one.id: one for one in stored.claims(touched)}, {one.id: one for one in graph.claims}
    rows = GraphRows(
        entities, graph.aliases, graph.entity_occurrences, graph.relations, graph.relation_occurrences,
        graph.claims, graph.strengths,
    )  # fmt: skip
    stored.replace_graph(rows, Outdated(touched, list(said_then), list(claims_then)))
    stored.count_degrees((_ends(before) | _ends(graph.relations)) - now.keys())
    went = [one for one in before if one.id not in said_now]
    differ = [one for one in graph.relations if said_then.get(one.id) != said_now[one.id]]
    ended = {claim.subject for key, claim in claims_then.items() if key not in claims_now}
    claimed = {claim.subject for key, claim in claims_now.items() if key not in claims_then}
    described = {key for key, one in now.items() if then.get(key) != one}
    return Change(
        gone=frozenset(then.keys() - now.keys()),
        new=frozenset(now.keys() - then.keys()),
        lost=frozenset({*graph.lost, *_ends(went), *ended}),
        gained=frozenset({*described, *_ends(differ), *claimed}),
        relations=(*went, *differ),
        moved=len(then.keys() ^ now.keys()) + len(went) + sum(one.id not in said_then for one in differ),
    )


def _told(relations: Sequence[Relation], places: Sequence[Occurrence]) -> dict[str, tuple[Relation, Occurrence]]:
    """What each relation says, and where first; its weight says nothing, since it depends on all others."""
    first: dict[str, Occurrence] = {}
    for place in places:
        first.setdefault(place.item, place)
    return {one.id: (one.model_copy(update={"weight": 1.0}), first[one.id]) for one in relations}


def _ends(relations: Sequence[Relation]) -> set[str]:
    return {end for one in relations for end in (one.source, one.target)}


def evidence_of(staging: Staging, entities: Collection[str] | None, reports: Sequence[Report] = ()) -> Evidence:
    """What reports on communities of these entities are written from (None: on all); `reports` stand."""
    inside = None if entities is None else set(entities)
    graph = staging.graph
    relations = graph.relations() if inside is None else graph.relations_at(inside)
    kept = tuple(one for one in relations if inside is None or {one.source, one.target} <= inside)
    places = graph.occurrences("relation", None if inside is None else [one.id for one in kept])
    claims = [one for one in graph.claims(inside) if inside is None or one.subject in inside]
    chunks = None if inside is None else {one.chunk for one in places} | {one.chunk for one in claims}
    return Evidence(
        entities=tuple(graph.entities(inside)),
        relations=kept,
        places=tuple(places),
        chunks=tuple(staging.documents.chunks(ids=chunks)),
        claims=tuple(claims),
        reports=tuple(reports),
    )


def failed_reports(staging: Staging) -> list[str]:
    """The communities whose report is to be tried again."""
    return [letter.item for letter in staging.extractions.dead_letters() if letter.step == "report"]


def renamed(communities: Sequence[Community], parents: Mapping[str, str]) -> list[Community]:
    """Communities with the ids that their parents have now."""
    return [one.model_copy(update={"parent": parents.get(one.parent or "", one.parent)}) for one in communities]


def by_community(reports: Sequence[Report]) -> dict[str, Report]:
    """Reports by the community that each is on."""
    return {report.community: report for report in reports}
