"""Without a model: the best excerpts, and the parts of a question."""

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prompts.offline.answer import BEST, ExcerptAnswer, OfferedPassage, Similarity, best_excerpts, shown
from prompts.offline.units import quotables, section_around
from prompts.text.words import terms

HARBOUR = """# Harbour rules

Boats over twelve metres report to the harbour master. The fee is 14 crowns a night.

## Mooring a boat

To moor a boat, do this:

1. Call the harbour master on channel 9.
2. Put out two fenders.
3. Tie the bow line first.

## Who may enter

Allowed in the inner basin:
- rowing boats
- sailing dinghies
- the pilot cutter

| berth | length | price |
| --- | --- | --- |
| north pier | 12 m | 14 |
| south pier | 20 m | 31 |
"""
CHINESE = "港口建于1911年。港口由陈明设计,耗资三百万元。渔船停靠在北码头。港口每天早上六点开放。"
RUNNING = (
    "About the heron The grey heron is a wading bird. It nests in tall trees near lakes. "
    "Herons mostly eat fish, frogs and voles. " * 40 + "The oldest ringed heron reached 37 years in Denmark."
)
ROWS = (
    "name: Sluice Bridge | opened: 1989 | designer: Jonas Oke\nname: Mill Bridge | opened: 1931 | designer: Ada Brandt"
)
CAUSEWAY = """# Works

The Teal Causeway, a grey road of 1,284 m on stone, was meant to be there in 2009 and to take the coast road out.
It cost 214.6 million crowns, a third of which was a loan. It opened on 3 May 2011, two years late. People who cross the
Teal Causeway say that it is long. The design is by Tilda Voss. The design of the Teal Causeway hangs in the hall.
"""
COLUMNS = """The south master told the length and the price last May.

| berth | length | price |
| --- | --- | --- |
| north pier | 12 m | 14 |
| south pier | 20 m | 31 |
"""


def ask(question: str, *texts: str, title: str = "Guide", known: float = 2.0) -> ExcerptAnswer:
    """All terms that stand in the texts are equally rare, all others rarer."""
    everything = " ".join(texts)
    vocabulary = set(terms(f"{title} {everything}".replace("_", " ")))
    passages = [OfferedPassage(number, title, "", text) for number, text in enumerate(texts, 1)]
    return best_excerpts(question, passages, lambda term: known if term in vocabulary else 5.0)


@pytest.mark.parametrize(
    ("question", "text", "start", "end", "heading"),
    [
        ("What is the fee a night?", HARBOUR, "The fee is", "a night.", "Harbour rules"),
        ("How do I moor a boat?", HARBOUR, "To moor a boat", "bow line first.", "Mooring a boat"),
        ("What is allowed in the inner basin?", HARBOUR, "Allowed in", "the pilot cutter", "Who may enter"),
        ("Which price has the south pier?", HARBOUR, "| south pier", "| 31 |", "Who may enter"),
        ("Who was the designer of Mill Bridge?", ROWS, "name: Mill", "Ada Brandt", ""),
        (
            "What does C# cost?",
            "# Fees\n\nFree.\n\n## The fee of C#\n\nA year of C# costs ten crowns.\n",
            "A year",
            "crowns.",
            "The fee of C#",
        ),
        ("length and price of the south pier", COLUMNS, "| south pier", "| 31 |", ""),
        ("港口是谁设计的?", CHINESE, "港口由陈明", "三百万元。", ""),
        ("How old was the oldest ringed heron?", RUNNING, "The oldest ringed", "in Denmark.", ""),
    ],
)
def test_an_excerpt_is_a_whole_unit_under_its_heading(
    question: str, text: str, start: str, end: str, heading: str
) -> None:
    best = ask(question, text).excerpts[0]
    wanted = text[text.index(start) : text.index(end) + len(end)]
    assert wanted in best.text
    assert text[slice(*best.best)] in wanted
    assert best.heading == heading
    assert text[best.start : best.end] == best.text


def test_running_text_is_quoted_by_sentences() -> None:
    best = ask("How old was the oldest ringed heron?", RUNNING).excerpts[0]
    assert best.text.endswith("The oldest ringed heron reached 37 years in Denmark.")
    assert len(best.text) < 120


def test_a_table_row_comes_with_the_row_that_names_its_columns() -> None:
    berths = "".join(f"| berth {number} | {number} m | {number} crowns |\n" for number in range(60))
    text = f"# Prices\n\n| berth | length | price |\n| --- | --- | --- |\n{berths}| south pier | 20 m | 31 |\n"
    answer = ask("Which price has the south pier?", text)
    best = answer.excerpts[0]
    assert best.header is not None
    assert text[slice(*best.header)] == best.header_text == "| berth | length | price |"
    assert "> | berth | length | price |\n> | --- | --- | --- |\n> | south pier | 20 m | 31 |" in shown(answer).text


def test_of_a_long_table_the_rows_are_shown_that_speak_of_what_is_asked() -> None:
    waits = [
        ("a harbour master", "5 minutes", "a bell"), ("a ferry that is late", "an hour", "the timetable"),
        ("a crane", "two days", "nobody"), ("the tide", "six hours", "the moon"),
        ("a pilot", "20 minutes", "the pilots' office"), ("a permit", "three weeks", "the town"),
    ]  # fmt: skip
    rows = "".join(f"| {' | '.join(row)} |\n" for row in waits)
    text = f"# Who waits for what\n\n| wait for | at most | set by |\n| --- | --- | --- |\n{rows}"
    answer = shown(ask("How long does one wait for the tide?", text)).text
    assert "> | wait for | at most | set by |\n> | --- | --- | --- |\n> | the tide | six hours | the moon |" in answer
    assert "pilot" not in answer
    assert "crane" not in answer


def test_half_a_block_of_code_is_shown_without_its_fence_and_words_as_code_stay() -> None:
    lines = "".join(f"skerrow --list {number}   # which ships lie there, and since when\n" for number in range(30))
    text = f"# Ships\n\nOf the ships the last `keep_ships` (default 5) stay.\n\n```sh\n{lines}```\n"
    answer = shown(ask("How many ships stay?", text)).text
    assert "> Of the ships the last `keep_ships` (default 5) stay." in answer
    assert "> skerrow --list 0 " in answer
    assert "```" not in answer


def test_a_long_list_is_quoted_up_to_a_bound() -> None:
    text = "What a keeper needs:\n" + "\n".join(f"- item number {number} of the long list" for number in range(60))
    best = ask("What does a keeper need?", text).excerpts[0]
    assert best.start == 0
    assert BEST - 60 < best.end <= BEST
    assert text[best.end] == "\n"


MANUAL = """# Pumps

## Priming

Priming fills the pump. Open the valve first:

```sh
valve --open
pump --prime
```

It takes a minute.

## Storage

Store a pump dry.
"""


def test_an_excerpt_of_a_manual_is_the_section_around_what_was_found() -> None:
    best = ask("How is the valve opened?", MANUAL).excerpts[0]
    assert best.text == MANUAL[MANUAL.index("Priming fills") : MANUAL.index("\n\n## Storage")]
    assert MANUAL[slice(*best.best)] == "Open the valve first:"


def test_a_section_is_quoted_by_whole_units_what_follows_first_and_its_code_is_closed() -> None:
    quotes = quotables(MANUAL)
    place = next(place for place, quote in enumerate(quotes) if quote.leads)
    start, end = section_around(MANUAL, quotes, place, 60)
    assert MANUAL[start:end].startswith("Open the valve")
    assert MANUAL[start:end].endswith("pump --prime\n```")


def test_excerpts_of_one_section_do_not_overlap() -> None:
    text = "# Lamps\n\n" + "\n\n".join(
        f"Lamp {number} burns {number} pints of oil. {'It is red. ' * 20}" for number in range(9)
    )
    excerpts = ask("How many pints of oil does lamp 7 burn, and lamp 2?", text).excerpts
    spans = sorted((excerpt.start, excerpt.end) for excerpt in excerpts)
    assert len(spans) > 1
    assert all(before[1] <= after[0] for before, after in pairwise(spans))


def test_of_a_long_sentence_the_best_stretch_is_marked() -> None:
    text = (
        "The report says much, "
        + "of this and of that and of more, " * 12
        + "and the lighthouse burned in 1911, as it says."
    )
    best = ask("When did the lighthouse burn?", text).excerpts[0]
    assert best.text == text
    assert "lighthouse burned in 1911" in text[slice(*best.best)]
    assert best.best[1] - best.best[0] <= 200


@pytest.mark.parametrize(
    ("question", "text", "found"),
    [
        ("When was the lighthouse of Skerrow built?", "The lighthouse of Skerrow was built in 1911.", True),
        ("When was the lighthouse of Skerrow built?", "The lighthouse of Norrick was built in 1911.", False),
        ("Which symptoms does lead poisoning have?", "Bread is baked before six in the morning.", False),
        ("What of Skerrow?", "The lighthouse of Skerrow was built in 1911.", True),
        ("LightRAG比GraphRAG省在哪", "LightRAG和GraphRAG都用图。", True),
        ("灯塔和华为有什么关系?", "灯塔的经费由船主分摊。", False),
        ("火山在哪一年爆发?", "渔船停靠在北码头。", False),
    ],
)
def test_what_no_text_speaks_of_has_no_excerpt(question: str, text: str, found: bool) -> None:
    assert bool(ask(question, text).excerpts) is found


@pytest.mark.parametrize(
    ("question", "marked"),
    [
        ("How much did the Teal Causeway cost?", "It cost 214.6 million crowns, a third of which was a loan."),
        ("When did the Teal Causeway open?", "It opened on 3 May 2011, two years late."),
        ("Who designed the Teal Causeway?", "The design is by Tilda Voss."),
    ],
    ids=["figure", "date", "name"],
)
def test_the_marked_sentence_holds_what_is_asked_for(question: str, marked: str) -> None:
    _, start, end = shown(ask(question, CAUSEWAY)).quotes[1]
    assert CAUSEWAY[start:end] == marked


def test_what_only_says_where_to_read_on_comes_after_what_says_it() -> None:
    links = "| you want to | read |\n| --- | --- |\n| see what a run costs before you start it | [Costs](costs.md) |\n"
    best = ask("What does a run cost before I start it?", links, "What a run costs is told before it starts.").excerpts
    assert best[0].text.startswith("What a run costs")


@pytest.mark.parametrize(
    ("question", "best"),
    [
        ("what about the ligthouse", "The lighthouse has a red lamp."),
        ("whats kiled", "What was killed is buried."),  # as near to "filed", which begins otherwise
    ],
)
def test_a_misspelt_word_finds_its_sentence(question: str, best: str) -> None:
    text = "The lighthouse has a red lamp. Letters are filed. What was killed is buried."
    first = ask(question, text).excerpts[0]
    assert text[slice(*first.best)] == best


def test_a_question_is_never_an_excerpt() -> None:
    answer = ask("What causes rust?", "What causes rust? Rust comes from wet iron.")
    assert [excerpt.text for excerpt in answer.excerpts] == ["Rust comes from wet iron."]


def test_excerpts_are_shown_as_quotes_the_best_passage_first() -> None:
    first, second = (
        "The **lamp was** lit. **It was red.** Nobody came.",
        "# Lamp\n\nThe lamp of the lighthouse burned oil.",
    )
    answer = ask("Which oil did the lamp of the lighthouse burn, and was the lamp lit?", first, second)
    text = shown(answer).text
    assert text.startswith("From the documents:\n")
    assert text.index("burned oil") < text.index("The **lamp was**")
    assert "Lamp\n> The lamp of the lighthouse burned oil. [1]" in text
    assert text.count("**") % 2 == 0
    assert shown(ask("灯塔的高度是多少?", "灯塔的高度是四十米。")).text == "文档摘录：\n> 灯塔的高度是四十米。 [1]"


def test_nothing_found_is_abstained() -> None:
    answer = ask("What is this?")
    assert answer == ExcerptAnswer((), "From the documents:")
    assert shown(answer).text == ""


_LINE = st.sampled_from(
    ["# The pier", "The pier is long. It is old.", "Boats:", "- a boat", "1. first the pier", "| pier | boat |",
     "| --- | --- |", "| old | new |", "", "```", "pier --boat", "码头很长。船是新的。", "**The pier. The boat.**",
     "a | b"]
)  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(st.lists(_LINE, max_size=14), st.sampled_from(["How old is the pier?", "Which boats are there?", "码头多长?"]))
def test_every_excerpt_is_a_span_of_its_passage(lines: list[str], question: str) -> None:
    text = "\n".join(lines)
    for excerpt in ask(question, text, text).excerpts:
        assert text[excerpt.start : excerpt.end] == excerpt.text != ""
        assert excerpt.start <= excerpt.best[0] < excerpt.best[1] <= excerpt.end
        if excerpt.header:
            assert text[slice(*excerpt.header)] == excerpt.header_text


def test_within_a_passage_excerpts_are_in_reading_order() -> None:
    text = f"The lamp was lit in May.{' Nobody came.' * 20} The lamp of the lighthouse burned oil."

    answer = shown(ask("Which oil did the lamp of the lighthouse burn?", text))

    assert answer.text.index("lit in May") < answer.text.index("burned oil")
    assert text[slice(*answer.quotes[1][1:])].endswith("The lamp of the lighthouse burned oil.")


def test_where_a_list_is_asked_for_a_short_table_is_shown_whole() -> None:
    answer = shown(ask("Which piers are there, list the berths", HARBOUR)).text

    assert "| north pier | 12 m | 14 |\n> | south pier | 20 m | 31 |" in answer


@pytest.mark.parametrize(
    ("question", "abstains"),
    [("港口花了多少钱呢?", False), ("榴莲要怎么种?", True), ("Skerrow 到底咋样才算漂亮呢?", False)],
    ids=["ordinary words", "a rare word that nobody uses", "a known name"],
)
def test_of_a_chinese_question_what_is_rare_in_chinese_has_to_be_spoken_of(question: str, abstains: bool) -> None:
    text = f"{CHINESE}Skerrow 是一座岛。港口花了很多钱。"

    assert (not ask(question, text).excerpts) is abstains


def test_meaning_under_the_heading_decides_beside_the_words() -> None:
    sentences = ["The boat needs oil in May.", "Casting off takes an hour.", "A boat has a name."]
    passages = [OfferedPassage(1, "The boat", "Guide > Leaving", " ".join(sentences))]
    read: list[str] = []

    def similarity(question: str, texts: Sequence[str]) -> list[float]:
        read.extend(texts)
        return [0.9 if "Casting off" in text else 0.1 for text in texts]

    def best(question: str, similarity: Similarity | None) -> str:
        first = best_excerpts(question, passages, lambda _: 2.0, similarity).excerpts[0]
        return passages[0].text[slice(*first.best)]

    assert not best("departure of the boat", None).startswith("Casting off")
    assert best("departure of the boat", similarity).startswith("Casting off")
    assert "Leaving: Casting off takes an hour." in read


@pytest.mark.parametrize(("rarity", "meaning_is_read"), [(0.5, True), (4.0, False)])
def test_a_question_that_names_only_what_most_texts_name_is_read_by_its_meaning(
    rarity: float, meaning_is_read: bool
) -> None:
    text = "Kestrel needs oil for its departure in May. Casting off takes an hour. Kestrel is a boat."
    read: list[str] = []

    def similarity(_: str, texts: Sequence[str]) -> list[float]:
        read.extend(texts)
        return [0.9 if "Casting off" in text else 0.1 for text in texts]

    def rarity_of(term: str) -> float:
        return {"kestrel": rarity, "\0": 8.0}.get(term, 6.0)

    best_excerpts("When is the departure of Kestrel?", [OfferedPassage(1, "The boat", "", text)], rarity_of, similarity)

    assert any("Kestrel is a boat" in text for text in read) is meaning_is_read


@pytest.mark.parametrize(("cosine", "found"), [(0.2, False), (0.5, True)])
def test_what_is_near_in_meaning_needs_few_words(cosine: float, found: bool) -> None:
    passages = [OfferedPassage(1, "Guide", "", "The first boat of May carries salt.")]
    best = best_excerpts(
        "who first walked over a moon", passages, lambda _: 2.0, lambda _, texts: [cosine] * len(texts)
    )
    assert bool(best.excerpts) is found


@pytest.mark.parametrize(
    ("question", "first"),
    [("Who is the mayor of Lund, Skane?", "Lund, Skane"), ("Who is the mayor of Lund?", "Lund")],
)
def test_of_titles_alike_the_named_one_comes_first(question: str, first: str) -> None:
    texts = {
        "Lund": "Lund is a town of the Tarn. The mayor of Lund is Anna Orr. Lund lies on the Tarn.",
        "Lund, Skane": "The mayor is Bo Voss. Lund lies in the county of Skane.",
    }
    found = sorted(texts, key=lambda title: title != first)  # as the search has them
    offered = [OfferedPassage(number, title, "", texts[title]) for number, title in enumerate(found, 1)]
    best = best_excerpts(question, offered, lambda term: 2.0).excerpts[0]
    assert offered[best.number - 1].title == first
