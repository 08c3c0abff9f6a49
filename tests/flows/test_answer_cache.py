"""An answer that a model wrote is told again over the same evidence, and written anew over other evidence."""

import json
from pathlib import Path

import pytest

from flows.asking import AskOptions, answer_question
from flows.forgetting import forget
from flows.history import index_run
from flows.indexing import IndexOptions
from flows.runtime import Runtime, open_runtime
from flows.session import open_session
from flows.settings import load_settings
from prompts.engine.drafts import Withdrawn
from storage.records import Answer
from tests.server.client import Server

QUESTION = "When was Orla Bridge opened?"
ROWS = (
    {"id": "bridge", "title": "Orla Bridge", "text": "Orla Bridge opened in 1931. It is 412 metres long."},
    {"id": "ferry", "title": "Velin Ferry", "text": "Velin Ferry was run by Ivo Lamm for nine years."},
)
NEWS = {
    "id": "news",
    "title": "News",
    "text": "Orla Bridge was opened in 1932, not when Orla Bridge was said to be opened.",
}


def write(folder: Path, *rows: dict[str, str]) -> str:
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


@pytest.fixture
async def indexed(tmp_path: Path) -> Runtime:
    """A workspace made offline."""
    runtime = open_runtime(load_settings({"workspace": tmp_path / "ws", "embedding": "none"}))
    await index_run([write(tmp_path, *ROWS)], IndexOptions(), runtime)
    return runtime


@pytest.fixture
def server(server_process: Server) -> Server:
    server_process.reset()
    return server_process


def with_model(indexed: Runtime, server: Server, **settings: object) -> Runtime:
    """The same workspace with the scripted model; memory is off but where a test is about it."""
    values = {"workspace": indexed.settings.workspace, "embedding": "none", "memory": "off", "lm": "openai/scripted"}
    return open_runtime(load_settings({**values, "lm_base_url": server.base_url, "lm_api_key": "a key", **settings}))


async def asked(runtime: Runtime, options: AskOptions | None = None) -> Answer:
    with open_session(runtime) as session:
        answer = await answer_question(QUESTION, options or AskOptions(), session)
    await runtime.models.aclose()
    return answer


def told_again(answer: Answer) -> bool:
    return "answer cache" in answer.usage.by_step


def same(one: Answer, two: Answer) -> bool:
    """Equal byte for byte, but for what was spent on it."""
    spent = {"usage", "generation"}
    return one.model_dump_json(exclude=spent) == two.model_dump_json(exclude=spent)


async def test_the_same_over_the_same_evidence_is_told_again(indexed: Runtime, server: Server) -> None:
    first = await asked(with_model(indexed, server))
    assert (told_again(first), first.usage.by_step["answer"].calls) == (False, 1)
    calls = server.stats()["calls"]
    pieces: list[str | Withdrawn] = []
    again = await asked(with_model(indexed, server), AskOptions(on_text=pieces.append))
    assert same(first, again)
    assert (server.stats()["calls"], again.usage.calls) == (calls, 0)
    assert told_again(again)
    assert "answer" not in again.usage.by_step, "not even a cached call of it is made"
    assert again.usage.by_step["answer cache"].cached_calls == first.usage.calls
    assert pieces == [first.answer], "whoever watches gets it whole"


async def test_new_evidence_makes_a_new_answer(indexed: Runtime, server: Server, tmp_path: Path) -> None:
    """A cache by the question alone would tell the old year for ever."""
    first = await asked(with_model(indexed, server))
    assert "1931" in first.answer
    await index_run([write(tmp_path, *ROWS, NEWS)], IndexOptions(), indexed)
    second = await asked(with_model(indexed, server))
    assert (told_again(second), "1932" in second.answer) == (False, True)
    await index_run([write(tmp_path, *ROWS)], IndexOptions(allow_removals=True), indexed)
    third = await asked(with_model(indexed, server))
    assert (same(first, third), third.generation) == (True, 3)


async def test_how_a_question_is_asked_belongs_to_the_key(indexed: Runtime, server: Server) -> None:
    await asked(with_model(indexed, server))
    for options in (AskOptions(mode="naive"), AskOptions(documents=("bridge",)), AskOptions(structure="table")):
        assert not told_again(await asked(with_model(indexed, server), options))
    other = with_model(indexed, server, roles={"answer": {"model": "openai/other"}})
    assert not told_again(await asked(other))
    assert not told_again(await asked(with_model(indexed, server, answer_cache=False)))
    assert told_again(await asked(with_model(indexed, server)))


async def test_what_memory_serves_has_its_answer_kept_too(indexed: Runtime, server: Server) -> None:
    first = await asked(with_model(indexed, server, memory="on"))
    assert not first.trace.trigger[0].use_memory
    again = await asked(with_model(indexed, server, memory="on"))
    assert (told_again(again), again.answer) == (True, first.answer)


async def test_a_failed_call_keeps_nothing(indexed: Runtime, server: Server) -> None:
    server.misbehave({"kind": "malformed", "step": "answer"})
    with pytest.raises(Exception, match="answer"):
        await asked(with_model(indexed, server, max_attempts=1))
    server.misbehave()
    answer = await asked(with_model(indexed, server))
    assert (told_again(answer), "1931" in answer.answer) == (False, True)


async def test_a_forgotten_document_takes_its_answers_along(indexed: Runtime, server: Server) -> None:
    await asked(with_model(indexed, server))
    report = await forget(["bridge"], indexed)
    assert report.answers == 1
    assert "1931" not in (await asked(with_model(indexed, server))).answer


async def test_offline_nothing_is_kept(indexed: Runtime) -> None:
    assert not told_again(await asked(indexed))
    assert not told_again(await asked(indexed))
    assert [part.rows for part in indexed.workspace.side.parts() if part.name == "answers"] == [0]
