"""An evaluation: what it asks and keeps, its gate and page; and watched questions."""

import asyncio
import json
import os
import sqlite3
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from flows.evaluate import run_evaluation
from storage.evaluation_records import EvaluationReport, Score, Verdict
from storage.evaluations import FORGOTTEN
from storage.workspace import Workspace
from tasks.evaluate.compare import (
    mean_scores,
    most_different,
    values_of,
    wins_by_judge,
    wins_by_measure,
)
from tests.copying import copy_of
from tests.evaluate.conftest import QUESTIONS, ROWS, Bench
from tests.patience import wait_for
from tests.server.client import Server
from tests.workspaces import write_rows

ROOT = Path(__file__).parents[2]
UNEQUAL = {"number", "reused", "seconds"}


TIMED = {"scores", "differences", "wins"}


def value(report: Any, system: str, measure: str) -> float:
    """Return the mean of a measure."""
    rows = report["scores"]
    (mean,) = [row for row in rows if (row["system"], row["measure"]) == (system, measure)]
    return float(mean["value"])


def apart_from_time(report: EvaluationReport) -> object:
    """Return the report without times and cache hits."""
    clock = {"seconds": True, "cached_calls": True}
    without: Any = {**clock, "by_step": {"__all__": clock}}
    kept: dict[str, object] = report.model_dump(exclude=UNEQUAL | TIMED | {"costs"})
    for name in TIMED:
        rows = getattr(report, name)
        kept[name] = [row for row in rows if getattr(row, "measure", "") != "seconds"]
    return kept | {"costs": [row.model_dump(exclude=without) for row in report.costs]}


def calls(server: Server) -> int:
    return sum(int(step["calls"]) for step in server.stats()["steps"].values())


def test_modes_and_recorded_answers_are_compared_and_kept(bench: Bench) -> None:
    other = bench.recorded("other", "Tomas Reyd", "Velin", None)
    ran = bench.evaluate("naive", "mode=struct,k=2,name=two", other)
    assert ran.code == 1, "one answer is missing"
    report = ran.json
    assert value(report, "other", "exact_match") == 1.0
    assert value(report, "naive", "answer_in_text") == 1.0
    assert [(row["system"], row["question"]) for row in report["errors"]] == [("other", "q3")]
    assert {row["questions"] for row in report["scores"] if row["system"] == "other"} == {2}
    (kept,) = json.loads(bench("evaluate", "--list", "--json").out)
    assert (kept["number"], kept["systems"], kept["questions"]) == (1, ["naive", "two", "other"], 3)
    shown = bench("evaluate", "--show", "1", "--json")
    assert shown.json["scores"] == report["scores"]
    assert bench("evaluate", "--remove", "1").code == 0
    assert json.loads(bench("evaluate", "--list", "--json").out) == []


def test_without_a_model_nothing_is_judged(bench: Bench) -> None:
    ran = bench.evaluate("naive", "struct", more=["--judge"])
    assert ran.code == 2
    assert "judge" in ran.err


def test_a_judge_compares_every_two_systems(bench: Bench, scripted: Server) -> None:
    texts = [f"{row['answers'][0]}, as was told for many years." for row in QUESTIONS]
    systems = bench.recorded("long", *texts), bench.recorded("short", "Reyd", "Velin", "Sand")
    ran = bench.evaluate(*systems, more=["--judge", "overall"])
    wins = [row for row in ran.json["wins"] if row["by"] == "overall"]
    won = {(row["first"], row["second"]): row["won"] for row in wins}
    assert won == {("long", "short"): 3, ("short", "long"): 0}
    assert (ran.json["judge"]["judgements"], calls(scripted)) == (6, 6)
    page = bench("evaluate", "--show", "1").out
    assert "| row against column | long | short |" in page
    assert "| long | – | 3 : 0 |" in page


def test_a_rubric_is_a_measure_and_costs_come_by_step(bench: Bench, scripted: Server) -> None:
    page = bench.folder / "page.html"
    ran = bench.evaluate("mix", more=["--measures", "comprehensiveness", "--page", str(page)])
    assert 0 < value(ran.json, "mix", "comprehensiveness") <= 100
    cost = ran.json["costs"][0]
    steps = cost["by_step"]
    assert {step: used["calls"] for step, used in steps.items()} == {"keywords": 3, "answer": 3}
    assert sum(used["input_tokens"] for used in steps.values()) == cost["input_tokens"]
    assert "<td>keywords</td><td>3</td>" in page.read_text(encoding="utf-8")


def kept_answers(workspace: Path) -> int:
    """Count the answers of evaluations that have not ended."""
    with sqlite3.connect(workspace / "side.sqlite") as connection:
        tables = "SELECT 1 FROM sqlite_master WHERE name = 'evaluated_answers'"
        if not connection.execute(tables).fetchone():
            return 0  # The file is being made
        return int(connection.execute("SELECT count(*) FROM evaluated_answers").fetchone()[0])


def test_a_key_in_recorded_answers_is_masked(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRELLIS_LM", "openai/m")
    monkeypatch.setenv("TRELLIS_LM_API_KEY", "sk-a-key-of-a-server")
    told = bench.recorded("theirs", "Reyd by sk-a-key-of-a-server", "Velin", "Sand")
    assert bench.evaluate(told).code == 0
    answers = Workspace(bench.workspace).evaluations.read(1).answers
    (answer,) = [row.answer for row in answers if row.question == "q1"]
    assert answer is not None
    assert answer.answer == "Reyd by [key masked]"


def test_a_spent_budget_keeps_what_was_answered(bench: Bench, scripted: Server) -> None:
    asked = bench("ask", "Who is Ana Korb?", "--mode", "naive", "--json").json
    # Room for what one call reads and may write (at most 4096 tokens), and for no second one.
    budget = asked["usage"]["input_tokens"] + 4096 + 300
    ran = bench.evaluate("naive", more=["--budget-tokens", str(budget)])
    assert (ran.code, json.loads(bench("evaluate", "--list", "--json").out)) == (3, [])
    assert calls(scripted) > 0
    again = bench.evaluate("naive")
    assert (again.code, again.json["number"]) == (0, 1)
    assert scripted.stats()["repeated"] == 0


def test_an_evaluation_killed_twice_asks_nothing_again(bench: Bench, scripted: Server) -> None:
    systems = (
        "naive",
        "mode=hybrid,effort=low,name=hybrid",
        bench.recorded("other", "Tomas Reyd", "Oslo", "Sand"),
    )
    place = ["--workspace", str(bench.workspace), "--questions", str(bench.questions)]
    typed = [part for system in systems for part in ("--system", system)]
    command = [sys.executable, "-m", "flows", "evaluate", *place, *typed]
    copy = copy_of(bench.workspace, bench.folder / "copy")
    for answered in (2, 4):
        # Later calls are never answered: they are under way when the kill comes.
        scripted.reset()
        scripted.misbehave({"kind": "hang", "step": "answer", "nth": 3, "times": 9, "seconds": 600})
        process = subprocess.Popen(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)})
        try:
            least = answered + len(QUESTIONS)
            enough = partial(lambda least: kept_answers(bench.workspace) >= least, least)
            wait_for(enough, "the first answers")
        finally:
            process.kill()
            process.wait()
        wait_for(lambda: scripted.stats()["in_flight"] == 0, "the end of its calls")
    scripted.misbehave()
    report = asyncio.run(run_evaluation(systems, bench.questions, workspace=bench.workspace))
    assert report.reused == 4 + len(QUESTIONS)
    assert scripted.stats()["repeated"] == 2, "the calls under way at the second kill"
    undisturbed = asyncio.run(run_evaluation(systems, bench.questions, workspace=copy))
    assert undisturbed.reused == 0
    assert apart_from_time(report) == apart_from_time(undisturbed)


def test_a_gate_holds_back_what_got_worse(bench: Bench) -> None:
    gate = bench.folder / "gate.toml"
    gate.write_text(
        '[[gate]]\nmeasure = "exact_match"\nsystem = "kb"\nmargin = 0.1\n', encoding="utf-8"
    )
    good = bench.recorded("kb", "Tomas Reyd", "Velin", "Mira Sand")
    nothing = bench.evaluate(good, more=["--gate", str(gate)])
    assert (nothing.code, "accepted" in nothing.err) == (2, True)
    assert bench.evaluate(good, more=["--accept"]).code == 0
    assert bench.evaluate(good, more=["--gate", str(gate)]).code == 0
    worse = bench.evaluate(
        bench.recorded("kb", "Tomas Reyd", "Oslo", "Mira Sand"), more=["--gate", str(gate)]
    )
    assert worse.code == 6
    (check,) = worse.json["gate"]
    assert (check["before"], check["value"], check["holds"]) == (1.0, 0.6667, False)
    assert "exact_match of kb went from 1 to 0.6667" in worse.err


def test_the_page_is_text_whatever_answers_hold(bench: Bench) -> None:
    evil = '<script>alert(1)</script> <img src=x onerror="alert(2)"> [x](javascript:alert(3))'
    write = [{**QUESTIONS[0], "question": f"Who {evil}?"}, *QUESTIONS[1:]]
    bench.questions.write_text("".join(json.dumps(row) + "\n" for row in write), encoding="utf-8")
    systems = (
        bench.recorded("good", "Tomas Reyd", "Velin", "Mira Sand"),
        bench.recorded("evil", evil, evil, evil),
    )
    html, markdown = bench.folder / "page.html", bench.folder / "page.md"
    assert bench.evaluate(*systems, more=["--page", str(html)]).code == 0
    assert bench("evaluate", "--show", "1", "--page", str(markdown), "--against", "1").code == 0
    page = html.read_text(encoding="utf-8")
    assert "&lt;script&gt;alert(1)" in page
    assert "<script" not in page
    assert "<img" not in page
    assert "http" not in page.replace("http-equiv", "")
    text = markdown.read_text(encoding="utf-8")
    assert "<script" not in text
    assert "[x](" not in text
    assert "before 1" in text


def test_a_forgotten_document_is_gone_from_evaluations(bench: Bench) -> None:
    bench.evaluate("naive")
    bench("watch", "add", "Who built Holm Light?")
    assert "Mira Sand" in bench("watch", "--json").out
    forgotten = json.loads(bench("forget", "light", "--json").out)
    assert forgotten["evaluated_answers"] >= 2
    result = Workspace(bench.workspace).evaluations.read(1)
    assert "q3" not in {row.question for row in result.answers}
    assert result.scores
    assert {row.id: row.question for row in result.evaluation.questions}["q3"] == FORGOTTEN
    held = (bench.workspace / "side.sqlite").read_bytes()
    assert b"Mira Sand" not in held, "nor what the right answer was"


def test_an_archive_holds_evaluations_and_watched_questions(bench: Bench) -> None:
    report = bench.evaluate("naive").json
    bench("watch", "add", "Who built Holm Light?")
    file, other = bench.folder / "kb.tar.gz", bench.folder / "other"
    assert bench("archive", str(file)).code == 0
    assert bench.at(other)("restore", str(file)).code == 0
    restored = bench.at(other)("evaluate", "--show", "1", "--json")
    assert restored.json["scores"] == report["scores"]
    assert "Holm Light" in bench.at(other)("watch").out


def test_a_changed_answer_is_shown_after_the_publication(sourced: Bench) -> None:
    question = "Who built Holm Light?"
    sourced("watch", "add", question)
    sourced("watch", "add", "Where was Tomas Reyd born?")
    text = "Holm Light was built by Olle Brandt in 1904, as papers show that were found later."
    rows = [*ROWS[:2], {"id": "light", "title": "Holm Light", "text": text}]
    ran = sourced("index", str(write_rows(sourced.folder / "rows.jsonl", rows)), "--json")
    (change,) = ran.json["changed_answers"]
    assert (change["question"], change["before"], change["generation"]) == (question, 1, 2)
    assert any(line.startswith("- ") and "Mira Sand" in line for line in change["diff"])
    assert any(line.startswith("+ ") and "Olle Brandt" in line for line in change["diff"])
    assert "Olle Brandt" in sourced("watch").out
    assert json.loads(sourced("watch", "run", "--json").out) == [], "nothing was published since"


VALUES = values_of(
    Score(system=system, question=f"q{place}", measure="f1", value=value)
    for system, values in {"a": (1.0, 0.5, 0.0, None), "b": (0.0, 0.5, 0.0, 1.0)}.items()
    for place, value in enumerate(values)
)


def test_a_mean_has_the_same_interval_each_time() -> None:
    rows = mean_scores(VALUES, ["f1"], ["a", "b"])
    assert [(row.system, row.value, row.questions) for row in rows] == [
        ("a", 0.5, 3),
        ("b", 0.375, 4),
    ]
    assert all(0.0 <= row.low < row.value < row.high <= 1.0 for row in rows)
    assert rows == mean_scores(VALUES, ["f1"], ["a", "b"])
    # Of n halves of 0 and 1 the mean deviates by .5 / sqrt(n); the interval is 1.96 times as wide.
    coins = values_of(
        Score(system="c", question=str(n), measure="f1", value=float(n % 2)) for n in range(400)
    )
    (row,) = mean_scores(coins, ["f1"], ["c"])
    assert row.high - row.low == pytest.approx(2 * 1.96 * 0.5 / 20, rel=0.1)


def test_wins_are_counted_for_each_ordered_pair() -> None:
    first, second = wins_by_measure(VALUES, "f1", ["a", "b"], False)
    assert (first.first, first.won, first.lost, first.ties) == ("a", 1, 0, 2)
    assert (second.first, second.won, second.lost, second.ties) == ("b", 0, 1, 2)
    lower = wins_by_measure(VALUES, "f1", ["a", "b"], True)
    assert (lower[0].won, lower[0].lost) == (0, 1)
    assert most_different(VALUES, "f1", 5) == ["q0"]
    tie = Verdict(
        question="q", criterion="overall", first="a", second="b", winner="", orders=((), ())
    )
    verdicts = [tie.model_copy(update={"winner": winner}) for winner in ("a", "a", "b", "")]
    judged = [(row.first, row.won, row.lost, row.ties) for row in wins_by_judge(verdicts)]
    assert judged == [("a", 2, 1, 1), ("b", 1, 2, 1)]
