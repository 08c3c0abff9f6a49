"""The command keeps its contract: shapes, order, exit codes, and what goes to which stream."""

import io
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from flows.__main__ import main
from flows.cli.command import COMMANDS as COMMAND_TABLE
from flows.cli.command import trellis_app
from flows.cli.screen import Screen
from flows.settings import TAILORING_FILE
from flows.usage import ledger
from storage.answer_records import Answer, Retrieval
from storage.run_records import UsageRow
from storage.workspace import Workspace
from tests.flows.conftest import BRIDGE, ROWS, Command
from tests.patience import PATIENCE
from tests.server.client import Server
from tests.workspaces import write_rows

ROOT = Path(__file__).resolve().parents[2]
HEAVY = {"prefect", "duckdb", "dspy", "numpy", "pydantic", "flows.cli.ask", "flows.cli.running"}
COMMANDS = (
    "index tune prompt ask retrieve reports graph show status generations rollback dead-letter "
    "export archive restore clean doctor demo forget diff serve"
)


def test_help_names_every_command_and_loads_none() -> None:
    code = "import sys; from flows.__main__ import main; main(['--help']); print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert [name for name in COMMANDS.split() if f"│ {name} " not in done.stdout] == []
    loaded = set(done.stdout.splitlines()[-1].split())
    assert "flows.cli.command" in loaded
    assert loaded & HEAVY == set()


def test_every_line_of_the_table_names_a_command() -> None:
    app = trellis_app()
    assert [app[name].name for name in COMMAND_TABLE] == [(name,) for name in COMMAND_TABLE]


@pytest.mark.parametrize(
    "arguments",
    [
        ["ask"],
        ["ask", "Who?", "--mode", "quick"],
        ["ask", "Who?", "--structure", "tree"],
        ["ask", "Who?", "--k", "0"],
        ["ask", "Who?", "--questions", "q.jsonl"],
        ["ask", "  "],
        ["ask", "--questions", "none.jsonl"],
        ["rollback", "first"],
        ["summon"],
        *(
            ["index", ".", "--budget-usd", amount]
            for amount in ("0", "-1", "a lot", "inf", "nan", "2,50", "")
        ),
    ],
)
def test_what_cannot_be_meant_is_a_usage_error(fresh: Command, arguments: list[str]) -> None:
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
    meant = re.search(rf"Did you mean ['\"]?{near}['\"]?\?", done.err)
    assert (done.code, meant is not None) == (2, True), done.err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--workspace", "kb", "status"], "'--workspace' stands before the command"),
        (["status", "more"], "does not take 'more'"),
        (["show", "x", "--quiet"], "Unknown option: --quiet"),
        (["ask", "Who?", b"\xff".decode(errors="surrogateescape")], "does not take"),
        (["ask", b"\xff".decode(errors="surrogateescape")], "is not UTF-8"),
        ([], "A command is missing"),
    ],
)
def test_what_a_command_does_not_take_is_named(
    capsys: pytest.CaptureFixture[str], arguments: list[str], told: str
) -> None:
    assert main(arguments) == 2
    assert told in capsys.readouterr().err


def test_a_mistyped_command_is_told_to_programs_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["indx", ".", "--json"]) == 2
    error = json.loads(capsys.readouterr().out)["error"]
    assert (error["type"], "'index'" in error["remedy"]) == ("UsageError", True)


def test_a_run_that_nobody_watches_tells_its_steps(fresh: Command, source: Path) -> None:
    done = fresh("index", str(source), "--json")
    told = [line.removesuffix(" …") for line in done.err.splitlines() if line.endswith(" …")]
    assert [step for step in told if step in ("load", "chunk", "extract", "publish")] == [
        "load",
        "chunk",
        "extract",
        "publish",
    ]
    assert len(told) == len(set(told)), "each step is told once"


def test_a_long_step_tells_how_far_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    said = ""
    with Screen(as_json=False).progress(every=0.01) as report:
        report("extract", 3, 7)
        deadline = time.monotonic() + PATIENCE
        while "extract 3 of 7 (" not in said and time.monotonic() < deadline:
            time.sleep(0.01)
            said += capsys.readouterr().err
    assert "extract 3 of 7 (" in said


@pytest.mark.parametrize(
    "turns",
    [
        '["Who designed Orla Bridge?", {"role": "assistant", "content": "Tomas Reyd."}]',
        '"Who designed Orla Bridge?"\n{"role": "assistant", "content": "Tomas Reyd."}\n',
    ],
)
def test_a_question_has_a_history_from_a_file(
    scripted: Server, copied: Command, tmp_path: Path, turns: str
) -> None:
    (tmp_path / "said.json").write_text(turns)
    done = copied("ask", "Where was he born?", "--history", str(tmp_path / "said.json"), "--json")
    assert done.code == 0, done.err
    prompts = str(scripted.requests())
    assert "Who designed Orla Bridge?" in prompts
    assert "Tomas Reyd." in prompts


@pytest.mark.parametrize(
    ("turns", "told"),
    [
        ("[1]", "A turn of the history is 1."),
        ("[", "The history in"),
        ("Who?", "line 1 is no JSON"),
        ('{"role": "system", "content": "x"}', "A turn of the history is"),
    ],
)
def test_a_history_that_cannot_be_meant(
    fresh: Command, tmp_path: Path, turns: str, told: str
) -> None:
    (tmp_path / "said.json").write_text(turns)
    done = fresh("ask", "Who?", "--history", str(tmp_path / "said.json"))
    assert (done.code, told in done.err) == (2, True), done.err


@pytest.mark.parametrize(
    "verb", [["ask", "Who?"], ["retrieve", "Who?"], ["reports"], ["graph", "X"], ["show", "x"]]
)
def test_nothing_indexed_says_how_to_begin(fresh: Command, verb: list[str]) -> None:
    done = fresh(*verb)
    assert (done.code, "trellis index" in done.err, fresh.workspace.exists()) == (2, True, False)


def test_what_an_index_run_refuses(
    fresh: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = str(tmp_path / "nowhere")
    done = fresh("index", missing, "--json")
    assert (done.code, done.json["error"]["type"], missing in done.err) == (
        2,
        "SourceNotFound",
        True,
    )
    assert ("Traceback" in done.err, fresh.workspace.exists()) == (False, False)
    source = str(write_rows(tmp_path / "docs.jsonl", ROWS))
    with Workspace(fresh.workspace).write():
        locked = fresh("index", source, "--json")
    assert (locked.code, locked.json["error"]["type"], str(os.getpid()) in locked.err) == (
        4,
        "WorkspaceLocked",
        True,
    )
    monkeypatch.setenv("TRELLIS_CHUNK_TOKENS", "many")
    wrong = fresh("index", source)
    assert (wrong.code, "chunk_tokens" in wrong.err) == (2, True)


def test_ask_gives_an_answer_with_spans_that_hold(trellis: Command) -> None:
    done = trellis("ask", "Who designed Orla Bridge?", "--json")
    answer = Answer.model_validate(done.json)
    assert (done.code, answer.generation, "Reyd" in answer.answer) == (0, 1, True)
    assert answer.citations
    for citation in answer.citations:
        text = trellis("show", citation.document).out
        assert text[citation.start : citation.end] == citation.quote
    people = trellis("ask", "Who designed Orla Bridge?").out
    assert all(told in people for told in ("[1] ", "designed by Tomas Reyd", "generation 1"))
    assert "\x1b" not in people


def test_retrieve_gives_at_most_k_passages_with_scores(trellis: Command) -> None:
    result = Retrieval.model_validate(trellis("retrieve", "Orla Bridge", "--k", "2", "--json").json)
    assert 0 < len(result.passages) <= 2
    assert all(passage.score > 0 for passage in result.passages)
    assert trellis("retrieve", "Orla Bridge", "--k", "2").out.startswith("1. ")


@pytest.mark.parametrize("verb", ["ask", "retrieve"])
def test_a_batch_answers_in_order_and_restricts_documents(
    trellis: Command, verb: str, tmp_path: Path
) -> None:
    asked = [
        {"id": "b", "question": "Who designed Orla Bridge?", "expected": "passed over"},
        {"id": "a", "question": "How long is Orla Bridge?", "documents": ["bridge"]},
        {"id": 3, "question": "奥拉桥全长多少米?"},
    ]
    done = trellis(verb, "--questions", str(write_rows(tmp_path / "q.jsonl", asked)))
    assert done.code == 0
    assert [(next(iter(row)), row["id"]) for row in done.rows] == [
        ("id", "b"),
        ("id", "a"),
        ("id", 3),
    ]
    assert {passage["document"] for passage in done.rows[1]["passages"]} == {"bridge"}


def test_bad_rows_are_told_and_the_others_answered(
    trellis: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [
        '{"id": "a"}',
        "not json",
        "[1]",
        "",
        '{"id": "e", "question": "  "}',
        '{"id": "d", "question": 7}',
    ]
    lines.append('{"id": "h", "question": "x", "history": [{"role": "tool", "content": "x"}]}')
    rows = "\n".join([*lines, '{"id": "z", "question": "Orla Bridge"}'])
    monkeypatch.setattr("sys.stdin", io.StringIO(rows))
    done = trellis("retrieve", "--questions", "-")
    shown = done.rows
    assert (done.code, "6 of 7" in done.err) == (1, True)
    assert [row["id"] for row in shown] == ["a", None, None, "e", "d", "h", "z"]
    assert all(set(row["error"]) == {"type", "message", "remedy"} for row in shown[:-1])
    assert shown[-1]["passages"]


def test_show_prints_the_stored_text_and_nothing_else(trellis: Command) -> None:
    assert trellis("show", "bridge").out == BRIDGE
    view = trellis("show", "桥", "--json").json
    assert (view["document"], view["title"]) == ("桥", "奥拉桥")
    unknown = trellis("show", "bridges")
    assert (unknown.code, "bridge" in unknown.err) == (2, True)


def test_graph_shows_relations_with_the_sentences_that_state_them(trellis: Command) -> None:
    (entity,) = trellis("graph", "tomas reyd", "--json").json["entities"]
    assert entity["occurrences"] >= 2
    quotes = {
        place["quote"] for relation in entity["relations"] for place in relation["statements"]
    }
    assert any("designed by Tomas Reyd" in quote for quote in quotes)
    assert "designed by Tomas Reyd" in trellis("graph", "tomas reyd").out
    unknown = trellis("graph", "Tomas Raid", "--json")
    assert (unknown.code, "Tomas Reyd" in unknown.json["error"]["remedy"]) == (2, True)


def test_status_tells_what_holds(
    trellis: Command, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRELLIS_LM_API_KEY", "sk-secret")
    monkeypatch.setenv("TRELLIS_LM_BASE_URL", "https://me:hunter2@models.example/v1")
    done = trellis("status", "--json")
    state = done.json
    assert (state["generation"], state["counts"]["documents"], state["models"]["answer"]) == (
        1,
        3,
        "offline",
    )
    assert state["sources"] == [{"source": str(source), "documents": 3}]
    assert [row["kind"] for row in state["runs"]] == ["index"]
    people = trellis("status").out
    assert str(source) in people
    for secret in ("sk-secret", "hunter2"):
        assert secret not in done.out + people


def test_status_of_nothing_says_how_to_begin_and_makes_nothing(fresh: Command) -> None:
    done = fresh("status")
    assert (done.code, "trellis index" in done.out, fresh.workspace.exists()) == (0, True, False)


def test_a_reader_that_leaves_early_is_no_error(indexed: Path) -> None:
    command = f"{sys.executable} -m flows graph 'Orla Bridge' --workspace {indexed} | head -c 1"
    done = subprocess.run(  # noqa: S602
        command, shell=True, cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.stderr == ""


def test_people_see_one_line_and_status_the_steps(
    fresh: Command, copied: Command, source: Path, model_server: Server
) -> None:
    built = fresh("index", str(source)).out
    assert "model calls" in built
    assert "cost unknown" in built
    status = fresh("status", "--json").json
    steps = {row["step"]: row for row in status["usage"]}
    assert {row["model"] for row in steps.values()} == {"openai/scripted"}
    assert steps["extract"]["calls"] == model_server.stats()["steps"]["extract"]["calls"] > 0
    assert "Models used for generation 1" in fresh("status").out
    asked = fresh("ask", "Where was Tomas Reyd born?").out
    assert asked.rstrip().splitlines()[-1].endswith("cost unknown")
    assert copied("status", "--json").json["usage"] == [], "offline there is nothing to tell"


def test_it_says_what_it_found_and_what_to_do_next(
    fresh: Command, source: Path, monkeypatch: pytest.MonkeyPatch, model_server: Server
) -> None:
    told = fresh("tune", str(source))
    assert told.code == 0
    for said in (
        "kinds",
        "actor: who acts",
        str(fresh.workspace / TAILORING_FILE),
        f"trellis index {source}",
    ):
        assert said in told.out
    assert "counts instead" not in told.out
    monkeypatch.setenv("TRELLIS_TAILORING_LANGUAGE", "Greek")
    assert fresh("tune", str(source)).code == 2, "what is there is kept"
    assert "another language" in fresh("tune", str(source), "--force").out


def test_a_ledger_has_a_row_for_each_step_and_model() -> None:
    rows = [
        UsageRow(
            step="extract",
            model="openai/a|b",
            calls=3,
            input_tokens=10,
            output_tokens=5,
            cost_usd=None,
        )
    ]
    assert "| extract | openai/a b | 3 | 0 | 10 | 5 | cost unknown | 0.0 |" in ledger(rows)
    assert "offline" in ledger([])
