"""The table and its schema by a model: short prompts, and no figure that the text does not hold."""

from pathlib import Path

import dspy
import pytest
from dspy.utils import DummyLM

from prompts.engine.models import Models
from prompts.engine.step import Step
from prompts.engine.wire import conversation
from prompts.structures.schema import ReadSchema
from prompts.structures.table import CellWritten, WriteTable
from storage.records import Document
from tasks.structurize.written import placed

GOLDEN = Path(__file__).parents[1] / "golden"
ASKED: dict[type[Step], dict[str, str | list[str]]] = {
    ReadSchema: {"question": "Which of the two ports earns more?", "titles": ["Nordlicht", "Südhafen"]},
    WriteTable: {
        "attributes": ["[0] revenue"],
        "title": "Nordlicht",
        "sentences": ["[0] Nordlicht earned $1,308,463 in 2023."],
    },
}
TEXT = "Nordlicht earned $1,308,463 in 2023. Its costs were (415) thousand crowns.\n"
TEXT += "| Item | 2023 |\n|---|---|\n| Fees | 12,5 |"
SPANS = [(0, 36), (37, 75)]


@pytest.mark.parametrize("step", [ReadSchema, WriteTable])
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


async def test_a_cell_of_no_attribute_or_sentence_is_none() -> None:
    writer = WriteTable(Models.offline())
    cells = [
        {"thing": "N", "attribute": attribute, "raw": "4", "period": "", "sentence": sentence}
        for attribute, sentence in ((0, 0), (1, 0), (0, 1), (-1, 0))
    ]
    writer.lm = DummyLM([{"table": {"cells": cells}}], adapter=dspy.JSONAdapter())
    assert [(cell.attribute, cell.sentence) for cell in await writer.run(["depth"], "T", ["It is 4 m."])] == [(0, 0)]


def written(raw: str, sentence: int = 0) -> CellWritten:
    return CellWritten(thing="Nordlicht", attribute=0, raw=raw, period="2023", sentence=sentence)


@pytest.mark.parametrize(
    ("raw", "sentence", "kept"),
    [
        ("$1,308,463", 0, "$1,308,463"),
        ("1308463", 0, "$1,308,463"),
        ("138463", 0, None),
        ("308,463", 0, None),
        ("1,308", 0, None),
        ("$1,308,463", 1, None),
        ("(415) thousand", 1, "(415) thousand"),
        ("", 0, None),
    ],
)
def test_a_figure_is_the_one_of_its_sentence_or_refused(raw: str, sentence: int, kept: str | None) -> None:
    document = Document(id="n", title="Nordlicht", text=TEXT, language="en", parts=())
    found = placed(document, SPANS, ["revenue"], [written(raw, sentence)])
    assert [cell.raw for cell in found.cells] == ([kept] if kept else [])
    assert found.refused == (kept is None)
    for cell in found.cells:
        assert document.text[cell.start : cell.end] == cell.raw
        assert document.text[cell.quote_start : cell.quote_start + len(cell.quote)] == cell.quote
        assert (cell.attribute, cell.period) == ("revenue", "2023")
