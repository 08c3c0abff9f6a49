"""What the models did is shown: in one line to people, by step and model in `status` and in the runs' artifacts."""

from pathlib import Path

from flows.usage import in_short, ledger
from storage.run_records import StepUsage, UsageRow
from tests.flows.conftest import Command
from tests.server.client import Server


def test_a_line_says_what_is_known_and_what_is_not() -> None:
    used = StepUsage(calls=1, input_tokens=1200, output_tokens=34, cached_calls=2, cost_usd=0.00123)
    assert in_short(used) == "1 model call and 2 from the cache, 1,200 tokens in, 34 out, $0.0012"
    assert in_short(StepUsage(calls=2, cost_usd=None)).endswith("cost unknown")
    assert in_short(StepUsage(seconds=3.0)) == ""


def test_a_ledger_has_a_row_for_each_step_and_model() -> None:
    rows = [UsageRow(step="extract", model="openai/a|b", calls=3, input_tokens=10, output_tokens=5, cost_usd=None)]
    assert "| extract | openai/a b | 3 | 0 | 10 | 5 | cost unknown | 0.0 |" in ledger(rows)
    assert "offline" in ledger([])


def test_people_see_one_line_and_status_the_steps(
    fresh: Command, copied: Command, source: Path, model_server: Server
) -> None:
    built = fresh("index", str(source)).out
    assert "model calls, " in built
    assert "cost unknown" in built
    status = fresh("status", "--json").json
    steps = {row["step"]: row for row in status["usage"]}
    assert {row["model"] for row in steps.values()} == {"openai/scripted"}
    assert steps["extract"]["calls"] == model_server.stats()["steps"]["extract"]["calls"] > 0
    assert "Models used for generation 1" in fresh("status").out
    asked = fresh("ask", "Where was Tomas Reyd born?").out
    assert asked.rstrip().splitlines()[-1].endswith("cost unknown")
    assert copied("status", "--json").json["usage"] == [], "offline there is nothing to tell"
