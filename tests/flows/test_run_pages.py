"""The pages of a run: golden files, and text of documents that stays text.

They were looked at in Prefect's user interface; after a change look again before you replace them.
"""

from pathlib import Path

import pytest

from flows.answer_page import answer_page
from flows.operations.run_pages import index_page
from flows.usage import plain
from storage.answer_records import Answer
from storage.graph_records import Report
from storage.records import DeadLetter
from storage.run_records import DocumentCounts, IndexReport, UsageRow

GOLDEN = Path(__file__).parents[1] / "golden"
HOSTILE = (
    '"] --> x\nclick n1 "javascript:alert(1)" ``` %%{init: {}}%% <img src=x> https://a.example '
    "[a](b) | #quot;"
)
COSTS = {"model": "openai/small", "calls": 3, "input_tokens": 900, "output_tokens": 200}
OTHERS = {"model": "openai/big", "calls": 1, "input_tokens": 400, "output_tokens": 80}
USED = [
    UsageRow.model_validate({"step": "extract", **COSTS, "cost_usd": 0.0042}),
    UsageRow.model_validate({"step": "report", **OTHERS, "cost_usd": None, "seconds": 2}),
]
REPORT = Report(
    community="com_1",
    level=0,
    title="Orla Bridge | Velin",
    summary="The bridge and who built it.",
    rating=6.5,
    rating_reason="many statements",
    inputs="inp_1",
    findings=(),
)
ANSWER = Answer.model_validate_json((GOLDEN / "page_answer.json").read_text(encoding="utf-8"))
INDEXED = IndexReport.model_validate_json((GOLDEN / "page_index.json").read_text(encoding="utf-8"))
LETTER = DeadLetter(
    item="chk_9", step="extract", error="429 from the model.", remedy="Run again later."
)


@pytest.mark.parametrize(
    ("name", "page"),
    [
        ("page_index.md", index_page(INDEXED, ("notes", "a*b.md"), [LETTER], [(REPORT, 12)], USED)),
        ("page_answer.md", answer_page(ANSWER, USED)),
    ],
)
def test_the_pages_of_a_run_and_a_question(name: str, page: str) -> None:
    assert page == (GOLDEN / name).read_text(encoding="utf-8").removesuffix("\n")


def test_nothing_to_do_is_said() -> None:
    idle = {"published": False, "documents": DocumentCounts(unchanged=3)}
    text = index_page(INDEXED.model_copy(update=idle), ["notes"], [], [], [])
    assert "Nothing has changed: generation 7 stays, with 3 documents." in text


def test_long_lists_are_cut() -> None:
    text = index_page(INDEXED, ["notes"], [LETTER] * 70, [], [])
    assert (text.count("429 from the model"), "and 20 more" in text) == (50, True)


def test_no_text_of_a_document_is_markup() -> None:
    cited = ANSWER.citations[0].model_copy(update={"title": HOSTILE})
    changed = {"question": HOSTILE, "answer": HOSTILE, "citations": (cited,)}
    page = answer_page(ANSWER.model_copy(update=changed), USED).partition("## How the answer")[0]
    assert not any(sign in page for sign in ("<img", "https://", "```", "[a](b)"))
    assert plain("![x](http://a.example/b) <b>") == "\\!\\[x\\](http:\u2060//a.example/b) &lt;b&gt;"
