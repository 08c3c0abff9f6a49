"""`trellis doctor` tells what works and what to change, never fails by exception, and never shows a key."""

from pathlib import Path

import pytest

from flows.cli import doctor
from flows.operations.doctor import Examination
from flows.settings import load_settings
from prompts.engine.key_masking import MASK
from storage.database import SCHEMA_VERSION
from tests.flows.conftest import KEY, Command
from tests.server.client import Server

NOWHERE = "http://127.0.0.1:9"  # a port that refuses


def examined(trellis: Command) -> tuple[int, Examination]:
    done = trellis("doctor", "--json")
    assert KEY not in done.out + done.err
    return done.code, Examination.model_validate(done.json)


def test_offline_everything_works_and_nothing_is_left_behind(fresh: Command) -> None:
    code, found = examined(fresh)
    assert (code, found.ok, found.offline) == (0, True, True)
    assert (found.embedding.dimension, found.embedding.reads) == (384, ("English",))
    assert (found.workspace.exists, found.workspace.generation, found.prefect.address) == (False, None, "")
    shown = fresh("doctor")
    assert shown.code == 0
    assert "every step runs offline" in shown.out
    assert "Everything works." in shown.out
    assert not fresh.workspace.exists()


def test_a_workspace_is_opened(trellis: Command) -> None:
    workspace = examined(trellis)[1].workspace
    assert (workspace.ok, workspace.generation, workspace.format) == (True, 1, SCHEMA_VERSION)


def test_a_good_server_passes_with_figures(fresh: Command, model_server: Server) -> None:
    code, found = examined(fresh)
    assert (code, found.offline) == (0, False)
    assert all(row.ok and row.input_tokens > 20 and row.output_tokens > 5 and row.seconds > 0 for row in found.models)
    assert {row.structured for row in found.models} == {"json_schema"}
    assert model_server.stats()["calls"] == 2, "one for each form of answer: roles with the same model share it"
    shown = fresh("doctor").out
    assert "openai/scripted · extract" in shown
    assert "structured output: JSON schema" in shown
    assert KEY not in shown


@pytest.mark.parametrize(
    ("rule", "problem", "advice"),
    [
        ({"kind": "unauthorized"}, "401", "key"),
        ({"kind": "no_model"}, "does not exist", "Name a model"),
        ({"kind": "malformed"}, "no valid answer", "structured output"),
    ],
)
def test_a_server_that_refuses_fails_with_the_remedy(
    rule: dict[str, object], problem: str, advice: str, fresh: Command, model_server: Server
) -> None:
    model_server.misbehave(rule)
    code, found = examined(fresh)
    assert (code, found.ok) == (1, False)
    assert found.embedding.ok, "the rest is checked all the same"
    row = next(row for row in found.models if row.role == "answer")
    assert problem in row.problem
    assert advice in " ".join(row.advice)
    shown = fresh("doctor")
    assert shown.code == 1
    assert "FAIL  openai/scripted" in shown.out
    assert f"→ {row.advice[0]}" in shown.out


def test_a_server_without_structured_output_passes_with_a_remark(fresh: Command, model_server: Server) -> None:
    model_server.misbehave({"kind": "unsupported", "key": "response_format"})
    code, found = examined(fresh)
    row = next(row for row in found.models if row.role == "route")
    assert (code, row.ok, row.structured) == (0, True, "text")
    assert "does not hold answers to a schema" in " ".join(row.advice)
    assert "no structured output: answers are checked and repaired" in fresh("doctor").out


def test_what_cannot_be_reached_is_named(fresh: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRELLIS_LM", "openai/any")
    monkeypatch.setenv("TRELLIS_LM_BASE_URL", NOWHERE.replace("//", f"//someone:{KEY}@"))
    monkeypatch.setenv("TRELLIS_LM_ROUTE", "offline")
    monkeypatch.setenv("PREFECT_API_URL", f"{NOWHERE}/api")
    code, found = examined(fresh)
    by_role = {row.role: row for row in found.models}
    assert (code, by_role["answer"].ok, by_role["route"].ok, by_role["route"].model) == (1, False, True, "offline")
    assert "127.0.0.1:9" in by_role["answer"].problem
    assert not found.prefect.ok
    assert "PREFECT_API_URL" in found.prefect.advice


def test_the_embedding_server_is_asked_in_earnest(
    fresh: Command, model_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRELLIS_EMBEDDING", "scripted")
    monkeypatch.setenv("TRELLIS_EMBEDDING_BASE_URL", model_server.base_url)
    model_server.settle(dimension=96)
    found = examined(fresh)[1].embedding
    model_server.settle(dimension=384)
    assert (found.ok, found.dimension, found.reads) == (True, 96, ("English", "Chinese"))
    model_server.misbehave({"kind": "unauthorized", "step": "embeddings"})
    code, refused = examined(fresh)
    assert (code, refused.embedding.ok, refused.models[0].ok) == (1, False, True)
    assert "TRELLIS_EMBEDDING_API_KEY" in refused.embedding.advice


def test_a_folder_that_takes_no_file_fails(fresh: Command, tmp_path: Path) -> None:
    fresh.workspace = tmp_path / "file" / "ws"
    (tmp_path / "file").write_text("not a folder")
    code, found = examined(fresh)
    assert (code, found.workspace.ok) == (1, False)
    assert "--workspace" in found.workspace.advice


@pytest.mark.parametrize(
    ("given", "key"),
    [
        ({"embedding": "m", "embedding_base_url": "http://other/v1"}, None),
        ({"embedding": "m", "embedding_base_url": "http://models/v1"}, KEY),
        ({"embedding": "m", "embedding_base_url": "http://other/v1", "embedding_api_key": "own"}, "own"),
        ({"embedding": "openai/m"}, None),
        ({"embedding": "openai/m", "lm": "openai/m", "lm_base_url": None}, KEY),
        ({"embedding": "openai/m", "lm": "groq/m", "lm_base_url": None}, None),
    ],
)
def test_the_models_key_goes_to_no_other_server(given: dict[str, object], key: str | None) -> None:
    common = {"lm": "m", "lm_base_url": "http://models/v1", "lm_api_key": KEY}
    assert load_settings(common | given, {}).embedding_key() == key


def test_a_key_in_any_words_is_hidden(fresh: Command) -> None:
    roles = {"answer": {"model": "openai/m", "api_key": "another-key"}}
    load_settings({"lm_api_key": KEY, "roles": roles}, {}).keep_secrets()
    found = examined(fresh)[1]
    said = found.prefect.model_copy(update={"problem": f"refused {KEY} and another-key of ftp://me:pw@host"})
    shown = doctor.without_keys(found.model_copy(update={"prefect": said})).prefect.problem
    assert shown == f"refused {MASK} and {MASK} of ftp://{MASK}@host"
