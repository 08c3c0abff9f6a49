"""Communities at every level: hierarchical Leiden (Traag et al. 2019; GraphRAG 2.4), also after a small change.

Level 0 is the coarsest. A community larger than the limit is split at the next level; one that is not goes down
unchanged, so that each level is a partition of all entities: exclusive and exhaustive, single nodes included. Where
modularity finds nothing to split (a star, a clique) neighbours are kept together as far as the limit lets them.
igraph's Leiden is used: equal modularity to cdlib's at a tenth of its time (docs/experiments.md).

After a small change what nobody touched stays as it was: a new entity goes, level by level, where its relations weigh
most; entities that only know each other found a community of their own; what has grown above the limit is cut at the
last level. Whoever is gone leaves. The hierarchy gets worse with every change: past a set drift all is detected anew.
"""

import asyncio
import random
import threading
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from storage.graph_records import Community, Entity, Relation
from storage.records import Record, content_id
from tasks.step import step

if TYPE_CHECKING:
    import igraph

MAX_LEVELS = 8
# igraph draws from one random generator of the process.
_RANDOM = threading.Lock()


def _undirected(entities: Sequence[str], relations: Sequence[Relation]) -> "igraph.Graph":
    """The weighted undirected view: parallel and opposite relations add up."""
    import igraph

    place = {entity: index for index, entity in enumerate(entities)}
    weights: dict[tuple[int, int], float] = {}
    for relation in relations:
        one, two = place[relation.source], place[relation.target]
        pair = (min(one, two), max(one, two))
        weights[pair] = weights.get(pair, 0.0) + relation.weight
    pairs = sorted(weights)
    graph = igraph.Graph(n=len(entities), edges=pairs)
    # A weight of 0 is a statement too; without any weight modularity has no meaning.
    graph.es["weight"] = [max(weights[pair], 1e-6) for pair in pairs]
    return graph


def _leiden(graph: "igraph.Graph", seed: int) -> list[list[int]]:
    """One partition by modularity; the same graph and seed give the same partition."""
    import igraph

    with _RANDOM:
        igraph.set_random_number_generator(random.Random(seed))  # noqa: S311 - reproducibility is wanted, not secrecy
        found = graph.community_leiden(objective_function="modularity", weights="weight", n_iterations=4)
    return sorted(sorted(members) for members in found)


def detect(
    entities: Sequence[Entity], relations: Sequence[Relation], max_size: int = 12, seed: int = 7
) -> list[Community]:
    """The hierarchy as communities of every level, ordered by level and id.

    `max_size` is the size above which a community is split at the next level; none of the last level is larger.
    """
    names = sorted(entity.id for entity in entities)
    if not names:
        return []
    whole = _undirected(names, relations)
    communities: list[Community] = []
    above: list[tuple[list[int], str | None]] = [(list(range(len(names))), None)]
    for level in range(MAX_LEVELS):
        below: list[tuple[list[int], str | None]] = []
        for members, parent in above:
            last = level == MAX_LEVELS - 1
            for part in _cut(whole, members, max_size) if last else _parts(whole, members, max_size, seed, level):
                ids = tuple(names[index] for index in part)
                community = Community(id=community_id(level, ids), level=level, parent=parent, members=ids)
                communities.append(community)
                below.append((part, community.id))
        if all(len(members) <= max_size for members, _ in below):
            break
        above = below
    return sorted(communities, key=lambda community: (community.level, community.id))


def _parts(whole: "igraph.Graph", members: list[int], max_size: int, seed: int, level: int) -> list[list[int]]:
    if level == 0:
        return _leiden(whole, seed)
    if len(members) <= max_size:
        return [members]
    parts = _leiden(whole.induced_subgraph(members), seed)
    return [[members[index] for index in part] for part in parts] if len(parts) > 1 else _cut(whole, members, max_size)


def _cut(whole: "igraph.Graph", members: list[int], max_size: int) -> list[list[int]]:
    """Equal parts of at most `max_size`, of nodes that lie together on a walk from the most connected one outwards."""
    if len(members) <= max_size:
        return [members]
    inside = whole.induced_subgraph(members)
    degrees = inside.degree()
    walked: dict[int, None] = {}
    for start in sorted(range(len(members)), key=lambda index: (-degrees[index], index)):
        if start not in walked:
            walked |= dict.fromkeys(inside.bfs(start)[0])
    order = [members[index] for index in walked]
    count = -(-len(order) // max_size)
    size, more = divmod(len(order), count)
    ends = [size * (number + 1) + min(number + 1, more) for number in range(count)]
    return [sorted(order[begin:end]) for begin, end in zip([0, *ends], ends, strict=False)]


def community_id(level: int, members: Sequence[str]) -> str:
    """The id of a community of a level; `members` are sorted."""
    return content_id("com", str(level), *members)


# --- a small change --------------------------------------------------------------------------------------------------


class Followed(Record):
    """`communities` stand in for the `outdated` (ids); `was` tells which of these each one has been, where it was one;
    `left` are those of them that somebody has left.

    `parents` maps outdated communities to those that take their place above communities which are as they were.
    """

    communities: tuple[Community, ...]
    outdated: tuple[str, ...]
    was: Mapping[str, str]
    left: tuple[str, ...]
    parents: Mapping[str, str]


def follow(
    around: Sequence[Community],
    gone: Collection[str],
    new: Collection[str],
    relations: Sequence[Relation],
    levels: int,
    max_size: int,
) -> Followed:
    """The hierarchy after entities are `gone` and `new` ones came.

    `around` holds all communities of those that are gone and of the neighbours of those that are new; `relations` all
    that touch a new entity or a member of an `around` community of at most `max_size`. An entity may be both gone and
    new: it is placed again.
    """
    tree = _Tree(around, levels, relations)
    tree.leave(gone)
    tree.place(sorted(new))
    tree.cut(relations, max_size)
    return tree.followed()


@dataclass(eq=False)
class _Node:
    """A community while it changes; `was` is its id, empty for a new one."""

    level: int
    parent: "_Node | None"
    members: set[str]
    was: str = ""
    changed: bool = False
    left: bool = False


class _Tree:
    """The communities around a change."""

    def __init__(self, around: Sequence[Community], levels: int, relations: Sequence[Relation]) -> None:
        self.levels = levels
        self.nodes: list[_Node] = []
        self.outdated: list[str] = []
        self.path: dict[str, dict[int, _Node]] = defaultdict(dict)
        by_id: dict[str, _Node] = {}
        for one in sorted(around, key=lambda community: (community.level, community.id)):
            by_id[one.id] = self._enter(_Node(one.level, by_id.get(one.parent or ""), set(one.members), one.id))
        self.beside: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
        for relation in relations:
            for end, other in ((relation.source, relation.target), (relation.target, relation.source)):
                self.beside[end][other] += max(relation.weight, 1e-6)

    def _enter(self, node: _Node) -> _Node:
        self.nodes.append(node)
        for member in node.members:
            self.path[member][node.level] = node
        return node

    def leave(self, gone: Collection[str]) -> None:
        """Take entities out of their communities."""
        for entity in gone:
            for node in self.path.pop(entity, {}).values():
                node.members.discard(entity)
                node.changed = node.left = True

    def place(self, new: Sequence[str]) -> None:
        """Put each where its relations weigh most, the most tied first; the rest into communities of their own."""
        left = dict.fromkeys(new)
        while left:
            ties = {entity: sum(w for one, w in self.beside[entity].items() if one in self.path) for entity in left}
            entity = max(left, key=lambda one: (ties[one], one))
            if ties[entity] == 0:
                break
            self._join(entity)
            del left[entity]
        for members in self._components(left):
            node: _Node | None = None
            for level in range(self.levels):
                node = self._enter(_Node(level, node, set(members), changed=True))

    def _join(self, entity: str) -> None:
        inside: _Node | None = None
        for level in range(self.levels):
            weights: dict[_Node, float] = defaultdict(float)
            for other, weight in self.beside[entity].items():
                node = self.path.get(other, {}).get(level)
                if node is not None and (inside is None or node.parent is inside):
                    weights[node] += weight
            inside = max(weights, key=lambda node: (weights[node], min(node.members)))
            inside.members.add(entity)
            inside.changed = True
            self.path[entity][level] = inside

    def _components(self, left: Iterable[str]) -> list[list[str]]:
        """The connected components of what nobody else knows."""
        remaining, found = dict.fromkeys(sorted(left)), []
        while remaining:
            reached, edge = dict[str, None](), [next(iter(remaining))]
            while edge:
                entity = edge.pop()
                if entity in remaining:
                    del remaining[entity]
                    reached[entity] = None
                    edge += self.beside[entity]
            found.append(sorted(reached))
        return found

    def cut(self, relations: Sequence[Relation], max_size: int) -> None:
        """Communities of the last level in place of those that are too large."""
        for leaf in [node for node in self.nodes if node.changed and node.level == self.levels - 1]:
            if len(leaf.members) > max_size:
                self.nodes.remove(leaf)
                self.outdated += [leaf.was] * bool(leaf.was)
                ids = sorted(leaf.members)
                inside = [one for one in relations if one.source in leaf.members and one.target in leaf.members]
                for part in _cut(_undirected(ids, inside), list(range(len(ids))), max_size):
                    self._enter(_Node(leaf.level, leaf.parent, {ids[index] for index in part}, changed=True))

    def followed(self) -> Followed:
        """What became of it: every community whose members changed, top down."""
        made: dict[_Node, Community] = {}
        for node in sorted((node for node in self.nodes if node.changed and node.members), key=lambda node: node.level):
            ids = tuple(sorted(node.members))
            above = node.parent
            parent = None if above is None else made[above].id if above in made else above.was
            made[node] = Community(id=community_id(node.level, ids), level=node.level, parent=parent, members=ids)
        was = {community.id: node.was for node, community in made.items() if node.was}
        return Followed(
            communities=tuple(made.values()),
            outdated=(*(node.was for node in self.nodes if node.was and node.changed), *self.outdated),
            was=was,
            left=tuple(community.id for node, community in made.items() if node.left),
            parents={earlier: now for now, earlier in was.items()},
        )


@step("detect-communities")
async def detect_communities(
    entities: Sequence[Entity], relations: Sequence[Relation], max_size: int
) -> list[Community]:
    """The community hierarchy of a graph; found in a thread, so that calls to models go on meanwhile."""
    return await asyncio.to_thread(detect, entities, relations, max_size)
