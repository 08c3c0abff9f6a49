"""How does what was extracted become the graph of a generation, with its communities and reports?

dedupe ─ summarize ─ detect communities ─ report

An index run ends with it; an edit by hand is nothing else.
"""

from collections.abc import Sequence
from functools import partial

from flows.indexing_store import keep_letters, known_reports, store_graph
from flows.runtime import Runtime, usage_rows
from flows.side_by_side import beside, in_thread
from prompts.report import WriteReports
from prompts.resolve import Resolve
from prompts.summarize import Summarize
from storage.records import Chunk, Extraction
from storage.staging import Staging
from tasks.communities import detect_communities
from tasks.dedupe import dedupe
from tasks.report import Evidence, report
from tasks.summarize import summarize


async def derive(
    extractions: Sequence[Extraction],
    chunks: Sequence[Chunk],
    staging: Staging,
    runtime: Runtime,
) -> None:
    """Store all that follows from the extractions and the edits; FailureGate where too much of it failed."""
    settings = runtime.settings
    failure_limit = settings.failure_limit
    graph = await dedupe(extractions, chunks, Resolve(runtime.models), staging.edits.edits())
    async with beside(summarize(graph, Summarize(runtime.models, settings.tailoring))) as describing:
        # While a model describes them; who belongs together depends on the relations alone.
        communities = await detect_communities(graph.entities, graph.relations, settings.community_size)
    described = describing.result()
    entities = described.entities
    evidence = Evidence(
        entities=entities,
        relations=graph.relations,
        places=graph.relation_occurrences,
        chunks=tuple(chunks),
        claims=graph.claims,
    )
    known = known_reports(staging)
    writer = WriteReports(runtime.models, settings.tailoring)
    async with beside(in_thread(store_graph, staging, graph, entities)):
        told = partial(runtime.progress, "report")
        reported = await report(communities, evidence, writer, known, settings.report_tokens, told)
    staging.communities.replace_communities(communities, list(reported.reports))
    keep_letters(staging, "resolve", graph.dead_letters, len(entities), failure_limit)
    keep_letters(staging, "summarize", described.dead_letters, len(entities), failure_limit)
    keep_letters(staging, "report", reported.dead_letters, len(reported.reports), failure_limit)
    staging.meta.replace_usage(usage_rows(runtime.models.meter))
