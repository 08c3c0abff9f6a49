"""Steps with a scripted model at an effort, and what they asked."""

from typing import Any, TypeVar

import dspy
from dspy.utils import DummyLM

from prompts.engine.effort import Effort, Policy
from prompts.engine.models import Models
from prompts.engine.step import Step
from prompts.text.evidence import Evidence
from prompts.text.question import parse_question
from prompts.text.relevance import CollectionTopic, Relevance

Made = TypeVar("Made", bound=Step)


def scripted(
    step: type[Made], *answers: object, effort: Effort = "medium", **arguments: Any
) -> Made:
    """A step whose model gives these values of its one output field in turn."""
    made = step(Models({}, policy=Policy.of(effort)), **arguments)
    (field,) = step.task.output_fields
    made.lm = DummyLM([{field: answer} for answer in answers], adapter=dspy.JSONAdapter())
    return made


def sent(step: Step) -> list[str]:
    """What the step's model was asked, a text a call."""
    assert isinstance(step.lm, DummyLM)
    return [str(call["messages"][-1]["content"]) for call in step.lm.history]


def spared(step: Step) -> dict[str, str]:
    """The steps whose model was spared, with the reasons."""
    return dict(step.models.meter.spared())


def gist_of(question: str) -> CollectionTopic:
    return CollectionTopic(Relevance(parse_question(question), {}))


def piece(number: int, text: str, title: str = "Wells") -> Evidence:
    return Evidence(number, title.lower(), title, text)
