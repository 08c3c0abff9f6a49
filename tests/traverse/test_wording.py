"""Which words ask for relations, in which order, and which relation do they mean?"""

import pytest

from prompts.text.thesaurus import SYNONYM, likeness
from prompts.text.words import stem
from prompts.traverse import Hop
from tasks.traverse.cues import Cue, cues_around
from tasks.traverse.draft import measure_of
from tasks.traverse.meta_path import step_score


def order(question: str, name: str) -> list[str]:
    start = question.find(name)
    return [cue.key for cue in cues_around(question, start, start + len(name)).orders()[0]]


@pytest.mark.parametrize(
    ("question", "keys"),
    [
        ("what is the gender of Ada's kid ?", ["kid", "gender"]),
        ("what is the gender of the kid of Ada ?", ["kid", "gender"]),
        ("where did Ada 's father die ?", ["father", "die", "where"]),
        ("who is the grandmother of Ada ?", ["mother", "parent", "who"]),
        ("who is Ada's mother-in-law?", ["spous", "mother", "who"]),
        ("what does Ada 's kid do for a living ?", ["kid", "occup"]),
        ("is Ada's kid a man or a woman ?", ["kid", "man_or_woman"]),
        ("what is the name of the other half of Ada ?", ["other_half"]),
        ("how many kids does Ada have?", ["kid"]),
        ("who wrote the book Ada?", ["wrote", "who"]),
        ("what does Ada own?", ["own"]),
        ("who painted Ada's own house?", ["hous", "paint", "who"]),
        ("Ada的父亲的职业是什么？", ["父亲", "职业"]),
    ],
)
def test_cues_lead_away_from_the_name(question: str, keys: list[str]) -> None:
    assert order(question, "Ada") == keys


@pytest.mark.parametrize(
    ("one", "two"),
    [("kid", "children"), ("wife", "spouse"), ("job", "profession"), ("born", "birth"), ("妻子", "spouse")],
)
def test_words_of_one_meaning_are_alike(one: str, two: str) -> None:
    assert likeness(stem(one), stem(two)) == SYNONYM


@pytest.mark.parametrize(("one", "two"), [("author", "authored"), ("founder", "founded"), ("direct", "director")])
def test_words_of_one_family_are_alike(one: str, two: str) -> None:
    assert likeness(stem(one), stem(two)) > 0.5


@pytest.mark.parametrize(("one", "two"), [("kid", "spouse"), ("birth", "death"), ("gender", "profession")])
def test_words_of_two_meanings_are_not(one: str, two: str) -> None:
    assert likeness(stem(one), stem(two)) == 0


def test_a_relation_is_read_backwards_by_the_opposite_word_alone() -> None:
    back = Hop(relation="children", inverse=True)
    assert step_score(back, (Cue("parent", "parent"),))[0] > 0.5
    assert step_score(back, (Cue("child", "child"),)) == (0.0, None)


@pytest.mark.parametrize(
    ("word", "relation", "inverse"),
    [
        ("daughter", "daughter of", True),
        ("kid", "daughter_of", True),
        ("father", "daughter of", False),
        ("mother", "mother", False),
        ("taught", "taught", True),
        ("teacher", "taught", True),
        ("teach", "taught", False),
        ("pupil", "taught", False),
        ("teacher", "taught by", False),
        ("husband", "wife", True),
    ],
)
def test_a_relation_names_its_target_or_its_source(word: str, relation: str, inverse: bool) -> None:
    hop = Hop(relation=relation, inverse=inverse)
    assert step_score(hop, (Cue(stem(word), word),))[0] > 0.5


@pytest.mark.parametrize(
    ("word", "relation", "inverse"),
    [
        ("mother", "daughter of", True),
        ("daughter", "daughter of", False),
        ("son", "daughter of", True),
        ("mother", "father", False),
        ("teacher", "taught", False),
    ],
)
def test_a_relation_is_not_walked_to_the_wrong_end(word: str, relation: str, inverse: bool) -> None:
    hop = Hop(relation=relation, inverse=inverse)
    assert step_score(hop, (Cue(stem(word), word),)) == (0.0, None)


def test_the_cause_and_the_place_of_death_are_told_apart() -> None:
    how = (Cue("die", "die"), Cue("how", "how", asking=True))
    where = (Cue("die", "die"), Cue("where", "where", asking=True))
    cause, place = Hop(relation="cause_of_death"), Hop(relation="place_of_death")
    assert step_score(cause, how)[0] > step_score(place, how)[0]
    assert step_score(place, where)[0] > step_score(cause, where)[0]


def test_of_a_dotted_relation_the_last_part_counts() -> None:
    cue = (Cue("spous", "spouse"),)
    told, other = Hop(relation="people.person.spouse"), Hop(relation="people.spouse.gender")
    assert step_score(told, cue)[0] > 0.5
    assert step_score(other, cue) == (0.0, None)


@pytest.mark.parametrize(
    ("question", "words", "direction"),
    [
        ("Who has more children,      or     ?", "children", "max"),
        ("Which of   's children has the fewest books?", "books", "min"),
        ("Who is older,     or     ?", "birth date", "min"),
        ("Which of them died last?", "died date", "max"),
        ("Which city has the largest population?", "population", "max"),
    ],
)
def test_what_a_question_compares_by(question: str, words: str, direction: str) -> None:
    measure = measure_of(question)
    assert measure is not None
    assert (measure.words, measure.direction) == (words, direction)


def test_a_plain_question_compares_nothing() -> None:
    assert measure_of("Who are the children of     ?") is None
