"""Pictures of the graph: an entity's neighbourhood, or what is most connected, with a place for
each node.
"""

from collections import defaultdict
from collections.abc import Collection, Sequence

import igraph

from flows.service.reading import around, entities_called, paths_between
from flows.session import Session
from storage.graph_records import Entity
from storage.records import Record

HOPS = 2
APART = 3.0  # relations that parts without a connection are apart


class PictureNode(Record):
    """An entity in a picture: `x` and `y` are 0 to 1; `community` numbers the broadest communities
    of the picture, the largest first, -1 for none.
    """

    id: str
    name: str
    kind: str
    degree: int
    community: int
    x: float
    y: float


class PictureEdge(Record):
    """All relations between two entities of a picture; `weight` is their sum."""

    source: str
    target: str
    weight: float


class Picture(Record):
    """Part of the graph, the most connected nodes first; `cut` says that there is more of it.

    `start` are the entities that it was asked for, `walk` the pairs of entities that the paths
    between them join.
    """

    nodes: tuple[PictureNode, ...]
    edges: tuple[PictureEdge, ...]
    cut: bool
    generation: int
    start: tuple[str, ...] = ()
    walk: tuple[tuple[str, str], ...] = ()


def picture(
    session: Session, name: str | None = None, most: int = 150, other: str | None = None
) -> Picture:
    """At most so many entities around those with a name (or id), or the most connected of all that
    have a relation; with `other` the paths between the two and what lies beside them.

    Raises UsageError, with the nearest names, for an unknown one.
    """
    facts, start, walk = session.graph.facts, tuple[str, ...](), tuple[tuple[str, str], ...]()
    if name is None:
        ranked = sorted((facts.entities[node] for node in facts.connected), key=_importance)
        chosen, cut = ranked[:most], len(ranked) > most
    else:
        start = tuple(entity.id for entity in entities_called(session, name))
        if other is not None:
            ways = paths_between(session, name, other).paths
            walk = tuple(
                dict.fromkeys((step.source, step.target) for way in ways for step in way.steps)
            )
            start = (*start, *(entity.id for entity in entities_called(session, other)))
        middle = tuple(dict.fromkeys((*(end for pair in walk for end in pair), *start)))
        near, cut = around(session, middle, HOPS if other is None else 1, max(most, len(middle)))
        chosen = [facts.entities[node] for node in near]
    edges = _edges(session, {entity.id for entity in chosen})
    places = _layout([entity.id for entity in chosen], edges)
    groups = _communities(session, places)
    nodes = (
        PictureNode(
            id=entity.id,
            name=entity.name,
            kind=entity.kind,
            degree=entity.degree,
            community=groups.get(entity.id, -1),
            x=places[entity.id][0],
            y=places[entity.id][1],
        )
        for entity in sorted(chosen, key=_importance)
    )
    return Picture(
        nodes=tuple(nodes),
        edges=tuple(edges),
        cut=cut,
        generation=session.number,
        start=start,
        walk=walk,
    )


def _importance(entity: Entity) -> tuple[int, int, str]:
    return -entity.degree, -entity.mentions, entity.id


def _edges(session: Session, members: Collection[str]) -> list[PictureEdge]:
    facts, weights = session.graph.facts, defaultdict[tuple[str, str], float](float)
    for relation in {row.id: row for member in members for row in facts.of(member)}.values():
        if (
            relation.source != relation.target
            and relation.source in members
            and relation.target in members
        ):
            weights[
                min(relation.source, relation.target), max(relation.source, relation.target)
            ] += relation.weight
    return [
        PictureEdge(source=a, target=b, weight=weight) for (a, b), weight in sorted(weights.items())
    ]


def _layout(nodes: Sequence[str], edges: Sequence[PictureEdge]) -> dict[str, tuple[float, float]]:
    """A place for each node by its distances in the graph (Kamada and Kawai 1989); the same graph,
    the same picture.
    """
    if not nodes:
        return {}
    number = {node: place for place, node in enumerate(nodes)}
    graph = igraph.Graph(len(nodes), [(number[edge.source], number[edge.target]) for edge in edges])
    first, *others = sorted(graph.connected_components(), key=len, reverse=True)
    graph.es["length"] = 1.0
    graph.add_edges(
        [(first[0], other[0]) for other in others]
    )  # what nothing connects stays near, but apart
    graph.es[len(edges) :]["length"] = APART
    places = graph.layout_kamada_kawai(seed=graph.layout_circle(), weights="length").coords
    axes = []
    for axis in zip(*places, strict=True):
        low, width = min(axis), max(axis) - min(axis)
        axes.append([(value - low) / width if width > 1e-9 else 0.5 for value in axis])
    return dict(zip(nodes, zip(*axes, strict=True), strict=True))


def _communities(session: Session, members: Collection[str]) -> dict[str, int]:
    groups = [
        {*community.members} & {*members}
        for community in session.generation.communities.communities(0)
    ]
    ranked = sorted(
        (group for group in groups if group), key=lambda group: (-len(group), min(group))
    )
    return {member: place for place, group in enumerate(ranked) for member in group}
