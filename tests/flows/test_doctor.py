"""`trellis doctor` says what works and what to change, and never shows a key."""

from pathlib import Path

import pytest

from flows.operations.doctor import Examination
from storage.database import SCHEMA_VERSION
from tests.flows.conftest import KEY, Command
from tests.server.client import Server

NOWHERE = "http://127.0.0.1:9"  # a port that refuses
WRONG = '{"written": {"reasoning": "", "answer": "In 1812.", "values": [], "answerable": true}}'
FAILED = "FAIL  openai/scripted"


def examined(trellis: Command) -> tuple[int, Examination]:
    done = trellis("doctor", "--json")
    assert KEY not in done.out + done.err
    return done.code, Examination.model_validate(done.json)


def test_offline_everything_works_and_nothing_is_created(fresh: Command, trellis: Command) -> None:
    code, report = examined(fresh)
    assert (code, report.ok, report.offline) == (0, True, True)
    assert "384 dimensions" in report.embedding.seen
    assert "reads English; other scripts" in report.embedding.seen
    assert "nothing is indexed yet" in report.workspace.seen
    assert "no server is configured" in report.prefect.seen
    shown = fresh("doctor").out
    assert "every step runs offline" in shown
    assert "Everything works." in shown
    assert not fresh.workspace.exists()
    assert f"generation 1, format {SCHEMA_VERSION}" in examined(trellis)[1].workspace.seen


@pytest.mark.parametrize(
    ("rule", "problem", "advice", "shown"),
    [
        ({"kind": "drip", "seconds": 0.1}, "", "", "structured output: JSON schema"),
        ({"kind": "unauthorized"}, "401", "key", FAILED),
        ({"kind": "no_model"}, "does not exist", "Name a model", FAILED),
        ({"kind": "malformed"}, "no valid answer", "structured output", FAILED),
        ({"kind": "writes", "says": WRONG}, "1812", "stronger model", FAILED),
        (
            {"kind": "unsupported", "key": "response_format"},
            "",
            "does not hold answers to a schema",
            "no structured output: answers are checked and repaired",
        ),
    ],
)
def test_each_fault_of_a_server_is_shown_with_its_remedy(
    rule: dict[str, object],
    problem: str,
    advice: str,
    shown: str,
    fresh: Command,
    model_server: Server,
) -> None:
    model_server.misbehave(rule)
    code, report = examined(fresh)
    assert (code, report.ok, report.embedding.ok) == (int(shown == FAILED), code == 0, True)
    row = next(row for row in report.models if row.role == "answer")
    assert problem in row.problem
    assert advice in " ".join(row.advice)
    if code == 0:
        figures = [
            (row.input_tokens, row.output_tokens, row.seconds)
            for row in report.models
            if row.model != "offline"
        ]
        assert all(read > 20 and written > 5 and seconds > 0 for read, written, seconds in figures)
    people = fresh("doctor").out
    assert (shown in people, KEY in people) == (True, False)
    assert not row.advice or f"→ {row.advice[0]}" in people


def test_what_cannot_be_reached_is_named(
    fresh: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRELLIS_LM", "openai/any")
    monkeypatch.setenv("TRELLIS_LM_BASE_URL", NOWHERE.replace("//", f"//someone:{KEY}@"))
    monkeypatch.setenv("TRELLIS_LM_ROUTE", "offline")
    monkeypatch.setenv("PREFECT_API_URL", f"{NOWHERE}/api")
    fresh.workspace = tmp_path / "file" / "ws"
    (tmp_path / "file").write_text("not a folder")
    code, report = examined(fresh)
    models = {row.role: row for row in report.models}
    assert (code, models["answer"].ok, models["route"].ok) == (1, False, True)
    assert models["route"].model == "offline"
    assert "127.0.0.1:9" in models["answer"].problem
    assert (report.prefect.ok, "PREFECT_API_URL" in report.prefect.advice) == (False, True)
    assert (report.workspace.ok, "--workspace" in report.workspace.advice) == (False, True)
