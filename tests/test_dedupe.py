"""Entity resolution: aliases join, homonyms stay apart, nothing is lost, and order never counts."""

import random
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prompts.extract import ALIAS_PREDICATE
from storage.graph_records import Extraction, Mention, RelationMention
from storage.records import Chunk
from tasks.dedupe import build_graph
from tasks.resolve.assemble import ResolvedGraph
from tests.records import chunk_of

Named = str | tuple[str, str]
Said = tuple[str, str, str]
Read = tuple[Chunk, Extraction]


def read(document: str, names: Sequence[Named], said: Sequence[Said] = (), title: str = "", ordinal: int = 0) -> Read:
    """A passage that names these, and says this of them."""
    chunk = chunk_of("x" * 9, document, ordinal, id=f"chk_{document}_{ordinal}", title=title or document)
    pairs = [(name, "thing") if isinstance(name, str) else name for name in names]
    mentions = [
        Mention(chunk=chunk.id, name=name, kind=kind, start=n, end=n + 1) for n, (name, kind) in enumerate(pairs)
    ]
    relations = [RelationMention(chunk=chunk.id, source=s, target=o, predicate=p, start=0, end=5) for s, p, o in said]
    return chunk, Extraction(chunk=chunk.id, mentions=tuple(mentions), relations=tuple(relations))


def graph_of(*found: Read) -> ResolvedGraph:
    return build_graph([one for _, one in found], {part.id: part for part, _ in found})


def meant(graph: ResolvedGraph, document: str, start: int) -> str:
    """The name of what is mentioned there."""
    (item,) = {p.item for p in graph.entity_occurrences if (p.chunk, p.start) == (f"chk_{document}_0", start)}
    return next(entity.name for entity in graph.entities if entity.id == item)


@pytest.mark.parametrize(
    ("found", "count"),
    [
        # GraphRAG groups by (title, type) and keeps the first row: the other row's sources are lost there.
        ([read("a", [("Kestrel", "place")]), read("b", [("KESTREL", "work")])], 1),
        ([read("a", ["奥拉公司", "公司"], [("奥拉公司", ALIAS_PREDICATE, "公司")])], 2),
        (
            [
                read(
                    "a",
                    [("Ada Korb", "person"), ("Korb House", "organisation")],
                    [("Ada Korb", ALIAS_PREDICATE, "Korb House")],
                )
            ],
            2,
        ),
        ([read("a", ["Mercury (planet)"], title="Mercury (planet)"), read("b", ["Mercury"])], 1),
        ([read("a", ["MV Kestrel", ("Kestrel Bridge", "place"), "Kestrel"])], 3),
    ],
    ids=[
        "two kinds",
        "a generic word",
        "different kinds",
        "the only qualified thing",
        "a last word that begins a name",
    ],
)
def test_names_mean_so_many_things_and_no_source_is_lost(found: list[Read], count: int) -> None:
    graph = graph_of(*found)
    assert len(graph.entities) == count
    assert {place.chunk for place in graph.entity_occurrences} == {chunk.id for chunk, _ in found}
    assert sum(entity.mentions for entity in graph.entities) == sum(len(one.mentions) for _, one in found)


def test_stated_aliases_join_everywhere() -> None:
    names = ["Coastal Hydrology Institute", "CHI", "海岸水文研究所"]
    said = [(names[0], ALIAS_PREDICATE, names[1]), (names[2], ALIAS_PREDICATE, names[0])]
    graph = graph_of(read("a", [(names[0], "organisation"), *names[1:]], said), read("b", ["CHI"]))
    assert len(graph.entities) == 1
    assert {(alias.name, alias.reason) for alias in graph.aliases} >= {
        ("海岸水文研究所", "the text states that both names mean the same")
    }
    assert graph.relations == ()


def test_an_abbreviation_of_two_things_stays_apart() -> None:
    full = {"a": "Asian Football League", "b": "Arctic Fishing Lobby"}
    found = [read(part, [name, "AFL"], [(name, ALIAS_PREDICATE, "AFL")]) for part, name in full.items()]
    graph = graph_of(*found, read("c", ["AFL"]))
    assert (meant(graph, "a", 1), meant(graph, "b", 1), meant(graph, "c", 0)) == (*full.values(), "AFL")


HOMONYMS = ("Tobias Wren (engineer)", "Tobias Wren (brewer)")
FACTS = read(
    "facts",
    [*HOMONYMS, "Kestrel Bridge", "Agnes Wren", "Gullstone Brewery"],
    [
        (HOMONYMS[0], "designed", "Kestrel Bridge"),
        (HOMONYMS[0], "father of", "Agnes Wren"),
        (HOMONYMS[1], "brews at", "Gullstone Brewery"),
    ],
)


@pytest.mark.parametrize(
    ("company", "title", "name"),
    [
        ("Kestrel Bridge", "", HOMONYMS[0]),
        ("Gullstone Brewery", "", HOMONYMS[1]),
        ("Port Hask", "", "Tobias Wren"),
        ("Gullstone Brewery", HOMONYMS[0], HOMONYMS[0]),
    ],
)
def test_a_homonym_goes_to_the_title_or_the_one_whose_neighbours_are_named(company: str, title: str, name: str) -> None:
    graph = graph_of(FACTS, read("a", ["Tobias Wren", company, ("Wren", "person")], title=title))
    assert meant(graph, "a", 0) == name
    assert not title or meant(graph, "a", 2) == name


def test_an_alias_of_a_homonym_follows_it_in_its_document() -> None:
    same = [("雷恩", ALIAS_PREDICATE, "Tobias Wren")]
    beside = {"a": "Kestrel Bridge", "b": "Gullstone Brewery"}
    graph = graph_of(FACTS, *(read(part, ["雷恩", "Tobias Wren", name], same) for part, name in beside.items()))
    assert (meant(graph, "a", 0), meant(graph, "b", 0)) == HOMONYMS


def test_statements_of_one_kind_become_one_weighted_relation() -> None:
    graph = graph_of(
        read("a", ["Ada", "Bob", "Cy"], [("Ada", "designed by", "Bob"), ("Ada", "knows", "Cy")]),
        read("b", ["Ada", "Bob"], [("Ada", "Designs by", "Bob")]),
    )
    assert sorted((r.count, r.weight) for r in graph.relations) == [(1, 0.5), (2, 1.0)]
    assert len(graph.relation_occurrences) == 3


NAMES = st.sampled_from(["Ada Korb", "Korb", "Ada", "K (x)", "K (y)", "K", "AFL", "奥拉桥", "Korb House", "Dr Korb"])
KINDS = st.sampled_from(["person", "thing", "place", "organisation"])
PREDICATES = st.sampled_from(["knows", ALIAS_PREDICATE])
CONTENTS = st.lists(
    st.tuples(
        st.lists(st.tuples(NAMES, KINDS), min_size=1, max_size=6),
        st.lists(st.tuples(NAMES, PREDICATES, NAMES), max_size=4),
    ),
    min_size=1,
    max_size=5,
)


@settings(max_examples=60, deadline=None)
@given(CONTENTS, st.integers(0, 99))
def test_no_order_changes_the_graph_and_no_mention_is_lost(
    contents: list[tuple[list[tuple[str, str]], list[Said]]], seed: int
) -> None:
    found = []
    for number, (names, said) in enumerate(contents):
        known = dict(names)
        stated = [one for one in said if {one[0], one[2]} <= known.keys() and one[0] != one[2]]
        found.append(read(f"d{number // 2}", list(known.items()), stated, ordinal=number % 2))
    graph = graph_of(*found)
    assert graph == graph_of(*random.Random(seed).sample(found, len(found)))  # noqa: S311 -- a shuffle, no secret
    assert {(p.chunk, p.start) for p in graph.entity_occurrences} == {
        (m.chunk, m.start) for _, one in found for m in one.mentions
    }
    ids = {entity.id for entity in graph.entities}
    assert all({r.source, r.target} <= ids and r.source != r.target and 0 < r.weight <= 1 for r in graph.relations)
