"""Each prompt as its model reads it, beside what is filled into it (golden/prompts.json).

`make golden` writes the prompts anew.
"""

import json
from pathlib import Path

import pytest

from prompts.engine.models import Models
from prompts.engine.step import Step
from prompts.registry import build, steps
from prompts.schema import NO_SCHEMA
from prompts.structurize import Structurize
from tests.facts.corpus import SCHEMA

GOLDEN = Path(__file__).parent / "golden"
SHOWN = json.loads((GOLDEN / "prompts.json").read_text(encoding="utf-8"))


def built(step: type[Step]) -> Step:
    """The step without settings; one that lists facts has the schema of the samples."""
    schema = SCHEMA if "Facts" in step.__name__ else NO_SCHEMA
    return build(step, models=Models.offline(), schema=schema)


BUILT = [built(step) for kinds in steps().values() for step in kinds if step is not Structurize]
BUILT += [Structurize(Models.offline(), structure) for structure in Structurize.forms]


def rendered(step: Step) -> str:
    """The prompt as a model reads it."""
    messages = step.module.messages(SHOWN[name_of(step)])
    return "\n".join(f"--- {message.role}\n{message.content}" for message in messages) + "\n"


def name_of(step: Step) -> str:
    """The name of a prompt's signature: those of the structures are forms of one step."""
    task = Structurize.forms[step.structure] if isinstance(step, Structurize) else step.task
    return task.__name__


@pytest.mark.parametrize("step", BUILT, ids=name_of)
def test_a_prompt_reads_like_the_golden_one(step: Step) -> None:
    assert rendered(step) == (GOLDEN / f"prompt_{name_of(step)}.txt").read_text(encoding="utf-8")


if __name__ == "__main__":
    for one in BUILT:
        (GOLDEN / f"prompt_{name_of(one)}.txt").write_text(rendered(one), encoding="utf-8")
