"""Keys: a model's stand, in whatever words; at low effort the question's own words are taken."""

import pytest

from prompts.engine.effort import Effort
from prompts.keywords import MAX_KEYS, Keywords
from prompts.offline.keywords import keywords_offline
from tasks.rewrite import find_keys
from tests.query.steps import golden, rendered, scripted, sent, spared

QUESTION = "Who taught the designer of the Orla Bridge?"


@pytest.mark.parametrize(
    ("question", "high", "low"),
    [
        (QUESTION, ["teacher and pupil", "training of engineers"], ["Orla Bridge", "Orla Railway Bridge"]),
        (QUESTION, [], ["the bridge at Orla, opened in 1931"]),
        ("人工智能如何影响现代教育？", ["技术对教学的影响"], ["AI", "人工智能"]),
        ("Is it bad for the lungs?", ["effects on breathing", "影响"], []),
    ],
)
async def test_keys_in_other_words_are_taken_whole(question: str, high: list[str], low: list[str]) -> None:
    found = await find_keys(question, scripted(Keywords, {"high": high, "low": low}))
    assert (found.high, found.low) == (high, low)


async def test_keys_are_distinct_and_bounded() -> None:
    low = ["A", "A", "x" * 200, *"BCDEFGHIJ"]
    found = await find_keys(QUESTION, scripted(Keywords, {"high": [" design \n of bridges "], "low": low}))
    assert (found.low, found.high) == ([*"ABCDEFGHIJ"][:MAX_KEYS], ["design of bridges"])


@pytest.mark.parametrize(("effort", "asked"), [("low", 0), ("medium", 1), ("high", 1)])
async def test_a_model_is_asked_by_effort(effort: Effort, asked: int) -> None:
    made = scripted(Keywords, {"high": ["teacher"], "low": []}, effort=effort)
    found = await find_keys(QUESTION, made)
    assert (len(sent(made)), "keywords" in spared(made)) == (asked, not asked)
    assert (found.low, found.high) == (([], ["teacher"]) if asked else keywords_offline(QUESTION))


@pytest.mark.parametrize(
    ("question", "low", "high"),
    [
        (QUESTION, ["Orla Bridge"], ["taught", "designer"]),
        ('What did "the long walk" cost in 1987?', ["the long walk", "1987"], ["cost"]),
        ("How do tides change small harbours?", [], ["tides change small harbours"]),
        ("《长路》的作者是谁？", ["长路"], ["作者"]),
        ("人工智能如何影响现代教育？", [], ["人工智能", "影响", "教育"]),
    ],
)
def test_by_rules_names_are_low_and_the_other_words_high(question: str, low: list[str], high: list[str]) -> None:
    assert keywords_offline(question) == (low, high)


def test_the_prompt_reads_like_the_golden_one() -> None:
    assert rendered(Keywords, {"question": QUESTION}) == golden(Keywords)
