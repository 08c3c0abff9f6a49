"""Whether our communities are as good as cdlib's Leiden, and how much sooner they are there."""

import time
from collections.abc import Sequence

import networkx as nx

from benchmarks.runner import Run, measure, option, whole_number
from storage.graph_records import Entity, Relation
from tasks.communities import detect


@measure(option("--sizes", type=whole_number, nargs="+", default=[300, 1000, 3000], help="of nodes (300 1000 3000)"))
def communities(run: Run) -> None:
    """Are our communities as good as cdlib's Leiden, and how much sooner are they there?

    Planted partitions of growing size; modularity is computed the same way for both, times are given as ratios.
    """
    cdlib_modularity(*planted(60))  # the import alone takes seconds
    rows = {}
    for size in run.options.sizes:
        entities, relations = planted(size)
        started = time.perf_counter()
        ours = modularity(entities, relations, max_size=size)
        between = time.perf_counter()
        theirs = cdlib_modularity(entities, relations)
        ratio = (time.perf_counter() - between) / (between - started)
        rows[f"{size} nodes"] = {
            "edges": len(relations), "ours": round(ours, 4), "cdlib": round(theirs, 4), "cdlib takes (times)": ratio
        }  # fmt: skip
    run.table("modularity of planted partitions", rows)


def planted(size: int) -> tuple[list[Entity], list[Relation]]:
    """A graph of `size` nodes in groups of 25 with far more edges inside than between them."""
    groups = max(2, size // 25)
    graph = nx.planted_partition_graph(groups, size // groups, 0.3, 1.5 / size, seed=11)
    names = {node: f"ent_{node:06}" for node in graph.nodes}
    entities = [Entity(id=name, name=name, kind="thing") for name in names.values()]
    relations = [
        Relation(id=f"rel_{number}", source=names[one], target=names[two], predicate="p", weight=1 + number % 3)
        for number, (one, two) in enumerate(graph.edges)
    ]
    return entities, relations


def weighted(entities: Sequence[Entity], relations: Sequence[Relation]) -> "nx.Graph[str]":
    """The graph that communities are detected on: parallel and opposite relations add up."""
    graph: nx.Graph[str] = nx.Graph()
    graph.add_nodes_from(sorted(entity.id for entity in entities))
    for relation in relations:
        known = graph.get_edge_data(relation.source, relation.target, {"weight": 0.0})["weight"]
        graph.add_edge(relation.source, relation.target, weight=known + relation.weight)
    return graph


def modularity(entities: Sequence[Entity], relations: Sequence[Relation], max_size: int = 12) -> float:
    """Modularity (Newman 2004) of our coarsest level."""
    groups = [set(one.members) for one in detect(entities, relations, max_size) if one.level == 0]
    return float(nx.community.modularity(weighted(entities, relations), groups, weight="weight"))


def cdlib_modularity(entities: Sequence[Entity], relations: Sequence[Relation]) -> float:
    """Modularity of `cdlib.algorithms.leiden` on the same weighted graph."""
    from cdlib import algorithms

    graph = weighted(entities, relations)
    found = algorithms.leiden(graph, weights="weight").communities
    return float(nx.community.modularity(graph, list(map(set, found)), weight="weight"))
