"""Communities at every level: hierarchical Leiden (Traag et al. 2019; GraphRAG 2.4).

Level 0 is the coarsest. A community larger than the limit is split at the next level; one that is not goes down
unchanged, so that each level is a partition of all entities: exclusive and exhaustive, single nodes included. Where
modularity finds nothing to split (a star, a clique) neighbours are kept together as far as the limit lets them.
igraph's Leiden is used: equal modularity to cdlib's at a tenth of its time (docs/experiments.md).
"""

import asyncio
import random
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from storage.graph_records import Community, Entity, Relation
from storage.records import content_id
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


def split_further(
    members: Sequence[str], relations: Sequence[Relation], max_size: int, level: int, last: bool, seed: int = 7
) -> list[list[str]]:
    """What `detect` would make of one community (sorted members) at the next level, `level` > 0.

    `relations` holds all of those between members; `last` says that no level follows.
    """
    if len(members) <= max_size:
        return [list(members)]
    inside = set(members)
    whole = _undirected(members, [one for one in relations if one.source in inside and one.target in inside])
    everybody = list(range(len(members)))
    parts = _cut(whole, everybody, max_size) if last else _parts(whole, everybody, max_size, seed, level)
    return [[members[index] for index in part] for part in parts]


def partition_of(communities: Sequence[Community], level: int) -> dict[str, int]:
    """Entity id → number of its community at one level."""
    groups = [community for community in communities if community.level == level]
    return {member: number for number, community in enumerate(groups) for member in community.members}


def modularity(entities: Sequence[Entity], relations: Sequence[Relation], partition: Mapping[str, int]) -> float:
    """Modularity (Newman 2004) of a partition of the weighted undirected graph; -0.5 to 1."""
    names = sorted(entity.id for entity in entities)
    graph = _undirected(names, relations)
    return float(graph.modularity([partition[name] for name in names], weights="weight"))


@step("detect-communities")
async def detect_communities(
    entities: Sequence[Entity], relations: Sequence[Relation], max_size: int
) -> list[Community]:
    """The community hierarchy of a graph; found in a thread, so that calls to models go on meanwhile."""
    return await asyncio.to_thread(detect, entities, relations, max_size)
