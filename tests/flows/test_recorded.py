"""The flows run on Prefect as steps that a person can follow, fail in words, and leave nothing outside this machine."""

import json
import logging
import os
import subprocess
import sys
from pathlib import Path

import prefect
import pytest

from flows.index import index
from flows.modes.registry import mode_names
from flows.orchestration.artifacts import Progress, put
from flows.orchestration.recording import begin
from flows.query import query
from flows.settings import load_settings
from prompts.engine.errors import BadKey, ModelUnavailable
from prompts.engine.key_masking import MASK
from storage.answer_records import Answer
from storage.errors import BudgetReached, NoGeneration, SourceNotFound
from storage.run_records import IndexReport
from tasks.step import step
from tests.flows.recorder import artifact, events, logs, run_of, task_runs
from tests.patience import PATIENCE

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


SHOW = (
    "import flows.orchestration.recording; from prefect.settings import get_current_settings;"
    "print(get_current_settings().api.ssl_cert_file)"
)


@pytest.mark.parametrize(
    ("environment", "file"),
    [
        ({"PREFECT_API_URL": "http://prefect.example:4200/api"}, "no_authority.pem"),
        ({}, "no_authority.pem"),
        ({"PREFECT_API_URL": "https://prefect.example/api"}, None),
        ({"PREFECT_API_URL": "http://prefect.example/api", "PREFECT_API_SSL_CERT_FILE": "ours.pem"}, "ours.pem"),
    ],
    ids=["plain", "temporary server", "encrypted", "named by the person"],
)
def test_certificates_are_spared_over_plain_http_alone(
    environment: dict[str, str], file: str | None, tmp_path: Path
) -> None:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    shown = subprocess.run(
        [sys.executable, "-c", SHOW], env=clean | environment | {"PREFECT_HOME": str(tmp_path)}, capture_output=True,
        text=True, check=True, timeout=PATIENCE,
    ).stdout.strip()  # fmt: skip
    assert Path(shown).name == file or (file is None and "no_authority" not in shown)


SECRET = "sk-never-to-be-shown-0815"


async def everything() -> str:
    """All that the server knows of runs, their logs, states, parameters, artifacts and events, as one text."""
    from prefect.client.orchestration import get_client

    asked = {
        "/flow_runs/filter": {}, "/task_runs/filter": {}, "/logs/filter": {"sort": "TIMESTAMP_DESC"},
        "/artifacts/filter": {},
        "/events/filter": {"limit": 50},
    }  # fmt: skip
    async with get_client() as client:
        runs = await client.read_flow_runs()
        parts = [json.dumps([state.model_dump(mode="json") for state in await client.read_flow_run_states(run.id)])
                 for run in runs]  # fmt: skip
        for path, body in asked.items():
            answer = await client._client.post(path, json=body)
            answer.raise_for_status()
            parts.append(answer.text)
    return "\n".join(parts)


@step("leaky")
async def leaky() -> None:
    logging.getLogger("tasks.leaky").info("step says %s", SECRET)
    try:
        raise ValueError(f"header Authorization: Bearer {SECRET}")
    except ValueError as error:
        raise RuntimeError(f"call to https://user:{SECRET}@a.example failed") from error


@prefect.flow(name="leaky")
async def leaky_flow() -> None:
    begin(load_settings())
    for layer in ("flows", "prompts", "storage"):
        logging.getLogger(f"{layer}.leaky").info("%s says %s", layer, SECRET)
    await put("leaky", f"the key is {SECRET}", SECRET)
    try:
        await leaky()
    except RuntimeError:
        logging.getLogger("flows.leaky").exception("with a traceback")
        raise


async def test_logs_of_all_layers_reach_the_page_and_no_key_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRELLIS_LM", "openai/some-model")
    monkeypatch.setenv("TRELLIS_LM_API_KEY", SECRET)
    state = await leaky_flow(return_state=True)
    assert state.is_failed()
    lines = "\n".join(await logs(await run_of(await run_name(state))))
    for said in ("flows says", "prompts says", "storage says", "step says"):
        assert f"{said} {MASK}" in lines
    assert "Traceback" in lines
    assert await artifact("leaky") == f"the key is {MASK}"
    known = await everything()
    assert "step says" in known
    assert SECRET not in known


async def run_name(state: object) -> str:
    from prefect.client.orchestration import get_client

    async with get_client() as client:
        return (await client.read_flow_run(state.state_details.flow_run_id)).name  # type: ignore[attr-defined]


async def test_a_step_waits_for_a_model_that_cannot_be_reached_and_for_nothing_else() -> None:
    tried: list[str] = []

    @step("patient", waits=(0.0, 0.0))
    async def patient(error: Exception) -> str:
        tried.append(type(error).__name__)
        if len(tried) == 3:
            return "came back"
        raise error

    @prefect.flow(name="patient")
    async def run(error: Exception) -> str:
        return await patient(error)

    assert await run(ModelUnavailable("away")) == "came back"
    tried.clear()
    with pytest.raises(BadKey):
        await run(BadKey("wrong"))
    assert tried == ["BadKey"]


async def test_progress_is_shown_while_it_goes_on_and_at_its_end() -> None:
    import asyncio

    from prefect.artifacts import Artifact

    seen: list[str] = []

    @prefect.flow(name="progressing")
    async def long_run() -> None:
        progress = Progress()
        async with progress.shown():
            progress.tell("slowly", 60, 120)
            async with asyncio.timeout(90):
                while (found := await Artifact.aget("progress-slowly")) is None:  # noqa: ASYNC110 -- the server
                    await asyncio.sleep(0.2)
            seen.append(str(found.data))
            progress.tell("slowly", 120, 120)

    @prefect.flow(name="short")
    async def short_run() -> None:
        progress = Progress()
        async with progress.shown():
            progress.tell("brief", 1, 1)

    await long_run()
    assert float(seen[0]) == 50
    assert float(await artifact("progress-slowly")) == 100
    await short_run()
    with pytest.raises(AssertionError):
        await artifact("progress-brief")
