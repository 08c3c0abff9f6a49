"""Flows on Prefect: steps to follow, ends in words, events, and no key anywhere."""

import logging
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, get_args

import dspy
import pytest
from prefect import flow
from prefect.artifacts import Artifact
from prefect.blocks.system import Secret
from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import Artifact as StoredArtifact
from prefect.context import TaskRunContext
from pydantic import SecretStr

from flows.evaluate import evaluate
from flows.index import index
from flows.modes.registry import mode_names
from flows.operations.watch import ask_watched, watch
from flows.orchestration.artifacts import Progress, put
from flows.orchestration.recording import recorded
from flows.orchestration.run_folder import PAGE, RECORDED
from flows.query import query
from flows.runtime import open_runtime
from prompts.engine.errors import BadKey, ModelUnavailable
from prompts.engine.key_masking import MASK
from storage.answer_records import Answer, StructureType
from storage.errors import EvaluationGate, NoGeneration, SettingsError, SourceNotFound
from storage.run_records import IndexReport
from tasks.retrying import is_tried_again
from tasks.step import MODEL, step
from tests.copying import copy_of
from tests.flows.conftest import ROWS, Command
from tests.flows.recorder import artifact, events, id_of, logs, run_of, task_runs, until
from tests.server.client import Server
from tests.settings import load_settings
from tests.workspaces import write_rows

pytestmark = pytest.mark.usefixtures("api")

# The steps that each step of an index run follows, as in `flows/index.py`.
ARROWS = [
    ("load", set()),
    ("sync", {"load"}),
    ("chunk", {"sync"}),
    ("embed", {"chunk"}),
    ("extract", {"chunk"}),
    ("dedupe", {"embed", "extract"}),
    ("summarize", {"dedupe"}),
    ("detect-communities", {"summarize"}),
    ("report", {"detect-communities"}),
    ("publish", {"report"}),
]


async def test_an_index_run_is_its_steps_and_ends_in_words(source: Path, tmp_path: Path) -> None:
    workspace = str(tmp_path / "ws")
    state = await index(str(source), workspace=workspace, return_state=True)
    assert str(state.message).startswith("Published generation 1 (3 added;")
    assert isinstance(await state.aresult(), IndexReport)
    runs = await task_runs(f"index {source} into {workspace}", (), len(ARROWS))
    assert sorted(runs) == sorted(ARROWS)
    page = f"{workspace}/{RECORDED}/{id_of(state)}/{PAGE}"
    assert Path(page).read_text("utf-8").startswith("# Index, generation 1")  # noqa: ASYNC240
    assert page in await artifact("index-summary")
    assert "documents added" in await artifact("index-figures")


async def test_a_failing_run_fails_in_words_and_is_an_event(tmp_path: Path) -> None:
    missing = str(tmp_path / "nowhere")
    state = await index(missing, workspace=str(tmp_path / "ws"), return_state=True)
    assert state.is_failed()
    assert str(state.message).startswith(f"Source not found: {missing}.")
    (told,) = await events("trellis.index.failed", 1, of=str(tmp_path))
    assert told["payload"]["reason"].startswith(f"Source not found: {missing}.")
    lines = await logs(await run_of(f"index {missing}"))
    assert any("The run failed. Nothing is published" in line for line in lines)
    with pytest.raises(SourceNotFound):
        await index(missing, workspace=str(tmp_path / "ws"))
    with pytest.raises(NoGeneration):
        await query("Who?", workspace=str(tmp_path / "ws"))


async def test_a_question_is_recorded_without_texts(
    indexed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRELLIS_THETA", "99")  # memory would replace the retrieval
    state = await query("Who designed Orla Bridge?", workspace=str(indexed), return_state=True)
    answer, run = await state.aresult(), id_of(state)
    assert isinstance(answer, Answer)
    assert "Reyd" in answer.answer
    wanted = {"rewrite", "choose", "retrieve", "answer"}
    assert wanted <= {name for name, _ in await task_runs(run, wanted)}
    shown = await artifact("answer")
    assert "Cited: bridge" in shown
    assert "Reyd" not in shown + "\n".join(await logs(run))


async def test_a_step_is_tried_again_where_no_model_answers() -> None:
    tried: list[Any] = []

    @step("reach", (0.0,), asks_model=True)
    async def reach(number: int) -> int:
        """Reach a model; the rest of the text is no description.

        Slowly.
        """
        context = TaskRunContext.get()
        assert context is not None
        tried.append((context.task, is_tried_again()))
        if len(tried) == 1:
            raise ModelUnavailable("Nobody is there.")
        if number == 3:
            raise BadKey("It is another's.")
        return number

    @flow(flow_run_name="reaching")
    async def reaching() -> list[int]:
        found = [await reach(1), await reach(2)]
        with pytest.raises(BadKey):
            await reach(3)
        return found

    assert await reaching() == [1, 2]
    # A wrong key is not tried again.
    assert [again for _, again in tried] == [True, False, True, True]
    (task,) = {id(task): task for task, _ in tried}.values()
    assert (task.name, task.tags) == ("reach", {MODEL})
    assert str(task.description).startswith("Reach a model;")


async def test_only_a_published_generation_is_an_event(source: Path, tmp_path: Path) -> None:
    workspace = tmp_path / "My ws"
    for _ in range(2):
        await index(str(source), workspace=str(workspace))
    await index(str(source), workspace=str(tmp_path / "later"))  # told after both
    told = await events("trellis.index.published", 2, of=str(tmp_path))
    (mine,) = [
        event for event in told if event["resource"]["prefect.resource.name"] == str(workspace)
    ]
    assert mine["resource"]["prefect.resource.id"].startswith("trellis.workspace.")
    assert mine["resource"]["prefect.resource.id"].endswith("-my-ws")
    assert mine["payload"]["generation"] == 1
    assert mine["payload"]["documents"]["added"] == 3
    assert any(related["prefect.resource.role"] == "flow-run" for related in mine["related"])


def test_the_forms_explain_their_parameters() -> None:
    for form in (index.parameters, query.parameters):
        assert all(field.get("description") for field in form.properties.values()), form.properties
    asked = query.parameters.properties
    assert asked["mode"]["enum"] == list(mode_names())
    assert set(asked["structure"]["anyOf"][0]["enum"]) == set(get_args(StructureType))
    number, _ = asked["k"]["anyOf"]
    assert (number["minimum"], number["maximum"]) == (1, 100)
    assert query.parameters.required == ["question"]
    assert index.parameters.required == ["source"]


@pytest.mark.usefixtures("unembedded")
async def test_a_recorded_run_uses_the_model_of_a_context(
    model_server: Server, monkeypatch: pytest.MonkeyPatch, source: Path, tmp_path: Path
) -> None:
    monkeypatch.delenv("TRELLIS_LM")
    lm = dspy.LM(
        "openai/given", api_base=model_server.base_url, api_key="k", cache=False, engine="lm15"
    )
    with dspy.context(lm=lm):
        report = await index(str(source), workspace=str(tmp_path / "ws"))
    assert report.usage.by_step["extract"].calls == 3


SECRET = "sk-never-to-be-shown-0815"


async def everything() -> str:
    """All that the server knows of runs, as one text."""
    asked = {
        "/flow_runs/filter": {},
        "/task_runs/filter": {},
        "/logs/filter": {"sort": "TIMESTAMP_DESC"},
        "/artifacts/filter": {},
        "/events/filter": {"limit": 50},
    }
    parts: list[str] = []
    async with get_client() as client:
        for run in await client.read_flow_runs():
            states = await client.read_flow_run_states(run.id)
            parts += [state.model_dump_json() for state in states]
        for path, body in asked.items():
            parts.append((await client._client.post(path, json=body)).raise_for_status().text)
    return "\n".join(parts)


@step("leaky")
async def leaky() -> None:
    logging.getLogger("tasks.leaky").info("step says %s", SECRET)
    try:
        raise ValueError(f"header Authorization: Bearer {SECRET}")
    except ValueError as error:
        raise RuntimeError(f"call to https://user:{SECRET}@a.example failed") from error


@flow(name="leaky")
async def leaky_flow() -> None:
    async with recorded(load_settings()):
        await leak()


async def leak() -> None:
    for layer in ("flows", "prompts", "storage"):
        logging.getLogger(f"{layer}.leaky").info("%s says %s", layer, SECRET)
    await put("leaky", f"the key is {SECRET}", SECRET)
    try:
        await leaky()
    except RuntimeError:
        logging.getLogger("flows.leaky").exception("with a traceback")
        raise


async def test_logs_of_all_layers_reach_the_page_and_no_key_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TRELLIS_LM", "openai/some-model")
    monkeypatch.setenv("TRELLIS_LM_API_KEY", SECRET)
    state = await leaky_flow(return_state=True)
    assert state.is_failed()
    lines = "\n".join(await logs(id_of(state)))
    for said in ("flows says", "prompts says", "storage says", "step says"):
        assert f"{said} {MASK}" in lines
    assert "Traceback" in lines
    assert await artifact("leaky") == f"the key is {MASK}"
    known = await everything()
    assert "step says" in known
    assert SECRET not in known


async def test_progress_is_shown_while_it_goes_on() -> None:
    seen: list[str] = []

    async def shown() -> StoredArtifact | None:
        return await Artifact.aget("progress-slowly")

    @flow(name="progressing")
    async def long_run() -> None:
        async with Progress() as progress:
            progress.tell("slowly", 60, 120)
            found = await until(shown, lambda found: found is not None)
            assert found is not None
            seen.append(str(found.data))
            progress.tell("slowly", 120, 120)

    await long_run()
    assert float(seen[0]) == 50
    assert float(await artifact("progress-slowly")) == 100


async def test_a_key_is_read_from_a_secret_block() -> None:
    secret: Secret[str] = Secret(value=SecretStr(SECRET))
    await secret.save("model-key")
    own = {"TRELLIS_LM_ANSWER_API_KEY": "prefect-secret:model-key"}
    settings = load_settings(
        {"lm": "openai/m"}, {"TRELLIS_LM_API_KEY": "prefect-secret:model-key", **own}
    )
    assert settings.lm_api_key is not None
    assert settings.lm_api_key.get_secret_value() == SECRET
    answering = settings.model_choices()["answer"]
    assert answering is not None
    assert answering.api_key == SECRET
    with pytest.raises(SettingsError, match="lm_api_key cannot be 'nobodys-key'"):
        load_settings({}, {"TRELLIS_LM_API_KEY": "prefect-secret:nobodys-key"})


@pytest.mark.usefixtures("unembedded")
async def test_an_evaluation_is_its_steps_and_fails_by_its_gate(
    indexed: Path, tmp_path: Path
) -> None:
    workspace = str(copy_of(indexed, tmp_path / "ws"))
    question = {"id": "a", "question": "Who designed Orla Bridge?", "answers": ["Tomas Reyd"]}
    questions = write_rows(tmp_path / "q.jsonl", [question])
    report = await evaluate(
        ["mode=naive,name=kb", "mode=struct"], str(questions), workspace=workspace, accept=True
    )
    assert report.number == 1
    runs = await task_runs(f"evaluate on {questions}", {"publish-evaluation", "compare"}, 6)
    answering = ("answer-questions", {"load-questions"})
    assert runs == [
        ("load-questions", set()),
        answering,
        answering,
        ("score", {"answer-questions"}),
        ("publish-evaluation", {"score"}),
        ("compare", {"publish-evaluation"}),
    ]
    assert "Evaluation 1: 2 systems" in await artifact("evaluation")
    gate, page = tmp_path / "gate.toml", tmp_path / "page.md"
    gate.write_text('[[gate]]\nmeasure = "answer_in_text"\nsystem = "kb"\nmargin = 0.1\n')
    worse = write_rows(tmp_path / "worse.jsonl", [{"id": "a", "answer": "Nobody"}])
    named: dict[str, Any] = {"workspace": workspace, "gate": str(gate), "page": str(page)}
    with pytest.raises(EvaluationGate, match="answer_in_text of kb went from 1 to 0"):
        await evaluate([f"answers={worse},name=kb"], str(questions), **named)
    assert page.read_text(encoding="utf-8").startswith("# Evaluation 2")


@pytest.mark.usefixtures("unembedded")
async def test_a_changed_watched_answer_is_an_event(tmp_path: Path) -> None:
    workspace, source = tmp_path / "ws", write_rows(tmp_path / "docs.jsonl", ROWS)
    await index(str(source), workspace=str(workspace))
    runtime = open_runtime(load_settings({"workspace": workspace}))
    watch("Where was Tomas Reyd born?", "auto", runtime)
    assert await ask_watched(runtime) == ()
    write_rows(source, [{**row, "text": str(row["text"]).replace("Velin", "Oslo")} for row in ROWS])
    report = await index(str(source), workspace=str(workspace))
    (change,) = report.changed_answers
    (told,) = await events("trellis.answer.changed", 1, of=str(workspace))
    assert told["payload"]["id"] == change.id
    assert "Oslo" not in str(told) + await artifact("index-summary")


def damage(database: Path) -> None:
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # a log could replace the file
    database.write_bytes(b"garbage" * 1_000)


async def test_a_question_is_answered_with_a_damaged_workspace_database(
    copied: Command, source: Path
) -> None:
    damage(copied.workspace / "side.sqlite")
    place = str(copied.workspace)
    state = await query("Who designed Orla Bridge?", workspace=place, return_state=True)
    assert "Tomas Reyd" in (await state.aresult()).answer
    (warning,) = [line for line in await logs(id_of(state)) if "side.sqlite" in line]
    assert "move the file away" in warning
    refused = await index(str(source), workspace=place, full=True, return_state=True)
    assert refused.is_failed()
    assert "side.sqlite" in str(refused.message)
    assert "Traceback" not in str(refused.message)
