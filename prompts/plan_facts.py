"""Plans which operation on the things of a kind and their typed facts answers a question.

The plan is that of a table with a row for each thing, and a time. It never holds SQL (FalkorDB and
KAG, arXiv 2409.13731, let a model write queries; here a program makes them of what exists).
"""

from typing import Literal

import dspy
from pydantic import BaseModel, ConfigDict, Field

from prompts.plan_table import PlanTable, TablePlan

EVER = "ever"


class ComputedColumn(BaseModel):
    """A column of figures that are made of two columns, row for row."""

    model_config = ConfigDict(frozen=True)

    name: str
    first: str
    operation: Literal["plus", "minus", "times", "divided_by"]
    second: str


class FactPlan(TablePlan):
    """What to do with the things of which kind, and as of when."""

    computed: tuple[ComputedColumn, ...] = ()
    as_of: str = Field(
        default="",
        description=f"2019, 2019-05 or 2019-05-31; {EVER}: at any time; empty: what holds now.",
    )


class PlanOverFacts(dspy.Signature):
    """Plan how typed facts answer a question. A database computes the plan, so do no arithmetic:
    say which table, which rows (filters), which columns and which operation. A table has a row for
    each thing of a kind; behind a column stands its type. More cells may exist than are shown.

    operation: lookup, the cells of the columns in the filtered rows. list, the names of the rows
    or the different cells of the first column. count, the rows. sum, average, of the first column.
    difference, ratio, of the figures or dates of two rows or things (the first filter minus, or
    divided by, the second) or of two columns of one row. max, min, the rows with the highest or
    lowest figure or the latest or earliest date in the first column. compare, the figures of the
    things that are compared. sort, all rows by the first column. none, where the tables do not
    hold the answer or no operation gives it.

    A column of what a relation leads to is written with >: "designed by > born" is when the person
    was born who designed the row. Choose the table of the things that are counted, listed or
    compared, and reach all others by such columns.

    filters must all hold; two with "equal" on one column mean either. Copy cells as the table
    writes them, also where the question spells them otherwise. "contains" is for a part of a cell.
    Between 10 and 20 is at_least 10 and at_most 20. Dates are compared like figures: after 1950 is
    more 1950, in 1950 is equal 1950. Write units: more 0.5 km.

    computed: columns that are made of two columns of figures or dates, row for row, each with a
    name under which columns and filters use it: "turnover per employee" is turnover divided_by
    employees, the age of a bridge's designer at its opening is opened minus "designed by > born"
    (in whole years).

    group_by: for "which person designed most" the column of that person, with aggregate count;
    without it each row counts by itself. as_of: the time for which the question asks, where it
    names one for the facts themselves, as "as of 2019" or "in 2019" does for an owner; not a date
    that a filter compares.
    """

    tables: str = dspy.InputField()
    question: str = dspy.InputField()
    plan: FactPlan = dspy.OutputField()


class PlanFacts(PlanTable):
    """A question and tables of typed facts → a plan, or None where they do not answer it."""

    step = "plan_facts"
    task = PlanOverFacts
