"""Points of global and drift search: a model's are taken as it wrote them, with numbers or without."""

import pytest

from prompts.engine.effort import Effort, Policy
from prompts.partial import MOST_FOLLOW_UPS, Explore, FollowUp, Offered, Partial
from tasks.reports.points import LOOK_UPS, Agenda, ShownReports, explore, partial_answers
from tasks.sources import EvidencePlace, EvidencePool
from tests.query.steps import gist_of, golden, piece, rendered, scripted, sent

QUESTION = "What harm does salt do to wells?"
GIST = gist_of(QUESTION)
PIECES = (
    piece(0, "Salt has reached the wells of the brewery this year."),
    piece(1, "Wind kept the ferries in the harbour for nine days.", "Ships"),
)
PLACES = tuple(EvidencePlace(one.document, one.title, "c", 0, len(one.text)) for one in PIECES)
OFFERED = Offered("Water", "", [(one.text, one) for one in PIECES])
POINTS: list[dict[str, object]] = [
    {"text": "Brine spoils the brewer's supply; the damage began this year.", "findings": [0], "score": 95},
    {"text": "盐分会使井水无法饮用。", "findings": [0, 1], "score": 80},
    {"text": "Storms may carry spray inland.", "findings": [], "score": 40},
]


def shown(many: int = 1) -> ShownReports:
    return ShownReports({f"com_{number}": OFFERED for number in range(many)}, EvidencePool(PIECES, PLACES))


async def test_points_in_other_words_or_without_numbers_are_taken_whole() -> None:
    found = await partial_answers(shown(), "seed", GIST, scripted(Partial, {"points": POINTS}))
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
    found = await partial_answers(shown(), "seed", GIST, scripted(Partial, {"points": written}))
    assert [(one.text, one.findings) for one in found] == kept


async def test_more_points_reach_the_answer_with_more_effort() -> None:
    long = [{"text": f"{number} " + "salt water " * 90, "findings": [0], "score": 50} for number in range(60)]
    kept = {}
    for effort in LOOK_UPS:
        made = scripted(Partial, {"points": long}, effort=effort)
        kept[effort] = len(await partial_answers(shown(), "seed", GIST, made))
    assert kept["low"] < kept["medium"] < kept["high"]


async def test_exploring_takes_points_and_the_best_follow_ups() -> None:
    asked = [{"question": f"What of well {score}?", "score": score} for score in (0, 30, 90, 60, 10, 50, 70)]
    made = scripted(Explore, {"reasoning": "much is open", "points": POINTS, "follow_ups": asked})
    points, follow_ups = await explore("the brewery", [("Water", OFFERED)], GIST, made)
    assert [one.text for one in points] == [one["text"] for one in POINTS]
    assert [one.score for one in follow_ups] == [90, 70, 60, 50, 30][:MOST_FOLLOW_UPS]
    assert "the brewery" in sent(made)[0]


@pytest.mark.parametrize(("effort", "most", "depth"), [("low", 2, 1), ("medium", 5, 2), ("high", 10, 3)])
def test_look_ups_are_bounded_by_effort(effort: Effort, most: int, depth: int) -> None:
    agenda = Agenda(LOOK_UPS[Policy.of(effort).effort])
    for at in range(depth + 2):
        agenda.add([FollowUp(question=f"{at} {number}?", score=90) for number in range(20)], at)
    taken = []
    while (following := agenda.next()) is not None:
        taken.append(following)
    assert len(taken) == most
    deep = Agenda(LOOK_UPS[effort])
    deep.add([FollowUp(question="too deep?", score=90)], depth)
    assert deep.next() is None


@pytest.mark.parametrize("step", [Partial, Explore])
def test_a_prompt_reads_like_the_golden_one(step: type[Partial] | type[Explore]) -> None:
    inputs = {"question": QUESTION, "focus": "the brewery", "reports": [OFFERED.written()]}
    assert rendered(step, {name: inputs[name] for name in step.task.input_fields}) == golden(step)
