"""Graph views: the entities and relations of a generation as NetworkX graphs, and as GraphML.

The directed view has an edge for each relation; the undirected one, an edge for each pair of
entities, with a weight. Communities are detected on the second (GraphRAG, section 2.3).
"""

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict
from itertools import chain
from math import fsum
from pathlib import Path

import networkx as nx

from storage.graph_records import Community, Entity, Relation

# What XML 1.0 cannot hold, not even escaped.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_LINE_END = re.compile("\r\n?")


def directed(
    entities: Sequence[Entity], relations: Sequence[Relation], communities: Sequence[Community] = ()
) -> nx.MultiDiGraph:
    """Return a graph of entities and relations by their ids; their fields are attributes.

    The attribute `community_N` is an entity's community at level N. Nodes and edges are sorted.
    """
    graph = nx.MultiDiGraph()
    _add_nodes(graph, entities, communities)
    for relation in sorted(relations, key=lambda relation: relation.id):
        graph.add_edge(
            relation.source,
            relation.target,
            key=relation.id,
            predicate=relation.predicate,
            description=relation.description,
            weight=relation.weight,
            count=relation.count,
            keys=relation.keys,
        )
    return graph


def undirected(
    entities: Sequence[Entity], relations: Sequence[Relation], communities: Sequence[Community] = ()
) -> nx.Graph:
    """Return a graph with one edge for each pair of related entities, whose relations add up.

    The heaviest edge has the `weight` 1; `count` counts statements, `predicates` lists what the
    relations say. Nodes are as in `directed`.
    """
    between: dict[tuple[str, str], list[Relation]] = defaultdict(list)
    for relation in sorted(relations, key=lambda relation: relation.id):
        first, second = sorted((relation.source, relation.target))
        between[first, second].append(relation)
    # fsum is exact, so the order of the relations cannot change the last digit.
    weights = {pair: fsum(relation.weight for relation in group) for pair, group in between.items()}
    heaviest = max(weights.values(), default=1.0) or 1.0
    graph = nx.Graph()
    _add_nodes(graph, entities, communities)
    for (first, second), group in sorted(between.items()):
        graph.add_edge(
            first,
            second,
            weight=weights[first, second] / heaviest,
            count=sum(relation.count for relation in group),
            predicates=tuple(sorted({relation.predicate for relation in group})),
        )
    return graph


def _add_nodes(
    graph: nx.Graph, entities: Sequence[Entity], communities: Sequence[Community]
) -> None:
    levels: dict[str, dict[str, str]] = defaultdict(dict)
    last = max((community.level for community in communities), default=0)
    for community in sorted(communities, key=lambda community: community.level):
        below = {f"community_{level}": community.id for level in range(community.level, last + 1)}
        for member in community.members:
            levels[member] |= below
    for entity in sorted(entities, key=lambda entity: entity.id):
        own = {name: value for name, value in asdict(entity).items() if name != "id"}
        graph.add_node(entity.id, **own, **levels[entity.id])


def write_graphml(graph: nx.Graph, path: Path) -> None:
    """Write GraphML 1.0; lists are joined by semicolons.

    U+FFFD replaces characters that XML cannot hold. Equal graphs give equal bytes.
    """
    written = graph.copy()
    for attributes in (
        data for *_, data in chain(written.nodes(data=True), written.edges(data=True))
    ):
        for name, value in attributes.items():
            if isinstance(value, str | tuple):
                text = value if isinstance(value, str) else "; ".join(map(str, value))
                attributes[name] = _NOT_XML.sub("\ufffd", _LINE_END.sub("\n", text))
    # Not `write_graphml`, whose output depends on whether lxml is installed.
    nx.write_graphml_xml(written, path, encoding="utf-8", prettyprint=True)
