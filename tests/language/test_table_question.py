"""Questions over tables: which operation, attribute, things, periods and ranges their wording asks for."""

import pytest

from prompts.language.table_bands import band_of, figures_in
from prompts.language.table_plan import Band, TablePlan
from prompts.language.table_question import plan_of


def planned(question: str) -> TablePlan:
    found = plan_of(question)
    assert found is not None
    return found.plan


@pytest.mark.parametrize(
    ("question", "operation", "attribute", "things"),
    [
        ("What is the crew size of Harbour Ferries Ltd?", "lookup", "crew size", ("Harbour Ferries Ltd",)),
        ("What is the opening balance of goods in stock for ORREL FOODS INC?", "lookup",
         "opening balance of goods in stock", ("ORREL FOODS INC",)),
        ("How many passengers did Port Hask - Saltmere carry in 2023?", "lookup", "passengers",
         ("Port Hask - Saltmere",)),
        ("Which company reported revenue of $3.2 million?", "which", "revenue", ()),
        ("What is the name of the firm with net debt of $(45,120)?", "which", "net debt", ()),
        ("Which route carried the most passengers in 2023?", "top", "passengers", ()),
        ("Which two companies have the lowest total liabilities?", "top", "total liabilities", ()),
        ("Which had higher revenue in 2022, Acme Corp or Bolt Inc?", "top", "revenue", ("Acme Corp", "Bolt Inc")),
        ("List the 'Deferred Income' of each of the companies in ascending order.", "list", "Deferred Income", ()),
        ("Compare the revenue of Acme and Bolt.", "list", "revenue", ("Acme", "Bolt")),
        ("How many companies have total assets over $1 billion?", "count", "total assets", ()),
        ("What is the average revenue of the companies?", "aggregate", "revenue", ()),
        ("What is the difference in revenue between Acme Corp and Bolt Inc?", "aggregate", "revenue",
         ("Acme Corp", "Bolt Inc")),
        ("How did Acme's cash flow change from 2021 to 2023?", "trend", "cash flow", ("Acme",)),
        ("What was the trend in inventories for Acme from 2021 to 2023?", "trend", "inventories", ("Acme",)),
        ("英华机电的应付票据是多少？", "lookup", "应付票据", ("英华机电",)),
        ("英华机电公司2023年的其他收益是多少？", "lookup", "其他收益", ("英华机电",)),
        ("哪家公司的货币资金是120,303元？", "which", "货币资金", ()),
        ("请回答 '存货' 最低的公司是哪一个？", "top", "存货", ()),
        ("营业收入最高的前三家公司是哪些？", "top", "营业收入", ()),
        ("请按递减顺序列举上述每个公司 '管理费用'？", "list", "管理费用", ()),
        ("有多少家公司的净利润超过1亿元？", "count", "净利润", ()),
        ("请回答 '存货' 在 2,000,000 以下的公司数量？", "count", "存货", ()),
        ("这些公司的净利润平均值是多少？", "aggregate", "净利润", ()),
        ("甲股份和乙电器的营业收入相差多少？", "aggregate", "营业收入", ("甲股份", "乙电器")),
        ("从2021年到2023年，英华机电的在建工程是如何变化的？", "trend", "在建工程", ("英华机电",)),
        ("根据英华机电2021年至2023年的财报数据，投资活动产生的现金流量净额呈现什么样的变化趋势？", "trend",
         "投资活动产生的现金流量净额", ("英华机电",)),
    ],
)  # fmt: skip
def test_the_wording_tells_the_plan(question: str, operation: str, attribute: str, things: tuple[str, ...]) -> None:
    plan = planned(question)
    assert (plan.operation, plan.attribute, plan.things) == (operation, attribute, things)


@pytest.mark.parametrize(
    "question",
    [
        "Who designed the Kestrel Bridge?", "How do I replace a bearing?", "How did the ferry traffic change?",
        "Who is the chief executive of Acme Corp?", "When was Orla Bridge opened?",
        "谁设计了这座桥？", "水文研究所的所长是谁？",
    ],
)  # fmt: skip
def test_what_asks_for_no_figure_has_no_plan(question: str) -> None:
    assert plan_of(question) is None


def test_order_number_and_periods() -> None:
    assert planned("Which two firms have the lowest debt?").order == "ascending"
    assert planned("Which two firms have the lowest debt?").many == 2
    assert planned("请按递减顺序列举上述每个公司 '管理费用'？").order == "descending"
    assert planned("How did Acme's debt change from 2021 to 2024?").periods == ("2021", "2022", "2023", "2024")
    assert planned("What is the trend in Acme's debt over the years 2021, 2022, and 2024?").periods == (
        "2021", "2022", "2024",
    )  # fmt: skip
    assert planned("What was the revenue growth of Acme from 2021 to 2023?").measure == "difference"


@pytest.mark.parametrize(
    ("wording", "low", "high", "low_in", "high_in"),
    [
        ("over $30,000,000", 3e7, None, False, False),
        ("over $1,000,000 and below $30 million", 1e6, 3e7, False, False),
        ("0 and below", None, 0.0, False, True),
        ("above 0 in thousands and below 1,000 in thousands", 0.0, 1e6, False, False),
        ("between 1 and 5 million", 1e6, 5e6, True, True),
        ("at least (0.5)", -0.5, None, True, False),
        ("not less than 3", 3.0, None, True, False),
        ("equal to 0", 0.0, 0.0, True, True),
        ("1千万以上", 1e7, None, True, False),
        ("100,000.00以上且1亿以下", 1e5, 1e8, True, True),
        ("0及0以下", None, 0.0, False, True),
        ("不超过3.5亿元", None, 3.5e8, False, True),
    ],
)
def test_a_range_is_what_its_words_say(
    wording: str, low: float | None, high: float | None, low_in: bool, high_in: bool
) -> None:
    assert band_of(wording) == Band(low=low, high=high, low_in=low_in, high_in=high_in)


@pytest.mark.parametrize("wording", ["large", "above 5 or below 3", ""])
def test_what_is_no_range_gives_none(wording: str) -> None:
    assert band_of(wording) is None


def test_figures_keep_their_sign_and_scale() -> None:
    found = figures_in("$(415,325) in thousands, -$0.04 and 1,308,463; 3.2亿")
    assert [one.number for one in found] == [-415325000.0, -0.04, 1308463.0, 3.2e8]


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("Group the companies by 'Debt' into: high debt (over 1,000), some debt (above 0 and below 1,000), and no debt "
         "(0 and below).", ["high debt", "some debt", "no debt"]),
        ("请对上述公司按照“存货”进行划分，划分成：高存货(1千万以上)，中存货(0以上且1千万以下)，无存货(0及0以下)。",
         ["高存货", "中存货", "无存货"]),
    ],
)  # fmt: skip
def test_a_classification_has_a_range_for_each_class(question: str, names: list[str]) -> None:
    plan = planned(question)
    assert plan.operation == "classify"
    assert [band.name for band in plan.bands] == names
    # What stands on a border belongs to the class that names it.
    assert [band.holds(0.0) for band in plan.bands] == [False, False, True]
