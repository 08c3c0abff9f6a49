"""Rating reports: a model's ratings choose what is read; words only choose what it rates where there are too many."""

from collections.abc import Sequence

import pytest

from prompts.engine.effort import LIMITS, Effort, Policy
from prompts.engine.errors import AnswerMalformed
from prompts.rate import Rate
from storage.graph_records import Community, Report
from tasks.reports.select import LEAST_READ, descend, opening_of, rate_reports, reach_of, tree_of
from tests.query.steps import gist_of, golden, piece, rendered, scripted, sent

QUESTION = "What harm does salt do to wells?"
GIST = gist_of(QUESTION)
SALT, WIND = piece(0, "Salt has reached the wells."), piece(1, "Wind kept the ferries in the harbour.", "Ships")


def report(name: str, summary: str = "") -> Report:
    return Report(
        community=name, level=0, title=name, summary=summary, rating=5, rating_reason="", findings=(), inputs=name
    )


async def test_ratings_come_in_order_whatever_the_words_say() -> None:
    answer = {"ratings": [{"report": 1, "reason": "wind drives spray", "rating": 9}, {"report": 0, "rating": 0}]}
    assert await scripted(Rate, answer).run([SALT, WIND], GIST) == [0.0, 0.9]


async def test_a_report_without_a_rating_is_asked_for_again() -> None:
    with pytest.raises(AnswerMalformed, match="reports 1"):
        await scripted(Rate, {"ratings": [{"report": 0, "rating": 3}]}).run([SALT, WIND], GIST)


async def test_what_a_model_rated_is_read_against_all_words() -> None:
    """The words speak for a, the model for c and d."""
    names = [*"abcdefgh"]
    tree = tree_of([Community(id=n, level=0, parent=None, members=()) for n in names], [report(n) for n in names])
    free = {name: 1.0 if name == "a" else 0.0 for name in names}

    async def rate(reports: Sequence[Report]) -> list[float]:
        return [{"c": 0.9, "d": 0.4}.get(one.community, 0.3) for one in reports]

    reach = reach_of(Policy())
    found = await descend(tree, free, lambda _: 10, reach, rate)
    assert [one.community for one in found.reports] == ["c", "d"]

    async def nothing(reports: Sequence[Report]) -> list[float]:
        return [0.0 for _ in reports]

    assert len((await descend(tree, free, lambda _: 10, reach, nothing)).reports) == LEAST_READ


@pytest.mark.parametrize("effort", ["low", "medium", "high"])
async def test_calls_hold_as_much_as_the_limit_says(effort: Effort) -> None:
    many = [report(f"r{number}", "Salt is in the wells of the town. " * 20) for number in range(150)]
    free = dict.fromkeys((one.community for one in many), 0.0)
    ratings = {"ratings": [{"report": number, "rating": 5} for number in range(150)]}
    made = scripted(Rate, *[ratings] * 20, effort=effort)
    assert await rate_reports(many, free, GIST, made) == [0.5] * 150
    assert all(len(asked) < 5 * LIMITS[effort].rate for asked in sent(made))
    shown = {one: len(opening_of(many[0], LIMITS[one])) for one in LIMITS}
    assert shown["low"] < shown["medium"] < shown["high"]


def test_more_is_looked_at_and_read_with_more_effort() -> None:
    reaches = [reach_of(Policy.of(effort)) for effort in LIMITS]
    assert reaches == sorted(reaches, key=lambda one: (one.roots, one.below, one.tokens))
    assert len({one.tokens for one in reaches}) == len(reaches)


def test_the_prompt_reads_like_the_golden_one() -> None:
    inputs = {"question": QUESTION, "reports": ["[0] Water, Brewery: Salt is in the wells.", "[1] Ships: Wind."]}
    assert rendered(Rate, inputs) == golden(Rate)
