"""Compiles a step with an optimiser of DSPy's on examples."""

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout
from typing import Any, Literal

import dspy
from dspy.utils.exceptions import AdapterParseError

from prompts.engine.errors import ModelRefused
from prompts.engine.models import Models
from prompts.engine.step import Step, StepModule

Optimiser = Literal["bootstrap", "mipro", "gepa"]
# The value of an answer, 0 to 1, by the example's outputs and the step's.
Worth = Callable[[Mapping[str, Any], Mapping[str, Any]], float]
_DEMONSTRATIONS = 3
_GOOD = 0.5  # the least value of an answer that may become a demonstration


def compile_step(
    step: Step,
    examples: Sequence[Mapping[str, object]],
    worth: Worth,
    by: Optimiser,
    models: Models,
    seed: int = 0,
) -> StepModule:
    """The step with demonstrations (bootstrap) or also instructions (mipro, gepa).

    `examples` hold the step's inputs by name, and its outputs or whatever `worth` reads. The
    optimiser's own prompts go to the role's model. Raises ModelMisconfigured where there is none.
    """
    module, lm = step.module, models.lm(step.role)
    inputs, outputs = list(module.signature.input_fields), list(module.signature.output_fields)
    known = [dspy.Example(**example).with_inputs(*inputs) for example in examples]
    # Examples without outputs cannot be demonstrations; good answers of the step can.
    labelled = _DEMONSTRATIONS if all(set(outputs) <= set(it) for it in examples) else 0

    def metric(example: dspy.Example, prediction: dspy.Prediction, *_: object) -> float:
        return worth(dict(example), dict(prediction))

    def metric_in_words(
        example: dspy.Example, prediction: dspy.Prediction, *_: object
    ) -> dspy.Prediction:
        score = metric(example, prediction)
        wanted = {name: example[name] for name in (*outputs, "gold") if name in example}
        return dspy.Prediction(score=score, feedback=f"Worth {score:g}. Expected: {wanted}.")

    compiled: StepModule
    try:
        with redirect_stdout(sys.stderr):  # optimisers draw bars on standard output
            if by == "bootstrap":
                bootstrap = dspy.BootstrapFewShot(
                    metric=metric,
                    metric_threshold=_GOOD,
                    max_bootstrapped_demos=_DEMONSTRATIONS,
                    max_labeled_demos=labelled,
                )
                compiled = bootstrap.compile(module, trainset=known)
            elif by == "mipro":
                mipro = dspy.MIPROv2(
                    metric=metric, prompt_model=lm, task_model=lm, auto="light", seed=seed
                )
                compiled = mipro.compile(module, trainset=known, max_labeled_demos=labelled)
            else:
                gepa = dspy.GEPA(metric=metric_in_words, reflection_lm=lm, auto="light", seed=seed)
                compiled = gepa.compile(module, trainset=known, valset=known)
    except AdapterParseError as error:
        raise ModelRefused(
            f"The model's answer to a prompt of the optimiser {by!r} is not of the asked form.",
            "Use a stronger model, or `--by bootstrap`, which has no prompts.",
        ) from error
    return compiled
