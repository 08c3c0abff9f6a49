"""Plans which operation on which rows and columns answers a question (StructRAG, section 2.4).

Without a model there is no plan, and rows are excerpts like any other text. A plan names operations
of `tasks.tables.run_plan` and never holds code.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import dspy
from pydantic import BaseModel, Field

from prompts.engine.messages import Doubtful, first_fitting, first_tokens, rough_tokens
from prompts.engine.models import Models
from prompts.engine.step import Inputs, Outputs, Step
from prompts.text.amounts import amount_of
from prompts.text.words import content_terms

Operation = Literal[
    "lookup",
    "list",
    "count",
    "sum",
    "average",
    "difference",
    "ratio",
    "max",
    "min",
    "compare",
    "sort",
    "none",
]
MOST_SAMPLES = 6  # cells of a column that are shown
SAMPLE_SHARE = 1 / 250  # of the tokens of all tables, for one cell
AT_ONCE = 4  # tables that share the tokens; where some are small, more fit
_LONGEST_LABEL = 60


class TableFilter(BaseModel, frozen=True):
    """A condition on the rows."""

    column: str
    comparison: Literal["equal", "not_equal", "less", "at_most", "more", "at_least", "contains"]
    value: str = Field(description="A cell as written, or a figure with its scale: 3 million.")


class TablePlan(BaseModel, frozen=True):
    """What to do with which table."""

    reason: str = Field(default="", description="Which rows and columns hold the answer.")
    operation: Operation
    table: int = Field(default=1, description="Number of the table.")
    columns: tuple[str, ...] = ()
    filters: tuple[TableFilter, ...] = ()
    group_by: str = ""
    aggregate: Literal["sum", "average", "count", "max", "min"] = Field(
        default="sum", description="What a group's figure is."
    )
    order: Literal["", "ascending", "descending"] = ""
    limit: int = Field(
        default=0, ge=0, description="How many are asked for; 0: all, for max and min one."
    )


class PlanOverTables(dspy.Signature):
    """Plan how tables answer a question. A database computes the plan, so do no arithmetic: say
    which table, which rows (filters), which columns and which operation. More cells may exist than
    are shown.

    operation: lookup, the cells of the columns in the filtered rows. list, the names of the rows
    or the different cells of the first column. count, the rows. sum, average, of the first column.
    difference, ratio, of the figures of two rows or things (the first filter minus, or divided by,
    the second) or of two columns of one row. max, min, the rows with the highest or lowest figure
    in the first column. compare, the figures of the things that are compared. sort, all rows by
    the first column. none, where the tables do not hold the answer or no operation gives it.

    filters must all hold; two with "equal" on one column mean either. Copy cells as the table
    writes them, also where the question spells them otherwise. "contains" is for a part of a cell.
    Between 10 and 20 is at_least 10 and at_most 20.

    group_by: where a thing has several rows (one for each quarter), the column that names it;
    without it each row counts by itself. Average percentages and prices, do not sum them. "The
    oldest" is the lowest year. Take the column of the right year, unit and kind; none is better
    than a wrong column. A column "document" tells the rows of several documents apart.
    """

    tables: str = dspy.InputField()
    question: str = dspy.InputField()
    plan: TablePlan = dspy.OutputField()


@dataclass(frozen=True, slots=True)
class TableView:
    """A table with every cell as written; the first column names the rows."""

    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class PlanTable(Step):
    """A question and tables → a plan, or None where the tables do not answer it."""

    step = "plan_table"
    role = "decompose"
    task = PlanOverTables

    def __init__(self, models: Models | None = None) -> None:
        super().__init__(models)
        self._places: Mapping[int, int] = {}  # of the given tables, by the numbers that are shown
        self._wrong_with: Callable[[TablePlan], str] = lambda _: ""

    async def run(
        self,
        question: str,
        tables: Sequence[TableView],
        wrong_with: Callable[[TablePlan], str] = lambda _: "",
    ) -> TablePlan | None:
        """The plan; its `table` counts the given tables from 1.

        `wrong_with` says why a plan does not answer the question (empty: it may); the model is told
        once, and its second plan is returned whatever it is.
        """
        if self.is_offline:
            return None
        asked = set(content_terms(question))
        order = sorted(range(len(tables)), key=lambda place: -_shared(asked, tables[place]))
        most = self.policy.limits.structure
        texts = (
            (place, shown_table(tables[place], asked, most, min(len(tables), AT_ONCE)))
            for place in order
        )
        fitting = sorted(first_fitting(texts, lambda table: rough_tokens(table[1]), most))
        shown = [f"[{number}] {text}" for number, (_, text) in enumerate(fitting, 1)]
        self._places = {number: place for number, (place, _) in enumerate(fitting, 1)}
        self._wrong_with = wrong_with
        plan: TablePlan = (await self.acall(question=question, tables="\n\n".join(shown))).plan
        return None if plan.operation == "none" else self._placed(plan)

    def check(self, outputs: Outputs, inputs: Inputs) -> None:
        """Raise Doubtful for a plan that does not answer the question."""
        plan: TablePlan = outputs["plan"]
        if plan.operation == "none":
            return
        if wrong := self._wrong_with(self._placed(plan)):
            raise Doubtful(f"The plan cannot be right: {wrong}.", dict(outputs))

    def _placed(self, plan: TablePlan) -> TablePlan:
        """The plan over the given tables instead of those that are shown; 0 is none of them."""
        return plan.model_copy(update={"table": self._places.get(plan.table, -1) + 1})


def shown_table(table: TableView, asked: set[str], most: int, at_once: int) -> str:
    """A table as text in its share of `most` tokens, which `at_once` tables divide.

    It shows the columns nearest to the question, and the cells that the question may name.
    """
    ranked = sorted(
        range(len(table.columns)),
        key=lambda place: (place > 1, -_overlap(asked, table.columns[place])),
    )
    columns = ((place, _column(table, place, asked, int(SAMPLE_SHARE * most))) for place in ranked)
    fitting = sorted(
        first_fitting(columns, lambda column: rough_tokens(column[1]), most // at_once)
    )
    lines = [f"{table.name} ({len(table.rows)} rows)", *(line for _, line in fitting)]
    if len(fitting) < len(table.columns):
        lines.append(
            f"- and {len(table.columns) - len(fitting)} columns that are farther from the question"
        )
    return "\n".join(lines)


def _column(table: TableView, place: int, asked: set[str], most: int) -> str:
    cells = list(dict.fromkeys(row[place] for row in table.rows if row[place]))
    return f"- {table.columns[place] or '(no header)'}: {_sampled(cells, asked, most)}"


def _sampled(cells: Sequence[str], asked: set[str], most: int) -> str:
    named = sorted(cells, key=lambda cell: -_overlap(asked, cell))[:MOST_SAMPLES]
    shown = "; ".join(first_tokens(cell, most) for cell in cells if cell in named)
    figures = sorted(amount.number for cell in cells if (amount := amount_of(cell)))
    if len(cells) > MOST_SAMPLES:
        wide = (
            f", from {figures[0]:,.10g} to {figures[-1]:,.10g}"
            if 2 * len(figures) > len(cells)
            else ""
        )
        shown += f"; … ({len(cells)} different{wide})"
    return shown


def _overlap(asked: set[str], text: str) -> int:
    return len(asked & set(content_terms(text.replace("_", " "))))


def _shared(asked: set[str], table: TableView) -> float:
    """The number of the question's words in a table's name and columns (double) and row names."""
    named = {
        term
        for text in (table.name, *table.columns)
        for term in content_terms(text.replace("_", " "))
    }
    labels = {
        term
        for row in table.rows
        for cell in row[:2]
        for term in content_terms(cell[:_LONGEST_LABEL])
    }
    return 2 * len(asked & named) + len(asked & labels)
