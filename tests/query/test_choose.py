"""The choice of the mode: a model's side stands; calls are spared where the wording or the triples tell."""

import pytest

from prompts.choose import Choose
from prompts.engine.effort import Effort
from prompts.offline.route import scope_offline
from prompts.text.question import parse_question
from tasks.choose import Sizes, Walk, choose
from tests.query.steps import golden, rendered, scripted, sent, spared

SIZES = Sizes(chunks=400, chunk_tokens=100, reports=40, report_tokens=300, depth=12, documents=30, reported=30)
WHOLE = "What themes do the guests raise most often across these interviews?"
PART = "When was the Orla Bridge opened?"
UNCLEAR = "What do people in Velin think of the quay?"


def said(about: str) -> dict[str, object]:
    return {"reason": "many speak", "about": about, "confidence": 0.55}


def test_one_question_is_in_doubt_and_two_are_not() -> None:
    assert [scope_offline(parse_question(one)).plain for one in (WHOLE, PART, UNCLEAR)] == [True, True, False]


@pytest.mark.parametrize("question", [WHOLE, PART, UNCLEAR])
@pytest.mark.parametrize(("about", "mode"), [("whole", "global"), ("part", "struct")])
async def test_the_side_that_a_model_takes_stands(question: str, about: str, mode: str) -> None:
    made = scripted(Choose, said(about), effort="high")
    choice = await choose(parse_question(question), ("A diary",), None, SIZES, made)
    assert (choice.order[0], choice.decision.confidence) == (mode, 0.55)
    assert choice.decision.reason.endswith("many speak")


@pytest.mark.parametrize(("question", "asked"), [(WHOLE, {"high"}), (PART, {"high"}), (UNCLEAR, {"medium", "high"})])
@pytest.mark.parametrize("effort", ["low", "medium", "high"])
async def test_a_model_is_asked_by_effort(question: str, asked: set[str], effort: Effort) -> None:
    made = scripted(Choose, said("whole"), effort=effort)
    await choose(parse_question(question), (), None, SIZES, made)
    assert (len(sent(made)), "choose" in spared(made)) == (effort in asked, effort not in asked)


@pytest.mark.parametrize(
    ("effort", "about", "calls", "mode"),
    [("low", "part", 0, "traverse"), ("medium", "part", 0, "traverse"), ("high", "part", 1, "traverse"),
     ("high", "whole", 1, "global")],
)  # fmt: skip
async def test_a_walk_that_answers_spares_the_call_except_at_high_effort(
    effort: Effort, about: str, calls: int, mode: str
) -> None:
    made = scripted(Choose, said(about), effort=effort)
    choice = await choose(parse_question(UNCLEAR), (), Walk(answers=True, told="1 hop"), SIZES, made)
    assert (len(sent(made)), choice.order[0]) == (calls, mode)


def test_the_prompt_reads_like_the_golden_one() -> None:
    inputs = {"question": "Which bridges trouble people?", "documents": ["Orla Bridge", "Tomas Reyd"]}
    assert rendered(Choose, inputs) == golden(Choose)
