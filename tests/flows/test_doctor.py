"""`trellis doctor` tells what works and what to change, never fails by exception, and never shows a
key.
"""

from pathlib import Path

import pytest

from flows.operations.doctor import Examination
from storage.database import SCHEMA_VERSION
from tests.flows.conftest import KEY, Command
from tests.server.client import Server

NOWHERE = "http://127.0.0.1:9"  # a port that refuses
WRONG = '{"written": {"reasoning": "", "answer": "In 1812.", "values": [], "answerable": true}}'


def examined(trellis: Command) -> tuple[int, Examination]:
    done = trellis("doctor", "--json")
    assert KEY not in done.out + done.err
    return done.code, Examination.model_validate(done.json)


def test_offline_everything_works_and_nothing_is_left_behind(
    fresh: Command, trellis: Command
) -> None:
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
    ("rule", "code", "problem", "advice", "shown"),
    [
        ({"kind": "drip", "seconds": 0.1}, 0, "", "", "structured output: JSON schema"),
        ({"kind": "unauthorized"}, 1, "401", "key", "FAIL  openai/scripted"),
        ({"kind": "no_model"}, 1, "does not exist", "Name a model", "FAIL  openai/scripted"),
        ({"kind": "malformed"}, 1, "no valid answer", "structured output", "FAIL  openai/scripted"),
        ({"kind": "writes", "says": WRONG}, 1, "1812", "stronger model", "FAIL  openai/scripted"),
        (
            {"kind": "unsupported", "key": "response_format"},
            0,
            "",
            "does not hold answers to a schema",
            "no structured output: answers are checked and repaired",
        ),
    ],
)
def test_a_server_is_told_with_what_it_does_and_the_remedy(  # noqa: PLR0917 -- columns of a table
    rule: dict[str, object],
    code: int,
    problem: str,
    advice: str,
    shown: str,
    fresh: Command,
    model_server: Server,
) -> None:
    model_server.misbehave(rule)
    ended, report = examined(fresh)
    assert (ended, report.ok, report.embedding.ok) == (code, code == 0, True), (
        "the rest is checked all the same"
    )
    row = next(row for row in report.models if row.role == "answer")
    assert problem in row.problem
    assert advice in " ".join(row.advice)
    assert code or all(
        row.input_tokens > 20 and row.output_tokens > 5 and row.seconds > 0 for row in report.models
    )
    people = fresh("doctor").out
    assert shown in people
    assert KEY not in people
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
    by_role = {row.role: row for row in report.models}
    assert (code, by_role["answer"].ok, by_role["route"].ok, by_role["route"].model) == (
        1,
        False,
        True,
        "offline",
    )
    assert "127.0.0.1:9" in by_role["answer"].problem
    assert (report.prefect.ok, "PREFECT_API_URL" in report.prefect.advice) == (False, True)
    assert (report.workspace.ok, "--workspace" in report.workspace.advice) == (False, True)
