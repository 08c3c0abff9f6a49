"""A reranker between retrieval and filter: the order changes as its scores say; without one nothing
is asked of any.

And the cross-encoder that checks sentences: what loads torch is in one file, which one process
runs.
"""

from pathlib import Path

import pytest

from tasks.watching import watched
from tests.copying import copy_of
from tests.flows.conftest import Command, indexed_by_command
from tests.server.client import Server
from tests.workspaces import write_rows

QUESTION = "Which bridge did Tomas Reyd design?"
# By words and graph the first is nearest: it names all; a reranker may see it otherwise.
ROWS = [
    {
        "id": "a",
        "title": "Tomas Reyd",
        "text": "Tomas Reyd was born in Velin, and drew bridges as a child.",
    },
    {
        "id": "b",
        "title": "Orla Bridge",
        "text": "The design that Tomas Reyd made for this bridge was built in 1931.",
    },
    {
        "id": "c",
        "title": "Velin Ferry",
        "text": "The ferry carried cattle until the bridge opened.",
    },
    {
        "id": "d",
        "title": "Ana Korb",
        "text": "Ana Korb taught Tomas Reyd and saw every bridge of his.",
    },
]
# What a reranker is to read of each: under its title, where the text does not begin with it.
READ = {
    row["id"]: row["text"]
    if row["text"].startswith(row["title"])
    else f"{row['title']}\n{row['text']}"
    for row in ROWS
}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("base")
    return indexed_by_command(write_rows(folder / "bridges.jsonl", ROWS), folder)


@pytest.fixture
def bridges(base: Path, fresh: Command) -> Command:
    """The command on a copy."""
    copy_of(base, fresh.workspace)
    return fresh


def order(command: Command) -> list[str]:
    return [
        passage["document"] for passage in command("retrieve", QUESTION, "--json").json["passages"]
    ]


def test_without_a_reranker_no_step_runs_and_nothing_is_counted(
    bridges: Command, without_settings: Server
) -> None:
    steps: list[str] = []
    with watched(lambda name, begins: steps.append(name)):
        answer = bridges("ask", QUESTION, "--json").json
    assert "retrieve" in steps
    assert "rerank" not in steps
    assert (answer["trace"]["reranking"], "rerank" in answer["usage"]["by_step"]) == (None, False)
    assert without_settings.stats()["calls"] == 0


def test_a_served_reranker_orders_the_passages_and_is_in_trace_and_usage(
    bridges: Command, without_settings: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = order(bridges)
    monkeypatch.setenv("TRELLIS_RERANKER", "ranker")
    monkeypatch.setenv("TRELLIS_RERANKER_BASE_URL", without_settings.base_url)
    answer = bridges("ask", QUESTION, "--json").json
    (request,) = without_settings.requests()
    body = request["body"]
    assert isinstance(body, dict)
    assert body["query"] == QUESTION
    assert set(body["documents"]) == set(READ.values())
    trace, usage = answer["trace"]["reranking"], answer["usage"]["by_step"]["rerank"]
    assert (trace["model"].partition("@")[0], trace["passages"]) == ("ranker", 4)
    assert sorted(trace["ranks"]) == [1, 2, 3, 4] != trace["ranks"]
    assert (usage["calls"], usage["cost_usd"]) == (1, None)
    after = [passage["document"] for passage in answer["passages"]]
    assert after == [before[rank - 1] for rank in trace["ranks"]] == order(bridges)
    scores = [passage["score"] for passage in answer["passages"]]
    assert scores == sorted(scores, reverse=True)
    # Of so many candidates only k go on.
    assert len(bridges("retrieve", QUESTION, "--k", "1", "--json").json["passages"]) == 1


def test_a_reranker_that_cannot_be_reached_is_an_error_with_a_remedy(
    bridges: Command, without_settings: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRELLIS_RERANKER", "ranker")
    monkeypatch.setenv("TRELLIS_RERANKER_BASE_URL", without_settings.base_url)
    monkeypatch.setenv("TRELLIS_RERANKER_API_KEY", "made-up-key-of-the-ranker")
    without_settings.misbehave(
        {"kind": "unauthorized", "step": "rerank", "says": "made-up-key-of-the-ranker"}
    )
    ended = bridges("ask", QUESTION)
    assert ended.code == 1
    assert "TRELLIS_RERANKER_API_KEY" in ended.err
    assert "made-up-key-of-the-ranker" not in ended.err + bridges("status", "--json").out
