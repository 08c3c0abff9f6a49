"""A dry run says what the run will do and take, calls nothing and leaves no trace; a budget is
never passed.
"""

import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from storage.workspace import Workspace
from storage.workspace_db import RunRow
from tests.copying import corpus_in
from tests.flows.conftest import Command, row
from tests.server.client import Server
from tests.workspaces import write_rows

pytestmark = pytest.mark.usefixtures("unembedded")
WITHIN = 0.15


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """The English part of the sample corpus that is text."""
    return corpus_in(tmp_path, "zh", "data")


def snapshot(folder: Path) -> Mapping[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def forecast(trellis: Command, *arguments: object) -> Any:
    done = trellis("index", *map(str, arguments), "--dry-run", "--json")
    assert done.code == 0, done.err
    return done.json


def test_a_first_run_is_forecast(model_server: Server, fresh: Command, tmp_path: Path) -> None:
    corpus = write_rows(tmp_path / "docs.jsonl", [row(number) for number in range(40)])
    found = forecast(fresh, corpus)
    assert model_server.stats()["calls"] == 0
    assert not fresh.workspace.exists()
    report = fresh("index", str(corpus), "--json").json
    assert found["documents"] == report["documents"]
    assert found["chunks"] == found["chunks_to_extract"] == report["chunks"]
    extract = next(one for one in found["steps"] if one["step"] == "extract")
    real = report["usage"]["by_step"]["extract"]
    assert extract["calls"] == real["calls"]
    assert extract["input_tokens"] == pytest.approx(real["input_tokens"], rel=WITHIN)
    assert found["output_tokens"] >= extract["output_tokens"] > 0
    assert (extract["basis"], extract["cost_usd"], found["cost_usd"]) == ("rule", None, None)
    (run,) = Workspace(fresh.workspace).database.runs.list()
    paid = {used["step"]: used for used in json.loads(run.summary)["usage"]}["extract"]
    assert (paid["model"], paid["calls"]) == ("openai/scripted", real["calls"]), (
        "the next forecast learns from it"
    )


def test_an_incremental_run_is_forecast_from_what_changes(
    model_server: Server, fresh: Command, corpus: Path
) -> None:
    fresh("index", str(corpus))
    before = snapshot(fresh.workspace)
    nothing = forecast(fresh, corpus)
    assert (nothing["calls"], nothing["input_tokens"], nothing["chunks_to_extract"]) == (0, 0, 0)
    (corpus / "more.md").write_text(
        "# Olle Brandt\n\nOlle Brandt met Mira Sand in Velin Town in 1950. He was a miller.\n"
    )
    model_server.reset()
    found = forecast(fresh, corpus)
    assert model_server.stats()["calls"] == 0
    assert snapshot(fresh.workspace).keys() == before.keys()
    assert fresh("generations", "--json").json[-1]["number"] == 1
    report = fresh("index", str(corpus), "--json").json
    assert (found["documents"]["added"], found["chunks_to_extract"]) == (1, 1)
    assert found["documents"] == report["documents"]
    assert 0 < found["calls"] <= report["usage"]["calls"]


def test_history_says_what_calls_take(model_server: Server, fresh: Command, corpus: Path) -> None:
    side = Workspace(fresh.workspace).database
    used = {
        "model": "openai/scripted",
        "calls": 40,
        "input_tokens": 8000,
        "output_tokens": 4000,
        "seconds": 320,
    }
    rows = [
        {**used, "step": "extract"},
        {**used, "step": "summarize"},
        {**used, "step": "report", "model": "another"},
    ]
    side.runs.append(
        RunRow(
            kind="index",
            started="",
            finished="",
            state="completed",
            summary=json.dumps({"usage": rows}),
        )
    )
    plan = forecast(fresh, corpus)
    steps = {one["step"]: one for one in plan["steps"]}
    assert (steps["summarize"]["basis"], steps["summarize"]["calls"]) == (
        "history",
        steps["extract"]["calls"],
    )
    assert steps["summarize"]["output_tokens"] == 100 * steps["summarize"]["calls"] > 0
    assert steps["report"]["basis"] == "rule", "another model's answers say nothing of this one's"


def test_offline_the_plan_is_told(fresh: Command, corpus: Path) -> None:
    found = forecast(fresh, corpus)
    assert (found["calls"], found["cost_usd"], found["steps"]) == (0, 0, [])
    report = fresh(
        "index", str(corpus), "--budget-tokens", "1", "--budget-usd", "0.01", "--json"
    ).json
    assert (found["documents"], found["chunks"]) == (report["documents"], report["chunks"]), (
        "no budget is touched"
    )
    (corpus / "letters" / "oke-to-marrand-1994.txt").unlink()
    assert forecast(fresh, corpus)["documents"]["removed"] == 1
    told = fresh("index", str(corpus), "--dry-run")
    assert "1 removed" in told.out
    assert re.search(r"about \d+ .+ \(at 3 passages a second\)", told.out)
    assert "Reading the sources" in told.err
    assert fresh("status", "--json").json["generation"] == 1


def test_what_the_run_would_refuse_is_refused(fresh: Command, corpus: Path, tmp_path: Path) -> None:
    assert fresh("index", str(tmp_path / "nowhere"), "--dry-run").code == 2
    fresh("index", str(corpus))
    for folder in ("people", "letters", "minutes", "news", "museum"):
        shutil.rmtree(corpus / folder)
    assert fresh("index", str(corpus), "--dry-run").code == 2
    assert fresh("index", str(corpus), "--dry-run", "--allow-removals").code == 0


@pytest.fixture
def docs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TRELLIS_MAX_TOKENS", "1024")
    return write_rows(tmp_path / "docs.jsonl", [row(number) for number in range(40)])


def spent(server: Server) -> int:
    stats = server.stats()
    return int(stats["prompt_tokens"] + stats["completion_tokens"])


def test_a_run_tells_its_time_as_soon_as_its_model_is_measured(
    model_server: Server, fresh: Command, docs: Path
) -> None:
    assert "openai/scripted not measured yet" in fresh("index", str(docs), "--dry-run").out
    done = fresh("index", str(docs))
    assert re.search(r"40 passages: the time is told when the first are done\n", done.err)
    assert re.search(
        r"\d+ passages left: about .+ at \d+ tokens a second of openai/scripted, as measured\n",
        done.err,
    )
    calls = model_server.stats()["calls"]
    known = forecast(fresh, docs, "--full")
    assert re.search(r"openai/scripted \d+ tokens a second, as measured", known["rate"])
    assert known["run_seconds"] > 0
    assert model_server.stats()["calls"] == calls
    again = fresh("index", str(docs), "--full").err
    assert re.search(
        r"40 passages: about .+ at \d+ tokens a second of openai/scripted, as measured\n", again
    )


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
