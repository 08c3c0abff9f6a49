"""Excel workbooks: figures as displayed, and merged cells, notes and formulas with their row."""

import io
from collections.abc import Callable, Sequence
from datetime import date, datetime, time, timedelta
from pathlib import Path

import openpyxl
import pytest
from openpyxl.chart import BarChart
from openpyxl.comments import Comment
from openpyxl.worksheet.worksheet import Worksheet

from tasks.load.sources import compose, read_sources
from tasks.load.workbook import NO_VALUE, displayed
from tasks.tables.relations import relations_of
from tests.hostile.made import packed

PIERS: list[list[object]] = [["Pier", "Fee"], ["Orla", 3]]


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


def bytes_of(book: openpyxl.Workbook) -> bytes:
    made = io.BytesIO()
    book.save(made)
    return made.getvalue()


def lines(book: openpyxl.Workbook | bytes, tmp_path: Path) -> list[str]:
    path = tmp_path / "book.xlsx"
    path.write_bytes(book if isinstance(book, bytes) else bytes_of(book))
    loaded = read_sources([path])
    assert not loaded.skipped
    return loaded.parts[0].text.splitlines()


def test_a_merged_value_stands_in_each_of_its_rows(tmp_path: Path) -> None:
    rows: list[list[object]] = [["Coast", "Pier"], ["North", "Ambel"], ["", "Orla"], [], [None, 5]]
    assert lines(workbook([*rows, ["South", "Tarn"]], "A2:A5"), tmp_path)[1:] == [
        "Coast: North | Pier: Ambel",
        "Coast: North | Pier: Orla",
        "Coast: North | Pier: 5",
        "Coast: South | Pier: Tarn",
    ]


GROUPS: list[list[object]] = [
    ["Pier", "Summer", "", "Winter", ""],
    ["", "Boats", "Fee", "Boats", "Fee"],
]
GROUPED = "Pier | Summer / Boats | Summer / Fee | Winter / Boats | Winter / Fee"
NAMES = ["Pier", "Boats", "Fee", "Keeper", "Age"]


@pytest.mark.parametrize(
    ("rows", "merged", "header"),
    [
        (GROUPS, "A1:A2 B1:C1 D1:E1", GROUPED),
        (GROUPS, "", GROUPED),
        (
            [["", "Summer", "", "", ""], NAMES],
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
            "Pier | 2023 / Summer / Low | 2023 / Summer / High | 2023 / Winter / Low"
            " | 2023 / Winter / High",
        ),
        ([["The piers in summer", "", "", "", ""], NAMES], "A1:E1", " | ".join(NAMES)),
        ([["The piers", "", "", "", ""], NAMES], "A1:C1", " | ".join(NAMES)),
    ],
)
def test_groups_of_columns_are_part_of_their_names(
    rows: list[list[object]], merged: str, header: str, tmp_path: Path
) -> None:
    read = lines(workbook([*rows, ["Orla", 1, 2, 3, 4]], merged), tmp_path)
    named = zip(header.split(" | "), ("Orla", 1, 2, 3, 4), strict=True)
    assert read[-2:] == [header, " | ".join(f"{name}: {cell}" for name, cell in named)]


def test_pairs_above_a_table_are_no_header_of_it(tmp_path: Path) -> None:
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
    book = bytes_of(workbook([*PIERS, ["Vell", None]]))
    read = lines(packed(book, {"xl/worksheets/sheet1.xml": merged}), tmp_path)
    assert read == ["Pier | Fee", "Pier: Orla | Fee: 3", "Pier: Vell | Fee: 3"]


@pytest.mark.parametrize(
    ("stored", "computed", "shown"),
    [
        (b"<c r='C2'><f>B2</f></c>", True, NO_VALUE),
        (b"<c r='C2'><f t='shared' si='0'/></c>", True, NO_VALUE),
        (b"<c r='C2'><f>B2</f><v>0</v></c>", False, NO_VALUE),
        (b"<c r='C2'><f>B2</f><v>0</v></c>", True, "0"),
        (b"<c r='C2'><f>B2</f><v>120</v></c>", False, "120"),
        (b"<c r='C2' t='str'><f>B2</f><v></v></c>", False, ""),
    ],
)
def test_a_formula_shows_its_stored_value_or_that_it_has_none(
    stored: bytes, computed: bool, shown: str, tmp_path: Path
) -> None:
    book = bytes_of(workbook([["Pier", "Net", "Gross"], ["Orla", 100, "=B2"]]))
    replaced = {"xl/worksheets/sheet1.xml": (b'<c r="C2"><f>B2</f><v></v></c>', stored)}
    if computed:
        replaced["xl/workbook.xml"] = (b' fullCalcOnLoad="1"', b"")
    row = lines(packed(book, replaced), tmp_path)[1]
    assert row == f"Pier: Orla | Net: 100 | Gross: {shown}".removesuffix(" | Gross: ")


THREAD = "[Threaded comment]\n\nYour version of Excel allows you to read it.\n\nComment:\n    seen"


def test_notes_stand_at_the_end_of_their_row(tmp_path: Path) -> None:
    book = workbook(PIERS)
    said = {"B1": "in crowns", "B2": "was 4\nuntil May", "C2": THREAD, "A9": "to be continued"}
    for place, words in said.items():
        sheet_of(book)[place].comment = Comment(words, "Korb")
    assert lines(book, tmp_path) == [
        "Pier | Fee",
        "Fee (note): in crowns",
        "Pier: Orla | Fee: 3 | Fee (note): was 4 until May | Note: seen",
        "Pier (note): to be continued",
    ]


@pytest.mark.parametrize(
    "add",
    [
        lambda book: book.create_sheet("Empty"),
        lambda book: book.create_chartsheet("Chart", 0).add_chart(BarChart()),
    ],
    ids=["empty", "chart"],
)
def test_a_sheet_without_cells_is_ignored(
    add: Callable[[openpyxl.Workbook], object], tmp_path: Path
) -> None:
    book = workbook(PIERS)
    add(book)
    assert lines(book, tmp_path) == ["Pier | Fee", "Pier: Orla | Fee: 3"]


def test_a_workbook_keeps_what_it_displays_down_to_the_cell(tmp_path: Path) -> None:
    names = ["Port", "Code", "Traffic", "Share", "Loss", "Since"]
    book = workbook([names, ["Nordlicht", 7, 1308463, 0.125, -415.5, date(2024, 3, 31)]])
    formats = ["000", '"$"#,##0', "0.0%", "#,##0.00_);(#,##0.00)", "mmm yyyy"]
    for place, number_format in zip(("B2", "C2", "D2", "E2", "F2"), formats, strict=True):
        sheet_of(book)[place].number_format = number_format
    book.save(tmp_path / "ports.xlsx")
    [document] = compose(read_sources([tmp_path]).parts)
    said = ["Nordlicht", "007", "$1,308,463", "12.5%", "-415.50", "2024-03-31"]
    assert document.text.splitlines() == [
        " | ".join(names),
        " | ".join(f"{name}: {cell}" for name, cell in zip(names, said, strict=True)),
    ]
    [table] = relations_of([document])
    cells = [cell for cell in table.rows[0] if cell]
    assert [cell.raw for cell in cells] == said
    assert [cell.amount.number for cell in cells[2:5] if cell.amount] == [1_308_463.0, 12.5, -415.5]


@pytest.mark.parametrize(
    ("value", "number_format", "expected"),
    [
        (-1234.5, '_($* #,##0.00_);_($* (#,##0.00);_($* "-"??_);_(@_)', "-$1,234.50"),
        (-0.4, "0", "0"),
        (1308463, '#,##0.0,,"M"', "1308463"),
        (1234.5, "[$€-407] #,##0.00", "€ 1,234.50"),
        (3, '"Q"0', "Q3"),
        (0.1 + 0.2, "General", "0.3"),
        (True, "General", "TRUE"),
        ("#DIV/0!", "0", "#DIV/0!"),
        (datetime(2024, 3, 31), "mmm-yy", "2024-03-31"),  # noqa: DTZ001 - sheets know no time zones
        (datetime(2024, 3, 31, 14, 5), "m/d/yy h:mm", "2024-03-31 14:05:00"),  # noqa: DTZ001
        (datetime(1900, 1, 1, 3, 5), "h:mm", "03:05:00"),  # noqa: DTZ001
        (time(9, 5), "h:mm AM/PM", "09:05:00"),
        (timedelta(hours=27, minutes=5), "[h]:mm", "27:05"),
        (timedelta(hours=127, minutes=5, seconds=9), "[hh]:mm:ss", "127:05:09"),
        (timedelta(minutes=90, seconds=5), "[mm]:ss", "90:05"),
    ],
)
def test_a_cell_is_displayed_by_its_format(
    value: object, number_format: str, expected: str
) -> None:
    assert displayed(value, number_format) == expected
