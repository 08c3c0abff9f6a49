"""Are reports read once, packed alike each time, and their points filled in by how much they help?"""

import asyncio
from collections.abc import Mapping, Sequence

import dspy
import pytest
from dspy.utils.dummies import DummyLM
from hypothesis import given, settings
from hypothesis import strategies as st

from prompts.engine.models import Models
from prompts.explore import FollowUp
from prompts.language.question import ask
from prompts.partial import Offered, Partial, partial_offline
from prompts.rate import Rate, speaks_of_all
from prompts.reading.evidence import Evidence
from prompts.reading.relevance import Relevance
from storage.records import Community, Report
from tasks.explore import MOST_LOOK_UPS, Agenda
from tasks.reports.pack import MOST_POINTS, PACK_TOKENS, Point, filled, packed, shuffled
from tasks.reports.tree import Rate as RateReports
from tasks.reports.tree import Selected, Tree, at_level, descend, tree_of


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


async def test_a_branch_is_followed_where_it_becomes_more_relevant() -> None:
    scores = {"a": 0.5, "b": 0.9, "c1": 0.6, "a1": 0.7, "a2": 0.1, "a11": 0.2, "b11": 0.3}
    found = await descend(tree(FAMILY), rating(scores))
    assert names(found) == ["a1", "b", "c1"]
    assert found.pruned == 0


async def test_what_no_one_follows_is_not_rated() -> None:
    many: dict[str, str | None] = {f"r{number}": None for number in range(40)}
    many |= {f"u{number}": f"r{number}" for number in range(40)}
    seen: list[str] = []
    found = await descend(tree(many), rating({"r3": 0.9, "u3": 0.95}, seen))
    assert "u3" in names(found)
    assert "r3" not in names(found)
    assert found.pruned == 28  # below the roots that were left
    assert len(seen) == 52


async def test_a_question_that_fits_no_report_reads_roots_alone() -> None:
    found = await descend(tree(FAMILY), rating({}))
    assert names(found) == ["a", "b", "c1"]


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_no_branch_is_read_twice(data: st.DataObject) -> None:
    parents: dict[str, str | None] = {}
    for number in range(data.draw(st.integers(1, 14))):
        above = data.draw(st.sampled_from([None, *parents]))
        parents[f"n{number}"] = above
    scores = {name: data.draw(st.floats(0, 1)) for name in parents}
    grown = tree(parents)
    chosen = [asyncio.run(descend(grown, rating(scores)))]
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


def point(text: str, score: int, document: str = "d", report: str = "r") -> Point:
    return Point(text, score, (score,), report, document)


def test_points_are_filled_in_by_how_much_they_help() -> None:
    points = [point("salt in wells", 90), point("nothing", 0), point("rust on ships", 50, "e"), point("the cat", 10)]
    assert [one.text for one in filled(points, 1_000, lambda one: 10)] == ["salt in wells", "rust on ships"]
    assert [one.text for one in filled(points, 15, lambda one: 10)] == ["salt in wells"]


def test_points_that_repeat_one_another_are_taken_once() -> None:
    points = [point("salt harms the old wells", 90), point("the old wells: salt harms", 80, "e"), point("rust", 70)]
    assert [one.score for one in filled(points, 1_000, lambda one: 1)] == [90, 70]


def test_documents_that_have_said_less_come_first_among_alike() -> None:
    words = "salt rust wind ice fog snow rain heat".split()
    points = [point(word, 80, "a") for word in words] + [point("dust", 70, "b"), point("mud", 60, "c")]
    assert {one.document for one in filled(points, 1_000, lambda one: 1)[:3]} == {"a", "b", "c"}
    many = [point(f"{word}{number}", 80, f"d{number}") for number in range(9) for word in words[:3]]
    assert len(filled(many, 10_000, lambda one: 1)) == MOST_POINTS


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
    assert sum(agenda.next() is not None for _ in range(20)) == MOST_LOOK_UPS - 3


@pytest.mark.parametrize(
    ("question", "so"),
    [
        ("What are the main themes of these documents?", True),
        ("这些文档的主要主题是什么?", True),
        ("What are the main problems with salt?", False),
        ("Which topics does the Kestrel Bridge survey discuss?", False),
    ],
)
def test_a_question_about_everything_is_told_from_one_about_something(question: str, so: bool) -> None:
    known = {"Kestrel Bridge": ()} if "Kestrel" in question else {}
    assert speaks_of_all(Relevance(ask(question), {}, known)) is so


SALT = Evidence(3, "wells", "Wells", "Salt has reached the wells of the brewery this year.")
WIND = Evidence(4, "ships", "Ships", "Wind kept the ferries in the harbour for nine days.")


def test_offline_points_are_the_sentences_themselves() -> None:
    relevance = Relevance(ask("What harm does salt do to wells?"), {})
    assert Partial(Models.offline()).is_offline
    offered = [Offered("Water", "About water.", [("Salt.", SALT), ("Wind.", WIND)])]
    found = partial_offline(offered, relevance)
    assert [(one.text, one.findings) for one in found if one.score] == [(SALT.text, [3])]


async def test_a_point_without_a_finding_that_was_given_is_left_out() -> None:
    step = Partial(Models.offline())
    points = [
        {"text": "Salt.", "score": 90, "findings": [3, 99]},
        {"text": "Invented.", "score": 95, "findings": [99]},
        {"text": "From nowhere.", "score": 80, "findings": []},
    ]
    step.lm = DummyLM([{"partial": {"points": points}}], adapter=dspy.JSONAdapter())
    found = await step.run([Offered("Water", "", [("Salt.", SALT)])], Relevance(ask("Why?"), {}))
    assert [(one.text, one.findings) for one in found] == [("Salt.", [3])]


async def test_a_report_without_a_rating_makes_the_model_answer_again() -> None:
    step = Rate(Models.offline())
    answers = [{"rated": {"ratings": [{"report": 0, "rating": 10}]}}] * 3
    step.lm = DummyLM(answers, adapter=dspy.JSONAdapter())
    with pytest.raises(Exception, match="no rating for the reports 1"):
        await step.run([SALT, WIND], Relevance(ask("Why?"), {}))
