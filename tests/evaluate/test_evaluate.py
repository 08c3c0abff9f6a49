"""An evaluation: what it asks and asks only once, its gate and its page, and questions that are
watched.
"""

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
from storage.evaluation_records import (
    EvaluationReport,
    Score,
    Verdict,
)
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


def value(report: Any, system: str, measure: str) -> float:
    (mean,) = [
        row["value"]
        for row in report["scores"]
        if (row["system"], row["measure"]) == (system, measure)
    ]
    return float(mean)


def apart_from_time(report: EvaluationReport) -> object:
    """The report without what the clock has a part in, nor what came from the cache."""
    timed = {"scores", "differences", "wins", "costs"}
    kept: dict[str, object] = report.model_dump(exclude=UNEQUAL | timed)
    for name in timed - {"costs"}:
        kept[name] = [
            row for row in getattr(report, name) if getattr(row, "measure", "") != "seconds"
        ]
    clock = {"seconds": True, "cached_calls": True}
    without: Any = {**clock, "by_step": {"__all__": clock}}
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
    long = bench.recorded(
        "long", *(f"{row['answers'][0]}, as was told for many years." for row in QUESTIONS)
    )
    ran = bench.evaluate(
        long, bench.recorded("short", "Reyd", "Velin", "Sand"), more=["--judge", "overall"]
    )
    won = {
        (row["first"], row["second"]): row["won"]
        for row in ran.json["wins"]
        if row["by"] == "overall"
    }
    assert won == {("long", "short"): 3, ("short", "long"): 0}
    assert ran.json["judge"]["judgements"] == 6
    assert calls(scripted) == 6
    page = bench("evaluate", "--show", "1").out
    assert "| row against column | long | short |" in page
    assert "| long | – | 3 : 0 |" in page


def test_a_rubric_is_a_measure_and_the_page_tells_each_step(bench: Bench, scripted: Server) -> None:
    page = bench.folder / "page.html"
    ran = bench.evaluate("mix", more=["--measures", "comprehensiveness", "--page", str(page)])
    assert 0 < value(ran.json, "mix", "comprehensiveness") <= 100
    steps = ran.json["costs"][0]["by_step"]
    assert {step: used["calls"] for step, used in steps.items()} == {"keywords": 3, "answer": 3}
    assert (
        sum(used["input_tokens"] for used in steps.values()) == ran.json["costs"][0]["input_tokens"]
    )
    assert "<td>keywords</td><td>3</td>" in page.read_text(encoding="utf-8")


def kept_answers(workspace: Path) -> int:
    """Of evaluations that have not ended."""
    with sqlite3.connect(workspace / "side.sqlite") as connection:
        if not connection.execute(
            "SELECT 1 FROM sqlite_master WHERE name = 'evaluated_answers'"
        ).fetchone():
            return 0  # the file is being made
        return int(connection.execute("SELECT count(*) FROM evaluated_answers").fetchone()[0])


def test_a_key_in_answers_of_another_program_is_masked(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRELLIS_LM", "openai/m")
    monkeypatch.setenv("TRELLIS_LM_API_KEY", "sk-a-key-of-a-server")
    told = bench.recorded("theirs", "Reyd by sk-a-key-of-a-server", "Velin", "Sand")
    assert bench.evaluate(told).code == 0
    (answer,) = [
        row
        for row in Workspace(bench.workspace).evaluations.read(1).answers
        if row.question == "q1"
    ]
    assert answer.answer is not None
    assert answer.answer.answer == "Reyd by [key masked]"


def test_a_budget_ends_it_and_what_was_answered_is_kept(bench: Bench, scripted: Server) -> None:
    read = bench("ask", "Who is Ana Korb?", "--mode", "naive", "--json").json["usage"][
        "input_tokens"
    ]
    # Room for what one call reads and may write (4096 tokens at most), and for no second one.
    ran = bench.evaluate("naive", more=["--budget-tokens", str(read + 4096 + 300)])
    assert (ran.code, json.loads(bench("evaluate", "--list", "--json").out)) == (3, [])
    before = calls(scripted)
    assert before > 0
    again = bench.evaluate("naive")
    assert (again.code, again.json["number"]) == (0, 1)
    assert scripted.stats()["repeated"] == 0


def test_killed_twice_it_asks_nothing_again_and_ends_as_if_undisturbed(
    bench: Bench, scripted: Server
) -> None:
    systems = (
        "naive",
        "mode=hybrid,effort=low,name=hybrid",
        bench.recorded("other", "Tomas Reyd", "Oslo", "Sand"),
    )
    arguments = [part for system in systems for part in ("--system", system)]
    command = [
        sys.executable,
        "-m",
        "flows",
        "evaluate",
        "--workspace",
        str(bench.workspace),
        "--questions",
        str(bench.questions),
        *arguments,
    ]
    copy = copy_of(bench.workspace, bench.folder / "copy")
    for answered in (2, 4):
        # The calls after those are never answered: they are under way when the kill comes.
        scripted.reset()
        scripted.misbehave({"kind": "hang", "step": "answer", "nth": 3, "times": 9, "seconds": 600})
        process = subprocess.Popen(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)})
        try:
            least = answered + len(QUESTIONS)
            wait_for(
                partial(lambda least: kept_answers(bench.workspace) >= least, least),
                "the first answers",
            )
        finally:
            process.kill()
            process.wait()
        wait_for(lambda: scripted.stats()["in_flight"] == 0, "the end of its calls")
    scripted.misbehave()
    report = asyncio.run(run_evaluation(systems, bench.questions, workspace=bench.workspace))
    assert report.reused == 4 + len(QUESTIONS)
    assert scripted.stats()["repeated"] == 2, (
        "only what was under way at the second kill is asked again"
    )
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
    assert worse.json["gate"][0] | {"accepted": 0} == {
        "measure": "exact_match",
        "system": "kb",
        "margin": 0.1,
        "value": 0.6667,
        "before": 1.0,
        "accepted": 0,
        "holds": False,
    }
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
    assert "http" not in page.replace("http-equiv", ""), "nothing is loaded"
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
    assert len(result.scores) > 0
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


QUESTION = "Who built Holm Light?"


def change_a_document(bench: Bench) -> Path:
    text = "Holm Light was built by Olle Brandt in 1904, as papers show that were found later."
    rows = [*ROWS[:2], {"id": "light", "title": "Holm Light", "text": text}]
    return write_rows(bench.folder / "rows.jsonl", rows)


def test_a_changed_answer_is_shown_after_the_publication(sourced: Bench) -> None:
    sourced("watch", "add", QUESTION)
    sourced("watch", "add", "Where was Tomas Reyd born?")
    ran = sourced("index", str(change_a_document(sourced)), "--json")
    (change,) = ran.json["changed_answers"]
    assert (change["question"], change["before"], change["generation"]) == (QUESTION, 1, 2)
    assert any(line.startswith("- ") and "Mira Sand" in line for line in change["diff"])
    assert any(line.startswith("+ ") and "Olle Brandt" in line for line in change["diff"])
    shown = sourced("watch").out
    assert "Olle Brandt" in shown
    assert json.loads(sourced("watch", "run", "--json").out) == [], "nothing was published since"


VALUES = values_of(
    Score(system=system, question=f"q{place}", measure="f1", value=value)
    for system, values in {"a": (1.0, 0.5, 0.0, None), "b": (0.0, 0.5, 0.0, 1.0)}.items()
    for place, value in enumerate(values)
)


def test_a_mean_has_an_interval_that_the_seed_decides() -> None:
    rows = mean_scores(VALUES, ["f1"], ["a", "b"])
    assert [(row.system, row.value, row.questions) for row in rows] == [
        ("a", 0.5, 3),
        ("b", 0.375, 4),
    ]
    assert all(0.0 <= row.low < row.value < row.high <= 1.0 for row in rows)
    assert rows == mean_scores(VALUES, ["f1"], ["a", "b"])
    # Of n equal halves of 0 and 1 the mean has the deviation .5 / sqrt(n): the interval is about
    # 1.96 of it.
    coins = values_of(
        Score(system="c", question=str(n), measure="f1", value=float(n % 2)) for n in range(400)
    )
    (row,) = mean_scores(coins, ["f1"], ["c"])
    assert row.high - row.low == pytest.approx(2 * 1.96 * 0.5 / 20, rel=0.1)


def test_wins_and_what_differs_most() -> None:
    won = {
        (row.first, row.second): (row.won, row.lost, row.ties)
        for row in wins_by_measure(VALUES, "f1", ["a", "b"], False)
    }
    assert won == {("a", "b"): (1, 0, 2), ("b", "a"): (0, 1, 2)}
    lower = wins_by_measure(VALUES, "f1", ["a", "b"], True)
    assert (lower[0].won, lower[0].lost) == (0, 1)
    assert most_different(VALUES, "f1", 5) == ["q0"]
    orders = (("a",), ("a",))
    verdicts = [
        Verdict(
            question=f"q{n}",
            criterion="overall",
            first="a",
            second="b",
            winner=winner,
            orders=orders,
        )
        for n, winner in enumerate(("a", "a", "b", ""))
    ]
    judged = {
        (row.first, row.second): (row.won, row.lost, row.ties) for row in wins_by_judge(verdicts)
    }
    assert judged == {("a", "b"): (2, 1, 1), ("b", "a"): (1, 2, 1)}
