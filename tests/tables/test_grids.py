"""Reading tables: every form with its columns, every cell with the characters that stand in the stored text."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prompts.text.amounts import amount_of, amounts_in, scale_stated
from tasks.tables.relations import NIL, grids_in, relations_of
from tests.tables.documents import PORTS, STATEMENT, branches, chinese, document, ports, samples, statements

WORDS = st.text(string.ascii_letters + "北湖桥 ", min_size=1, max_size=8).map(str.strip)
WORDS = WORDS.filter(lambda word: word.lower() not in NIL)  # such a cell is empty
CELLS = st.one_of(WORDS, st.integers(-9_999, 9_999_999).map(lambda number: f"{number:,}"))


def read(text: str) -> list[list[str]]:
    """The first table as text, its columns first."""
    grid = grids_in(text)[0]
    return [list(grid.columns), *([text[slice(*span)] if span else "" for span in row] for row in grid.rows)]


def test_every_cell_stands_where_it_says() -> None:
    for documents in (samples(), chinese(), ports(), statements(), branches()):
        texts = {one.id: one.text for one in documents}
        found = [cell for table in relations_of(documents) for row in table.rows for cell in row if cell]
        assert found
        assert all(texts[cell.document][cell.start : cell.end] == cell.raw for cell in found if cell.document)


@given(st.lists(st.lists(CELLS, min_size=3, max_size=3), min_size=1, max_size=6), st.booleans())
def test_a_table_is_read_as_it_was_written(rows: list[list[str]], markdown: bool) -> None:
    columns = ["Name", "First", "Second"]
    if markdown:
        text = "| " + " | ".join(columns) + " |\n|---|---|---|\n"
        text += "\n".join("| " + " | ".join(row) + " |" for row in rows)
    else:
        pairs = ([f"{name}: {cell}" for name, cell in zip(columns, row, strict=True)] for row in rows)
        text = "\n".join(" | ".join(pair) for pair in pairs)
    assert read(text) == [columns, *rows]


def test_columns_that_blanks_keep_have_the_header_above_them() -> None:
    text = STATEMENT.format(name="Orrel Foods", scale="thousands", assets="5,308")
    assert read(text) == [
        ["", "March 31, 2024", "December 31, 2023"],
        ["Cash and cash equivalents", "1,308", "2,204"],
        ["Accounts receivable", "(63  )", "12"],
        ["Total assets", "5,308", "6,204"],
    ]
    [table] = relations_of([document("o", text)])
    receivable = table.rows[1][1]
    assert receivable is not None
    assert (receivable.raw, receivable.number, receivable.scale) == ("(63  )", -63_000.0, 1000.0)


def test_signs_in_cells_of_their_own_belong_to_no_column() -> None:
    text = (
        "|  | Three Months Ended March 31, |  |  |  |  |\n|---|---|---|---|---|---|\n|  | 2024 |  |  | 2023 |  |\n"
        "| Net loss | $ | (63 | ) | $ | 12 |\n"
    )
    grid = grids_in(text)[0]
    cells = {name: text[slice(*span)] for name, span in zip(grid.columns, grid.rows[0], strict=True) if span}
    assert cells == {
        "": "Net loss", "Three Months Ended March 31, 2024": "(63", "Three Months Ended March 31, 2023": "12",
    }  # fmt: skip


def test_a_heading_names_its_table_and_running_text_is_none() -> None:
    assert [grid.heading for grid in grids_in(PORTS)] == ["Ports of the coast"]
    assert grids_in("The bridge is 412 m long; it cost 3 million.\nNote: see | below.") == ()


def test_long_lines_of_blanks_and_bars_are_read_in_linear_time() -> None:
    for text in ("|" + "-" * 50_000 + "x", "|$" + " " * 50_000 + "5|", "a" + " " * 50_000 + "1,234", "1," * 20_000):
        grids_in(text)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("$1,308,463", 1_308_463.0), ("(0.63)", -0.63), ("$ (415)", -415.0), ("(63", -63.0), ("12.50%", 12.5),
        ("3.5 million", 3.5e6), ("$5.2M", 5.2e6), ("1.2万", 12_000.0), ("1.5亿元", 1.5e8), ("412.5 m", 412.5),
        ("5m", 5.0), ("450人", 450.0), ("412,5", 412.5), ("1.234,56", 1234.56), ("1,308 (1)", 1308.0), ("007", 7.0),
        ("2023 Q1", None), ("10:30", None), ("2024-03-31", None), ("Q1", None), ("—", None), ("km 5", None), ("", None),
    ],
)  # fmt: skip
def test_amounts(text: str, number: float | None) -> None:
    found = amount_of(text)
    assert (found.number if found else None) == number


def test_amounts_in_running_text_and_scales_of_headings() -> None:
    found = amounts_in("over $1,000,000 and below 30 million, 1千万以上 in 2023 Q1")
    assert [one.number for one in found] == [1e6, 3e7, 1e7, 2023.0]
    stated = {
        "(in thousands)": 1e3,
        "营业收入（万元）": 1e4,
        "单位：百万元": 1e6,
        "revenue_millions": 1e6,
        "length_m": 1.0,
    }
    assert {label: scale_stated(label) for label in stated} == stated
