"""Entity resolution: aliases join, homonyms stay apart, nothing is lost, and order never counts."""

import random
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prompts.extract import ALIAS_PREDICATE
from storage.graph_records import Entity, Extraction, Mention, RelationMention
from storage.records import Chunk
from tasks.dedupe import build_graph
from tasks.resolve.assemble import ResolvedGraph
from tests.records import chunk_of

Named = str | tuple[str, str]
Said = tuple[str, str, str]


def chunk(document: str, title: str = "", ordinal: int = 0) -> Chunk:
    return chunk_of("x" * 9, document, ordinal, id=f"chk_{document}_{ordinal}", title=title or document)


def extraction(of: Chunk, names: Sequence[Named], said: Sequence[Said] = (), description: str = "") -> Extraction:
    pairs = [(name, "thing") if isinstance(name, str) else name for name in names]
    mentions = [
        Mention(chunk=of.id, name=name, kind=kind, start=n, end=n + 1, description=description)
        for n, (name, kind) in enumerate(pairs)
    ]
    relations = [RelationMention(chunk=of.id, source=s, target=o, predicate=p, start=0, end=5) for s, p, o in said]
    return Extraction(chunk=of.id, mentions=tuple(mentions), relations=tuple(relations))


def graph_of(*found: tuple[Chunk, Extraction]) -> ResolvedGraph:
    return build_graph([one for _, one in found], {part.id: part for part, _ in found})


def group(graph: ResolvedGraph, chunk_id: str, start: int) -> Entity:
    (item,) = {p.item for p in graph.entity_occurrences if (p.chunk, p.start) == (chunk_id, start)}
    return next(entity for entity in graph.entities if entity.id == item)


def test_an_entity_named_with_two_kinds_keeps_both_sources() -> None:
    """GraphRAG groups by (title, type) and keeps the first row: the other row's sources are lost there."""
    a, b = chunk("a"), chunk("b")
    graph = graph_of((a, extraction(a, [("Kestrel", "place")])), (b, extraction(b, [("KESTREL", "work")])))
    (entity,) = graph.entities
    assert {place.chunk for place in graph.entity_occurrences} == {a.id, b.id}
    assert entity.mentions == 2


def test_stated_aliases_join_everywhere() -> None:
    a, b = chunk("a"), chunk("b")
    names: list[Named] = [("Coastal Hydrology Institute", "organisation"), "CHI", "海岸水文研究所"]
    said = [
        ("Coastal Hydrology Institute", ALIAS_PREDICATE, "CHI"),
        ("海岸水文研究所", ALIAS_PREDICATE, "Coastal Hydrology Institute"),
    ]
    graph = graph_of((a, extraction(a, names, said)), (b, extraction(b, ["CHI"])))
    assert len(graph.entities) == 1
    assert {(alias.name, alias.reason) for alias in graph.aliases} >= {
        ("海岸水文研究所", "the text states that both names mean the same")
    }
    assert graph.relations == ()


def test_an_abbreviation_of_two_things_stays_apart() -> None:
    parts = [chunk(name) for name in ("a", "b", "c")]
    names = ("Asian Football League", "Arctic Fishing Lobby")
    found = [
        (p, extraction(p, [full, "AFL"], [(full, ALIAS_PREDICATE, "AFL")]))
        for p, full in zip(parts, names, strict=False)
    ]
    graph = graph_of(*found, (parts[2], extraction(parts[2], ["AFL"])))
    assert group(graph, "chk_a_0", 1).name == names[0]
    assert group(graph, "chk_b_0", 1).name == names[1]
    assert group(graph, "chk_c_0", 0).name == "AFL"


def test_a_generic_word_is_no_alias() -> None:
    a = chunk("a")
    graph = graph_of((a, extraction(a, ["奥拉公司", "公司"], [("奥拉公司", ALIAS_PREDICATE, "公司")])))
    assert len(graph.entities) == 2


def test_names_of_different_kinds_are_not_joined() -> None:
    a = chunk("a")
    names = [("Ada Korb", "person"), ("Korb House", "organisation")]
    graph = graph_of((a, extraction(a, names, [("Ada Korb", ALIAS_PREDICATE, "Korb House")])))
    assert len(graph.entities) == 2


HOMONYMS = ("Tobias Wren (engineer)", "Tobias Wren (brewer)")


def homonyms() -> list[tuple[Chunk, Extraction]]:
    facts = chunk("facts")
    said = [
        (HOMONYMS[0], "designed", "Kestrel Bridge"),
        (HOMONYMS[0], "father of", "Agnes Wren"),
        (HOMONYMS[1], "brews at", "Gullstone Brewery"),
    ]
    return [(facts, extraction(facts, [*HOMONYMS, "Kestrel Bridge", "Agnes Wren", "Gullstone Brewery"], said))]


@pytest.mark.parametrize(
    ("company", "name"),
    [("Kestrel Bridge", HOMONYMS[0]), ("Gullstone Brewery", HOMONYMS[1]), ("Port Hask", "Tobias Wren")],
)
def test_a_homonym_goes_to_the_one_whose_neighbours_the_document_names(company: str, name: str) -> None:
    a = chunk("a")
    graph = graph_of(*homonyms(), (a, extraction(a, ["Tobias Wren", company])))
    assert group(graph, a.id, 0).name == name


def test_the_title_decides_between_homonyms() -> None:
    a = chunk("a", title=HOMONYMS[0])
    graph = graph_of(*homonyms(), (a, extraction(a, ["Tobias Wren", "Gullstone Brewery", ("Wren", "person")])))
    assert group(graph, a.id, 0).name == group(graph, a.id, 2).name == HOMONYMS[0]


def test_an_alias_of_a_homonym_follows_it_in_its_document() -> None:
    a, b = chunk("a"), chunk("b")
    same = [("雷恩", ALIAS_PREDICATE, "Tobias Wren")]
    graph = graph_of(
        *homonyms(),
        (a, extraction(a, ["雷恩", "Tobias Wren", "Kestrel Bridge"], same)),
        (b, extraction(b, ["雷恩", "Tobias Wren", "Gullstone Brewery"], same)),
    )
    assert (group(graph, a.id, 0).name, group(graph, b.id, 0).name) == HOMONYMS


def test_the_only_qualified_thing_takes_the_bare_name() -> None:
    a, b = chunk("a", title="Mercury (planet)"), chunk("b")
    graph = graph_of((a, extraction(a, ["Mercury (planet)"])), (b, extraction(b, ["Mercury"])))
    assert len(graph.entities) == 1


def test_a_last_word_that_begins_another_name_may_mean_either() -> None:
    a = chunk("a")
    graph = graph_of((a, extraction(a, ["MV Kestrel", ("Kestrel Bridge", "place"), "Kestrel"])))
    assert len(graph.entities) == 3


def test_statements_of_one_kind_become_one_weighted_relation() -> None:
    a, b = chunk("a"), chunk("b")
    said = [("Ada", "designed by", "Bob")]
    graph = graph_of(
        (a, extraction(a, ["Ada", "Bob", "Cy"], [*said, ("Ada", "knows", "Cy")])),
        (b, extraction(b, ["Ada", "Bob"], [("Ada", "Designs by", "Bob")])),
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
        part = chunk(f"d{number // 2}", ordinal=number % 2)
        distinct = list(dict(names).items())
        known = {name for name, _ in distinct}
        found.append((part, extraction(part, distinct, [s for s in said if {s[0], s[2]} <= known and s[0] != s[2]])))
    shuffled = random.Random(seed).sample(found, len(found))  # noqa: S311 -- a shuffle, no secret
    assert graph_of(*found) == graph_of(*shuffled)
    graph = graph_of(*found)
    assert {(p.chunk, p.start) for p in graph.entity_occurrences} == {
        (m.chunk, m.start) for _, one in found for m in one.mentions
    }
    ids = {entity.id for entity in graph.entities}
    assert all({r.source, r.target} <= ids and r.source != r.target and 0 < r.weight <= 1 for r in graph.relations)
