"""An evaluation: what it asks and asks only once, its gate and its page, and questions that are watched."""

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
from flows.operations.systems import parse_system
from storage.errors import SettingsError, UsageError
from storage.evaluation_records import (
    EvaluatedAnswer,
    EvaluationReport,
    Feedback,
    Score,
    Verdict,
)
from storage.evaluations import FORGOTTEN
from storage.workspace import Workspace
from tasks.evaluate.compare import (
    differences,
    mean_scores,
    most_different,
    values_of,
    wins_by_judge,
    wins_by_measure,
)
from tasks.evaluate.measures import plain_answer
from tests.copying import copy_of
from tests.evaluate.conftest import QUESTIONS, ROWS, Bench
from tests.patience import wait_for
from tests.server.client import Server
from tests.workspaces import write_rows

ROOT = Path(__file__).parents[2]
UNEQUAL = {"number", "reused", "seconds"}


def value(report: Any, system: str, measure: str) -> float:
    (mean,) = [row["value"] for row in report["scores"] if (row["system"], row["measure"]) == (system, measure)]
    return float(mean)


def apart_from_time(report: EvaluationReport) -> object:
    """The report without what the clock has a part in, nor what came from the cache."""
    timed = {"scores", "differences", "wins", "costs"}
    kept: dict[str, object] = report.model_dump(exclude=UNEQUAL | timed)
    for name in timed - {"costs"}:
        kept[name] = [row for row in getattr(report, name) if getattr(row, "measure", "") != "seconds"]
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


def test_what_was_rated_is_a_question_set(bench: Bench) -> None:
    assert "No answer was rated" in bench("evaluate", "--questions", "feedback", "--system", "naive").err
    rated = Workspace(bench.workspace).database.feedback
    for row in (
        {"question": "Who built Holm Light?", "answer": "Mira Sand [1]", "helpful": True, "documents": ["light"]},
        {"question": "Where was he born?", "answer": "Holm.", "helpful": False, "note": "Velin", "history": ["Tomas"]},
        {"question": "Who is Ana Korb?", "answer": "No idea.", "helpful": False},
    ):  # fmt: skip
        rated.put(Feedback.model_validate({"id": row["question"], "generation": 1, "at": "2026-01-01", **row}))
    recorded = [
        {"id": "Who built Holm Light?", "answer": "Mira Sand"}, {"id": "Where was he born?", "answer": "Holm"},
        {"id": "Who is Ana Korb?", "answer": ""},
    ]  # fmt: skip
    other = f"answers={write_rows(bench.folder / 'other.jsonl', recorded)},name=other"
    ran = bench("evaluate", "--questions", "feedback", "--system", "auto", "--system", other, "--json")
    assert (ran.json["questions"], value(ran.json, "other", "exact_match")) == (3, 0.5)
    assert value(ran.json, "auto", "answer_in_text") == 1.0, "the history says who he is"
    assert asyncio.run(run_evaluation(["auto"], "feedback", workspace=bench.workspace)).questions == 3


def test_without_a_model_nothing_is_judged(bench: Bench) -> None:
    ran = bench.evaluate("naive", "struct", more=["--judge"])
    assert ran.code == 2
    assert "judge" in ran.err


def test_a_judge_compares_every_two_systems(bench: Bench, scripted: Server) -> None:
    long = bench.recorded("long", *(f"{row['answers'][0]}, as was told for many years." for row in QUESTIONS))
    ran = bench.evaluate(long, bench.recorded("short", "Reyd", "Velin", "Sand"), more=["--judge", "overall"])
    won = {(row["first"], row["second"]): row["won"] for row in ran.json["wins"] if row["by"] == "overall"}
    assert won == {("long", "short"): 3, ("short", "long"): 0}
    assert ran.json["judge"]["judgements"] == 6
    assert calls(scripted) == 6
    page = bench("evaluate", "--show", "1").out
    assert "| row against column | long | short |" in page
    assert "| long | – | 3 : 0 |" in page


def test_the_judge_is_held_against_people(bench: Bench, scripted: Server) -> None:
    said = [{"question": "q1", "criterion": "overall", "first": "short", "second": "long", "winner": "long"},
            {"question": "q2", "criterion": "overall", "first": "short", "second": "long", "winner": ""}]  # fmt: skip
    people = write_rows(bench.folder / "people.jsonl", said)
    systems = bench.recorded("short", "Reyd", "Velin", "Sand"), bench.recorded("long", *["A long answer."] * 3)
    ran = bench.evaluate(*systems, more=["--judge", "--people", str(people)])
    assert (ran.json["judge"]["people"], ran.json["judge"]["people_agree"]) == (2, 0.5)
    page = bench.folder / "page.md"
    told = "people with it in 0.500 of 2"
    assert told in bench("evaluate", "--show", "1", "--people", str(people), "--page", str(page)).out
    assert told in page.read_text(encoding="utf-8")
    for rows, words in (([{**said[0], "question": "q9"}], "no verdict on"), ([{"question": "q1"}], "no verdicts of")):
        write_rows(people, rows)
        refused = bench("evaluate", "--show", "1", "--people", str(people))
        assert (refused.code, words in refused.err) == (2, True)


def test_a_rubric_is_a_measure_and_the_page_tells_each_step(bench: Bench, scripted: Server) -> None:
    page = bench.folder / "page.html"
    ran = bench.evaluate("mix", more=["--measures", "comprehensiveness", "--page", str(page)])
    assert 0 < value(ran.json, "mix", "comprehensiveness") <= 100
    steps = ran.json["costs"][0]["by_step"]
    assert {step: used["calls"] for step, used in steps.items()} == {"keywords": 3, "answer": 3}
    assert sum(used["input_tokens"] for used in steps.values()) == ran.json["costs"][0]["input_tokens"]
    assert "<td>keywords</td><td>3</td>" in page.read_text(encoding="utf-8")


def test_a_system_with_memory_begins_with_none_and_shares_it_with_nobody(bench: Bench) -> None:
    for row in QUESTIONS:
        bench("ask", str(row["question"]), "--mode", "struct")
    memory = Workspace(bench.workspace).database.memory
    assert (before := memory.entries())
    systems = [f"mode=struct,memory=on,theta=1,name={name}" for name in "ab"]
    ran = bench.evaluate(*systems, more=["--measures", "from_memory,external"])
    assert [value(ran.json, name, "from_memory") for name in "ab"] == [0, 0]
    assert memory.entries() == before
    again = {**QUESTIONS[0], "id": "again"}
    write_rows(
        bench.questions,
        [QUESTIONS[0], *[{**row, "id": f"{row['id']} {n}"} for row in QUESTIONS for n in range(9)], again],
    )
    assert value(bench.evaluate(systems[0], more=["--measures", "from_memory"]).json, "a", "from_memory") > 0


def test_what_an_earlier_version_stored_is_read(bench: Bench) -> None:
    bench("watch", "add", QUESTION)
    assert bench.evaluate("naive", more=["--accept"]).code == 0
    store = Workspace(bench.workspace).evaluations
    gone = ('"fallback":', '"a_field_of_an_earlier_version":[1],"fallback":')
    assert [row.number for row in store.list()] == [1]
    with sqlite3.connect(bench.workspace / "side.sqlite") as side:
        side.execute("UPDATE evaluations SET result = replace(result, ?, ?)", gone)
        side.execute("UPDATE watched_questions SET watched = replace(watched, ?, ?)", gone)
    assert bench("evaluate", "--show", "1").code == 0
    assert QUESTION in bench("watch").out


def kept_answers(workspace: Path) -> int:
    """Of evaluations that have not ended."""
    with sqlite3.connect(workspace / "side.sqlite") as connection:
        if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'evaluated_answers'").fetchone():
            return 0  # the file is being made
        return int(connection.execute("SELECT count(*) FROM evaluated_answers").fetchone()[0])


def test_answers_of_a_stopped_evaluation_go_with_the_caches(bench: Bench) -> None:
    running = Workspace(bench.workspace).database.running_answers
    running.put("evl", EvaluatedAnswer(system="naive", question="q1", answer=plain_answer("?", "Reyd")))
    assert kept_answers(bench.workspace) == 1
    assert bench("clean", "--caches").code == 0
    assert kept_answers(bench.workspace) == 0


def test_a_key_in_answers_of_another_program_is_masked(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRELLIS_LM", "openai/m")
    monkeypatch.setenv("TRELLIS_LM_API_KEY", "sk-a-key-of-a-server")
    told = bench.recorded("theirs", "Reyd by sk-a-key-of-a-server", "Velin", "Sand")
    assert bench.evaluate(told).code == 0
    (answer,) = [row for row in Workspace(bench.workspace).evaluations.read(1).answers if row.question == "q1"]
    assert answer.answer is not None
    assert answer.answer.answer == "Reyd by [key masked]"


def test_a_budget_ends_it_and_what_was_answered_is_kept(bench: Bench, scripted: Server) -> None:
    read = bench("ask", "Who is Ana Korb?", "--mode", "naive", "--json").json["usage"]["input_tokens"]
    # Room for what one call reads and may write (4096 tokens at most), and for no second one.
    ran = bench.evaluate("naive", more=["--budget-tokens", str(read + 4096 + 300)])
    assert (ran.code, json.loads(bench("evaluate", "--list", "--json").out)) == (3, [])
    before = calls(scripted)
    assert before > 0
    again = bench.evaluate("naive")
    assert (again.code, again.json["number"]) == (0, 1)
    assert scripted.stats()["repeated"] == 0


def test_killed_twice_it_asks_nothing_again_and_ends_as_if_undisturbed(bench: Bench, scripted: Server) -> None:
    systems = ("naive", "mode=hybrid,effort=low,name=hybrid", bench.recorded("other", "Tomas Reyd", "Oslo", "Sand"))
    arguments = [part for system in systems for part in ("--system", system)]
    command = [
        sys.executable, "-m", "flows", "evaluate", "--workspace", str(bench.workspace), "--questions",
        str(bench.questions), *arguments,
    ]  # fmt: skip
    copy = copy_of(bench.workspace, bench.folder / "copy")
    for answered in (2, 4):
        # The calls after those are never answered: they are under way when the kill comes.
        scripted.reset()
        scripted.misbehave({"kind": "hang", "step": "answer", "nth": 3, "times": 9, "seconds": 600})
        process = subprocess.Popen(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)})
        try:
            least = answered + len(QUESTIONS)
            wait_for(partial(lambda least: kept_answers(bench.workspace) >= least, least), "the first answers")
        finally:
            process.kill()
            process.wait()
        wait_for(lambda: scripted.stats()["in_flight"] == 0, "the end of its calls")
    scripted.misbehave()
    report = asyncio.run(run_evaluation(systems, bench.questions, workspace=bench.workspace))
    assert report.reused == 4 + len(QUESTIONS)
    assert scripted.stats()["repeated"] == 2, "only what was under way at the second kill is asked again"
    undisturbed = asyncio.run(run_evaluation(systems, bench.questions, workspace=copy))
    assert undisturbed.reused == 0
    assert apart_from_time(report) == apart_from_time(undisturbed)


def test_a_gate_holds_back_what_got_worse(bench: Bench) -> None:
    gate = bench.folder / "gate.toml"
    gate.write_text('[[gate]]\nmeasure = "exact_match"\nsystem = "kb"\nmargin = 0.1\n', encoding="utf-8")
    good = bench.recorded("kb", "Tomas Reyd", "Velin", "Mira Sand")
    nothing = bench.evaluate(good, more=["--gate", str(gate)])
    assert (nothing.code, "accepted" in nothing.err) == (2, True)
    assert bench.evaluate(good, more=["--accept"]).code == 0
    assert bench.evaluate(good, more=["--gate", str(gate)]).code == 0
    worse = bench.evaluate(bench.recorded("kb", "Tomas Reyd", "Oslo", "Mira Sand"), more=["--gate", str(gate)])
    assert worse.code == 6
    assert worse.json["gate"][0] | {"accepted": 0} == {
        "measure": "exact_match", "system": "kb", "margin": 0.1, "value": 0.6667, "before": 1.0, "accepted": 0,
        "holds": False,
    }  # fmt: skip
    assert "exact_match of kb went from 1 to 0.6667" in worse.err


def test_the_page_is_text_whatever_answers_hold(bench: Bench) -> None:
    evil = '<script>alert(1)</script> <img src=x onerror="alert(2)"> [x](javascript:alert(3))'
    write = [{**QUESTIONS[0], "question": f"Who {evil}?"}, *QUESTIONS[1:]]
    bench.questions.write_text("".join(json.dumps(row) + "\n" for row in write), encoding="utf-8")
    systems = (bench.recorded("good", "Tomas Reyd", "Velin", "Mira Sand"), bench.recorded("evil", evil, evil, evil))
    html, markdown = bench.folder / "page.html", bench.folder / "page.md"
    assert bench.evaluate(*systems, more=["--page", str(html)]).code == 0
    assert bench("evaluate", "--show", "1", "--page", str(markdown), "--against", "1").code == 0
    page = html.read_text(encoding="utf-8")
    assert "&lt;script&gt;alert(1)" in page
    assert "<script" not in page
    assert "<img" not in page
    assert "http" not in page.replace("http-equiv", ""), "nothing is loaded"
    assert "<svg" in page
    text = markdown.read_text(encoding="utf-8")
    assert "<script" not in text
    assert "[x](" not in text
    assert "before 1" in text


def test_the_page_marks_the_best_and_nothing_where_all_are_alike(bench: Bench) -> None:
    page = bench.folder / "page.html"
    names = {"one": "Velin", "two": "Velin", "three": "Nobody"}
    systems = [bench.recorded(name, "Tomas Reyd", place, "Mira Sand") for name, place in names.items()]
    for count, marked in ((2, 0), (3, 2)):
        more = ["--measures", "exact_match", "--page", str(page)]
        assert bench.evaluate(*systems[:count], more=more).code == 0
        assert page.read_text(encoding="utf-8").count('class="best"') == marked


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


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("mode=naive,nonsense=1", SettingsError),
        ("mode=", UsageError),
        ("lm_api_key=x", UsageError),
        ("lm_base_url=https://me:secret@host/v1", UsageError),
        ("k=many", UsageError),
    ],
)
def test_a_system_that_cannot_be_is_refused(text: str, error: type[Exception], bench: Bench) -> None:
    with pytest.raises(error):
        asyncio.run(run_evaluation([text], bench.questions, workspace=bench.workspace))


def test_two_systems_need_two_names_and_questions_what_a_measure_needs(bench: Bench) -> None:
    assert parse_system("mix").mode == "mix"
    assert "two" in bench.evaluate("naive", "mode=naive").err.lower()
    bench.questions.write_text('{"id": "a", "question": "Who?"}\n', encoding="utf-8")
    ran = bench.evaluate("naive", more=["--measures", "f1"])
    assert (ran.code, "needs answers" in ran.err) == (2, True)


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


def test_a_watched_question_that_fails_does_not_fail_the_run(sourced: Bench) -> None:
    sourced("watch", "add", QUESTION, "--mode", "hyde")  # which needs a model
    ran = sourced("index", str(change_a_document(sourced)), "--json")
    assert (ran.code, ran.json["published"]) == (0, True)
    assert ran.json["changed_answers"][0]["error"]


def test_questions_are_removed_and_nothing_is_asked_without_any(sourced: Bench) -> None:
    name = sourced("watch", "add", QUESTION, "--json").json["id"]
    assert sourced("watch", "remove", name).code == 0
    assert sourced("watch", "remove", name).code == 2
    assert json.loads(sourced("watch", "--json").out) == []
    assert sourced("watch", "nonsense").code == 2
    assert sourced("index", str(change_a_document(sourced)), "--json").json["changed_answers"] == []


VALUES = values_of(
    Score(system=system, question=f"q{place}", measure="f1", value=value)
    for system, values in {"a": (1.0, 0.5, 0.0, None), "b": (0.0, 0.5, 0.0, 1.0)}.items()
    for place, value in enumerate(values)
)


def test_a_mean_has_an_interval_that_the_seed_decides() -> None:
    rows = mean_scores(VALUES, ["f1"], ["a", "b"])
    assert [(row.system, row.value, row.questions) for row in rows] == [("a", 0.5, 3), ("b", 0.375, 4)]
    assert all(0.0 <= row.low < row.value < row.high <= 1.0 for row in rows)
    assert rows == mean_scores(VALUES, ["f1"], ["a", "b"])
    # Of n equal halves of 0 and 1 the mean has the deviation .5 / sqrt(n): the interval is about 1.96 of it.
    coins = values_of(Score(system="c", question=str(n), measure="f1", value=float(n % 2)) for n in range(400))
    (row,) = mean_scores(coins, ["f1"], ["c"])
    assert row.high - row.low == pytest.approx(2 * 1.96 * 0.5 / 20, rel=0.1)


def test_differences_are_paired_over_the_questions_of_both() -> None:
    (row,) = differences(VALUES, ["f1"], ["a", "b"])
    assert row.value == pytest.approx(1 / 3)
    assert row.questions == 3


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
        Verdict(question=f"q{n}", criterion="overall", first="a", second="b", winner=winner, orders=orders)
        for n, winner in enumerate(("a", "a", "b", ""))
    ]
    judged = {(row.first, row.second): (row.won, row.lost, row.ties) for row in wins_by_judge(verdicts)}
    assert judged == {("a", "b"): (2, 1, 1), ("b", "a"): (1, 2, 1)}
