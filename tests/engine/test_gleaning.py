"""Further rounds ask a model what it has missed; they add, stop when nothing is new, and cost nothing by default."""

import copy
from collections.abc import AsyncIterator

import pytest

from prompts.engine.errors import BadKey
from prompts.engine.models import ModelChoice, Models
from prompts.extract import EntityFound, Extract, Extracted, RelationFound, merge
from tests.server.client import Server

# The scripted model leaves single words out where there are longer names, until it is asked again.
PASSAGE = "Ada Lovelace met Charles Babbage. Charles Babbage lived in London."


@pytest.fixture
async def models(model_server: Server) -> AsyncIterator[Models]:
    made = Models({"extract": ModelChoice("openai/scripted", model_server.base_url, "a key")})
    yield made
    await made.aclose()


async def test_a_round_adds_what_was_missed(models: Models, model_server: Server) -> None:
    found = await Extract(models, gleanings=1).run("T", PASSAGE)
    assert [entity.name for entity in found.entities] == ["Ada Lovelace", "Charles Babbage", "London"]
    assert [(link.source, link.target) for link in found.relations] == [
        ("Ada Lovelace", "Charles Babbage"),
        ("Charles Babbage", "London"),
    ]
    asked = model_server.requests()[-1]
    assert asked["step"] == "glean"
    assert "Charles Babbage" in str(asked["body"])


async def test_the_rounds_end_where_nothing_is_new(models: Models, model_server: Server) -> None:
    await Extract(models, gleanings=5).run("T", PASSAGE)
    assert {name: row["calls"] for name, row in model_server.stats()["steps"].items()} == {"extract": 1, "glean": 2}
    assert [(step, spent.calls) for step, _, spent in models.meter.rows()] == [("extract", 1), ("glean", 2)]


async def test_none_is_the_default_and_offline_there_is_nobody_to_ask(models: Models, model_server: Server) -> None:
    assert len((await Extract(models).run("T", PASSAGE)).entities) == 2
    assert model_server.stats()["calls"] == 1
    assert (await Extract(Models.offline(), gleanings=3).run("T", PASSAGE)).entities


async def test_a_failing_round_is_an_error_and_not_an_answer_that_found_little(
    models: Models, model_server: Server
) -> None:
    model_server.misbehave({"kind": "unauthorized", "step": "glean"})
    with pytest.raises(BadKey):
        await Extract(models, gleanings=1).run("T", PASSAGE)


async def test_a_copy_asks_as_often(models: Models, model_server: Server) -> None:
    copied = copy.deepcopy(Extract(models, gleanings=1))
    assert len((await copied.run("T", PASSAGE)).entities) == 3


def test_merging_keeps_the_first_of_each_name_and_statement() -> None:
    def link(target: str, strength: float) -> RelationFound:
        return RelationFound(source="A", target=target, predicate="met", strength=strength)

    first = Extracted(entities=[EntityFound(name="A", kind="person")], relations=[link("B", 1)])
    more = Extracted(
        entities=[EntityFound(name="A", kind="place"), EntityFound(name="B", kind="place")],
        relations=[link("B", 2), link("C", 3)],
    )
    merged = merge(first, more)
    assert [(entity.name, entity.kind) for entity in merged.entities] == [("A", "person"), ("B", "place")]
    assert [(one.target, one.strength) for one in merged.relations] == [("B", 1), ("C", 3)]
    assert merge(merged, more) == merged
