"""With a model: one call where the rules see no plan in a question for tables, else none; its plan is checked."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from prompts.engine.messages import NotAsAsked
from prompts.engine.models import ModelChoice, Models
from prompts.engine.roles import ROLES
from prompts.engine.wire import conversation
from prompts.language.question import ask
from prompts.language.table_plan import Band, TablePlan
from prompts.utilize import PlanOverTables, PlanTable
from tests.server.client import Server, serving

GOLDEN = Path(__file__).parents[1] / "golden" / "prompt_PlanOverTables.txt"
QUESTION = "Port by port, show me the cranes"


@pytest.fixture(scope="module")
def process() -> Iterator[Server]:
    with serving() as server:
        yield server


@pytest.fixture
async def planner(process: Server) -> AsyncIterator[PlanTable]:
    process.reset()
    models = Models(dict.fromkeys(ROLES, ModelChoice("openai/scripted", process.base_url, "a key")))
    yield PlanTable(models)
    await models.aclose()


def test_the_prompt_reads_like_the_golden_one() -> None:
    messages = conversation(PlanTable.step, PlanOverTables, PlanTable.wire, (), {"question": QUESTION})
    rendered = "\n".join(f"--- {message.role}\n{message.content}" for message in messages) + "\n"
    assert rendered == GOLDEN.read_text(encoding="utf-8")


async def test_what_the_rules_see_costs_no_call(planner: PlanTable, process: Server) -> None:
    plan = await planner.run(ask("Which port has the most cranes?"), for_table=True)
    assert plan is not None
    assert plan.operation == "top"
    # A question that was not routed to tables has no plan, and none is paid for.
    assert await planner.run(ask(QUESTION)) is None
    assert process.stats()["calls"] == 0


async def test_what_they_do_not_see_is_planned_by_one_call(planner: PlanTable, process: Server) -> None:
    assert await planner.run(ask(QUESTION), for_table=True) == TablePlan(operation="list", attribute="cranes")
    assert (process.stats()["calls"], list(process.stats()["steps"])) == (1, ["plan_table"])
    assert await planner.run(ask("Who built the harbour?"), for_table=True) is None


@pytest.mark.parametrize(
    "plan",
    [
        TablePlan(operation="lookup", attribute="cranes", things=("Port Ister",)),
        TablePlan(operation="count", attribute="cranes", bands=(Band(low=3e6),)),
    ],
)
def test_names_and_figures_that_the_question_lacks_are_refused(plan: TablePlan) -> None:
    with pytest.raises(NotAsAsked, match=r"Port Ister|3e\+06"):
        PlanTable(Models.offline()).check({"plan": plan}, {"question": "How many ports have over 3 cranes?"})


def test_a_scaled_figure_is_one_of_the_question() -> None:
    plan = TablePlan(operation="count", attribute="cranes", bands=(Band(low=3e6),))
    PlanTable(Models.offline()).check({"plan": plan}, {"question": "Which ports moved over 3 million tonnes?"})
