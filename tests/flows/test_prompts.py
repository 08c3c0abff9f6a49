"""A prompt can be shown and replaced; what was made with it depends on it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flows.indexing.source_changes import AUTHORS, note_makers
from flows.runtime import open_runtime
from flows.settings import load_settings
from storage.workspace import Workspace
from tests.flows.conftest import Command
from tests.server.client import Server
from tests.workspaces import write_rows

YEARS = range(1901, 1907)
# Ada Korb and Velin Bridge are related in every document, in other words each time.
ROWS = [
    {
        "id": f"d{year}",
        "title": f"Year {year}",
        "text": (
            f"Ada Korb built Velin Bridge with {year - 1800} workers, which took her all of {year} "
            "and cost Marn Bank a large part of what it had lent to Olle Brandt before. Tomas "
            f"Reyd praised Velin Bridge in {year}. Marn Bank paid Tomas Reyd in {year}."
        ),
    }
    for year in YEARS
]


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    return write_rows(tmp_path / "docs.jsonl", ROWS)


def calls(server: Server) -> dict[str, int]:
    """How often each step was asked since the last call of this function."""
    found = {step: int(counted["calls"]) for step, counted in server.stats()["steps"].items()}
    server.reset()
    return found


def index(trellis: Command, docs: Path, *options: str) -> Any:
    ended = trellis("index", str(docs), "--json", *options)
    assert ended.code == 0, ended.err
    # Without the cache of answers the server sees all that is asked again.
    assert trellis("clean", "--caches").code == 0
    return ended.json


def replaced(folder: Path, monkeypatch: pytest.MonkeyPatch, step: str, text: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / f"{step}.md").write_text(text, encoding="utf-8")
    monkeypatch.setenv("TRELLIS_PROMPTS", str(folder))


@pytest.fixture
def at_high_effort(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRELLIS_EFFORT", "high")


def test_a_users_file_replaces_the_instruction_and_not_the_form(
    model_server: Server,
    fresh: Command,
    docs: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    at_high_effort: None,
) -> None:
    own = "Write about bridges.\n\n- Only about bridges."
    replaced(tmp_path / "mine", monkeypatch, "report", own)
    shown = fresh("prompt", "report").out
    assert shown.startswith(f"--- system\nStep: report\n{own}\n\nAnswer with")
    assert '"rating_reason": string' in shown
    index(fresh, docs)
    asked = [json.dumps(one) for one in model_server.requests()]
    with_own = ["Only about bridges." in one for one in asked]
    assert any(with_own)
    assert with_own == ["Step: report" in one for one in asked]


def test_a_file_for_no_step_is_refused(
    fresh: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replaced(tmp_path / "mine", monkeypatch, "reprot", "Write about bridges.")
    ended = fresh("status")
    assert ended.code == 2
    assert all(name in ended.err for name in ("'reprot'", "'report'"))
    monkeypatch.setenv("TRELLIS_PROMPTS", str(tmp_path / "nowhere"))
    assert "nowhere" in fresh("status").err


def test_another_prompt_makes_just_what_depends_on_it_anew(
    model_server: Server,
    fresh: Command,
    docs: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    at_high_effort: None,
) -> None:
    index(fresh, docs)
    first = calls(model_server)
    assert first["extract"] == len(ROWS)
    assert {"summarize", "relate", "report"} <= first.keys()
    assert not index(fresh, docs)["published"]
    assert calls(model_server) == {}
    for step in ("report", "relate", "extract", "resolve"):
        replaced(tmp_path / "mine", monkeypatch, step, "Do as before, in fewer words.")
        assert index(fresh, docs)["kept_prompts"] is None, "the user has changed it"
        made = calls(model_server)
        # The scripted model writes the same as before, so that most reports keep their hashes.
        assert made.keys() <= {step, "report"} if step == "relate" else made.keys() <= {step}, step
        assert made.get(step) == first.get(step), step
    assert not index(fresh, docs)["published"]


@pytest.fixture
def earlier(
    fresh: Command, docs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., None]:
    """Indexes as an earlier version would, with other prompts of some steps."""

    def indexed(*worded_otherwise: str) -> None:
        for step in worded_otherwise:
            replaced(tmp_path / "then", monkeypatch, step, "The words of then.")
        index(fresh, docs)
        monkeypatch.delenv("TRELLIS_PROMPTS")
        with Workspace(fresh.workspace).write() as staging:
            then: Any = staging.meta.get_meta(AUTHORS)
            note_makers(staging, open_runtime(load_settings({"workspace": fresh.workspace})))
            now: Any = staging.meta.get_meta(AUTHORS)
            # With the settings of now, the other words seem to be the version's own.
            staging.meta.put_meta(AUTHORS, {step: [then[step][0], now[step][1]] for step in now})
            staging.publish()

    return indexed


def test_a_new_versions_prompts_wait_for_remake(
    earlier: Callable[..., None], model_server: Server, fresh: Command, docs: Path
) -> None:
    earlier("extract", "report")
    calls(model_server)
    kept = index(fresh, docs)
    assert (kept["kept_prompts"]["steps"], kept["published"]) == (["extract", "report"], False)
    assert "--remake makes it anew: about " in fresh("index", str(docs)).out
    assert calls(model_server) == {}
    new = {"id": "new", "title": "New", "text": "Mira Sand met Kai Ott in Port Nolla in 1950."}
    write_rows(docs, [*ROWS, new])
    assert index(fresh, docs)["kept_prompts"]
    assert calls(model_server)["extract"] == 1, "only the new document is read"
    assert index(fresh, docs, "--remake")["kept_prompts"] is None
    assert calls(model_server)["extract"] == len(ROWS) + 1
    assert not index(fresh, docs)["published"]
