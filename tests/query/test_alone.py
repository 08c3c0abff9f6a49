"""Steps that have no rules: a hypothetical passage, an answer without documents, the schema of a table."""

import pytest

from prompts.direct import Direct
from prompts.engine.step import Step
from prompts.hypothesize import Hypothesize
from prompts.structurize import ReadSchema
from tasks.direct import answer_directly
from tasks.hypothesize import hypothesize
from tests.query.steps import golden, rendered, scripted, sent

QUESTION = "What harm does salt do to wells?"


async def test_a_hypothetical_passage_is_searched_for_as_written() -> None:
    assert await hypothesize(QUESTION, scripted(Hypothesize, "Brine\nspoils wells.")) == "Brine spoils wells."


@pytest.mark.parametrize(
    ("written", "text", "values", "fallback"),
    [
        ({"reasoning": "6+4", "answer": "Ten:\n\n- six\n- four", "values": ["10", "10"]}, "Ten:\n\n- six\n- four",
         ("10",), "ungrounded"),
        ({"answer": "大约十个。"}, "大约十个。", (), "ungrounded"),
        ({"answer": " "}, "The model does not know.", (), "abstained"),
    ],
)  # fmt: skip
async def test_an_answer_from_memory_stands_word_for_word(
    written: dict[str, object], text: str, values: tuple[str, ...], fallback: str
) -> None:
    found = await answer_directly(QUESTION, scripted(Direct, written))
    assert (found.text, found.values, found.fallback) == (text, values, fallback)


async def test_a_schema_in_other_words_is_taken_whole() -> None:
    written = {"things": ["Tarn  Mill"], "attributes": ["yearly output", "head count", "yearly output"], "periods": []}
    made = scripted(ReadSchema, written)
    found = await made.run("Which mill produced most per worker?", ["Accounts " * 50] * 2_000)
    assert (found.things, found.attributes, found.periods) == (["Tarn Mill"], ["yearly output", "head count"], [])
    assert len(sent(made)[0]) < 20_000


SHOWN: dict[type[Step], dict[str, object]] = {
    Hypothesize: {"question": QUESTION},
    Direct: {"question": QUESTION},
    ReadSchema: {"question": "Which company had the higher revenue in 2023?", "titles": ["Aster", "Borea"]},
}


@pytest.mark.parametrize("step", SHOWN)
def test_a_prompt_reads_like_the_golden_one(step: type[Step]) -> None:
    assert rendered(step, SHOWN[step]) == golden(step)
