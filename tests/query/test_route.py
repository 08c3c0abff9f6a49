"""Routing: a model's structure and mode are taken; calls are spared if the wording decides."""

import json

import pytest

from benchmarks.router import RoutedQuestion
from benchmarks.runner import DATA
from prompts.choose import Choose, ChooseWithFacts
from prompts.engine.effort import Effort
from prompts.engine.errors import AnswerMalformed
from prompts.engine.models import Models
from prompts.offline.route import STRUCTURES, LabelVerdict, ranked
from prompts.route import Route
from prompts.structures import StructureName
from prompts.text.evidence import Evidence
from prompts.text.question import parse_question
from storage.answer_records import Mode, ModeDecision, RouteDecision, StructureType
from storage.graph import ReportSizes
from tasks.route import choose, choose_structure, core_content, whole_mode
from tests.query.steps import scripted, sent, spared

EFFORTS: tuple[Effort, ...] = ("low", "medium", "high")
PLAIN = "Who designed the Orla Bridge?"
CHAIN = "Who taught the designer of the Orla Bridge?"
HOW_TO = "How do I bleed the radiators of an old house?"


def said(structure: str, margin: float) -> dict[str, object]:
    return {"reason": "so it seems", "structure": structure, "confidence": 0.6, "margin": margin}


async def routed(
    question: str, router: Route, core: tuple[str, ...] = (), forced: StructureType | None = None
) -> RouteDecision:
    return await choose_structure(parse_question(question), core, False, router, forced)


@pytest.mark.parametrize(
    ("question", "structure", "margin"),
    [(CHAIN, "catalogue", 0.0), (HOW_TO, "table", 0.05), ("四座灯塔中哪一座最矮？", "chunk", 1.0)],
)
async def test_a_models_structure_is_taken_whatever_its_margin(
    question: str, structure: str, margin: float
) -> None:
    found = await routed(question, scripted(Route, said(structure, margin)))
    assert (found.type, found.margin, found.reason) == (structure, margin, "so it seems")


@pytest.mark.parametrize(("question", "asked"), [(PLAIN, {"high"}), (CHAIN, {"medium", "high"})])
@pytest.mark.parametrize("effort", EFFORTS)
async def test_a_model_is_asked_by_effort(question: str, asked: set[str], effort: Effort) -> None:
    made = scripted(Route, said("catalogue", 0.3), effort=effort)
    found = await routed(question, made)
    assert (len(sent(made)), "route" in spared(made)) == (effort in asked, effort not in asked)
    assert found.type == ("catalogue" if effort in asked else "chunk")


async def test_the_question_and_as_many_titles_as_fit_are_shown() -> None:
    made = scripted(Route, said("graph", 0.5))
    await routed(CHAIN, made, ("Orla Bridge", *["Velin gazette " * 40] * 500))
    (asked,) = sent(made)
    assert CHAIN in asked
    assert "Orla Bridge" in asked.replace(CHAIN, "")
    assert len(asked) < 20_000


async def test_a_structure_that_the_caller_asks_for_is_taken() -> None:
    made = scripted(Route)
    assert (await routed(CHAIN, made, forced="table")).type == "table"
    assert sent(made) == []


@pytest.mark.parametrize(
    "answer", [said("mind map", 0.2), said("table", 7), {"structure": "table"}]
)
async def test_an_answer_out_of_form_is_refused(answer: dict[str, object]) -> None:
    with pytest.raises(AnswerMalformed, match="route"):
        await scripted(Route, answer, answer).run(parse_question(CHAIN), [], tabular=False)


QUESTIONS: tuple[tuple[StructureName, str], ...] = (
    ("table", "Which of the four lighthouses has the lowest tower?"),
    ("graph", "What is the connection between the clockmaker and the bishop?"),
    ("algorithm", "How do I bleed the radiators of an old house?"),
    ("catalogue", "Summarise the three sermons on thrift."),
    ("chunk", "When was the Orla Bridge opened?"),
    ("table", "四座灯塔中哪一座最矮？"),
    ("graph", "钟表匠和主教之间有什么关系？"),
    ("algorithm", "老房子的暖气片怎么排气？"),
    ("catalogue", "总结这三篇关于节俭的布道词。"),
    ("chunk", "奥拉桥是哪一年通车的？"),
)
DEVELOPMENT = ("router_dev.jsonl", "router_dev_more.jsonl")


def by_wording(question: str, *, tabular: bool = False) -> list[LabelVerdict]:
    return ranked(parse_question(question), tabular)


@pytest.mark.parametrize(
    ("structure", "question"), [*QUESTIONS, (None, ""), (None, "Zwxq"), (None, "？")]
)
def test_each_kind_of_task_gets_its_structure(
    structure: StructureName | None, question: str
) -> None:
    found = by_wording(question)
    assert structure in {None, found[0].label}
    assert {one.label for one in found} == set(STRUCTURES)
    shares = [one.probability for one in found]
    assert sum(shares) == pytest.approx(1.0)
    assert shares == sorted(shares, reverse=True)


def test_rows_among_the_passages_speak_for_a_table() -> None:
    bridges = "Which bridges are in Velin?"
    plain, rows = (
        {one.label: one.probability for one in by_wording(bridges, tabular=tabular)}
        for tabular in (False, True)
    )
    assert plain["table"] < rows["table"]


def test_core_content_is_titles_and_where_there_is_none_a_sentence() -> None:
    pieces = (
        Evidence(0, "a", "Pump manual", "The pump is red."),
        Evidence(1, "a", "Pump manual", "It is old."),
        Evidence(2, "b", "", "Nobody knows why."),
    )
    assert core_content(pieces) == ["Pump manual", "Nobody knows why."]
    assert core_content(()) == []


def test_fitted_questions_get_their_structures() -> None:
    lines = [
        line
        for name in DEVELOPMENT
        for line in (DATA / name).read_text(encoding="utf-8").splitlines()
    ]
    rows = [RoutedQuestion.model_validate(json.loads(line)) for line in lines]
    wrong = [row.question for row in rows if by_wording(row.question)[0].label != row.type]
    assert len(wrong) <= 0.05 * len(rows), wrong


# --- the mode -------------------------------------------------------------------------------------

SIZES = ReportSizes(reports=200, documents=900, reported=300)
WHOLE = "What themes do the guests raise most often across these interviews?"
PART = "When was the Orla Bridge opened?"
UNCLEAR = "What do people in Velin think of the quay?"


def sided(about: str) -> dict[str, object]:
    return {"reason": "many speak", "about": about, "confidence": 0.55}


async def chosen(
    question: str, chooser: Choose, walk: str | None = None, sizes: ReportSizes = SIZES
) -> ModeDecision:
    return await choose(parse_question(question), ("A diary",), walk, sizes, chooser)


@pytest.mark.parametrize("question", [WHOLE, PART])
@pytest.mark.parametrize(("about", "mode"), [("whole", "global"), ("part", "struct")])
async def test_the_side_that_a_model_takes_stands(question: str, about: str, mode: str) -> None:
    decision = await chosen(question, scripted(Choose, sided(about), effort="high"))
    assert (decision.mode, decision.confidence) == (mode, 0.55)
    assert decision.reason.endswith("many speak")


@pytest.mark.parametrize(
    ("question", "asked"), [(WHOLE, {"high"}), (PART, {"high"}), (UNCLEAR, {"medium", "high"})]
)
@pytest.mark.parametrize("effort", EFFORTS)
async def test_a_model_is_asked_for_the_mode_by_effort(
    question: str, asked: set[str], effort: Effort
) -> None:
    made = scripted(Choose, sided("whole"), effort=effort)
    await chosen(question, made)
    assert (len(sent(made)), "choose" in spared(made)) == (effort in asked, effort not in asked)


@pytest.mark.parametrize(
    ("effort", "about", "calls", "mode"),
    [
        ("low", "part", 0, "traverse"),
        ("medium", "part", 0, "traverse"),
        ("high", "part", 1, "traverse"),
        ("high", "whole", 1, "global"),
    ],
)
async def test_a_walk_that_answers_spares_the_call_below_high_effort(
    effort: Effort, about: str, calls: int, mode: str
) -> None:
    made = scripted(Choose, sided(about), effort=effort)
    decision = await chosen(UNCLEAR, made, walk="1 hop")
    assert (len(sent(made)), decision.mode) == (calls, mode)


def offline() -> Choose:
    return Choose(Models.offline())


@pytest.mark.parametrize(
    "question",
    [
        "What do the beekeepers complain about most often across these diaries?",
        "Are there any common misgivings among the ferrymen?",
        "这些日记中反复出现的主题是什么?",
        "这些来信总体上流露出怎样的情绪?",
    ],
)
async def test_a_question_about_the_whole_reads_the_reports(question: str) -> None:
    decision = await chosen(question, offline())
    assert decision.mode == "global"
    assert decision.reason.startswith("about the whole collection: ")
    assert decision.confidence >= 0.5
    bare = SIZES.model_copy(update={"reports": 0, "reported": 0})
    assert (await chosen(question, offline(), sizes=bare)).mode == "struct"


@pytest.mark.parametrize(
    "question",
    [
        "In which year did Marit Olsen take over the ferry?",
        "Where are Gila monsters found, in the country with the party that Sergio Tolento belongs"
        " to?",
        "新码头是哪一年建成的?",
        "怎样清洗喷烟器?",
    ],
)
async def test_a_question_about_a_part_is_searched(question: str) -> None:
    decision = await chosen(question, offline())
    assert decision.mode == "struct"
    assert decision.reason.startswith("about a part of the documents: ")


@pytest.mark.parametrize(
    ("documents", "reported", "mode"),
    [(900, 20, "global"), (900, 19, "drift"), (6, 5, "global"), (6, 4, "drift")],
)
def test_reports_that_cover_a_collection_are_read_alone(
    documents: int, reported: int, mode: Mode
) -> None:
    sizes = SIZES.model_copy(update={"documents": documents, "reported": reported})
    assert whole_mode(sizes) == mode


async def test_a_walk_that_answers_is_taken() -> None:
    taken = await chosen("Who is the wife of the teacher of Marit Olsen?", offline(), "2 hops")
    assert (taken.mode, taken.reason) == ("traverse", "the graph's triples answer it: 2 hops")


# --- typed facts ---

TYPES = ("length: number in m; of bridge", "designed by: from bridge to person")
COUNTED = "How many bridges did Tomas Reyd design?"


@pytest.mark.parametrize("question", [COUNTED, PART, "雷德设计了多少座桥？"])
@pytest.mark.parametrize("effort", ["medium", "high"])
@pytest.mark.parametrize(
    ("about", "mode"), [("facts", "facts"), ("part", "struct"), ("whole", "global")]
)
async def test_a_model_that_knows_the_types_chooses_facts(
    question: str, effort: Effort, about: str, mode: str
) -> None:
    chooser = scripted(ChooseWithFacts, sided(about), effort=effort, types=TYPES)
    decision = await chosen(question, chooser)
    assert decision.mode == mode
    (asked,) = sent(chooser)
    assert all(line in asked for line in TYPES)


@pytest.mark.parametrize(("about", "mode"), [("facts", "facts"), ("part", "traverse")])
async def test_facts_come_before_a_walk_only_by_the_model(about: str, mode: str) -> None:
    chooser = scripted(ChooseWithFacts, sided(about), types=TYPES)
    assert (await chosen(COUNTED, chooser, walk="1 hop")).mode == mode


@pytest.mark.parametrize("question", [COUNTED, WHOLE, PART, UNCLEAR])
async def test_without_a_model_types_change_nothing(question: str) -> None:
    typed = ChooseWithFacts(Models.offline(), TYPES)
    for walk in (None, "1 hop"):
        assert await chosen(question, typed, walk) == await chosen(question, offline(), walk)


async def test_what_is_plainly_about_the_whole_spares_the_call() -> None:
    chooser = scripted(ChooseWithFacts, types=TYPES)
    assert (await chosen(WHOLE, chooser)).mode == "global"
    assert (sent(chooser), list(spared(chooser))) == ([], ["choose"])
