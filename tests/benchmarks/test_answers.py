"""The measures of answers: when a text holds a gold answer, and which questions are asked."""

import pytest

from benchmarks.answers import holds, known_here
from benchmarks.sets import Question
from storage.answer_records import Passage


@pytest.mark.parametrize(
    ("text", "answers", "there"),
    [
        ("It was designed by Tomas Reyd.", ["TOMAS REYD"], True),
        ("The Orla Bridge stands.", ["Orla Bridge", "x"], True),
        ("He came to a town.", ["the town"], True),
        ("Reydson", ["Reyd"], False),
        ("Ada | Korb", ["ada körb"], True),
        ("15", ["1.5"], False),
        ("anything", [], False),
        ("由 东华实业 开发。", ["东华实业"], True),
        ("共１２座", ["12座"], True),
        ("", ["Reyd"], False),
        ("Reyd", [""], False),
    ],
)
def test_a_text_holds_an_answer_whatever_its_case_and_marks(text: str, answers: list[str], there: bool) -> None:
    assert holds(text, answers) is there


@pytest.mark.parametrize(("name", "known"), [("Tomas Reyd", True), ("Ana Korb", False)])
def test_a_foreign_question_is_left_out_where_its_answer_is_known(name: str, known: bool) -> None:
    passage = Passage(document="d", title="Tomas Reyd", chunk="chk_d", score=1.0, text="He was born in Velin.")
    question = Question(text=f"Where was {name} born?", gold=(), answers=("Velin",))
    assert known_here(question, [passage]) is known
