"""How does a small change reach descriptions, communities and reports, so that its cost is that of the change?

Only entities that the change touches are described again; the partition follows it; reports are written again where
what they tell has changed. Past a set drift, or where the partition cannot follow, communities are detected anew.
"""

from collections.abc import Collection, Sequence
from functools import partial

from flows.indexing_store import keep_letters, known_descriptions, known_reports, replace_letters
from flows.runtime import Runtime
from flows.updating_store import Change, by_community, evidence_of, failed_reports, renamed, store_change
from storage.records import Community, Report
from storage.staging import Staging
from tasks.communities import detect_communities
from tasks.dedupe import Graph
from tasks.partition import Followed, follow
from tasks.renewal import standing
from tasks.report import Reported, of_their_own, report
from tasks.summarize import summarize


async def update(graph: Graph, staging: Staging, runtime: Runtime) -> None:
    """Store what a change touches, and all that follows from it. `graph` is what `dedupe` gave for it."""
    settings = runtime.settings
    touched = graph.touched or ()
    outdated = {*touched, *(one.id for one in (*staging.graph.relations_at(touched), *graph.relations))}
    known = known_descriptions(staging, touched, [one.id for one in graph.relations])
    described = await summarize(graph, runtime.summarize, runtime.relate, known, settings.summary_context)
    graph = graph.model_copy(update={"relations": described.relations})
    replace_letters(staging, "summarize", described.dead_letters, touched, graph.size, settings.failure_limit)
    change = store_change(staging, graph, described.entities)
    staging.descriptions.replace(outdated, described.inputs)
    so_far = staging.meta.get_meta("drift")
    drift = (so_far if isinstance(so_far, float) else 0.0) + change.moved / max(graph.size, 1)
    staging.meta.put_meta("drift", drift)
    followed = _followed(change, staging, settings.community_size) if drift <= settings.community_drift else None
    if followed is None:
        await detect_anew(staging, runtime)
    else:
        await _report_again(change, followed, staging, runtime)


async def detect_anew(staging: Staging, runtime: Runtime) -> None:
    """Detect the communities of the stored graph, and report what differs."""
    settings = runtime.settings
    evidence = evidence_of(staging, None)
    communities = await detect_communities(evidence.entities, evidence.relations, settings.community_size)
    told = partial(runtime.progress, "report")
    reported = await report(
        communities, evidence, runtime.report, known_reports(staging), settings.report_context, told
    )
    staging.communities.replace_communities(communities, list(reported.reports))
    staging.meta.put_meta("drift", 0.0)
    keep_letters(staging, "report", reported.dead_letters, len(reported.reports), settings.failure_limit)


def _followed(change: Change, staging: Staging, max_size: int) -> Followed | None:
    """The partition after the change. Who has lost all relations, or got the first, is placed again."""
    levels = staging.communities.levels()
    if not levels:
        return None
    ends = {end for one in change.relations for end in (one.source, one.target)} - change.gone - change.new
    tied = {end for one in staging.graph.relations_at(ends) for end in (one.source, one.target)} if ends else set()
    alone = {one.members[0] for one in staging.communities.around(ends) if one.level == 0 and len(one.members) == 1}
    again = {end for end in ends if (end in alone) == (end in tied)}
    new, gone = change.new | again, change.gone | again
    near = {end for one in staging.graph.relations_at(new) for end in (one.source, one.target)} - new
    around = staging.communities.around(gone | near)
    small = {member for one in around if len(one.members) <= max_size for member in one.members}
    relations = staging.graph.relations_at(new | small)
    return follow(around, gone, new, relations, levels, max_size)


async def _report_again(change: Change, followed: Followed, staging: Staging, runtime: Runtime) -> None:
    """Write the reports that a change makes wrong, and store them with the communities that it changed."""
    settings, stored = runtime.settings, staging.communities
    same = [
        one for one in (*stored.around(change.dirty), *stored.named(failed_reports(staging)))
        if one.id not in followed.outdated
    ]  # fmt: skip
    same = list({one.id: one for one in same}.values())
    concerned = [*followed.communities, *renamed(same, followed.parents)]
    earlier = {*followed.outdated, *(one.id for one in same)}
    reports = by_community(stored.reports_of(earlier))
    lost = change.lost | change.gone
    kept = standing(concerned, reports, followed, lost, change.gained, settings.report_drift)
    below = _below(earlier, followed, concerned, staging)
    upheld = [*kept, *stored.reports_of([one.id for one in below])]
    reported = await _written([*concerned, *below], upheld, list(reports.values()), staging, runtime)
    ids = {one.id for one in concerned}
    with staging.transaction():
        written = [one for one in reported.reports if one.community in ids]
        stored.replace_communities(concerned, written, earlier)
        stored.rename_parents(followed.parents)
    total = staging.meta.counts()["reports"]
    replace_letters(staging, "report", reported.dead_letters, earlier | ids, total, settings.failure_limit)


def _below(
    earlier: Collection[str], followed: Followed, concerned: Sequence[Community], staging: Staging
) -> list[Community]:
    """The communities right below those concerned that are as they were: their reports may stand in for them."""
    known = {one.id for one in concerned} | set(followed.outdated)
    found = staging.communities.below(earlier)
    return renamed([one for one in found if one.id not in known], followed.parents)


async def _written(
    communities: Sequence[Community],
    upheld: Sequence[Report],
    earlier: Sequence[Report],
    staging: Staging,
    runtime: Runtime,
) -> Reported:
    """The reports of these communities, of which those upheld are not written again."""
    settings = runtime.settings
    there = {one.community for one in upheld}
    open_ones = [one for one in of_their_own(communities) if one.id not in there]
    evidence = evidence_of(staging, {member for one in open_ones for member in one.members}, upheld)
    known = {one.inputs: one for one in earlier if one.inputs}
    told = partial(runtime.progress, "report")
    return await report(communities, evidence, runtime.report, known, settings.report_context, told)
