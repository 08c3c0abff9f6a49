"""Is a model asked to rewrite only where the rules are not sure, and is an answer that asks something else refused?"""

import logging
from collections.abc import Sequence
from typing import Any

import dspy
import pytest
from dspy.utils import DummyLM

from prompts.engine.models import Models
from prompts.language.conversation import READ
from prompts.reading.faithful import unfaithful
from prompts.rewrite import MAX_QUERIES, TURN_SIGNS, Rewrite
from tasks.rewrite import rewrite

HISTORY = ("Who designed the Kestrel Bridge?", "The Kestrel Bridge was designed by Ilse Marrand in 1998.")
LONG = "In our archive " + "there is a very long story about a bridge and its many people " * 5 + "who designed it?"


def scripted(*answers: dict[str, Any]) -> tuple[Rewrite, DummyLM]:
    made = Rewrite(Models.offline())
    model = DummyLM([{"rewriting": answer} for answer in answers], adapter=dspy.JSONAdapter())
    made.lm = model
    return made, model


@pytest.mark.parametrize(
    ("question", "history", "calls"),
    [
        ("Who designed the Orla Bridge?", (), 0),
        ("Who designed it?", (), 0),  # without a history a model knows no more
        ("Which rivers flow through the Kestrel Valley?", HISTORY, 0),
        ("Where was she born?", HISTORY, 1),
        ("Who attended the ceremony?", HISTORY, 1),
        ("And the Orla Bridge?", HISTORY, 1),
        ("那她呢？", HISTORY, 1),
        (LONG, (), 1),
    ],
)
async def test_a_model_is_asked_once_and_only_where_rules_are_not_sure(
    question: str, history: Sequence[str], calls: int
) -> None:
    made, model = scripted({"question": question, "queries": []})
    await made.run(question, history)
    assert len(model.history) == calls


@pytest.mark.parametrize(
    ("question", "answer", "kept"),
    [
        ("Where was she born?", "Where was Ilse Marrand born?", True),
        ("Where was she born?", "Where was Marrand born?", True),
        ("Where was she born in 1961?", "Where was Ilse Marrand born?", False),
        ("Where was she born?", "Where was Ilse Marrand born in 1962?", False),
        ("Where was she born?", "Where was Otto Brandt born?", False),
        ("Where did she meet Otto Brandt?", "Where did Ilse Marrand meet her husband?", False),
        ("Where was she born?", "伊尔丝·马兰德在哪里出生？", False),
        ("Where was she born?", "  ", False),
        ("Where was she born?", "Where was she born?", False),
    ],
)
async def test_an_answer_that_asks_something_else_gives_way_to_the_rules(
    question: str, answer: str, kept: bool, caplog: pytest.LogCaptureFixture
) -> None:
    made, _ = scripted({"question": answer, "queries": ["Ilse Marrand"]})
    with caplog.at_level(logging.WARNING, "prompts.rewrite"):
        found = await rewrite(question, HISTORY, made)
    assert ("was refused" in caplog.text) is not kept
    if kept:
        assert found.queries == [answer, "Ilse Marrand"]
    else:
        assert "Ilse Marrand" in found.question
        assert found.question != answer


@pytest.mark.parametrize(
    ("question", "rewritten", "wrong"),
    [
        ("它有多长？", "月河大桥有多长？", ""),
        ("它有多长？", "云岭大桥有多长？", "it brings '云岭大桥'"),
        ("它2021年有多长？", "月河大桥有多长？", "it loses '2021'"),
        ("它有多长？", "How long is the 月河大桥 that crosses the river?", "it is in another language"),
        ("它和云岭大桥哪个更长？", "月河大桥和东湖大桥哪个更长？", "it loses '云岭大桥'"),
    ],
)
def test_chinese_rewritings_are_held_to_the_same(question: str, rewritten: str, wrong: str) -> None:
    assert unfaithful(rewritten, question, ["介绍一下月河大桥。"]) == wrong


async def test_queries_and_readings_of_a_model_are_bounded() -> None:
    asked = "Where was Ilse Marrand born?"
    made, _ = scripted(
        {
            "question": asked,
            "queries": ["one", " ", "two", "two", "三", "three", "four", "five"],
            "ambiguities": [
                {"text": "she", "readings": ["Ilse Marrand", "Ilse Marrand's sister"]},
                {"text": "the ship", "readings": ["one", "two"]},  # not in the question
                {"text": "born", "readings": ["brought into the world"]},  # one reading is none
            ],
        }
    )
    found = await rewrite("Where was she born?", HISTORY, made)
    assert found.queries == [asked, "one", "two", "three"]
    assert len(found.queries) == MAX_QUERIES
    assert [(one.text, len(one.readings)) for one in found.ambiguities] == [("she", 2)]


async def test_a_long_history_is_shown_in_part() -> None:
    made, model = scripted({"question": "Where was Ilse Marrand born?", "queries": []})
    await made.run("Where was she born?", [*["A long answer. " * 200] * 40, *HISTORY])
    sent = str(model.history[0]["messages"][-1]["content"])
    assert "Ilse Marrand" in sent
    assert len(sent) < READ * (TURN_SIGNS + 20)


async def test_a_model_that_tells_no_ambiguity_still_has_the_dates_of_the_rules() -> None:
    made, _ = scripted({"question": "Where did Ilse Marrand live last year?", "queries": []})
    found = await rewrite("Where did she live last year?", HISTORY, made)
    assert [one.text for one in found.ambiguities] == ["last year"]
