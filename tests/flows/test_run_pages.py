"""The pages of a run, as records make them: golden files, and text of documents that stays text.

The golden files were looked at in the user interface; after a change look again before you replace them.
"""

import re
from pathlib import Path

from flows.orchestration.artifacts import (
    Fact,
    RunOutcome,
    Theme,
    Walked,
    answer_page,
    changes,
    index_page,
    label,
    picture,
    plain,
    reports_page,
)
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
from storage.graph_records import Finding, Report
from storage.meta import UsageRow
from storage.records import DeadLetter, Skipped
from storage.run_records import DocumentCounts, IndexReport, Usage

GOLDEN = Path(__file__).parents[1] / "golden"
HOSTILE = '"] --> x\nclick n1 "javascript:alert(1)" ``` %%{init: {}}%% <img src=x> https://a.example [a](b) | #quot;'
USED = [
    UsageRow(step="extract", model="openai/small", calls=3, input_tokens=900, output_tokens=200, cost_usd=0.0042),
    UsageRow(step="report", model="openai/big", calls=1, input_tokens=400, output_tokens=80, cost_usd=None, seconds=2),
]
REPORT = Report(
    community="com_1", level=0, title="Orla Bridge | Velin", summary="The bridge and who built it.", rating=6.5,
    rating_reason="many statements", inputs="inp_1",
    findings=(Finding(summary="Built in <1931>", explanation="", document="bridge", start=3, end=40),),
)  # fmt: skip
STRUCTURES = (
    DocumentStructure(
        document="bridge", title="Orla Bridge", description="Orla Bridge: 1 elements", elements=1,
        text="Orla Bridge -[designed by]-> Tomas Reyd",
    ),
    DocumentStructure(document="poem", title="A <b>poem</b>", description="A poem: not found", elements=0),
)  # fmt: skip


def index_report(**changed: object) -> IndexReport:
    values: dict[str, object] = {
        "generation": 7, "published": True, "documents": DocumentCounts(added=1, changed=1, removed=1),
        "skipped": (Skipped(path="a_b.bin", reason="not text"),), "chunks": 9, "entities": 8, "relations": 7,
        "claims": 0, "communities": 2, "reports": 1, "dead_letters": 1, "usage": Usage(), "seconds": 12.34,
    }  # fmt: skip
    return IndexReport.model_validate(values | changed)


def answered(text: str = "Tomas Reyd [1]") -> Answer:
    question = "Who designed the bridge that opened in 1931?"
    parts = (
        SubQuestion(question="Which bridge opened in 1931?", answer="Orla Bridge"),
        SubQuestion(question="Who designed Orla Bridge?", answer="Tomas Reyd"),
    )
    trace = Trace(
        mode="struct", rewritten=question, queries=(question, "Orla Bridge designer"),
        trigger=(TriggerDecision(query=question, pop=1, threshold=3, tau=0.8, use_memory=False),),
        filter=FilterCounts(entailment=2, neutral=5, contradiction=1), question_type="nested",
        route=RouteDecision(type="graph", confidence=0.81, margin=0.4, reason="a chain of 2 links"),
        structure="graph", subquestions=parts, structures=STRUCTURES,
        decision=ModeDecision(
            mode="struct", confidence=0.93, reason="about a part of the documents: names something",
            forecasts=(ModeForecast(mode="struct", calls=2, tokens=3100),),
            tried=(ModeTried(mode="traverse", said="No path: *none*."),),
        ),
        answered_by="model", spared=(SparedCall(step="filter", reason="the model that answers reads it all"),),
        removed_markers=("[9]",),
    )  # fmt: skip
    cited = Citation(
        marker="[1]", document="bridge", title="Orla Bridge", chunk="chk_1", start=0, end=40, page=2,
        quote="Orla Bridge was designed by Tomas Reyd.", verified=True,
    )  # fmt: skip
    return Answer(
        question=question, answer=text, values=("Tomas Reyd",), citations=(cited,), passages=(), fallback="none",
        trace=trace, usage=Usage(seconds=1.5), generation=7,
    )  # fmt: skip


WAY = Walked(
    searched=((answered().question, ()), ("Orla Bridge designer", ("Orla Bridge",))),
    facts=(Fact(source="Orla Bridge", predicate="designed by", target="Tomas Reyd", document="Orla Bridge"),),
)


def same(name: str, text: str) -> None:
    assert text == (GOLDEN / name).read_text(encoding="utf-8").removesuffix("\n")


def test_the_page_of_an_index_run() -> None:
    outcome = RunOutcome(
        report=index_report(), sources=("notes", "a*b.md"),
        changes=changes({"old": "1", "bridge": "2", "same": "3"}, {"bridge": "4", "new|er": "5", "same": "3"}),
        letters=(DeadLetter(item="chk_9", step="extract", error="429 from the model.", remedy="Run again later."),),
        themes=(Theme(report=REPORT, members=12),),
    )  # fmt: skip
    same("shown_index_summary.md", index_page(outcome, USED, "../artifact/1"))
    same("shown_index_reports.md", reports_page(outcome.themes))


def test_the_page_of_a_run_that_found_nothing_to_do_says_so_and_no_more() -> None:
    counts = DocumentCounts(unchanged=3)
    report = index_report(published=False, documents=counts, skipped=(), dead_letters=0)
    text = index_page(RunOutcome(report=report, sources=("notes",)), [])
    assert "Nothing has changed: generation 7 stays, with 3 documents." in text
    assert [line for line in text.splitlines() if line.startswith("## ")] == ["## Models"]


def test_long_lists_are_cut_and_counted() -> None:
    outcome = RunOutcome(
        report=index_report(skipped=()), sources=("s",), changes=changes({}, {f"d{n}": "1" for n in range(70)})
    )
    text = index_page(outcome, [])
    assert text.count("| added |") == 50
    assert "and 20 more" in text


def test_the_page_of_a_question_with_the_picture_of_its_way() -> None:
    same("shown_answer.md", answer_page(answered(), WAY, USED))


def test_memory_that_answers_for_retrieval_is_in_the_picture() -> None:
    trigger = (TriggerDecision(query="q", pop=3, threshold=3, tau=0.8, use_memory=True),)
    answer = answered()
    remembered = answer.model_copy(update={"trace": answer.trace.model_copy(update={"trigger": trigger})})
    assert "memory answers for retrieval" in picture(remembered, WAY)
    assert "memory answers for retrieval" not in picture(answer, WAY)


def test_no_text_gets_out_of_its_label() -> None:
    fact = Fact(source=HOSTILE, predicate=HOSTILE, target=HOSTILE, document=HOSTILE)
    drawn = picture(answered(HOSTILE), Walked(searched=((HOSTILE, (HOSTILE,)),), facts=(fact,)))
    lines = drawn.splitlines()
    assert (lines[0], lines[1], lines[-1]) == ("```mermaid", "flowchart TD", "```")
    shape = re.compile(r'  n\d+[\[({/]+"[^"`<>{}\[\]|]*"[\])}/]+|  n\d+ -->(\|"[^"`<>{}\[\]|]*"\|)? n\d+')
    assert all(shape.fullmatch(line) for line in lines[2:-1]), drawn
    assert "%%" not in drawn
    assert "://" not in drawn


def test_a_label_is_one_short_line_of_what_can_be_printed() -> None:
    assert label("a\n\tb\u202e\x00") == "a b"
    assert label("奥拉桥 (1931)") == "奥拉桥 (1931)"
    assert label("x" * 99) == "x" * 59 + "…"


def test_text_of_documents_is_no_markup() -> None:
    assert plain("![x](http://a.example/b) <b>") == "\\!\\[x\\](http:\u2060//a.example/b) &lt;b&gt;"
    assert plain("www.a.example, me@a.example") == "www\u2060.a.example, me@\u2060a.example"
