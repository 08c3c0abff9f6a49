"""Questions over the tables of several documents: plan, cells, SQL, and an answer whose every figure is cited."""

import json
from collections.abc import Mapping, Sequence

import pytest

from prompts.engine.models import Models
from prompts.language.question import ask
from prompts.utilize import PlanTable
from storage.records import Document
from tasks.utilize.step import utilize
from tasks.utilize.tell import Told

REPORT = """FORM 10-Q

{name}

(Exact name of registrant as specified in its charter)

QUARTERLY REPORT for the quarterly period ended March 31, 2024

{heading}

|  | March 31, 2024 | December 31, 2023 |
|---|---|---|
| Total assets | {assets} | {before} |
| Deferred income | {deferred} | 12 |
"""
COMPANIES = {
    "orrel": ("ORREL FOODS INC", "$ 41,308,463", "40,000,000", "(1,250)", ""),
    "vell": ("VELL GLASS CORP", "2,500", "2,600", "17", "(in thousands)"),
    "hask": ("HASK FERRIES LTD", "977,000", "900,000", "—", ""),
}
ROUTES = """route | quarter | passengers | fare rate
route: Hask - Skerrow | quarter: 2023 Q1 | passengers: 168,400 | fare rate: 2.5
route: Hask - Skerrow | quarter: 2023 Q2 | passengers: 241,350 | fare rate: 3.5
route: Hask - Saltmere | quarter: 2023 Q1 | passengers: 118,220 | fare rate: 1.5
route: Hask - Saltmere | quarter: 2023 Q2 | passengers: 339,480 | fare rate: 1.5
"""


def document(name: str, text: str, language: str = "en", title: str = "") -> Document:
    return Document(id=name, title=title or name, text=text, language=language, parts=())


def reports() -> list[Document]:
    return [
        document(key, REPORT.format(name=name, assets=assets, before=before, deferred=deferred, heading=heading))
        for key, (name, assets, before, deferred, heading) in COMPANIES.items()
    ]


async def told(question: str, documents: Sequence[Document]) -> Told:
    found = await utilized(question, documents)
    assert found is not None
    stored = {one.id: one.text for one in documents}
    cited = {number for claim in found.reading.claims for number in claim.evidence}
    assert cited == {piece.number for piece in found.pool.evidence}
    for piece, place in zip(found.pool.evidence, found.pool.places, strict=True):
        assert stored[place.document][place.start : place.end] == piece.text
    return found


async def utilized(question: str, documents: Sequence[Document]) -> Told | None:
    def read(names: Sequence[str]) -> Mapping[str, Document]:
        return {one.id: one for one in documents if one.id in names}

    planner = PlanTable(Models.offline())
    return await utilize(ask(question), [one.id for one in documents], read, lambda name, _: f"chk_{name}", planner)


async def test_a_figure_of_one_of_many_documents_is_given_as_written() -> None:
    found = await told("What are the total assets of Orrel Foods?", reports())
    assert [value.lstrip("$ ") for value in found.reading.values] == ["41,308,463"]
    assert [place.document for place in found.pool.places] == ["orrel"]
    assert found.reading.support == "none"


async def test_scales_count_when_documents_are_compared() -> None:
    found = await told("Which company has the highest total assets?", reports()[1:])
    assert found.reading.values == ("VELL GLASS CORP",)
    assert "2,500 (in thousands)" in found.reading.lead
    found = await told("List the 'Total assets' of each of the companies in ascending order.", reports())
    assert [value.lstrip("$ ") for value in found.reading.values] == ["977,000", "2,500", "41,308,463"]
    # One sub-question a document, each with what was extracted for it.
    assert len(found.subquestions) == 3
    assert found.subquestions[1].answer == "2,500 (in thousands)"
    assert found.subquestions[1].evidence == ("chk_vell",)


async def test_the_thing_that_has_a_figure_is_named() -> None:
    found = await told("Which company has total assets of $977,000?", reports())
    assert found.reading.values == ("HASK FERRIES LTD",)


async def test_things_are_counted_by_a_condition() -> None:
    found = await told("How many companies have total assets over 2 million?", reports())
    assert found.reading.values == ("2",)
    assert found.reading.claims[-1].text.startswith("HASK FERRIES LTD")


async def test_a_classification_is_a_mapping_of_classes() -> None:
    question = (
        "Group the companies by 'Total assets' into: high (over 30 million), middle (over 1,000,000 and below 30 "
        "million) and low (1,000,000 and below)."
    )
    found = await told(question, reports())
    assert json.loads(found.reading.lead) == {
        "high": ["ORREL FOODS INC"], "middle": ["VELL GLASS CORP"], "low": ["HASK FERRIES LTD"],
    }  # fmt: skip


async def test_sums_and_differences_are_computed_from_the_scaled_figures() -> None:
    found = await told("What are the combined total assets of all companies?", reports())
    assert found.reading.values == ("44,785,463",)
    found = await told("What is the difference in total assets between Orrel Foods and Hask Ferries?", reports())
    assert found.reading.values == ("40,331,463",)
    assert len(found.pool.evidence) == 2


async def test_a_document_without_the_figure_is_named_and_the_answer_partial() -> None:
    silent = document("silent", "# QUILLEN HEAD PLC\n\nNothing is reported here.\n", title="Quillen Head")
    found = await told("Which company has the highest total assets?", [*reports(), silent])
    assert found.reading.support == "partial"
    assert "not found in Quillen Head" in found.reading.claims[-1].text
    assert found.reading.claims[-1].evidence == ()
    assert found.subquestions[-1].answer == "not found"


async def test_a_thing_that_no_document_is_about_is_named_too() -> None:
    found = await told("Compare the total assets of Orrel Foods and Quillen Head.", reports())
    assert found.reading.support == "partial"
    assert found.reading.claims[-1].text == "Quillen Head: total assets not found in the documents"


async def test_a_trend_follows_the_years_of_the_reports() -> None:
    years = {"2022": "70", "2023": "95", "2024": "80"}
    documents = [
        document(
            f"{year}-orrel", REPORT.format(name="ORREL FOODS INC", assets=assets, before="1", deferred="1", heading="")
        )
        for year, assets in years.items()
    ]
    found = await told("How did ORREL FOODS INC's total assets change from 2022 to 2024?", documents)
    assert found.reading.values == ("70", "95", "80")
    assert "increased from 70 in 2022 to 95 in 2023, then decreased to 80 in 2024" in found.reading.lead
    found = await told("What was the total assets growth of ORREL FOODS INC from 2022 to 2024?", documents)
    assert found.reading.values[0] == "10"
    # A year without a report is no gap to be filled.
    found = await told("How did ORREL FOODS INC's total assets change from 2021 to 2023?", documents)
    assert found.reading.support == "partial"
    assert found.subquestions[0].answer == "not found"


async def test_rows_of_a_table_are_things_too_and_their_parts_are_added_up() -> None:
    routes = [document("routes.csv", ROUTES)]
    found = await told("Which route carried the most passengers in 2023?", routes)
    assert found.reading.values == ("Hask - Saltmere",)
    assert "457,700" in found.reading.lead
    found = await told("How many passengers did Hask - Skerrow carry in 2023?", routes)
    assert found.reading.values == ("409,750",)
    assert "168,400 + 241,350" in found.reading.claims[0].text
    assert len(found.pool.evidence) == 2
    # Rates are not added up.
    assert await utilized("What is the fare rate of Hask - Skerrow?", routes) is None


async def test_a_long_table_is_counted_whole_and_shown_in_part() -> None:
    lines = [f"route: Route {number} X | passengers: {number}" for number in range(1, 101)]
    found = await told("Which route carried the most passengers?", [document("routes.csv", "\n".join(lines))])
    assert found.reading.values == ("Route 100 X",)
    assert [claim.text for claim in found.reading.claims[-2:]] == ["Route 41 X: passengers 41", "and 40 more"]


ZH = """证券代码：{code} 证券简称：{name}
{name}股份有限公司{year}年第一季度报告
1、合并资产负债表
编制单位：{name}股份有限公司
{year}年03月31日
单位：元
|项目|期末余额|期初余额|
|---|---|---|
|存货|{stock}|1,000.00|
|在建工程|-|5.00|
"""


def reports_zh(*stocks: tuple[str, str]) -> list[Document]:
    return [
        document(
            f"{year}-{name}", ZH.format(code="600001", name=name, year=year, stock=stock), "zh", f"{year}年第一季度报告"
        )
        for (name, stock) in stocks
        for year in ("2024",)
    ]


async def test_chinese_reports_answer_in_chinese() -> None:
    documents = reports_zh(("英华机电", "12,345,678.90"), ("北江食品", "950,000.00"))
    found = await told("英华机电的存货是多少？", documents)
    assert found.reading.values == ("12,345,678.90",)
    found = await told("请回答 '存货' 最低的公司是哪一个？", documents)
    assert found.reading.values == ("北江食品",)
    question = "请对上述公司按照“存货”进行划分，划分成：高存货(1千万以上)，低存货(0以上且1千万以下)。"
    found = await told(question, documents)
    assert json.loads(found.reading.lead) == {"高存货": ["英华机电"], "低存货": ["北江食品"]}


@pytest.mark.parametrize(
    "question",
    ["Who founded Orrel Foods?", "What is the number of lighthouses of Orrel Foods?", "How do I mend a bearing?"],
)
async def test_what_tables_do_not_hold_is_left_to_passages(question: str) -> None:
    assert await utilized(question, reports()) is None
