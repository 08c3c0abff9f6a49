"""`trellis demo`: excerpts without a model, and the answers of a model if there is one."""

import json
import socket
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from urllib.parse import urlsplit

import pytest

from flows.cli.demo import ASKED_OF_A_MODEL, LOCAL_SERVERS, STORY, model_at_hand
from storage.answer_records import Answer
from tests.flows.conftest import Command
from tests.server.client import Server
from tests.settings import load_settings

LISTED = {"data": [{"id": "nomic-embed-text"}, {"id": "qwen3:4b"}]}


class ListsModels(BaseHTTPRequestHandler):
    """Lists its models, as Ollama and llama.cpp do."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(LISTED).encode())

    def log_message(self, *_: object, **__: object) -> None:
        """Write nothing."""


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


def asked_by_demo(trellis: Command) -> tuple[list[Answer], list[Answer]]:
    """The answers without a model, and those of a model."""
    done = trellis("demo", "--json")
    assert done.code == 0, done.err
    plain, by_model = (
        [Answer.model_validate(row) for row in done.json[kind]] for kind in ("answers", "by_model")
    )
    assert len(plain) == len(STORY)
    assert "model" not in {answer.trace.answered_by for answer in plain}
    return plain, by_model


def test_a_model_of_the_settings_answers_some_questions_again(
    fresh: Command, unembedded: None, model_server: Server
) -> None:
    plain, by_model = asked_by_demo(fresh)
    assert [answer.trace.answered_by for answer in by_model] == ["model"] * len(ASKED_OF_A_MODEL)
    assert {answer.question for answer in by_model} <= {answer.question for answer in plain}
    calls = model_server.calls("answer"), model_server.calls("extract")
    assert calls == (len(ASKED_OF_A_MODEL), 0)


@pytest.mark.skipif(any(map(listens, LOCAL_SERVERS.values())), reason="a model server listens here")
def test_without_a_model_it_only_quotes(
    fresh: Command, unembedded: None, without_settings: Server
) -> None:
    _, by_model = asked_by_demo(fresh)
    assert by_model == []
    assert without_settings.stats()["calls"] == 0


def test_a_local_server_offers_its_first_chat_model(local_server: str) -> None:
    found = model_at_hand(load_settings({}, {}), {"Ollama": local_server})
    assert found is not None
    model, name = found
    assert (model.model, model.base_url) == ("openai/qwen3:4b", local_server)
    assert name == "qwen3:4b (Ollama)"
