"""The graph of a generation, with its communities and reports: what is read of the last one, made anew, and stored.

A change costs what it touches: only entities that it touches are described again; the partition follows it; reports are
written again where what they tell has changed. Past a set drift, or where the partition cannot follow, communities are
detected anew.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from flows.indexing.batches import near_names, replace_letters
from flows.indexing.concurrency import in_thread
from flows.runtime import Runtime
from prompts.resolve import Resolve
from storage.graph import GraphRows, Outdated
from storage.graph_records import Community, Occurrence, Relation, Report
from storage.records import Chunk
from storage.staging import Staging
from tasks.communities import Followed, detect_communities, follow
from tasks.dedupe import Before, ResolvedGraph, dedupe
from tasks.report import Reported, ReportEvidence, of_their_own, report, still_valid_reports
from tasks.summarize import Known, summarize


@dataclass(frozen=True)
class GraphChange:
    """What a change did to the graph: entities that are `gone`, `new`, or had something taken (`lost`) or added
    (`gained`); relations that came, went or say something else; `share` is how much moved, as partitions notice it."""

    gone: frozenset[str]
    new: frozenset[str]
    lost: frozenset[str]
    gained: frozenset[str]
    relations: tuple[Relation, ...]
    share: float

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


def store_resolution(staging: Staging, graph: ResolvedGraph, before: Before) -> None:
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


async def dedupe_mentions(chunks: Sequence[Chunk], before: Before, staging: Staging, runtime: Runtime) -> ResolvedGraph:
    """Entities and relations of all mentions, with the edits by hand; what models could not decide is kept."""
    near = await near_names(staging, runtime)
    edits = staging.edits.edits()
    graph = await dedupe(staging.extractions.rows(), chunks, Resolve(runtime.models), edits, before, near)
    replace_letters(staging, "resolve", graph.dead_letters, graph.size, runtime.settings.failure_limit)
    return graph


async def summarize_graph(graph: ResolvedGraph, staging: Staging, runtime: Runtime) -> GraphChange | None:
    """Describe the graph, or what a change touches of it, and put it in place of what was there; None where that was
    all. What models have written of the same statements stays."""
    touched, settings = graph.touched, runtime.settings
    anew = None if touched is None else [relation.id for relation in graph.relations]
    known = _known_descriptions(staging, touched, anew)
    described = await summarize(graph, runtime.summarize, runtime.relate, known, settings.summary_context)
    graph = graph.model_copy(update={"relations": described.relations})
    replace_letters(staging, "summarize", described.dead_letters, graph.size, settings.failure_limit, touched)
    rows = GraphRows(
        described.entities, graph.aliases, graph.entity_occurrences, graph.relations, graph.relation_occurrences,
        graph.claims, graph.strengths,
    )  # fmt: skip
    if touched is None:
        await in_thread(staging.graph.replace_graph, rows)
        staging.descriptions.replace(None, described.inputs)
        return None
    outdated = {*touched, *(one.id for one in (*staging.graph.relations_at(touched), *graph.relations))}
    change = _store_change(staging, graph, rows)
    staging.descriptions.replace(outdated, described.inputs)
    return change


def follow_communities(change: GraphChange | None, staging: Staging, runtime: Runtime) -> Followed | None:
    """The partition after the change, in which who has lost all relations, or got the first, is placed again.

    None where all is anew, or it has drifted too far from one that is detected.
    """
    if change is None:
        return None
    so_far, max_size = staging.meta.get_meta("drift"), runtime.settings.community_size
    drift = (so_far if isinstance(so_far, float) else 0.0) + change.share
    staging.meta.put_meta("drift", drift)
    if drift > runtime.settings.community_drift:
        return None
    levels = staging.communities.levels()
    if not levels:
        return None
    ends = (
        {end for relation in change.relations for end in (relation.source, relation.target)} - change.gone - change.new
    )
    tied = {end for one in staging.graph.relations_at(ends) for end in (one.source, one.target)} if ends else set()
    alone = {
        community.members[0]
        for community in staging.communities.around(ends)
        if community.level == 0 and len(community.members) == 1
    }
    again = {end for end in ends if (end in alone) == (end in tied)}
    new, gone = change.new | again, change.gone | again
    near = {end for one in staging.graph.relations_at(new) for end in (one.source, one.target)} - new
    around = staging.communities.around(gone | near)
    small = {member for community in around if len(community.members) <= max_size for member in community.members}
    relations = staging.graph.relations_at(new | small)
    return follow(around, gone, new, relations, levels, max_size)


async def detect_and_report(staging: Staging, runtime: Runtime) -> None:
    """Detect the communities of the stored graph, and report what differs."""
    evidence, limit = _evidence_of(staging, None), runtime.settings.failure_limit
    communities = await detect_communities(evidence.entities, evidence.relations, runtime.settings.community_size)
    reported = await _reported(communities, evidence, staging.communities.reports(), runtime)
    staging.communities.replace_communities(communities, list(reported.reports))
    staging.meta.put_meta("drift", 0.0)
    replace_letters(staging, "report", reported.dead_letters, len(reported.reports), limit)


async def report_touched(change: GraphChange, followed: Followed, staging: Staging, runtime: Runtime) -> None:
    """Write the reports that a change makes wrong, and store them with the communities that it changed."""
    settings, stored = runtime.settings, staging.communities
    failed = [letter.item for letter in staging.extractions.dead_letters() if letter.step == "report"]
    same = [one for one in (*stored.around(change.dirty), *stored.named(failed)) if one.id not in followed.outdated]
    same = list({community.id: community for community in same}.values())
    concerned = [*followed.communities, *_renamed(same, followed.parents)]
    earlier = {*followed.outdated, *(community.id for community in same)}
    reports = {one.community: one for one in stored.reports_of(earlier)}
    lost = change.lost | change.gone
    still_valid = still_valid_reports(concerned, reports, followed, lost, change.gained, settings.report_drift)
    # The communities right below that are as they were: their reports may stand in for them.
    known = {community.id for community in concerned} | set(followed.outdated)
    below = _renamed([community for community in stored.below(earlier) if community.id not in known], followed.parents)
    upheld = [*still_valid, *stored.reports_of([community.id for community in below])]
    there = {report.community for report in upheld}
    members = {end for one in of_their_own([*concerned, *below]) if one.id not in there for end in one.members}
    evidence = _evidence_of(staging, members, upheld)
    reported = await _reported([*concerned, *below], evidence, list(reports.values()), runtime)
    ids = {community.id for community in concerned}
    with staging.transaction():
        written = [report for report in reported.reports if report.community in ids]
        stored.replace_communities(concerned, written, earlier)
        stored.rename_parents(followed.parents)
    total = staging.meta.counts()["reports"]
    replace_letters(staging, "report", reported.dead_letters, total, settings.failure_limit, earlier | ids)


async def _reported(
    communities: Sequence[Community], evidence: ReportEvidence, earlier: Sequence[Report], runtime: Runtime
) -> Reported:
    """The reports of these communities; earlier ones that were written from the same stay."""
    known = {one.inputs: one for one in earlier if one.inputs}
    progress = partial(runtime.progress, "report")
    return await report(communities, evidence, runtime.report, known, runtime.settings.report_context, progress)


def _store_change(staging: Staging, graph: ResolvedGraph, rows: GraphRows) -> GraphChange:
    """Put what a change touches in place of what was there, and say what became of it."""
    stored, touched = staging.graph, graph.touched or ()
    then, now = (
        {entity.id: entity for entity in stored.entities(touched)},
        {entity.id: entity for entity in rows.entities},
    )
    before = stored.relations_at(touched)
    said_then = _statements(before, stored.occurrences("relation", [one.id for one in before]))
    said_now = _statements(graph.relations, graph.relation_occurrences)
    claims_then, claims_now = (
        {claim.id: claim for claim in stored.claims(touched)},
        {claim.id: claim for claim in graph.claims},
    )
    stored.replace_graph(rows, Outdated(touched, list(said_then), list(claims_then)))
    stored.count_degrees((_ends(before) | _ends(graph.relations)) - now.keys())
    went = [one for one in before if one.id not in said_now]
    differ = [relation for relation in graph.relations if said_then.get(relation.id) != said_now[relation.id]]
    ended = {claim.subject for key, claim in claims_then.items() if key not in claims_now}
    claimed = {claim.subject for key, claim in claims_now.items() if key not in claims_then}
    described = {key for key, one in now.items() if then.get(key) != one}
    moved = len(then.keys() ^ now.keys()) + len(went) + sum(relation.id not in said_then for relation in differ)
    return GraphChange(
        gone=frozenset(then.keys() - now.keys()),
        new=frozenset(now.keys() - then.keys()),
        lost=frozenset({*graph.lost, *_ends(went), *ended}),
        gained=frozenset({*described, *_ends(differ), *claimed}),
        relations=(*went, *differ),
        share=moved / max(graph.size, 1),
    )


def _statements(relations: Sequence[Relation], places: Sequence[Occurrence]) -> dict[str, tuple[Relation, Occurrence]]:
    """What each relation says, and where first; its weight says nothing, since it depends on all others."""
    first: dict[str, Occurrence] = {}
    for place in places:
        first.setdefault(place.item, place)
    return {relation.id: (relation.model_copy(update={"weight": 1.0}), first[relation.id]) for relation in relations}


def _ends(relations: Sequence[Relation]) -> set[str]:
    return {end for relation in relations for end in (relation.source, relation.target)}


def _evidence_of(staging: Staging, entities: Collection[str] | None, reports: Sequence[Report] = ()) -> ReportEvidence:
    """What reports on communities of these entities are written from (None: on all); `reports` stand."""
    inside = None if entities is None else set(entities)
    graph = staging.graph
    relations = graph.relations() if inside is None else graph.relations_at(inside)
    kept = tuple(relation for relation in relations if inside is None or {relation.source, relation.target} <= inside)
    places = graph.occurrences("relation", None if inside is None else [one.id for one in kept])
    claims = [claim for claim in graph.claims(inside) if inside is None or claim.subject in inside]
    chunks = None if inside is None else {place.chunk for place in places} | {claim.chunk for claim in claims}
    return ReportEvidence(
        entities=tuple(graph.entities(inside)),
        relations=kept,
        places=tuple(places),
        chunks=tuple(staging.documents.chunks(ids=chunks)),
        claims=tuple(claims),
        reports=tuple(reports),
    )


def _renamed(communities: Sequence[Community], parents: Mapping[str, str]) -> list[Community]:
    """Communities with the ids that their parents have now."""
    return [
        community.model_copy(update={"parent": parents.get(community.parent or "", community.parent)})
        for community in communities
    ]


def _known_descriptions(
    staging: Staging, entities: Collection[str] | None = None, relations: Collection[str] | None = None
) -> dict[str, Known]:
    """What models have written of these entities and relations of the last generation (None: of all), by id."""
    inputs = staging.descriptions.inputs()
    if not inputs:
        return {}
    known = {
        entity.id: Known(inputs=inputs[entity.id], text=entity.description)
        for entity in staging.graph.entities(entities)
        if entity.id in inputs
    }
    return known | {
        relation.id: Known(inputs=inputs[relation.id], text=relation.description, keys=relation.keys)
        for relation in staging.graph.relations(relations)
        if relation.id in inputs
    }
