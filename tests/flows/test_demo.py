"""The demo quotes the sample corpus, and asks no model."""

from storage.answer_records import Answer
from tests.flows.conftest import Command
from tests.server.client import Server


def test_it_quotes_and_asks_no_model(fresh: Command, unembedded: None, model_server: Server) -> None:
    done = fresh("demo", "--json")
    assert done.code == 0, done.err
    answers = [Answer.model_validate(row) for row in done.json["answers"]]
    assert "model" not in {answer.trace.answered_by for answer in answers}
    assert model_server.stats()["calls"] == 0
