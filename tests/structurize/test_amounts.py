"""What a figure amounts to, and of which time it is."""

import datetime

import pytest

from tasks.structurize.periods import Own, end_of, own_period, period_of
from tasks.structurize.units import Caption, caption_of, figure_of, scaled

FIRST_QUARTER = Own(datetime.date(2024, 3, 31), 3)


@pytest.mark.parametrize(
    ("text", "number", "unit"),
    [
        ("1,308,463", 1_308_463.0, ""),
        ("$1,308,463", 1_308_463.0, "USD"),
        ("$ (0.63)", -0.63, "USD"),
        ("(62,648 )", -62_648.0, ""),
        ("-95.62%", -95.62, "%"),
        ("(14.0%)", -14.0, "%"),
        ("$5.7 million", 5_700_000.0, "USD"),
        ("1,336.80亿元", 133_680_000_000.0, "元"),
        ("减少 0.31个百分点", -0.31, "%"),
        ("−5", -5.0, ""),
        (".5", 0.5, ""),
    ],
)
def test_a_figure_has_an_amount_and_a_unit(text: str, number: float, unit: str) -> None:
    figure = figure_of(text)
    assert figure is not None
    assert (figure.number, figure.unit) == (number, unit)


def test_a_remark_after_a_figure_is_no_part_of_it() -> None:
    figure = figure_of(" 822,352,936（注 1）")
    assert figure is not None
    assert (figure.start, figure.end, figure.number) == (1, 12, 822_352_936.0)


@pytest.mark.parametrize("text", ["", "-", "12 Main Street", "2024-024", "≥10.75", "March 31", "1.2.3", "不适用"])
def test_words_are_no_figure(text: str) -> None:
    assert figure_of(text) is None


@pytest.mark.parametrize(
    ("text", "caption"),
    [
        ("(In thousands, except shares and per share amounts)", Caption(1e3, "", True)),
        ("(in thousands, except per share data)", Caption(1e3, "", False)),
        ("Amounts in millions of dollars", Caption(1e6, "", False)),
        ("单位：元  币种：人民币", Caption(1.0, "元")),
        ("（货币单位：人民币百万元）", Caption(1e6, "元")),
        ("单位:万元", Caption(1e4, "元")),
        ("编制单位：北湖港务股份有限公司", None),
        ("in the thousand islands", None),
    ],
)
def test_a_caption_states_scale_and_unit(text: str, caption: Caption | None) -> None:
    assert caption_of(text) == caption


@pytest.mark.parametrize(
    ("row", "raw", "expected"),
    [
        ("Revenue", "12", (12_000.0, "", 1e3)),
        ("Net loss per share", "(0.63)", (-0.63, "", 1.0)),
        ("Weighted average shares outstanding", "500", (500.0, "shares", 1.0)),
        ("Gross margin", "12.5%", (12.5, "%", 1.0)),
        ("Fees ($)", "12", (12_000.0, "USD", 1e3)),
        ("Length (m)", "12", (12.0, "m", 1.0)),
        ("Common stock, 500 shares issued", "34", (34_000.0, "", 1e3)),
    ],
)
def test_the_caption_scales_money_only(row: str, raw: str, expected: tuple[float, str, float]) -> None:
    figure = figure_of(raw)
    assert figure is not None
    assert scaled(figure, Caption(1e3, "", spares_shares=True), row, "2023", "") == expected


@pytest.mark.parametrize(
    ("label", "context", "period"),
    [
        ("March 31, 2024", "", "2024-03-31"),
        ("March 31, 2024", "Balance Sheets For the quarterly period ended March 31, 2024", "2024-03-31"),
        ("Three Months Ended March 31, 2023", "", "2023-Q1"),
        ("2023", "Statements of Operations Three Months Ended March 31,", "2023-Q1"),
        ("Year Ended December 31, 2023", "", "2023"),
        ("Nine months ended June 30, 2024", "", "2023-10-01/2024-06-30"),
        ("2023年 12月 31日", "", "2023-12-31"),
        ("2024年1-3月", "", "2024-Q1"),
        ("2024年第一季度", "", "2024-Q1"),
        ("期末余额", "", "2024-03-31"),
        ("期初余额", "", "2023-12-31"),
        ("上年度期末余额（元）", "", "2023-12-31"),
        ("本期发生额", "", "2024-Q1"),
        ("上年同期", "", "2023-Q1"),
        ("Q2 2023", "", "2023-Q2"),
        ("Item", "", ""),
    ],
)
def test_a_column_is_of_a_time(label: str, context: str, period: str) -> None:
    assert period_of(label, FIRST_QUARTER, context) == period


def test_what_is_relative_needs_the_period_of_the_document() -> None:
    assert period_of("期末余额", Own()) == ""
    assert period_of("2023", Own()) == "2023"


@pytest.mark.parametrize(
    ("title", "text", "own"),
    [
        ("", "For the quarterly period ended March 31, 2024", FIRST_QUARTER),
        ("", "FOR THE FISCAL YEAR ENDED JUNE 30, 2023", Own(datetime.date(2023, 6, 30), 12)),
        ("北湖港务2024年第一季度报告", "", FIRST_QUARTER),
        ("", "北湖港务股份有限公司2023年年度报告", Own(datetime.date(2023, 12, 31), 12)),
        ("Bridges", "The bridge opened in 1931.", Own()),
    ],
)
def test_a_report_is_of_a_period(title: str, text: str, own: Own) -> None:
    assert own_period(title, text) == own


def test_periods_are_ordered_by_their_last_day() -> None:
    periods = ["2023", "2023-Q1", "2023-06-30", "2022-10-01/2023-09-30"]
    assert sorted(periods, key=end_of) == ["2023-Q1", "2023-06-30", "2022-10-01/2023-09-30", "2023"]
