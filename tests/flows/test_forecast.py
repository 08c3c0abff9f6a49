"""A dry run says what the run will do and take, calls nothing and leaves no trace; a budget is
never passed.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from storage.workspace import Workspace
from storage.workspace_db import RunRow
from tests.flows.conftest import Command, row
from tests.server.client import Server
from tests.workspaces import write_rows

pytestmark = pytest.mark.usefixtures("unembedded")
WITHIN = 0.15


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    return write_rows(tmp_path / "docs.jsonl", map(row, range(40)))


def forecast(trellis: Command, *arguments: object) -> Any:
    done = trellis("index", *map(str, arguments), "--dry-run", "--json")
    assert done.code == 0, done.err
    return done.json


def files_in(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_file()}


def steps_of(forecast: Any) -> dict[str, Any]:
    return {one["step"]: one for one in forecast["steps"]}


def test_a_first_run_is_forecast(model_server: Server, fresh: Command, docs: Path) -> None:
    found = forecast(fresh, docs)
    assert model_server.stats()["calls"] == 0
    assert not fresh.workspace.exists()
    report = fresh("index", str(docs), "--json").json
    assert found["documents"] == report["documents"]
    assert found["chunks"] == found["chunks_to_extract"] == report["chunks"]
    extract, real = steps_of(found)["extract"], report["usage"]["by_step"]["extract"]
    assert extract["calls"] == real["calls"]
    assert extract["input_tokens"] == pytest.approx(real["input_tokens"], rel=WITHIN)
    assert found["output_tokens"] >= extract["output_tokens"] > 0
    assert (extract["basis"], extract["cost_usd"], found["cost_usd"]) == ("rule", None, None)
    (run,) = Workspace(fresh.workspace).database.runs.list()
    paid = {used["step"]: used for used in json.loads(run.summary)["usage"]}["extract"]
    # The next forecast learns from it.
    assert (paid["model"], paid["calls"]) == ("openai/scripted", real["calls"])


def test_an_incremental_run_is_forecast_from_what_changes(
    model_server: Server, fresh: Command, docs: Path
) -> None:
    fresh("index", str(docs))
    before = files_in(fresh.workspace)
    nothing = forecast(fresh, docs)
    assert (nothing["calls"], nothing["input_tokens"], nothing["chunks_to_extract"]) == (0, 0, 0)
    write_rows(docs, map(row, range(41)))
    model_server.reset()
    found = forecast(fresh, docs)
    assert model_server.stats()["calls"] == 0
    assert files_in(fresh.workspace) == before
    report = fresh("index", str(docs), "--json").json
    assert (found["documents"]["added"], found["chunks_to_extract"]) == (1, 1)
    assert found["documents"] == report["documents"]
    assert 0 < found["calls"] <= report["usage"]["calls"]


def test_history_says_what_calls_take(model_server: Server, fresh: Command, docs: Path) -> None:
    used = {"calls": 40, "input_tokens": 8000, "output_tokens": 4000, "seconds": 320}
    models = {"extract": "scripted", "summarize": "scripted", "report": "another"}
    usage = [{**used, "step": step, "model": f"openai/{name}"} for step, name in models.items()]
    summary = json.dumps({"usage": usage})
    run = RunRow(kind="index", started="", finished="", state="completed", summary=summary)
    Workspace(fresh.workspace).database.runs.append(run)
    steps = steps_of(forecast(fresh, docs))
    summarize = steps["summarize"]
    assert (summarize["basis"], summarize["calls"]) == ("history", steps["extract"]["calls"])
    assert summarize["output_tokens"] == 100 * summarize["calls"] > 0
    assert steps["report"]["basis"] == "rule", "another model's answers say nothing of this one's"


def test_offline_the_plan_is_told(fresh: Command, docs: Path) -> None:
    found = forecast(fresh, docs)
    assert (found["calls"], found["cost_usd"], found["steps"]) == (0, 0, [])
    untouched = ("--budget-tokens", "1", "--budget-usd", "0.01")
    report = fresh("index", str(docs), *untouched, "--json").json
    assert (found["documents"], found["chunks"]) == (report["documents"], report["chunks"])
    write_rows(docs, map(row, range(39)))
    shown = fresh("index", str(docs), "--dry-run")
    assert "1 removed" in shown.out
    assert re.search(r"about \d+ .+ \(at 3 passages a second\)", shown.out)
    assert "Reading the sources" in shown.err
    assert fresh("status", "--json").json["generation"] == 1


def test_what_the_run_would_refuse_is_refused(fresh: Command, docs: Path, tmp_path: Path) -> None:
    assert fresh("index", str(tmp_path / "nowhere"), "--dry-run").code == 2
    fresh("index", str(docs))
    write_rows(docs, map(row, range(20)))
    assert fresh("index", str(docs), "--dry-run").code == 2
    assert fresh("index", str(docs), "--dry-run", "--allow-removals").code == 0


def test_a_run_tells_its_time_as_soon_as_its_model_is_measured(
    model_server: Server, fresh: Command, docs: Path
) -> None:
    measured = r"\d+ tokens a second of openai/scripted, as measured\n"
    assert "openai/scripted not measured yet" in fresh("index", str(docs), "--dry-run").out
    shown = fresh("index", str(docs)).err
    assert "40 passages: the time is told when the first are done\n" in shown
    assert re.search(rf"\d+ passages left: about .+ at {measured}", shown)
    calls = model_server.stats()["calls"]
    known = forecast(fresh, docs, "--full")
    assert re.search(r"openai/scripted \d+ tokens a second, as measured", known["rate"])
    assert known["run_seconds"] > 0
    assert model_server.stats()["calls"] == calls
    again = fresh("index", str(docs), "--full").err
    assert re.search(rf"40 passages: about .+ at {measured}", again)


def test_a_budget_stops_a_run_and_the_next_goes_on(
    model_server: Server, fresh: Command, docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRELLIS_MAX_TOKENS", "1024")
    model_server.settle(latency_ms=20)
    done = fresh("index", str(docs), "--budget-tokens", "20000", "--json")
    assert (done.code, done.json["error"]["type"]) == (3, "BudgetReached")
    assert "Raise the budget" in done.json["error"]["remedy"]
    stats = model_server.stats()
    assert 16_000 < stats["prompt_tokens"] + stats["completion_tokens"] <= 20_000
    assert Workspace(fresh.workspace).current() is None, "nothing is published"
    whole = fresh("index", str(docs), "--budget-tokens", "1000000", "--json")
    assert whole.code == 0
    assert whole.json["usage"]["cached_calls"] >= stats["calls"] - 1
    assert model_server.stats()["repeated"] == 0, "what was answered is not asked again"
    run = fresh("status", "--json").json["runs"][1]
    assert (run["state"], "Budget reached" in run["summary"]) == ("failed", True)
