"""What a good model says reaches the user in every mode; a draft is shown while it is written."""

import asyncio
import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from flows.query import answer_question
from flows.question import AskOptions
from flows.runtime import open_runtime
from flows.session import Session, open_session
from flows.settings import load_settings
from prompts.engine.streaming import Withdrawn
from storage.answer_records import Answer
from tests.flows.conftest import Command
from tests.patience import PATIENCE
from tests.server.client import Server

QUESTION = "Who designed Orla Bridge, and how old was it in 2031?"
MODES = (
    "auto",
    "struct",
    "naive",
    "local",
    "low",
    "high",
    "hybrid",
    "mix",
    "global",
    "drift",
    "ts",
    "rq",
    "hyde",
)
# What the map step of global search says, so that there are points to reduce.
POINTS = {"points": [{"text": "It opened in 1931.", "findings": [0], "score": 80}]}


def knowing(
    server: Server, answer: str, values: tuple[str, ...] = ("Tomas Reyd",), answerable: bool = True
) -> None:
    """Give this answer to the last step of every mode."""
    written = json.dumps(
        {"written": {"answer": answer, "values": values, "answerable": answerable}}
    )
    rules = [{"kind": "writes", "step": step, "says": written} for step in ("answer", "reduce")]
    partial = json.dumps({"partial": POINTS})
    explored = json.dumps({"explored": {**POINTS, "follow_ups": []}})
    server.misbehave(
        *rules,
        {"kind": "writes", "step": "partial", "says": partial},
        {"kind": "writes", "step": "explore", "says": explored},
    )


def test_a_made_up_sentence_is_flagged_in_words_or_withheld(
    copied: Command, model_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    knowing(
        model_server,
        "Tomas Reyd designed Orla Bridge [1]. It was painted green by Zorblax Quemby in 1803 [1].",
    )
    ended = copied("ask", "Who designed Orla Bridge?")
    assert "no source supports: It was painted green by Zorblax Quemby in 1803" in ended.out
    answer = copied("ask", "Who designed Orla Bridge?", "--json").json
    flagged = [row for row in answer["grounding"] if row["supported"] is False]
    assert [answer["answer"][row["start"] : row["end"]][:14] for row in flagged] == [
        "It was painted"
    ]
    assert answer["fallback"] == "partial"
    monkeypatch.setenv("TRELLIS_STRICT", "true")
    answer = copied("ask", "Who designed Orla Bridge?", "--json").json
    assert answer["answer"] == "Tomas Reyd designed Orla Bridge [1]."


def test_an_answer_in_another_language_than_its_sources_is_not_said_to_be_the_models_alone(
    copied: Command, model_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRELLIS_ANSWER_CACHE", "false")
    knowing(model_server, "Diese Brücke wurde von einem Mann aus jener Stadt entworfen [1].")
    told = copied("ask", "Who designed Orla Bridge?", "--mode", "naive")
    assert "cites sources; whether they support it cannot be told by words" in told.out
    knowing(model_server, "Diese Brücke wurde von einem Mann aus jener Stadt entworfen.")
    told = copied("ask", "Who designed Orla Bridge?", "--mode", "naive")
    assert "from the model alone: no source supports it" in told.out


def test_the_form_of_the_response_reaches_the_model(copied: Command, model_server: Server) -> None:
    copied("ask", "Who designed Orla Bridge?", "--response", "a list, in German")
    (asked,) = (
        str(request["body"]) for request in model_server.requests() if request["step"] == "answer"
    )
    assert "a list, in German" in asked


def test_parts_are_answered_by_the_model_and_cited_by_the_whole(
    copied: Command, model_server: Server
) -> None:
    question = "When did Orla Bridge open and where was Tomas Reyd born?"
    answer = copied("ask", question, "--json").json
    assert [part["question"] for part in answer["trace"]["subquestions"]] == [
        "When did Orla Bridge open?",
        "where was Tomas Reyd born?",
    ]
    assert all(part["answer"] and part["evidence"] for part in answer["trace"]["subquestions"])
    bodies = [
        str(request["body"]) for request in model_server.requests() if request["step"] == "answer"
    ]
    assert len(bodies) == 3
    assert "Answer to: When did Orla Bridge open?" in bodies[-1]


def none_helps(server: Server) -> None:
    """Let the filter keep nothing, and the model know the answer by itself."""
    judged = [
        {"passage": n, "explanation": "Denies it.", "label": "contradiction"} for n in range(1, 4)
    ]
    server.misbehave(
        {
            "kind": "writes",
            "step": "filter",
            "says": json.dumps({"judged": {"judgements": judged}}),
        },
        {
            "kind": "writes",
            "step": "direct",
            "says": json.dumps({"written": {"answer": "I believe that Reyd did."}}),
        },
    )


def test_where_nothing_is_found_the_model_answers_alone_if_that_is_set(
    copied: Command, model_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    none_helps(model_server)
    answer = copied("ask", "Who designed Orla Bridge?", "--effort", "high", "--json").json
    assert (answer["fallback"], answer["trace"]["answered_by"]) == ("abstained", "model")
    monkeypatch.setenv("TRELLIS_ANSWER_ALONE", "true")
    answer = copied("ask", "Who designed Orla Bridge?", "--effort", "high", "--json").json
    assert (answer["answer"], answer["fallback"]) == ("I believe that Reyd did.", "ungrounded")
    assert (answer["citations"], answer["trace"]["answered_by"]) == ([], "model")


def test_who_has_read_evidence_says_that_the_documents_do_not_say(
    copied: Command, model_server: Server
) -> None:
    knowing(model_server, "Nobody is said to have painted it.", (), answerable=False)
    answer = copied("ask", "What are the main themes of the documents?", "--json").json
    assert (answer["answer"], answer["fallback"]) == (
        "Nobody is said to have painted it.",
        "abstained",
    )
    tried = answer["trace"]["decision"]["tried"]
    assert answer["trace"]["mode"] not in {one["mode"] for one in tried}


ROOT = Path(__file__).resolve().parents[2]
BORN = "Where was Tomas Reyd born?"


@pytest.fixture
def session(copied: Command) -> Iterator[Session]:
    with open_session(open_runtime(load_settings({"workspace": copied.workspace}))) as opened:
        yield opened


def drafted(session: Session) -> tuple[Answer, list[str]]:
    """The answer and what was shown; `<` is where what was shown was withdrawn."""
    pieces: list[str] = []

    def show(piece: str | Withdrawn) -> None:
        pieces.append("<" if isinstance(piece, Withdrawn) else piece)

    answer = asyncio.run(answer_question(BORN, AskOptions(on_text=show), session))
    return answer, pieces


def streamed(server: Server) -> list[bool]:
    """For each answer that was asked for, whether piece by piece."""
    asked = [request["body"] for request in server.requests() if request["step"] == "answer"]
    return [isinstance(body, dict) and bool(body.get("stream")) for body in asked]


def test_a_draft_comes_in_pieces_and_the_answer_is_checked(
    model_server: Server, session: Session
) -> None:
    answer, pieces = drafted(session)
    assert len(pieces) > 1
    assert "Tomas Reyd was born in Velin" in "".join(pieces)
    assert answer.citations[0].verified
    assert streamed(model_server) == [True]


@pytest.mark.parametrize("rule", ["malformed", "truncated", "cut"])
def test_a_draft_that_fails_is_withdrawn_and_written_anew(
    rule: str, model_server: Server, session: Session
) -> None:
    model_server.misbehave({"kind": rule, "step": "answer", "nth": 1})
    answer, pieces = drafted(session)
    assert "Velin" in answer.answer
    assert answer.usage.by_step["answer"].calls == (1 if rule == "cut" else 2)
    _, *again = "".join(pieces).split("<")
    # A stream that broke off may do so again: its next try comes whole.
    assert streamed(model_server) == [True, rule != "cut"]
    if rule == "cut":
        assert (
            "".join(again) == ""
        )  # the connection is reset: what had come may have been read by then, or not
    else:
        (draft,) = again
        assert "Tomas Reyd was born in Velin" in draft
    if rule == "malformed":
        bodies = [
            request["body"] for request in model_server.requests() if request["step"] == "answer"
        ]
        first, second = (body["messages"] for body in bodies if isinstance(body, dict))
        assert second[:-1] == first[:-1]
        said = second[-1]["content"].removeprefix(first[-1]["content"])
        assert said.startswith("\n\nAn earlier answer cannot be read: the JSON is broken")


def test_a_terminal_shows_the_draft_and_then_the_answer(
    model_server: Server, copied: Command
) -> None:
    model_server.misbehave({"kind": "drip", "step": "answer", "seconds": 0.5})
    shown = on_a_terminal("ask", BORN, "--workspace", str(copied.workspace))
    draft, _, result = shown.partition(
        "\x1b[?25h"
    )  # where the cursor shows again, the draft has ended
    assert "born in Velin" in draft
    assert "[1] Tomas Reyd (reyd)" not in draft
    assert "[1] Tomas Reyd (reyd)" in result
    assert streamed(model_server) == [True]


def on_a_terminal(*arguments: str) -> str:
    """What the command writes to a terminal."""
    ours, theirs = pty.openpty()
    environ = {**os.environ, "TERM": "xterm", "COLUMNS": "200"}
    process = subprocess.Popen(
        [sys.executable, "-m", "flows", *arguments],
        cwd=ROOT,
        env=environ,
        stdout=theirs,
        stderr=subprocess.DEVNULL,
    )
    os.close(theirs)
    said = b""
    try:
        while piece := os.read(ours, 65536):
            said += piece
    except OSError:
        pass  # Linux' way to say that the other side has closed
    finally:
        os.close(ours)
    assert process.wait(timeout=PATIENCE) == 0, said.decode(errors="replace")
    return said.decode()
