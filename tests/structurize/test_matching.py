"""Which cells answer an attribute, by whatever name, and how the table that a reader sees looks."""

import pytest

from storage.structures import Schema
from tasks.structurize.tables import NOT_FOUND, cells_in, markdown, matching, thing_of
from tests.structurize.reports import BALANCE, REPORT, document


@pytest.mark.parametrize(
    ("attribute", "raw"),
    [
        ("Cash balance", "1,308"),
        ("trade receivables", "778"),
        ("undistributed profits", "(415)"),
        ("sales", "5,448"),
        ("net income", "(63     )"),
        ("Basic Earnings Per Share", "(0.63)"),
        ("total shares outstanding", "7,240,905"),
        ("current assets", "2,086"),
    ],
)
def test_a_row_answers_to_the_other_names_of_its_figure(attribute: str, raw: str) -> None:
    found = matching(Schema(things=(), attributes=(attribute,)), cells_in(document(BALANCE)))[attribute]
    assert found[0].raw == raw, [(cell.row, cell.raw) for cell in found]
    assert found[0].attribute == attribute


@pytest.mark.parametrize(
    ("attribute", "raw"),
    [("总资产", "12,096.62"), ("营收", "1,321,990.13"), ("净利润", "-15,056,638.68"), ("应付帐款", "1,453.64")],
)
def test_a_chinese_row_answers_too_and_the_group_comes_before_the_parent(attribute: str, raw: str) -> None:
    found = matching(Schema(things=(), attributes=(attribute,)), cells_in(document(REPORT)))[attribute]
    assert found[0].raw == raw, [(cell.row, cell.raw) for cell in found]


@pytest.mark.parametrize("attribute", ["accounts payable", "non-current assets", "number of lighthouses", "长期借款"])
def test_what_no_row_names_is_not_found(attribute: str) -> None:
    schema = Schema(things=(), attributes=(attribute,))
    found = matching(schema, cells_in(document(BALANCE)))
    assert found == {attribute: []}
    assert markdown(schema, [("Nordlicht", found)]).endswith(f"| Nordlicht | {NOT_FOUND} |")


def test_the_asked_period_comes_second_after_the_current_one() -> None:
    schema = Schema(things=(), attributes=("revenue",), periods=("2023",))
    found = matching(schema, cells_in(document(BALANCE)))["revenue"]
    assert [cell.period for cell in found[:2]] == ["2024-Q1", "2023-Q1"]


def test_the_markdown_table_shows_raw_figures_with_what_they_are_in() -> None:
    schema = Schema(things=(), attributes=("revenue", "inventory"))
    table = markdown(schema, [("Nordlicht", matching(schema, cells_in(document(BALANCE))))])
    assert table.splitlines() == [
        "|  | revenue | inventory |",
        "| --- | --- | --- |",
        "| Nordlicht | 5,448 (in thousands, 2024-Q1) | not found |",
    ]


def test_a_document_is_called_by_the_company_that_reports() -> None:
    assert thing_of(document(BALANCE, "q1")) == ("q1", "NORDLICHT FERRIES, INC.")
    assert {"北湖港务", "北湖港务股份有限公司"} <= set(thing_of(document(REPORT, "2024年第一季度报告")))
