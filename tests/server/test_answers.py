"""Are the scripted answers those of the stated rules?"""

import pytest

from tests.server.answers import RULES, NoRuleError, answer_step
from tests.server.outputs import (
    Answer,
    Cells,
    Extraction,
    Judgements,
    Keys,
    Parts,
    Report,
    Rewriting,
    Routed,
    Scope,
)

PASSAGE = "Ada Lovelace worked with Charles Babbage in London. The Analytical Engine was never built."


def extracted(passage: str) -> Extraction:
    found = answer_step("extract", {"passage": passage, "kinds": ["person", "place"]})
    assert isinstance(found, Extraction)
    return found


def test_capitalised_spans_are_entities_and_pairs_of_a_sentence_relations() -> None:
    found = extracted(PASSAGE)
    assert [entity.name for entity in found.entities] == ["Ada Lovelace", "Charles Babbage", "Analytical Engine"]
    (link,) = found.relations
    assert (link.source, link.predicate, link.target) == ("Ada Lovelace", "worked with", "Charles Babbage")
    assert link.description == "Ada Lovelace worked with Charles Babbage in London."
    assert {entity.kind for entity in found.entities} <= {"person", "place"}


def test_a_passage_without_long_names_yields_single_words() -> None:
    found = extracted("The river runs from Basel to Rotterdam.")
    assert [entity.name for entity in found.entities] == ["Basel", "Rotterdam"]


def test_chinese_names_are_read_in_marks_before_a_verb_and_by_their_last_character() -> None:
    found = extracted("鲁迅是作家，著有《呐喊》，曾住在北京市。")
    assert [entity.name for entity in found.entities] == ["鲁迅", "呐喊", "在北京市"]


def test_every_name_is_written_in_the_passage() -> None:
    assert all(entity.name in PASSAGE for entity in extracted(PASSAGE).entities)


def test_a_report_quotes_its_statements_by_their_numbers() -> None:
    found = answer_step(
        "report",
        {
            "entities": ["A: is a", "B: is b", "C: c", "D: d"],
            "statements": ["[4] A is b.", "[7] Ada Lovelace is here."],
        },
    )
    assert isinstance(found, Report)
    assert (found.title, found.summary) == ("A, B, C", "A is b.")
    assert [(finding.statements, finding.explanation) for finding in found.findings] == [
        ((4,), "A is b."),
        ((7,), "Ada Lovelace is here."),
    ]


@pytest.mark.parametrize(
    ("question", "history", "expected"),
    [
        ("Where was she born?", ["Who was Ada Lovelace? Ada Lovelace wrote programs."], "Where was Ada Lovelace born?"),
        ("Where was she born?", [], "Where was she born?"),
        ("Where is Basel?", ["Who was Ada Lovelace?"], "Where is Basel?"),
    ],
)
def test_a_pronoun_becomes_the_last_name_of_the_history(question: str, history: list[str], expected: str) -> None:
    assert answer_step("rewrite", {"question": question, "history": history}) == Rewriting(expected, ())


def test_the_keys_are_names_and_other_content_words() -> None:
    assert answer_step("keywords", {"question": "Who taught Ada Lovelace mathematics?"}) == Keys(
        ("taught", "mathematics"), ("Ada Lovelace",)
    )


def test_two_shared_content_words_are_an_entailment() -> None:
    passages = ["[3] The engine was built in 1840.", "[5] An engine is loud."]
    found = answer_step("filter", {"question": "When was the engine built?", "hypothesis": "-", "passages": passages})
    assert isinstance(found, Judgements)
    assert [(one.passage, one.label) for one in found.judgements] == [(3, "entailment"), (5, "neutral")]


@pytest.mark.parametrize(
    ("question", "structure"),
    [
        ("How do I start the pump?", "algorithm"),
        ("Give an overview of the themes.", "catalogue"),
        ("How many pumps were sold?", "table"),
        ("How are A and B connected?", "graph"),
        ("When was it built?", "chunk"),
        ("如何启动水泵？", "algorithm"),
    ],
)
def test_the_route_goes_by_keywords(question: str, structure: str) -> None:
    found = answer_step("route", {"question": question, "core_content": []})
    assert isinstance(found, Routed)
    assert found.structure == structure


def test_sentences_with_figures_become_elements_with_the_figure_as_written() -> None:
    fields = {"question": "?", "structure": "table", "title": "Sales"}
    found = answer_step("structurize", {**fields, "sentences": "[2] It sold $1,308,463.\n[3] No more."})
    assert isinstance(found, Cells)
    assert [(one.row, one.cell, one.sentence) for one in found.cells] == [("Sales", "1,308,463", 2)]
    without = answer_step("structurize", {**fields, "sentences": "[2] It sold well.\n[3] No more."})
    assert isinstance(without, Cells)
    assert [(one.cell, one.sentence) for one in without.cells] == [("It sold well.", 2)]


def test_and_divides_a_question() -> None:
    assert answer_step("decompose", {"question": "Who built it and when was it sold?", "knowledge": []}) == Parts(
        ("Who built it?", "when was it sold?")
    )
    assert answer_step("decompose", {"question": "Who built it?", "knowledge": []}) == Parts(("Who built it?",))


def test_the_answer_is_the_sentence_that_shares_most_with_its_marker() -> None:
    evidence = ["[1] Notes: An engine is loud. It is old.", "[2] Notes: The engine was built in 1840."]
    found = answer_step("answer", {"question": "When was the engine built?", "found": [], "evidence": evidence})
    assert found == Answer("The engine was built in 1840 [2].", ("1840",), answerable=True)
    nothing = answer_step("answer", {"question": "Who sold the ships?", "found": [], "evidence": evidence})
    assert nothing == Answer("", (), answerable=False)


@pytest.mark.parametrize(("question", "about"), [("Which themes recur?", "whole"), ("Who built the engine?", "part")])
def test_the_scope_goes_by_keywords(question: str, about: str) -> None:
    assert answer_step("choose", {"question": question, "documents": []}) == Scope("by its words", about, 0.9)


def test_an_unknown_step_and_a_missing_field_have_no_rule() -> None:
    with pytest.raises(NoRuleError, match=r"'judge'; the steps are extract"):
        answer_step("judge", {})
    with pytest.raises(NoRuleError, match="no field 'statements'; it has name"):
        answer_step("summarize", {"name": "A"})
    assert len(RULES) == 25
