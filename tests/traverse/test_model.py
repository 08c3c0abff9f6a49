"""With a model at most one call comes before the traversal, none while walking; an open answer is written from it."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from flows.asking import AskOptions, answer_question
from flows.runtime import open_runtime
from flows.session import Session, open_session
from flows.settings import load_settings
from prompts.classify import Classify, ClassifyQuestion
from prompts.engine.step import Step
from prompts.engine.wire import conversation
from prompts.traverse import PlanQuestion, PlanTraversal
from storage.records import Answer
from tests.server.client import Server, serving

GOLDEN = Path(__file__).parents[1] / "golden"
BEFORE = {"classify", "plan"}
SHOWN = {
    ClassifyQuestion: {"question": "How are Orla Bridge and Tomas Reyd tied?", "names": ["Orla Bridge", "Tomas Reyd"]},
    PlanQuestion: {
        "question": "Who taught the designer of Orla Bridge?",
        "question_type": "sp*",
        "names": ["Orla Bridge"],
        "relations": ["designed by", "taught"],
    },
}


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


async def asked(question: str, session: Session) -> Answer:
    return await answer_question(question, AskOptions(mode="traverse"), session)


@pytest.mark.parametrize(
    "question",
    ["what is the gender of ada_vell 's kid ?", "How many children does ada_vell have?", "Who has the most children?",
     "Do ada_vell and dov_arlen have the same religion?", "Who is the spouse of Zed Quorn?",
     "What is the religion of bruno_vell?"],
)  # fmt: skip
async def test_what_the_words_settle_costs_no_call(question: str, on_model: Session, process: Server) -> None:
    answer = await asked(question, on_model)
    assert (answer.usage.calls, process.stats()["calls"]) == (0, 0)


async def test_a_question_that_words_no_way_is_planned_by_one_call(on_model: Session, process: Server) -> None:
    answer = await asked("What is the metier of dov_arlen?", on_model)
    assert list(process.stats()["steps"]) == ["plan"]
    assert process.stats()["calls"] == 1
    # The scripted model follows the first relation near the name.
    assert answer.trace.subquestions[0].question == "follow dov_arlen -[children]->"
    assert answer.values == ("cleo_vell",)


async def test_an_unsure_type_is_asked_for_once_and_no_plan_besides(on_model: Session, process: Server) -> None:
    answer = await asked("ada_vell and dov_arlen?", on_model)
    before = {step: count for step, count in process.stats()["steps"].items() if step in BEFORE}
    assert list(before) == ["classify"]
    assert answer.trace.question_type == "s*o"


async def test_an_open_answer_is_written_from_tables_and_paths(on_model: Session, process: Server) -> None:
    answer = await asked("How are edda_vell and gus_arlen connected?", on_model)
    assert list(process.stats()["steps"]) == ["answer"]
    (request,) = process.requests()
    body = str(request["body"])
    assert "| entity | kind | relations | description |" in body
    assert "| source | relation | target | evidence |" in body
    assert "edda_vell <-[children]- bruno_vell <-[children]- ada_vell" in body
    assert all(citation.verified for citation in answer.citations)


@pytest.mark.parametrize("step", [Classify, PlanTraversal])
def test_a_prompt_reads_like_the_golden_one(step: type[Step]) -> None:
    messages = conversation(step.step, step.task, step.wire, (), SHOWN[step.task])
    rendered = "\n".join(f"--- {message.role}\n{message.content}" for message in messages) + "\n"
    assert rendered == (GOLDEN / f"prompt_{step.task.__name__}.txt").read_text(encoding="utf-8")
