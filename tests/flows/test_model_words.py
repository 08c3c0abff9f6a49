"""What a good model says reaches the user; a draft is shown while it is written."""

import asyncio
import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from flows.runtime import open_runtime
from flows.session import Session, open_session
from flows.settings import load_settings
from prompts.engine.streaming import Withdrawn
from storage.answer_records import Answer
from tests.flows.conftest import Command
from tests.patience import PATIENCE
from tests.server.client import ROOT, Server
from tests.workspaces import asked

QUESTION = "Who designed Orla Bridge?"
BORN = "Where was Tomas Reyd born?"


def writing(step: str, **says: object) -> dict[str, object]:
    """A rule by which the model writes this in a step."""
    return {"kind": "writes", "step": step, "says": json.dumps(says)}


def knowing(server: Server, answer: str, *values: str, answerable: bool = True) -> None:
    """Let the last step of every mode write this answer."""
    written = {"answer": answer, "values": values, "answerable": answerable}
    points = {"points": [{"text": "It opened in 1931.", "findings": [0], "score": 80}]}
    server.misbehave(
        writing("answer", written=written),
        writing("reduce", written=written),
        writing("partial", partial=points),
        writing("explore", explored={**points, "follow_ups": []}),
    )


def bodies(server: Server) -> list[Any]:
    """The requests of the answer step."""
    return [request["body"] for request in server.requests() if request["step"] == "answer"]


def test_a_made_up_sentence_is_flagged_in_words_or_withheld(
    copied: Command, model_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    made_up = "It was painted green by Zorblax Quemby in 1803"
    knowing(model_server, f"Tomas Reyd designed Orla Bridge [1]. {made_up} [1].", "Tomas Reyd")
    assert f"no source supports: {made_up}" in copied("ask", QUESTION).out
    answer = copied("ask", QUESTION, "--json").json
    (flagged,) = [row for row in answer["grounding"] if row["supported"] is False]
    assert answer["answer"][flagged["start"] : flagged["end"]].startswith("It was painted")
    assert answer["fallback"] == "partial"
    monkeypatch.setenv("TRELLIS_STRICT", "true")
    answer = copied("ask", QUESTION, "--json").json
    assert answer["answer"] == "Tomas Reyd designed Orla Bridge [1]."


@pytest.mark.parametrize(
    ("marker", "said"),
    [
        (" [1]", "cites sources; whether they support it cannot be told by words"),
        ("", "from the model alone: no source supports it"),
    ],
)
def test_an_answer_in_another_language_than_its_sources(
    marker: str, said: str, copied: Command, model_server: Server
) -> None:
    german = "Diese Brücke wurde von einem Mann aus jener Stadt entworfen"
    knowing(model_server, f"{german}{marker}.", "Tomas Reyd")
    assert said in copied("ask", QUESTION, "--mode", "naive").out


def test_parts_are_answered_by_the_model_and_cited_by_the_whole(
    copied: Command, model_server: Server
) -> None:
    question = "When did Orla Bridge open and where was Tomas Reyd born?"
    parts = copied("ask", question, "--json").json["trace"]["subquestions"]
    assert [part["question"] for part in parts] == [
        "When did Orla Bridge open?",
        "where was Tomas Reyd born?",
    ]
    assert all(part["answer"] and part["evidence"] for part in parts)
    _, _, whole = bodies(model_server)
    assert "Answer to: When did Orla Bridge open?" in str(whole)


def test_the_model_answers_alone_where_that_is_set(
    copied: Command, model_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged = [
        {"passage": n, "explanation": "Denies it.", "label": "contradiction"} for n in range(1, 4)
    ]
    model_server.misbehave(
        writing("filter", judged={"judgements": judged}),
        writing("direct", written={"answer": "I believe that Reyd did."}),
    )
    command = ("ask", QUESTION, "--effort", "high", "--json")
    answer = copied(*command).json
    assert (answer["fallback"], answer["trace"]["answered_by"]) == ("abstained", "model")
    monkeypatch.setenv("TRELLIS_ANSWER_ALONE", "true")
    answer = copied(*command).json
    assert (answer["answer"], answer["fallback"]) == ("I believe that Reyd did.", "ungrounded")
    assert (answer["citations"], answer["trace"]["answered_by"]) == ([], "model")


def test_a_model_that_read_evidence_says_what_is_missing(
    copied: Command, model_server: Server
) -> None:
    unknown = "Nobody is said to have painted it."
    knowing(model_server, unknown, answerable=False)
    answer = copied("ask", "What are the main themes of the documents?", "--json").json
    assert (answer["answer"], answer["fallback"]) == (unknown, "abstained")
    tried = answer["trace"]["decision"]["tried"]
    assert answer["trace"]["mode"] not in {one["mode"] for one in tried}


# --- drafts ---


@pytest.fixture
def session(copied: Command) -> Iterator[Session]:
    with open_session(open_runtime(load_settings({"workspace": copied.workspace}))) as opened:
        yield opened


def drafted(session: Session) -> tuple[Answer, str]:
    """The answer, and what was shown before, with `<` where it was withdrawn and `|` between
    pieces.
    """
    pieces: list[str] = []

    def show(piece: str | Withdrawn) -> None:
        pieces.append("<" if isinstance(piece, Withdrawn) else f"{piece}|")

    answer = asyncio.run(asked(BORN, session, on_text=show))
    return answer, "".join(pieces)


def streamed(server: Server) -> list[bool]:
    """Whether each answer was asked for piece by piece."""
    return [bool(body.get("stream")) for body in bodies(server)]


def test_a_draft_comes_in_pieces_and_the_answer_is_checked(
    model_server: Server, session: Session
) -> None:
    answer, shown = drafted(session)
    assert shown.count("|") > 1
    assert "Tomas Reyd was born in Velin" in shown.replace("|", "")
    assert answer.citations[0].verified
    assert streamed(model_server) == [True]


@pytest.mark.parametrize("rule", ["malformed", "truncated", "cut"])
def test_a_draft_that_fails_is_withdrawn_and_written_anew(
    rule: str, model_server: Server, session: Session
) -> None:
    model_server.misbehave({"kind": rule, "step": "answer", "nth": 1})
    answer, shown = drafted(session)
    assert "Velin" in answer.answer
    again = shown.replace("|", "").split("<")[1:]
    if rule == "cut":  # a stream that broke off may do so again: its next try comes whole
        assert (answer.usage.by_step["answer"].calls, "".join(again)) == (1, "")
        assert streamed(model_server) == [True, False]
    else:
        assert (answer.usage.by_step["answer"].calls, len(again)) == (2, 1)
        assert "Tomas Reyd was born in Velin" in again[0]
        assert streamed(model_server) == [True, True]
    if rule == "malformed":
        first, second = (body["messages"] for body in bodies(model_server))
        assert second[:-1] == first[:-1]
        added = second[-1]["content"].removeprefix(first[-1]["content"])
        assert added.startswith("\n\nAn earlier answer cannot be read: the JSON is broken")


def test_a_terminal_shows_the_draft_and_then_the_answer(
    model_server: Server, copied: Command
) -> None:
    model_server.misbehave({"kind": "drip", "step": "answer", "seconds": 0.5})
    shown = on_a_terminal("ask", BORN, "--workspace", str(copied.workspace))
    # Where the cursor shows again, the draft has ended.
    draft, _, result = shown.partition("\x1b[?25h")
    assert "born in Velin" in draft
    assert "[1] Tomas Reyd (reyd)" not in draft
    assert "[1] Tomas Reyd (reyd)" in result
    assert streamed(model_server) == [True]


def on_a_terminal(*arguments: str) -> str:
    """What the command writes to a terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "flows", *arguments],
        cwd=ROOT,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "200"},
        stdout=theirs,
        stderr=subprocess.DEVNULL,
    )
    os.close(theirs)
    said = b""
    try:
        while piece := os.read(ours, 65536):
            said += piece
    except OSError:
        pass  # Linux reports so that the other side has closed
    finally:
        os.close(ours)
    assert process.wait(timeout=PATIENCE) == 0, said.decode(errors="replace")
    return said.decode()
