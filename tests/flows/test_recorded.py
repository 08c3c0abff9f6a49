"""The flows run on Prefect as steps that a person can follow, fail in words, and leave nothing outside this machine."""

import asyncio
import os
from pathlib import Path

import pytest

from flows.index import index
from flows.query import query
from flows.recording import plain
from storage.errors import NoGeneration, SourceNotFound
from storage.records import Answer, IndexReport

pytestmark = pytest.mark.usefixtures("prefect_server")

STEPS = ["load", "chunk", "extract", "dedupe", "summarize", "detect-communities", "report"]
WAIT = 15.0  # seconds: the server learns of task runs a moment later


async def task_runs(flow_run: str, expected: int) -> list[str]:
    """The names of a flow run's task runs, in the order in which they started."""
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterName

    wanted = FlowRunFilter(name=FlowRunFilterName(any_=[flow_run]))
    async with get_client() as client:
        for _ in range(int(WAIT / 0.2)):
            found = await client.read_task_runs(flow_run_filter=wanted)
            if len(found) >= expected and all(run.start_time for run in found):
                break
            await asyncio.sleep(0.2)
    return [run.name for run in sorted(found, key=lambda run: str(run.start_time))]


async def artifact(key: str) -> str:
    from prefect.artifacts import Artifact

    found = await Artifact.aget(key)
    assert found is not None
    return str(found.data)


async def test_an_index_run_is_its_steps_and_ends_in_words(source: Path, tmp_path: Path) -> None:
    workspace = str(tmp_path / "ws")
    state = await index(str(source), workspace=workspace, return_state=True)
    assert state.message is not None
    assert state.message.startswith("Published generation 1 (3 added;")
    report = await state.aresult()
    assert isinstance(report, IndexReport)
    names = await task_runs(f"index {source} into {workspace}", len(STEPS) + 1)
    # Embedding goes on beside the extraction: which of them begins first says nothing.
    assert [name for name in names if name != "embed"] == STEPS
    assert names.index("embed") in {2, 3}
    assert "Generation 1" in await artifact("index-summary")
    assert "documents added" in await artifact("index-figures")


async def test_a_list_of_sources_gives_the_report_itself(source: Path, tmp_path: Path) -> None:
    report = await index([str(source)], workspace=str(tmp_path / "ws"))
    assert (report.generation, report.published) == (1, True)
    again = await index([str(source)], workspace=str(tmp_path / "ws"), return_state=True)
    assert again.message == "Nothing has changed: generation 1 stays, with 3 documents."


async def test_a_failing_step_fails_the_run_in_words(tmp_path: Path) -> None:
    missing = str(tmp_path / "nowhere")
    state = await index(missing, workspace=str(tmp_path / "ws"), return_state=True)
    assert state.is_failed()
    assert state.message is not None
    assert state.message.startswith(f"Source not found: {missing}.")
    with pytest.raises(SourceNotFound):
        await index(missing, workspace=str(tmp_path / "ws"))


async def test_a_question_is_recorded_with_its_answer_and_decisions(
    indexed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRELLIS_THETA", "99")  # memory would answer for retrieval if the question was asked before
    answer = await query("Who designed Orla Bridge?", workspace=str(indexed))
    assert isinstance(answer, Answer)
    assert "Reyd" in answer.answer
    shown = await artifact("answer")
    assert "designed by Tomas Reyd" in shown
    assert f"route {answer.trace.route.type}" in shown
    steps = await task_runs("Who designed Orla Bridge?", 8)
    assert {"rewrite", "retrieve", "answer"} <= set(steps)


async def test_a_question_to_nothing_fails_in_words(tmp_path: Path) -> None:
    with pytest.raises(NoGeneration):
        await query("Who?", workspace=str(tmp_path / "ws"))


def test_the_forms_explain_their_parameters() -> None:
    for form in (index.parameters, query.parameters):
        assert all(field.get("description") for field in form.properties.values()), form.properties


def test_the_entrypoints_of_the_deployments_load() -> None:
    from prefect.flows import load_flow_from_entrypoint

    root = Path(__file__).resolve().parents[2]
    for name in ("index", "query"):
        assert load_flow_from_entrypoint(str(root / "flows" / f"{name}.py") + f":{name}").name == name


def test_nothing_is_reported_to_the_makers_of_prefect() -> None:
    from prefect.settings import get_current_settings

    assert os.environ["DO_NOT_TRACK"] == "1"
    assert get_current_settings().server.analytics_enabled is False


def test_text_of_documents_is_no_markup() -> None:
    assert plain("![x](http://a.example/b) <b>") == r"\!\[x\](http://a.example/b) &lt;b&gt;"
