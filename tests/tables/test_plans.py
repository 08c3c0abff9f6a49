"""Tables: rows keep the places of their cells, and a model's plan is computed over them."""

import string
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flows.session import Session, open_session
from prompts.engine.messages import rough_tokens
from prompts.engine.models import Models
from prompts.plan_table import PlanTable, TablePlan, TableView, shown_table
from prompts.text.amounts import amount_of, amounts_in, scale_stated
from prompts.text.evidence import Evidence
from storage.answer_records import RouteDecision, TableResult
from storage.records import Chunk, Document
from tasks.load.tables import markdown_tables, read_table, write_table
from tasks.tables.answer import (
    TableAnswer,
    documents_with_tables,
    sourced_table_answer,
    table_result,
)
from tasks.tables.relations import NIL, relations_of
from tasks.tables.run_plan import run
from tests.query.steps import scripted
from tests.tables.documents import (
    PORTS,
    branches,
    chinese,
    document,
    harbours,
    ports,
    samples,
    tickets,
)
from tests.workspaces import asked, indexed, opened

WORDS = st.text(string.ascii_letters + "北湖桥 ", min_size=1, max_size=8).map(str.strip)
WORDS = WORDS.filter(lambda word: word.lower() not in NIL)  # such a cell is empty
FIGURES = st.integers(10_000, 9_999_999).map(lambda number: f"{number:,}")
ROWS = st.lists(st.tuples(WORDS, FIGURES, WORDS), min_size=1, max_size=6)


# --- rows with their places ------------------------------------------------------------------


@given(ROWS, st.sampled_from(["markdown", ";"]))
def test_every_cell_stands_where_it_says(rows: Sequence[Sequence[str]], form: str) -> None:
    columns = ["Name", "First", "Second"]
    if form == "markdown":
        lines = [columns, ["---"] * 3, *rows]
        text = "# Title\n\n" + "\n".join("| " + " | ".join(line) + " |" for line in lines)
        (table,) = markdown_tables(text)
    else:
        given = "\n".join(form.join(line) for line in [columns, *rows])
        written = write_table([cells for _, cells in read_table(given, form)])
        text, (table,) = "\n".join(written.lines), written.tables
    assert list(table.columns) == columns
    assert [[text[slice(*cell)] for cell in row if cell] for row in table.rows] == [
        list(row) for row in rows
    ]
    assert table.header is not None
    assert "First" in text[slice(*table.header)]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (PORTS, ["Ports of the coast"]),
        ("# Sheet\n\n(in thousands)\n\n| a | b |\n|---|---|\n| c | 1 |", ["Sheet: (in thousands)"]),
        (
            (
                "It cost much.\n| a | b |\n|:---|---:|\n| c \\| d | 1 |\n\n| a | b |\n|---|---|\n| "
                "e | 2 |"
            ),
            ["", ""],
        ),
        ("The bridge is 412 m long.\nNote: see | below.\n---\n| a |", []),
    ],
)
def test_what_stands_above_names_a_table(text: str, names: list[str]) -> None:
    assert [table.name for table in markdown_tables(text)] == names


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("$1,308,463", 1_308_463.0),
        ("(0.63)", -0.63),
        ("12.50%", 12.5),
        ("3.5 million", 3.5e6),
        ("1.2万", 12_000.0),
        ("412.5 m", 412.5),
        ("450人", 450.0),
        ("1.234,56", 1234.56),
        ("1,308 (1)", 1308.0),
        ("2023 Q1", None),
        ("2024-03-31", None),
        ("", None),
    ],
)
def test_amounts(text: str, number: float | None) -> None:
    found = amount_of(text)
    assert (found.number if found else None) == number


def test_amounts_in_running_text_and_scales_of_headings() -> None:
    found = amounts_in("over $1,000,000 and below 30 million, 1千万以上 in 2023 Q1")
    assert [one.number for one in found] == [1e6, 3e7, 1e7, 2023.0]
    labels = ("(in thousands)", "营业收入（万元）", "revenue_millions", "length_m")
    assert [scale_stated(label) for label in labels] == [1e3, 1e4, 1e6, 1.0]


# --- plans -----------------------------------------------------------------------------------


def plan(
    operation: str, *columns: str, where: Sequence[tuple[str, str, str]] = (), **more: Any
) -> TablePlan:
    filters = [{"column": a, "comparison": b, "value": c} for a, b, c in where]
    given = {"operation": operation, "columns": columns, "filters": filters, **more}
    return TablePlan.model_validate(given)


def computed(made: TablePlan, documents: Sequence[Document]) -> TableResult:
    return table_result(run(made, relations_of(documents)), 4_000)


@pytest.mark.parametrize(
    ("made", "values", "sentence"),
    [
        (plan("max", "Traffic"), ["Hask"], "max of Traffic: Hask: 3.5 million."),
        (plan("sum", "traffic"), ["5,500,000"], "sum of Traffic: 5,500,000."),
        (plan("average", "share"), ["19.9167%"], None),
        (
            plan("ratio", "Traffic", where=[("port", "equal", "Hask"), ("port", "equal", "Ister")]),
            ["4.375"],
            None,
        ),
        (plan("count", group_by="country"), ["2"], "2: Orrelin; Arlen."),
        (plan("sum", "ships", group_by="country"), ["1,385"], "sum of Ships: Orrelin: 1,385."),
        (plan("sort", "share", order="ascending"), ["Vell", "Hask", "Ister"], None),
        (
            plan("lookup", "share", "ships", where=[("port", "contains", "hask")]),
            ["12.5%", "1,308"],
            "Hask – Share: 12.5%, Ships: 1,308.",
        ),
        (plan("max", "port", group_by="country", aggregate="count"), ["Orrelin"], None),
        (plan("max", "since"), ["Vell"], "max of Since: Vell: 2010-01-15."),
        (plan("list", where=[("since", "less", "2001-05-01")]), ["Hask", "Ister"], None),
        # Nothing of a plan becomes SQL.
        (plan("count", where=[("port", "not_equal", "x'; DROP TABLE cells; --")]), ["3"], None),
    ],
)
def test_operations(made: TablePlan, values: list[str], sentence: str | None) -> None:
    found = computed(made, ports())
    assert list(found.values) == values
    assert sentence in {None, found.sentence}


def test_the_minus_of_an_amount_of_money_comes_first() -> None:
    rows = "| May | $3 |\n| June | -$8 |\n| July | $1 |"
    ledger = document("ledger", f"# Ledger\n\n| Month | Balance |\n|---|---|\n{rows}\n")
    found = computed(plan("sum", "balance"), [ledger])
    assert (found.values, found.sentence) == (("-$4",), "sum of Balance: -$4.")


@pytest.mark.parametrize(("value", "met"), [("1000", 2), ("1000万", 2), ("1 billion", 0)])
def test_a_figure_is_compared_in_the_scale_of_its_column(value: str, met: int) -> None:
    assert computed(plan("count", where=[("造价", "more", value)]), chinese()).values == (str(met),)


def test_tables_of_one_form_are_one_table() -> None:
    documents = branches()
    found = computed(plan("sum", "visitors"), documents)
    assert found.values == ("500",)
    assert {cell.document for cell in found.cells} == {"north", "south"}
    assert computed(plan("max", "visitors", group_by="document"), documents).values == ("south",)


def test_tables_of_different_scales_are_not_put_together() -> None:
    text = "# Sheet\n\n(in {})\n\n| what | assets |\n|---|---|\n| total | 5 |\n"
    documents = [document(scale, text.format(scale)) for scale in ("thousands", "millions")]
    assert [len(relation.rows) for relation in relations_of(documents)] == [1, 1]


@pytest.mark.parametrize(("comparison", "count"), [("equal", "2"), ("not_equal", "3")])
def test_a_condition_selects_or_excludes_rows(comparison: str, count: str) -> None:
    assert computed(plan("count", where=[("State", comparison, "open")]), [tickets()]).values == (
        count,
    )


def test_as_many_rows_as_fit_are_shown_and_cited() -> None:
    outcome = run(plan("list", "port", "depth"), relations_of([harbours(200)]))
    small, large = (table_result(outcome, most) for most in (400, 8_000))
    assert len(large.values) == len(small.values) == 200
    shown = small.table.count("| Harbour")
    assert 50 < shown < 150
    assert f"… {200 - shown} more rows" in small.table
    assert {cell.row for cell in small.cells} == {f"Harbour {n}" for n in range(1, shown + 1)}
    assert large.table.count("| Harbour") == 200


# --- a model's plan --------------------------------------------------------------------------


async def answered(documents: Sequence[Document], made: TablePlan) -> TableAnswer:
    """What a model's plan computes; every cell stands where it says."""
    texts = {one.id: one for one in documents}
    chunks = {name: Chunk("c", name, 0, 0, 9, "", 1, "en", name) for name in texts}
    planner = scripted(PlanTable, made.model_dump())
    found = await sourced_table_answer("?", texts, planner, lambda name, _: chunks[name])
    cells = found.result.cells
    assert all(texts[cell.document].text[cell.start : cell.end] == cell.raw for cell in cells)
    return found


async def test_the_models_plan_is_computed() -> None:
    found = await answered(samples(), plan("min", "opened", limit=1))
    assert found.result.values == ("Old Saltmere Bridge",)
    owned = plan("count", where=[("owner", "equal", "Sound Railways Co")])
    found = await answered(samples(), owned)
    assert found.result.sentence == "1: Lanner Viaduct."


async def test_a_model_that_sees_no_plan_gets_none_made() -> None:
    assert await answered(samples(), plan("none")) == TableAnswer(TableResult(), ())


@pytest.mark.parametrize(
    ("made", "problem"),
    [
        (plan("max", "height"), "no column 'height'; it has name, crosses"),
        (plan("max", "n0) FROM cells; --"), "no column 'n0) FROM cells; --'"),
        (plan("max", "opened", table=7), "there is no table"),
        (plan("sum", "owner"), "no row of bridges"),
        (plan("lookup", "opened", where=[("name", "equal", "Golden Gate")]), "no cell of name"),
        (plan("difference", "opened"), "between two figures, and there are 12"),
    ],
)
async def test_a_plan_that_does_not_fit_says_why(made: TablePlan, problem: str) -> None:
    found = await answered(samples(), made)
    assert not found.is_computed
    assert found.result.plan.startswith("does not fit: ")
    assert problem in found.result.plan


@pytest.mark.parametrize(
    ("made", "lines", "first"),
    [
        (plan("sum", "depth"), 5, "| Harbour 1 | 1 |"),
        (plan("max", "depth"), 2, "| Harbour 300 | 300 |"),
        (plan("list", "port"), 5, "| Harbour 1 | 1 |"),
    ],
)
async def test_a_few_rows_and_the_header_are_cited(made: TablePlan, lines: int, first: str) -> None:
    found = await answered([harbours(300)], made)
    texts = [source.text for source in found.sources]
    assert (len(texts), texts[0], texts[-1]) == (lines, first, "| port | depth |")
    assert found.stated.text.endswith(f"[{lines}]")


def test_a_model_plans_over_all_documents_of_the_passages() -> None:
    pool = [Evidence(number, f"d{number}", f"Year {number}", "Hask: 120") for number in range(30)]
    route = RouteDecision(type="table", confidence=1.0, margin=1.0, reason="figures of many years")
    documents = [piece.document for piece in pool]
    assert documents_with_tables(pool, route, None, scripted(PlanTable)) == documents
    assert documents_with_tables(pool, route, ["d7"], scripted(PlanTable)) == ["d7"]
    assert documents_with_tables(pool, route, None, PlanTable(Models.offline())) == []


def test_a_planner_sees_as_much_of_a_table_as_fits() -> None:
    columns = tuple(f"column {number}" for number in range(300))
    wide = TableView(
        "Wide", columns, (tuple(f"{column} holds a long text " * 20 for column in columns),)
    )
    narrow, wider = (shown_table(wide, {"77"}, most, 1) for most in (1_000, 8_000))
    assert "- column 77: column 77 hol" in narrow
    assert narrow.count("- column") < wider.count("- column")
    assert rough_tokens(narrow) <= 1_050
    assert "columns that are farther from the question" in narrow


# --- in a workspace --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    folder = tmp_path_factory.mktemp("tables")
    rows = [{"id": one.id, "title": one.title, "text": one.text} for one in (tickets(), *chinese())]
    with open_session(opened(indexed(folder, rows))) as session:
        yield session


def test_stored_documents_have_their_tables(session: Session) -> None:
    stored = session.documents(["tickets.md"])["tickets.md"]
    assert stored.tables == tickets().tables


async def test_without_a_model_nothing_is_computed(session: Session) -> None:
    answer = await asked("How many tickets are not open?", session)
    assert answer.values == ()
    assert answer.trace.answered_by == "excerpts"
    assert all(row.supported is None for row in answer.grounding)
    assert all(citation.verified for citation in answer.citations)
