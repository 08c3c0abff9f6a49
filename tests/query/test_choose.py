"""The choice of the mode: a model's side stands; calls are spared where the wording or the triples tell."""

import pytest

from prompts.choose import Choose
from prompts.engine.effort import Effort
from prompts.engine.models import Models
from prompts.text.question import parse_question
from storage.answer_records import Mode
from storage.graph import ReportSizes
from tasks.choose import choose, whole_mode
from tests.query.steps import scripted, sent, spared

SIZES = ReportSizes(reports=200, documents=900, reported=300)
WHOLE = "What themes do the guests raise most often across these interviews?"
PART = "When was the Orla Bridge opened?"
UNCLEAR = "What do people in Velin think of the quay?"


def said(about: str) -> dict[str, object]:
    return {"reason": "many speak", "about": about, "confidence": 0.55}


@pytest.mark.parametrize("question", [WHOLE, PART, UNCLEAR])
@pytest.mark.parametrize(("about", "mode"), [("whole", "global"), ("part", "struct")])
async def test_the_side_that_a_model_takes_stands(question: str, about: str, mode: str) -> None:
    made = scripted(Choose, said(about), effort="high")
    decision = await choose(parse_question(question), ("A diary",), None, SIZES, made)
    assert (decision.mode, decision.confidence) == (mode, 0.55)
    assert decision.reason.endswith("many speak")


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
    decision = await choose(parse_question(UNCLEAR), (), "1 hop", SIZES, made)
    assert (len(sent(made)), decision.mode) == (calls, mode)


WHOLES = (
    "What do the beekeepers complain about most often across these diaries?",
    "Are there any common misgivings among the ferrymen?",
    "这些日记中反复出现的主题是什么?",
    "这些来信总体上流露出怎样的情绪?",
)
PARTS = (
    "In which year did Marit Olsen take over the ferry?",
    "Where are Gila monsters found, in the country with the party that Sergio Tolento belongs to?",
    "新码头是哪一年建成的?",
    "怎样清洗喷烟器?",
)


def offline() -> Choose:
    return Choose(Models.offline())


@pytest.mark.parametrize("question", WHOLES)
async def test_a_question_about_the_whole_reads_reports_and_falls_back_on_the_search(question: str) -> None:
    decision = await choose(parse_question(question), (), None, SIZES, offline())
    assert decision.mode == "global"
    assert decision.reason.startswith("about the whole collection: ")
    assert decision.confidence >= 0.5


@pytest.mark.parametrize("question", PARTS)
async def test_a_question_about_a_part_is_searched(question: str) -> None:
    decision = await choose(parse_question(question), (), None, SIZES, offline())
    assert decision.mode == "struct"
    assert decision.reason.startswith("about a part of the documents: ")


async def test_where_there_are_no_reports_everything_is_searched() -> None:
    bare = SIZES.model_copy(update={"reports": 0, "reported": 0})
    assert (await choose(parse_question(WHOLES[0]), (), None, bare, offline())).mode == "struct"


@pytest.mark.parametrize(
    ("documents", "reported", "mode"), [(900, 20, "global"), (900, 19, "drift"), (6, 5, "global"), (6, 4, "drift")]
)
def test_reports_are_read_alone_where_they_speak_for_the_collection(documents: int, reported: int, mode: Mode) -> None:
    assert whole_mode(SIZES.model_copy(update={"documents": documents, "reported": reported})) == mode


async def test_a_walk_that_answers_is_taken() -> None:
    question = parse_question("Who is the wife of the teacher of Marit Olsen?")
    taken = await choose(question, (), "2 hops", SIZES, offline())
    assert (taken.mode, taken.reason) == ("traverse", "the graph's triples answer it: 2 hops")
    assert (await choose(question, (), None, SIZES, offline())).mode == "struct"
