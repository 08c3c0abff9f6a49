"""Makes the part of a generation that some of its documents give, as a key with a filter reads it.

The graph of a part is what an index of these documents alone would hold: names are joined anew
from what they state, and counts, kinds and weights are theirs. What a model wrote (descriptions,
reports) is kept where all of its evidence lies in these documents, and otherwise left out or, for
an entity, replaced by their own statements.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace

from prompts.summarize import summarize_offline
from storage.graph import GraphRows
from storage.graph_records import Community, Entity, Relation
from storage.provenance import SCHEMA
from storage.staging import OpenGeneration
from tasks.resolve.assemble import ResolvedGraph, assemble, edited, entity_id
from tasks.resolve.keys import Resolved
from tasks.resolve.names import names_read, resolve


def fill_part(whole: OpenGeneration, part: OpenGeneration, documents: Collection[str]) -> None:
    """Fill a part, which holds what was extracted from these documents, with their graph, the
    communities of it, and the reports on these.
    """
    shared = whole.graph.stated_outside("entity", documents)
    graph = _graph(whole, part, shared)
    unshared = {entity.id for entity in graph.entities} - shared
    entities = {entity.id: entity for entity in whole.graph.entities(unshared)}
    split = whole.graph.stated_outside("relation", documents)
    relations = {
        relation.id: relation
        for relation in whole.graph.relations_at(entities)
        if relation.id not in split and {relation.source, relation.target} <= entities.keys()
    }
    aliases = [alias for alias in graph.aliases if alias.entity not in entities]
    part.graph.replace_graph(
        GraphRows(
            entities=[entities.get(own.id) or _described(own, graph) for own in graph.entities],
            aliases=[*aliases, *whole.graph.aliases(entities)],
            entity_occurrences=graph.entity_occurrences,
            relations=[_as_written(own, relations) for own in graph.relations],
            relation_occurrences=graph.relation_occurrences,
            claims=graph.claims,
            facts=graph.facts,
            strengths=graph.strengths,
        )
    )
    communities = _communities(whole, entities)
    reports = [
        report.model_copy(update={"level": communities[report.community].level})
        for report in whole.communities.reports(of=communities)
        if not report.stale
        and all(place.document in documents for row in report.findings for place in row.places)
    ]
    part.communities.replace_communities(list(communities.values()), reports)
    part.meta.put_meta(SCHEMA, whole.meta.get_meta(SCHEMA))


def _graph(whole: OpenGeneration, part: OpenGeneration, shared: Collection[str]) -> ResolvedGraph:
    """Make the graph of a part; `shared` are the entities that other documents name too.

    For a name that means another entity than these, the decision of the whole index stands: only
    documents of the part have led to it.
    """
    chunks = part.documents.chunks()
    of_chunk = {chunk.id: chunk.document for chunk in chunks}
    titles = {chunk.document: chunk.title for chunk in chunks}
    resolved = resolve(names_read(part.extractions, of_chunk, titles), ())
    resolved, _ = edited(resolved, whole.edits.edits())
    decided = {
        place: thing
        for place, (thing, _) in part.resolutions.places().items()
        if entity_id(thing) not in shared
    }
    resolved = Resolved({**resolved.keys, **decided}, resolved.reasons)
    return assemble(part.extractions.extractions(), of_chunk, resolved, {})


def _described(entity: Entity, graph: ResolvedGraph) -> Entity:
    """Describe an entity by what the documents of a part state of it."""
    statements = graph.evidence.get(entity.id, ())
    text = (
        summarize_offline(entity.name, statements) if len(statements) > 1 else "".join(statements)
    )
    return replace(entity, description=text)


def _as_written(relation: Relation, written: Mapping[str, Relation]) -> Relation:
    """Return a relation with the description and the keys that a model wrote, if it did."""
    known = written.get(relation.id)
    if known is None:
        return relation
    return replace(relation, description=known.description, keys=known.keys)


def _communities(whole: OpenGeneration, entities: Collection[str]) -> dict[str, Community]:
    """Return the communities of these entities alone, by id; levels count from what is left."""
    left: dict[str, Community] = {}
    for community in whole.communities.communities():
        if all(member in entities for member in community.members):
            above = left.get(community.parent or "")
            level = above.level + 1 if above else 0
            left[community.id] = replace(community, level=level, parent=above.id if above else None)
    return left
