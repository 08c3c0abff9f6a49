"""By which keys is the graph searched: names and themes, in English and Chinese, few and short, in one small call?"""

from pathlib import Path

import dspy
import pytest
from dspy.utils import DummyLM

from prompts.engine.models import Models
from prompts.engine.wire import conversation
from prompts.keywords import MAX_KEYS, Keys, Keywords, keywords_offline
from tasks.keywords import find_keys

GOLDEN = Path(__file__).parent / "golden" / "prompt_FindKeys.txt"
QUESTION = "Who taught the designer of the Orla Bridge?"


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
def test_offline_names_are_low_and_the_other_words_high(question: str, low: list[str], high: list[str]) -> None:
    assert keywords_offline(question) == Keys(low=low, high=high)


def scripted(low: list[str], high: list[str]) -> Keywords:
    step = Keywords(Models.offline())
    step.lm = DummyLM([{"found": {"low": low, "high": high}}], adapter=dspy.JSONAdapter())
    return step


async def test_what_a_model_writes_is_cut_to_few_short_keys() -> None:
    found = await find_keys(QUESTION, scripted(["A", "A", "x" * 80, *"BCDEFG"], [" design \n of bridges "]))
    assert found.low == ["A", "B", "C", "D", "E"][:MAX_KEYS]
    assert found.high == ["design of bridges"]


async def test_after_a_rewriting_no_model_is_asked() -> None:
    assert await find_keys(QUESTION, scripted(["never"], []), rewritten=True) == keywords_offline(QUESTION)


def test_the_prompt_reads_like_the_golden_one() -> None:
    messages = conversation(Keywords.step, Keywords.task, Keywords.wire, (), {"question": QUESTION})
    rendered = "\n".join(f"--- {message.role}\n{message.content}" for message in messages) + "\n"
    assert rendered == GOLDEN.read_text(encoding="utf-8")
