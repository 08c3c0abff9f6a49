"""A reranker between retrieval and filter orders the passages by its scores; without one no step
runs.
"""

from pathlib import Path
from typing import Any

import pytest

from tasks.watching import watched
from tests.copying import copy_of
from tests.flows.conftest import Command, indexed_by_command
from tests.server.client import Server
from tests.workspaces import write_rows

QUESTION = "Which bridge did Tomas Reyd design?"
# By words and graph the first is nearest: it names all. A reranker may see it otherwise.
TEXTS = {
    "Tomas Reyd": "Tomas Reyd was born in Velin, and drew bridges as a child.",
    "Orla Bridge": "The design that Tomas Reyd made for this bridge was built in 1931.",
    "Velin Ferry": "The ferry carried cattle until the bridge opened.",
    "Ana Korb": "Ana Korb taught Tomas Reyd and saw every bridge of his.",
}
# A reranker reads each text under its title, unless the text begins with it.
READ = {text if text.startswith(title) else f"{title}\n{text}" for title, text in TEXTS.items()}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("base")
    rows = [{"id": title, "title": title, "text": text} for title, text in TEXTS.items()]
    return indexed_by_command(write_rows(folder / "bridges.jsonl", rows), folder)


@pytest.fixture
def bridges(base: Path, fresh: Command) -> Command:
    """The command on a copy."""
    copy_of(base, fresh.workspace)
    return fresh


@pytest.fixture
def ranker(without_settings: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    """The server as a reranker alone."""
    monkeypatch.setenv("TRELLIS_RERANKER", "ranker")
    monkeypatch.setenv("TRELLIS_RERANKER_BASE_URL", without_settings.base_url)
    return without_settings


def retrieved(command: Command, *options: str) -> list[Any]:
    passages: list[Any] = command("retrieve", QUESTION, *options, "--json").json["passages"]
    return passages


def test_without_a_reranker_no_step_runs_and_nothing_is_counted(
    bridges: Command, without_settings: Server
) -> None:
    steps: list[str] = []
    with watched(lambda name, begins: steps.append(name)):
        answer = bridges("ask", QUESTION, "--json").json
    assert ("retrieve" in steps, "rerank" in steps) == (True, False)
    assert (answer["trace"]["reranking"], "rerank" in answer["usage"]["by_step"]) == (None, False)
    assert without_settings.stats()["calls"] == 0


def test_a_served_reranker_orders_the_passages(
    bridges: Command, ranker: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as without:
        without.delenv("TRELLIS_RERANKER")
        before = [passage["document"] for passage in retrieved(bridges)]
    answer = bridges("ask", QUESTION, "--json").json
    (request,) = ranker.requests()
    body = request["body"]
    assert isinstance(body, dict)
    assert (body["query"], set(body["documents"])) == (QUESTION, READ)
    trace, usage = answer["trace"]["reranking"], answer["usage"]["by_step"]["rerank"]
    assert (trace["model"].partition("@")[0], trace["passages"]) == ("ranker", 4)
    assert sorted(trace["ranks"]) == [1, 2, 3, 4] != trace["ranks"]
    assert (usage["calls"], usage["cost_usd"]) == (1, None)
    after = [passage["document"] for passage in answer["passages"]]
    assert after == [before[rank - 1] for rank in trace["ranks"]]
    assert after == [passage["document"] for passage in retrieved(bridges)]
    scores = [passage["score"] for passage in answer["passages"]]
    assert scores == sorted(scores, reverse=True)
    assert len(retrieved(bridges, "--k", "1")) == 1, "k passages of all candidates"


def test_a_reranker_that_refuses_is_an_error_with_a_remedy(
    bridges: Command, ranker: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = "made-up-key-of-the-ranker"
    monkeypatch.setenv("TRELLIS_RERANKER_API_KEY", key)
    ranker.misbehave({"kind": "unauthorized", "step": "rerank", "says": key})
    ended = bridges("ask", QUESTION)
    assert (ended.code, "TRELLIS_RERANKER_API_KEY" in ended.err) == (1, True)
    assert key not in ended.err + bridges("status", "--json").out
