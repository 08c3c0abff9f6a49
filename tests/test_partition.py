"""Does a hierarchy that follows changes stay a hierarchy: exclusive, exhaustive, linked, within its sizes?"""

import random

import pytest

from storage.graph_records import Community, Entity, Relation
from tasks.communities import detect, follow


def entity(name: str) -> Entity:
    return Entity(id=name, name=name, kind="thing")


def relation(one: str, other: str) -> Relation:
    return Relation(id=f"{one}-{other}", source=one, target=other, predicate="p")


def check(communities: list[Community], entities: set[str], max_size: int) -> None:
    by_id = {one.id: one for one in communities}
    assert len(by_id) == len(communities)
    levels = sorted({one.level for one in communities})
    assert levels == list(range(len(levels)))
    for level in levels:
        members = [member for one in communities if one.level == level for member in one.members]
        assert len(members) == len(set(members)), "exclusive"
        assert set(members) == entities, "exhaustive"
    for one in communities:
        assert (one.parent is None) == (one.level == 0)
        if one.parent is not None:
            assert set(one.members) <= set(by_id[one.parent].members), "inside its parent"
        assert one.level < levels[-1] or len(one.members) <= max_size, "within the limit"


def changed(
    communities: list[Community], gone: set[str], new: set[str], relations: list[Relation], max_size: int
) -> list[Community] | None:
    """The hierarchy after a change, put together as storage does it."""
    near = {end for r in relations for end in (r.source, r.target) if {r.source, r.target} & new} - new
    around = [one for one in communities if set(one.members) & (gone | near)]
    levels = max(one.level for one in communities) + 1
    followed = follow(around, gone, new, relations, levels, max_size)
    if followed is None:
        return None
    kept = [one for one in communities if one.id not in followed.outdated]
    moved = [one.model_copy(update={"parent": followed.parents.get(one.parent or "", one.parent)}) for one in kept]
    return [*moved, *followed.communities]


@pytest.mark.parametrize("seed", range(40))
def test_random_changes_keep_a_hierarchy(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 -- a sample, no secret
    max_size = chance.choice([3, 5, 12])
    entities = {f"e{number}" for number in range(chance.choice([6, 40, 120]))}
    names = sorted(entities)
    pairs = {tuple(sorted(chance.sample(names, 2))) for _ in range(len(names) * 2)}
    communities = detect([entity(n) for n in entities], [relation(*p) for p in sorted(pairs)], max_size)
    followed = 0
    for step in range(12):
        gone = set(chance.sample(sorted(entities), min(len(entities) - 1, chance.randrange(3))))
        new = {f"n{step}-{number}" for number in range(chance.randrange(5))}
        entities = entities - gone | new
        pairs = {pair for pair in pairs if not set(pair) & gone}
        for one in sorted(new):
            pairs |= {tuple(sorted((one, chance.choice(sorted(entities - {one}))))) for _ in range(chance.randrange(4))}
        relations = [relation(*pair) for pair in sorted(pairs)]
        after = changed(communities, gone, new, relations, max_size)
        if after is None:
            after = detect([entity(n) for n in entities], relations, max_size)
        else:
            followed += 1
        check(after, entities, max_size)
        communities = after
    assert followed, "no change was followed"


def test_a_new_entity_goes_where_its_relations_weigh_most_and_nobody_else_moves() -> None:
    two = [f"a{n}" for n in range(6)], [f"b{n}" for n in range(6)]
    pairs = [relation(one, other) for group in two for one in group for other in group if one < other]
    before = detect([entity(name) for group in two for name in group], pairs, 12)
    relations = [*pairs, relation("a0", "x"), relation("a1", "x"), relation("b0", "x")]
    after = changed(before, set(), {"x"}, relations, 12)
    assert after is not None
    members = {frozenset(one.members) for one in after if one.level == 0}
    assert members == {frozenset([*two[0], "x"]), frozenset(two[1])}
    untouched = {one.id for one in before} & {one.id for one in after}
    assert {frozenset(one.members) for one in after if one.id in untouched} == {frozenset(two[1])}


def test_what_only_knows_itself_founds_a_community() -> None:
    before = detect([entity("a"), entity("b")], [relation("a", "b")], 12)
    after = changed(before, set(), {"x", "y", "z"}, [relation("a", "b"), relation("x", "y")], 12)
    assert after is not None
    assert {one.members for one in after if one.level == 0} == {("a", "b"), ("x", "y"), ("z",)}
