"""The pages of a run, as records make them: golden files, and text of documents that stays text.

What they are made of lies beside them. They were looked at in the user interface; after a change look again before you
replace them.
"""

from pathlib import Path

import pytest

from flows.operations.run_pages import address_of, answer_page, index_page
from flows.usage import plain
from storage.answer_records import (
    Answer,
)
from storage.graph_records import Report
from storage.records import DeadLetter, Document, Part
from storage.run_records import DocumentCounts, IndexReport, UsageRow

GOLDEN = Path(__file__).parents[1] / "golden"
HOSTILE = '"] --> x\nclick n1 "javascript:alert(1)" ``` %%{init: {}}%% <img src=x> https://a.example [a](b) | #quot;'
USED = [
    UsageRow(step="extract", model="openai/small", calls=3, input_tokens=900, output_tokens=200, cost_usd=0.0042),
    UsageRow(step="report", model="openai/big", calls=1, input_tokens=400, output_tokens=80, cost_usd=None, seconds=2),
]
REPORT = Report(
    community="com_1", level=0, title="Orla Bridge | Velin", summary="The bridge and who built it.", rating=6.5,
    rating_reason="many statements", inputs="inp_1", findings=(),
)  # fmt: skip
ANSWER = Answer.model_validate_json((GOLDEN / "page_answer.json").read_text(encoding="utf-8"))
INDEXED = IndexReport.model_validate_json((GOLDEN / "page_index.json").read_text(encoding="utf-8"))


LETTER = DeadLetter(item="chk_9", step="extract", error="429 from the model.", remedy="Run again later.")


@pytest.mark.parametrize(
    ("name", "page"),
    [
        ("page_index.md", index_page(INDEXED, ("notes", "a*b.md"), [LETTER], [(REPORT, 12)], USED)),
        ("page_answer.md", answer_page(ANSWER, USED, {"bridge": "https://a.example/b"})),
    ],
)
def test_the_pages_of_a_run_and_a_question(name: str, page: str) -> None:
    assert page == (GOLDEN / name).read_text(encoding="utf-8").removesuffix("\n")


def test_nothing_to_do_is_said_and_long_lists_are_cut() -> None:
    idle = {"published": False, "documents": DocumentCounts(unchanged=3), "skipped": (), "dead_letters": 0}
    report = INDEXED.model_copy(update=idle)
    text = index_page(report, ["notes"], [], [], [])
    assert "Nothing has changed: generation 7 stays, with 3 documents." in text
    assert [line for line in text.splitlines() if line.startswith("## ")] == ["## Models"]
    text = index_page(report, ["s"], [LETTER] * 70, [], [])
    assert (text.count("429 from the model"), "and 20 more" in text) == (50, True)


def test_no_text_gets_out_of_its_entry() -> None:
    cited = ANSWER.citations[0].model_copy(update={"title": HOSTILE})
    (trigger,) = ANSWER.trace.trigger
    asked = {"rewritten": HOSTILE, "queries": (HOSTILE,), "trigger": (trigger.model_copy(update={"query": HOSTILE}),)}
    changed = {"question": HOSTILE, "answer": HOSTILE, "citations": (cited,)}
    page = answer_page(ANSWER.model_copy(update=changed | {"trace": ANSWER.trace.model_copy(update=asked)}), USED, {})
    entries = [line for line in page.splitlines() if line.startswith("- **")]
    assert sum("click n1" in entry for entry in entries) == 2
    assert not any(sign in page for sign in ("<img", "https://", "```", "[a](b)"))


@pytest.mark.parametrize(
    ("metadata", "path", "address"),
    [
        ({"url": "https://a.example/x y)?q=1"}, "nowhere", "https://a.example/x%20y%29?q=1"),
        ({"url": "javascript:alert(1)"}, "nowhere", ""),
        ({}, __file__, __file__),
        ({}, f"{__file__}:12", __file__),
    ],
)
def test_a_source_has_the_web_address_that_it_names_or_the_path_of_its_file(
    metadata: dict[str, str], path: str, address: str
) -> None:
    part = Part(document="d", source="s", path=path, kind="text", title="t", text="x", metadata={**metadata})
    document = Document(id="d", title="t", text="x", language="en", parts=(part,), metadata={**metadata})
    assert address_of(document) == address


def test_a_path_is_text_to_copy_and_no_link() -> None:
    assert "\n\n`/notes/www.a_b.md`\n\n" in answer_page(ANSWER, USED, {"bridge": "/notes/www.a_b.md"})
    page = answer_page(ANSWER, USED, {"bridge": "/notes/`<img src=x>`.md"})
    assert "<img" not in page


def test_text_of_documents_is_no_markup() -> None:
    assert plain("![x](http://a.example/b) <b>") == "\\!\\[x\\](http:\u2060//a.example/b) &lt;b&gt;"
    assert plain("www.a.example, me@a.example") == "www\u2060.a.example, me@\u2060a.example"
