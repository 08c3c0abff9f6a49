"""With a model at most one call comes before the traversal, none while walking; an open answer is written from it."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from flows.query import answer_question
from flows.question import AskOptions
from flows.runtime import open_runtime
from flows.session import Session, open_session
from flows.settings import load_settings
from storage.answer_records import Answer
from tests.server.client import Server, serving


@pytest.fixture(scope="module")
def process() -> Iterator[Server]:
    with serving() as server:
        yield server


@pytest.fixture
async def on_model(workspace: Path, process: Server) -> AsyncIterator[Session]:
    process.reset()
    runtime = open_runtime(
        load_settings(
            {"workspace": workspace, "embedding": "none", "lm": "openai/m", "lm_base_url": process.base_url,
             "lm_api_key": "k"}, {},
        )
    )  # fmt: skip
    with open_session(runtime) as session:
        yield session
    await runtime.models.aclose()


async def asked(question: str, session: Session, **options: object) -> Answer:
    return await answer_question(question, AskOptions(mode="traverse", **options), session)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "question",
    ["what is the gender of ada_vell 's kid ?", "How many children does ada_vell have?",
     "Do ada_vell and dov_arlen have the same religion?"],
)  # fmt: skip
async def test_a_plan_by_words_over_imported_triples_costs_no_call_before_the_walk(
    question: str, on_model: Session, process: Server
) -> None:
    answer = await asked(question, on_model)
    assert "plan" not in process.stats()["steps"]
    assert "plan" in {one.step for one in answer.trace.spared}


async def test_at_high_effort_the_model_plans(on_model: Session, process: Server) -> None:
    answer = await asked("what is the gender of ada_vell 's kid ?", on_model, effort="high")
    assert process.stats()["steps"]["plan"]["calls"] == 1
    assert answer.trace.subquestions[0].question == "follow ada_vell -[children]->"


async def test_a_question_that_words_no_way_is_planned_by_one_call(on_model: Session, process: Server) -> None:
    answer = await asked("What is the metier of dov_arlen?", on_model)
    assert process.stats()["steps"]["plan"]["calls"] == 1
    # The scripted model follows the first relation near the name.
    assert answer.trace.subquestions[0].question == "follow dov_arlen -[children]->"


async def test_an_unsure_type_and_its_plan_come_in_one_call(on_model: Session, process: Server) -> None:
    answer = await asked("ada_vell and dov_arlen?", on_model)
    assert process.stats()["steps"]["plan"]["calls"] == 1
    assert answer.trace.question_type == "s*o"


async def test_an_open_answer_is_written_from_tables_and_paths(on_model: Session, process: Server) -> None:
    answer = await asked("How are edda_vell and gus_arlen connected?", on_model)
    bodies = [str(request["body"]) for request in process.requests()]
    body = next(one for one in bodies if "Step: answer" in one)
    assert "| entity | kind | relations | description |" in body
    assert "| source | relation | target | evidence |" in body
    assert "edda_vell <-[children]- bruno_vell <-[children]- ada_vell" in body
    assert all(citation.verified for citation in answer.citations)
