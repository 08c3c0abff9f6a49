"""The command keeps its contract: shapes, order, exit codes, and what goes to which stream."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from flows.__main__ import main
from flows.cli.parser import STRUCTURES
from flows.modes.registry import AUTO, find_mode, mode_names
from storage.answer_records import Answer, Retrieval, StructureType
from storage.run_records import IndexReport
from tests.flows.conftest import BRIDGE, ROWS, Command, write_rows

ROOT = Path(__file__).resolve().parents[2]
LOADED = "import sys; from flows.__main__ import main; main({0!r}); print(*sorted(sys.modules), file=sys.stderr)"


def run(*arguments: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "flows", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, input=stdin, timeout=120, check=False)


# --- help and typing errors ------------------------------------------------------------------------------------------


def test_help_names_every_command() -> None:
    done = run("--help")
    assert done.returncode == 0
    for name in (
        "index",
        "ask",
        "retrieve",
        "reports",
        "graph",
        "show",
        "status",
        "generations",
        "rollback",
        "dead-letter",
        "export",
        "tune",
        "doctor",
        "demo",
    ):
        assert f"\n    {name}" in done.stdout


def test_help_loads_nothing_heavy() -> None:
    code = "import sys\ntry:\n    from flows.__main__ import main; main(['--help'])\nfinally:\n    print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    loaded = set(done.stdout.split())
    assert "flows.cli.parser" in loaded
    assert loaded & {"prefect", "duckdb", "dspy", "numpy", "pydantic", "rich"} == set()


def test_asking_does_not_load_prefect(indexed: Path) -> None:
    code = LOADED.format(["ask", "Who designed Orla Bridge?", "--workspace", str(indexed)])
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "duckdb" in done.stderr.split()
    assert "prefect" not in done.stderr.split()


def test_the_parser_knows_the_modes_and_structures_of_the_records() -> None:
    told = run("ask", "--help").stdout.partition("--mode MODE ")[2].partition("--level")[0]
    assert " ".join(told.split()) == ", ".join(mode_names()).replace(AUTO, f"{AUTO} (default)")
    for name in mode_names():
        assert name == AUTO or callable(find_mode(name).run)
    assert STRUCTURES.split(", ") == list(get_args(StructureType))


@pytest.mark.parametrize(
    "arguments",
    [
        ["ask"],
        ["ask", "Who?", "--mode", "quick"],
        ["ask", "Who?", "--structure", "tree"],
        ["ask", "Who?", "--k", "0"],
        ["ask", "Who?", "--questions", "q.jsonl"],
        ["rollback", "first"],
        ["summon"],
    ],
)
def test_what_cannot_be_meant_is_a_usage_error(fresh: Command, arguments: list[str]) -> None:
    assert fresh(*arguments).code == 2
    assert not fresh.workspace.exists()


# --- index -----------------------------------------------------------------------------------------------------------


def test_index_reports_what_it_did_and_does_nothing_twice(fresh: Command, source: Path) -> None:
    first = IndexReport.model_validate(fresh("index", str(source), "--json").json)
    second = IndexReport.model_validate(fresh("index", str(source), "--json").json)
    assert (first.documents.added, second.documents.unchanged) == (3, 3)
    assert (first.generation, second.generation) == (1, 1)
    assert (first.published, second.published) == (True, False)


def test_index_speaks_to_people_without_colours_in_a_pipe(fresh: Command, source: Path) -> None:
    done = fresh("index", str(source))
    assert done.code == 0
    assert "Published generation 1" in done.out
    assert "3 added" in done.out
    assert "\x1b" not in done.out + done.err


def test_a_missing_source_is_an_error_in_words(fresh: Command, tmp_path: Path) -> None:
    missing = str(tmp_path / "nowhere")
    done = fresh("index", missing, "--json")
    assert done.code == 2
    assert done.json["error"]["type"] == "SourceNotFound"
    assert missing in done.err
    assert "Traceback" not in done.err
    assert not fresh.workspace.exists()


def test_many_removals_need_leave(fresh: Command, tmp_path: Path) -> None:
    source = write_rows(tmp_path / "docs.jsonl", ROWS)
    assert fresh("index", str(source)).code == 0
    write_rows(source, ROWS[:1])
    refused = fresh("index", str(source), "--json")
    assert (refused.code, refused.json["error"]["type"]) == (2, "RemovalRefused")
    allowed = fresh("index", str(source), "--allow-removals", "--json")
    assert (allowed.code, allowed.json["documents"]["removed"]) == (0, 2)


# --- ask and retrieve ------------------------------------------------------------------------------------------------


def test_ask_gives_an_answer_with_spans_that_hold(trellis: Command) -> None:
    done = trellis("ask", "Who designed Orla Bridge?", "--json")
    answer = Answer.model_validate(done.json)
    assert (done.code, answer.generation) == (0, 1)
    assert "Reyd" in answer.answer
    assert answer.citations
    for citation in answer.citations:
        text = trellis("show", citation.document).out
        assert text[citation.start : citation.end] == citation.quote


def test_ask_shows_people_the_answer_and_its_sources(trellis: Command) -> None:
    done = trellis("ask", "Who designed Orla Bridge?")
    assert done.code == 0
    assert "[1] " in done.out
    assert "designed by Tomas Reyd" in done.out
    assert "generation 1" in done.out
    assert "\x1b" not in done.out


def test_retrieve_gives_at_most_k_passages(trellis: Command) -> None:
    found = Retrieval.model_validate(trellis("retrieve", "Orla Bridge", "--k", "2", "--json").json)
    assert 0 < len(found.passages) <= 2
    people = trellis("retrieve", "Orla Bridge", "--k", "2")
    assert people.out.startswith("1. ")


@pytest.mark.parametrize("verb", ["ask", "retrieve"])
def test_a_batch_answers_in_order_and_restricts_documents(trellis: Command, verb: str, tmp_path: Path) -> None:
    asked = [
        {"id": "b", "question": "Who designed Orla Bridge?", "expected": "passed over"},
        {"id": "a", "question": "How long is Orla Bridge?", "documents": ["bridge"]},
        {"id": 3, "question": "奥拉桥全长多少米?"},
    ]
    done = trellis(verb, "--questions", str(write_rows(tmp_path / "q.jsonl", asked)))
    assert done.code == 0
    assert [row["id"] for row in done.rows] == ["b", "a", 3]
    assert all(next(iter(row)) == "id" for row in done.rows)
    assert {passage["document"] for passage in done.rows[1]["passages"]} == {"bridge"}


def test_a_row_may_have_a_conversation_as_texts_or_messages(trellis: Command, tmp_path: Path) -> None:
    before = "Who designed Orla Bridge?"
    turns = (before, {"role": "user", "content": before}, {"role": "tool", "content": "x"})
    rows = [{"id": number, "question": "How long is it?", "history": [one]} for number, one in enumerate(turns)]
    done = trellis("ask", "--questions", str(write_rows(tmp_path / "q.jsonl", rows)))
    assert done.code == 1
    assert [row["trace"]["rewritten"] for row in done.rows[:2]] == ["How long is Orla Bridge?"] * 2
    assert done.rows[2]["error"]["type"] == "UsageError"


def test_bad_rows_are_told_and_the_others_answered(trellis: Command, tmp_path: Path) -> None:
    file = tmp_path / "q.jsonl"
    lines = ['{"id": "a"}', "not json", "[1]", "", '{"id": "e", "question": "  "}', '{"id": "d", "question": 7}']
    file.write_text("\n".join([*lines, '{"id": "z", "question": "Orla Bridge"}']), encoding="utf-8")
    done = trellis("retrieve", "--questions", str(file), "--json")
    assert done.code == 1
    assert [row["id"] for row in done.rows] == ["a", None, None, "e", "d", "z"]
    assert all(set(row["error"]) == {"type", "message", "remedy"} for row in done.rows[:-1])
    assert done.rows[-1]["passages"]
    assert "5 of 6" in done.err


def test_questions_come_from_standard_input(indexed: Path) -> None:
    row = json.dumps({"id": 1, "question": "Orla Bridge"})
    done = run("retrieve", "--questions", "-", "--workspace", str(indexed), stdin=row)
    assert (done.returncode, json.loads(done.stdout)["id"]) == (0, 1)


def test_questions_that_cannot_be_read_are_a_usage_error(trellis: Command, tmp_path: Path) -> None:
    done = trellis("ask", "--questions", str(tmp_path / "none.jsonl"), "--json")
    assert (done.code, done.json["error"]["type"]) == (2, "UsageError")


@pytest.mark.parametrize("verb", [["ask", "Who?"], ["retrieve", "Who?"], ["reports"], ["graph", "X"], ["show", "x"]])
def test_nothing_indexed_says_how_to_begin(fresh: Command, verb: list[str]) -> None:
    done = fresh(*verb)
    assert done.code == 2
    assert "trellis index" in done.err
    assert not fresh.workspace.exists()


def test_an_empty_question_is_a_usage_error(trellis: Command) -> None:
    assert trellis("ask", "  ").code == 2


# --- looking ---------------------------------------------------------------------------------------------------------


def test_show_prints_the_stored_text_and_nothing_else(trellis: Command) -> None:
    assert trellis("show", "bridge").out == BRIDGE
    view = trellis("show", "桥", "--json").json
    assert (view["document"], view["title"]) == ("桥", "奥拉桥")


def test_an_unknown_document_names_the_nearest(trellis: Command) -> None:
    done = trellis("show", "bridges")
    assert done.code == 2
    assert "bridge" in done.err


def test_graph_shows_relations_with_the_sentences_that_state_them(trellis: Command) -> None:
    view = trellis("graph", "tomas reyd", "--json").json
    (entity,) = view["entities"]
    assert entity["occurrences"] >= 2
    quotes = {said["quote"] for relation in entity["relations"] for said in relation["statements"]}
    assert any("designed by Tomas Reyd" in quote for quote in quotes)
    people = trellis("graph", "tomas reyd").out
    assert "Tomas Reyd" in people
    assert "designed by Tomas Reyd" in people


def test_an_unknown_name_names_the_nearest(trellis: Command) -> None:
    done = trellis("graph", "Tomas Raid", "--json")
    assert done.code == 2
    assert "Tomas Reyd" in done.json["error"]["remedy"]


def test_reports_are_listed_and_shown(trellis: Command) -> None:
    listed = trellis("reports", "--json").json
    assert listed
    one = trellis("reports", listed[0]["community"], "--json").json
    assert (one["title"], one["summary"]) == (listed[0]["title"], listed[0]["summary"])
    assert one["title"] in trellis("reports").out
    assert one["summary"] in trellis("reports", one["community"]).out
    assert trellis("reports", "com_none").code == 2


# --- state -----------------------------------------------------------------------------------------------------------


def test_status_tells_what_holds(trellis: Command, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRELLIS_LM_API_KEY", "sk-secret")
    monkeypatch.setenv("TRELLIS_LM_BASE_URL", "https://me:hunter2@models.example/v1")
    done = trellis("status", "--json")
    found = done.json
    assert (found["generation"], found["counts"]["documents"]) == (1, 3)
    assert found["sources"] == [{"source": str(source), "documents": 3}]
    assert found["models"]["answer"] == "offline"
    assert [run["kind"] for run in found["runs"]] == ["index"]
    people = trellis("status").out
    assert str(source) in people
    for secret in ("sk-secret", "hunter2"):
        assert secret not in done.out + people


def test_status_of_nothing_says_how_to_begin_and_makes_nothing(fresh: Command) -> None:
    done = fresh("status")
    assert done.code == 0
    assert "trellis index" in done.out
    assert not fresh.workspace.exists()


def test_generations_can_be_listed_read_and_rolled_back_to(fresh: Command, tmp_path: Path) -> None:
    source = write_rows(tmp_path / "docs.jsonl", ROWS)
    assert fresh("index", str(source)).code == 0
    write_rows(source, [*ROWS, {"id": "new", "text": "The Velin Ferry closed in 1950."}])
    assert fresh("index", str(source)).code == 0
    assert [one["number"] for one in fresh("generations", "--json").json] == [1, 2]
    assert fresh("show", "new", "--as-of", "1").code == 2
    assert fresh("show", "new").code == 0
    assert fresh("retrieve", "Velin Ferry", "--as-of", "1", "--json").json["generation"] == 1
    assert fresh("rollback", "1", "--json").json == {"generation": 1, "before": 2}
    assert fresh("show", "new").code == 2
    assert fresh("rollback", "9").code == 2


def test_a_locked_workspace_is_told(fresh: Command, source: Path) -> None:
    from storage.workspace import Workspace

    with Workspace(fresh.workspace).write():
        done = fresh("index", str(source), "--json")
    assert (done.code, done.json["error"]["type"]) == (4, "WorkspaceLocked")
    assert str(os.getpid()) in done.err


def test_a_bad_setting_is_told(fresh: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRELLIS_CHUNK_TOKENS", "many")
    done = fresh("status")
    assert done.code == 2
    assert "chunk_tokens" in done.err


def test_a_reader_that_leaves_early_is_no_error(indexed: Path) -> None:
    command = f"{sys.executable} -m flows graph 'Orla Bridge' --workspace {indexed} | head -c 1"
    done = subprocess.run(command, shell=True, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S602
    assert done.stderr == ""


@pytest.mark.slow
def test_the_demo_shows_answers_with_their_sources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["demo"]) == 0
    said = capsys.readouterr().out
    assert "23 added" in said
    families = (
        "one fact",
        "steps to follow",
        "the whole collection",
        "the graph alone",
        "what the documents do not say",
    )
    assert all(f"\n{family}" in said for family in families)
    assert said.count("\n[1] ") == 10
    assert "mode chosen: about the whole collection" in said
    assert "mode traverse" in said
    assert "the documents do not speak of this" in said
    assert "Try next" in said
    assert [path.name for path in tmp_path.iterdir()] == [".trellis-demo"]


# --- nothing to index ------------------------------------------------------------------------------------------------


def test_what_holds_nothing_readable_is_not_published(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "scans").mkdir()
    (tmp_path / "scans" / "broken.pdf").write_text("no PDF")
    command = Command(tmp_path / "ws", capsys)
    ended = command("index", str(tmp_path / "scans"))
    assert ended.code == 5
    assert "holds nothing that can be read" in ended.err
    assert "broken.pdf (broken PDF" in ended.err
    assert command("ask", "Who?").code == 2, "there is no generation"


def test_where_no_call_of_a_model_succeeds_nothing_is_published(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.txt").write_text("Ada Lovelace wrote the first program.")
    for name, value in (("LM", "openai/none"), ("LM_BASE_URL", "http://127.0.0.1:9/v1"), ("MAX_ATTEMPTS", "1")):
        monkeypatch.setenv(f"TRELLIS_{name}", value)
    command = Command(tmp_path / "ws", capsys)
    ended = command("index", str(tmp_path / "a.txt"))
    assert ended.code == 5
    assert "1 of 1 items failed in step extract" in ended.err
    assert command("ask", "Who?").code == 2, "there is no generation"
