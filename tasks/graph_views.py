"""Graph views: a generation's entities and relations as graphs to work on, and as GraphML.

Two views for NetworkX: directed and typed, an edge for each relation; and undirected and weighted,
an edge for each pair of entities, which is what communities are detected on (GraphRAG, section
2.3).
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict
from itertools import chain
from math import fsum
from pathlib import Path

import networkx as nx

from prompts.text.regex import regex
from storage.graph_records import Community, Entity, Relation

# What XML 1.0 cannot hold, not even escaped.
_NOT_XML = regex("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_LINE_END = regex("\r\n?")


def directed(
    entities: Sequence[Entity], relations: Sequence[Relation], communities: Sequence[Community] = ()
) -> nx.MultiDiGraph:
    """Nodes are entity ids, edges relations with their id as key; what the records hold is in
    attributes.

    An entity's community at level N is its attribute `community_N`. Nodes and edges come by id.
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
    """One edge for each pair of related entities: parallel and opposite relations add up.

    `weight` is normalised once more, so that the heaviest edge has 1; `count` counts statements,
    `predicates` lists what the relations say. Nodes are as in `directed`.
    """
    between: dict[tuple[str, str], list[Relation]] = defaultdict(list)
    for relation in sorted(relations, key=lambda relation: relation.id):
        between[
            min(relation.source, relation.target), max(relation.source, relation.target)
        ].append(relation)
    # fsum is exact, so that the order of the relations cannot change the last digit.
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
    """The graph as GraphML 1.0; lists are joined by semicolons.

    A character that XML cannot hold stands as U+FFFD, so that the file is valid whatever the
    documents hold. Equal graphs give equal bytes.
    """
    written = graph.copy()
    for attributes in (
        data for *_, data in chain(written.nodes(data=True), written.edges(data=True))
    ):
        for name, value in attributes.items():
            if isinstance(value, str | tuple):
                text = value if isinstance(value, str) else "; ".join(map(str, value))
                attributes[name] = _NOT_XML.sub("\ufffd", _LINE_END.sub("\n", text))
    # Not `write_graphml`: it writes in another way where lxml happens to be installed.
    nx.write_graphml_xml(written, path, encoding="utf-8", prettyprint=True)
