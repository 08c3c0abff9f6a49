"""Is what a model cites compared with what the evidence says?"""

import pytest

from prompts.answer import AnswerWritten, checked, read_written
from prompts.language.question import ask
from prompts.reading.claims import Reading
from prompts.reading.evidence import Evidence
from prompts.reading.support import supports, unshown_figures, value_shown

QUESTION = "Who designed the Orla Bridge, and what did it cost?"
TEXTS = (
    "The Orla Bridge was designed by Tomas Reyd of Velin.",
    "Its building cost 1,308,463 crowns, paid by the province.",
    "The ferry of Port Sarn ran until 1930.",
)
OFFERED = {number: Evidence(number, "d", "Orla Bridge", text) for number, text in enumerate(TEXTS)}


def read(answer: str, *values: str) -> Reading:
    """What is left of an answer that a model has written from the three sentences."""
    asked = ask(QUESTION)
    written = AnswerWritten(answer=answer, values=list(values), answerable=True)
    return checked(read_written(written, set(OFFERED), asked), OFFERED, asked)


def test_what_the_evidence_says_stays_as_it_is() -> None:
    reading = read("Tomas Reyd designed it [0]. It cost 1,308,463 crowns [1].", "Tomas Reyd", "1,308,463 crowns")
    assert [said.evidence for said in reading.claims] == [(0,), (1,)]
    assert (reading.values, reading.support) == (("Tomas Reyd", "1,308,463 crowns"), "none")


def test_the_wrong_passage_is_replaced_by_the_one_that_says_so() -> None:
    reading = read("The Orla Bridge was designed by Tomas Reyd [2].", "Tomas Reyd")
    assert [said.evidence for said in reading.claims] == [(0,)]


def test_a_citation_of_several_keeps_those_that_show_it() -> None:
    reading = read("The Orla Bridge was designed by Tomas Reyd [0][2].")
    assert [said.evidence for said in reading.claims] == [(0,)]
    both = read("Tomas Reyd of Velin designed it, for 1,308,463 crowns [0, 1].")
    assert [said.evidence for said in both.claims] == [(0, 1)]


@pytest.mark.parametrize("figure", ["1,308,643", "138463", "1.3 million"])
def test_a_changed_figure_is_taken_out_and_never_a_value(figure: str) -> None:
    reading = read(f"Tomas Reyd designed it [0]. It cost {figure} crowns [1].", "Tomas Reyd", f"{figure} crowns")
    assert [said.text for said in reading.claims] == ["Tomas Reyd designed it"]
    assert (reading.values, reading.support) == (("Tomas Reyd",), "partial")


def test_a_figure_alone_that_nobody_wrote_is_no_answer() -> None:
    assert read("It cost 99 crowns [1].", "99").support == "abstained"


def test_a_sentence_without_support_is_flagged() -> None:
    reading = read("Tomas Reyd designed it [0]. Painters admired her husband's garden [2].")
    assert [said.evidence for said in reading.claims] == [(0,), ()]
    assert reading.support == "partial"


def test_a_value_that_no_evidence_has_is_left_out() -> None:
    reading = read("Tomas Reyd designed it [0].", "Tomas Reyd", "Ana Korb")
    assert (reading.values, reading.support) == (("Tomas Reyd",), "partial")


@pytest.mark.parametrize(
    ("value", "shown"),
    [("yes", True), ("否", True), ("1,308,463", True), ("1,308", False), ("雷德", True),
     ("Orla Bridge", True), ("Korb", False)],
)  # fmt: skip
def test_values_stand_in_the_evidence(value: str, shown: bool) -> None:
    assert value_shown(value, "\n".join(TEXTS), QUESTION) is shown


def test_across_languages_figures_and_latin_names_count() -> None:
    cost = [OFFERED[1]]
    assert supports("造价为1,308,463克朗。", cost, "造价是多少?")
    assert not supports("造价为1,308,643克朗。", cost, "造价是多少?")
    assert not supports("由Ana Korb设计,造价为1,308,463克朗。", cost, "造价是多少?")


def test_thousands_may_be_written_otherwise_but_no_digit() -> None:
    assert unshown_figures("1308463 in 1930", "1,308,463, 1930") == []
    assert unshown_figures("138463", "1,308,463") == ["138463"]
    reading = read("It cost 1308463 crowns [1].", "1308463")
    assert (reading.claims[0].text, reading.values) == ("It cost 1,308,463 crowns", ("1,308,463",))
