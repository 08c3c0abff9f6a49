"""The scripted model server: its protocols, its counters, its misbehaviour, and the answers that a step reads."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from typing import Any, get_args

import httpx
import pytest

from prompts.answer import AnswerStep, Direct, ReduceStep
from prompts.decompose import Decompose
from prompts.engine.models import ROLES, ModelChoice, Models
from prompts.engine.step import Step
from prompts.extract import Extract, Glean
from prompts.filter import Filter
from prompts.plan_table import PlanTable
from prompts.report import WriteReports
from prompts.reports import Explore, Partial, Rate
from prompts.resolve import Resolve
from prompts.rewrite import Hypothesize, Keywords, Rewrite
from prompts.route import Route
from prompts.structurize import Structurize
from prompts.summarize import Summarize
from prompts.traverse import PlanTraversal
from prompts.tune import Tune
from tests.server.answers import answer_step
from tests.server.client import Server
from tests.server.faults import KINDS
from tests.server.inputs import INPUTS, PASSAGE, body, message, names, post

STEPS = (
    AnswerStep, Decompose, Direct, Explore, Extract, Filter, Glean, Hypothesize, Keywords, Partial,
    PlanTable, PlanTraversal, Rate, ReduceStep, Resolve, Rewrite, Route, Structurize, Summarize, Tune,
    WriteReports,
)  # fmt: skip


@pytest.fixture
async def models(model_server: Server) -> AsyncIterator[Models]:
    made = Models(dict.fromkeys(ROLES, ModelChoice("openai/scripted", model_server.base_url, "a key")))
    yield made
    await made.aclose()


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.step)
async def test_a_step_gets_its_typed_answer_in_one_call(step: type[Step], models: Models, model_server: Server) -> None:
    found = await step(models).acall(**INPUTS[step.step])
    for name, field in step.task.output_fields.items():
        kind = field.annotation
        assert isinstance(found[name], kind if not get_args(kind) else object)
    stats = model_server.stats()
    assert (stats["calls"], stats["kinds"], list(stats["steps"])) == (1, {"answered": 1}, [step.step])


def test_capitalised_spans_are_entities_and_pairs_of_a_sentence_relations() -> None:
    text = "Ada Lovelace worked with Charles Babbage in London. The Analytical Engine was never built."
    found = answer_step("extract", {"passage": text, "kinds": ["person", "place"]})
    assert [entity["name"] for entity in found["entities"]] == ["Ada Lovelace", "Charles Babbage", "Analytical Engine"]
    assert [(link["source"], link["predicate"]) for link in found["relations"]] == [("Ada Lovelace", "worked with")]


def test_what_has_no_rule_and_what_is_no_request_is_refused(model_server: Server) -> None:
    sent = body()
    sent["messages"] = [{"role": "system", "content": "Step: judge"}, {"role": "user", "content": "[[ ## a ## ]]\nb"}]
    response = post(model_server, sent)
    assert response.status_code == 400
    assert "no rule for the step 'judge'; the steps are extract," in response.json()["error"]["message"]
    assert post(model_server, [1]).status_code == 400
    assert post(model_server, {}, "/elsewhere").status_code == 404
    stats = model_server.stats()
    assert (stats["kinds"], stats["others"]) == ({"refused": 1}, ["POST /elsewhere"])


def test_a_stream_holds_the_same_content_and_the_usage(model_server: Server) -> None:
    whole = post(model_server, body()).json()
    streamed = post(model_server, body(stream=True, stream_options={"include_usage": True}))
    lines = [line.removeprefix("data: ") for line in streamed.text.split("\n\n") if line]
    assert lines[-1] == "[DONE]"
    events: list[dict[str, Any]] = [json.loads(line) for line in lines[:-1]]
    pieces = [event["choices"][0]["delta"].get("content", "") for event in events if event["choices"]]
    assert "".join(pieces) == whole["choices"][0]["message"]["content"]
    assert len(pieces) > 4
    assert events[-1]["usage"] == whole["usage"]


async def test_calls_repeats_and_the_most_at_once_are_counted(model_server: Server) -> None:
    model_server.settle(latency_ms=100)
    async with httpx.AsyncClient(base_url=model_server.url, trust_env=False) as client:
        sent = [body("extract"), body("extract"), body("route"), body("answer")]
        await asyncio.gather(*(client.post("/v1/chat/completions", json=one) for one in sent))
    stats = model_server.stats()
    assert (stats["calls"], stats["most_in_flight"], stats["in_flight"], stats["repeated"]) == (4, 4, 0, 1)
    assert {step: row["calls"] for step, row in stats["steps"].items()} == {"extract": 2, "route": 1, "answer": 1}
    assert {one["step"] for one in model_server.requests()} == {"extract", "route", "answer"}
    model_server.reset()
    assert (model_server.stats()["calls"], model_server.requests()) == (0, [])


def test_a_client_that_gives_up_is_counted(model_server: Server) -> None:
    model_server.misbehave({"kind": "hang", "seconds": 30})
    with pytest.raises(httpx.ReadTimeout):
        post(model_server, body(), timeout=0.2)
    until = time.monotonic() + 60
    while model_server.stats()["in_flight"] and time.monotonic() < until:
        time.sleep(0.02)
    stats = model_server.stats()
    assert (stats["in_flight"], stats["dropped_by_client"]) == (0, 1)


def test_rules_count_the_requests_that_they_are_about(model_server: Server) -> None:
    model_server.misbehave(
        {"kind": "quota", "step": "route", "nth": 2},
        {"kind": "rate_limit", "step": "extract", "nth": 1, "times": 2},
        {"kind": "unauthorized", "step": "decompose", "text": "nowhere in it"},
        {"kind": "no_model", "step": "embeddings"},
        {"kind": "unsupported", "key": "temperature"},
    )

    def statuses(step: str, calls: int) -> list[int]:
        return [post(model_server, body(step)).status_code for _ in range(calls)]

    assert statuses("route", 3) == [200, 429, 200]
    assert statuses("extract", 3) == [429, 429, 200]
    assert statuses("decompose", 1) == [200]
    assert post(model_server, body("decompose", temperature=0)).status_code == 400
    assert post(model_server, {"input": "a"}, "/v1/embeddings").status_code == 404
    with pytest.raises(ValueError, match="not a script of misbehaviour"):
        model_server.misbehave({"kind": "sulk"})


def test_a_prompt_is_cut_without_a_word(model_server: Server) -> None:
    passage = " ".join([PASSAGE, *["Nobody was there."] * 800, "Mary Shelley met Lord Byron in Geneva."])
    assert "Mary Shelley" in names(message(post(model_server, body(passage=passage)))["content"])
    model_server.misbehave({"kind": "overflow_silent", "over": 300})
    cut = post(model_server, body(passage=passage))
    assert "Mary Shelley" not in names(message(cut)["content"]), "what is not read is not answered"
    assert 270 <= cut.json()["usage"]["prompt_tokens"] <= 300


@pytest.mark.parametrize("kind", KINDS)
def test_no_kind_breaks_the_server(model_server: Server, kind: str) -> None:
    for sent, path in ((body(), "/v1/chat/completions"), ({"input": ["a"]}, "/v1/embeddings")):
        model_server.misbehave({"kind": kind, "seconds": 0.01, "times": 1})
        try:
            assert post(model_server, sent, path).status_code != 500 or kind == "server_error"
        except httpx.TransportError:
            assert kind in {"reset", "cut"}
        assert post(model_server, sent, path).is_success
