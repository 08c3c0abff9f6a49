"""Does a quote of a long sentence hold what is said, and stand in the text as it is?"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prompts.reading.excerpt import LONGEST, excerpt

BEFORE = "The bridge, which the province had wanted for many years, and for which the town had saved, "
LONG = f"{BEFORE}was designed by Tomas Reyd of Velin, who had built three others; {BEFORE * 2}and it opened in 1931."
LONG_ZH = "该桥由当地居民捐款修建,历时多年,工程屡次中断," * 8 + "由雷德设计,于1931年通车。"


@pytest.mark.parametrize(
    ("text", "wanted"), [(LONG, "Tomas Reyd"), (LONG, "1931"), (LONG_ZH, "雷德"), ("x" * 300 + " Reyd", "Reyd")]
)
def test_the_stretch_that_is_wanted_is_quoted(text: str, wanted: str) -> None:
    start, end = excerpt(text, [wanted, "bridge"])
    assert wanted in text[start:end]
    assert 0 < end - start <= LONGEST


def test_a_short_sentence_is_quoted_whole() -> None:
    assert excerpt("It opened in 1931.", ["1931"]) == (0, 18)


def test_a_cut_stands_at_a_clause() -> None:
    start, end = excerpt(LONG, ["Tomas Reyd"])
    assert start == 0 or LONG[start - 2] in ",;"
    assert LONG[end - 1] in ",;."


@given(st.text(min_size=1, max_size=700), st.lists(st.text(max_size=20), max_size=4))
def test_a_span_lies_in_its_text_and_is_never_too_long(text: str, wanted: list[str]) -> None:
    start, end = excerpt(text, wanted)
    assert 0 <= start <= end <= len(text)
    assert end - start <= LONGEST
