"""`trellis demo`: excerpts without a model, and beside them the answers of a model at hand."""

import json
import socket
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from urllib.parse import urlsplit

import pytest

from flows.cli.demo import ASKED_OF_A_MODEL, FAMILIES, LOCAL_SERVERS, model_at_hand
from storage.answer_records import Answer
from tests.flows.conftest import Command
from tests.server.client import Server
from tests.settings import load_settings

LISTED = {"data": [{"id": "nomic-embed-text"}, {"id": "qwen3:4b"}]}


class ListsModels(BaseHTTPRequestHandler):
    """Says which models it has, as Ollama and llama.cpp do."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(LISTED).encode())

    def log_message(self, *_: object, **__: object) -> None:
        """Says nothing."""


@pytest.fixture
def local_server() -> Iterator[str]:
    """A server on this machine that lists two models."""
    with HTTPServer(("127.0.0.1", 0), ListsModels) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()


def listens(address: str) -> bool:
    parts = urlsplit(address)
    with socket.socket() as probe:
        return probe.connect_ex((parts.hostname, parts.port)) == 0


def answers_of(rows: list[object]) -> list[Answer]:
    return [Answer.model_validate(row) for row in rows]


def test_a_model_that_is_set_answers_beside_the_excerpts(
    fresh: Command, unembedded: None, model_server: Server
) -> None:
    done = fresh("demo", "--json")
    assert done.code == 0, done.err
    plain, by_model = answers_of(done.json["answers"]), answers_of(done.json["by_model"])
    assert len(plain) == len(FAMILIES)
    assert "model" not in {answer.trace.answered_by for answer in plain}
    assert [answer.trace.answered_by for answer in by_model] == ["model"] * len(ASKED_OF_A_MODEL)
    assert {answer.question for answer in by_model} <= {answer.question for answer in plain}
    assert model_server.calls("answer") == len(ASKED_OF_A_MODEL) == 3
    assert model_server.calls("extract") == 0
    assert "openai/scripted answers 3 of these questions" in done.err


@pytest.mark.skipif(any(map(listens, LOCAL_SERVERS.values())), reason="a model server listens here")
def test_with_nothing_set_and_nothing_listening_it_quotes(
    fresh: Command, unembedded: None, without_settings: Server
) -> None:
    done = fresh("demo", "--json")
    assert done.code == 0, done.err
    assert done.json["by_model"] == []
    assert "model" not in {answer.trace.answered_by for answer in answers_of(done.json["answers"])}
    assert without_settings.stats()["calls"] == 0


def test_a_server_on_this_machine_is_a_model_at_hand(local_server: str) -> None:
    found = model_at_hand(load_settings({}, {}), {"Ollama": local_server})
    assert found is not None
    model, name = found
    assert (model.model, model.base_url, name) == (
        "openai/qwen3:4b",
        local_server,
        "qwen3:4b (Ollama)",
    )
