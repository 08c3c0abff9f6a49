"""`ask` and `aask` answer from one open session per workspace, which follows its generations."""

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
from tests.copying import copy_of
from tests.flows.conftest import ROWS
from tests.workspaces import write_rows

QUESTION = "Who designed Orla Bridge?"


@pytest.fixture(scope="module")
def indexed(indexed: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy, since its questions are remembered."""
    return copy_of(indexed, tmp_path_factory.mktemp("asked") / "ws")


async def test_ask_keeps_the_workspace_open_in_a_running_loop(
    indexed: Path, tmp_path: Path
) -> None:
    answer = ask(QUESTION, workspace=indexed)
    assert "Reyd" in answer.answer
    async with SESSIONS.use(indexed) as before:
        assert answer.answer == (await aask(QUESTION, workspace=str(indexed))).answer
    async with SESSIONS.use(indexed) as after:
        assert after is before
    with pytest.raises(NoGeneration):
        ask(QUESTION, workspace=tmp_path / "ws")


def test_many_threads_may_ask_at_once(indexed: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: ask(QUESTION, workspace=indexed).answer, range(16)))
    assert len(set(answers)) == 1
    assert sum(thread.name == "trellis-loop" for thread in threading.enumerate()) == 1


def test_a_conversation_is_texts_or_messages(indexed: Path) -> None:
    message = {"role": "assistant", "content": "Tomas Reyd."}
    forms: list[Sequence[str | Mapping[str, object]]] = [
        [QUESTION, "Tomas Reyd."],
        [{"role": "user", "content": QUESTION}, message],
        [QUESTION, message],
    ]
    for history in forms:
        rewritten = ask("How long is it?", workspace=indexed, history=history).trace.rewritten
        assert rewritten == f"{QUESTION} How long is it?"


@pytest.mark.parametrize(
    "history",
    [
        "Who?",
        [7],
        [{"content": "Who?"}],
        [{"role": "system", "content": "Be brief."}],
        [{"role": "user"}],
    ],
)
def test_what_is_no_turn_is_refused(indexed: Path, history: Sequence[str]) -> None:
    with pytest.raises(UsageError, match="turn"):
        ask(QUESTION, workspace=indexed, history=history)


async def test_a_question_ends_on_the_generation_where_it_began(tmp_path: Path) -> None:
    source, workspace, sessions = tmp_path / "docs.jsonl", tmp_path / "ws", Sessions()

    async def publish(*more: object) -> None:
        write_rows(source, [*ROWS, *more])
        command = ["index", str(source), "--workspace", str(workspace), "--json"]
        assert await asyncio.to_thread(main, command) == 0

    await publish()
    async with sessions.use(workspace) as old:
        await publish({"id": "new", "text": "The Velin Ferry closed in 1950."})
        async with sessions.use(workspace) as new:
            assert (old.number, new.number) == (1, 2)
            assert len(old.documents(["bridge"])) == 1
    assert Workspace(workspace, keep_generations=1).clean() == [1], "the old session is closed"
    sessions.close()
