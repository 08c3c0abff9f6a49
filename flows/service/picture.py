"""Pictures of the graph: an entity's neighbourhood, or what is most connected, with a place for each node."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence

from flows.operations.changes import entities_named
from flows.session import Session
from storage.graph_records import Entity, Relation
from storage.records import Record
from tasks.retrieve.facts import GraphFacts

LONGEST_STEP = 2  # relations away from the entity in the middle
APART = 3.0  # relations that parts without a connection are apart


class PictureNode(Record):
    """An entity in a picture: `x` and `y` are 0 to 1; `community` numbers the broadest communities of the picture, the
    largest first, -1 for none."""

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
    """Part of the graph, the most connected nodes first; `total` counts the entities that it was chosen from."""

    nodes: tuple[PictureNode, ...]
    edges: tuple[PictureEdge, ...]
    total: int
    generation: int


def picture(session: Session, name: str | None = None, most: int = 150) -> Picture:
    """At most so many entities around those with a name, or the most connected of all that have a relation.

    Raises UsageError for an unknown name.
    """
    facts = session.graph.facts
    if name is None:
        ranked = sorted((facts.entities[node] for node in facts.touching), key=_importance)
        chosen, total = ranked[:most], len(ranked)
    else:
        named = entities_named(name, list(facts.entities.values()), session.generation.graph.aliases())
        near = _neighbourhood([entity.id for entity in named], facts)
        chosen, total = near[:most], len(near)
    members = {entity.id for entity in chosen}
    edges = _edges((relation for member in members for relation in facts.touching.get(member, ())), members)
    places, groups = _layout([entity.id for entity in chosen], edges), _communities(session, members)
    nodes = (
        PictureNode(
            id=entity.id, name=entity.name, kind=entity.kind, degree=entity.degree, x=x, y=y,
            community=groups.get(entity.id, -1),
        )
        for entity, (x, y) in zip(chosen, places, strict=True)
    )  # fmt: skip
    return Picture(
        nodes=tuple(sorted(nodes, key=lambda node: (-node.degree, node.id))), edges=tuple(edges), total=total,
        generation=session.number,
    )  # fmt: skip


def _importance(entity: Entity) -> tuple[int, int, str]:
    return -entity.degree, -entity.mentions, entity.id


def _neighbourhood(centre: Sequence[str], facts: GraphFacts) -> list[Entity]:
    """The entities near these, step by step; of one step the most connected first."""
    reached, ring = dict.fromkeys(centre), list(centre)
    for _ in range(LONGEST_STEP):
        ends = {end for node in ring for relation in facts.touching.get(node, ()) for end in _ends(relation)}
        ring = sorted(ends - reached.keys(), key=lambda end: _importance(facts.entities[end]))
        reached |= dict.fromkeys(ring)
    return [facts.entities[node] for node in reached]


def _ends(relation: Relation) -> tuple[str, str]:
    return min(relation.source, relation.target), max(relation.source, relation.target)


def _edges(relations: Iterable[Relation], members: Collection[str]) -> list[PictureEdge]:
    weights: dict[tuple[str, str], float] = defaultdict(float)
    for relation in {relation.id: relation for relation in relations}.values():
        if relation.source != relation.target and relation.source in members and relation.target in members:
            weights[_ends(relation)] += relation.weight
    return [PictureEdge(source=a, target=b, weight=weight) for (a, b), weight in sorted(weights.items())]


def _layout(nodes: Sequence[str], edges: Sequence[PictureEdge]) -> list[tuple[float, float]]:
    """A place for each node by its distances in the graph (Kamada and Kawai 1989); the same graph, the same picture."""
    import igraph

    if not nodes:
        return []
    number = {node: place for place, node in enumerate(nodes)}
    graph = igraph.Graph(len(nodes), [(number[edge.source], number[edge.target]) for edge in edges])
    first, *others = sorted(graph.connected_components(), key=len, reverse=True)
    graph.es["length"] = 1.0
    graph.add_edges([(first[0], other[0]) for other in others])  # what nothing connects stays near, but apart
    graph.es[len(edges) :]["length"] = APART
    places = graph.layout_kamada_kawai(seed=graph.layout_circle(), weights="length").coords
    axes = []
    for axis in zip(*places, strict=True):
        low, width = min(axis), max(axis) - min(axis)
        axes.append([(value - low) / width if width > 1e-9 else 0.5 for value in axis])
    return list(zip(*axes, strict=True))


def _communities(session: Session, members: Collection[str]) -> dict[str, int]:
    groups = [{*community.members} & {*members} for community in session.generation.communities.communities(0)]
    ranked = sorted((group for group in groups if group), key=lambda group: (-len(group), min(group)))
    return {member: place for place, group in enumerate(ranked) for member in group}
