"""A budget is never passed: the run stops before, publishes nothing, and the next goes on from the answers it got."""

import json
from pathlib import Path

import pytest

from storage.errors import BudgetReached
from storage.run_records import Budget
from storage.workspace import Workspace
from tests.flows.conftest import Command, write_rows
from tests.flows.test_letters import row
from tests.server.client import Server


@pytest.fixture
def docs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TRELLIS_MAX_TOKENS", "1024")
    return write_rows(tmp_path / "docs.jsonl", [row(number) for number in range(40)])


def spent(server: Server) -> int:
    stats = server.stats()
    return int(stats["prompt_tokens"] + stats["completion_tokens"])


def test_a_budget_in_tokens_stops_the_run_before_and_the_next_goes_on(
    model_server: Server, fresh: Command, docs: Path
) -> None:
    model_server.settle(latency_ms=20)
    done = fresh("index", str(docs), "--budget-tokens", "20000", "--json")
    assert done.code == 3
    assert done.json["error"]["type"] == "BudgetReached"
    assert "Raise the budget" in done.json["error"]["remedy"]
    first, calls = spent(model_server), model_server.stats()["calls"]
    assert 16_000 < first <= 20_000
    assert Workspace(fresh.workspace).current() is None, "nothing is published"
    whole = fresh("index", str(docs), "--budget-tokens", "1000000", "--json")
    assert whole.code == 0
    assert whole.json["usage"]["cached_calls"] >= calls - 1
    assert model_server.stats()["repeated"] == 0, "what was answered is not asked again"
    run = fresh("status", "--json").json["runs"][1]
    assert run["state"] == "failed"
    assert "Budget reached" in run["summary"]


def test_a_budget_too_small_for_one_call_sends_none(model_server: Server, fresh: Command, docs: Path) -> None:
    done = fresh("index", str(docs), "--budget-tokens", "900")
    assert (done.code, model_server.stats()["calls"]) == (3, 0)
    assert "the next call may take 2," in done.err


def test_dollars_without_a_price_are_an_error_before_the_first_call(
    model_server: Server, fresh: Command, docs: Path
) -> None:
    done = fresh("index", str(docs), "--budget-usd", "5", "--json")
    assert (done.code, model_server.stats()["calls"]) == (2, 0)
    assert "openai/scripted" in done.json["error"]["message"]
    assert "--budget-tokens" in done.json["error"]["remedy"]


def test_a_budget_needs_calls_that_are_counted_together(
    model_server: Server, fresh: Command, docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRELLIS_RUNNER", "processes")
    done = fresh("index", str(docs), "--budget-tokens", "5000")
    assert (done.code, "TRELLIS_RUNNER" in done.err) == (2, True)


@pytest.mark.parametrize("amount", ["0", "-1", "a lot", "1e9", ""])
def test_an_amount_that_is_none_is_refused(amount: str, fresh: Command, docs: Path) -> None:
    assert fresh("index", str(docs), "--budget-usd", amount).code == 2


def test_offline_a_budget_is_never_touched(fresh: Command, docs: Path) -> None:
    report = fresh("index", str(docs), "--budget-tokens", "1", "--budget-usd", "0.01", "--json")
    assert report.code == 0, json.dumps(report.err)


@pytest.mark.usefixtures("prefect_server", "model_server")
async def test_a_recorded_run_keeps_it_too(docs: Path, tmp_path: Path) -> None:
    from flows.index import index

    workspace = tmp_path / "ws"
    with pytest.raises(BudgetReached, match="of 20,000 tokens"):
        await index(str(docs), workspace=str(workspace), budget=Budget(tokens=20_000))
    assert Workspace(workspace).current() is None
