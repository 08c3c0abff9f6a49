"""Mode `lazy` over an index that no model has read: tests, claims, cost before and after."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from flows.modes.lazy_search import BUDGETS, forecast_question
from flows.question import AskOptions
from flows.runtime import Runtime
from flows.session import open_session
from prompts.engine.effort import Effort
from storage.answer_records import Answer, RelevanceTests
from storage.errors import UsageError
from tests.copying import copy_of
from tests.flows.conftest import Command
from tests.flows.test_collection import QUESTION, TEXTS
from tests.flows.test_model_words import writing
from tests.server.client import Server
from tests.workspaces import asked, indexed, opened

TWO = "What do the speakers say about flooding of the harbour and about the quay of Marl?"
ZH = "洪水给港口带来了什么影响？"
ZH_TEXTS = {
    "港口": "洪水每年春天威胁马尔港口。市政府加高了港口的码头。",
    "渡轮": "渡轮公司担心洪水使港口关闭数周。公司有九艘船。",
    "酿酒厂": "酿酒厂的酒在节日里卖得很好。工人们为此感到高兴。",
}


@pytest.fixture(scope="module")
def unread(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index that no model has read, in English and in Chinese."""
    rows = [
        {"id": name, "title": name.capitalize(), "text": text}
        for name, text in [*TEXTS.items(), *ZH_TEXTS.items()]
    ]
    return indexed(tmp_path_factory.mktemp("unread"), rows)


@pytest.fixture
async def served(unread: Path, model_server: Server, tmp_path: Path) -> AsyncIterator[Runtime]:
    """A copy of the workspace, with the scripted model in every role."""
    model = {"lm": "openai/scripted", "lm_base_url": model_server.base_url, "lm_api_key": "a key"}
    runtime = opened(copy_of(unread, tmp_path / "ws"), memory="off", **model)
    yield runtime
    await runtime.models.aclose()


async def lazily(
    question: str, runtime: Runtime, **options: object
) -> tuple[Answer, RelevanceTests]:
    with open_session(runtime) as session:
        answer = await asked(question, session, mode="lazy", **options)
    assert answer.trace.relevance is not None
    return answer, answer.trace.relevance


@pytest.mark.parametrize(("question", "wanted"), [(QUESTION, "velin"), (ZH, "渡轮")])
async def test_what_is_relevant_is_claimed_with_its_place(
    question: str, wanted: str, served: Runtime, model_server: Server
) -> None:
    answer, tests = await lazily(question, served)
    assert wanted in {citation.document for citation in answer.citations}
    assert all(citation.verified for citation in answer.citations)
    assert answer.fallback != "abstained"
    assert answer.usage.calls == model_server.stats()["calls"]
    assert {"subquestions", "relevance", "partial", "reduce"} == set(answer.usage.by_step)
    assert 0 < tests.relevant <= tests.tests <= tests.budget == BUDGETS["medium"]
    assert "museum" not in {citation.document for citation in answer.citations}


async def test_each_part_has_its_tests_and_words(served: Runtime) -> None:
    answer, tests = await lazily(TWO, served, budget=7)
    assert len(tests.parts) == 2
    assert all(part.search and part.tests for part in tests.parts)
    assert sum(part.tests for part in tests.parts) == tests.tests <= 7
    named = {part.question for part in answer.trace.subquestions}
    assert named <= {part.question for part in tests.parts}


@pytest.mark.parametrize("budget", [1, 3])
async def test_no_more_passages_are_tested_than_allowed(budget: int, served: Runtime) -> None:
    _, tests = await lazily(QUESTION, served, budget=budget)
    assert tests.tests == budget


@pytest.mark.parametrize("effort", ["low", "medium", "high"])
async def test_the_forecast_is_not_below_what_is_used(effort: Effort, served: Runtime) -> None:
    answer, tests = await lazily(TWO, served, effort=effort)
    forecast = tests.forecast
    assert answer.usage.calls <= forecast.calls
    assert answer.usage.input_tokens <= forecast.input_tokens
    assert tests.tests <= forecast.tests
    assert ("subquestions" in answer.usage.by_step) == (effort != "low")


async def test_a_filter_and_a_number_of_passages_hold(served: Runtime) -> None:
    answer, tests = await lazily(QUESTION, served, where=("document in ('velin', 'choir')",), k=1)
    assert {citation.document for citation in answer.citations} == {"velin"}
    assert tests.forecast.tests <= 10


async def test_the_settings_give_the_budget(unread: Path) -> None:
    model = {"lm": "openai/m", "lm_base_url": "http://127.0.0.1:9/v1", "lm_api_key": "k"}
    runtime = opened(unread, lazy_budget=7, **model)
    with open_session(runtime) as session:
        for options, tests in (
            (AskOptions(mode="lazy"), 7),
            (AskOptions(mode="lazy", budget=2), 2),
        ):
            assert forecast_question(options, session).tests == tests
        with pytest.raises(UsageError, match="budget of relevance tests is 0"):
            forecast_question(AskOptions(mode="lazy", budget=0), session)
        with pytest.raises(UsageError, match="mode global tells no cost"):
            forecast_question(AskOptions(mode="global"), session)


async def test_without_a_model_global_answers(unread: Path) -> None:
    with open_session(opened(unread, memory="off")) as session:
        lazy, whole = [await asked(QUESTION, session, mode=mode) for mode in ("lazy", "global")]
    assert (lazy.answer, lazy.fallback) == (whole.answer, "partial")
    assert (lazy.trace.relevance, lazy.usage.calls) == (None, 0)


async def test_where_a_test_fails_the_question_s_words_choose(
    served: Runtime, model_server: Server
) -> None:
    model_server.misbehave({"kind": "malformed", "step": "relevance"})
    answer, _ = await lazily(QUESTION, served)
    assert answer.citations
    assert [row.step for row in answer.trace.degraded] == ["relevance"]


async def test_where_nothing_is_relevant_it_says_so(served: Runtime, model_server: Server) -> None:
    model_server.misbehave(writing("relevance", sentences=[]))
    answer, tests = await lazily(QUESTION, served)
    assert (answer.fallback, tests.relevant) == ("abstained", 0)
    assert "partial" not in answer.usage.by_step


async def test_numbers_that_no_sentence_has_mark_nothing(
    served: Runtime, model_server: Server
) -> None:
    model_server.misbehave(writing("relevance", sentences=[0, -3, 4711]))
    _, tests = await lazily(QUESTION, served)
    assert tests.relevant == 0


def test_the_command_tells_the_cost_before_and_after(copied: Command, model_server: Server) -> None:
    told = copied("ask", "What is said about bridges?", "--mode", "lazy", "--dry-run")
    assert "Forecast: nothing was asked" in told.out
    assert model_server.stats()["calls"] == 0
    done = copied("ask", "What is said about Orla Bridge?", "--mode", "lazy", "--budget", "9")
    assert "A question takes at most about" in done.err
    assert "of 9 relevance tests" in done.out


def test_the_command_forecasts_no_other_mode(trellis: Command) -> None:
    ended = trellis("ask", "What is said?", "--dry-run")
    assert ended.code != 0
    assert "mode lazy" in ended.err
