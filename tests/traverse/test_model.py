"""With a model an open answer is written from what the walk has found."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from flows.query import answer_question
from flows.question import AskOptions
from flows.runtime import open_runtime
from flows.session import Session, open_session
from flows.settings import load_settings
from tests.server.client import Server, serving


@pytest.fixture(scope="module")
def process() -> Iterator[Server]:
    with serving() as server:
        yield server


@pytest.fixture
async def on_model(workspace: Path, process: Server) -> AsyncIterator[Session]:
    process.reset()
    runtime = open_runtime(
        load_settings(
            {"workspace": workspace, "embedding": "none", "lm": "openai/m", "lm_base_url": process.base_url,
             "lm_api_key": "k"}, {},
        )
    )  # fmt: skip
    with open_session(runtime) as session:
        yield session
    await runtime.models.aclose()


async def test_an_open_answer_is_written_from_tables_and_paths(on_model: Session, process: Server) -> None:
    answer = await answer_question("How are edda_vell and gus_arlen connected?", AskOptions(mode="traverse"), on_model)
    bodies = [str(request["body"]) for request in process.requests()]
    body = next(one for one in bodies if "Step: answer" in one)
    assert "| entity | kind | relations | description |" in body
    assert "| source | relation | target | evidence |" in body
    assert "edda_vell <-[children]- bruno_vell <-[children]- ada_vell" in body
    assert all(citation.verified for citation in answer.citations)
