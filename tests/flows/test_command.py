"""The command line: its output, exit codes and streams."""

import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from flows.__main__ import main
from flows.cli.command import COMMANDS
from flows.cli.screen import Screen
from flows.settings import TAILORING_FILE
from flows.usage import ledger
from storage.answer_records import Answer, Retrieval
from storage.run_records import UsageRow
from storage.workspace import Workspace
from tests.flows.conftest import BRIDGE, ROWS, Command
from tests.patience import PATIENCE, wait_for
from tests.server.client import Server
from tests.workspaces import write_rows

ROOT = Path(__file__).resolve().parents[2]
HEAVY = {"prefect", "duckdb", "dspy", "numpy", "pydantic", "flows.cli.ask", "flows.cli.running"}
DESIGNED = "Who designed Orla Bridge?"
NOT_UTF8 = b"\xff".decode(errors="surrogateescape")


# --- help and usage errors ---


def test_help_names_every_command_and_imports_none() -> None:
    code = "import sys; from flows.__main__ import main; main(['--help']); print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert [name for name in COMMANDS if f"│ {name} " not in done.stdout] == []
    loaded = set(done.stdout.splitlines()[-1].split())
    assert "flows.cli.command" in loaded
    assert loaded & HEAVY == set()


@pytest.mark.parametrize(
    "arguments",
    [
        ["ask"],
        ["ask", "Who?", "--k", "0"],
        ["ask", "Who?", "--questions", "q.jsonl"],
        ["ask", "  "],
        ["ask", "--questions", "none.jsonl"],
        ["rollback", "first"],
        *(["index", ".", "--budget-usd", amount] for amount in ("0", "-1", "nan", "2,50", "")),
    ],
)
def test_wrong_arguments_are_a_usage_error(fresh: Command, arguments: list[str]) -> None:
    assert fresh(*arguments).code == 2
    assert not fresh.workspace.exists()


@pytest.mark.parametrize(
    ("arguments", "near"),
    [
        (["indx", "."], "index"),
        (["Ask", "Who?"], "ask"),
        (["ask", "Who?", "--mode", "lcoal"], "local"),
        (["ask", "Who?", "--mdoe", "local"], "--mode"),
        (["ask", "Who?", "--effort", "hihg"], "high"),
        (["ask", "Who?", "--structure", "tables"], "table"),
        (["export", "out", "--format", "graphlm"], "graphml"),
        (["train", "ruoter"], "router"),
        (["graph", "merg", "A", "B"], "merge"),
        (["watch", "ad", "Who?"], "add"),
        (["serve", "--new-key", "ann:edt"], "edit"),
        (["prompt", "extrat"], "extract"),
        (["evaluate", "--questions", "q.jsonl", "--judge", "overal"], "overall"),
    ],
)
def test_a_mistyped_word_gets_the_nearest(
    fresh: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], near: str
) -> None:
    write_rows(tmp_path / "q.jsonl", [{"id": "1", "question": "Who?"}])
    monkeypatch.chdir(tmp_path)
    done = fresh(*arguments)
    assert done.code == 2
    assert re.search(rf"Did you mean ['\"]?{near}['\"]?\?", done.err), done.err


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (["--workspace", "kb", "status"], "'--workspace' stands before the command"),
        (["status", "more"], "does not take 'more'"),
        (["show", "x", "--quiet"], "Unknown option: --quiet"),
        (["ask", "Who?", NOT_UTF8], "does not take"),
        (["ask", NOT_UTF8], "is not UTF-8"),
        ([], "A command is missing"),
    ],
)
def test_an_unexpected_argument_is_named(
    capsys: pytest.CaptureFixture[str], arguments: list[str], shown: str
) -> None:
    assert main(arguments) == 2
    assert shown in capsys.readouterr().err


def test_a_mistyped_command_is_an_error_in_json_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["indx", ".", "--json"]) == 2
    error = json.loads(capsys.readouterr().out)["error"]
    assert (error["type"], "'index'" in error["remedy"]) == ("UsageError", True)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["ask", "Who?"], 2),
        (["retrieve", "Who?"], 2),
        (["reports"], 2),
        (["graph", "X"], 2),
        (["show", "x"], 2),
        (["status"], 0),
    ],
)
def test_without_an_index_commands_say_how_to_begin(
    fresh: Command, words: list[str], code: int
) -> None:
    done = fresh(*words)
    assert (done.code, "trellis index" in done.out + done.err) == (code, True)
    assert not fresh.workspace.exists()


# --- index ---


def test_index_refuses_a_missing_source_a_lock_and_a_setting(
    fresh: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = str(tmp_path / "nowhere")
    done = fresh("index", missing, "--json")
    assert (done.code, done.json["error"]["type"]) == (2, "SourceNotFound")
    assert (missing in done.err, "Traceback" in done.err) == (True, False)
    assert not fresh.workspace.exists()
    source = str(write_rows(tmp_path / "docs.jsonl", ROWS))
    with Workspace(fresh.workspace).write():
        locked = fresh("index", source, "--json")
    assert (locked.code, locked.json["error"]["type"]) == (4, "WorkspaceLocked")
    assert str(os.getpid()) in locked.err
    monkeypatch.setenv("TRELLIS_CHUNK_TOKENS", "many")
    wrong = fresh("index", source)
    assert (wrong.code, "chunk_tokens" in wrong.err) == (2, True)


def test_without_a_terminal_each_step_is_named_once(fresh: Command, source: Path) -> None:
    err = fresh("index", str(source), "--json").err
    steps = [line.removesuffix(" …") for line in err.splitlines() if line.endswith(" …")]
    expected = ["load", "chunk", "extract", "publish"]
    assert [step for step in steps if step in expected] == expected
    assert len(steps) == len(set(steps))


def test_a_long_step_shows_its_progress(capsys: pytest.CaptureFixture[str]) -> None:
    shown = ""

    def has_progress() -> bool:
        nonlocal shown
        shown += capsys.readouterr().err
        return "extract 3 of 7 (" in shown

    with Screen(as_json=False).progress(every=0.01) as report:
        report("extract", 3, 7)
        wait_for(has_progress, "a line of progress")


def test_index_shows_a_sum_and_status_the_steps(
    fresh: Command, copied: Command, source: Path, model_server: Server
) -> None:
    built = fresh("index", str(source)).out
    assert "model calls" in built
    assert "cost unknown" in built
    steps = {row["step"]: row for row in fresh("status", "--json").json["usage"]}
    assert {row["model"] for row in steps.values()} == {"openai/scripted"}
    assert steps["extract"]["calls"] == model_server.stats()["steps"]["extract"]["calls"] > 0
    assert "Models used for generation 1" in fresh("status").out
    asked = fresh("ask", "Where was Tomas Reyd born?").out
    assert asked.rstrip().splitlines()[-1].endswith("cost unknown")
    assert copied("status", "--json").json["usage"] == [], "this one was indexed offline"


def test_tune_shows_its_result_and_what_to_do_next(
    fresh: Command, source: Path, monkeypatch: pytest.MonkeyPatch, model_server: Server
) -> None:
    done = fresh("tune", str(source))
    file = str(fresh.workspace / TAILORING_FILE)
    parts = ("kinds", "actor: who acts", file, f"trellis index {source}")
    assert (done.code, [part for part in parts if part not in done.out]) == (0, [])
    assert "counts instead" not in done.out
    monkeypatch.setenv("TRELLIS_TAILORING_LANGUAGE", "Greek")
    assert fresh("tune", str(source)).code == 2, "an existing file stays"
    assert "another language" in fresh("tune", str(source), "--force").out


# --- ask and retrieve ---


def test_the_spans_of_citations_are_in_the_stored_text(trellis: Command) -> None:
    done = trellis("ask", DESIGNED, "--json")
    answer = Answer.model_validate(done.json)
    assert (done.code, answer.generation, "Reyd" in answer.answer) == (0, 1, True)
    assert answer.citations
    for citation in answer.citations:
        text = trellis("show", citation.document).out
        assert text[citation.start : citation.end] == citation.quote
    people = trellis("ask", DESIGNED).out
    assert all(part in people for part in ("[1] ", "designed by Tomas Reyd", "excerpts"))
    assert "\x1b" not in people


def test_retrieve_gives_at_most_k_passages_with_scores(trellis: Command) -> None:
    result = Retrieval.model_validate(trellis("retrieve", "Orla Bridge", "--k", "2", "--json").json)
    assert 0 < len(result.passages) <= 2
    assert all(passage.score > 0 for passage in result.passages)
    assert trellis("retrieve", "Orla Bridge", "--k", "2").out.startswith("1. ")


@pytest.mark.parametrize("separator", [", ", "\n"])
def test_a_question_has_a_history_from_a_file(
    scripted: Server, copied: Command, tmp_path: Path, separator: str
) -> None:
    turns = [f'"{DESIGNED}"', '{"role": "assistant", "content": "Tomas Reyd."}']
    text = separator.join(turns)
    (tmp_path / "turns.json").write_text(text if separator == "\n" else f"[{text}]")
    done = copied("ask", "Where was he born?", "--history", str(tmp_path / "turns.json"), "--json")
    assert done.code == 0, done.err
    prompts = str(scripted.requests())
    assert (DESIGNED in prompts, "Tomas Reyd." in prompts) == (True, True)


@pytest.mark.parametrize(
    ("turns", "shown"),
    [
        ("[1]", "A turn of the history is 1."),
        ("[", "The history in"),
        ("Who?", "line 1 is no JSON"),
        ('{"role": "system", "content": "x"}', "A turn of the history is"),
    ],
)
def test_a_wrong_history_is_refused(fresh: Command, tmp_path: Path, turns: str, shown: str) -> None:
    (tmp_path / "turns.json").write_text(turns)
    done = fresh("ask", "Who?", "--history", str(tmp_path / "turns.json"))
    assert (done.code, shown in done.err) == (2, True), done.err


@pytest.mark.parametrize("command", ["ask", "retrieve"])
def test_a_batch_answers_in_order_and_restricts_documents(
    trellis: Command, command: str, tmp_path: Path
) -> None:
    asked = [
        {"id": "b", "question": DESIGNED, "expected": "an unknown field is ignored"},
        {"id": "a", "question": "How long is Orla Bridge?", "documents": ["bridge"]},
        {"id": 3, "question": "奥拉桥全长多少米?"},
    ]
    done = trellis(command, "--questions", str(write_rows(tmp_path / "q.jsonl", asked)))
    assert done.code == 0
    assert [row["id"] for row in done.rows] == ["b", "a", 3]
    assert {passage["document"] for passage in done.rows[1]["passages"]} == {"bridge"}


def test_wrong_rows_are_reported_and_the_others_answered(
    trellis: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = (
        '{"id": "a"}',
        "not json",
        "[1]",
        "",
        '{"id": "e", "question": "  "}',
        '{"id": "d", "question": 7}',
        '{"id": "h", "question": "x", "history": [{"role": "tool", "content": "x"}]}',
        '{"id": "z", "question": "Orla Bridge"}',
    )
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(lines)))
    done = trellis("retrieve", "--questions", "-")
    assert (done.code, "6 of 7" in done.err) == (1, True)
    *wrong, right = done.rows
    assert [row["id"] for row in wrong] == ["a", None, None, "e", "d", "h"]
    assert all(set(row["error"]) == {"type", "message", "remedy"} for row in wrong)
    assert (right["id"], bool(right["passages"])) == ("z", True)


# --- show, graph and status ---


def test_show_prints_the_stored_text_and_nothing_else(trellis: Command) -> None:
    assert trellis("show", "bridge").out == BRIDGE
    view = trellis("show", "桥", "--json").json
    assert (view["document"], view["title"]) == ("桥", "奥拉桥")
    unknown = trellis("show", "bridges")
    assert (unknown.code, "bridge" in unknown.err) == (2, True)


def test_graph_quotes_the_sentences_that_state_relations(trellis: Command) -> None:
    (entity,) = trellis("graph", "tomas reyd", "--json").json["entities"]
    assert entity["occurrences"] >= 2
    places = [place for relation in entity["relations"] for place in relation["statements"]]
    assert any("designed by Tomas Reyd" in place["quote"] for place in places)
    assert "designed by Tomas Reyd" in trellis("graph", "tomas reyd").out
    unknown = trellis("graph", "Tomas Raid", "--json")
    assert (unknown.code, "Tomas Reyd" in unknown.json["error"]["remedy"]) == (2, True)


def test_status_shows_the_workspace_without_secrets(
    trellis: Command, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRELLIS_LM_API_KEY", "sk-secret")
    monkeypatch.setenv("TRELLIS_LM_BASE_URL", "https://me:hunter2@models.example/v1")
    done, people = trellis("status", "--json"), trellis("status").out
    state = done.json
    assert (state["generation"], state["counts"]["documents"]) == (1, 3)
    assert state["models"]["answer"] == "offline"
    assert state["sources"] == [{"source": str(source), "documents": 3}]
    assert [row["kind"] for row in state["runs"]] == ["index"]
    assert str(source) in people
    assert not [secret for secret in ("sk-secret", "hunter2") if secret in done.out + people]


def test_a_reader_that_leaves_early_is_no_error(indexed: Path) -> None:
    command = f"{sys.executable} -m flows graph 'Orla Bridge' --workspace {indexed} | head -c 1"
    done = subprocess.run(  # noqa: S602
        command, shell=True, cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.stderr == ""


def test_a_ledger_has_a_row_for_each_step_and_model() -> None:
    row = UsageRow(
        step="extract",
        model="openai/a|b",
        calls=3,
        input_tokens=10,
        output_tokens=5,
        cost_usd=None,
    )
    assert "| extract | openai/a b | 3 | 0 | 10 | 5 | cost unknown | 0.0 |" in ledger([row])
    assert "offline" in ledger([])
