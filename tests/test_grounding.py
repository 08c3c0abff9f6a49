"""Grounding: sentences of an answer in Markdown, and which of them the evidence supports."""

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage.answer_records import Grounding
from tasks.grounding import fallback_of, ground, sentences_of

CORPUS = Path(__file__).parents[1] / "examples" / "corpus"
BRIDGE = (
    "Orla Bridge\nThe Orla Bridge runs for 12 km across the Velm Sound. It was designed by the "
    "engineer Mira Tolland (1911 – 1968) and opened on 12 March 1954; building it cost 29.87 "
    "million crowns."
)
FERRY = (
    "Velm ferry\nThe Velm ferry crossed the sound from 1901 until 1954. It carried 340 passengers "
    "and 25 carriages, and was owned by Hesper Line, a company from Dorrin."
)
LONG = (
    "长江口大桥\n长江口大桥全长12公里，1954年3月12日建成通车，由工程师陆明远设计。"
    "大桥耗资2987万元，连接东岸的港口和西岸的火车站。"
)
MIXED = "StructRAG框架包括三个模块：LLM先选结构$K_t$，再由Qwen2模型回答10K个token以内的问题。"
MEDICINE = (
    "Gallstones\nMost gallstones cause no symptoms and need no treatment. Surgeons remove the "
    "gallbladder when attacks of pain return, usually through small cuts (laparoscopy)."
)
WEIR = (
    "Sorrel Weir\nThe Sorrel Weir was built by Karl Lindh in 1931. Tilda Voss painted it. Tilda "
    "Voss also built the Harrow Lock, and Ada Frimm did not pay for it. It was owned by Hesper "
    "Line."
)
GATE = "石门大桥\n石门大桥由陆明远设计，1954年建成。陆明远没有设计北湖大桥，北湖大桥由张青设计。"
BORN = "Tomas Reyd\nTomas Reyd was born on 9 May 1953 in Velin."
ROW = (
    "Bridges\nname: Orla Bridge | crosses: River Ambel | opened: 1931 | designer: Tomas Reyd | "
    "owner: Town of Velin"
)
SHOWN = (BRIDGE, FERRY, MEDICINE)


def flags(text: str, question: str = "?", shown: tuple[str, ...] = SHOWN) -> list[bool | None]:
    marked = {f"[{number}]": passage for number, passage in enumerate(shown, 1)}
    return [row.supported for row in ground(text, marked, shown, question)]


# --- sentences ---

MARKDOWN = """\
## Answer
It opened in 1954 [1]. Dr. Tolland drew it.[1, 2] It runs for 1.5 km, e.g. at St. Orla. [3]

The parts are:

- **North span**: 3 arches [2]
- *South* span

| year | bridge |
| --- | --- |
| 1954 | Orla [1] |

```python
rows[1] = "a. b"

run(rows)
```
Use `a[1]. B` with care. 它建于1954年。[1]它很长[2]。 It is old. [1] says so."""
UNITS = [
    ("## Answer", "heading", ()),
    ("It opened in 1954 [1].", "plain", ("[1]",)),
    ("Dr. Tolland drew it.[1, 2]", "plain", ("[1]", "[2]")),
    ("It runs for 1.5 km, e.g. at St. Orla. [3]", "plain", ("[3]",)),
    ("The parts are:", "lead", ()),
    ("- **North span**: 3 arches [2]", "item", ("[2]",)),
    ("- *South* span", "item", ()),
    ("| year | bridge |", "header", ()),
    ("| --- | --- |", "row", ()),
    ("| 1954 | Orla [1] |", "row", ("[1]",)),
    ('```python\nrows[1] = "a. b"\n\nrun(rows)\n```', "code", ()),
    ("Use `a[1]. B` with care.", "plain", ()),
    ("它建于1954年。[1]", "plain", ("[1]",)),
    ("它很长[2]。", "plain", ("[2]",)),
    ("It is old.", "plain", ()),
    ("[1] says so.", "plain", ("[1]",)),
]


def test_markdown_is_split_into_what_can_be_judged() -> None:
    rows = sentences_of(MARKDOWN)
    assert [(MARKDOWN[row.start : row.end], row.kind, row.markers) for row in rows] == UNITS


PIECES = (
    "It ran. |他说。|[1]| [2, 3]|\n|\n\n|- |```|`x. Y`|# T\n|3.5 km|Dr. |**B** |:|？|!|Ж. |\r\n"
)
MARKUP = [*PIECES.split("|"), "| a | b |\n", "|-|-|\n", "\ue000", "“Q.” "]


@settings(deadline=None)
@given(st.lists(st.sampled_from(MARKUP) | st.text(max_size=5), max_size=25).map("".join))
def test_sentences_cover_a_text_in_order_and_get_a_flag_each(text: str) -> None:
    rows = sentences_of(text)
    spans = [(row.start, row.end) for row in rows]
    assert all(start < end for start, end in spans)
    assert all(before[1] <= after[0] for before, after in pairwise(spans))
    inside = {at for start, end in spans for at in range(start, end)}
    assert all(at in inside for at, character in enumerate(text) if not character.isspace())
    flagged = ground(text, {"[1]": BRIDGE}, SHOWN, "What?")
    assert [(row.start, row.end) for row in flagged] == spans


# --- what the evidence says ---

SUPPORTED = (
    "The Orla Bridge runs for 12 km [1].",
    "It opened in March 1954 [1].",
    "Building it cost about 30 million crowns [1].",
    "Building it cost 29,870,000 crowns [1].",
    "The bridge opened in the 1950s [1].",
    "Mira Tolland [1]",
    "Therefore, the answer to the question is 12 March 1954 [1][2].",
    "- Hesper Line, from Dorrin [2]",
    "| owner | Hesper Line [2] |",
    "In most people gallstones cause no symptoms at all, and so they do not need treatment [3].",
    "The gallbladder is removed by surgeons when painful attacks return [3].",
    "The Velm ferry was owned by Hesper Line, a company from Dorrin.",
    "Mira Tolland lived for 57 years [1].",
    "Together that makes 365 passengers and carriages [2].",
)
UNSUPPORTED = (
    "The bridge runs for 14 km [1].",
    "It was designed by Arn Kestrel [1].",
    "Gallstones are dissolved by drinking vinegar mixed with crushed almonds before breakfast [3].",
    "Die Brücke wurde im Jahr 1803 grün gestrichen [1].",
    "这座桥在1803年被漆成绿色[1]。",
    "It was painted green by Zorblax Quemby.",
    "- Painted green by Zorblax Quemby [1]",
    "| painter | Zorblax Quemby [1] |",
)
# A translation, or talk about the answer.
UNDECIDED = (
    "Die Brücke über den Sund ist zwölf Kilometer lang [1].",
    "这座大桥由米拉·托兰设计，于1954年3月12日通车[1]。",
    "Мост длиной 12 км был открыт в 1954 году [1].",
    "Comparing what the documents say about each of them [1][2], the conclusion is clear.",
    "- Putting these together gives Mira Tolland.",
    "The reasons are as follows:",
    "## Zorblax Quemby",
    "`Zorblax`",
    "The bridge opened the year the ferry stopped, 53 years after the ferry began.",
)


@pytest.mark.parametrize("text", [*SUPPORTED, *UNSUPPORTED])
def test_a_sentence_is_supported_by_what_its_source_says(text: str) -> None:
    assert flags(text) == [text in SUPPORTED]


@pytest.mark.parametrize("text", UNDECIDED)
def test_translations_and_talk_are_never_called_unsupported(text: str) -> None:
    assert False not in flags(text)
    assert False not in flags(f"The ferry ran from 1901 until 1954 [2].\n\n{text}")


@pytest.mark.parametrize(
    ("text", "shown", "supported"),
    [
        ("大桥全长12公里[1]。", LONG, True),
        ("大桥由工程师陆明远设计，1954年3月建成通车。[1]", LONG, True),
        ("因此，答案是陆明远[1]。", LONG, True),
        ("1803年它被佐布拉克斯·昆比漆成绿色[1]。", LONG, False),
        ("它被佐布拉克斯·昆比漆成绿色，后来改作仓库使用[1]。", LONG, False),
        ("StructRAG框架包括三个模块[1]。", MIXED, True),
        ("LLM先选结构$K_t$[1]。", MIXED, True),
        ("Zorblax框架包括三个模块[1]。", MIXED, False),
    ],
)
def test_chinese_evidence_supports_what_it_says(text: str, shown: str, supported: bool) -> None:
    assert flags(text, shown=(shown,)) == [supported]


@pytest.mark.parametrize("path", sorted(CORPUS.rglob("*.md")), ids=lambda path: path.name)
def test_word_for_word_is_never_called_unsupported(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    said = [
        text[row.start : row.end] for row in sentences_of(text) if row.claim and not row.markers
    ]
    assert [one for one in said if False in flags(f"{one} [1]", shown=(text,))] == []


@pytest.mark.parametrize(("years", "supported"), [(77, True), (91, False)])
def test_a_computed_figure_is_supported(years: int, supported: bool) -> None:
    text = f"The Orla Bridge opened in 1954, so in 2031 it is {years} years old [1]."
    assert flags(text, "How old is the Orla Bridge in 2031?") == [supported]
    text = f"长江口大桥于1954年建成通车，到2031年已有{years}年[1]。"
    assert flags(text, "长江口大桥到2031年通车多少年？", (LONG,)) == [supported]


def test_a_count_of_list_items_is_no_made_up_figure() -> None:
    text = "- the ferry [2]\n- the bridge [1]\n\nThese are 2 crossings [1][2]."
    assert flags(text, shown=(LONG, FERRY))[-1] is not False


STATED = (
    "Karl Lindh built the Sorrel Weir in 1931 [1].",
    "Tilda Voss built the Harrow Lock [1].",
    "The Sorrel Weir was owned by Hesper Line [1].",
    "Ada Frimm did not pay for it [1].",
    "石门大桥由陆明远设计[1]。",
    "陆明远设计了石门大桥[1]。",
    "陆明远没有设计北湖大桥[1]。",
)
TURNED = (
    # another polarity
    "The Sorrel Weir wasn't built by Karl Lindh [1].",
    "Karl Lindh never built the Sorrel Weir [1].",
    "Nobody built the Sorrel Weir in 1931 [1].",
    "Ada Frimm paid for it [1].",
    "石门大桥不是由陆明远设计的[1]。",
    # subject and object exchanged
    "The Sorrel Weir built Karl Lindh [1].",
    "Karl Lindh was built by the Sorrel Weir [1].",
    "陆明远由石门大桥设计[1]。",
    # another object, another subject
    "Karl Lindh built the Harrow Lock [1].",
    "Tilda Voss built the Sorrel Weir [1].",
    "陆明远设计了北湖大桥[1]。",
    # words of two names
    "Karl Lindh built the Sorrel Lock [1].",
)


@pytest.mark.parametrize("text", [*STATED, *TURNED])
def test_shared_words_do_not_support_what_is_turned_round(text: str) -> None:
    shown = WEIR if text.isascii() else GATE
    assert flags(text, shown=(shown,)) == [True if text in STATED else None]


@pytest.mark.parametrize(
    ("question", "answer", "shown", "supported"),
    [
        ("Was the Sorrel Weir built by Karl Lindh?", "Yes [1].", WEIR, True),
        ("Was the Sorrel Weir built by Karl Lindh?", "No [1].", WEIR, None),
        ("Was Karl Lindh built by the Sorrel Weir?", "Yes [1].", WEIR, None),
        ("Do penguins migrate through Antarctica?", "Yes [1].", BRIDGE, None),
        ("Who built the Sorrel Weir in 1931?", "Karl Lindh [1].", WEIR, True),
        ("Who built the Sorrel Weir in 1931?", "Karl Lindh", WEIR, True),
        ("Who built the Sorrel Weir in 1931?", "The Sorrel Weir [1].", WEIR, None),
        ("Who designed the Sorrel Weir that was built in 1931?", "Karl Lindh [1].", WEIR, None),
        ("Which teacher of Karl Lindh was born in Osterby?", "Tilda Voss", WEIR, None),
        ("When was the teacher of Ada Frimm born in Osterby?", "1931 [1]", WEIR, None),
        ("石门大桥的设计师是在哪所大学毕业的？", "陆明远[1]", GATE, None),
        ("Where was Tomas Reyd born?", "9 May 1953", BORN, None),
        ("Where was Tomas Reyd born?", "Velin", BORN, True),
        ("When was Tomas Reyd born?", "Velin", BORN, None),
        ("When was Tomas Reyd born?", "9 May 1953", BORN, True),
    ],
)
def test_a_bare_answer_needs_the_words_of_the_question(
    question: str, answer: str, shown: str, supported: bool | None
) -> None:
    assert flags(answer, question, (shown,)) == [supported]


@pytest.mark.parametrize(
    ("claim", "supported"),
    [
        ("Tomas Reyd designed the Orla Bridge, and it opened in 1931.", True),
        ("The Orla Bridge crosses the River Ambel.", True),
        ("The Town of Velin designed the Orla Bridge.", None),
        ("Tomas Reyd crosses the River Ambel.", None),
    ],
)
def test_a_row_supports_what_its_own_cell_says(claim: str, supported: bool | None) -> None:
    assert flags(claim, "Who designed the Orla Bridge?", (ROW,)) == [supported]


# --- scorers and fallbacks ---


def test_without_evidence_nothing_is_checked() -> None:
    assert ground("It is so [1].", {}, (), "Is it?") == (
        Grounding(start=0, end=13, supported=None, markers=("[1]",)),
    )


def test_another_scorer_decides_alone() -> None:
    asked: list[tuple[str, object]] = []

    def greenness(claim: str, evidence: object) -> float:
        asked.append((claim, evidence))
        return 0.9 if "green" in claim else 0.1

    text = "## T\nIt was painted green by Zorblax Quemby [1]. It runs for 12 km [1]. All green."
    found = ground(text, {"[1]": BRIDGE}, SHOWN, "?", greenness)
    assert [row.supported for row in found] == [None, True, False, True]
    assert asked[0] == ("It was painted green by Zorblax Quemby .", (BRIDGE,))
    assert asked[2] == ("All green.", SHOWN)


@pytest.mark.parametrize(
    ("supported", "markers", "fallback"),
    [
        ([True, None], (), "none"),
        ([True, None], ("[1]",), "partial"),
        ([True, False], (), "partial"),
        ([None, None], (), "ungrounded"),
        ([False], (), "ungrounded"),
        ([], (), "ungrounded"),
    ],
)
def test_the_flags_of_an_answer_give_its_fallback(
    supported: list[bool | None], markers: tuple[str, ...], fallback: str
) -> None:
    rows = [Grounding(start=0, end=1, supported=flag, markers=markers) for flag in supported]
    assert fallback_of(rows) == fallback
