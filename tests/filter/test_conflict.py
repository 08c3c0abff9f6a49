"""Are contradictions seen where there are some, blamed on the worse supported side, and seen nowhere else?"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prompts.reading.differ import agree, denies, put_for
from tests.filter.passages import conflicts_of, relevance_of

WINNER = relevance_of("Who won the Orla Regatta in 2018?")
TRUE = (
    "Mara Quill won the Orla Regatta in 2018 by two lengths.",
    "In 2018 the Orla Regatta was decided early: Mara Quill led from the start.",
    "After a storm, Mara Quill took the title of the Orla Regatta of 2018.",
)
WRONG = "Ivo Brandt won the Orla Regatta in 2018 by two lengths."


def test_of_a_copy_with_another_value_the_side_with_more_voices_is_right() -> None:
    (found,) = conflicts_of(WINNER, *TRUE, WRONG)
    assert (found.one, found.says, found.other, found.other_says) == (0, "Mara Quill", 3, "Ivo Brandt")
    assert (found.why, found.contradicted) == ("copy", 3)


def test_it_does_not_matter_which_side_comes_first() -> None:
    (found,) = conflicts_of(WINNER, WRONG, *TRUE)
    assert (found.one, found.contradicted) == (0, 0)


def test_where_both_sides_are_even_nobody_is_blamed() -> None:
    (found,) = conflicts_of(WINNER, TRUE[0], WRONG)
    assert found.contradicted is None


def test_what_is_known_to_hold_is_right_against_any_number() -> None:
    copies = [TRUE[0].replace("Mara Quill", "Ivo Brandt"), TRUE[1].replace("Mara Quill", "Ivo Brandt")]
    found = conflicts_of(WINNER, TRUE[0], *copies, trusted=(0,))
    assert {one.contradicted for one in found} == {1}


def test_a_text_speaks_against_itself_where_a_detail_of_its_own_belongs_to_the_rival() -> None:
    text = "{0} won the Orla Regatta in 2018. It was Quill's first victory on the lake."
    (found,) = conflicts_of(WINNER, text.format("Mara Quill"), text.format("Ivo Brandt"))
    assert found.contradicted == 1


def test_a_negation_of_the_same_is_a_contradiction() -> None:
    judge = relevance_of("Is the Orla Bridge open to lorries?", "Orla Bridge")
    (found,) = conflicts_of(judge, "The Orla Bridge is open to lorries.", "The Orla Bridge is not open to lorries.")
    assert (found.why, found.contradicted) == ("denial", None)


def test_one_that_answers_otherwise_than_most_contradicts_them() -> None:
    other = "The Orla Regatta in 2018 was won by Ivo Brandt."
    (found,) = conflicts_of(WINNER, *TRUE, other, single=True)
    assert (found.why, found.other_says, found.contradicted) == ("value", "Ivo Brandt", 3)
    assert conflicts_of(WINNER, *TRUE, other, single=False) == []
    assert conflicts_of(WINNER, *TRUE, other.replace("2018", "2019"), single=True) == []


@pytest.mark.parametrize(
    ("question", "texts", "titles"),
    [
        # Two things of which the same is said in the same words are two things.
        ("When was Orla Bridge opened?", ("It was opened in June 1931.", "It was opened in May 1907."),
         ("Orla", "Kestrel")),
        ("Where is Orla?", ("Orla is a town in Velin.", "Kestrel is a town in Velin."), ("Orla", "Kestrel")),
        # A question with several answers is not contradicted by another one.
        ("Which bridges did Tomas Reyd design?", ("Orla Bridge was designed by Tomas Reyd in steel.",
         "Kestrel Bridge was designed by Tomas Reyd in steel."), ("", "")),
        # Another year and another winner.
        ("Who won the Orla Regatta?", ("Mara Quill won the Orla Regatta in 2018 by two lengths.",
         "Ivo Brandt won the Orla Regatta in 2016 by two lengths."), ("", "")),
        # The same, written otherwise.
        ("When was Orla Bridge opened?", ("Orla Bridge was opened on 15 May 2012 by the mayor.",
         "Orla Bridge was opened on May 15, 2012 by the mayor."), ("", "")),
        ("Who won the Orla Regatta?", ("The United States won the Orla Regatta by two lengths.",
         "The U.S. won the Orla Regatta by two lengths."), ("", "")),
        # Other words that say the same are no values.
        ("Who won the Orla Regatta?", ("Mara Quill won the long Orla Regatta by two lengths.",
         "Mara Quill won the hard Orla Regatta by two lengths."), ("", "")),
    ],
)  # fmt: skip
def test_what_only_reads_differently_is_no_conflict(
    question: str, texts: tuple[str, ...], titles: tuple[str, ...]
) -> None:
    assert conflicts_of(relevance_of(question), *texts, titles=titles) == []


def test_a_date_is_one_value_however_it_is_written() -> None:
    put = put_for(
        "It was released on 21 July 2017 all over the world.", "It was released on July 1, 2007 all over the world."
    )
    assert put is not None
    assert (put.one, put.other) == ("21 July 2017", "July 1, 2007")


def test_a_chinese_copy_with_another_name_is_seen() -> None:
    judge = relevance_of("奥拉桥的设计者是谁？", "奥拉桥")
    (found,) = conflicts_of(judge, "奥拉桥的设计者是托马斯·雷德。", "奥拉桥的设计者是安娜·科尔布。")
    assert {"托马斯", "安娜"} <= {part for said in (found.says, found.other_says) for part in said.split("·")}


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("May 2012", "15 May 2012", True), ("Murray", "Andy Murray", True), ("1,000", "1000", True),
        ("15 May 2012", "16 May 2012", False), ("Norway", "Sweden", False), ("$1.65 billion", "$10.65 billion", False),
    ],
)  # fmt: skip
def test_values_agree_where_they_can_be_the_same(one: str, other: str, same: bool) -> None:
    assert agree(one, other) == agree(other, one) == same


@pytest.mark.parametrize(
    ("one", "other", "denied"),
    [
        ("A deer is jumping over a fence", "A deer isn't jumping over the fence", True),
        ("There is no man playing a guitar on stage", "A man is playing a guitar on stage", True),
        ("A man is playing a guitar on stage", "A man is playing a guitar on stage", False),
        ("Nobody is not playing a guitar on stage", "A man is playing a guitar on stage", False),
        ("A man is not riding a horse by a creek", "A man is riding a horse", False),
        ("这座桥没有开放", "这座桥开放", False),  # too short to be sure
    ],
)
def test_a_sentence_denies_another_that_says_the_same(one: str, other: str, denied: bool) -> None:
    assert denies(one, other) == denies(other, one) == denied


WORDS = st.lists(
    st.sampled_from("Orla Quill Brandt won lost the regatta in 2018 2019 by two lengths not".split()), max_size=12
)


@given(WORDS, WORDS)
def test_a_difference_is_the_same_from_both_ends(one: list[str], other: list[str]) -> None:
    forth, back = put_for(" ".join(one), " ".join(other)), put_for(" ".join(other), " ".join(one))
    assert (forth is None) == (back is None)
    if forth is not None and back is not None:
        assert not agree(forth.one, forth.other)
