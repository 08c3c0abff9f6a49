"""Two questions ask the same, or differ in a part that can be named."""

import pytest

from tasks.question_similarity import ComparedQuestion, alike, differs, keys, taken_apart
from tasks.traverse.entity_names import NamedEntity

NAMES = ("Ada Moss", "Ada Voss", "Kell Dam", "Kell_Dam")


def apart(text: str) -> ComparedQuestion:
    """A question in which these names are known."""
    found = [
        NamedEntity(name, text.index(name), text.index(name) + len(name), (name,)) for name in NAMES if name in text
    ]
    return taken_apart(text, found)


@pytest.mark.parametrize(
    ("one", "two", "part"),
    [
        ("Where was Ada Moss born?", "What is the birthplace of Ada Moss?", ""),
        ("What is the gender of Ada Moss's kid?", "the sex of the child of Ada Moss?", ""),
        ("How long is Kell Dam?", "What is the length of Kell Dam?", ""),
        ("Who built Kell Dam?", "Kell Dam was built by whom?", ""),
        ("Where was Ada Moss born?", "Where was Ada Voss born?", "names"),
        ("How many visited Kell Dam in 2019?", "How many visited Kell Dam in 2020?", "figures"),
        ("Who won the third race at Kell Dam?", "Who won the fourth race at Kell Dam?", "figures"),
        ("How much rain fell at Kell Dam in May?", "How much rain fell at Kell Dam in June?", "figures"),
        ("Where did Ada Moss die?", "When did Ada Moss die?", "kind"),
        ("When was Ada Moss born?", "When did Ada Moss die?", "relation"),
        ("Who is Ada Moss's mother?", "Who is Ada Moss's father?", "relation"),
        ("Who is the child of Ada Moss?", "Who is the child of the child of Ada Moss?", "relation"),
        ("Who is the teacher of Ada Moss's child?", "Who is the child of Ada Moss's teacher?", "relation"),
        ("Who is the owner of the bakery?", "Who is the owner of the foundry?", "relation"),
        ("松林桥是谁设计的?", "设计松林桥的人是谁?", ""),
        ("松林桥是谁设计的?", "松杉桥是谁设计的?", "relation"),
        ("松林桥是谁设计的?", "松林桥是谁拆除的?", "relation"),
        ("2019年松林桥有多少游客?", "2020年松林桥有多少游客?", "figures"),
        ("松林桥是谁设计的?", "Who designed the bridge?", "language"),
    ],
)
def test_what_differs_is_told(one: str, two: str, part: str) -> None:
    assert differs(apart(one), apart(two)) is bool(part)
    assert differs(apart(two), apart(one)) is bool(part), "whichever comes first"


def test_likeness_lies_between_nothing_and_the_same() -> None:
    one = apart("Who built Kell Dam?")
    assert alike(one, one) == 1.0
    assert alike(one, apart("Where do herons sleep?")) == 0.0
    assert 0.5 < alike(apart("松林桥是谁设计的?"), apart("设计松林桥的工程师是谁?")) < 1


def test_questions_that_ask_the_same_share_a_key() -> None:
    assert keys(apart("Where was Ada Moss born?")) == keys(apart("What is the birthplace of Ada Moss?"))
    assert set(keys(apart("Ada Moss?"))).isdisjoint(keys(apart("Ada Voss?")))
    assert set(keys(apart("谁设计了松林桥?"))) & set(keys(apart("松林桥的设计者是谁?")))
    assert keys(apart("?!")) == ()
