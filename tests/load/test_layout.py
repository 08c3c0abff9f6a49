"""Lines of pages as text: columns, tables, running heads, captions, and places of readings."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.records import Part, Recognized
from tasks.load.layout import Page, Reading, lay_out, reading_lines
from tasks.picture import with_descriptions
from tests.load.test_pdf import pdf, placed, read, shown, table

LEFT = [
    "The ferry leaves the",
    "north pier at noon",
    "and returns at dusk.",
    "It rests in the winter",
]
RIGHT = [
    "The lamp of the light",
    "house burns all night",
    "in winter and autumn,",
    "and is out in summer.",
]
LEFT_ZH = [
    "渡轮中午从北码头出发，",
    "黄昏时分返回港口，风",
    "大的日子停止运营，",
    "冬天也不开船出海。",
]
RIGHT_ZH = [
    "灯塔的灯在冬天和秋天",
    "整夜亮着，看守人每天",
    "擦拭三次镜片和铜壳，",
    "然后记录当天的天气。",
]


def column(texts: list[str], left: float, top: float) -> list[Reading]:
    """Lines of 10 points, 14 apart, as a recogniser finds them."""
    return [
        Reading(text, left, top - 14 * line - 10, left + 110, top - 14 * line, 0.9)
        for line, text in enumerate(texts)
    ]


def read_page(readings: list[Reading]) -> tuple[str, tuple[Recognized, ...]]:
    ordered, lines = reading_lines(readings)
    page = lay_out([Page(lines, ordered, 300, 400)])
    return page.text, page.recognized


@pytest.mark.parametrize(("left", "right"), [(LEFT, RIGHT), (LEFT_ZH, RIGHT_ZH)], ids=["en", "zh"])
@pytest.mark.parametrize("shift", [0, 7], ids=["level", "between the lines"])
def test_recognised_columns_are_read_one_by_one(
    left: list[str], right: list[str], shift: int
) -> None:
    title = Reading("Harbour News of May", 20, 370, 280, 382, 0.9)
    foot = Reading("Printed in Velin, and sold at the pier", 20, 200, 280, 212, 0.9)
    both = [*column(right, 160, 340 - shift), foot, *column(left, 20, 340), title]
    text, places = read_page(both)
    found = [text[place.start : place.end] for place in places]
    assert found == [title.text, *left, *right, foot.text]


def test_a_recognised_table_is_read_by_rows() -> None:
    rows = [["Bridge", "Length"], ["Orla", "412"], ["Kestrel", "187"]]
    text, places = read_page(
        [
            one
            for left in (0, 1)
            for one in column([row[left] for row in rows], 20 + 140 * left, 300)
        ]
    )
    assert text.splitlines()[1:] == ["Bridge: Orla | Length: 412", "Bridge: Kestrel | Length: 187"]
    assert [text[it.start : it.end] for it in places[2:]] == ["Orla", "412", "Kestrel", "187"]


def test_a_reading_keeps_its_page_box_and_confidence() -> None:
    _, (place,) = read_page([Reading("Closed", 30, 300, 150, 320, 0.8)])
    assert place == Recognized(0, 6, 1, (0.1, 0.2, 0.5, 0.25), 0.8)


@pytest.mark.parametrize("caption", ["Table 2: Bridges of Velin", "Tabelle 1 Brücken", "表 1"])
def test_a_caption_names_the_table_below_it(caption: str, tmp_path: Path) -> None:
    said = caption if caption.isascii() else "Tab. 1 Bridges"
    rows = table([["Bridge", "Length"], ["Orla", "412"], ["Kestrel", "187"]])
    document = read(pdf(tmp_path / "a.pdf", placed((72, 745, said)) + rows))
    assert [found.name for found in document.tables] == [said]
    assert document.text.startswith(f"{said}\nBridge | Length\n")


def test_heads_that_alternate_are_dropped(tmp_path: Path) -> None:
    words = ("one", "two", "three", "four", "five", "six")
    pages = [
        shown("Ada Frimm" if number % 2 else "The Kestrel Bridge", "", f"This is page {word}.")
        for number, word in enumerate(words)
    ]
    text = read(pdf(tmp_path / "a.pdf", shown("A first page."), *pages)).text
    assert "Ada Frimm" not in text
    assert "The Kestrel Bridge" not in text


def test_a_heading_is_a_line_of_its_own_in_both_columns(tmp_path: Path) -> None:
    left = [
        (72, 700 - 14 * n, text) for n, text in enumerate(["2 PIERS", *["The pier is long"] * 3])
    ]
    right = [
        (320, 700 - 14 * n, text) for n, text in enumerate(["3 LAMPS", *["The lamp is old"] * 3])
    ]
    text = read(pdf(tmp_path / "a.pdf", placed(*left) + placed(*right))).text
    assert "2 PIERS\nThe pier" in text
    assert "3 LAMPS\nThe lamp" in text


def test_what_only_looks_like_a_picture_stays() -> None:
    text = f"See {MARKERS[0]} and {MARKERS[1]}."
    part = Part(document="d", source="s", path="p", kind="text", title="", text=text)
    said = with_descriptions(part, {MARKERS[1]: "A chart."}).text
    assert said == f"See {MARKERS[0]} and\n\nA chart.\n\n."


MARKERS = [f"[[picture {number:016x}]]" for number in range(3)]


@given(
    st.lists(st.tuples(st.text("ab\n", max_size=5), st.sampled_from([*MARKERS, ""])), max_size=6),
    st.sampled_from(["", "said"]),
)
def test_a_description_moves_what_stands_after_it(
    pieces: list[tuple[str, str]], words: str
) -> None:
    text, places = "", []
    for piece, marker in pieces:
        text += f"{piece}X\n\n{marker}\n\n"
        places.append(
            Recognized(len(text) - len(marker) - 5, len(text) - len(marker) - 4, 1, (0,) * 4, 1)
        )
    part = Part(document="d", source="s", path="p", kind="text", title="", text=text)
    part = replace(part, recognized=tuple(places), pages=tuple(it.start for it in places))
    moved = with_descriptions(part, dict.fromkeys(MARKERS, words))
    assert [moved.text[it.start : it.end] for it in moved.recognized] == ["X"] * len(pieces)
    assert moved.pages == tuple(it.start for it in moved.recognized)
    assert moved.text.count("said") == (sum(bool(marker) for _, marker in pieces) if words else 0)
    assert "[[" not in moved.text
