"""Are our communities as good as cdlib's Leiden, and how much sooner are they there?

    python -m benchmarks.communities [--sizes 300 1000 3000]

Planted partitions of growing size; modularity is computed the same way for both, times are given as ratios.
"""

import argparse
import time
from collections.abc import Sequence

import networkx as nx

from storage.graph_records import Entity, Relation
from tasks.communities import detect


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


def main() -> None:
    """Print one line for each size."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--sizes", type=int, nargs="+", default=[300, 1000, 3000])
    cdlib_modularity(*planted(60))  # the import alone takes seconds
    for size in parser.parse_args().sizes:
        entities, relations = planted(size)
        started = time.perf_counter()
        ours = modularity(entities, relations, max_size=size)
        between = time.perf_counter()
        theirs = cdlib_modularity(entities, relations)
        ratio = (time.perf_counter() - between) / (between - started)
        print(
            f"{size:6} nodes {len(relations):7} edges: ours {ours:.4f}, cdlib {theirs:.4f}, cdlib takes {ratio:.1f} x"
        )


if __name__ == "__main__":
    main()
