"""The graph, communities and reports of the next generation, updated from those of the last one.

Models are asked only about what a change touches: its entities are described again, and reports are
written again if their evidence has changed. Communities are detected again after much drift.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from functools import partial

from flows.indexing.batches import replace_letters
from flows.indexing.concurrency import in_thread
from flows.indexing.source_changes import COMMUNITY_QUALITY
from flows.runtime import Runtime
from prompts.resolve import Resolve
from storage.graph_records import Community, Relation, Report
from storage.records import Chunk, DeadLetter
from storage.staging import Staging
from tasks.communities import Hierarchy, detect_communities
from tasks.dedupe import LastResolution, dedupe
from tasks.report import ReportEvidence, by_root, of_several, report, still_valid_reports
from tasks.resolve.assemble import ResolvedGraph
from tasks.summarize import KnownDescription, summarize


def resolved_before(staging: Staging, documents: Collection[str] | None) -> LastResolution:
    """Return the last resolution; without places if `documents` is None (make all anew)."""
    decisions = staging.resolutions.decisions()
    places = {} if documents is None else staging.resolutions.places()
    if not places:
        return LastResolution(None, decisions=decisions)
    letters = staging.extractions.dead_letters()
    failed = frozenset(letter.item for letter in letters if letter.step == "summarize")
    return LastResolution(places, frozenset(documents or ()), failed, decisions)


def store_resolution(staging: Staging, graph: ResolvedGraph, before: LastResolution) -> None:
    """Store the entity of each name for the next run; write only what differs."""
    places = graph.places
    documents: set[str] | None = None
    if before.places is not None:
        documents = {document for (document, _), _ in places.items() ^ before.places.items()}
        places = {name: thing for name, thing in places.items() if name[0] in documents}
    staging.resolutions.replace_places(documents, places)
    if before.decisions != graph.decisions:
        staging.resolutions.replace_decisions(graph.decisions)


async def dedupe_mentions(
    chunks: Sequence[Chunk], before: LastResolution, staging: Staging, runtime: Runtime
) -> ResolvedGraph:
    """Resolve all mentions to entities and relations, and apply the edits by hand."""
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
    """Describe what a change touches of the graph (or all of it), and store it.

    Descriptions of the same statements stay. Returns the graph without the stored rows, so that
    they take no memory.
    """
    touched, settings, stored = graph.touched, runtime.settings, staging.graph
    anew = None if touched is None else [relation.id for relation in graph.relations]
    known = _known_descriptions(staging, touched, anew)
    others = _ends(graph.relations) - {entity.id for entity in graph.entities}
    names = {entity.id: entity.name for entity in stored.entities(others)}
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
    relations = (*stored.relations_at(touched), *rows.relations)
    stored.replace_graph(rows, touched)
    stored.count_degrees(_ends(relations) - {entity.id for entity in rows.entities})
    items = {*touched, *(relation.id for relation in relations)}
    staging.resolutions.replace_described(items, described.inputs)
    return graph.without_rows()


def _ends(relations: Iterable[Relation]) -> set[str]:
    return {end for relation in relations for end in (relation.source, relation.target)}


async def find_communities(graph: ResolvedGraph, staging: Staging, runtime: Runtime) -> Hierarchy:
    """Return the communities of the stored graph, which continue those of the last generation.

    They are detected anew if everything is, or if too many entities have come and gone since then.
    """
    settings, entities = runtime.settings, staging.graph.entity_ids()
    before = staging.communities.communities() if graph.touched is not None else []
    then = {member for community in before if community.level == 0 for member in community.members}
    so_far, now = staging.meta.get_meta("drift"), set(entities)
    drift = (so_far if isinstance(so_far, float) else 0.0) + len(then ^ now) / max(len(now), 1)
    earlier = before if drift <= settings.community_drift else []
    staging.meta.put_meta("drift", drift if earlier else 0.0)
    hierarchy = await detect_communities(
        entities,
        staging.graph.edges(),
        settings.community_size,
        settings.communities,
        earlier,
    )
    quality = hierarchy.quality.model_dump() if hierarchy.quality else None
    staging.meta.put_meta(COMMUNITY_QUALITY, quality)
    return hierarchy.model_copy(update={"before": tuple(before)})


async def report_communities(
    graph: ResolvedGraph, hierarchy: Hierarchy, staging: Staging, runtime: Runtime
) -> None:
    """Store the communities with reports that are still valid and, for the others, new ones."""
    settings, stored = runtime.settings, staging.communities
    valid = dict[str, Report]()
    if graph.touched is None:
        reports = stored.reports()
    else:
        # What the change does not reach stays as it is stored.
        hierarchy = hierarchy.reached_by(graph.touched, stored.unfit_reports(settings.report_drift))
        reports = stored.reports(of=[community.id for community in hierarchy.before])
        lost, touched = set(graph.lost), set(graph.touched)
        standing = still_valid_reports(hierarchy, reports, lost, touched, settings.report_drift)
        valid = {report.community: report for report in standing}
    communities = hierarchy.communities
    known = {old.inputs: old for old in reports if old.inputs}
    before = _with_report(hierarchy.before, reports)
    gone = before.keys() - {community.id for community in communities}
    stored.replace_communities([], [], None if graph.touched is None else gone)
    written, letters = 0, list[DeadLetter]()
    total = sum(community.id not in valid for community in of_several(communities))
    # In portions: the evidence of all reports would take more memory than anything else in a run.
    for portion in by_root(communities):
        anew = [community for community in of_several(portion) if community.id not in valid]
        members = {member for community in anew for member in community.members}
        kept = tuple(valid[own.id] for own in portion if own.id in valid)
        evidence = replace(_evidence_of(staging, members), reports=kept)
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
    """Return parent and report of each community: all that its id (a hash of level and members)
    leaves open.
    """
    reported = {report.community: report for report in reports}
    return {own.id: (own.parent, reported.get(own.id)) for own in communities}


def _evidence_of(staging: Staging, entities: set[str]) -> ReportEvidence:
    """Return the evidence for reports on communities of these entities."""
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
    staging: Staging, entities: Collection[str] | None, relations: Collection[str] | None
) -> dict[str, KnownDescription]:
    """Return the stored descriptions of these entities and relations (None: of all) by id."""
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
