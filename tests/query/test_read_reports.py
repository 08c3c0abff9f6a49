"""Reports for a question about everything: which are read, how they are rated, and the points that
they give.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prompts.engine.effort import LIMITS, Effort
from prompts.read_reports import MOST_FOLLOW_UPS, Explore, FollowUp, Offered, Partial, Rate
from storage.graph_records import Community, Report
from tasks.batches import portions
from tasks.read_reports.points import (
    LOOK_UPS,
    MOST_POINTS,
    Agenda,
    Point,
    ReportTexts,
    by_source,
    explore,
    partial_answers,
    shuffled,
    spread,
)
from tasks.read_reports.select import (
    READ_AT_ONCE,
    Reach,
    ReportRater,
    ReportTree,
    SelectedReports,
    at_level,
    descend,
    opening_of,
    rate_reports,
    tree_of,
    weightiest,
)
from tests.query.steps import gist_of, piece, scripted, sent


def report(name: str, level: int = 0, summary: str = "") -> Report:
    return Report(
        community=name,
        level=level,
        title=name,
        summary=summary,
        rating=5,
        rating_reason="",
        findings=(),
        inputs=name,
    )


def tree(parents: Mapping[str, str | None]) -> ReportTree:
    """Of names that are reports, "-" before those that are communities without one."""
    communities = [
        Community(
            id=name.strip("-"),
            level=depth(name, parents),
            parent=above and above.strip("-"),
            members=(),
        )
        for name, above in parents.items()
    ]
    reports = {
        name: report(name, depth(name, parents)) for name in parents if not name.startswith("-")
    }
    return tree_of(
        communities,
        {name: own.rating for name, own in reports.items()},
        lambda names: [reports[name] for name in names],
    )


def depth(name: str, parents: Mapping[str, str | None]) -> int:
    above = parents[name]
    return 0 if above is None else 1 + depth(above, parents)


FAMILY: Mapping[str, str | None] = {
    "a": None,
    "b": None,
    "-c": None,
    "a1": "a",
    "a2": "a",
    "a11": "a1",
    "-b1": "b",
    "b11": "-b1",
    "c1": "-c",
}


def names(selected: SelectedReports) -> list[str]:
    return sorted(one.community for one in selected.reports)


@pytest.mark.parametrize(
    ("level", "read"),
    [(0, ["a", "b", "c1"]), (1, ["a1", "a2", "b11", "c1"]), (2, ["a11", "a2", "b11", "c1"])],
)
def test_a_level_has_the_reports_of_branches_that_end_above_it(
    level: int, read: Sequence[str]
) -> None:
    assert names(at_level(tree(FAMILY), level)) == read


def rating(scores: Mapping[str, float], seen: list[str] | None = None) -> ReportRater:
    async def rate(reports: Sequence[Report]) -> list[float | None]:
        (seen if seen is not None else []).extend(one.community for one in reports)
        return [scores.get(one.community, 0.0) for one in reports]

    return rate


def free_of(grown: ReportTree, scores: Mapping[str, float]) -> dict[str, float]:
    return {name: scores.get(name, 0.0) for name in grown.ratings}


REACH = Reach(roots=40, below=24, tokens=3_600)


def small(_report: Report) -> int:
    return 100


async def test_a_branch_is_followed_where_it_becomes_more_relevant() -> None:
    scores = {"a": 0.5, "b": 0.9, "c1": 0.6, "a1": 0.7, "a2": 0.1, "a11": 0.2, "b11": 0.3}
    grown = tree(FAMILY)
    for found in (
        await descend(grown, free_of(grown, scores), small, REACH),
        await descend(grown, free_of(grown, {}), small, REACH, rating(scores)),
    ):
        assert [one.community for one in found.reports] == ["b", "a1", "c1"], "the best first"
        assert found.pruned == 0


def wide(many: int) -> ReportTree:
    """Roots with one report under each."""
    grown: dict[str, str | None] = {f"r{number}": None for number in range(many)}
    return tree(grown | {f"u{number}": f"r{number}" for number in range(many)})


async def test_a_model_is_asked_about_the_likeliest_alone() -> None:
    grown = wide(4 * REACH.roots)
    seen: list[str] = []
    likely = {f"u{number}": 0.9 for number in range(90, 100)} | {"r3": 0.8}
    found = await descend(
        grown, free_of(grown, likely), small, REACH, rating({"r95": 0.9, "u95": 0.95}, seen)
    )
    assert found.reports[0].community == "u95", "what lies below makes a root likely"
    assert len([name for name in seen if name.startswith("r")]) == REACH.roots
    assert {"r3", *(f"r{number}" for number in range(90, 100))} <= set(seen)
    assert len(found.reports) == 1, "what the model called relevant"
    assert found.pruned == 8 * REACH.roots - len(seen)


async def test_no_more_is_read_than_fits() -> None:
    grown = wide(3 * REACH.tokens // 100)
    estimates = dict.fromkeys(grown.ratings, 0.5)
    for found in (
        await descend(grown, estimates, small, REACH),
        weightiest(grown, estimates, small, REACH),
    ):
        assert len(found.reports) == REACH.tokens // 100
    half = REACH.tokens // 2
    for found in (
        await descend(grown, estimates, lambda _: half, REACH),
        weightiest(grown, estimates, lambda _: half, REACH),
    ):
        assert len(found.reports) == 2
    assert len(weightiest(grown, estimates, lambda _: 2 * REACH.tokens, REACH).reports) == 1, (
        "one at least"
    )


async def test_of_many_reports_few_more_are_loaded_than_are_read() -> None:
    grown, loaded = wide(8 * READ_AT_ONCE), list[str]()

    def load(names: Sequence[str]) -> Sequence[Report]:
        loaded.extend(names)
        return grown.read(names)

    watched = replace(grown, read=load)
    assert (
        len(weightiest(watched, dict.fromkeys(grown.ratings, 0.5), small, REACH).reports)
        == REACH.tokens // 100
    )
    assert len(loaded) == READ_AT_ONCE
    found = await descend(watched, {"r7": 0.3, "u7": 0.5, "r9": 0.4}, small, REACH)
    assert [one.community for one in found.reports][:2] == ["u7", "r9"]
    assert len(loaded) == READ_AT_ONCE + len(found.reports)


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
    chosen = [
        asyncio.run(descend(grown, scores, small, REACH)),
        weightiest(grown, scores, small, REACH),
    ]
    chosen += [
        asyncio.run(
            descend(
                grown, scores, small, REACH, rating({name: 1 - scores[name] for name in scores})
            )
        )
    ]
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


def test_portions_hold_all_within_their_size_and_number() -> None:
    sizes = [700] * 7 + [6_000]
    batches = portions(sizes, 3_000)
    assert [place for batch in batches for place in batch] == list(range(8))
    assert [len(batch) for batch in batches] == [4, 3, 1]
    assert [len(batch) for batch in portions(sizes, 3_000, items=2)] == [2, 2, 2, 1, 1]


def point(text: str, score: int, source: str = "d", report: str = "r") -> Point:
    return Point(text, score, (score,), report, source)


def test_points_are_filled_in_by_how_much_they_help() -> None:
    points = [
        point("salt in wells", 90),
        point("nothing", 0),
        point("rust on ships", 50, "e"),
        point("the cat", 10),
    ]
    assert [one.text for one in spread(points, 1_000, lambda one: 10)] == [
        "salt in wells",
        "rust on ships",
    ]
    assert [one.text for one in spread(points, 15, lambda one: 10)] == ["salt in wells"]


def test_points_that_repeat_one_another_are_taken_once() -> None:
    points = [
        point("salt harms the old wells", 90),
        point("the old wells: salt harms", 80, "e"),
        point("rust", 70),
    ]
    assert [one.score for one in spread(points, 1_000, lambda one: 1)] == [90, 70]


def test_sources_that_have_said_less_come_first_among_alike() -> None:
    words = "salt rust wind ice fog snow rain heat".split()
    points = [point(word, 80, "a") for word in words] + [
        point("dust", 70, "b"),
        point("mud", 60, "c"),
    ]
    assert {one.source for one in spread(points, 1_000, lambda one: 1)[:3]} == {"a", "b", "c"}
    many = [point(f"{word}{number}", 80, f"d{number}") for number in range(9) for word in words[:3]]
    assert len(spread(many, 10_000, lambda one: 1)) == MOST_POINTS


def test_points_stand_under_the_source_that_says_them() -> None:
    points = [
        point("Floods.", 90, "Harbour"),
        point("Sinks.", 89, "Ferry"),
        point("Closes.", 88, "Harbour"),
    ]
    assert [(one.text, one.findings) for one in by_source(points)] == [
        ("Harbour:\nFloods.", (90,)),
        ("Closes.", (88,)),
        ("Ferry:\nSinks.", (89,)),
    ]
    assert [one.text for one in by_source(points[:1])] == ["Floods."], "one source needs no heading"


def test_follow_ups_are_taken_best_first_once_and_not_for_ever() -> None:
    agenda = Agenda(*LOOK_UPS["medium"])
    agenda.add(
        [
            FollowUp(question="b", score=50),
            FollowUp(question="a", score=90),
            FollowUp(question="A ", score=95),
        ],
        0,
    )
    assert agenda.next() == ("a", 1)
    agenda.add([FollowUp(question="c", score=80)], 1)
    assert [agenda.next(), agenda.next(), agenda.next()] == [("c", 2), ("b", 1), None]
    agenda.add([FollowUp(question="d", score=100)], 2)
    assert agenda.next() is None


QUESTION = "What harm does salt do to wells?"
TOPIC = gist_of(QUESTION)
PIECES = (
    piece(0, "Salt has reached the wells of the brewery this year."),
    piece(1, "Wind kept the ferries in the harbour for nine days.", "Ships"),
)
OFFERED = Offered("Water", "", [(one.text, one) for one in PIECES])
POINTS: list[dict[str, object]] = [
    {
        "text": "Brine spoils the brewer's supply; the damage began this year.",
        "findings": [0],
        "score": 95,
    },
    {"text": "盐分会使井水无法饮用。", "findings": [0, 1], "score": 80},
    {"text": "Storms may carry spray inland.", "findings": [], "score": 40},
]


def offered(many: int = 1) -> ReportTexts:
    return ReportTexts({f"com_{number}": OFFERED for number in range(many)}, PIECES)


async def test_points_in_other_words_or_without_numbers_are_taken_whole() -> None:
    found = await partial_answers(offered(), "seed", TOPIC, scripted(Partial, {"points": POINTS}))
    assert [(one.text, list(one.findings), one.score) for one in found] == [
        (one["text"], one["findings"], one["score"]) for one in POINTS
    ]


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ([{"text": "Salt.", "findings": [0, 0, 7], "score": 90}], [("Salt.", (0,))]),
        ([{"text": "Salt.", "findings": [99], "score": 90}], [("Salt.", ())]),
        ([{"text": "No help.", "findings": [0], "score": 0}], []),
        ([], []),
    ],
)
async def test_numbers_that_no_statement_has_are_left_out_and_what_helps_not_too(
    written: list[dict[str, object]], kept: list[tuple[str, tuple[int, ...]]]
) -> None:
    found = await partial_answers(offered(), "seed", TOPIC, scripted(Partial, {"points": written}))
    assert [(one.text, one.findings) for one in found] == kept


async def test_exploring_takes_points_and_the_best_follow_ups() -> None:
    asked = [
        {"question": f"What of well {score}?", "score": score}
        for score in (0, 30, 90, 60, 10, 50, 70)
    ]
    made = scripted(Explore, {"reasoning": "much is open", "points": POINTS, "follow_ups": asked})
    points, follow_ups = await explore("the brewery", [("Water", OFFERED)], TOPIC, made)
    assert [one.text for one in points] == [one["text"] for one in POINTS]
    assert [one.score for one in follow_ups] == [90, 70, 60, 50, 30][:MOST_FOLLOW_UPS]
    assert "the brewery" in sent(made)[0]


@pytest.mark.parametrize(
    ("effort", "most", "depth"), [("low", 2, 1), ("medium", 5, 2), ("high", 10, 3)]
)
def test_look_ups_are_bounded_by_effort(effort: Effort, most: int, depth: int) -> None:
    agenda = Agenda(*LOOK_UPS[effort])
    agenda.add([FollowUp(question="too deep?", score=90)], depth)
    assert agenda.next() is None
    agenda.add([FollowUp(question=f"{number}?", score=90) for number in range(20)], depth - 1)
    assert sum(agenda.next() is not None for _ in range(20)) == most


SALTY, WINDY = (
    piece(0, "Salt has reached the wells."),
    piece(1, "Wind kept the ferries in the harbour.", "Ships"),
)


async def test_a_report_without_a_rating_is_asked_for_again() -> None:
    rater = scripted(Rate, *[{"ratings": [{"report": 0, "rating": 3}]}] * 2)
    assert await rater.run([SALTY, WINDY], TOPIC) == [0.3, None]
    assert "no rating for the reports 1" in sent(rater)[-1]


async def test_what_was_rated_counts_and_the_rest_is_unrated() -> None:
    rated = {"ratings": [{"report": 1, "rating": 10}]}
    rater = scripted(Rate, rated, rated)
    reports = [report(name, summary=f"{name} is a wharf.") for name in ("a", "b", "c")]
    assert await rate_reports(reports, {}, TOPIC, rater) == [None, 1.0, None]
    (row,) = rater.models.meter.degraded()
    assert (row.step, row.reason) == ("rate", "2 of 3 reports have no rating")


async def test_unusable_ratings_leave_all_reports_unrated() -> None:
    rater = scripted(Rate, *["nothing of the form"] * 2)
    assert await rate_reports([report("a", summary="A wharf.")], {}, TOPIC, rater) == [None]
    assert [row.step for row in rater.models.meter.degraded()] == ["rate"]


async def test_unrated_reports_are_read_after_the_rated_by_the_search() -> None:
    grown = tree(dict.fromkeys(("near", "far", "best", "bad")))
    given = {"best": 0.9, "bad": 0.1}
    estimates = {"near": 0.8, "far": 0.2, "best": 0.1, "bad": 0.9}

    async def rate(reports: Sequence[Report]) -> list[float | None]:
        return [given.get(one.community) for one in reports]

    found = await descend(grown, estimates, small, REACH, rate)
    assert [one.community for one in found.reports] == ["best", "near", "far"]
    assert found.ratings == given


@pytest.mark.parametrize("effort", ["low", "medium", "high"])
async def test_calls_hold_as_much_as_the_limit_says(effort: Effort) -> None:
    many = [
        report(f"r{number}", summary="Salt is in the wells of the town. " * 20)
        for number in range(150)
    ]
    estimates = dict.fromkeys((one.community for one in many), 0.0)
    ratings = {"ratings": [{"report": number, "rating": 5} for number in range(150)]}
    made = scripted(Rate, *[ratings] * 20, effort=effort)
    assert await rate_reports(many, estimates, TOPIC, made) == [0.5] * 150
    assert all(len(asked) < 5 * LIMITS[effort].rate for asked in sent(made))
    texts = [
        (f"r{n}", Offered("Wells", "", [("Salt is in the wells. " * 40, piece(n, "Salt."))]))
        for n in range(90)
    ]
    explorer = scripted(Explore, {"points": [], "follow_ups": []}, effort=effort)
    await explore("the wells", texts, TOPIC, explorer)
    assert 3 * LIMITS[effort].map < len(sent(explorer)[0]) < 5 * LIMITS[effort].map
    shown = {one: len(opening_of(many[0], LIMITS[one])) for one in LIMITS}
    assert shown["low"] < shown["medium"] < shown["high"]
