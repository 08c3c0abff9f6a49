"""Spreadsheet cells as the sheet displays them, by their number formats."""

import datetime
from pathlib import Path

import openpyxl
import pytest

from storage.records import Document
from tasks.load.compose import compose
from tasks.load.figures import shown
from tasks.load.sources import read_sources
from tasks.tables.relations import relations_of

ACCOUNTS = '_($* #,##0.00_);_($* (#,##0.00);_($* "-"??_);_(@_)'
DAY = datetime.datetime(2024, 3, 31)  # noqa: DTZ001 - sheets know no time zones


@pytest.mark.parametrize(
    ("value", "number_format", "expected"),
    [
        (-1234.5, ACCOUNTS, "$(1,234.50)"),
        (0, ACCOUNTS, "$-"),
        (-5, '"$"#,##0', "-$5"),
        (-0.4, "0", "0"),
        (-0.126, "0.0%", "-12.6%"),
        (0, "#", ""),
        (0.5, "#.##", ".5"),
        (5551234, "000-0000", "555-1234"),
        (20240331, '0000"/"00"/"00', "2024/03/31"),
        (42, "00000", "00042"),
        (1234567.891, "0.00E+00", "1.23E+06"),
        (0.00012, "0.0E-00", "1.2E-04"),
        (9.999, "0.0E+0", "1.0E+1"),
        (1.25, "# ?/?", "1 1/4"),
        (0.5, "# ??/??", "1/2"),
        (2.375, "# ?/8", "2 3/8"),
        (1500, '[>=1000]#,##0.0," K";0', "1.5 K"),
        (500, '[>=1000]#,##0.0," K";0', "500"),
        (12.0, 'General" kg"', "12 kg"),
        (1308463, '#,##0.0,,"M"', "1.3M"),
        (1234.5, '#,##0.00 "€"', "1,234.50 €"),
        (1234.5, "[$€-407] #,##0.00", "€ 1,234.50"),
        (0, "#,##0;-#,##0;", ""),
        (0, "#,##0;-#,##0;–", "–"),
        (3, '"Q"0', "Q3"),
        ("draft", '0;0;0;"see "@', "see draft"),
        ("#DIV/0!", "0", "#DIV/0!"),
    ],
)
def test_numbers(value: object, number_format: str, expected: str) -> None:
    assert shown(value, number_format) == expected


@pytest.mark.parametrize(
    ("value", "number_format", "expected"),
    [
        (DAY, "yyyy", "2024"),
        (DAY, "mmm-yy", "Mar-24"),
        (DAY, "mmmm d, yyyy", "March 31, 2024"),
        (DAY, 'yyyy"年"m"月"d"日"', "2024年3月31日"),
        (DAY, "yyyy/mm/dd", "2024/03/31"),
        (DAY, "m/d/yy", "2024-03-31"),
        (DAY, "dd.mm.yyyy", "2024-03-31"),
        (DAY.replace(hour=14, minute=5), "m/d/yy h:mm", "2024-03-31 14:05:00"),
        (DAY.replace(hour=14, minute=5), "yyyy-mm-dd hh:mm", "2024-03-31 14:05"),
        (datetime.time(9, 5), "h:mm AM/PM", "9:05 AM"),
        (datetime.time(0, 5), "h:mm AM/PM", "12:05 AM"),
        (datetime.time(21, 5, 7), "hh:mm:ss", "21:05:07"),
        (datetime.timedelta(hours=26, minutes=3), "[h]:mm", "26:03"),
        (datetime.timedelta(hours=26, minutes=3, seconds=9), "[h]:mm:ss", "26:03:09"),
    ],
)
def test_dates_times_and_durations(value: object, number_format: str, expected: str) -> None:
    assert shown(value, number_format) == expected


def test_a_workbook_keeps_what_it_displays_down_to_the_cell(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    rows = [["Port", "Code", "Traffic", "Share", "Loss", "Since"], ["Nordlicht", 7, 1308463, 0.125, -415.5, DAY]]
    for row in rows:
        sheet.append(row)
    formats = {"B2": "000", "C2": '"$"#,##0', "D2": "0.0%", "E2": "#,##0.00_);(#,##0.00)", "F2": "mmm yyyy"}
    for place, number_format in formats.items():
        sheet[place].number_format = number_format
    book.save(tmp_path / "ports.xlsx")
    document = read(tmp_path / "ports.xlsx")
    assert document.text.splitlines()[1] == (
        "Port: Nordlicht | Code: 007 | Traffic: $1,308,463 | Share: 12.5% | Loss: (415.50) | Since: Mar 2024"
    )
    [table] = relations_of([document])
    cells = {name: cell for name, cell in zip(table.columns, table.rows[0], strict=True) if cell}
    assert (cells["Traffic"].raw, cells["Traffic"].number) == ("$1,308,463", 1_308_463.0)
    assert (cells["Loss"].number, cells["Share"].number, cells["Code"].raw) == (-415.5, 12.5, "007")
    assert all(document.text[cell.start : cell.end] == cell.raw for cell in cells.values())


def read(path: Path) -> Document:
    return compose(read_sources([path]).parts)[0]
