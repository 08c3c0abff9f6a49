"""Communities at every level: hierarchical Leiden (Traag et al. 2019; GraphRAG 2.4), which also
follows small changes.

Level 0 is the coarsest: the partition by Leiden, or by an algorithm of cdlib, whose result is flat.
A community above the size limit is split by Leiden at the next level. One that is not split stands
only at its own level. Together with those of the levels above that are not split, the communities
of a level partition all entities, single ones included. If modularity finds no split (a star, a
clique), the community is cut into parts of neighbours. Leiden is that of igraph, which is faster
than cdlib's at equal modularity (docs/experiments.md).

After a small change everybody stays where they were. A new entity joins, level by level, the
community to which its relations weigh most; entities that only know each other found a new one; one
that has grown above the limit is cut at the next level. Every change makes the hierarchy worse:
past a set drift everything is detected again.
"""

import ast
import asyncio
import inspect
import io
import random
import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from functools import cache, partial
from typing import Any

import igraph
import numpy as np

from storage.errors import SettingsError
from storage.graph_records import Community, Relation, WeightedEdge
from storage.records import Record, by_key, content_id
from storage.run_records import CommunityQuality
from tasks.step import step

MAX_LEVELS = 8
LEIDEN = "leiden"
# Partitions a graph into lists of nodes.
Partition = Callable[[igraph.Graph], list[list[int]]]
Edges = Sequence[Relation | WeightedEdge]
_Path = tuple[str, ...]  # an entity's communities, from the coarsest on
_SEED = 7
# igraph draws from one random generator of the process, numpy and Python too.
_RANDOM = threading.Lock()


def _undirected(entities: Sequence[str], relations: Edges) -> igraph.Graph:
    """Return the weighted undirected graph; parallel and opposite relations add up."""
    place = {entity: index for index, entity in enumerate(entities)}
    weights: dict[tuple[int, int], float] = {}
    for relation in relations:
        source, target = place[relation.source], place[relation.target]
        pair = (min(source, target), max(source, target))
        weights[pair] = weights.get(pair, 0.0) + relation.weight
    pairs = sorted(weights)
    graph = igraph.Graph(n=len(entities), edges=pairs)
    # A relation of weight 0 counts too; modularity is undefined if all weights are 0.
    graph.es["weight"] = [max(weights[pair], 1e-6) for pair in pairs]
    return graph


@contextmanager
def _seeded() -> Iterator[None]:
    """Seed the random generators of the process, and restore them afterwards."""
    with _RANDOM:
        python, numpy = random.getstate(), np.random.get_state()
        random.seed(_SEED)
        np.random.seed(_SEED)
        # Repeatable, not secret.
        igraph.set_random_number_generator(random.Random(_SEED))  # noqa: S311
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(numpy)


def _leiden(graph: igraph.Graph) -> list[list[int]]:
    with _seeded():
        partition = graph.community_leiden(
            objective_function="modularity", weights="weight", n_iterations=4
        )
    return sorted(sorted(members) for members in partition)


# --- the algorithms of cdlib ----------------------------------------------------------------------


def partition_by(algorithm: str) -> Partition:
    """Return igraph's `leiden`, or an algorithm of cdlib: `louvain(resolution=1.2)`.

    Weights and a seed are set if the algorithm takes them. Raises SettingsError, with all names,
    for an algorithm that cdlib does not have or whose communities overlap, and for parameters that
    it does not take.
    """
    if algorithm == LEIDEN:
        return _leiden
    name, given = _call(algorithm)
    functions = _crisp_algorithms()
    if name not in functions:
        partitions = "one of cdlib's algorithms that put each entity into one community"
        raise SettingsError(
            "communities", algorithm, f"{partitions}: {', '.join(sorted(functions))}"
        )
    signature = inspect.signature(functions[name])
    ours = dict.fromkeys(("weight", "weights"), "weight") | dict.fromkeys(
        ("seed", "randomize", "random_seed"), _SEED
    )
    parameters = {key: value for key, value in ours.items() if key in signature.parameters} | given
    try:
        signature.bind(None, **parameters)
    except TypeError as error:
        own = ", ".join(str(each) for each in list(signature.parameters.values())[1:])
        raise SettingsError(
            "communities", algorithm, f"its parameters, {name}({own}): {error}"
        ) from error
    return partial(_partition, algorithm=algorithm, cluster=partial(functions[name], **parameters))


def _call(algorithm: str) -> tuple[str, dict[str, Any]]:
    try:
        match ast.parse(algorithm.strip(), mode="eval").body:
            case ast.Name(id=name):
                return name, {}
            case ast.Call(func=ast.Name(id=name), args=[], keywords=keywords):
                return name, {
                    str(keyword.arg): ast.literal_eval(keyword.value) for keyword in keywords
                }
    except (SyntaxError, ValueError):
        pass
    raise SettingsError(
        "communities", algorithm, "a name, or one with its parameters: louvain(resolution=1.2)"
    )


@cache
def _crisp_algorithms() -> dict[str, Callable[..., Any]]:
    """Return cdlib's algorithms that partition a whole undirected graph, by name."""
    with redirect_stdout(io.StringIO()):  # it prints which packages are missing
        from cdlib import NodeClustering
        from cdlib.algorithms import crisp_partition
    functions = {name: getattr(crisp_partition, name) for name in crisp_partition.__all__}
    # This one needs a directed graph without a cycle.
    functions.pop("siblinarity_antichain", None)
    crisp = {}
    for name, function in functions.items():
        signature = inspect.signature(function)
        # With a query node an algorithm only looks around that node.
        if (
            signature.return_annotation is NodeClustering
            and "query_node" not in signature.parameters
        ):
            crisp[name] = function
    return crisp


def _partition(graph: igraph.Graph, algorithm: str, cluster: Callable[..., Any]) -> list[list[int]]:
    """Partition the nodes that have a relation; all that the algorithm leaves out stand alone."""
    related = [node for node, degree in enumerate(graph.degree()) if degree]
    weighted = graph.induced_subgraph(related).to_networkx()
    try:
        with _seeded(), redirect_stdout(io.StringIO()):
            communities = cluster(weighted).communities if related else []
    except Exception as error:  # cdlib and its packages may raise any error
        reason = " ".join(str(error).replace("=", " ").split())[:300] or type(error).__name__
        instead = "or other parameters: it cannot partition this graph"
        if "install" in reason:  # an optional package of cdlib
            instead = "or install the package that it wants"
        raise SettingsError(
            "communities", algorithm, f"another algorithm, {instead} ({reason})"
        ) from error
    parts = [
        sorted(related[int(node)] for node in members) for members in communities if len(members)
    ]
    placed = [node for part in parts for node in part]
    if len(placed) > len(set(placed)):
        raise SettingsError(
            "communities",
            algorithm,
            "an algorithm that puts each entity into one community: these overlap",
        )
    return sorted([*parts, *([node] for node in set(range(graph.vcount())).difference(placed))])


# --- the hierarchy --------------------------------------------------------------------------------


def detect(
    entities: Collection[str], relations: Edges, max_size: int = 12, algorithm: str = LEIDEN
) -> list[Community]:
    """Detect the communities of every level among entities (ids), ordered by level and id.

    A community larger than `max_size` is split at the next level. The `algorithm` of the coarsest
    level is one of `partition_by`.
    """
    names = sorted(entities)
    if not names:
        return []
    whole = _undirected(names, relations)
    parts, paths = partition_by(algorithm)(whole), dict.fromkeys(names, _Path())
    for level in range(1, MAX_LEVELS + 1):
        for part in parts:
            for index in part:
                paths[names[index]] += (names[part[0]],)
        split = _cut if level == MAX_LEVELS - 1 else _split
        parts = [
            part
            for members in parts
            if len(members) > max_size
            for part in split(whole, members, max_size)
        ]
    return list(_hierarchy(paths, set()).communities)


def _split(whole: igraph.Graph, members: list[int], max_size: int) -> list[list[int]]:
    """Split a community by Leiden, or cut it if Leiden finds no parts."""
    parts = _leiden(whole.induced_subgraph(members))
    return (
        [[members[index] for index in part] for part in parts]
        if len(parts) > 1
        else _cut(whole, members, max_size)
    )


def _cut(whole: igraph.Graph, members: list[int], max_size: int) -> list[list[int]]:
    """Cut a community into equal parts of up to `max_size`, along a breadth-first walk from its
    best connected node.
    """
    inside = whole.induced_subgraph(members)
    degrees = inside.degree()
    walked: dict[int, None] = {}
    for start in sorted(range(len(members)), key=lambda index: (-degrees[index], index)):
        if start not in walked:
            walked |= dict.fromkeys(inside.bfs(start)[0])
    order = [members[index] for index in walked]
    return [sorted(part.tolist()) for part in np.array_split(order, -(-len(order) // max_size))]


def quality(
    communities: Sequence[Community], relations: Edges, algorithm: str = LEIDEN
) -> CommunityQuality | None:
    """Measure the coarsest level over all related entities, as `cdlib.evaluation` does.

    Returns None if there are no relations.
    """
    coarsest = [community.members for community in communities if community.level == 0]
    if not relations or not coarsest:
        return None
    members = {member: place for place, own in enumerate(coarsest) for member in own}
    graph, group = _undirected(list(members), relations), np.array(list(members.values()))
    weights, sides = np.array(graph.es["weight"]), group[np.array(graph.get_edgelist())]
    inside = sides[:, 0] == sides[:, 1]
    leaving = np.bincount(sides[~inside].ravel(), minlength=len(coarsest))
    volumes = leaving + 2 * np.bincount(sides[inside, 0], minlength=len(coarsest))
    return CommunityQuality(
        algorithm=algorithm,
        levels=communities[-1].level + 1,
        coarsest=sum(len(own) > 1 for own in coarsest),
        modularity=round(graph.modularity(group.tolist(), weights="weight"), 4),
        conductance=round(float(np.mean(leaving[volumes > 0] / volumes[volumes > 0])), 4),
        coverage=round(float(weights[inside].sum() / weights.sum()), 4),
    )


# --- a small change -------------------------------------------------------------------------------


class Hierarchy(Record):
    """The communities of every level, ordered by level and id.

    `before` are those of the last generation; `was` maps communities to what they were among
    these. `kept` are the coarsest ones that stay unchanged, with all below them.
    """

    communities: tuple[Community, ...]
    before: tuple[Community, ...] = ()
    was: Mapping[str, str] = {}
    kept: frozenset[str] = frozenset()
    quality: CommunityQuality | None = None

    def reached_by(self, entities: Collection[str], communities: Collection[str]) -> "Hierarchy":
        """Leave out what is kept, except above and below these entities and communities."""
        now, before = roots_of(self.communities), roots_of(self.before)
        touched = set(entities)
        reached = {now[name] for name in communities if name in now}
        reached |= {
            root.id
            for root in self.communities
            if root.level == 0 and not touched.isdisjoint(root.members)
        }
        standing = self.kept - reached
        update = {
            "communities": tuple(own for own in self.communities if now[own.id] not in standing),
            "before": tuple(own for own in self.before if before[own.id] not in standing),
        }
        return self.model_copy(update=update)


def roots_of(communities: Iterable[Community]) -> dict[str, str]:
    """Map each community to its coarsest one, by ids; the communities are ordered by level."""
    root: dict[str, str] = {}
    for community in communities:
        root[community.id] = root[community.parent] if community.parent else community.id
    return root


def follow(
    earlier: Sequence[Community], entities: Collection[str], relations: Edges, max_size: int
) -> Hierarchy:
    """Follow a change: the earlier hierarchy, which is not empty, with the entities (ids) of now.

    Entities that were alone and now have relations are placed like new ones. Coarsest communities
    that nobody leaves or can join stay unchanged, with all below them.
    """
    present = set(entities)
    related = {end for relation in relations for end in (relation.source, relation.target)}
    home = {member: root.id for root in earlier if root.level == 0 for member in root.members}
    alone = {
        root.members[0] for root in earlier if root.level == 0 and len(root.members) == 1
    } & related
    leaving = (home.keys() - present) | alone
    waiting = sorted(present - (home.keys() - leaving))
    ties_of: dict[str, dict[str, float]] = {entity: defaultdict(float) for entity in waiting}
    for relation in relations:
        for end, other in ((relation.source, relation.target), (relation.target, relation.source)):
            if end in ties_of:
                ties_of[end][other] += max(relation.weight, 1e-6)
    changing = {home[end] for end in leaving.union(*ties_of.values()) if end in home}
    same, followed = list[Community](), list[Community]()
    for community in earlier:
        (followed if home[community.members[0]] in changing else same).append(community)
    placed: dict[str, _Path] = defaultdict(tuple)
    for community in sorted(followed, key=lambda community: community.level):
        for member in community.members:
            if member in present and member not in alone and len(placed[member]) == community.level:
                placed[member] += (community.id,)
    while waiting:
        tied = {
            entity: [(placed[other], w) for other, w in ties_of[entity].items() if other in placed]
            for entity in waiting
        }
        joining = {entity: _heaviest(ties) for entity, ties in tied.items() if ties}
        if not joining:
            # All that know nobody found communities, and so does the first, which others may join.
            founders = [waiting[0], *(entity for entity in waiting if not ties_of[entity])]
            joining = {entity: (entity,) for entity in founders}
        placed |= joining
        waiting = [entity for entity in waiting if entity not in joining]
    new = _hierarchy(
        _cut_to_size(placed, relations, max_size), {community.id for community in followed}
    )
    return Hierarchy(
        communities=tuple(sorted([*same, *new.communities], key=level_and_id)),
        was={**{community.id: community.id for community in same}, **new.was},
        kept=frozenset(home.values()) - changing,
    )


def _heaviest(ties: Sequence[tuple[_Path, float]]) -> _Path:
    """Return the path on which, level by level, the ties weigh most."""
    path: _Path = ()
    while True:
        weights: dict[_Path, float] = defaultdict(float)
        for other, weight in ties:
            if other[: len(path)] == path != other:
                weights[other[: len(path) + 1]] += weight
        if not weights:
            return path
        path = max(weights, key=lambda candidate: (weights[candidate], candidate))


def _cut_to_size(placed: Mapping[str, _Path], relations: Edges, max_size: int) -> dict[str, _Path]:
    leaves = by_key((path, entity) for entity, path in placed.items())
    cut: dict[str, _Path] = {}
    for path, members in leaves.items():
        if len(members) > max_size:
            ids, own = sorted(members), set(members)
            inside = [
                relation
                for relation in relations
                if relation.source in own and relation.target in own
            ]
            for part in _cut(_undirected(ids, inside), list(range(len(ids))), max_size):
                cut |= {
                    ids[index]: (*path[: MAX_LEVELS - 1], f"{path[-1]} {part[0]}") for index in part
                }
    return {**placed, **cut}


def _hierarchy(placed: Mapping[str, _Path], earlier: set[str]) -> Hierarchy:
    """Build the communities of these paths; `earlier` are ids of communities in them."""
    groups: dict[_Path, list[str]] = defaultdict(list)
    for entity in sorted(placed):
        path = placed[entity]
        for level in range(len(path)):
            groups[path[: level + 1]].append(entity)
    communities, was = dict[_Path, Community](), dict[str, str]()
    for path, members in sorted(groups.items(), key=lambda group: len(group[0])):
        above = communities.get(path[:-1])
        if above is not None and len(above.members) == len(members):  # no longer split
            communities[path] = above
            continue
        level, parent = (0, None) if above is None else (above.level + 1, above.id)
        name = content_id("com", str(level), *members)
        communities[path] = Community(name, level, parent, tuple(members))
        if path[-1] in earlier:
            was[name] = path[-1]
    return Hierarchy(communities=tuple(sorted({*communities.values()}, key=level_and_id)), was=was)


def level_and_id(community: Community) -> tuple[int, str]:
    """Return the key by which communities are ordered."""
    return community.level, community.id


@step("detect-communities")
async def detect_communities(
    entities: Collection[str],
    relations: Edges,
    max_size: int,
    algorithm: str,
    earlier: Sequence[Community] = (),
) -> Hierarchy:
    """Find the community hierarchy of a graph: follow the earlier one, or else detect a new one."""

    def made() -> Hierarchy:
        if earlier:
            hierarchy = follow(earlier, entities, relations, max_size)
        else:
            detected = detect(entities, relations, max_size, algorithm)
            hierarchy = Hierarchy(communities=tuple(detected))
        measured = quality(hierarchy.communities, relations, algorithm)
        return hierarchy.model_copy(update={"quality": measured})

    # In a thread, so that calls to models go on meanwhile.
    return await asyncio.to_thread(made)
