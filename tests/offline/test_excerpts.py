"""Without a model an answer is the excerpts that speak most of a question."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prompts.offline.excerpts import (
    FIRST_ROOM,
    ExcerptAnswer,
    OfferedPassage,
    best_excerpts,
    shown,
)

HARBOUR = """# Harbour rules

Boats over twelve metres report to the harbour master. The fee is 14 crowns a night.

## Mooring a boat

To moor a boat at the quay, do this in order:

1. Call the harbour master on channel 9.
2. Put out two fenders.
3. Tie the bow line first.

## Who may enter

| berth | length | price |
| --- | --- | --- |
| north pier | 12 m | 14 |
| south pier | 20 m | 31 |
"""
CHINESE = "港口建于1911年。港口由陈明设计,耗资三百万元。渔船停靠在北码头。港口每天早上六点开放。"


def ask(question: str, *texts: str, title: str = "Guide") -> ExcerptAnswer:
    """Return the excerpts by words alone, all equally rare."""
    passages = [OfferedPassage(number, title, "", text) for number, text in enumerate(texts, 1)]
    return best_excerpts(question, passages, lambda _: 2.0)


@pytest.mark.parametrize(
    ("question", "text", "best", "heading"),
    [
        ("What is the fee a night?", HARBOUR, "The fee is 14 crowns a night.", "Harbour rules"),
        (
            "How do I moor a boat?",
            HARBOUR,
            "To moor a boat at the quay, do this in order:",
            "Mooring a boat",
        ),
        ("Which price has the south pier?", HARBOUR, "| south pier | 20 m | 31 |", "Who may enter"),
        ("港口是谁设计的?", CHINESE, "港口由陈明设计,耗资三百万元。", ""),
    ],
)
def test_the_best_excerpt_begins_with_the_best_unit(
    question: str, text: str, best: str, heading: str
) -> None:
    first = ask(question, text).excerpts[0]
    assert first.text.startswith(best)
    assert text[first.start : first.best_end] == best
    assert first.heading == heading


def test_an_excerpt_reads_on_in_its_section_while_there_is_room() -> None:
    first = ask("How do I moor a boat?", HARBOUR).excerpts[0]
    assert first.text.endswith("3. Tie the bow line first.")
    long = "To moor a boat, do this. " + "Then wait for the tide to turn again. " * 40
    first = ask("How do I moor a boat?", long).excerpts[0]
    assert FIRST_ROOM - 60 < first.end - first.start <= FIRST_ROOM


def test_a_table_row_comes_with_the_names_of_its_columns() -> None:
    answer = ask("Which price has the south pier?", HARBOUR)
    assert answer.excerpts[0].header_text == "| berth | length | price |"
    quoted = "> | berth | length | price |\n> | --- | --- | --- |\n> | south pier | 20 m | 31 |"
    assert quoted in shown(answer).text


def test_excerpts_are_numbered_from_the_best() -> None:
    answer = ask(
        "Which oil did the lamp burn?", "The lamp is red.", "The lamp burned oil of herring."
    )
    assert [excerpt.passage.number for excerpt in answer.excerpts] == [2, 1]
    text = shown(answer)
    assert text.text.index("burned oil of herring. [1]") < text.text.index("The lamp is red. [2]")
    assert text.quotes[1] == (2, 0, len("The lamp burned oil of herring."))


def test_a_further_excerpt_says_something_new() -> None:
    texts = ["The old lamp burned oil.", "Oil burned in the old lamp.", "Ada Korb paid for oil."]
    passages = [OfferedPassage(number, "", "", text) for number, text in enumerate(texts, 1)]
    question = "Which oil did the lamp burn, and who paid for oil?"
    answer = best_excerpts(question, passages, lambda _: 2.0, lambda _, read: [0.5] * len(read))
    assert [excerpt.text for excerpt in answer.excerpts[:2]] == [texts[0], texts[2]]


def test_meaning_counts_beside_words() -> None:
    text = "The boat needs oil. Casting off takes an hour."
    passages = [OfferedPassage(1, "The boat", "Guide > Leaving", text)]
    read: list[str] = []

    def similarity(_: str, texts: Sequence[str]) -> list[float]:
        read.extend(texts)
        return [0.9 if "Casting off" in text else 0.1 for text in texts]

    first, second = (
        best_excerpts("departure of the boat", passages, lambda _: 2.0, one).excerpts[0].text
        for one in (None, similarity)
    )
    assert first.startswith("The boat")
    assert second.startswith("Casting off")
    assert "Leaving: Casting off takes an hour." in read


@pytest.mark.parametrize(("cosine", "found"), [(0.1, False), (0.6, True)])
def test_without_a_shared_word_only_what_is_near_is_shown(cosine: float, found: bool) -> None:
    passages = [OfferedPassage(1, "", "", "The first boat of May carries salt.")]
    answer = best_excerpts(
        "moon walk", passages, lambda _: 2.0, lambda _, texts: [cosine] * len(texts)
    )
    assert bool(answer.excerpts) is found


def test_the_label_is_in_the_language_of_the_question() -> None:
    english, chinese = (
        ask("Is the lamp red?", "The lamp is red."),
        ask("灯塔多高?", "灯塔四十米高。"),
    )
    assert shown(english).text.startswith("From the documents:\n")
    assert shown(chinese).text == "文档摘录：\n> 灯塔四十米高。 [1]"


def test_nothing_found_is_no_excerpt() -> None:
    answer = ask("What is this?")
    assert answer == ExcerptAnswer((), "From the documents:")
    assert shown(answer).text == ""


LINES = """# The pier
The pier is long. It is old.
Boats:
- a boat
1. first the pier
| pier | boat |
| --- | --- |
| old | new |

```
pier --boat
码头很长。船是新的。
**The pier. The boat.**
a | b"""


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.sampled_from(LINES.split("\n")), max_size=14),
    st.sampled_from(["How old is the pier?", "Which boats are there?", "码头多长?"]),
)
def test_every_excerpt_is_a_span_of_its_passage(lines: list[str], question: str) -> None:
    text = "\n".join(lines)
    for excerpt in ask(question, text, text).excerpts:
        assert text[excerpt.start : excerpt.end] == excerpt.text != ""
        assert excerpt.start < excerpt.best_end <= excerpt.end
