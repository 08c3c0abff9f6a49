"""Neighbours by degree, the cheapest chains between two things, and the three formats in which they are shown."""

import math
import random
from collections.abc import Sequence
from pathlib import Path

import networkx as nx
import pytest

from prompts.text.words import stem
from prompts.traverse import Hop
from storage.database import Database
from storage.graph import TraversalReader
from storage.graph_records import Entity, Occurrence, Relation
from storage.records import Chunk, content_id
from tasks.retrieve.facts import GraphFacts
from tasks.traverse.answer import Statements, entity_table, path_list, relation_table
from tasks.traverse.meta_paths import step_score
from tasks.traverse.plan import around, shortest_paths
from tasks.traverse.relation_cues import Cue
from tests.records import chunk_of


def facts_of(*triples: tuple[str, str, str]) -> tuple[GraphFacts, Chunk]:
    lines = [f"{s} -[{p}]-> {o}" for s, p, o in triples]
    text = "\n".join(lines)
    chunk = chunk_of(text, id="chk", kind="triples")
    relations = [Relation(id=content_id("rel", s, p, o), source=s, target=o, predicate=p) for s, p, o in triples]
    places = [
        Occurrence(item=relation.id, chunk="chk", start=text.index(line), end=text.index(line) + len(line))
        for relation, line in zip(relations, lines, strict=True)
    ]
    names = sorted({end for s, _, o in triples for end in (s, o)})
    degree = {name: sum(name in (s, o) for s, _, o in triples) for name in names}
    return GraphFacts([Entity(id=n, name=n, kind="thing", degree=degree[n]) for n in names], relations, places), chunk


def nodes(path: Sequence[Relation], start: str) -> list[str]:
    found = [start]
    for relation in path:
        found.append(relation.target if relation.source == found[-1] else relation.source)
    return found


def test_the_same_nodes_come_once_and_no_more_than_k() -> None:
    facts, _ = facts_of(("a", "r", "z"), ("a", "q", "z"), ("z", "p", "a"), ("a", "r", "m"), ("m", "r", "z"))
    assert [nodes(path, "a") for path in shortest_paths(facts, ["a"], ["z"])] == [["a", "z"], ["a", "m", "z"]]
    assert len(shortest_paths(facts, ["a"], ["z"], k=1)) == 1


def test_chains_avoid_hubs_and_stop_where_there_is_none() -> None:
    facts, _ = facts_of(
        ("a", "r", "hub"), ("hub", "r", "c"), ("a", "r", "b"), ("b", "r", "c"), ("y", "r", "alone"),
        *(("hub", "r", f"x{number}") for number in range(40)),
    )  # fmt: skip
    assert nodes(shortest_paths(facts, ["a"], ["c"])[0], "a") == ["a", "b", "c"]
    assert shortest_paths(facts, ["a"], ["alone"]) == []


@pytest.mark.parametrize("seed", range(8))
def test_the_cheapest_chains_are_those_that_trying_all_finds(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 -- a graph to try, no secret
    names = [f"n{place}" for place in range(9)]
    pairs = {(one, two) for one in names for two in names if one != two and chance.random() < 0.25}
    facts, _ = facts_of(*((one, "r", two) for one, two in sorted(pairs)))
    graph = nx.Graph()
    for one, two in pairs:
        degrees = (facts.entities[one].degree, facts.entities[two].degree)
        graph.add_edge(one, two, cost=1 + sum(map(math.log1p, degrees)) / 2)
    every = nx.all_simple_paths(graph, "n0", "n8") if {"n0", "n8"} <= set(graph) else []
    wanted = sorted(nx.path_weight(graph, nodes, "cost") for nodes in every)[:4]
    assert [cost for cost, _ in facts.ways.cheapest("n0", "n8", 4)] == pytest.approx(wanted)


def test_neighbours_come_by_their_degree() -> None:
    facts, _ = facts_of(("a", "r", "few"), ("a", "r", "many"), ("many", "r", "x"), ("many", "r", "y"), ("x", "r", "w"))
    assert [one.target for one in around(facts, "a")] == ["many", "few"]
    assert len(around(facts, "a", most=1)) == 1


def test_what_was_walked_is_shown_in_three_formats() -> None:
    facts, chunk = facts_of(("a|b", "knows", "c"), ("d", "owns", "c"))
    stated = Statements(facts, lambda _: chunk)
    chain = tuple(shortest_paths(facts, ["a|b"], ["d"])[0])
    assert list(path_list(stated, [chain])) == ["a|b -[knows]-> c <-[owns]- d [1][2]"]
    assert relation_table(stated, chain, 1_000).splitlines()[2:] == [
        "| a\\|b | knows | c | [1] |",
        "| d | owns | c | [2] |",
    ]
    assert entity_table(facts, ["d", "c"], 1_000).splitlines()[2:] == ["| c | thing | 2 |  |", "| d | thing | 1 |  |"]
    assert [place.start for place in stated.pool()] == [0, len("a|b -[knows]-> c\n")]


def test_numbers_dates_and_counts_are_ranked_in_sql(tmp_path: Path) -> None:
    tables = TraversalReader(Database.create(tmp_path / "g.duckdb"))
    dates = [("a", "12 May 1950"), ("b", "1950"), ("c", "June 3, 1950"), ("d", "unknown")]
    assert [one.item for one in tables.ranked(dates, "min")] == ["b", "a", "c"]
    figures = [("a", "1,308,463 km"), ("b", "99.5"), ("c", "-4")]
    assert [one.item for one in tables.ranked(figures, "max")] == ["a", "b", "c"]
    pairs = [("a", "x"), ("a", "x"), ("b", "x"), ("b", "y")]
    assert [(one.item, one.number) for one in tables.counted(pairs, "max")] == [("b", 2.0), ("a", 1.0)]


@pytest.mark.parametrize(
    ("word", "relation", "inverse", "worded"),
    [
        # A relation names its target or its source.
        ("daughter", "daughter of", True, True), ("father", "daughter of", False, True),
        ("teacher", "taught", True, True), ("pupil", "taught", False, True), ("husband", "wife", True, True),
        # It is not walked to the wrong end, and backwards by the opposite word alone.
        ("mother", "daughter of", True, False), ("teacher", "taught", False, False),
        ("parent", "children", True, True), ("child", "children", True, False),
    ],
)  # fmt: skip
def test_a_relation_is_worded_in_its_direction(word: str, relation: str, inverse: bool, worded: bool) -> None:
    score, left = step_score(Hop(relation=relation, inverse=inverse), (Cue(stem(word), word),))
    assert score > 0.5 if worded else (score, left) == (0.0, None)
