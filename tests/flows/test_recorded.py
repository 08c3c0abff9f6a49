"""The flows run on Prefect as steps that a person can follow, fail in words, and leave nothing outside this machine."""

from pathlib import Path

import pytest

from flows.index import index
from flows.modes.registry import mode_names
from flows.query import query
from storage.answer_records import Answer
from storage.errors import BudgetReached, NoGeneration, SourceNotFound
from storage.run_records import IndexReport
from tests.flows.recorder import artifact, events, logs, run_of, task_runs

pytestmark = pytest.mark.usefixtures("prefect_server")

STEPS = ["load", "chunk", "extract", "dedupe", "summarize", "detect-communities", "report"]
IN_TURN = ["load", "chunk", "extract", "dedupe", "report"]


async def test_an_index_run_is_its_steps_and_ends_in_words(source: Path, tmp_path: Path) -> None:
    workspace = str(tmp_path / "ws")
    state = await index(str(source), workspace=workspace, return_state=True)
    assert state.message is not None
    assert state.message.startswith("Published generation 1 (3 added;")
    report = await state.aresult()
    assert isinstance(report, IndexReport)
    names = await task_runs(f"index {source} into {workspace}", (), len(STEPS) + 1)
    # Some steps go on beside others: which of two begins first says nothing.
    assert sorted(names) == sorted([*STEPS, "embed"])
    assert [name for name in names if name in IN_TURN] == IN_TURN
    assert "Generation 1" in await artifact("index-summary")
    assert "documents added" in await artifact("index-figures")


async def test_a_list_of_sources_gives_the_report_itself_and_minutes_are_kept(source: Path, tmp_path: Path) -> None:
    workspace = str(tmp_path / "ws")
    with pytest.raises(BudgetReached, match="minutes"):
        await index([str(source)], workspace=workspace, minutes=0.00001)
    assert list((tmp_path / "ws").glob("staging/*")) == []
    report = await index([str(source)], workspace=workspace, minutes=5)
    assert (report.generation, report.published) == (1, True)
    again = await index([str(source)], workspace=workspace, return_state=True)
    assert again.message == "Nothing has changed: generation 1 stays, with 3 documents."


async def test_a_failing_run_fails_in_words_and_is_an_event(tmp_path: Path) -> None:
    missing = str(tmp_path / "nowhere")
    state = await index(missing, workspace=str(tmp_path / "ws"), return_state=True)
    assert state.is_failed()
    assert str(state.message).startswith(f"Source not found: {missing}.")
    (told,) = await events("trellis.index.failed", 1, of=str(tmp_path))
    assert told["payload"]["reason"].startswith(f"Source not found: {missing}.")
    assert "The run failed. Nothing is published" in "\n".join(await logs(await run_of(f"index {missing}")))
    with pytest.raises(SourceNotFound):
        await index(missing, workspace=str(tmp_path / "ws"))
    with pytest.raises(NoGeneration):
        await query("Who?", workspace=str(tmp_path / "ws"))


async def test_a_question_is_recorded_with_its_answer_and_decisions(
    indexed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRELLIS_THETA", "99")  # memory would answer for retrieval if the question was asked before
    answer = await query("Who designed Orla Bridge?", workspace=str(indexed))
    assert isinstance(answer, Answer)
    assert "Reyd" in answer.answer
    shown = await artifact("answer")
    assert "designed by Tomas Reyd" in shown
    assert answer.trace.route.reason in shown
    wanted = {"rewrite", "choose", "retrieve", "answer"}
    assert wanted <= set(await task_runs("Who designed Orla Bridge?", wanted))


async def test_a_published_generation_is_an_event_and_an_unchanged_one_is_none(source: Path, tmp_path: Path) -> None:
    workspace = tmp_path / "My ws"
    for _ in range(2):
        await index(str(source), workspace=str(workspace))
    await index(str(source), workspace=str(tmp_path / "later"))  # told after both
    told = await events("trellis.index.published", 2, of=str(tmp_path))
    (mine,) = [event for event in told if event["resource"]["prefect.resource.name"] == str(workspace)]
    assert mine["resource"]["prefect.resource.id"].startswith("trellis.workspace.")
    assert mine["resource"]["prefect.resource.id"].endswith("-my-ws")
    assert mine["payload"]["generation"] == 1
    assert mine["payload"]["documents"]["added"] == 3
    assert any(related["prefect.resource.role"] == "flow-run" for related in mine["related"])


def test_the_forms_explain_their_parameters() -> None:
    for form in (index.parameters, query.parameters):
        assert all(field.get("description") for field in form.properties.values()), form.properties


def test_the_forms_offer_what_there_is() -> None:
    asked = query.parameters.properties
    assert asked["mode"]["enum"] == list(mode_names())
    assert asked["structure"]["anyOf"][0]["enum"] == ["table", "graph", "algorithm", "catalogue", "chunk"]
    assert (asked["k"]["minimum"], asked["k"]["maximum"], asked["k"]["default"]) == (1, 100, 8)
    assert query.parameters.required == ["question"]
    assert index.parameters.required == ["source"]
