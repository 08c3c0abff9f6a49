"""When is an answer without any entity not believed?"""

import pytest

from prompts.offline.extract import LEAST_SIGNS, LEAST_WORDS, overlooked

NAMING = "The engineer Tomas Reyd met Ana Korb at the Orla Bridge in Velin. "
PLAIN = "it rained for days, and nobody went out, so that the streets were empty and the wells were full again. "
CHINESE = "《海岸》是许美兰写的一本书，她在海岸水文研究所工作。研究所位于奥雷林湾，与盐泽镇相邻。"


@pytest.mark.parametrize(
    ("passage", "believed"),
    [
        (NAMING, True),  # short: a heading, a caption
        (NAMING + PLAIN * 2, False),
        (PLAIN * 4, True),
        ("Velin. " + PLAIN * 4, True),  # one name alone may be a wrong guess
        (CHINESE, True),
        (CHINESE * 3, False),
    ],
)
def test_a_long_passage_with_names_is_not_believed_to_have_none(passage: str, believed: bool) -> None:
    assert (overlooked("", passage) == []) is believed


def test_the_names_that_are_told_stand_in_the_passage_and_are_not_its_title() -> None:
    names = overlooked("Orla Bridge", NAMING + PLAIN * 2)
    assert "Orla Bridge" not in names
    assert {"Tomas Reyd", "Ana Korb"} <= set(names)
    assert all(name in NAMING for name in names)


def test_length_is_counted_in_words_or_chinese_signs() -> None:
    assert len(f"{NAMING}{PLAIN}".split()) < LEAST_WORDS <= len(f"{NAMING}{PLAIN * 2}".split())
    assert len(CHINESE) < LEAST_SIGNS <= len(CHINESE * 3)
