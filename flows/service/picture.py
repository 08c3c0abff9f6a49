"""Drawings of the graph: an entity's neighbourhood, paths, or the most connected entities."""

from collections import defaultdict, deque
from collections.abc import Collection, Sequence

import igraph

from flows.service.reading import entities_called, paths_between
from flows.session import Session
from storage.graph_records import Entity, Relation
from storage.records import Record

HOPS = 2
TITLED = 5  # communities in the legend
APART = 3.0  # the distance between unconnected parts, in relations


Titles = tuple[str, ...]


class PictureNode(Record):
    """An entity in a picture; `x` and `y` are from 0 to 1. `community` numbers the broadest
    communities of the picture from the largest, -1 for none.
    """

    id: str
    name: str
    kind: str
    degree: int
    community: int
    x: float
    y: float


class PictureEdge(Record):
    """All relations between two entities of a picture: the sum of their weights, and what the
    heaviest one says.
    """

    source: str
    target: str
    weight: float
    label: str


class Picture(Record):
    """Part of the graph, the most connected nodes first; `cut` says whether nodes were left out.

    `start` holds the requested entities, `walk` the pairs of entities along the paths, `groups` the
    titles of the largest communities by their number.
    """

    nodes: tuple[PictureNode, ...]
    edges: tuple[PictureEdge, ...]
    cut: bool
    generation: int
    start: tuple[str, ...] = ()
    walk: tuple[tuple[str, str], ...] = ()
    groups: tuple[str, ...] = ()


def picture(
    session: Session, name: str | None = None, most: int = 150, other: str | None = None
) -> Picture:
    """Draw up to `most` entities around those of a name (or id); with `other` the paths between
    the two and their neighbours; without names the most connected entities.

    Raises NotFound, which names similar names.
    """
    facts, start, walk = session.graph.facts, tuple[str, ...](), tuple[tuple[str, str], ...]()
    if name is None:
        ranked = sorted((facts.entities[node] for node in facts.connected), key=_importance)
        chosen, cut = ranked[:most], len(ranked) > most
    else:
        start = tuple(entity.id for entity in entities_called(session, name))
        if other is not None:
            paths = paths_between(session, name, other).paths
            steps = [(step.source, step.target) for path in paths for step in path.steps]
            walk = tuple(dict.fromkeys(steps))
            start = (*start, *(entity.id for entity in entities_called(session, other)))
        middle = tuple(dict.fromkeys((*(end for pair in walk for end in pair), *start)))
        hops = HOPS if other is None else 1
        near, cut = _neighbourhood(session, middle, hops, max(most, len(middle)))
        chosen = [facts.entities[node] for node in near]
    edges = _edges(session, {entity.id for entity in chosen})
    places = _layout([entity.id for entity in chosen], edges)
    groups, titles = _communities(session, places)
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
        groups=titles,
    )


def _importance(entity: Entity) -> tuple[int, int, str]:
    return -entity.degree, -entity.mentions, entity.id


def _neighbourhood(
    session: Session, start: Sequence[str], hops: int, most: int
) -> tuple[list[str], bool]:
    """Return up to `most` entities within some hops, nearest first, and whether there are more."""
    facts = session.graph.facts
    distances, queue = dict.fromkeys(start, 0), deque(start)
    while queue:
        near = queue.popleft()
        for relation in facts.of(near) if distances[near] < hops else ():
            far = relation.target if relation.source == near else relation.source
            if far in distances:
                continue
            if len(distances) >= most:
                return list(distances), True
            distances[far] = distances[near] + 1
            queue.append(far)
    return list(distances), False


def _edges(session: Session, members: Collection[str]) -> list[PictureEdge]:
    facts, between = session.graph.facts, defaultdict[tuple[str, str], list[Relation]](list)
    for relation in {row.id: row for member in members for row in facts.of(member)}.values():
        first, second = sorted((relation.source, relation.target))
        if first != second and first in members and second in members:
            between[first, second].append(relation)
    return [
        PictureEdge(
            source=first,
            target=second,
            weight=sum(row.weight for row in rows),
            label=max(rows, key=lambda row: (row.weight, row.id)).predicate,
        )
        for (first, second), rows in sorted(between.items())
    ]


def _layout(nodes: Sequence[str], edges: Sequence[PictureEdge]) -> dict[str, tuple[float, float]]:
    """Place nodes by their distances in the graph (Kamada and Kawai 1989), always alike."""
    if not nodes:
        return {}
    number = {node: place for place, node in enumerate(nodes)}
    graph = igraph.Graph(len(nodes), [(number[edge.source], number[edge.target]) for edge in edges])
    first, *others = sorted(graph.connected_components(), key=len, reverse=True)
    graph.es["length"] = 1.0
    # Unconnected parts stay near each other, but apart.
    graph.add_edges([(first[0], other[0]) for other in others])
    graph.es[len(edges) :]["length"] = APART
    places = graph.layout_kamada_kawai(seed=graph.layout_circle(), weights="length").coords
    axes = []
    for axis in zip(*places, strict=True):
        low, width = min(axis), max(axis) - min(axis)
        axes.append([(value - low) / width if width > 1e-9 else 0.5 for value in axis])
    return dict(zip(nodes, zip(*axes, strict=True), strict=True))


def _communities(session: Session, members: Collection[str]) -> tuple[dict[str, int], Titles]:
    """Number the broadest communities in a picture from the largest, and title the first ones."""
    shown = {
        community.id: {*community.members} & {*members}
        for community in session.generation.communities.communities(0)
    }
    ranked = sorted(
        (name for name in shown if shown[name]), key=lambda name: (-len(shown[name]), name)
    )
    numbers = {member: place for place, name in enumerate(ranked) for member in shown[name]}
    large = [name for name in ranked[:TITLED] if len(shown[name]) > 1]
    titles = {row.community: row.title for row in session.reports.read(large)}
    return numbers, tuple(titles.get(name, "") for name in large)
