"""Tables: every form is read with its places, plans run over them, and answers have every figure verified."""

import string
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flows.session import Session, open_session
from prompts.engine.calls import rough_tokens
from prompts.engine.models import Models
from prompts.plan_table import PlanTable, TableFilter, TablePlan, TableView, shown_table
from prompts.text.amounts import amount_of, amounts_in, scale_stated
from prompts.text.evidence import Evidence
from storage.answer_records import RouteDecision, TableResult
from storage.records import Document
from tasks.tables.answer import MOST_DOCUMENTS, answer_from_tables, documents_with_tables, table_result
from tasks.tables.relations import NIL, grids_in, relations_of
from tasks.tables.run_plan import DoesNotFit, run
from tests.query.steps import scripted
from tests.tables.documents import PORTS, STATEMENT, branches, chinese, document, ports, samples, statements
from tests.workspaces import asked, indexed, opened

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


def where(column: str, comparison: str, value: str) -> TableFilter:
    return TableFilter.model_validate({"column": column, "comparison": comparison, "value": value})


async def test_the_models_plan_stands_where_the_rules_have_another_or_none() -> None:
    question = "Which bridge is the longest?"
    plan: dict[str, object] = {"operation": "min", "columns": ["opened"], "filters": [], "limit": 1}
    found = await answer_from_tables(question, samples(), scripted(PlanTable, plan))
    assert found is not None
    assert found.values == ("Old Saltmere Bridge",)
    plan = {
        "reason": "Sound Railway owns one.", "operation": "count",
        "filters": [{"column": "owner", "comparison": "equal", "value": "Sound Railways Co"}],
    }  # fmt: skip
    found = await answer_from_tables("Do trains have a crossing of their own?", samples(), scripted(PlanTable, plan))
    assert found is not None
    assert (found.values, found.sentence) == (("1",), "1: Lanner Viaduct.")


@pytest.mark.parametrize("planner", [PlanTable(Models.offline()), scripted(PlanTable)])
def test_a_model_plans_over_the_tables_of_all_documents_that_the_passages_come_from(planner: PlanTable) -> None:
    pool = [Evidence(number, f"d{number}", f"Year {number}", "Hask: 120") for number in range(30)]
    route = RouteDecision(type="table", confidence=1.0, margin=1.0, reason="figures of many years")
    names = documents_with_tables(pool, route, None, None, planner)
    assert names == [piece.document for piece in pool][: MOST_DOCUMENTS if planner.is_offline else None]


async def test_a_model_that_sees_no_plan_gets_none_made() -> None:
    none = scripted(PlanTable, {"operation": "none"})
    assert await answer_from_tables("Which bridge is the longest?", samples(), none) is None


@pytest.mark.parametrize(
    ("plan", "problem"),
    [
        ({"operation": "max", "columns": ["height"]}, "no column 'height'; it has name, crosses"),
        ({"operation": "max", "table": 7, "columns": ["opened"]}, "there is no table"),
        ({"operation": "sum", "columns": []}, "needs a column"),
        ({"operation": "sum", "columns": ["owner"]}, "no row of bridges"),
        ({"operation": "lookup", "columns": ["opened"],
          "filters": [{"column": "name", "comparison": "equal", "value": "Golden Gate"}]}, "no cell of name"),
        ({"operation": "difference", "columns": ["opened"]}, "between two figures, and there are 12"),
    ],
)  # fmt: skip
async def test_a_plan_that_names_what_is_not_there_says_so(plan: dict[str, object], problem: str) -> None:
    found = await answer_from_tables("?", samples(), scripted(PlanTable, plan))
    assert found is not None
    assert (found.cells, found.values, found.sentence) == ((), (), "")
    assert found.plan.startswith("does not fit: ")
    assert problem in found.plan


@pytest.mark.parametrize(
    ("plan", "values", "sentence"),
    [
        (TablePlan(operation="max", columns=("Traffic",)), ["Hask"], "Highest Traffic: Hask: 3.5 million."),
        (TablePlan(operation="sum", columns=("traffic",)), ["5,500,000.0"], None),
        (TablePlan(operation="average", columns=("share",)), ["19.9167%"], None),
        (TablePlan(operation="ratio", columns=("Traffic",), filters=(where("port", "equal", "Hask"),
                   where("port", "equal", "Ister"))), ["4.375"], None),
        (TablePlan(operation="list", columns=("country",)), ["Orrelin", "Arlen"], None),
        (TablePlan(operation="count", group_by="country"), ["2"], "2: Orrelin; Arlen."),
        (TablePlan(operation="count", filters=(where("traffic", "more", "5 million"),)), ["0"], "0."),
        (TablePlan(operation="sum", columns=("ships",), group_by="country"), ["1,385"], "sum Ships: Orrelin: 1,385."),
        (TablePlan(operation="sort", columns=("share",), order="ascending"), ["Vell", "Hask", "Ister"], None),
        (TablePlan(operation="lookup", columns=("share", "ships"), filters=(where("port", "contains", "hask"),)),
         ["12.5%", "1,308"], "Hask – Share: 12.5%, Ships: 1,308."),
        (TablePlan(operation="max", columns=("port",), group_by="country", aggregate="count"), ["Orrelin"], None),
    ],
)  # fmt: skip
def test_operations(plan: TablePlan, values: list[str], sentence: str | None) -> None:
    found = told(plan)
    assert list(found.values) == values
    assert sentence in {None, found.sentence}


def told(plan: TablePlan) -> TableResult:
    return table_result("?", run(plan, relations_of(ports())), 4_000)


def test_as_many_rows_as_the_tokens_hold_are_shown_and_cited() -> None:
    rows = "".join(f"| Harbour {number} | Varland | {number} |\n" for number in range(1, 201))
    tables = relations_of([document("h", f"| port | country | depth |\n|---|---|---|\n{rows}")])
    outcome = run(TablePlan(operation="list", columns=("port", "depth")), tables)
    small, large = (table_result("?", outcome, most) for most in (500, 8_000))
    assert len(large.values) == len(small.values) == 200
    shown = small.table.count("| Harbour")
    assert 50 < shown < 150
    assert f"… {200 - shown} more rows" in small.table
    assert {cell.row for cell in small.cells} == {f"Harbour {number}" for number in range(1, shown + 1)}
    assert large.table.count("| Harbour") == 200
    assert "more rows" not in large.table


def test_a_planner_sees_what_of_the_tables_its_tokens_hold() -> None:
    columns = tuple(f"column {number}" for number in range(300))
    wide = TableView("Wide", columns, (tuple(f"{column} holds a long text " * 20 for column in columns),))
    narrow, wider = (shown_table(wide, {"77"}, most, 1) for most in (1_000, 8_000))
    assert "- column 77: column 77 hol" in narrow
    assert narrow.count("- column") < wider.count("- column")
    assert rough_tokens(narrow) <= 1_050
    assert "columns that are farther from the question" in narrow
    assert max(map(len, narrow.splitlines())) < max(map(len, wider.splitlines()))


def test_a_bare_figure_is_meant_as_its_column_writes_it() -> None:
    tables = relations_of(chinese())
    for value in ("1000", "1000万", "10,000,000"):
        plan = TablePlan(operation="list", filters=(where("造价", "more", value),))
        assert table_result("？", run(plan, tables), 4_000).values == ("北湖大桥", "石门大桥")


def test_nothing_of_a_plan_becomes_sql() -> None:
    hostile = TablePlan(operation="count", filters=(where("port", "not_equal", "x'; DROP TABLE cells; --"),))
    assert told(hostile).values == ("3",)
    with pytest.raises(DoesNotFit):
        told(TablePlan(operation="max", columns=("n0) FROM cells; --",)))


async def answered(question: str, documents: Sequence[Document]) -> TableResult | None:
    found = await answer_from_tables(question, documents, PlanTable(Models.offline()))
    texts = {one.id: one.text for one in documents}
    for cell in found.cells if found else ():
        assert texts[cell.document][cell.start : cell.end] == cell.raw
    return found


ASKED: dict[Callable[[], list[Document]], dict[str, list[str]]] = {
    samples: {
        # look-ups
        "What is the length of the Kestrel Bridge?": ["412.5"],
        "Who designed the Kestrel Bridge?": ["Tobias Wren"],
        "When was the Lanner Viaduct opened?": ["1931"],
        # lists and counts
        "Which bridges cross the River Ovane?": ["Lanner Viaduct", "Gannet Bridge", "Ovane Road Bridge"],
        "How many bridges have a length over 300 m?": ["5"],
        "how many bridges does the town of saltmere own": ["3"],
        # sums and averages
        "What is the total maintenance of the bridges?": ["11,820,975.50"],
        "How many passengers did Port Hask - Skerrow Island carry in 2023?": ["879,800"],
        "What is the average number of passengers per quarter on Saltmere - Quillen Head?": ["70,002.5"],
        # differences, extremes, order
        "What is the difference in passengers between Port Hask - Saltmere and Saltmere - Quillen Head?": ["256,190"],
        "How much longer is the Teal Causeway than the Ambel Crossing?": ["866.0"],
        "Which bridge is older, Pilot's Bridge or Old Saltmere Bridge?": ["Old Saltmere Bridge"],
        "Which two bridges are the longest?": ["Teal Causeway", "Ambel Crossing"],
        "In which quarter were the most sailings cancelled?": ["2023 Q4"],
        "top 3 bridges by maintenance": ["Kestrel Bridge", "Ambel Crossing", "Teal Causeway"],
    },
    chinese: {
        "北湖大桥有多长？": ["412"],
        "最老的桥是哪座？": ["柳叶桥"],
        "清江上的桥有几座？": ["2"],
        "长度超过300米的桥有哪些？": ["北湖大桥", "石门大桥"],
        "所有桥的造价总和是多少？": ["10,942.5"],
        "桥的平均长度是多少？": ["461.625"],
        "北湖大桥和南门桥的长度相差多少？": ["315.5"],
    },
    ports: {
        # scales and units count, and figures stay as written
        "Which port has the most traffic?": ["Hask"],
        "Which ports have a traffic over 1 million?": ["Hask", "Vell"],
        "Which ports have a share of at least 12.5%?": ["Hask", "Ister"],
        "What is the traffic of Vell?": ["$1.2 million"],
        "What is the total number of ships?": ["1,385"],
    },
}  # fmt: skip


@pytest.mark.parametrize(
    ("documents", "question", "values"),
    [(documents, *row) for documents, rows in ASKED.items() for row in rows.items()],
)
async def test_a_question_over_rows_is_answered_by_its_cells(
    documents: Callable[[], list[Document]], question: str, values: list[str]
) -> None:
    result = await answered(question, documents())
    assert result is not None
    assert list(result.values) == values
    assert result.sentence.endswith("。" if documents is chinese else ".")


async def test_tables_of_one_form_are_one_table() -> None:
    found = await answered("How many visitors in total?", branches())
    assert found is not None
    assert found.values == ("500",)
    assert {cell.document for cell in found.cells} == {"north", "south"}
    assert "| 80 |" in found.table


async def test_documents_are_compared_by_what_their_statements_say_of_the_newest_date() -> None:
    found = await answered("Which company has the highest total assets?", statements())
    assert found is not None
    assert found.values == ("Vell Glass",), "4,100 millions are more than 5,308 thousands"
    assert found.sentence == "Highest March 31, 2024: Vell Glass: 4,100 (in millions)."
    assert [cell.raw for cell in found.cells] == ["4,100", "5,308", "977"]
    found = await answered("What are the total assets of Hask Ferries?", statements())
    assert found is not None
    assert found.values == ("977",)


@pytest.mark.parametrize(
    "question",
    [
        "Why was the Kestrel Bridge closed?",
        "What does the Tobias arch cost?",  # words of cells, and no column
        "What is the height of the Kestrel Bridge?",
        "How many bridges did the storm destroy?",
        "Who designed the oldest bridge?",
        "How do I cross the Kestrel Bridge?",
        "What's a Kestrel Bridge?",
        "Did Marrand design the Maltings Bridge?",
    ],
)
async def test_where_a_word_is_left_over_there_is_no_plan(question: str) -> None:
    assert await answered(question, samples()) is None


async def test_documents_without_tables_have_no_plan() -> None:
    [text] = [replace(one, text="The bridge is 412 m long.") for one in ports()]
    assert await answered("How long is the bridge?", [text]) is None


REPORT = """FORM 10-Q

{name}

(Exact name of registrant as specified in its charter)

For the quarterly period ended March 31, 2024

|  | March 31, 2024 | December 31, 2023 |
|---|---|---|
| Total assets | {assets} | 40,000 |
| Total liabilities | ({owed}) | 12 |
"""
COMPANIES = {
    "orrel.txt": ("ORREL FOODS INC", "$ 41,308,463", "1,250"),
    "vell.txt": ("VELL GLASS CORP", "2,500,000", "17"),
    "hask.txt": ("HASK FERRIES LTD", "977,000", "8"),
}


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    rows = [
        {"id": name, "title": company.title(), "text": REPORT.format(name=company, assets=assets, owed=owed)}
        for name, (company, assets, owed) in COMPANIES.items()
    ]
    with open_session(opened(indexed(tmp_path_factory.mktemp("reports"), rows))) as session:
        yield session


async def test_all_documents_named_are_read_and_every_figure_is_verified(session: Session) -> None:
    answer = await asked("Which company has the highest total assets?", session, documents=tuple(COMPANIES))
    assert answer.values == ("Orrel Foods Inc",)
    assert (answer.trace.structure, answer.trace.route.type, answer.fallback) == ("table", "table", "none")
    figures = ("$ 41,308,463", "2,500,000", "977,000")
    assert all(figure in one.quote for figure, one in zip(figures, answer.citations, strict=True))
    assert all(one.verified for one in answer.citations)
    known = {chunk.id for chunk in session.index.chunks}
    assert {chunk for part in answer.trace.subquestions for chunk in part.evidence} <= known
    assert answer.usage.calls == 0


async def test_one_document_among_those_named_is_found_by_its_title(session: Session) -> None:
    answer = await asked("What are the total liabilities of Vell Glass Corp?", session, documents=tuple(COMPANIES))
    assert answer.values == ("(17)",)
    assert [one.document for one in answer.citations] == ["vell.txt"]


async def test_a_structure_asked_for_is_kept(session: Session) -> None:
    answer = await asked(
        "Which company has the highest total assets?", session, documents=tuple(COMPANIES), structure="chunk"
    )
    assert answer.trace.structure == "chunk"
