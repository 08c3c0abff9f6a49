"""Does a model judge what the rules are not sure of, and only that? In batches, against what is known, and believed
only of passages that it was shown."""

import json
import re
from collections.abc import AsyncIterator
from typing import get_args

import dspy
import pytest
from dspy.utils import DummyLM

from prompts.engine.calls import rough_tokens
from prompts.engine.errors import AnswerMalformed
from prompts.engine.models import ModelChoice, Models
from prompts.engine.roles import ROLES
from prompts.filter import CALLS, SHOWN_TOKENS, Filter
from prompts.reading.entail import Hypothesis
from tests.filter.passages import candidates_of, relevance_of
from tests.server.client import Server

DESIGNED = relevance_of("Who designed the Orla Bridge?", "Orla Bridge")
TOLD = "Orla Bridge was designed by Tomas Reyd."
OPENED = "Orla Bridge was opened by Ana Korb in 1931."
BREAD = "Bread is baked from flour."


def scripted(*answers: object) -> tuple[Filter, DummyLM]:
    """The filter with a model that gives these judgements in turn."""
    made = Filter(Models.offline())
    model = DummyLM([{"judged": {"judgements": answer}} for answer in answers], adapter=dspy.JSONAdapter())
    made.lm = model
    return made, model


def judgement(passage: int, label: str, explanation: str = "so it is") -> dict[str, object]:
    return {"passage": passage, "explanation": explanation, "label": label}


def shown(model: DummyLM) -> str:
    return str(model.history[0]["messages"][-1]["content"])


async def test_the_model_decides_what_it_was_shown_and_the_rules_decide_the_rest() -> None:
    made, _ = scripted([judgement(1, "neutral", "of its opening"), judgement(9, "entailment")])
    found = await made.run("strong", candidates_of(TOLD, OPENED, BREAD), DESIGNED)
    assert [one.label for one in found.each] == ["entailment", "neutral", "neutral"]
    assert found.each[1].explanation == "of its opening"
    assert found.each[0].explanation.startswith("names Orla Bridge")  # not judged by the model


async def test_a_judgement_of_a_passage_that_was_not_shown_is_refused() -> None:
    made, model = scripted([judgement(2, "entailment")])
    found = await made.run("strong", candidates_of(TOLD, OPENED, BREAD), DESIGNED)
    assert "Bread" not in shown(model)
    assert found.each[2].label == "neutral"


async def test_what_the_graph_is_sure_of_is_known_and_not_judged() -> None:
    made, model = scripted([])
    await made.run("weak", candidates_of(TOLD, OPENED, BREAD, together=(0.989, 0.01, 0.001)), DESIGNED)
    assert f'["{TOLD}"]' in shown(model)
    assert f"[1] {OPENED}" in shown(model)
    assert f"[0] {TOLD}" not in shown(model)
    assert BREAD not in shown(model)


async def test_where_the_rules_are_sure_of_all_nobody_is_asked() -> None:
    made, model = scripted()
    found = await made.run("weak", candidates_of(TOLD, BREAD, together=(0.9995, 0.0005)), DESIGNED)
    assert [one.label for one in found.each] == ["entailment", "neutral"]
    assert (await made.run("strong", candidates_of(BREAD), DESIGNED)).each[0].label == "neutral"
    assert model.history == []


async def test_what_conflicts_is_always_judged_and_the_model_settles_it() -> None:
    other = TOLD.replace("Tomas Reyd", "Ana Korb")
    given = candidates_of(TOLD + " It is long.", other + " It is long.", together=(0.999, 0.001))
    made, model = scripted([judgement(1, "contradiction", "names another designer")])
    found = await made.run("weak", given, DESIGNED)
    assert f"[0] {TOLD}" in shown(model)
    (conflict,) = found.conflicts
    assert (conflict.contradicted, found.each[1].explanation) == (1, "names another designer")


@pytest.mark.parametrize("hypothesis", get_args(Hypothesis))
async def test_many_passages_are_judged_in_some_calls_and_what_is_left_over_by_the_rules(
    hypothesis: Hypothesis,
) -> None:
    texts = [f"Orla Bridge, by hand number {number}, was designed. " + "It is long. " * 20 for number in range(60)]
    made, model = scripted(*[[judgement(number, "contradiction") for number in range(60)]] * CALLS[hypothesis])
    found = await made.run(hypothesis, candidates_of(*texts), DESIGNED)
    assert len(model.history) == CALLS[hypothesis]
    sent = [set(map(int, re.findall(r"\[(\d+)\] Orla", call["messages"][-1]["content"]))) for call in model.history]
    assert sum(map(len, sent)) == len(set[int]().union(*sent))
    assert all(rough_tokens(call["messages"][-1]["content"]) < SHOWN_TOKENS + 200 for call in model.history)
    labels = {number: one.label for number, one in enumerate(found.each)}
    assert {labels[number] for number in set[int]().union(*sent)} == {"contradiction"}
    assert {label for number, label in labels.items() if number not in set[int]().union(*sent)} == {"entailment"}


# --- over the wire -----------------------------------------------------------------------------------------------


@pytest.fixture
async def served(model_server: Server) -> AsyncIterator[Filter]:
    choice = ModelChoice("openai/scripted", model_server.base_url, "a key")
    made = Models(dict.fromkeys(ROLES, choice))
    yield Filter(made)
    await made.aclose()


async def test_a_server_judges_the_passages(served: Filter, model_server: Server) -> None:
    found = await served.run("strong", candidates_of(TOLD, "The bridge is long.", BREAD), DESIGNED)
    assert [one.label for one in found.each] == ["entailment", "neutral", "neutral"]
    assert found.each[0].explanation.startswith("shares ")
    assert model_server.stats()["calls"] == 1
    request = json.dumps(model_server.requests()[-1]["body"])
    assert "Bread" not in request


async def test_an_answer_in_no_form_is_asked_for_once_more(served: Filter, model_server: Server) -> None:
    model_server.misbehave({"kind": "wrong_keys", "nth": 1})
    found = await served.run("strong", candidates_of(TOLD), DESIGNED)
    assert found.each[0].label == "entailment"
    assert model_server.stats()["calls"] == 2


async def test_a_server_that_never_answers_in_form_is_an_error_and_no_empty_result(
    served: Filter, model_server: Server
) -> None:
    model_server.misbehave({"kind": "wrong_keys"})
    with pytest.raises(AnswerMalformed, match="filter"):
        await served.run("strong", candidates_of(TOLD), DESIGNED)
