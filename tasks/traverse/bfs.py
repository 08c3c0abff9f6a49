"""What stands around a thing? Its relations in and out, to a depth, those of the best connected neighbours first."""

from collections.abc import Sequence

from storage.records import Relation
from tasks.retrieve.facts import GraphFacts

DEPTH = 1
MOST = 40


def around(facts: GraphFacts, sources: Sequence[str], depth: int = DEPTH, most: int = MOST) -> list[Relation]:
    """At most so many relations within `depth` steps of the sources: the nearest first, then the best connected."""
    seen = set(sources)
    edge = list(dict.fromkeys(sources))
    found: dict[str, Relation] = {}
    for _ in range(depth):
        touching = [(one, entity) for entity in edge for one in facts.of(entity) if one.id not in found]
        touching.sort(key=lambda item: (-_far(facts, *item), -item[0].weight, item[0].id))
        found.update((one.id, one) for one, _ in touching)
        reached = dict.fromkeys(end for one, _ in touching for end in (one.source, one.target))
        edge = [entity for entity in reached if entity not in seen]
        seen.update(edge)
        if len(found) >= most or not edge:
            break
    return list(found.values())[:most]


def _far(facts: GraphFacts, relation: Relation, entity: str) -> int:
    far = relation.target if relation.source == entity else relation.source
    return facts.entities[far].degree
