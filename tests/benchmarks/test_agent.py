"""The planner of the measure `agent` knows only what the results have shown."""

from benchmarks.agent import Link, Planner
from prompts.agent import ToolResult
from prompts.engine.models import Models

TOOLS = ["search(query)", "search_words(words)", "entity(name)", "finish()"]
FIRST = ToolResult(call="search('…')", result=["[1] Ana Korb: Ana Korb lived at Marl Quay."])
READ = ToolResult(call="search('…')", result=["[2] Tomas Reyd: Tomas Reyd built Orla Bridge."])
ELSEWHERE = ToolResult(call="search('…')", result=["[3] Tomas Reyd: Tomas Reyd was tall."])


def planner() -> Planner:
    links = [
        Link("Orla Bridge >> architect", "Tomas Reyd"),
        Link("Who taught #1 ?", "Ana Korb"),
    ]
    return Planner(Models.offline(), links)


async def test_an_answer_is_used_only_once_it_was_read() -> None:
    asked = planner()
    first = await asked.run("", TOOLS, [FIRST, ELSEWHERE], 8)
    assert (first.tool, first.arguments) == ("search", ("Orla Bridge architect",))
    second = await asked.run("", TOOLS, [FIRST, ELSEWHERE, READ], 7)
    assert (second.tool, second.arguments) == ("search", ("Who taught Tomas Reyd ?",))


async def test_each_tool_is_tried_once_then_the_search_ends() -> None:
    asked = planner()
    calls = [await asked.run("", TOOLS, [FIRST], left) for left in range(8, 3, -1)]
    assert [call.tool for call in calls] == ["search", "entity", "search_words", *["finish"] * 2]
    assert calls[1].arguments == ("Orla Bridge",)
