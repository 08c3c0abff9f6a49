"""How does what was extracted become the graph of a generation, with its communities and reports?

dedupe ─ summarize ─ detect communities ─ report

An index run ends with it; an edit by hand is nothing else. Where only little has changed, `flows.updating` goes on from
the last generation's graph.
"""

from collections.abc import Collection, Sequence
from functools import partial

from flows.indexing_store import keep_letters, known_descriptions, known_reports, store_graph
from flows.naming import embed_names, embed_relations, near_names
from flows.runtime import Runtime, usage_rows
from flows.side_by_side import beside, in_thread
from flows.updating import update
from flows.updating_store import resolved_before, store_resolution
from prompts.resolve import Resolve
from storage.records import Chunk
from storage.staging import Staging
from tasks.communities import detect_communities
from tasks.dedupe import Graph, dedupe
from tasks.report import Evidence, report
from tasks.summarize import summarize


async def derive(
    chunks: Sequence[Chunk], documents: Collection[str] | None, staging: Staging, runtime: Runtime
) -> None:
    """Store all that follows from the extractions and the edits; FailureGate where too much of it failed.

    `documents` are those with extractions that came, went or changed since the graph was made; None makes all anew.
    """
    before = resolved_before(staging, documents)
    edits = staging.edits.edits()
    near = await near_names(staging, runtime)
    graph = await dedupe(staging.extractions.rows(), chunks, Resolve(runtime.models), edits, before, near)
    keep_letters(staging, "resolve", graph.dead_letters, graph.size, runtime.settings.failure_limit)
    if graph.touched is None:
        await _make_anew(graph, chunks, staging, runtime)
    else:
        await update(graph, staging, runtime)
    store_resolution(staging, graph, before)
    await embed_names(staging, runtime)
    await embed_relations(staging, runtime)
    staging.meta.replace_usage(usage_rows(runtime.models.meter))


async def _make_anew(graph: Graph, chunks: Sequence[Chunk], staging: Staging, runtime: Runtime) -> None:
    """Describe, group and report the whole graph."""
    settings = runtime.settings
    describing_all = summarize(
        graph, runtime.summarize, runtime.relate, known_descriptions(staging), settings.summary_context
    )
    async with beside(describing_all) as describing:
        # While a model describes them; who belongs together depends on the relations alone.
        communities = await detect_communities(graph.entities, graph.relations, settings.community_size)
    described = describing.result()
    entities = described.entities
    graph = graph.model_copy(update={"relations": described.relations})
    evidence = Evidence(
        entities=entities,
        relations=graph.relations,
        places=graph.relation_occurrences,
        chunks=tuple(chunks),
        claims=graph.claims,
    )
    known = known_reports(staging)
    async with beside(in_thread(store_graph, staging, graph, entities)):
        told = partial(runtime.progress, "report")
        reported = await report(communities, evidence, runtime.report, known, settings.report_context, told)
    staging.descriptions.replace(None, described.inputs)
    staging.communities.replace_communities(communities, list(reported.reports))
    staging.meta.put_meta("drift", 0.0)
    keep_letters(staging, "summarize", described.dead_letters, len(entities), settings.failure_limit)
    keep_letters(staging, "report", reported.dead_letters, len(reported.reports), settings.failure_limit)
