"""`ask` and `aask` answer from one open session per workspace, and follow it to the next generation."""

import asyncio
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from flows.__main__ import main
from flows.query import aask, ask
from flows.session import SESSIONS, Sessions
from storage.errors import NoGeneration, UsageError
from storage.workspace import Workspace
from tests.flows.conftest import ROWS, write_rows

QUESTION = "Who designed Orla Bridge?"


def test_ask_answers_and_keeps_the_workspace_open(indexed: Path) -> None:
    first = ask(QUESTION, workspace=indexed)
    assert "Reyd" in first.answer

    async def session() -> int:
        async with SESSIONS.use(indexed) as held:
            return id(held)

    before = asyncio.run(session())
    ask("How long is Orla Bridge?", workspace=indexed)
    assert asyncio.run(session()) == before


async def test_ask_works_where_a_loop_is_running(indexed: Path) -> None:
    answer = ask(QUESTION, workspace=indexed)
    assert answer.answer == (await aask(QUESTION, workspace=str(indexed))).answer


def test_many_threads_may_ask_at_once(indexed: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: ask(QUESTION, workspace=indexed).answer, range(16)))
    assert len(set(answers)) == 1
    assert sum(thread.name == "trellis-loop" for thread in threading.enumerate()) == 1


def test_documents_restrict_the_evidence(indexed: Path) -> None:
    answer = ask("How long is Orla Bridge?", workspace=indexed, documents=["bridge"])
    assert {passage.document for passage in answer.passages} == {"bridge"}


@pytest.mark.parametrize("form", ["texts", "messages", "both"])
def test_a_conversation_is_texts_or_messages(indexed: Path, form: str) -> None:
    texts = [QUESTION, "Tomas Reyd."]
    messages = [{"role": role, "content": text} for role, text in zip(("user", "assistant"), texts, strict=True)]
    forms: dict[str, Sequence[str | Mapping[str, object]]] = {
        "texts": texts, "messages": messages, "both": [texts[0], messages[1]],
    }  # fmt: skip
    assert ask("How long is it?", workspace=indexed, history=forms[form]).trace.rewritten == "How long is Orla Bridge?"


@pytest.mark.parametrize(
    "history", ["Who?", [7], [{"content": "Who?"}], [{"role": "system", "content": "Be brief."}], [{"role": "user"}]]
)
def test_what_is_no_turn_is_refused_with_what_is_one(indexed: Path, history: Sequence[str]) -> None:
    with pytest.raises(UsageError) as caught:
        ask(QUESTION, workspace=indexed, history=history)
    assert "turn" in caught.value.remedy


def test_an_error_reaches_whoever_asked(tmp_path: Path) -> None:
    with pytest.raises(NoGeneration):
        ask(QUESTION, workspace=tmp_path / "ws")


async def test_a_session_is_kept_until_its_last_question_is_done(tmp_path: Path) -> None:
    """While a question runs, the next generation is published: it ends where it began, the next one is on the new."""
    source, workspace = tmp_path / "docs.jsonl", tmp_path / "ws"
    write_rows(source, ROWS)
    await asyncio.to_thread(main, ["index", str(source), "--workspace", str(workspace), "--json"])
    sessions = Sessions()
    async with sessions.use(workspace) as old:
        write_rows(source, [*ROWS, {"id": "new", "text": "The Velin Ferry closed in 1950."}])
        await asyncio.to_thread(main, ["index", str(source), "--workspace", str(workspace), "--json"])
        async with sessions.use(workspace) as new:
            assert (old.number, new.number) == (1, 2)
            assert len(old.documents(["bridge"])) == 1
    assert Workspace(workspace, keep_generations=1).clean() == [1], "the old one is closed: nobody holds it"
    sessions.close()
