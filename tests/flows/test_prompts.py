"""A prompt is shown, replaced by a user's file, and part of the hash of what is made with it."""

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
# Ada Korb and Velin Bridge are tied in every document, in other words each time.
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
    """How often each step was asked since the last look."""
    found = {step: int(counted["calls"]) for step, counted in server.stats()["steps"].items()}
    server.reset()
    return found


def index(trellis: Command, docs: Path, *options: str) -> Any:
    ended = trellis("index", str(docs), "--json", *options)
    assert ended.code == 0, ended.err
    # What is asked again is to be seen at the server: nothing comes from the cache of answers.
    assert trellis("clean", "--caches").code == 0
    return ended.json


def replaced(folder: Path, monkeypatch: pytest.MonkeyPatch, step: str, text: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / f"{step}.md").write_text(text, encoding="utf-8")
    monkeypatch.setenv("TRELLIS_PROMPTS", str(folder))


def test_a_users_file_replaces_the_instruction_and_not_the_form(
    model_server: Server,
    fresh: Command,
    docs: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TRELLIS_EFFORT", "high")
    replaced(
        tmp_path / "mine", monkeypatch, "report", "Write about bridges.\n\n- Only about bridges."
    )
    shown = fresh("prompt", "report").out
    assert shown.startswith(
        "--- system\nStep: report\nWrite about bridges.\n\n- Only about bridges.\n\nAnswer with"
    )
    assert '"rating_reason": string' in shown
    index(fresh, docs)
    asked = [json.dumps(one) for one in model_server.requests()]
    reports = [one for one in asked if "Step: report" in one]
    assert reports
    assert all("Only about bridges." in one for one in reports)
    assert not any("Only about bridges." in one for one in asked if "Step: report" not in one)


def test_a_file_for_no_step_is_refused(
    fresh: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replaced(tmp_path / "mine", monkeypatch, "reprot", "Write about bridges.")
    ended = fresh("status")
    assert ended.code == 2
    assert "'reprot'" in ended.err
    assert "'report'" in ended.err
    monkeypatch.setenv("TRELLIS_PROMPTS", str(tmp_path / "nowhere"))
    assert "nowhere" in fresh("status").err


def test_another_prompt_makes_just_what_depends_on_it_anew(
    model_server: Server,
    fresh: Command,
    docs: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TRELLIS_EFFORT", "high")
    index(fresh, docs)
    first = calls(model_server)
    assert first["extract"] == len(ROWS)
    assert {"summarize", "relate", "report"} <= first.keys()
    assert not index(fresh, docs)["published"]
    assert calls(model_server) == {}
    dependent = {
        "report": {"report"},
        "relate": {"relate", "report"},
        "extract": {"extract"},
        "resolve": set[str](),
    }
    for step, again in dependent.items():
        replaced(tmp_path / "mine", monkeypatch, step, "Do as before, in fewer words.")
        report = index(fresh, docs)
        assert report["kept_prompts"] is None, "the user has changed it"
        made = calls(model_server)
        # The scripted model writes the same as before: what rests on it keeps its hash.
        assert set(made) - again <= ({"report"} if step == "relate" else set()), step
        assert all(made[name] == first[name] for name in again & {step}), step
    assert not index(fresh, docs)["published"]


@pytest.fixture
def earlier(
    fresh: Command, docs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., None]:
    """Indexes as an earlier version would, whose prompts of some steps were others."""

    def indexed(*worded_otherwise: str) -> None:
        for step in worded_otherwise:
            replaced(tmp_path / "then", monkeypatch, step, "The words of then.")
        index(fresh, docs)
        monkeypatch.delenv("TRELLIS_PROMPTS")
        with Workspace(fresh.workspace).write() as staging:
            then: Any = staging.meta.get_meta(AUTHORS)
            note_makers(staging, open_runtime(load_settings({"workspace": fresh.workspace})))
            now: Any = staging.meta.get_meta(AUTHORS)
            # The user's settings are those of today: the words were the version's own.
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
    write_rows(
        docs,
        [
            *ROWS,
            {"id": "new", "title": "New", "text": "Mira Sand met Kai Ott in Port Nolla in 1950."},
        ],
    )
    assert index(fresh, docs)["kept_prompts"]
    assert calls(model_server)["extract"] == 1, (
        "what is new is read with the new prompt, what was there stays"
    )
    assert index(fresh, docs, "--remake")["kept_prompts"] is None
    assert calls(model_server)["extract"] == len(ROWS) + 1
    assert not index(fresh, docs)["published"]
