"""Communities: every level is a partition, the same for the same graph; and graphs as GraphML."""

import random
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import igraph
import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage.errors import SettingsError
from storage.graph_records import Community, Entity, Relation
from tasks.communities import detect, follow, quality
from tasks.graph_views import directed, undirected, write_graphml

Graph = tuple[list[str], list[Relation]]


def related(one: str, other: str, *, weight: float = 1.0) -> Relation:
    return Relation(id=f"{one}-{other}", source=one, target=other, predicate="p", weight=weight)


def graph_of(size: int, edges: Collection[tuple[int, int]]) -> Graph:
    relations = [
        related(f"ent_{one:03}", f"ent_{two:03}", weight=1 + n % 3)
        for n, (one, two) in enumerate(edges)
        if one != two
    ]
    return [f"ent_{n:03}" for n in range(size)], relations


def edges_of(graph: "nx.Graph[int]") -> list[tuple[int, int]]:
    return [(int(one), int(two)) for one, two in graph.edges]


def planted(alone: int = 3) -> Graph:
    """Six groups of twenty, and some that have no relation."""
    return graph_of(120 + alone, edges_of(nx.planted_partition_graph(6, 20, 0.4, 0.02, seed=3)))


def check(entities: Collection[str], found: list[Community], max_size: int) -> None:
    """Those of a level, with those above that are not split, hold everybody once; what is not split
    is small enough.
    """
    by_id = {community.id: community for community in found}
    assert len(by_id) == len(found)
    levels = sorted({community.level for community in found})
    assert levels == list(range(len(levels)))
    split = {community.parent for community in found}
    assert all(len(own.members) <= max_size for own in found if own.id not in split)
    for level in levels:
        here = [
            own
            for own in found
            if own.level == level or (own.level < level and own.id not in split)
        ]
        members = sorted(member for community in here for member in community.members)
        assert members == sorted(entities)
    for community in found:
        assert (community.parent is None) == (community.level == 0)
        if community.parent is not None:
            parent = by_id[community.parent]
            assert parent.level == community.level - 1
            assert set(community.members) < set(parent.members)


SHAPES = {
    "empty": (0, []),
    "one": (1, []),
    "no edges": (7, []),
    "star": (60, [(0, n) for n in range(1, 60)]),
    "clique": (30, edges_of(nx.complete_graph(30))),
    "path": (80, edges_of(nx.path_graph(80))),
    "two parts and singles": (
        50,
        edges_of(nx.disjoint_union(nx.complete_graph(20), nx.cycle_graph(25))),
    ),
    "caveman": (90, edges_of(nx.connected_caveman_graph(9, 10))),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_every_node_has_a_community_at_every_level(shape: str) -> None:
    """GraphRAG clusters the largest component only."""
    entities, relations = graph_of(*SHAPES[shape])
    found = detect(entities, relations, max_size=5)
    assert bool(found) == bool(entities)
    check(entities, found, max_size=5)


@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 40),
    st.lists(st.tuples(st.integers(0, 39), st.integers(0, 39)), max_size=120),
    st.integers(2, 9),
)
def test_any_graph_is_partitioned_the_same_way_in_any_order(
    size: int, pairs: list[tuple[int, int]], max_size: int
) -> None:
    entities, relations = graph_of(size, [pair for pair in pairs if max(pair) < size])
    found = detect(entities, relations, max_size)
    check(entities, found, max_size)
    mixed = random.Random(1)  # noqa: S311 -- a shuffle, no secret
    others = mixed.sample(entities, size), mixed.sample(relations, len(relations))
    assert found == detect(*others, max_size)


@pytest.mark.slow
@pytest.mark.parametrize(
    "algorithm",
    [
        "leiden(resolution_parameter=0.5)",
        "louvain",
        "label_propagation",
        "em(k=4)",
        "scan(epsilon=0.5, mu=3)",
    ],
)
def test_any_algorithm_gives_the_same_hierarchy_every_time(algorithm: str) -> None:
    entities, relations = planted()
    found = detect(entities, relations, 12, algorithm)
    check(entities, found, 12)
    random.seed(11)
    np.random.seed(11)
    assert found == detect(entities[::-1], relations[::-1], 12, algorithm)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("algorithm", "words"),
    [
        ("lovain", "label_propagation, label_propagation_cordasco_gargano"),
        ("demon", "one of cdlib's algorithms that put each entity into one community: agdl"),
        ("louvain(resolution=open('x'))", "a name, or one with its parameters"),
        ("louvain(size=3)", "its parameters, louvain(partition: "),
        (
            "pycombo",
            "or install the package that it wants (Optional dependency not satisfied: install "
            "pycombo",
        ),
        (
            "async_fluid(k=4)",
            "cannot partition this graph (Fluid Communities require connected Graphs.)",
        ),
    ],
)
def test_an_algorithm_without_a_partition_is_refused(algorithm: str, words: str) -> None:
    cliques = nx.disjoint_union(nx.complete_graph(5), nx.complete_graph(4))
    with pytest.raises(SettingsError) as refused:
        detect(*graph_of(9, edges_of(cliques)), algorithm=algorithm)
    assert words in refused.value.remedy
    assert algorithm in refused.value.message


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["leiden", "label_propagation"])
def test_quality_is_what_cdlib_measures(algorithm: str) -> None:
    from cdlib import NodeClustering, evaluation

    entities, relations = planted()
    found = detect(entities, relations, algorithm=algorithm)
    groups = [list(own.members) for own in found if own.level == 0 and len(own.members) > 1]
    graph: nx.Graph[str] = nx.Graph()  # of all that has a relation
    graph.add_weighted_edges_from(
        (relation.source, relation.target, relation.weight) for relation in relations
    )
    theirs = NodeClustering(groups, graph)
    inside = sum(graph.subgraph(group).size(weight="weight") for group in groups)
    scores = quality(found, relations, algorithm)
    assert scores is not None
    assert scores.model_dump() == {
        "algorithm": algorithm,
        "levels": found[-1].level + 1,
        "coarsest": len(groups),
        "modularity": round(evaluation.newman_girvan_modularity(graph, theirs).score, 4),
        "conductance": round(float(evaluation.conductance(graph, theirs).score), 4),
        "coverage": round(inside / graph.size(weight="weight"), 4),
    }
    assert quality(detect(entities, []), []) is None


@pytest.mark.slow
def test_leiden_is_as_good_as_that_of_cdlib() -> None:
    entities, relations = planted()
    ours, theirs = (
        quality(detect(entities, relations, algorithm=name), relations)
        for name in ("leiden", "leiden()")
    )
    assert ours is not None
    assert theirs is not None
    assert ours.modularity == pytest.approx(theirs.modularity, rel=0.02)


# --- a small change -------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(12))
def test_random_changes_keep_a_hierarchy(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 -- a sample, no secret
    max_size = chance.choice([3, 5, 12])
    entities = {f"e{number}" for number in range(chance.choice([6, 40, 120]))}
    names = sorted(entities)
    pairs = {tuple(sorted(chance.sample(names, 2))) for _ in range(len(names) * 2)}
    communities = detect(entities, [related(*pair) for pair in sorted(pairs)], max_size)
    for step in range(12):
        gone = set(chance.sample(sorted(entities), min(len(entities) - 1, chance.randrange(3))))
        new = {f"n{step}-{number}" for number in range(chance.randrange(5))}
        entities = entities - gone | new
        pairs = {pair for pair in pairs if not set(pair) & gone}
        for one in sorted(new):
            pairs |= {
                tuple(sorted((one, chance.choice(sorted(entities - {one})))))
                for _ in range(chance.randrange(4))
            }
        relations = [related(*pair) for pair in sorted(pairs)]
        communities = list(follow(communities, entities, relations, max_size).communities)
        check(entities, communities, max_size)


def test_a_new_entity_goes_where_its_relations_weigh_most() -> None:
    groups = [f"a{n}" for n in range(6)], [f"b{n}" for n in range(6)]
    pairs = [related(one, other) for own in groups for one in own for other in own if one < other]
    there = [*groups[0], *groups[1]]
    earlier = detect(there, pairs, 12)
    first, second = (next(one.id for one in earlier if one.members == tuple(own)) for own in groups)
    relations = [*pairs, related("a0", "x"), related("a1", "x"), related("b0", "x")]
    after = follow(earlier, [*there, "x"], relations, 12)
    assert {one.members: after.was[one.id] for one in after.communities} == {
        (*groups[0], "x"): first,
        tuple(groups[1]): second,
    }
    # Nobody else moves.
    assert second in {one.id for one in after.communities}


def test_a_change_reaches_the_coarsest_communities_it_touches() -> None:
    entities, relations = planted()
    before = detect(entities, relations, 12)
    new = replace(relations[0], id="rel_new", target="ent_new")
    hierarchy = follow(before, [*entities, "ent_new"], [*relations, new], 12)
    hierarchy = hierarchy.model_copy(update={"before": tuple(before)})
    home = {member: root.id for root in before if root.level == 0 for member in root.members}
    failed = next(one for one in before if one.level == 1)
    joined, touched, above = home[new.source], home["ent_121"], home[failed.members[0]]
    assert len({joined, touched, above}) == 3
    reached = hierarchy.reached_by({"ent_new", "ent_121"}, {failed.id, "com_gone"})
    assert {home[one.members[0]] for one in reached.before} == {joined, touched, above}
    unchanged = {one for one in reached.before if home[one.members[0]] != joined}
    assert unchanged <= set(reached.communities)
    left_out = set(hierarchy.communities) - set(reached.communities)
    assert left_out == set(before) - set(reached.before)
    assert hierarchy.reached_by({"ent_new"}, ()).kept == set(home.values()) - {joined}


# --- views ----------------------------------------------------------------------------------------

ENTITIES = [Entity(id=f"ent_{name}", name=name.upper(), kind="thing") for name in "cab"]


def relation(
    number: int, source: str, target: str, predicate: str, weight: float, count: int = 1
) -> Relation:
    return Relation(
        id=f"rel_{number}",
        source=f"ent_{source}",
        target=f"ent_{target}",
        predicate=predicate,
        weight=weight,
        count=count,
    )


def test_parallel_and_opposite_relations_add_up_to_one_normalised_edge() -> None:
    relations = [
        relation(3, "b", "a", "paid by", 0.5, 2),
        relation(1, "a", "b", "pays", 1.0, 4),
        relation(2, "a", "b", "knows", 0.25),
        relation(4, "b", "c", "knows", 0.25),
    ]
    graph = undirected(ENTITIES, relations)
    assert list(graph.nodes) == ["ent_a", "ent_b", "ent_c"]
    assert graph.edges["ent_a", "ent_b"] == {
        "weight": 1.0,
        "count": 7,
        "predicates": ("knows", "paid by", "pays"),
    }
    assert graph.edges["ent_c", "ent_b"]["weight"] == pytest.approx(0.25 / 1.75)
    assert graph.number_of_edges() == 2


@settings(deadline=None, max_examples=30)
@given(name=st.text(), said=st.text(), key=st.text())
def test_any_string_gives_graphml_that_networkx_and_igraph_load(
    tmp_path_factory: pytest.TempPathFactory, name: str, said: str, key: str
) -> None:
    path = tmp_path_factory.mktemp("graphml") / "g.graphml"
    entities = [replace(ENTITIES[0], name=name), ENTITIES[1]]
    one = replace(relation(1, "a", "c", said, 1.0), keys=(key,))
    write_graphml(directed(entities, [one]), path)
    assert nx.read_graphml(path).number_of_edges() == 1
    graph = igraph.Graph.Read_GraphML(str(path))
    assert (graph.vcount(), graph.ecount()) == (2, 1)


def test_only_what_xml_cannot_hold_is_replaced(tmp_path: Path) -> None:
    odd = 'a\x00b\x0bc\ud800d\ufffe <&> "é" 海 \U0001f600\r\nend'
    write_graphml(directed([replace(ENTITIES[0], name=odd)], []), tmp_path / "g")
    read = nx.read_graphml(tmp_path / "g").nodes["ent_c"]["name"]
    assert read == 'a\ufffdb\ufffdc\ufffdd\ufffd <&> "é" 海 \U0001f600\nend'
