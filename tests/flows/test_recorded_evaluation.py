"""The flow `evaluate` is a run with steps and a page, and a watched question that changes is an event."""

from pathlib import Path
from typing import Any

import pytest

from flows.evaluate import evaluate
from flows.index import index
from flows.operations.watch import ask_watched, watch
from flows.runtime import open_runtime
from flows.settings import load_settings
from flows.usage import short
from storage.errors import EvaluationGate, UsageError
from storage.evaluation_records import EvaluationReport
from tests.copying import copy_of
from tests.flows.conftest import ROWS
from tests.flows.recorder import artifact, events, task_runs
from tests.workspaces import write_rows

pytestmark = pytest.mark.usefixtures("prefect_server", "unembedded")


async def test_an_evaluation_is_its_steps_with_a_page(indexed: Path, tmp_path: Path) -> None:
    workspace = str(copy_of(indexed, tmp_path / "ws"))
    questions = write_rows(
        tmp_path / "q.jsonl", [{"id": "a", "question": "Who designed Orla Bridge?", "answers": ["Tomas Reyd"]}]
    )
    report = await evaluate(["naive", "mode=struct"], str(questions), workspace=workspace)
    assert isinstance(report, EvaluationReport)
    assert (report.number, len(report.scores) > 0) == (1, True)
    runs = await task_runs(short(f"evaluate 2 systems on {questions}", 90), {"publish-evaluation", "compare"}, 6)
    answering = ("answer-questions", {"load-questions"})
    assert runs == [
        ("load-questions", set()), answering, answering, ("score", {"answer-questions"}),
        ("publish-evaluation", {"score"}), ("compare", {"publish-evaluation"}),
    ]  # fmt: skip
    assert "# Evaluation 1" in await artifact("evaluation")
    gate, page = tmp_path / "gate.toml", tmp_path / "page.md"
    gate.write_text('[[gate]]\nmeasure = "answer_in_text"\nsystem = "kb"\nmargin = 0.1\n', encoding="utf-8")
    named: dict[str, Any] = {"workspace": workspace, "gate": str(gate), "page": str(page)}
    with pytest.raises(UsageError, match="No accepted evaluation"):
        await evaluate(["mode=naive,name=kb"], str(questions), **named)
    await evaluate(["mode=naive,name=kb"], str(questions), workspace=workspace, accept=True)
    report = await evaluate(["mode=naive,name=kb"], str(questions), **named)
    assert [check.holds for check in report.gate] == [True]
    assert page.read_text(encoding="utf-8").startswith(f"# Evaluation {report.number}")
    worse = write_rows(tmp_path / "worse.jsonl", [{"id": "a", "answer": "Nobody"}])
    with pytest.raises(EvaluationGate, match="answer_in_text of kb went from 1 to 0"):
        await evaluate([f"answers={worse},name=kb"], str(questions), **named)
    with pytest.raises(UsageError):
        await evaluate(["naive"], str(tmp_path / "nowhere.jsonl"), workspace=workspace)


async def test_a_watched_answer_that_changes_is_an_event_and_on_the_page(tmp_path: Path) -> None:
    workspace, source = tmp_path / "ws", write_rows(tmp_path / "docs.jsonl", ROWS)
    await index(str(source), workspace=str(workspace))
    runtime = open_runtime(load_settings({"workspace": workspace}))
    watch("Where was Tomas Reyd born?", "auto", runtime)
    assert await ask_watched(runtime) == ()
    write_rows(source, [{**row, "text": str(row["text"]).replace("Velin", "Oslo")} for row in ROWS])
    report = await index(str(source), workspace=str(workspace))
    (change,) = report.changed_answers
    (told,) = await events("trellis.answer.changed", 1, of=str(workspace))
    assert told["payload"]["question"] == change.question == "Where was Tomas Reyd born?"
    page = await artifact("index-summary")
    assert "Watched questions that changed (1)" in page
    assert "Oslo" in page
