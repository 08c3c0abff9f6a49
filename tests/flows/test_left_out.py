"""Do the benchmarks that leave steps out ask as the product does, and is what they leave out gone?"""

from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks import router_effect, variants, variants_levels
from benchmarks.router_effect import Given, Line, report, right_types, routed, seeded
from benchmarks.variants_steps import Steps, stepwise
from flows.asking import AskOptions, answer_question
from flows.asking_view import View
from flows.by_levels import levels_of
from flows.runtime import open_runtime
from flows.session import Session, open_session
from flows.settings import load_settings
from prompts.engine.models import Models
from storage.records import Mode, StructureType
from tests.copying import copy_of

CHAIN = "Where was the designer of Orla Bridge born?"
SEARCH = AskOptions(mode="struct")
QUESTIONS = ("Who designed Orla Bridge?", CHAIN, "How is Ana Korb connected with Orla Bridge?", "奥拉桥有多长?")


def session(workspace: Path, memory: str = "off") -> Session:
    return open_session(open_runtime(load_settings({"workspace": workspace, "embedding": "none", "memory": memory})))


async def test_with_all_steps_the_answer_is_the_product_s(indexed: Path) -> None:
    with session(indexed) as opened:
        for question in QUESTIONS:
            whole = await answer_question(question, SEARCH, opened)
            found = (await stepwise(question, SEARCH, opened, Steps())).answer
            assert (found.answer, found.values, found.fallback) == (whole.answer, whole.values, whole.fallback)
            assert (found.citations, found.passages) == (whole.citations, whole.passages)
            assert (found.trace.route, found.trace.filter) == (whole.trace.route, whole.trace.filter)


async def test_what_is_left_out_is_gone(indexed: Path) -> None:
    with session(indexed) as opened:
        whole = await stepwise(QUESTIONS[3], SEARCH, opened, Steps())
        unfiltered = await stepwise(QUESTIONS[3], SEARCH, opened, Steps(filter=False))
        chained = await stepwise(CHAIN, SEARCH, opened, Steps())
        at_once = await stepwise(CHAIN, SEARCH, opened, Steps(utilizer=False))
    assert whole.answer.trace.filter.judged
    assert not unfiltered.answer.trace.filter.judged
    assert unfiltered.passages == len(unfiltered.answer.passages) > whole.passages
    assert len(chained.answer.trace.subquestions) == 2
    assert [part.question for part in at_once.answer.trace.subquestions] == [CHAIN]


async def test_memory_answers_the_second_time(indexed: Path, tmp_path: Path) -> None:
    copied = copy_of(indexed, tmp_path / "ws")
    (copied / "side.sqlite").unlink(missing_ok=True)  # other tests ask in that workspace, which remembers
    with session(copied, memory="on") as opened:
        found = [await stepwise(QUESTIONS[0], SEARCH, opened, Steps(memory=True)) for _ in range(2)]
    assert [one.recalled for one in found] == [False, True]
    assert found[1].answer.values == found[0].answer.values == ("Tomas Reyd",)


@pytest.mark.parametrize("mode", ["low", "high", "hybrid"])
async def test_the_filter_compares_the_passages_of_a_level_by_the_graph(mode: Mode, indexed: Path) -> None:
    with session(indexed) as opened:
        view = View(opened, AskOptions(mode=mode), CHAIN, opened.runtime.embedder)
        passages = (await levels_of(view, [CHAIN], Models.offline(), 8)).passages
        assert set(view.standing(passages).together) == {one.chunk for one in passages}


def given(right: tuple[StructureType, ...], **fixed: float) -> Given:
    scores: dict[StructureType, float] = {"table": 0, "graph": 0, "algorithm": 0, "catalogue": 0, "chunk": 0}
    for structure in scores:
        scores[structure] = fixed.get(structure, 0.0)
    return Given(kind="", right=right, chosen="table", ours=1.0, fixed=scores, at_once=0.0)


def test_routers_are_scored_by_what_their_types_answer() -> None:
    rows = [given((), table=1.0), given((), table=1.0, graph=1.0), given((), chunk=1.0)]
    right = right_types(rows)
    assert right == [("table",)] * 3, "the type that answers most of the kind"
    assert right_types([given(("graph", "chunk"), table=1.0)]) == [("graph", "chunk")], "the set knows better"
    assert routed("", rows, right, ["table", "chunk", "chunk"]) == Line("", 1 / 3, 2 / 3, {"": 2 / 3})
    lines = {line[2:24].strip(): line[24:].split() for line in report(rows)}
    assert lines["our router"] == ["1.000", "1.000"]
    assert lines["the right type"] == lines["table for all"] == ["1.000", "0.667"]
    assert lines["graph for all"] == ["0.000", "0.333"]
    assert lines["no utilizer"] == ["–", "0.000"]
    assert lines["some type is right"] == ["–", "1.000"]


def test_a_router_by_chance_stays_with_what_it_is_offered() -> None:
    rows = [given(("table",), table=1.0)] * 50
    never = seeded("", rows, [("table",)] * 50, [["graph", "chunk"]] * 50)
    assert (never.accuracy, never.score, never.spread) == (0.0, 0.0, (0.0, 0.0))
    random = seeded("", rows, [("table",)] * 50, [["table", "graph"]] * 50)
    assert random.accuracy == random.score
    assert random.spread is not None
    assert 0.2 < random.spread[0] < random.spread[1] < 0.8


@pytest.mark.parametrize("benchmark", [router_effect.main, variants.main, variants_levels.main])
def test_data_that_is_absent_is_told(
    benchmark: Callable[[list[str]], int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert benchmark(["--data", str(tmp_path), "--sets", "hotpot_train100"]) == 2
    assert "hotpot_train100_questions.jsonl.gz" in capsys.readouterr().err
