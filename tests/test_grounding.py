"""Grounding: sentences of an answer in markdown, and which of them the evidence supports."""

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage.answer_records import Grounding
from tasks.grounding import fallback_of, ground, sentences_of

ROOT = Path(__file__).parents[1]
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
SHOWN = (BRIDGE, FERRY, MEDICINE)
MARKED = {"[1]": BRIDGE, "[2]": FERRY, "[3]": MEDICINE}


def flags(text: str, question: str = "?", shown: tuple[str, ...] = SHOWN) -> list[bool | None]:
    marked = (
        MARKED
        if shown is SHOWN
        else {f"[{number}]": passage for number, passage in enumerate(shown, 1)}
    )
    return [row.supported for row in ground(text, marked, shown, question)]


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
Use `a[1]. B` with care. 它建于1954年。[1]它很长[2]。"""


@pytest.mark.parametrize(
    ("place", "quoted", "kind", "markers"),
    [
        (0, "## Answer", "heading", ()),
        (1, "It opened in 1954 [1].", "plain", ("[1]",)),
        (2, "Dr. Tolland drew it.[1, 2]", "plain", ("[1]", "[2]")),
        (3, "It runs for 1.5 km, e.g. at St. Orla. [3]", "plain", ("[3]",)),
        (4, "The parts are:", "lead", ()),
        (5, "- **North span**: 3 arches [2]", "item", ("[2]",)),
        (6, "- *South* span", "item", ()),
        (7, "| year | bridge |", "header", ()),
        (8, "| --- | --- |", "row", ()),
        (9, "| 1954 | Orla [1] |", "row", ("[1]",)),
        (10, '```python\nrows[1] = "a. b"\n\nrun(rows)\n```', "code", ()),
        (11, "Use `a[1]. B` with care.", "plain", ()),
        (12, "它建于1954年。[1]", "plain", ("[1]",)),
        (13, "它很长[2]。", "plain", ("[2]",)),
    ],
)
def test_markdown_is_split_into_what_can_be_judged(
    place: int, quoted: str, kind: str, markers: tuple[str, ...]
) -> None:
    row = sentences_of(MARKDOWN)[place]
    assert (MARKDOWN[row.start : row.end], row.kind, row.markers) == (quoted, kind, markers)
    assert len(sentences_of(MARKDOWN)) == 14


def test_a_marker_that_begins_a_sentence_stays_with_it() -> None:
    text = "It is old. [1] says that it was built in 1954. So does [2]."
    assert [text[row.start : row.end] for row in sentences_of(text)] == [
        "It is old.",
        "[1] says that it was built in 1954.",
        "So does [2].",
    ]


def test_code_holds_nothing_to_check() -> None:
    assert flags("```\nZorblax = 1803\n```\n`Zorblax`") == [None, None]


PIECES = st.lists(
    st.sampled_from(
        [
            "It ran. ",
            "他说。",
            "[1]",
            " [2, 3]",
            "\n",
            "\n\n",
            "- ",
            "| a | b |\n",
            "|-|-|\n",
            "```",
            "`x. Y`",
            "# T\n",
            "3.5 km",
            "Dr. ",
            "e.g. ",
            "**B** ",
            ":",
            "？",
            "!",
            "word ",
            "Ж. ",
            "كلمة؟ ",
            "\ue000",
            "\r\n",
            "“Q.” ",
        ]
    )
    | st.text(max_size=5),
    max_size=25,
).map("".join)


@settings(deadline=None)
@given(PIECES)
def test_sentences_are_apart_in_order_hold_all_that_is_written_and_get_a_flag_each(
    text: str,
) -> None:
    rows = sentences_of(text)
    spans = [(row.start, row.end) for row in rows]
    assert all(start < end for start, end in spans)
    assert all(before[1] <= after[0] for before, after in pairwise(spans))
    inside = {at for start, end in spans for at in range(start, end)}
    assert all(at in inside for at, character in enumerate(text) if not character.isspace())
    flagged = ground(text, MARKED, SHOWN, "What?")
    assert [(row.start, row.end, row.markers) for row in flagged] == [
        (row.start, row.end, row.markers) for row in rows
    ]


SAID = (
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
NOT_SAID = (
    "The bridge runs for 14 km [1].",
    "It was designed by Arn Kestrel [1].",
    (
        "Gallstones are dissolved by drinking vinegar mixed with crushed almonds before breakfast "
        "every morning [3]."
    ),
    (
        "Tourists adore photographing dolphins and whales, which frequently accompany fishermen "
        "near lighthouses [1]."
    ),
)


@pytest.mark.parametrize("text", [*SAID, *NOT_SAID])
def test_what_the_evidence_says_is_supported_and_what_it_does_not_say_is_flagged(text: str) -> None:
    assert flags(text) == [text in SAID]


@pytest.mark.parametrize("shown", [*SHOWN, LONG])
@pytest.mark.parametrize(
    "made_up",
    [
        "It was painted green by Zorblax Quemby in 1803 [1].",
        "It was painted green by Zorblax Quemby [1].",
        "It was painted green by Zorblax Quemby in 1803.",
        "- Painted green by Zorblax Quemby [1]",
        "| painter | Zorblax Quemby [1] |",
    ],
)
def test_a_made_up_sentence_is_flagged(shown: str, made_up: str) -> None:
    title = shown.partition("\n")[0]
    assert (
        flags(f"{title} [1].\n\n{made_up}", shown=(shown, "Rain\nIt rains in spring."))[-1] is False
    )


@pytest.mark.parametrize(
    ("text", "shown", "supported"),
    [
        ("大桥全长12公里[1]。", LONG, True),
        ("大桥由工程师陆明远设计，1954年3月建成通车。[1]", LONG, True),
        ("1803年它被佐布拉克斯·昆比漆成绿色[1]。", LONG, False),
        ("它被佐布拉克斯·昆比漆成绿色，后来改作仓库使用[1]。", LONG, False),
        ("因此，答案是陆明远[1]。", LONG, True),
        ("StructRAG框架包括三个模块[1]。", MIXED, True),
        ("再由Qwen2模型回答10K个token以内的问题[1]。", MIXED, True),
        ("LLM先选结构$K_t$[1]。", MIXED, True),
        ("Zorblax框架包括三个模块[1]。", MIXED, False),
    ],
)
def test_chinese_with_and_without_names_in_latin_letters(
    text: str, shown: str, supported: bool
) -> None:
    assert flags(text, shown=(shown,)) == [supported]


@pytest.mark.parametrize(
    "path", sorted([*ROOT.glob("examples/corpus/**/*.md"), *ROOT.glob("docs/*.md")])
)
def test_what_stands_there_word_for_word_is_never_called_unsupported(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    said = [
        text[row.start : row.end] for row in sentences_of(text) if row.claim and not row.markers
    ]
    assert [one for one in said if False in flags(f"{one} [1]", shown=(text,))] == []


@pytest.mark.parametrize(
    "text",
    [
        # a translation
        "Die Brücke über den Sund ist zwölf Kilometer lang [1].",
        (
            "Die Orla-Brücke wurde am 12. März 1954 eröffnet, entworfen von der Ingenieurin Mira "
            "Tolland [1]."
        ),
        "这座大桥由米拉·托兰设计，于1954年3月12日通车[1]。",
        "Le pont fut ouvert le 12 mars 1954 et traverse un bras de mer [1].",
        "Мост длиной 12 км был открыт в 1954 году [1].",
        # talk about the answer
        "Comparing what the documents say about each of them [1][2], the conclusion is clear.",
        "- Putting these together gives Mira Tolland.",
        "The reasons are as follows:",
        "Yes.",
        "## Zorblax Quemby",
        "The bridge opened the year the ferry stopped, 53 years after the ferry began.",
    ],
)
def test_a_translation_and_talk_about_the_answer_are_never_called_unsupported(text: str) -> None:
    assert False not in flags(text)
    assert False not in flags(f"The ferry ran from 1901 until 1954 [2].\n\n{text}")


def test_a_translation_from_one_passage_is_not_called_unsupported() -> None:
    shown = (BRIDGE, LONG)
    assert flags("这座大桥由米拉·托兰设计，她在那里住了很久[1]。", shown=shown) == [None]
    assert flags("这座桥在1803年被漆成绿色[1]。", shown=shown) == [False]


def test_a_translated_sentence_with_a_figure_of_its_own_is_flagged() -> None:
    assert flags("Die Brücke wurde im Jahr 1803 grün gestrichen [1].") == [False]
    assert flags("这座桥在1803年被漆成绿色[1]。") == [False]


@pytest.mark.parametrize(("years", "supported"), [(77, True), (91, False)])
def test_what_is_computed_with_a_figure_of_the_question_is_supported(
    years: int, supported: bool
) -> None:
    told = f"The Orla Bridge opened in 1954, so in 2031 it is {years} years old [1]."
    assert flags(told, "How old is the Orla Bridge in 2031?") == [supported]
    told = f"长江口大桥于1954年建成通车，到2031年已有{years}年[1]。"
    assert flags(told, "长江口大桥到2031年通车多少年？", (LONG,)) == [supported]


WEIR = (
    "Sorrel Weir\nThe Sorrel Weir was built by Karl Lindh in 1931. Tilda Voss painted it. Tilda "
    "Voss also built the Harrow Lock, and Ada Frimm did not pay for it. It was owned by Hesper "
    "Line."
)
GATE = "石门大桥\n石门大桥由陆明远设计，1954年建成。陆明远没有设计北湖大桥，北湖大桥由张青设计。"
STATED = (
    "The Sorrel Weir was built by Karl Lindh [1].",
    "Karl Lindh built the Sorrel Weir in 1931 [1].",
    "Tilda Voss built the Harrow Lock [1].",
    "The Sorrel Weir was owned by Hesper Line [1].",
    "Ada Frimm did not pay for it [1].",
    "Karl Lindh [1].",
)
TURNED = (
    # another polarity
    "The Sorrel Weir was not built by Karl Lindh [1].",
    "The Sorrel Weir wasn't built by Karl Lindh [1].",
    "Karl Lindh never built the Sorrel Weir [1].",
    "Nobody built the Sorrel Weir in 1931 [1].",
    "Ada Frimm paid for it [1].",
    # subject and object exchanged
    "The Sorrel Weir built Karl Lindh [1].",
    "Karl Lindh was built by the Sorrel Weir [1].",
    "Hesper Line was owned by the Sorrel Weir [1].",
    # another object, another subject
    "Karl Lindh built the Harrow Lock [1].",
    "Tilda Voss built the Sorrel Weir [1].",
    # words of two names
    "Karl Lindh built the Sorrel Lock [1].",
)


@pytest.mark.parametrize("text", [*STATED, *TURNED])
def test_words_alone_never_support_what_is_turned(text: str) -> None:
    assert flags(text, shown=(WEIR,)) == [True if text in STATED else None]


@pytest.mark.parametrize(
    ("text", "supported"),
    [
        ("石门大桥由陆明远设计[1]。", True),
        ("陆明远设计了石门大桥[1]。", True),
        ("陆明远没有设计北湖大桥[1]。", True),
        ("石门大桥不是由陆明远设计的[1]。", None),
        ("陆明远由石门大桥设计[1]。", None),
        ("陆明远设计了北湖大桥[1]。", None),
    ],
)
def test_what_is_turned_in_chinese_is_not_supported(text: str, supported: bool | None) -> None:
    assert flags(text, shown=(GATE,)) == [supported]


def test_no_is_never_told_by_words() -> None:
    asked = "Was the Sorrel Weir built by Karl Lindh?"
    assert flags("Yes [1].", asked, (WEIR,)) == [True]
    assert flags("No [1].", asked, (WEIR,)) == [None]
    assert flags("Yes [1].", "Was Karl Lindh built by the Sorrel Weir?", (WEIR,)) == [None]


@pytest.mark.parametrize(
    ("question", "answer", "supported"),
    [
        ("Who built the Sorrel Weir in 1931?", "Karl Lindh [1].", True),
        ("Who built the Sorrel Weir in 1931?", "Karl Lindh", True),
        ("Who built the Sorrel Weir in 1931?", "The Sorrel Weir [1].", None),
        ("Who designed the Sorrel Weir that was built in 1931?", "Karl Lindh [1].", None),
        ("Which teacher of Karl Lindh was born in Osterby?", "Tilda Voss [1].", None),
        ("Which teacher of Karl Lindh was born in Osterby?", "Tilda Voss", None),
        ("When was the teacher of Ada Frimm born in Osterby?", "1931 [1]", None),
        ("石门大桥的设计师是在哪所大学毕业的？", "陆明远[1]", None),
    ],
)
def test_a_bare_name_answers_what_its_sentence_says(
    question: str, answer: str, supported: bool | None
) -> None:
    shown = GATE if "石" in question else WEIR
    assert flags(answer, question, (shown,)) == [supported]


def test_a_cited_sentence_in_doubt_leaves_an_answer_partial() -> None:
    rows = ground(f"{STATED[0]} {TURNED[0]}", {"[1]": WEIR}, (WEIR,), "Who built it?")
    assert fallback_of(rows) == "partial"


def test_yes_states_what_was_asked() -> None:
    assert flags("Yes [1].", "Was the Orla Bridge designed by Mira Tolland?") == [True]
    assert flags("Yes [1].", "Do penguins migrate through Antarctica?") == [None]


@pytest.mark.parametrize("shown", [SHOWN, (LONG, FERRY)])
def test_what_is_counted_is_no_made_up_figure(shown: tuple[str, ...]) -> None:
    text = "- the ferry [2]\n- the bridge [1]\n\nThese are 2 crossings [1][2]."
    assert flags(text, shown=shown)[-1] is not False


def test_without_evidence_nothing_is_checked() -> None:
    assert ground("It is so [1].", {}, (), "Is it?") == (
        Grounding(start=0, end=13, supported=None, markers=("[1]",)),
    )


def test_a_scorer_of_the_users_decides() -> None:
    asked: list[tuple[str, tuple[str, ...]]] = []

    def half(claim: str, evidence: object) -> float:
        assert isinstance(evidence, (list, tuple))
        asked.append((claim, tuple(evidence)))
        return 0.9 if "green" in claim else 0.1

    text = "## T\nIt was painted green by Zorblax Quemby [1]. It runs for 12 km [1]. All green."
    assert [row.supported for row in ground(text, MARKED, SHOWN, "?", half)] == [
        None,
        True,
        False,
        True,
    ]
    assert asked[0] == ("It was painted green by Zorblax Quemby .", (BRIDGE,))
    assert asked[2] == ("All green.", SHOWN)


@pytest.mark.parametrize(
    ("supported", "fallback"),
    [
        ([True, None], "none"),
        ([True, False], "partial"),
        ([None, None], "ungrounded"),
        ([False], "ungrounded"),
        ([], "ungrounded"),
    ],
)
def test_what_the_flags_of_an_answer_come_to(supported: list[bool | None], fallback: str) -> None:
    rows = [Grounding(start=0, end=1, supported=flag, markers=()) for flag in supported]
    assert fallback_of(rows) == fallback


ROW = (
    "Bridges\nname: Orla Bridge | crosses: River Ambel | opened: 1931 | designer: Tomas Reyd | "
    "owner: Town of Velin"
)


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
    (flag,) = ground(claim, {}, [ROW], "Who designed the Orla Bridge?")
    assert flag.supported is supported


@pytest.mark.parametrize(
    ("question", "claim", "supported"),
    [
        ("Where was Tomas Reyd born?", "9 May 1953", None),
        ("Where was Tomas Reyd born?", "Velin", True),
        ("When was Tomas Reyd born?", "Velin", None),
        ("When was Tomas Reyd born?", "9 May 1953", True),
    ],
)
def test_a_bare_answer_is_of_the_kind_that_is_asked_for(
    question: str, claim: str, supported: bool | None
) -> None:
    said = "Tomas Reyd\nTomas Reyd was born on 9 May 1953 in Velin."
    (flag,) = ground(claim, {}, [said], question)
    assert flag.supported is supported
