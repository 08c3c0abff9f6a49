"""Compiling a step by an optimiser of DSPy's, measured on examples of its own."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from typing import Any, Literal

import dspy
from dspy.utils.exceptions import AdapterParseError

from prompts.engine.errors import ModelRefused
from prompts.engine.models import Models
from prompts.engine.module import StepModule
from prompts.engine.step import Step

Optimiser = Literal["bootstrap", "mipro", "gepa"]
# What an answer to an example is worth, 0 to 1: the example's outputs, then the step's.
Worth = Callable[[Mapping[str, Any], Mapping[str, Any]], float]
_DEMONSTRATIONS = 3
_GOOD = 0.5  # what an answer is worth that may become a demonstration


def compile_step(
    step: Step, examples: Sequence[Mapping[str, object]], worth: Worth, by: Optimiser, models: Models, seed: int = 0
) -> StepModule:
    """The step with what the optimiser has found: demonstrations (bootstrap), instructions too (mipro, gepa).

    `examples` hold the step's inputs, and its outputs or what else `worth` reads, by name. The optimiser's own prompts
    go to the role's model. Raises ModelMisconfigured where the role has none.
    """
    inputs, outputs = list(step.module.signature.input_fields), list(step.module.signature.output_fields)
    known = [dspy.Example(**example).with_inputs(*inputs) for example in examples]
    lm = models.lm(step.role)
    # Without known outputs an example is no demonstration; the step's own good answers are.
    labelled = _DEMONSTRATIONS if all(set(outputs) <= set(example) for example in examples) else 0

    def metric(example: dspy.Example, prediction: dspy.Prediction, *_: object) -> float:
        return worth(dict(example), dict(prediction))

    def metric_in_words(example: dspy.Example, prediction: dspy.Prediction, *_: object) -> dspy.Prediction:
        score = metric(example, prediction)
        wanted = {name: example[name] for name in (*outputs, "gold") if name in example}
        return dspy.Prediction(score=score, feedback=f"Worth {score:g}. Expected: {wanted}.")

    with redirect_stdout(sys.stderr), _refusals_told(by):  # optimisers draw bars; standard output is the command's
        if by == "bootstrap":
            optimiser = dspy.BootstrapFewShot(
                metric=metric, metric_threshold=_GOOD, max_bootstrapped_demos=_DEMONSTRATIONS,
                max_labeled_demos=labelled,
            )  # fmt: skip
            compiled = optimiser.compile(step.module, trainset=known)
        elif by == "mipro":
            optimiser = dspy.MIPROv2(metric=metric, prompt_model=lm, task_model=lm, auto="light", seed=seed)
            compiled = optimiser.compile(step.module, trainset=known, max_labeled_demos=labelled)
        else:
            optimiser = dspy.GEPA(metric=metric_in_words, reflection_lm=lm, auto="light", seed=seed)
            compiled = optimiser.compile(step.module, trainset=known, valset=known)
    result: StepModule = compiled
    return result


@contextmanager
def _refusals_told(by: Optimiser) -> Iterator[None]:
    try:
        yield
    except AdapterParseError as error:
        message = f"The model's answer to a prompt of the optimiser {by!r} itself is not of the asked form."
        raise ModelRefused(message, "Use a stronger model, or `--by bootstrap`, which has no prompts.") from error
