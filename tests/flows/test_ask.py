"""One session per workspace answers, and follows it to the next generation, in this process and in several."""

import asyncio
import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from flows.__main__ import main
from flows.index import IndexOptions, build_index
from flows.query import aask, ask
from flows.runtime import open_runtime
from flows.session import SESSIONS, Sessions
from flows.settings import load_settings
from storage.errors import NoGeneration, UsageError
from storage.run_records import IndexReport
from storage.workspace import Workspace
from tests.flows.conftest import ROWS, write_rows
from tests.patience import PATIENCE

QUESTION = "Who designed Orla Bridge?"


async def test_ask_answers_and_keeps_the_workspace_open_also_where_a_loop_is_running(
    indexed: Path, tmp_path: Path
) -> None:
    answer = ask(QUESTION, workspace=indexed)
    assert "Reyd" in answer.answer
    async with SESSIONS.use(indexed) as held:
        before = id(held)
    assert answer.answer == (await aask(QUESTION, workspace=str(indexed))).answer
    async with SESSIONS.use(indexed) as held:
        assert id(held) == before
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
        [QUESTION, "Tomas Reyd."], [{"role": "user", "content": QUESTION}, message], [QUESTION, message],
    ]  # fmt: skip
    for history in forms:
        rewritten = ask("How long is it?", workspace=indexed, history=history).trace.rewritten
        assert rewritten == "How long is Orla Bridge?"


@pytest.mark.parametrize(
    "history", ["Who?", [7], [{"content": "Who?"}], [{"role": "system", "content": "Be brief."}], [{"role": "user"}]]
)
def test_what_is_no_turn_is_refused_with_what_is_one(indexed: Path, history: Sequence[str]) -> None:
    with pytest.raises(UsageError) as caught:
        ask(QUESTION, workspace=indexed, history=history)
    assert "turn" in caught.value.remedy


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


ROOT = Path(__file__).parents[2]
READER = """
import json, sys
from pathlib import Path
from flows.query import ask
last = False
while not last:
    last = Path(sys.argv[2]).exists()
    answer = ask("How long is Orla Bridge?", workspace=sys.argv[1])
    print(json.dumps([answer.generation, answer.values, [c.quote for c in answer.citations]]), flush=True)
"""
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "TRELLIS_EMBEDDING": "none"}


def write(source: Path, metres: int, others: int = 0) -> None:
    rows = [{"id": "bridge", "title": "Orla Bridge", "text": f"Orla Bridge is {metres} metres long."}]
    rows += [
        {"id": f"d{i}", "title": f"Quay {i}", "text": f"Quay {i} of Velin was built by Ana Korb. " * 40}
        for i in range(others)
    ]
    source.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


async def publish(workspace: Path, source: Path) -> IndexReport:
    runtime = open_runtime(load_settings({"workspace": workspace, "embedding": "none"}))
    return await build_index([source], IndexOptions(), runtime)


def start(code: str, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)], stdout=subprocess.PIPE, text=True, env=ENVIRONMENT
    )


async def test_two_processes_ask_while_runs_publish(tmp_path: Path) -> None:
    workspace, source = tmp_path / "ws", tmp_path / "docs.jsonl"
    write(source, 1000)
    metres = {(await publish(workspace, source)).generation: 1000}
    stop = tmp_path / "stop"
    readers = [start(READER, workspace, stop) for _ in range(2)]
    first = []
    for reader in readers:
        assert reader.stdout is not None
        first.append(reader.stdout.readline())
    for step in range(1, 4):
        write(source, 1000 + step)
        metres[(await publish(workspace, source)).generation] = 1000 + step
    stop.touch()
    for reader, line in zip(readers, first, strict=True):
        said, _ = reader.communicate(timeout=PATIENCE)
        answers = [json.loads(line) for line in (line + said).splitlines()]
        assert reader.returncode == 0
        assert len({generation for generation, _, _ in answers}) >= 2, "the reader never moved to a newer generation"
        for generation, values, quotes in answers:
            assert values == []
            assert f"Orla Bridge is {metres[generation]} metres long." in quotes
