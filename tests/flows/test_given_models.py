"""A model that a program gives to DSPy: which goes first, whom it reaches, and what DSPy sees of our calls."""

import asyncio
from pathlib import Path
from typing import Any

import dspy
import pytest
from dspy.dsp.utils.settings import main_thread_config
from dspy.utils import DummyLM
from dspy.utils.callback import BaseCallback

from flows.index import IndexOptions, build_index
from flows.query import ask
from flows.runners import open_runner
from flows.runtime import open_runtime
from flows.settings import load_settings
from prompts.engine.errors import EngineError
from prompts.engine.models import OFFLINE, ModelChoice, Models
from prompts.registry import steps
from prompts.summarize import Summarize
from storage.errors import UsageError
from tests.server.client import Server
from tests.test_golden_prompts import SHOWN, name_of
from tests.workspaces import indexed, quays

SUMMARIZE = SHOWN["SummarizeEntity"]


@pytest.fixture
def of_server(model_server: Server) -> dspy.LM:
    """The scripted server as a DSPy user names it; the settings name no model."""
    return dspy.LM("openai/given", api_base=model_server.base_url, api_key="made-up-key", cache=False, engine="lm15")


def saying(description: str) -> DummyLM:
    return DummyLM([{"description": description}] * 9, adapter=dspy.JSONAdapter())


@pytest.mark.parametrize("name", sorted(steps()))
def test_a_model_given_by_a_context_reaches_every_step(name: str) -> None:
    lm = DummyLM([{"nothing": "of use"}] * 3)
    step = steps()[name][0](Models.offline())
    with dspy.context(lm=lm):
        assert not step.is_offline
        with pytest.raises(EngineError, match="gave no valid answer"):
            step.module(**SHOWN[name_of(step)])
    assert lm.history[0]["messages"][0]["content"].startswith(f"Step: {name}\n")
    assert step.is_offline


def test_the_nearest_model_answers(model_server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    role = ModelChoice("openai/scripted", model_server.base_url, "k")
    with_role, without = Summarize(Models({"summarize": role})), Summarize(Models.offline())
    kept_offline = Summarize(Models({"summarize": ModelChoice(OFFLINE)}))
    monkeypatch.setitem(
        main_thread_config, "lm", saying("as configured")
    )  # what dspy.configure does, undone at the end
    by_server = with_role.module(**SUMMARIZE).description
    assert by_server not in {"as configured", "in context"}
    assert without.module(**SUMMARIZE).description == "as configured"
    assert kept_offline.is_offline
    with dspy.context(lm=saying("in context")):
        assert [step.module(**SUMMARIZE).description for step in (with_role, without, kept_offline)] == [
            "in context"
        ] * 3
        assert with_role.module(**SUMMARIZE, lm=saying("as argument")).description == "as argument"
        with_role.module.set_lm(saying("the step's own"))
        assert with_role.module(**SUMMARIZE).description == "the step's own"
    with_role.module.set_lm(None)
    with dspy.context(trace=[]):  # a context of something else changes nothing
        assert with_role.module(**SUMMARIZE).description == by_server
        assert without.module(**SUMMARIZE).description == "as configured"


def test_index_and_ask_use_the_model_of_a_context(
    of_server: dspy.LM, without_settings: Server, source: Path, tmp_path: Path, unembedded: None, model_server: Server
) -> None:
    settings = load_settings({"workspace": tmp_path / "ws", "embedding": "none"})
    with dspy.context(lm=of_server):
        report = asyncio.run(build_index([source], IndexOptions(), open_runtime(settings)))
        answer = ask("Who designed Orla Bridge?", workspace=tmp_path / "ws", effort="high")
    assert report.usage.by_step["extract"].calls == 3
    assert answer.trace.answered_by == "model"
    assert {"extract", "route", "filter", "answer"} <= {str(request["step"]) for request in model_server.requests()}
    assert {request["body"]["model"] for request in model_server.requests()} == {"given"}
    assert [entry["model"] for entry in of_server.history] == ["openai/given"] * answer.usage.calls, "not the index's"
    unchanged = asyncio.run(build_index([source], IndexOptions(), open_runtime(settings)))
    assert unchanged.published, "offline it is made anew: the model is part of what is made"


async def test_other_processes_have_no_model_of_the_program(
    of_server: dspy.LM, without_settings: Server, tmp_path: Path
) -> None:
    runtime = open_runtime(load_settings({"workspace": tmp_path, "runner": "dask"}))
    with dspy.context(lm=of_server), pytest.raises(UsageError, match="other processes"):
        async with open_runner(runtime):
            pass


class Watching(BaseCallback):
    """Notes the calls of models and modules."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def on_lm_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        self.calls.append(instance.model)

    def on_module_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        self.calls.append(instance.step)


def test_history_usage_and_callbacks_of_dspy_see_our_calls(model_server: Server) -> None:
    models = Models({"summarize": ModelChoice("openai/scripted", model_server.base_url, "k")})
    step, watching = Summarize(models), Watching()
    with dspy.context(callbacks=[watching]), dspy.track_usage() as tracker:
        step.module(**SUMMARIZE)
    assert watching.calls == ["summarize", "openai/scripted"]
    (row,) = models.meter.rows()
    total = tracker.get_total_tokens()["openai/scripted"]
    assert (total["prompt_tokens"], total["completion_tokens"]) == (row[2].input_tokens, row[2].output_tokens)
    (entry,) = step.module.history
    assert entry is models.lm("summarize").history[-1]
    assert entry["messages"][0]["content"].startswith("Step: summarize\n")
    with dspy.context(track_usage=True):
        assert step.module(**SUMMARIZE).get_lm_usage()["openai/scripted"]["prompt_tokens"] == total["prompt_tokens"]


def test_an_index_run_leaves_no_call_in_memory_and_a_question_does(
    of_server: dspy.LM, without_settings: None, tmp_path: Path
) -> None:
    with dspy.context(lm=of_server, trace=[]):
        folder = indexed(tmp_path, quays(3))
        assert not dspy.settings.trace
        assert not of_server.history
        ask("Where is Quay 1?", workspace=folder)
        assert dspy.settings.trace
        assert of_server.history


def test_what_a_program_says_of_its_model_holds(model_server: Server) -> None:
    lm = dspy.LM(
        "openai/given",
        api_base=model_server.base_url,
        api_key="k",
        cache=False,
        temperature=0.7,
        max_tokens=333,
        seed=7,
    )
    step = Summarize(Models.offline())
    with dspy.context(lm=lm):
        step.module(**SUMMARIZE)
        step.module(**SUMMARIZE, config={"temperature": 0.2})
    bodies: list[Any] = [request["body"] for request in model_server.requests()]
    assert [body["temperature"] for body in bodies] == [0.7, 0.2]
    assert {body.get("max_tokens") or body.get("max_completion_tokens") for body in bodies} == {333}
    assert [body["seed"] for body in bodies] == [7, 7]
