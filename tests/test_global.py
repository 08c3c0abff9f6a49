"""Are reports read once, packed alike each time, and their points filled in by how much they help?"""

import asyncio
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prompts.explore import FollowUp
from prompts.offline.partial import partial_offline
from prompts.text.evidence import Evidence
from prompts.text.question import parse_question
from prompts.text.relevance import CollectionTopic, Relevance
from storage.graph_records import Community, Report
from tasks.explore import LOOK_UPS, Agenda
from tasks.reports.pack import MOST_POINTS, PACK_TOKENS, Point, filled, packed, shuffled
from tasks.reports.themes import themed, topic_of
from tasks.reports.tree import Rate as RateReports
from tasks.reports.tree import (
    Reach,
    Selected,
    Tree,
    at_level,
    descend,
    tree_of,
    weightiest,
)


def report(name: str, level: int = 0) -> Report:
    return Report(
        community=name, level=level, title=name, summary="", rating=5, rating_reason="", findings=(), inputs=name
    )


def tree(parents: Mapping[str, str | None]) -> Tree:
    """Of names that are reports, "-" before those that are communities without one."""
    communities = [
        Community(id=name.strip("-"), level=depth(name, parents), parent=above and above.strip("-"), members=())
        for name, above in parents.items()
    ]
    return tree_of(communities, [report(n, depth(n, parents)) for n in parents if not n.startswith("-")])


def depth(name: str, parents: Mapping[str, str | None]) -> int:
    above = parents[name]
    return 0 if above is None else 1 + depth(above, parents)


FAMILY: Mapping[str, str | None] = {
    "a": None, "b": None, "-c": None, "a1": "a", "a2": "a", "a11": "a1", "-b1": "b", "b11": "-b1", "c1": "-c",
}  # fmt: skip


def names(selected: Selected) -> list[str]:
    return sorted(one.community for one in selected.reports)


def test_communities_without_a_report_are_passed_through() -> None:
    found = tree(FAMILY)
    assert found.roots == ("a", "b", "c1")
    assert found.below == {"a": ("a1", "a2"), "a1": ("a11",), "b": ("b11",)}


@pytest.mark.parametrize(
    ("level", "read"), [(0, ["a", "b", "c1"]), (1, ["a1", "a2", "b11", "c1"]), (2, ["a11", "a2", "b11", "c1"])]
)
def test_a_level_has_the_reports_of_branches_that_end_above_it(level: int, read: Sequence[str]) -> None:
    assert names(at_level(tree(FAMILY), level)) == read


def rating(scores: Mapping[str, float], seen: list[str] | None = None) -> RateReports:
    async def rate(reports: Sequence[Report]) -> list[float]:
        (seen if seen is not None else []).extend(one.community for one in reports)
        return [scores.get(one.community, 0.0) for one in reports]

    return rate


def free_of(grown: Tree, scores: Mapping[str, float]) -> dict[str, float]:
    return {name: scores.get(name, 0.0) for name in grown.reports}


REACH = Reach(roots=40, below=24, tokens=3_600)


def small(_report: Report) -> int:
    return 100


async def test_a_branch_is_followed_where_it_becomes_more_relevant() -> None:
    scores = {"a": 0.5, "b": 0.9, "c1": 0.6, "a1": 0.7, "a2": 0.1, "a11": 0.2, "b11": 0.3}
    grown = tree(FAMILY)
    for found in (await descend(grown, free_of(grown, scores), small, REACH),
                  await descend(grown, free_of(grown, {}), small, REACH, rating(scores))):  # fmt: skip
        assert [one.community for one in found.reports] == ["b", "a1", "c1"], "the best first"
        assert found.pruned == 0


def wide(many: int) -> Tree:
    """Roots with one report under each."""
    grown: dict[str, str | None] = {f"r{number}": None for number in range(many)}
    return tree(grown | {f"u{number}": f"r{number}" for number in range(many)})


async def test_a_model_is_asked_about_the_likeliest_alone() -> None:
    grown = wide(4 * REACH.roots)
    seen: list[str] = []
    likely = {f"u{number}": 0.9 for number in range(90, 100)} | {"r3": 0.8}
    found = await descend(grown, free_of(grown, likely), small, REACH, rating({"r95": 0.9, "u95": 0.95}, seen))
    assert found.reports[0].community == "u95", "what lies below makes a root likely"
    assert len([name for name in seen if name.startswith("r")]) == REACH.roots
    assert {"r3", *(f"r{number}" for number in range(90, 100))} <= set(seen)
    assert len(found.reports) == 1, "what the model called relevant"
    assert found.pruned == 8 * REACH.roots - len(seen)


async def test_no_more_is_read_than_fits() -> None:
    grown = wide(3 * REACH.tokens // 100)
    free = dict.fromkeys(grown.reports, 0.5)
    for found in (await descend(grown, free, small, REACH), weightiest(grown, free, small, REACH)):
        assert len(found.reports) == REACH.tokens // 100
    half = REACH.tokens // 2
    for found in (await descend(grown, free, lambda _: half, REACH), weightiest(grown, free, lambda _: half, REACH)):
        assert len(found.reports) == 2
    assert len(weightiest(grown, free, lambda _: 2 * REACH.tokens, REACH).reports) == 1, "one at least"


async def test_a_question_that_fits_no_report_reads_roots_alone() -> None:
    grown = tree(FAMILY)
    assert names(await descend(grown, free_of(grown, {}), small, REACH)) == ["a", "b", "c1"]


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_no_branch_is_read_twice(data: st.DataObject) -> None:
    parents: dict[str, str | None] = {}
    for number in range(data.draw(st.integers(1, 14))):
        above = data.draw(st.sampled_from([None, *parents]))
        parents[f"n{number}"] = above
    scores = {name: data.draw(st.floats(0, 1)) for name in parents}
    grown = tree(parents)
    chosen = [asyncio.run(descend(grown, scores, small, REACH)), weightiest(grown, scores, small, REACH)]
    chosen += [asyncio.run(descend(grown, scores, small, REACH, rating({name: 1 - scores[name] for name in scores})))]
    chosen += [at_level(grown, level) for level in range(4)]
    for selected in chosen:
        read = {one.community for one in selected.reports}
        assert read
        for name in read:
            above = parents[name]
            while above is not None:
                assert above not in read
                above = parents[above]


def test_the_order_is_mixed_and_the_same_for_the_same_question() -> None:
    order = shuffled(range(50), "Who?")
    assert order == shuffled(range(50), "Who?")
    assert order != list(range(50))
    assert sorted(order) == list(range(50))
    assert order != shuffled(range(50), "When?")


def test_portions_hold_all_within_their_tokens() -> None:
    texts = ["word " * 700] * 7 + ["word " * 2 * PACK_TOKENS]
    portions = packed(texts)
    assert [place for portion in portions for place in portion] == list(range(8))
    assert portions[-1] == [7]
    assert max(map(len, portions)) == 3


def point(text: str, score: int, source: str = "d", report: str = "r") -> Point:
    return Point(text, score, (score,), report, source)


def test_points_are_filled_in_by_how_much_they_help() -> None:
    points = [point("salt in wells", 90), point("nothing", 0), point("rust on ships", 50, "e"), point("the cat", 10)]
    assert [one.text for one in filled(points, 1_000, lambda one: 10)] == ["salt in wells", "rust on ships"]
    assert [one.text for one in filled(points, 15, lambda one: 10)] == ["salt in wells"]


def test_points_that_repeat_one_another_are_taken_once() -> None:
    points = [point("salt harms the old wells", 90), point("the old wells: salt harms", 80, "e"), point("rust", 70)]
    assert [one.score for one in filled(points, 1_000, lambda one: 1)] == [90, 70]


def test_sources_that_have_said_less_come_first_among_alike() -> None:
    words = "salt rust wind ice fog snow rain heat".split()
    points = [point(word, 80, "a") for word in words] + [point("dust", 70, "b"), point("mud", 60, "c")]
    assert {one.source for one in filled(points, 1_000, lambda one: 1)[:3]} == {"a", "b", "c"}
    many = [point(f"{word}{number}", 80, f"d{number}") for number in range(9) for word in words[:3]]
    assert len(filled(many, 10_000, lambda one: 1)) == MOST_POINTS


def test_themes_are_what_points_share_each_over_its_group_once() -> None:
    gist = CollectionTopic(
        Relevance(parse_question("What do they say about flooding?"), {}), {"harbour": 0.6, "ferri": 0.4}
    )
    said = ["The harbour floods.", "Ferries sink.", "Nothing else.", "Every harbour closes.", "A ferry is a danger."]
    points = [point(text, 90 - number, f"d{number}") for number, text in enumerate(said)]
    claims = list(themed(points, gist))
    assert [claim.text for claim in claims] == [
        "Harbour:\nThe harbour floods.", "Every harbour closes.", "Ferries:\nFerries sink.", "A ferry is a danger.",
        "Also:\nNothing else.",
    ]  # fmt: skip
    assert [claim.evidence for claim in claims] == [(90,), (87,), (89,), (86,), (88,)]


def test_points_that_share_nothing_have_no_heading() -> None:
    gist = CollectionTopic(Relevance(parse_question("What do they say about flooding?"), {}))
    assert [claim.text for claim in themed([point("Salt.", 9), point("Rust.", 8)], gist)] == ["Salt.", "Rust."]


@pytest.mark.parametrize(
    ("title", "topic"),
    [
        ("Mae Jemison, EP-28_Behind_the_Tech, STEM", "Mae Jemison, STEM"),
        ("notes.txt", "notes.txt"),
        ("奥拉桥、雷德", "奥拉桥、雷德"),
        ("The harbour and its walls", "The harbour and its walls"),
    ],
)
def test_the_topic_of_a_report_names_no_file(title: str, topic: str) -> None:
    assert topic_of(title) == topic


def test_follow_ups_are_taken_best_first_once_and_not_for_ever() -> None:
    agenda = Agenda()
    agenda.add(
        [FollowUp(question="b", score=50), FollowUp(question="a", score=90), FollowUp(question="A ", score=95)], 0
    )
    assert agenda.next() == ("a", 1)
    agenda.add([FollowUp(question="c", score=80)], 1)
    assert [agenda.next(), agenda.next(), agenda.next()] == [("c", 2), ("b", 1), None]
    agenda.add([FollowUp(question="d", score=100)], 2)
    assert agenda.next() is None
    agenda.add([FollowUp(question=f"q{number}", score=9) for number in range(20)], 0)
    assert sum(agenda.next() is not None for _ in range(20)) == LOOK_UPS["medium"].most - 3


SALT = Evidence(3, "wells", "Wells", "Salt has reached the wells of the brewery this year.")
WIND = Evidence(4, "ships", "Ships", "Wind kept the ferries in the harbour for nine days.")


def gist_of(question: str) -> CollectionTopic:
    return CollectionTopic(Relevance(parse_question(question), {}))


def test_offline_points_are_the_sentences_themselves() -> None:
    found = partial_offline([SALT, WIND], gist_of("What harm does salt do to wells?"))
    assert [(one.text, one.number) for one in found if one.score] == [(SALT.text, 3)]
