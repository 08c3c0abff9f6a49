"""Tables of every form that documents have: each figure with its labels, its amount and its place."""

from collections.abc import Sequence

from storage.structures import Cell, Schema
from tasks.structurize.tables import cells_in, markdown, matching
from tests.structurize.reports import BALANCE, REPORT, document


def checked(text: str) -> tuple[Cell, ...]:
    """The cells of a text, each in its place."""
    cells = cells_in(document(text))
    for cell in cells:
        assert text[cell.start : cell.end] == cell.raw != ""
        assert text[cell.quote_start : cell.quote_start + len(cell.quote)] == cell.quote
        assert cell.raw in cell.quote
    return cells


def one(cells: Sequence[Cell], row: str, period: str) -> Cell:
    [found] = [cell for cell in cells if cell.row.startswith(row) and cell.period == period and cell.table >= 0]
    return found


def test_figures_of_a_flattened_table_have_their_columns_scale_and_sign() -> None:
    cells = checked(BALANCE)
    cash = one(cells, "Cash and cash", "2024-03-31")
    assert (cash.raw, cash.number, cash.scale, cash.column) == ("1,308", 1_308_000.0, 1000.0, "March 31, 2024")
    assert cash.heading == "Condensed Consolidated Balance Sheets > Current assets"
    assert one(cells, "Cash and cash", "2023-12-31").number == 2_204_000.0
    receivable = one(cells, "Accounts receivable", "2023-12-31")
    assert receivable.row.endswith("at March 31, 2024 and December 31, 2023"), "the label goes on in the next line"
    assert one(cells, "Contract assets", "2024-03-31").number == 0.0, "a dash is nil"
    assert one(cells, "Accumulated deficit", "2024-03-31").number == -415_000.0
    assert one(cells, "Net loss", "2024-Q1").raw == "(63     )"
    assert one(cells, "Net loss", "2024-Q1").number == -63_000.0
    earnings = one(cells, "Basic and diluted", "2024-Q1")
    assert (earnings.raw, earnings.number, earnings.scale) == ("(0.63)", -0.63, 1.0), "no share is worth thousands"


def test_the_number_of_a_page_is_no_cell() -> None:
    assert not [cell for cell in checked(BALANCE) if cell.raw == "7"]


def test_a_sentence_gives_its_figures_with_its_words() -> None:
    [shares] = [cell for cell in checked(BALANCE) if cell.raw == "7,240,905"]
    assert (shares.table, shares.unit, shares.number, shares.period) == (-1, "shares", 7_240_905.0, "2024-05-01")


def test_markdown_tables_survive_what_page_breaks_do_to_them() -> None:
    cells = checked(REPORT)
    assert one(cells, "货币资金", "2024-03-31").number == 18_326_100.0, "the caption says ten thousands"
    assert one(cells, "应付账款", "2023-12-31").raw == "1,563.37", "a row above a rule after a page break"
    assert one(cells, "资产总计", "2024-03-31").unit == "元"
    assert one(cells, "应收账款", "2023-12-31").number is None, "an empty cell says nothing"
    revenue, cost = one(cells, "其中：营业收入", "2024-Q1"), one(cells, "减：营业成本", "2023-Q1")
    assert (revenue.scale, revenue.heading) == (1.0, "2、合并利润表")
    assert cost.raw == "18,308,615.92", "a row glued to the row before it"


def test_figures_keep_their_format() -> None:
    """Structurizing by a model turned $1,308,463 into 138463 (StructRAG, section 4.4)."""
    text = "| Item | 2023 |\n|---|---|\n| Net sales | $1,308,463 |\n| Margin | 12.50% |\n| Code | 007 |\n"
    cells = checked(text)
    assert [cell.raw for cell in cells] == ["$1,308,463", "12.50%", "007"]
    assert [(cell.number, cell.unit) for cell in cells[:2]] == [(1_308_463.0, "USD"), (12.5, "%")]
    found = matching(Schema(things=(), attributes=("net sales",)), cells)
    assert "$1,308,463" in markdown(Schema(things=(), attributes=("net sales",)), [("Acme", found)])


def test_rows_of_a_spreadsheet_name_their_columns() -> None:
    text = "Bridge | Length (m) | Opened\nBridge: Orla | Length (m): 412.5 | Opened: 1931\n"
    text += "Bridge: Kestrel | Length (m): 98"
    cells = [cell for cell in checked(text) if cell.table >= 0]
    assert [(cell.row, cell.column, cell.raw, cell.unit) for cell in cells] == [
        ("Orla", "Length (m)", "412.5", "m"),
        ("Orla", "Opened", "1931", ""),
        ("Kestrel", "Length (m)", "98", "m"),
    ]
    found = matching(Schema(things=("Kestrel",), attributes=("length",)), cells)
    assert [cell.raw for cell in found["length"]] == ["98"], "of the thing that is asked about"


def test_cells_on_lines_of_their_own_are_a_table_too() -> None:
    text = (
        "北湖港务股份有限公司2024年第一季度报告\n单位：元\n项目\n期末余额\n期初余额\n流动资产：\n"
        "货币资金\n6,791,097.72\n5,825,507.28\n结算备付金\n存货\n2,116.71\n914.98\n"
    )
    cells = checked(text)
    assert [(cell.row, cell.raw, cell.period) for cell in cells if cell.table >= 0] == [
        ("货币资金", "6,791,097.72", "2024-03-31"),
        ("货币资金", "5,825,507.28", "2023-12-31"),
        ("存货", "2,116.71", "2024-03-31"),
        ("存货", "914.98", "2023-12-31"),
    ]


def test_signs_in_cells_of_their_own_belong_to_the_figure() -> None:
    text = (
        "|  | Three Months Ended March 31, |  |  |  |  |\n|---|---|---|---|---|---|\n|  | 2024 |  |  | 2023 |  |\n"
        "| Net loss | $ | (63 | ) | $ | 12 |\n| Rate | | 4.5 | % | | 5.0 |\n"
    )
    cells = checked(text)
    assert [(cell.row, cell.raw, cell.number, cell.period) for cell in cells] == [
        ("Net loss", "(63", -63.0, "2024-Q1"),
        ("Net loss", "12", 12.0, "2023-Q1"),
        ("Rate", "4.5", 4.5, "2024-Q1"),
        ("Rate", "5.0", 5.0, "2023-Q1"),
    ]


def test_a_column_of_a_data_set_answers_without_its_unit() -> None:
    text = "name | length_m\nname: Orla Bridge | length_m: 412.5\nname: Kestrel Bridge | length_m: 98"
    found = matching(Schema(things=("Orla Bridge",), attributes=("length",)), checked(text))["length"]
    assert [(cell.raw, cell.unit) for cell in found] == [("412.5", "m")]


def test_a_sentence_says_what_its_figure_measures() -> None:
    cells = checked(
        "The Orla Bridge is 412 m long and cost 310,000 crowns in 1931.\n奥拉桥长412米，每天有1,200辆车通过。"
    )
    assert [(cell.raw, cell.unit, cell.period) for cell in cells] == [
        ("412", "m", ""),
        ("310,000", "crowns", "1931"),
        ("412", "米", ""),
        ("1,200", "辆", ""),
    ]
    found = matching(Schema(things=(), attributes=("cost",)), cells)["cost"]
    assert found[0].raw == "310,000"


def test_a_row_may_name_the_time() -> None:
    text = "Year | Traffic\nYear: 2022 | Traffic: 1,200\nYear: 2023 | Traffic: 1,308"
    assert [(cell.raw, cell.period) for cell in checked(text)] == [("1,200", "2022"), ("1,308", "2023")]


def test_a_table_goes_on_after_the_foot_of_a_page() -> None:
    text = (
        "Balance Sheets\n                         March 31, 2024     December 31, 2023\n"
        "Cash                          1,308                 2,204\n"
        "The accompanying notes are an integral part of these financial statements and of all that is in them.\n"
        "Total liabilities             1,100                 1,050\n"
    )
    liabilities = one(checked(text), "Total liabilities", "2024-03-31")
    assert (liabilities.raw, liabilities.heading) == ("1,100", "Balance Sheets")


def test_equal_cells_of_a_merged_column_count_once() -> None:
    text = "|项目|项目|2023年|\n|---|---|---|\n|吞吐量（万吨）|吞吐量（万吨）|156.5|\n"
    [cell] = checked(text)
    assert (cell.row, cell.raw, cell.number, cell.period) == ("吞吐量（万吨）", "156.5", 1_565_000.0, "2023")


def test_long_lines_of_blanks_and_rules_are_read_in_linear_time() -> None:
    for text in (
        "|" + "-" * 50_000 + "x",
        "|$" + " " * 50_000 + "5 apples|",
        "a" + " " * 50_000 + "1,234",
        "1," * 20_000,
    ):
        checked(text)
