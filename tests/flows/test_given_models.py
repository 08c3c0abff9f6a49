"""A model that a program gives to DSPy: which steps ask it, and how."""

import asyncio
from pathlib import Path
from typing import Any

import dspy
import pytest
from dspy.utils import DummyLM

from flows.index import IndexOptions, build_index
from flows.query import ask
from flows.runners import open_runner
from flows.runtime import open_runtime
from flows.settings import load_settings
from prompts.engine.errors import EngineError
from prompts.engine.models import Models
from prompts.registry import steps
from prompts.summarize import Summarize
from storage.errors import UsageError
from tests.server.client import Server
from tests.test_golden_prompts import SHOWN, name_of

SUMMARIZE = SHOWN["SummarizeEntity"]


@pytest.fixture
def given(model_server: Server) -> dspy.LM:
    """The scripted server as a DSPy user names it."""
    address: dict[str, Any] = {"api_base": model_server.base_url, "api_key": "made-up-key"}
    return dspy.LM("openai/given", cache=False, engine="lm15", **address)


def test_a_model_of_a_context_is_shown_no_picture() -> None:
    with dspy.context(lm=DummyLM([{}])):
        assert steps()["picture"][0](Models.offline()).is_offline


@pytest.mark.parametrize("name", sorted(steps().keys() - {"picture"}))
def test_a_model_given_by_a_context_reaches_every_step(name: str) -> None:
    lm = DummyLM([{"nothing": "of use"}] * 3)
    step = steps()[name][0](Models.offline())
    with dspy.context(lm=lm):
        assert not step.is_offline
        with pytest.raises(EngineError, match="gave no valid answer"):
            step.module(**SHOWN[name_of(step)])
    assert lm.history[0]["messages"][0]["content"].startswith(f"Step: {name}\n")
    assert step.is_offline


def test_index_and_ask_use_the_model_of_a_context(
    given: dspy.LM,
    without_settings: Server,
    source: Path,
    tmp_path: Path,
    unembedded: None,
    model_server: Server,
) -> None:
    settings = load_settings({"workspace": tmp_path / "ws", "embedding": "none"})
    with dspy.context(lm=given):
        report = asyncio.run(build_index([source], IndexOptions(), open_runtime(settings)))
        answer = ask("Who designed Orla Bridge?", workspace=tmp_path / "ws", effort="high")
    assert report.usage.by_step["extract"].calls == 3
    assert answer.trace.answered_by == "model"
    requests = model_server.requests()
    assert {"extract", "route", "filter", "answer"} <= {request["step"] for request in requests}
    assert {request["body"]["model"] for request in requests} == {"given"}
    assert len(given.history) == answer.usage.calls, "the index leaves no history"
    again = asyncio.run(build_index([source], IndexOptions(), open_runtime(settings)))
    assert again.published, "without the model the index is made anew"


async def test_other_processes_have_no_model_of_the_program(
    given: dspy.LM, without_settings: Server, tmp_path: Path
) -> None:
    runtime = open_runtime(load_settings({"workspace": tmp_path, "runner": "dask"}))
    with dspy.context(lm=given), pytest.raises(UsageError, match="other processes"):
        async with open_runner(runtime):
            pass


def test_the_parameters_of_a_given_model_hold(model_server: Server) -> None:
    address: dict[str, Any] = {"api_base": model_server.base_url, "api_key": "k"}
    sampling: dict[str, Any] = {"temperature": 0.7, "max_tokens": 333, "seed": 7}
    lm = dspy.LM("openai/given", cache=False, **address, **sampling)
    step = Summarize(Models.offline())
    with dspy.context(lm=lm):
        step.module(**SUMMARIZE)
        step.module(**SUMMARIZE, config={"temperature": 0.2})
    bodies: list[Any] = [request["body"] for request in model_server.requests()]
    assert [body["temperature"] for body in bodies] == [0.7, 0.2]
    assert {body.get("max_tokens") or body.get("max_completion_tokens") for body in bodies} == {333}
    assert [body["seed"] for body in bodies] == [7, 7]
