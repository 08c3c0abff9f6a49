"""When is an answer without any entity not believed?"""

import pytest

from prompts.offline.extract import overlooked

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
    names = overlooked("Orla Bridge", passage)
    assert (names == []) is believed
    assert all(name in passage and name != "Orla Bridge" for name in names)
