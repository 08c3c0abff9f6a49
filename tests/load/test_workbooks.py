"""Excel workbooks: what a sheet says beside plain values stays with its row."""

import io
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from pathlib import Path

import openpyxl
import pytest
from openpyxl.chart import BarChart
from openpyxl.comments import Comment
from openpyxl.worksheet.worksheet import Worksheet

from tasks.load.sources import read_sources
from tasks.load.workbook import NO_VALUE
from tests.hostile.made import packed


def workbook(rows: Sequence[Sequence[object]], merged: str = "") -> openpyxl.Workbook:
    book = openpyxl.Workbook()
    sheet = sheet_of(book)
    for row in rows:
        sheet.append(row)
    for region in merged.split():
        sheet.merge_cells(region)
    return book


def sheet_of(book: openpyxl.Workbook) -> Worksheet:
    sheet = book.active
    assert isinstance(sheet, Worksheet)
    return sheet


def lines(book: openpyxl.Workbook | bytes, tmp_path: Path) -> list[str]:
    path = tmp_path / "book.xlsx"
    if isinstance(book, bytes):
        path.write_bytes(book)
    else:
        book.save(path)
    loaded = read_sources([path])
    assert not loaded.skipped
    return loaded.parts[0].text.splitlines()


def bytes_of(book: openpyxl.Workbook) -> bytes:
    made = io.BytesIO()
    book.save(made)
    return made.getvalue()


def test_a_merged_value_stands_in_each_of_its_rows(tmp_path: Path) -> None:
    rows: list[list[object]] = [
        ["Coast", "Pier", "Fee"],
        ["North", "Ambel", 3],
        ["", "Orla", 4],
        ["", "Vell", 5],
    ]
    read = lines(workbook([*rows, ["South", "Tarn", 6]], "A2:A4"), tmp_path)
    assert read[2:] == [
        "Coast: North | Pier: Orla | Fee: 4",
        "Coast: North | Pier: Vell | Fee: 5",
        "Coast: South | Pier: Tarn | Fee: 6",
    ]


def test_a_merged_region_goes_on_after_an_empty_row(tmp_path: Path) -> None:
    rows: list[list[object]] = [["Coast", "Pier"], ["North", 3], [], [None, 5]]
    assert lines(workbook(rows, "A2:A4"), tmp_path)[1:] == [
        "Coast: North | Pier: 3",
        "Coast: North | Pier: 5",
    ]


@pytest.mark.parametrize(
    ("rows", "merged", "header"),
    [
        (
            [["Pier", "Summer", "", "Winter", ""], ["", "Boats", "Fee", "Boats", "Fee"]],
            "A1:A2 B1:C1 D1:E1",
            "Pier | Summer / Boats | Summer / Fee | Winter / Boats | Winter / Fee",
        ),
        (
            [["", "Summer", "", "", ""], ["Pier", "Boats", "Fee", "Keeper", "Age"]],
            "B1:C1",
            "Pier | Summer / Boats | Summer / Fee | Keeper | Age",
        ),
        (
            [
                ["Pier", "2023", "", "", ""],
                ["", "Summer", "", "Winter", ""],
                ["", "Low", "High", "Low", "High"],
            ],
            "A1:A3 B1:E1 B2:C2 D2:E2",
            (
                "Pier | 2023 / Summer / Low | 2023 / Summer / High | 2023 / Winter / Low | 2023 / "
                "Winter / High"
            ),
        ),
        (
            [["Pier", "Summer", "", "Winter", ""], ["", "Boats", "Fee", "Boats", "Fee"]],
            "",
            "Pier | Summer / Boats | Summer / Fee | Winter / Boats | Winter / Fee",
        ),
        (
            [["The piers in summer", "", "", "", ""], ["Pier", "Boats", "Fee", "Keeper", "Age"]],
            "A1:E1",
            "Pier | Boats | Fee | Keeper | Age",
        ),
        (
            [["The piers", "", "", "", ""], ["Pier", "Boats", "Fee", "Keeper", "Age"]],
            "A1:C1",
            "Pier | Boats | Fee | Keeper | Age",
        ),
    ],
)
def test_groups_of_columns_are_part_of_their_names(
    rows: list[list[object]], merged: str, header: str, tmp_path: Path
) -> None:
    read = lines(workbook([*rows, ["Orla", 1, 2, 3, 4]], merged), tmp_path)
    assert read[-2] == header
    named = zip(header.split(" | "), ("Orla", 1, 2, 3, 4), strict=True)
    assert read[-1] == " | ".join(f"{name}: {cell}" for name, cell in named)


def test_names_above_a_table_are_no_header_of_it(tmp_path: Path) -> None:
    rows: list[list[object]] = [["Area", "Sound"], ["By", "Office"], [], ["Day", "Low", "High"]]
    assert lines(workbook([*rows, ["3 May", 3, 9]]), tmp_path) == [
        "Area | Sound",
        "By | Office",
        "Day | Low | High",
        "Day: 3 May | Low: 3 | High: 9",
    ]


def test_a_region_of_the_whole_sheet_is_bounded(tmp_path: Path) -> None:
    whole = b"<mergeCell ref='A1:XFD1048576'/><mergeCell ref='B2:XFD1048576'/>"
    merged = (b"</sheetData>", b"</sheetData><mergeCells>" + whole + b"</mergeCells>")
    book = bytes_of(workbook([["Pier", "Fee"], ["Orla", 3], ["Vell", None]]))
    read = lines(packed(book, {"xl/worksheets/sheet1.xml": merged}), tmp_path)
    assert read == ["Pier | Fee", "Pier: Orla | Fee: 3", "Pier: Vell | Fee: 3"]


def test_a_formula_without_a_value_is_told(tmp_path: Path) -> None:
    rows: list[list[object]] = [["Pier", "Net", "Gross"], ["Orla", 100, "=B2*1.2"]]
    assert lines(workbook(rows), tmp_path)[1] == f"Pier: Orla | Net: 100 | Gross: {NO_VALUE}"


@pytest.mark.parametrize(
    ("stored", "mode", "shown"),
    [
        (b"<c r='C2'><f>B2</f><v>0</v></c>", b"", NO_VALUE),
        (b"<c r='C2'><f>B2</f><v>0</v></c>", b"no", "0"),
        (b"<c r='C2'><f>B2</f><v>120</v></c>", b"", "120"),
        (b"<c r='C2' t='str'><f>B2</f><v></v></c>", b"", ""),
        (b"<c r='C2'><f t='shared' si='0'/></c>", b"", NO_VALUE),
    ],
)
def test_a_stored_value_of_a_formula_is_read(
    stored: bytes, mode: bytes, shown: str, tmp_path: Path
) -> None:
    book = bytes_of(workbook([["Pier", "Net", "Gross"], ["Orla", 100, "=B2"]]))
    replaced = {"xl/worksheets/sheet1.xml": (b'<c r="C2"><f>B2</f><v></v></c>', stored)}
    if mode:
        replaced["xl/workbook.xml"] = (b' fullCalcOnLoad="1"', b"")
    row = lines(packed(book, replaced), tmp_path)[1]
    assert row == f"Pier: Orla | Net: 100 | Gross: {shown}".removesuffix(" | Gross: ")


def test_notes_stand_at_the_end_of_their_row(tmp_path: Path) -> None:
    book = workbook([["Pier", "Fee"], ["Orla", 3]])
    sheet = sheet_of(book)
    said = {"B1": "in crowns", "B2": "was 4\nuntil May", "C2": "seen", "A9": "to be continued"}
    for place, words in said.items():
        sheet[place].comment = Comment(words, "Korb")
    assert lines(book, tmp_path) == [
        "Pier | Fee",
        "Fee (note): in crowns",
        "Pier: Orla | Fee: 3 | Fee (note): was 4 until May | Note: seen",
        "Pier (note): to be continued",
    ]


def test_a_thread_of_notes_has_its_own_words_only(tmp_path: Path) -> None:
    book = workbook([["Pier", "Fee"], ["Orla", 3]])
    older = (
        "[Threaded comment]\n\nYour version of Excel allows you to read it.\n\nComment:\n    was 4"
    )
    sheet_of(book)["B2"].comment = Comment(older, "Korb")
    assert lines(book, tmp_path)[1] == "Pier: Orla | Fee: 3 | Fee (note): was 4"


def empty_sheet(book: openpyxl.Workbook) -> None:
    book.create_sheet("Empty")


def chart_sheet(book: openpyxl.Workbook) -> None:
    book.create_chartsheet("Chart", 0).add_chart(BarChart())


@pytest.mark.parametrize("more", [empty_sheet, chart_sheet])
def test_a_sheet_without_cells_costs_nothing(
    more: Callable[[openpyxl.Workbook], None], tmp_path: Path
) -> None:
    book = workbook([["Pier", "Fee"], ["Orla", 3]])
    more(book)
    assert lines(book, tmp_path) == ["Pier | Fee", "Pier: Orla | Fee: 3"]


@pytest.mark.parametrize(
    ("value", "number_format", "shown"),
    [
        (timedelta(hours=27, minutes=5), "[h]:mm", "27:05"),
        (timedelta(hours=127, minutes=5, seconds=9), "[hh]:mm:ss", "127:05:09"),
        (timedelta(minutes=90, seconds=5), "[mm]:ss", "90:05"),
        (timedelta(hours=3), "[h]:mm", "3:00"),
        (datetime(1900, 1, 1, 3, 5), "h:mm", "03:05:00"),  # noqa: DTZ001 - sheets know no zones
    ],
)
def test_a_duration_is_shown_by_its_format(
    value: object, number_format: str, shown: str, tmp_path: Path
) -> None:
    book = workbook([["Shift", "Lasts"], ["Night", value]])
    sheet_of(book)["B2"].number_format = number_format
    assert lines(book, tmp_path)[1] == f"Shift: Night | Lasts: {shown}"
