"""Reports for a question about everything: which are read, how they are rated, and their points."""

import asyncio
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prompts.engine.effort import LIMITS, Effort
from prompts.engine.messages import portions
from prompts.read_reports import MOST_FOLLOW_UPS, Explore, FollowUp, Offered, Partial, Rate
from storage.graph_records import Community, Report
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
    Reach,
    ReportRater,
    ReportTree,
    SelectedReports,
    at_level,
    descend,
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
    """The tree of these names; those that begin with "-" are communities without a report."""
    levels: dict[str, int] = {}
    for name, above in parents.items():
        levels[name] = 0 if above is None else levels[above] + 1
    communities = [
        Community(
            id=name.strip("-"), level=levels[name], parent=above and above.strip("-"), members=()
        )
        for name, above in parents.items()
    ]
    reports = {name: report(name, levels[name]) for name in parents if not name.startswith("-")}
    return tree_of(
        communities,
        {name: own.rating for name, own in reports.items()},
        lambda names: [reports[name] for name in names],
    )


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
REACH = Reach(roots=40, below=24, tokens=3_600)


def wide(many: int) -> ReportTree:
    """Roots with one report below each."""
    grown: dict[str, str | None] = {f"r{number}": None for number in range(many)}
    return tree(grown | {f"u{number}": f"r{number}" for number in range(many)})


def small(_report: Report) -> int:
    return 100


def names(selected: SelectedReports) -> list[str]:
    return [one.community for one in selected.reports]


def rating(scores: Mapping[str, float], seen: list[str] | None = None) -> ReportRater:
    async def rate(reports: Sequence[Report]) -> list[float | None]:
        if seen is not None:
            seen.extend(one.community for one in reports)
        return [scores.get(one.community, 0.0) for one in reports]

    return rate


@pytest.mark.parametrize(
    ("level", "read"),
    [(0, ["a", "b", "c1"]), (1, ["a1", "a2", "b11", "c1"]), (2, ["a11", "a2", "b11", "c1"])],
)
def test_a_level_has_the_reports_of_branches_that_end_above_it(level: int, read: list[str]) -> None:
    assert sorted(names(at_level(tree(FAMILY), level))) == read


async def test_a_branch_is_followed_where_it_becomes_more_relevant() -> None:
    scores = {"a": 0.5, "b": 0.9, "c1": 0.6, "a1": 0.7, "a2": 0.1, "a11": 0.2, "b11": 0.3}
    grown = tree(FAMILY)
    for found in (
        await descend(grown, scores, small, REACH),
        await descend(grown, {}, small, REACH, rating(scores)),
    ):
        assert names(found) == ["b", "a1", "c1"], "the best first"
        assert found.pruned == 0
    assert sorted(names(await descend(grown, {}, small, REACH))) == ["a", "b", "c1"]


async def test_a_model_is_asked_about_the_likeliest_alone() -> None:
    grown = wide(4 * REACH.roots)
    seen: list[str] = []
    likely = {f"u{number}": 0.9 for number in range(90, 100)} | {"r3": 0.8}
    rate = rating({"r95": 0.9, "u95": 0.95}, seen)
    found = await descend(grown, likely, small, REACH, rate)
    assert names(found) == ["u95"], "what lies below makes a root likely"
    assert len([name for name in seen if name.startswith("r")]) == REACH.roots
    assert {"r3", *(f"r{number}" for number in range(90, 100))} <= set(seen)
    assert found.pruned == 8 * REACH.roots - len(seen)


@pytest.mark.parametrize(
    ("tokens", "read"), [(100, REACH.tokens // 100), (REACH.tokens // 2, 2), (2 * REACH.tokens, 1)]
)
async def test_as_much_is_read_as_fits_but_at_least_one(tokens: int, read: int) -> None:
    grown = wide(3 * REACH.tokens // 100)
    estimates = dict.fromkeys(grown.ratings, 0.5)
    assert len(weightiest(grown, estimates, lambda _: tokens, REACH).reports) == read
    assert len((await descend(grown, estimates, lambda _: tokens, REACH)).reports) == read


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_no_branch_is_read_twice(data: st.DataObject) -> None:
    parents: dict[str, str | None] = {}
    for number in range(data.draw(st.integers(1, 14))):
        parents[f"n{number}"] = data.draw(st.sampled_from([None, *parents]))
    scores = {name: data.draw(st.floats(0, 1)) for name in parents}
    grown, rate = tree(parents), rating({name: 1 - scores[name] for name in scores})
    chosen = [
        asyncio.run(descend(grown, scores, small, REACH)),
        asyncio.run(descend(grown, scores, small, REACH, rate)),
        weightiest(grown, scores, small, REACH),
        *(at_level(grown, level) for level in range(4)),
    ]
    for selected in chosen:
        read = set(names(selected))
        assert read
        for name in read:
            above = parents[name]
            while above is not None:
                assert above not in read
                above = parents[above]


def test_the_order_is_mixed_and_the_same_for_the_same_question() -> None:
    order = shuffled(range(50), "Who?")
    assert order == shuffled(range(50), "Who?")
    assert order not in (list(range(50)), shuffled(range(50), "When?"))
    assert sorted(order) == list(range(50))


def test_portions_hold_all_within_their_size_and_number() -> None:
    sizes = [700] * 7 + [6_000]
    assert portions(range(8), sizes, 3_000) == [[0, 1, 2, 3], [4, 5, 6], [7]]
    assert portions(range(8), sizes, 3_000, number=2) == [[0, 1], [2, 3], [4, 5], [6], [7]]


# --- points ---------------------------------------------------------------------------------------


def point(text: str, score: int, source: str = "d") -> Point:
    return Point(text, score, (score,), "r", source)


@pytest.mark.parametrize(
    ("points", "tokens", "chosen"),
    [
        # What helps little is left out.
        (
            [
                point("salt in wells", 90),
                point("nothing", 0),
                point("rust on ships", 50, "e"),
                point("the cat", 10),
            ],
            1_000,
            ["salt in wells", "rust on ships"],
        ),
        # So is what has no room.
        ([point("salt in wells", 90), point("rust on ships", 50, "e")], 15, ["salt in wells"]),
        # So is what repeats another point.
        (
            [
                point("salt harms the old wells", 90),
                point("the old wells: salt harms", 80, "e"),
                point("rust", 70),
            ],
            1_000,
            ["salt harms the old wells", "rust"],
        ),
    ],
)
def test_points_are_filled_in_by_how_much_they_help(
    points: list[Point], tokens: int, chosen: list[str]
) -> None:
    assert [one.text for one in spread(points, tokens, lambda _: 10)] == chosen


def test_sources_that_have_said_less_come_first_among_alike() -> None:
    words = "salt rust wind ice fog snow rain heat".split()
    points = [point(word, 80, "a") for word in words]
    points += [point("dust", 70, "b"), point("mud", 60, "c")]
    assert {one.source for one in spread(points, 1_000, lambda _: 1)[:3]} == {"a", "b", "c"}
    many = [point(f"{word}{number}", 80, f"d{number}") for number in range(9) for word in words[:3]]
    assert len(spread(many, 10_000, lambda _: 1)) == MOST_POINTS


def test_points_stand_under_the_source_that_says_them() -> None:
    points = [
        point("Floods.", 90, "Harbour"),
        point("Sinks.", 89, "Ferry"),
        point("Closes.", 88, "Harbour"),
    ]
    assert [one.text for one in by_source(points)] == [
        "Harbour:\nFloods.",
        "Closes.",
        "Ferry:\nSinks.",
    ]
    assert [one.text for one in by_source(points[:1])] == ["Floods."], "one source needs no heading"


def follow_up(question: str, score: int) -> FollowUp:
    return FollowUp(question=question, score=score)


def test_follow_ups_are_taken_best_first_and_once() -> None:
    agenda = Agenda(*LOOK_UPS["medium"])
    agenda.add([follow_up("b", 50), follow_up("a", 90), follow_up("A ", 95)], 0)
    assert agenda.next() == ("a", 1)
    agenda.add([follow_up("c", 80)], 1)
    assert [agenda.next(), agenda.next(), agenda.next()] == [("c", 2), ("b", 1), None]


@pytest.mark.parametrize(
    ("effort", "most", "depth"), [("low", 2, 1), ("medium", 5, 2), ("high", 10, 3)]
)
def test_look_ups_are_bounded_by_effort(effort: Effort, most: int, depth: int) -> None:
    agenda = Agenda(*LOOK_UPS[effort])
    agenda.add([follow_up("too deep?", 90)], depth)
    assert agenda.next() is None
    agenda.add([follow_up(f"{number}?", 90) for number in range(20)], depth - 1)
    assert sum(agenda.next() is not None for _ in range(20)) == most


TOPIC = gist_of("What harm does salt do to wells?")
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


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        # Points in other words, or without numbers, are taken whole.
        (POINTS, [(one["text"], one["findings"]) for one in POINTS]),
        ([{"text": "Salt.", "findings": [0, 0, 7], "score": 90}], [("Salt.", [0])]),
        ([{"text": "Salt.", "findings": [99], "score": 90}], [("Salt.", [])]),
        ([{"text": "No help.", "findings": [0], "score": 0}], []),
        ([{"text": "Salt.", "findings": [n], "score": 90} for n in (0, 1, 0)], [("Salt.", [0])]),
        ([], []),
    ],
)
async def test_numbers_that_no_statement_has_are_left_out_and_what_helps_not_too(
    written: list[dict[str, object]], kept: list[tuple[str, list[int]]]
) -> None:
    texts = ReportTexts({"com_0": OFFERED}, PIECES)
    found = await partial_answers(texts, "seed", TOPIC, scripted(Partial, {"points": written}))
    assert [(one.text, list(one.findings)) for one in found] == kept


async def test_exploring_takes_points_and_the_best_follow_ups() -> None:
    asked = [
        {"question": f"What of well {score}?", "score": score}
        for score in (0, 30, 90, 60, 10, 50, 70)
    ]
    made = scripted(Explore, {"points": POINTS, "follow_ups": asked})
    points, follow_ups = await explore("the brewery", [("Water", OFFERED)], TOPIC, made)
    assert [one.text for one in points] == [one["text"] for one in POINTS]
    assert [one.score for one in follow_ups] == [90, 70, 60, 50, 30][:MOST_FOLLOW_UPS]
    assert "the brewery" in sent(made)[0]


# --- ratings --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "ratings", "told"),
    [
        (
            {"ratings": [{"report": 1, "rating": 10}]},
            [None, 1.0, None],
            "2 of 3 reports have no rating",
        ),
        ("nothing of the form", [None, None, None], ""),
    ],
)
async def test_what_a_model_leaves_out_is_unrated_and_told(
    answer: object, ratings: list[float | None], told: str
) -> None:
    rater = scripted(Rate, *[answer] * 2)
    reports = [report(name, summary=f"{name} is a wharf.") for name in ("a", "b", "c")]
    assert await rate_reports(reports, {}, TOPIC, rater) == ratings
    (row,) = rater.models.meter.degraded()
    assert row.step == "rate"
    assert told in row.reason


async def test_a_report_without_a_rating_is_asked_for_again() -> None:
    rater = scripted(Rate, *[{"ratings": [{"report": 0, "rating": 3}]}] * 2)
    assert await rater.run(PIECES, TOPIC) == [0.3, None]
    assert "no rating for the reports 1" in sent(rater)[-1]


async def test_unrated_reports_are_read_after_the_rated_ones() -> None:
    given = {"best": 0.9, "bad": 0.1}
    estimates = {"near": 0.8, "far": 0.2, "best": 0.1, "bad": 0.9}

    async def rate(reports: Sequence[Report]) -> list[float | None]:
        return [given.get(one.community) for one in reports]

    found = await descend(tree(dict.fromkeys(estimates)), estimates, small, REACH, rate)
    assert names(found) == ["best", "near", "far"]
    assert found.ratings == given


@pytest.mark.parametrize("effort", ["low", "medium", "high"])
async def test_calls_hold_as_much_as_the_limit_says(effort: Effort) -> None:
    many = [
        report(f"r{number}", summary="Salt is in the wells of the town. " * 20)
        for number in range(150)
    ]
    ratings = {"ratings": [{"report": number, "rating": 5} for number in range(150)]}
    made = scripted(Rate, *[ratings] * 20, effort=effort)
    assert await rate_reports(many, {}, TOPIC, made) == [0.5] * 150
    assert all(len(asked) < 5 * LIMITS[effort].rate for asked in sent(made))
    texts = [
        (f"r{n}", Offered("Wells", "", [("Salt is in the wells. " * 40, piece(n, "Salt."))]))
        for n in range(90)
    ]
    explorer = scripted(Explore, {"points": [], "follow_ups": []}, effort=effort)
    await explore("the wells", texts, TOPIC, explorer)
    assert 3 * LIMITS[effort].map < len(sent(explorer)[0]) < 5 * LIMITS[effort].map
