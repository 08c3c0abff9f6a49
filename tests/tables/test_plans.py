"""Tables: every form is read with its places, plans run over them, and answers have every figure verified."""

import string
from collections.abc import Iterator, Sequence

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
from storage.records import Chunk, Document
from tasks.tables.answer import answer_from_tables, documents_with_tables, sourced_table_answer, table_result
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


async def test_the_models_plan_is_computed() -> None:
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


def test_a_model_plans_over_all_documents_of_the_passages() -> None:
    pool = [Evidence(number, f"d{number}", f"Year {number}", "Hask: 120") for number in range(30)]
    route = RouteDecision(type="table", confidence=1.0, margin=1.0, reason="figures of many years")
    documents = [piece.document for piece in pool]
    assert documents_with_tables(pool, route, None, scripted(PlanTable)) == documents
    assert documents_with_tables(pool, route, ["d7"], scripted(PlanTable)) == ["d7"]
    assert documents_with_tables(pool, route, None, PlanTable(Models.offline())) == []


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


async def planned(plan: dict[str, object], documents: Sequence[Document]) -> TableResult:
    """What a plan of a model computes; every cell stands where it says."""
    found = await answer_from_tables("?", documents, scripted(PlanTable, plan))
    assert found is not None
    texts = {one.id: one.text for one in documents}
    assert all(texts[cell.document][cell.start : cell.end] == cell.raw for cell in found.cells)
    return found


async def test_tables_of_one_form_are_one_table() -> None:
    found = await planned({"operation": "sum", "columns": ["visitors"]}, branches())
    assert found.values == ("500",)
    assert {cell.document for cell in found.cells} == {"north", "south"}
    assert "| 80 |" in found.table


async def test_statements_are_compared_with_their_scales() -> None:
    assets: object = {"column": "", "comparison": "equal", "value": "Total assets"}
    plan: dict[str, object] = {
        "operation": "max",
        "columns": ["March 31, 2024"],
        "filters": [assets],
        "group_by": "document",
    }
    found = await planned(plan, statements())
    assert found.sentence == "Highest March 31, 2024: Vell Glass: 4,100 (in millions)."
    assert [cell.raw for cell in found.cells] == ["4,100", "5,308", "977"]


async def test_the_plan_keeps_what_a_condition_excludes() -> None:
    for comparison, values in (("equal", ("2",)), ("not_equal", ("3",))):
        closed = {"column": "State", "comparison": comparison, "value": "open"}
        found = await planned({"operation": "count", "filters": [closed]}, [tickets()])
        assert found.values == values


TICKETS = (("T-1", "open"), ("T-2", "closed"), ("T-3", "open"), ("T-4", "waiting"), ("T-5", "closed"))


def tickets() -> Document:
    rows = "\n".join(f"| {name} | {state} |" for name, state in TICKETS)
    return document("tickets.md", f"# Tickets\n\n| Ticket | State |\n|---|---|\n{rows}\n")


@pytest.mark.parametrize(
    ("plan", "first"),
    [
        ({"operation": "sum", "columns": ["depth"]}, "| Harbour 1 |"),
        ({"operation": "max", "columns": ["depth"]}, "| Harbour 80 |"),
        ({"operation": "list", "columns": ["port"]}, "| Harbour 1 |"),
    ],
)
async def test_a_few_rows_and_the_header_are_cited(plan: dict[str, object], first: str) -> None:
    rows = "".join(f"| Harbour {number} | {number} |\n" for number in range(1, 81))
    harbours = document("h", f"# Depths\n\n| port | depth |\n|---|---|\n{rows}")
    end = len(harbours.text)
    chunk = Chunk("chk_1", "h", 0, 0, end, harbours.text, 400, "en", "h")
    found = await sourced_table_answer("?", {"h": harbours}, scripted(PlanTable, plan), lambda _name, _offset: chunk)
    texts = [source.text for source in found.sources]
    assert len(texts) <= 5
    assert texts[0].startswith(first)
    assert texts[-1] == "| port | depth |"
    assert found.stated.text.endswith("".join(f"[{number}]" for number in range(1, len(texts) + 1)))


# --- without a model ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    folder = tmp_path_factory.mktemp("tables")
    rows = [{"id": one.id, "title": one.title, "text": one.text} for one in (tickets(), *samples(), *chinese())]
    with open_session(opened(indexed(folder, rows))) as session:
        yield session


@pytest.mark.parametrize(
    "question",
    [
        "How many tickets are open?",
        "How many tickets are not open?",
        "Which tickets have a state other than open?",
        "How many tickets of each state?",
        "What is the total maintenance of the bridges?",
        "Who has the longest bridge and how many bridges are there?",
        "What is the length of the Kestrel Bridge?",
        "最老的桥是哪座？",
    ],
)
async def test_rows_are_excerpts_and_nothing_is_computed(question: str, session: Session) -> None:
    answer = await asked(question, session)
    assert answer.fallback in {"partial", "abstained"}
    assert answer.values == ()
    assert answer.trace.answered_by == "excerpts"
    assert all(row.supported is None for row in answer.grounding)
    assert all(citation.verified for citation in answer.citations)
