"""The graph of a generation, with its communities and reports: what is read of the last one, made
anew, and stored.

A change asks models about what it touches alone: only entities that it touches are described again;
everybody else stays in their community; reports are written again where what they tell has changed.
Past a set drift communities are detected anew.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial

from flows.indexing.batches import replace_letters
from flows.indexing.concurrency import in_thread
from flows.indexing.source_changes import COMMUNITY_QUALITY
from flows.runtime import Runtime
from prompts.resolve import Resolve
from storage.graph_records import Community, Report
from storage.records import Chunk, DeadLetter
from storage.staging import Staging
from tasks.communities import Hierarchy, detect_communities
from tasks.dedupe import LastResolution, dedupe
from tasks.report import ReportEvidence, by_root, of_several, report, still_valid_reports
from tasks.resolve.assemble import ResolvedGraph
from tasks.summarize import KnownDescription, summarize


def resolved_before(staging: Staging, documents: Collection[str] | None) -> LastResolution:
    """The resolution that the staging starts from; without places where `documents` is None or
    nothing was resolved.
    """
    decisions = staging.resolutions.decisions()
    places = {} if documents is None else staging.resolutions.places()
    if not places:
        return LastResolution(None, decisions=decisions)
    letters = staging.extractions.dead_letters()
    failed = frozenset(letter.item for letter in letters if letter.step == "summarize")
    return LastResolution(places, frozenset(documents or ()), failed, decisions)


def store_resolution(staging: Staging, graph: ResolvedGraph, before: LastResolution) -> None:
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


async def dedupe_mentions(
    chunks: Sequence[Chunk], before: LastResolution, staging: Staging, runtime: Runtime
) -> ResolvedGraph:
    """Entities and relations of all mentions, with the edits by hand; what models could not decide
    is kept.
    """
    edits = staging.edits.edits()
    graph = await dedupe(
        staging.extractions, chunks, Resolve(runtime.models), edits, before, runtime.embedder
    )
    replace_letters(
        staging, "resolve", graph.dead_letters, graph.size, runtime.settings.failure_limit
    )
    return graph


async def summarize_graph(
    graph: ResolvedGraph, staging: Staging, runtime: Runtime
) -> ResolvedGraph:
    """Describe the graph, or what a change touches of it, and put it in place of what was there.
    What models have written of the same statements stays. Gives the graph without its rows, which
    are stored: nobody after it holds them in memory.
    """
    touched, settings, stored = graph.touched, runtime.settings, staging.graph
    anew = None if touched is None else [relation.id for relation in graph.relations]
    known = _known_descriptions(staging, touched, anew)
    ends = {end for relation in graph.relations for end in (relation.source, relation.target)}
    names = {
        entity.id: entity.name
        for entity in stored.entities(ends - {entity.id for entity in graph.entities})
    }
    limit = settings.policy().limits.summary
    described = await summarize(
        replace(graph, names=names), runtime.summarize, runtime.relate, known, limit
    )
    replace_letters(
        staging, "summarize", described.dead_letters, graph.size, settings.failure_limit, touched
    )
    rows = described.graph
    if touched is None:
        await in_thread(stored.replace_graph, rows)
        staging.resolutions.replace_described(None, described.inputs)
        return graph.without_rows()
    before = stored.relations_at(touched)
    relations = {relation.id for relation in before}
    stored.replace_graph(rows, touched)
    ends = {
        end for relation in (*before, *rows.relations) for end in (relation.source, relation.target)
    }
    stored.count_degrees(ends - {entity.id for entity in rows.entities})
    staging.resolutions.replace_described(
        {*touched, *relations, *(relation.id for relation in rows.relations)}, described.inputs
    )
    return graph.without_rows()


async def find_communities(graph: ResolvedGraph, staging: Staging, runtime: Runtime) -> Hierarchy:
    """The communities of the stored graph: those of the last generation, followed; detected anew
    where all is, or where too many entities have come and gone since that was done.
    """
    entities, relations = staging.graph.entity_ids(), staging.graph.edges()
    before = staging.communities.communities() if graph.touched is not None else []
    then = {member for community in before if community.level == 0 for member in community.members}
    so_far, now = staging.meta.get_meta("drift"), set(entities)
    drift = (so_far if isinstance(so_far, float) else 0.0) + len(then ^ now) / max(len(now), 1)
    earlier = before if drift <= runtime.settings.community_drift else []
    drift = drift if earlier else 0.0
    staging.meta.put_meta("drift", drift)
    settings = runtime.settings
    hierarchy = await detect_communities(
        entities, relations, settings.community_size, settings.communities, earlier
    )
    staging.meta.put_meta(
        COMMUNITY_QUALITY, hierarchy.quality.model_dump() if hierarchy.quality else None
    )
    return hierarchy.model_copy(update={"before": tuple(before)})


async def report_communities(
    graph: ResolvedGraph, hierarchy: Hierarchy, staging: Staging, runtime: Runtime
) -> None:
    """Store the communities with their reports: those that stand, and those that the change makes
    wrong, anew.
    """
    settings, stored = runtime.settings, staging.communities
    valid = dict[str, Report]()
    if graph.touched is None:
        reports = stored.reports()
    else:
        # Whatever the change does not reach stands as it is stored.
        hierarchy = hierarchy.reached_by(graph.touched, stored.unfit_reports(settings.report_drift))
        reports = stored.reports(of=[community.id for community in hierarchy.before])
        lost, touched = set(graph.lost), set(graph.touched)
        standing = still_valid_reports(hierarchy, reports, lost, touched, settings.report_drift)
        valid = {report.community: report for report in standing}
    communities = hierarchy.communities
    known = {old.inputs: old for old in reports if old.inputs}
    before = _with_report(hierarchy.before, reports)
    stored.replace_communities(
        [],
        [],
        None
        if graph.touched is None
        else before.keys() - {community.id for community in communities},
    )
    written, letters = 0, list[DeadLetter]()
    total = sum(community.id not in valid for community in of_several(communities))
    # Not all at once: what reports are written from is the most that a run would hold in memory.
    for portion in by_root(communities):
        anew = [community for community in of_several(portion) if community.id not in valid]
        evidence = _evidence_of(
            staging, {member for community in anew for member in community.members}
        )
        evidence = replace(
            evidence, reports=tuple(valid[own.id] for own in portion if own.id in valid)
        )
        progress = partial(_progress, runtime, written, total)
        reported = await report(
            portion, evidence, runtime.report, known, settings.policy().limits.report, progress
        )
        after = _with_report(portion, reported.reports)
        differ = {name for name in after if before.get(name) != after[name]}
        stored.replace_communities(
            [community for community in portion if community.id in differ],
            [report for report in reported.reports if report.community in differ],
            differ & before.keys(),
        )
        written += len(anew)
        letters += reported.dead_letters
    replace_letters(staging, "report", letters, total, settings.failure_limit)


def _progress(runtime: Runtime, before: int, total: int, done: int, _of: int) -> None:
    runtime.progress("report", before + done, total)


def _with_report(
    communities: Sequence[Community], reports: Sequence[Report]
) -> dict[str, tuple[str | None, Report | None]]:
    """What may differ between two communities of one id, which names level and members: the parent
    and the report.
    """
    reported = {report.community: report for report in reports}
    return {
        community.id: (community.parent, reported.get(community.id)) for community in communities
    }


def _evidence_of(staging: Staging, entities: set[str]) -> ReportEvidence:
    """What reports on communities of these entities are written from."""
    graph = staging.graph
    relations = [
        relation
        for relation in graph.relations_at(entities)
        if {relation.source, relation.target} <= entities
    ]
    places = graph.occurrences("relation", [relation.id for relation in relations])
    claims = [claim for claim in graph.claims(entities) if claim.subject in entities]
    chunks = {place.chunk for place in places} | {claim.chunk for claim in claims}
    return ReportEvidence(
        entities=tuple(graph.entities(entities)),
        relations=tuple(relations),
        places=tuple(places),
        chunks=tuple(staging.documents.chunks(ids=chunks)),
        claims=tuple(claims),
    )


def _known_descriptions(
    staging: Staging,
    entities: Collection[str] | None = None,
    relations: Collection[str] | None = None,
) -> dict[str, KnownDescription]:
    """What models have written of these entities and relations of the last generation (None: of
    all), by id.
    """
    inputs = staging.resolutions.described()
    if not inputs:
        return {}
    known = {
        entity.id: KnownDescription(inputs=inputs[entity.id], text=entity.description)
        for entity in staging.graph.entities(entities)
        if entity.id in inputs
    }
    return known | {
        relation.id: KnownDescription(
            inputs=inputs[relation.id], text=relation.description, keys=relation.keys
        )
        for relation in staging.graph.relations(relations)
        if relation.id in inputs
    }
