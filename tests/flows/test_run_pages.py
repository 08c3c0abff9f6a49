"""The pages of a run, as records make them: golden files, and text of documents that stays text.

The golden files were looked at in the user interface; after a change look again before you replace them.
"""

from pathlib import Path

import pytest

from flows.orchestration.artifacts import answer_page, index_page, plain
from storage.answer_records import (
    Answer,
    Citation,
    DocumentStructure,
    FilterCounts,
    ModeDecision,
    ModeForecast,
    ModeTried,
    RouteDecision,
    SparedCall,
    SubQuestion,
    Trace,
    TriggerDecision,
)
from storage.records import DeadLetter, Skipped
from storage.run_records import DocumentCounts, IndexReport, Usage, UsageRow

GOLDEN = Path(__file__).parents[1] / "golden"
USED = [
    UsageRow(step="extract", model="openai/small", calls=3, input_tokens=900, output_tokens=200, cost_usd=0.0042),
    UsageRow(step="report", model="openai/big", calls=1, input_tokens=400, output_tokens=80, cost_usd=None, seconds=2),
]
STRUCTURE = DocumentStructure(
    document="bridge", title="Orla Bridge", description="Orla Bridge: 1 elements", elements=1,
    text="Orla Bridge -[designed by]-> Tomas Reyd",
)  # fmt: skip


def index_report(**changed: object) -> IndexReport:
    values: dict[str, object] = {
        "generation": 7, "published": True, "documents": DocumentCounts(added=1, changed=1, removed=1),
        "skipped": (Skipped(path="a_b.bin", reason="not text"),), "chunks": 9, "entities": 8, "relations": 7,
        "claims": 0, "communities": 2, "reports": 1, "dead_letters": 1, "usage": Usage(), "seconds": 12.34,
    }  # fmt: skip
    return IndexReport.model_validate(values | changed)


def answered() -> Answer:
    question = "Who designed the bridge of 1931?"
    parts = (
        SubQuestion(question="Which bridge opened in 1931?", answer="Orla Bridge"),
        SubQuestion(question="Who designed Orla Bridge?", answer="Tomas Reyd"),
    )
    trace = Trace(
        mode="struct", rewritten=question, queries=(question, "Orla Bridge designer"),
        trigger=(TriggerDecision(query=question, pop=1, threshold=3, tau=0.8, use_memory=False),),
        filter=FilterCounts(entailment=2, neutral=5, contradiction=1), question_type="nested",
        route=RouteDecision(type="graph", confidence=0.81, margin=0.4, reason="a chain of 2 links"),
        structure="graph", subquestions=parts, structures=(STRUCTURE,),
        decision=ModeDecision(
            mode="struct", confidence=0.93, reason="about a part of the documents: names something",
            forecasts=(ModeForecast(mode="struct", calls=2, tokens=3100),),
            tried=(ModeTried(mode="traverse", said="No path: *none*."),),
        ),
        answered_by="model", spared=(SparedCall(step="filter", reason="the model that answers reads it all"),),
        removed_markers=("[9]",),
    )  # fmt: skip
    cited = Citation(
        marker="[1]", document="bridge", title="Orla Bridge", chunk="chk_1", start=0,
        end=40, page=2, quote="Orla Bridge was designed by Tomas Reyd.", verified=True,
    )  # fmt: skip
    return Answer(
        question=question, answer="Tomas Reyd [1]", values=("Tomas Reyd",), citations=(cited,), passages=(),
        fallback="none", trace=trace, usage=Usage(seconds=1.5), generation=7,
    )  # fmt: skip


LETTER = DeadLetter(item="chk_9", step="extract", error="429 from the model.", remedy="Run again later.")


@pytest.mark.parametrize(
    ("name", "page"),
    [
        ("page_index.md", index_page(index_report(), ("notes", "a*b.md"), [LETTER], USED)),
        ("page_answer.md", answer_page(answered(), USED)),
    ],
)
def test_the_pages_of_a_run_and_a_question(name: str, page: str) -> None:
    assert page == (GOLDEN / name).read_text(encoding="utf-8").removesuffix("\n")


def test_nothing_to_do_is_said_and_long_lists_are_cut() -> None:
    report = index_report(published=False, documents=DocumentCounts(unchanged=3), skipped=(), dead_letters=0)
    text = index_page(report, ("notes",), [], [])
    assert "Nothing has changed: generation 7 stays, with 3 documents." in text
    assert [line for line in text.splitlines() if line.startswith("## ")] == ["## Models"]
    text = index_page(report, ("s",), [LETTER] * 70, [])
    assert (text.count("| chk\\_9 |"), "and 20 more" in text) == (50, True)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("![x](http://a.example/b) <b>", "\\!\\[x\\](http:\u2060//a.example/b) &lt;b&gt;"),
        ("www.a.example, me@a.example", "www\u2060.a.example, me@\u2060a.example"),
    ],
)
def test_text_of_documents_is_no_markup(text: str, shown: str) -> None:
    assert plain(text) == shown
