"""A step is a module of DSPy's: nothing of ours is needed to use one."""

import asyncio
import json
from pathlib import Path
from typing import Any

import dspy
import pytest
from dspy.utils import DummyLM
from prompts.choose import Choose

QUESTIONS = ("What do the reports have in common?", "Who designed Orla Bridge?")


def scope(about: str) -> dict[str, dict[str, object]]:
    return {"scope": {"reason": "by its words", "about": about, "confidence": 0.9}}


def saying(*about: str) -> DummyLM:
    return DummyLM([scope(it) for it in about], adapter=dspy.JSONAdapter())


def is_whole(_: dspy.Example, prediction: dspy.Prediction, *__: object) -> bool:
    return bool(prediction.scope.about == "whole")


def test_a_module_is_called_compiled_saved_and_loaded(tmp_path: Path) -> None:
    module = Choose()
    with dspy.context(lm=saying("part", "whole")):
        assert module(documents=[], question=QUESTIONS[1]).scope.about == "part"
        asked = module.acall(documents=["A report"], question=QUESTIONS[0])
        assert asyncio.run(asked).scope.about == "whole"
    examples = [dspy.Example(documents=[], question=it, **scope("whole")) for it in QUESTIONS]
    known = [it.with_inputs("documents", "question") for it in examples]
    with dspy.context(lm=saying(*["whole"] * 9)):
        optimiser = dspy.BootstrapFewShot(metric=is_whole, max_bootstrapped_demos=2)
        compiled = optimiser.compile(module, trainset=known)
    assert [demo["question"] for demo in compiled.predictors()[0].demos] == list(QUESTIONS)
    assert module.predictors()[0].demos == [], "the original stays as it was"
    compiled.save(tmp_path / "choose.json")
    loaded = Choose()
    loaded.load(tmp_path / "choose.json")
    (demo, _) = loaded.predictors()[0].demos
    assert demo["scope"].about == "whole"
    lm = saying("part")
    with dspy.context(lm=lm):
        loaded(documents=[], question="And this one?")
    roles = [turn["role"] for turn in lm.history[-1]["messages"]]
    assert roles == ["system", "user", "assistant", "user", "assistant", "user"]


def test_a_modules_state_holds_no_model(tmp_path: Path) -> None:
    module = Choose()
    module.set_lm(dspy.LM("openai/x", api_key="sk-secret-4711"))
    module.save(tmp_path / "choose.json")
    text = (tmp_path / "choose.json").read_text()
    assert "sk-secret-4711" not in text
    state: Any = json.loads(text)
    assert state["module"]["step"] == "choose"


def test_a_module_without_a_model_says_so() -> None:
    with pytest.raises(TypeError, match="give the role 'route' a model"):
        Choose()(documents=[], question=QUESTIONS[0])
