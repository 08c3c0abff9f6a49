"""Does the scripted server understand the project's own requests, and do its answers pass the project's own reading?"""

from collections.abc import AsyncIterator
from typing import get_args

import pytest

from prompts.answer import AnswerStep, ReduceStep
from prompts.decompose import Decompose
from prompts.direct import Direct
from prompts.engine.models import ModelChoice, Models
from prompts.engine.roles import ROLES
from prompts.engine.step import Step
from prompts.explore import Explore
from prompts.extract import Extract, Glean
from prompts.filter import Filter
from prompts.hypothesize import Hypothesize
from prompts.keywords import Keywords
from prompts.partial import Partial
from prompts.plan_table import PlanTable
from prompts.rate import Rate
from prompts.report import WriteReports
from prompts.resolve import Resolve
from prompts.rewrite import Rewrite
from prompts.route import Route
from prompts.structurize import ReadSchema, Structurize
from prompts.summarize import Summarize
from prompts.traverse import PlanTraversal
from prompts.tune import Tune
from tests.server.client import Server
from tests.server.inputs import INPUTS, PASSAGE

STEPS = (
    AnswerStep, Decompose, Direct, Explore, Extract, Filter, Glean, Hypothesize, Keywords, Partial,
    PlanTable, PlanTraversal, Rate, ReadSchema, ReduceStep, Resolve, Rewrite, Route, Structurize, Summarize, Tune,
    WriteReports,
)  # fmt: skip


@pytest.fixture
async def models(model_server: Server) -> AsyncIterator[Models]:
    choice = ModelChoice("openai/scripted", model_server.base_url, "a key")
    made = Models(dict.fromkeys(ROLES, choice))
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


async def test_what_the_passage_names_arrives(models: Models) -> None:
    found = await Extract(models).run("T", PASSAGE)
    assert [entity.name for entity in found.entities] == ["Ada Lovelace", "Charles Babbage"]
    assert [(link.source, link.predicate, link.target, link.strength) for link in found.relations] == [
        ("Ada Lovelace", "met", "Charles Babbage", 5.0)
    ]
