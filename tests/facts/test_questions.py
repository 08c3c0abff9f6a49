"""Questions over the typed facts of the sample corpus, with a scripted planner."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flows.session import Session, open_session
from prompts.engine.effort import Policy
from prompts.engine.models import Models
from prompts.plan_facts import PlanFacts
from tasks.facts.answer import FactAnswer, answer_from_facts
from tests.facts.questions import BY_MARRAND, QUESTIONS, TODAY, indexed_facts, of, plan
from tests.query.steps import scripted, sent
from tests.server.client import Server
from tests.workspaces import opened


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory, server_process: Server) -> Path:
    """The sample corpus, of which a scripted model lists the facts."""
    folder = tmp_path_factory.mktemp("facts") / "ws"
    report = indexed_facts(folder, server_process)
    assert {row.path for row in report.skipped} == {
        "schema: born in",
        "schema: height",
        "schema: inhabitants",
    }
    return folder


@pytest.fixture(scope="module")
def session(workspace: Path) -> Iterator[Session]:
    with open_session(opened(workspace)) as session:
        yield session


async def computed(question: str, made: dict[str, Any], session: Session) -> FactAnswer:
    typed = session.graph.typed(None)
    return await answer_from_facts(question, typed, scripted(PlanFacts, made, made), TODAY)


@pytest.mark.parametrize(
    ("question", "made", "values", "cited"), QUESTIONS, ids=[one[0] for one in QUESTIONS]
)
async def test_a_plan_over_facts_is_computed_and_cited(
    question: str, made: dict[str, Any], values: list[str], cited: str, session: Session
) -> None:
    answered = await computed(question, made, session)
    assert sorted(answered.result.values) == sorted(values), answered.result.plan
    assert (answered.left_out, answered.stated.fallback) == ([], "none")
    texts = session.texts([source.document for source in answered.sources])
    for source in answered.sources:
        assert source.text == texts[source.document].text[source.start : source.end]
    assert any(cited in " ".join(source.text.split()) for source in answered.sources)
    for cell in answered.result.cells:
        assert session.texts([cell.document])[cell.document].text[cell.start : cell.end] == cell.raw


@pytest.mark.parametrize(
    ("made", "problem"),
    [
        (of("cost", "maintenance", "type"), "type holds neither numbers nor dates"),
        (of("cost", "maintenance", "masts"), "a bridge has no column 'masts'"),
        (of("cost", "maintenance", "length", "minus"), "figures in crowns and m"),
        (of("cost", "opened", "length", "minus"), "of dates only a difference"),
        (of("length", "maintenance", "length"), "'length' is a column already"),
    ],
)
async def test_what_cannot_be_computed_of_two_says_why(
    made: dict[str, str], problem: str, session: Session
) -> None:
    wanted = plan("bridge", "max", made["name"], computed=[made])
    answered = await computed("Which bridge costs most a metre?", wanted, session)
    assert (answered.is_computed, problem in answered.result.plan) == (False, True)


DESIGNED, NAMELESS = "How many bridges did Ilse Marrand design?", plan("bridge", "count")


async def test_a_plan_that_leaves_out_a_name_is_made_again(session: Session) -> None:
    planner = scripted(PlanFacts, NAMELESS, plan("bridge", "count", filters=[BY_MARRAND]))
    answered = await answer_from_facts(DESIGNED, session.graph.typed(None), planner, TODAY)
    assert (answered.result.values, answered.stated.fallback) == (("3",), "none")
    assert "count of name in bridge leaves out Ilse Marrand." in sent(planner)[1]


async def test_what_leaves_out_a_name_twice_is_not_called_supported(session: Session) -> None:
    answered = await computed(DESIGNED, NAMELESS, session)
    assert (answered.result.values, answered.stated.fallback) == (("12",), "partial")
    assert "Ilse Marrand" in [note.text for note in answered.notes]


LONGEST = "Which bridge is the longest?"


async def test_a_plan_that_does_not_fit_is_made_again(session: Session) -> None:
    planner = scripted(PlanFacts, plan("bridge", "max", "span"), plan("bridge", "max", "length"))
    answered = await answer_from_facts(LONGEST, session.graph.typed(None), planner, TODAY)
    assert answered.result.values == ("Teal Causeway",)
    assert "a bridge has no column 'span'" in sent(planner)[1]


async def test_the_only_table_with_the_columns_is_taken(session: Session) -> None:
    planner = scripted(PlanFacts, plan("water", "max", "length"))
    answered = await answer_from_facts(LONGEST, session.graph.typed(None), planner, TODAY)
    assert (answered.result.values, len(sent(planner))) == (("Teal Causeway",), 1)


async def test_what_a_small_model_planned_is_not_called_supported(session: Session) -> None:
    planner = scripted(PlanFacts, plan("bridge", "max", "length"))
    planner.models = Models({}, policy=Policy.of("medium", profile="small"))
    answered = await answer_from_facts(LONGEST, session.graph.typed(None), planner, TODAY)
    assert (answered.result.values, answered.stated.fallback) == (("Teal Causeway",), "partial")
    assert not any(note.computed for note in answered.notes)
