"""A plan held against the tables that are there: names become the nearest columns and cells, then rows are selected,
grouped and added up."""

import operator
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from rapidfuzz import fuzz

from prompts.plan_table import TableFilter, TablePlan
from prompts.text.amounts import amount_of
from prompts.text.words import fold, fold_name
from tasks.tables.relations import DocumentTable, GridCell

Comparison = Literal["equal", "not_equal", "less", "at_most", "more", "at_least", "contains"]
Grouping = Literal["row", "all"] | int
Value = tuple[str, float | None]
_COMPARED: dict[Comparison, Callable[..., bool]] = {
    "equal": operator.eq, "not_equal": operator.ne, "less": operator.lt, "at_most": operator.le, "more": operator.gt,
    "at_least": operator.ge,
}  # fmt: skip
_AGGREGATED: dict[str, Callable[[list[float]], float]] = {
    "sum": sum, "average": statistics.fmean, "max": max, "min": min
}  # fmt: skip
# Operations on rows whether or not they have a figure, and those between two things.
_COUNTING, _OF_TWO = frozenset({"lookup", "list", "count"}), frozenset({"difference", "ratio"})
LEAST_ALIKE = 75  # of 100
TWO = 2


class DoesNotFit(Exception):
    """A plan names what the tables do not have; the message says what."""


@dataclass(frozen=True)
class Condition:
    """A column compared with values, as (folded text, number) each; several values of one condition: any of them."""

    column: int
    comparison: Comparison
    values: tuple[Value, ...]

    def met_by(self, row: Sequence[GridCell | None]) -> bool:
        """By number where the value is one and the cell too, else by text; an empty cell meets nothing."""
        cell = row[self.column]
        met = (cell is not None and self._holds(cell, value) for value in self.values)
        return all(met) if self.comparison == "not_equal" else any(met)

    def _holds(self, cell: GridCell, value: Value) -> bool:
        text, number = value
        if self.comparison == "contains":
            return text in fold(cell.raw)
        if number is not None and cell.number is not None:
            return _COMPARED[self.comparison](cell.number, number)
        return _COMPARED[self.comparison](fold(cell.raw), text)


@dataclass(frozen=True)
class Group:
    """What one group of rows comes to, and the rows (their places in the table) that it was made of."""

    number: float
    rows: tuple[int, ...]


@dataclass(frozen=True)
class PlanOutcome:
    """What a plan came to: the groups of rows in order, the column computed on, and the rows that were looked at.

    `by` is the column whose equal cells made a group, "row" where each row is one, "all" where all are one. `number` is
    the one figure of a sum, an average, a count, a difference or a ratio.
    """

    plan: TablePlan
    table: DocumentTable
    columns: tuple[int, ...]
    conditions: tuple[Condition, ...]
    by: Grouping
    groups: tuple[Group, ...] = ()
    rows: tuple[int, ...] = ()
    number: float | None = None

    def cell(self, row: int, column: int) -> GridCell | None:
        """A cell of the table."""
        return self.table.rows[row][column]

    def number_at(self, row: int, column: int) -> float | None:
        """The figure of a cell."""
        cell = self.cell(row, column)
        return cell.number if cell else None


def run(plan: TablePlan, tables: Sequence[DocumentTable]) -> PlanOutcome:
    """The outcome of a plan.

    Raises DoesNotFit where it names a table, a column or a cell that no table has, or where no row is left.
    """
    if not 1 <= plan.table <= len(tables):
        raise DoesNotFit(f"there is no table {plan.table} (there are {len(tables)})")
    table, operation = tables[plan.table - 1], plan.operation
    columns = tuple(column_of(table, name) for name in plan.columns)
    if not columns and operation not in _COUNTING:
        raise DoesNotFit(f"the operation {operation} needs a column")
    columns = columns or (table.label,)
    by: Grouping = columns[0] if operation == "list" and plan.columns else "row"
    by = column_of(table, plan.group_by) if plan.group_by else by
    outcome = PlanOutcome(plan, table, columns, _conditions(plan.filters, table), by)
    outcome = replace(outcome, rows=_selected(outcome))
    if not outcome.rows and operation != "count":
        raise DoesNotFit(f"no row of {table.name} meets the conditions and has a figure in {table.columns[columns[0]]}")
    return _computed(outcome)


def _selected(outcome: PlanOutcome) -> tuple[int, ...]:
    """The rows that meet all conditions; without a figure in the column computed on only where they are counted."""
    counted = outcome.plan.operation in _COUNTING or (outcome.by != "row" and outcome.plan.aggregate == "count")
    places = [
        place
        for place in range(len(outcome.table.rows))
        if (counted or outcome.number_at(place, outcome.columns[0]) is not None)
        and all(condition.met_by(outcome.table.rows[place]) for condition in outcome.conditions)
    ]
    return tuple(places)


def _computed(outcome: PlanOutcome) -> PlanOutcome:
    plan, operation = outcome.plan, outcome.plan.operation
    if operation in {"sum", "average"}:
        whole = outcome.by == "row"
        outcome = replace(outcome, by="all") if whole else outcome
        groups = _grouped(outcome, operation)
        return replace(outcome, groups=groups, number=groups[0].number if whole else None)
    if outcome.by == "row" and operation in {*_OF_TWO, "compare"} and len(outcome.rows) > TWO:
        # Things set side by side that have several rows each are put together by the column that names them.
        named = (condition.column for condition in outcome.conditions if len(condition.values) >= TWO)
        outcome = replace(outcome, by=next(named, "row"))
    groups = _grouped(outcome, "count" if operation in _COUNTING else "sum" if outcome.by == "row" else plan.aggregate)
    if operation == "count":
        return replace(outcome, groups=groups, number=float(len(groups)))
    if operation in _OF_TWO:
        return _between(replace(outcome, groups=groups))
    if operation not in _COUNTING:
        lowest_first = operation == "min" or (operation != "max" and plan.order == "ascending")
        groups = tuple(sorted(groups, key=lambda group: group.number, reverse=not lowest_first))
        outcome = replace(outcome, rows=tuple(row for group in groups for row in group.rows))
    if operation in {"max", "min"}:
        last = groups[: plan.limit or 1][-1].number
        return replace(outcome, groups=tuple(g for g in groups if g in groups[: plan.limit] or g.number == last))
    return replace(outcome, groups=groups[: plan.limit or None])


def _grouped(outcome: PlanOutcome, aggregate: str) -> tuple[Group, ...]:
    """The rows in groups, in the order of the table."""
    groups: dict[object, list[int]] = {}
    for place in outcome.rows:
        cell = outcome.cell(place, outcome.by) if isinstance(outcome.by, int) else None
        groups.setdefault(fold(cell.raw) if cell else place if outcome.by == "row" else None, []).append(place)
    figures = [
        [number for row in rows if (number := outcome.number_at(row, outcome.columns[0])) is not None]
        for rows in groups.values()
    ]
    return tuple(
        Group(len(rows) if aggregate == "count" else _AGGREGATED[aggregate](own), tuple(rows))
        for rows, own in zip(groups.values(), figures, strict=True)
    )


def _between(outcome: PlanOutcome) -> PlanOutcome:
    """The difference or ratio of two groups, in the order in which the conditions name them, or of two columns of a
    row."""
    groups, operation = outcome.groups, outcome.plan.operation
    if len(groups) == 1 and len(outcome.columns) == TWO:
        figures = [outcome.number_at(groups[0].rows[0], column) for column in outcome.columns]
    else:
        groups = tuple(sorted(groups, key=lambda group: _named_at(group, outcome)))
        figures = [group.number for group in groups]
    if len(figures) != TWO or figures[0] is None or figures[1] is None:
        raise DoesNotFit(f"a {operation} is between two figures, and there are {len(figures)}")
    if operation == "ratio" and not figures[1]:
        raise DoesNotFit("the second figure of the ratio is 0")
    number = figures[0] - figures[1] if operation == "difference" else figures[0] / figures[1]
    return replace(outcome, groups=groups, number=number)


def _named_at(group: Group, outcome: PlanOutcome) -> int:
    for condition in outcome.conditions:
        cell = outcome.cell(group.rows[0], condition.column)
        for place, (text, number) in enumerate(condition.values if len(condition.values) >= TWO else ()):
            if cell is not None and (text in fold(cell.raw) or number == cell.number is not None):
                return place
    return 0


# --- names ----------------------------------------------------------------------------------------------------------


def column_of(table: DocumentTable, name: str) -> int:
    """The column that a name means: the same, else the one most alike. DoesNotFit where none is near."""
    column = _nearest(name, table.columns)
    if column is None:
        raise DoesNotFit(f"{table.name} has no column {name!r}; it has {', '.join(table.columns[:12])}")
    return column


def _nearest(name: str, among: Sequence[str]) -> int | None:
    """The place of what is most like a name: by the words that they share, then by their letters."""
    key, names = fold_name(name), [fold_name(other) for other in among]
    if key in names:
        return names.index(key)
    scores = [(fuzz.token_set_ratio(key, other), fuzz.ratio(key, other)) for other in names]
    best = max(scores, default=(0.0, 0.0))
    return scores.index(best) if best[0] >= LEAST_ALIKE else None


def _conditions(filters: Sequence[TableFilter], table: DocumentTable) -> tuple[Condition, ...]:
    """Filters with the cells that they mean; those with "equal" or "contains" on one column are alternatives."""
    conditions: list[Condition] = []
    for table_filter in filters:
        column, comparison = column_of(table, table_filter.column), table_filter.comparison
        values: tuple[Value, ...] = (_value(table_filter, column, table),)
        if comparison in {"equal", "contains"} and values[0][1] is None:
            values = _meant(values[0][0], comparison, column, table)
        known = next((c for c in conditions if c.column == column and c.comparison == comparison), None)
        if known and comparison in {"equal", "contains", "not_equal"}:
            conditions[conditions.index(known)] = replace(known, values=(*known.values, *values))
        else:
            conditions.append(Condition(column, comparison, values))
    return tuple(conditions)


def _value(table_filter: TableFilter, column: int, table: DocumentTable) -> Value:
    """A filter's value; a bare figure that is small beside the column's scale is meant as the column writes it."""
    amount = amount_of(table_filter.value) if table_filter.comparison != "contains" else None
    number = amount.number if amount else None
    scale = max((cell.scale for row in table.rows if (cell := row[column]) and cell.number is not None), default=1.0)
    if amount and number is not None and amount.scale == 1.0 < scale and abs(number) < scale:
        number *= scale
    return fold(table_filter.value.strip()), number


def _meant(text: str, comparison: str, column: int, table: DocumentTable) -> tuple[Value, ...]:
    """The cells that a text means: the same one, those that hold it, else the one most alike."""
    cells = list(dict.fromkeys(fold(cell.raw) for row in table.rows if (cell := row[column])))
    if comparison == "contains" and any(text in cell for cell in cells):
        return ((text, None),)
    held = [cell for cell in cells if text == cell] or [cell for cell in cells if text in cell]
    nearest = None if held else _nearest(text, cells)
    if nearest is not None:
        held = [cells[nearest]]
    if not held:
        raise DoesNotFit(f"no cell of {table.columns[column]} in {table.name} is called {text!r}")
    return tuple((cell, None) for cell in held)
