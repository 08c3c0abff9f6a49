"""The schema of a table by a model: which rows, columns and periods all documents have."""

from pathlib import Path

import dspy
import pytest
from dspy.utils import DummyLM

from prompts.engine.models import Models
from prompts.engine.step import Step
from prompts.engine.wire import conversation
from prompts.structures.schema import ReadSchema

GOLDEN = Path(__file__).parents[1] / "golden"
ASKED: dict[type[Step], dict[str, str | list[str]]] = {
    ReadSchema: {"question": "Which of the two ports earns more?", "titles": ["Nordlicht", "Südhafen"]},
}


@pytest.mark.parametrize("step", [ReadSchema])
def test_a_prompt_reads_like_the_golden_one(step: type[Step]) -> None:
    messages = conversation(step.step, step.task, step.wire, (), ASKED[step])
    rendered = "\n".join(f"--- {message.role}\n{message.content}" for message in messages) + "\n"
    assert rendered == (GOLDEN / f"prompt_{step.task.__name__}.txt").read_text(encoding="utf-8")


async def test_a_model_names_the_attributes_of_all_documents() -> None:
    reader = ReadSchema(Models.offline())
    answer = {"things": ["Nordlicht", "Nordlicht"], "attributes": ["annual  revenue", ""], "periods": ["2023"]}
    reader.lm = DummyLM([{"schema_found": answer}], adapter=dspy.JSONAdapter())
    found = await reader.run("?", ["Nordlicht", "Südhafen"])
    assert (found.things, found.attributes, found.periods) == (["Nordlicht"], ["annual revenue"], ["2023"])
