"""Routing: a model's structure stands whatever its margin; calls are spared for plain single facts."""

import pytest

from prompts.engine.effort import Effort
from prompts.engine.errors import AnswerMalformed
from prompts.route import Route
from prompts.text.question import parse_question
from storage.answer_records import RouteDecision
from tasks.route import choose_structure
from tests.query.steps import golden, rendered, scripted, sent, spared

PLAIN = "Who designed the Orla Bridge?"
CHAIN = "Who taught the designer of the Orla Bridge?"
HOW_TO = "How do I bleed the radiators of an old house?"


def said(structure: str, margin: float) -> dict[str, object]:
    return {"reason": "so it seems", "structure": structure, "confidence": 0.6, "margin": margin}


@pytest.mark.parametrize("question", [CHAIN, HOW_TO, "四座灯塔中哪一座最矮？"])
@pytest.mark.parametrize(("structure", "margin"), [("catalogue", 0.0), ("table", 0.05), ("chunk", 1.0)])
async def test_a_model_s_structure_is_taken_whatever_its_margin(question: str, structure: str, margin: float) -> None:
    found = await choose_structure(
        parse_question(question), ["Letters"], False, scripted(Route, said(structure, margin)), None
    )
    assert (found.type, found.margin, found.reason) == (structure, margin, "so it seems")


@pytest.mark.parametrize(
    ("question", "asked"), [(PLAIN, {"high"}), (CHAIN, {"medium", "high"}), (HOW_TO, {"medium", "high"})]
)
@pytest.mark.parametrize("effort", ["low", "medium", "high"])
async def test_a_model_is_asked_by_effort(question: str, asked: set[str], effort: Effort) -> None:
    made = scripted(Route, said("catalogue", 0.3), effort=effort)
    found = await choose_structure(parse_question(question), [], False, made, None)
    assert (len(sent(made)), "route" in spared(made)) == (effort in asked, effort not in asked)
    assert found.type == ("catalogue" if effort in asked else "chunk")


async def test_the_question_and_as_many_titles_as_fit_are_shown() -> None:
    made = scripted(Route, said("graph", 0.5))
    await choose_structure(parse_question(CHAIN), ["Orla Bridge", *["Velin gazette " * 40] * 500], False, made, None)
    (asked,) = sent(made)
    assert CHAIN in asked
    assert "Orla Bridge" in asked
    assert len(asked) < 20_000


async def test_a_structure_that_the_caller_asks_for_is_taken() -> None:
    made = scripted(Route)
    found = await choose_structure(parse_question(CHAIN), [], False, made, "table")
    assert found == RouteDecision(type="table", confidence=1.0, margin=1.0, reason="asked for by the caller")
    assert sent(made) == []


@pytest.mark.parametrize("answer", [said("mind map", 0.2), said("table", 7), {"structure": "table"}])
async def test_an_answer_out_of_form_is_refused(answer: dict[str, object]) -> None:
    with pytest.raises(AnswerMalformed, match="route"):
        await scripted(Route, answer, answer).run(parse_question(CHAIN), 2, [], tabular=False)


def test_the_prompt_reads_like_the_golden_one() -> None:
    inputs = {"question": PLAIN, "core_content": ["Orla Bridge", "Tomas Reyd"]}
    assert rendered(Route, inputs) == golden(Route)
