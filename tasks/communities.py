"""Communities at every level: hierarchical Leiden (Traag et al. 2019; GraphRAG 2.4), also after a small change.

Level 0 is the coarsest. A community larger than the limit is split at the next level; one that is not goes down
unchanged, so that each level is a partition of all entities: exclusive and exhaustive, single nodes included. Where
modularity finds nothing to split (a star, a clique) neighbours are kept together as far as the limit lets them.
igraph's Leiden is used: equal modularity to cdlib's at a tenth of its time (docs/experiments.md).

After a small change everybody stays where they were: a new entity goes, level by level, where its relations weigh most;
entities that only know each other found a community of their own; what has grown above the limit is cut at the last
level. The hierarchy gets worse with every change: past a set drift all is detected anew.
"""

import asyncio
import random
import threading
from collections import defaultdict
from collections.abc import Mapping, Sequence
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
        source, target = place[relation.source], place[relation.target]
        pair = (min(source, target), max(source, target))
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
        partition = graph.community_leiden(objective_function="modularity", weights="weight", n_iterations=4)
    return sorted(sorted(members) for members in partition)


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

_Path = tuple[str, ...]  # an entity's community at each level, from the coarsest on


class Hierarchy(Record):
    """The communities of every level, ordered by level and id; `was` tells which one each has been before a change."""

    communities: tuple[Community, ...]
    was: Mapping[str, str] = {}


def follow(
    earlier: Sequence[Community], entities: Sequence[Entity], relations: Sequence[Relation], max_size: int
) -> Hierarchy:
    """The earlier hierarchy, which is not empty, with the entities that there are now.

    Those that had nobody and have relations now are placed like new ones.
    """
    beside: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for relation in relations:
        for end, other in ((relation.source, relation.target), (relation.target, relation.source)):
            beside[end][other] += max(relation.weight, 1e-6)
    present = {entity.id for entity in entities}
    levels = max(community.level for community in earlier) + 1
    placed: dict[str, _Path] = defaultdict(tuple)
    for community in sorted(earlier, key=lambda community: community.level):
        alone = len(community.members) == 1 and community.members[0] in beside
        for member in present.intersection(() if alone and community.level == 0 else community.members):
            if len(placed[member]) == community.level:
                placed[member] += (community.id,)
    placed = {member: path for member, path in placed.items() if path}
    waiting = sorted(present - placed.keys())
    while waiting:
        tied = {
            entity: [(placed[other], w) for other, w in beside[entity].items() if other in placed] for entity in waiting
        }
        joining = {entity: _heaviest(ties, levels) for entity, ties in tied.items() if ties}
        if not joining:  # they found communities: the first, for those that it knows to join, and all that know nobody
            founders = [waiting[0], *(entity for entity in waiting if not beside[entity])]
            joining = {entity: (entity,) * levels for entity in founders}
        placed |= joining
        waiting = [entity for entity in waiting if entity not in joining]
    return _hierarchy(_cut_to_size(placed, relations, max_size), {community.id for community in earlier})


def _heaviest(ties: Sequence[tuple[_Path, float]], levels: int) -> _Path:
    """The path on which, level by level, the ties weigh most."""
    path: _Path = ()
    for level in range(levels):
        weights: dict[_Path, float] = defaultdict(float)
        for other, weight in ties:
            if other[:level] == path:
                weights[other[: level + 1]] += weight
        path = max(weights, key=lambda candidate: (weights[candidate], candidate))
    return path


def _cut_to_size(placed: Mapping[str, _Path], relations: Sequence[Relation], max_size: int) -> dict[str, _Path]:
    """Communities of the last level in place of those that are too large."""
    leaves: dict[_Path, list[str]] = defaultdict(list)
    for entity, path in placed.items():
        leaves[path].append(entity)
    cut: dict[str, _Path] = {}
    for path, members in leaves.items():
        if len(members) > max_size:
            ids, own = sorted(members), set(members)
            inside = [relation for relation in relations if relation.source in own and relation.target in own]
            for part in _cut(_undirected(ids, inside), list(range(len(ids))), max_size):
                cut |= {ids[index]: (*path[:-1], f"{path[-1]} {part[0]}") for index in part}
    return {**placed, **cut}


def _hierarchy(placed: Mapping[str, _Path], earlier: set[str]) -> Hierarchy:
    groups: dict[_Path, list[str]] = defaultdict(list)
    for entity in sorted(placed):
        path = placed[entity]
        for level in range(len(path)):
            groups[path[: level + 1]].append(entity)
    communities: dict[_Path, Community] = {}
    for path, members in sorted(groups.items(), key=lambda group: len(group[0])):
        level, parent = len(path) - 1, communities[path[:-1]].id if len(path) > 1 else None
        communities[path] = Community(
            id=community_id(level, members), level=level, parent=parent, members=tuple(members)
        )  # fmt: skip
    return Hierarchy(
        communities=tuple(sorted(communities.values(), key=lambda community: (community.level, community.id))),
        was={community.id: path[-1] for path, community in communities.items() if path[-1] in earlier},
    )


@step("detect-communities")
async def detect_communities(
    entities: Sequence[Entity], relations: Sequence[Relation], max_size: int, earlier: Sequence[Community] = ()
) -> Hierarchy:
    """The community hierarchy of a graph: the earlier one, followed, or where there is none the one that is detected.

    Made in a thread, so that calls to models go on meanwhile.
    """
    if earlier:
        return await asyncio.to_thread(follow, earlier, entities, relations, max_size)
    return Hierarchy(communities=tuple(await asyncio.to_thread(detect, entities, relations, max_size)))
