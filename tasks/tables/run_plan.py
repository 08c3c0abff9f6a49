"""A plan held against the tables that are there: names become the nearest columns and cells, then rows are selected,
grouped and added up."""

import operator
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rapidfuzz import fuzz

from prompts.plan_table import TableFilter, TablePlan
from prompts.text.amounts import amount_of
from prompts.text.words import fold, fold_name
from tasks.tables.relations import DocumentTable, GridCell

Value = tuple[str, float | None]
_COMPARED: dict[str, Callable[..., bool]] = {
    "equal": operator.eq, "not_equal": operator.ne, "less": operator.lt, "at_most": operator.le, "more": operator.gt,
    "at_least": operator.ge,
}  # fmt: skip
_AGGREGATED: dict[str, Callable[[list[float]], float]] = {
    "sum": sum, "average": statistics.fmean, "max": max, "min": min
}  # fmt: skip
# Operations on rows whether or not they have a figure, and those between two things.
_COUNTING, _OF_TWO = frozenset({"lookup", "list", "count"}), frozenset({"difference", "ratio"})
_TOTALS, _EXTREMES = frozenset({"sum", "average"}), frozenset({"max", "min"})
LEAST_ALIKE = 75  # of 100
TWO = 2


class DoesNotFit(Exception):
    """A plan names what the tables do not have; the message says what."""


@dataclass(frozen=True)
class Condition:
    """A column compared with values, as (folded text, number) each; several values of one condition: any of them."""

    column: int
    comparison: str
    values: tuple[Value, ...]

    def met_by(self, row: Sequence[GridCell | None]) -> bool:
        """By number where the value is one and the cell too, else by text; an empty cell meets nothing."""
        cell = row[self.column]
        met = (cell is not None and self.holds(cell, value) for value in self.values)
        return all(met) if self.comparison == "not_equal" else any(met)

    def holds(self, cell: GridCell, value: Value) -> bool:
        """Whether a cell compares with one of the values as the condition says."""
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
    """What a plan came to: the groups of rows in order, the columns asked for, and the rows that were looked at.

    `by` is the column whose equal cells made a group, None where each row is one. `number` is the one figure of a sum,
    an average, a count, a difference or a ratio.
    """

    plan: TablePlan
    table: DocumentTable
    columns: tuple[int, ...]
    conditions: tuple[Condition, ...]
    by: int | None
    groups: tuple[Group, ...]
    rows: tuple[int, ...]
    number: float | None = None


def run(plan: TablePlan, tables: Sequence[DocumentTable]) -> PlanOutcome:
    """The outcome of a plan.

    Raises DoesNotFit where it names a table, a column or a cell that no table has, or where no row is left.
    """
    if not 1 <= plan.table <= len(tables):
        raise DoesNotFit(f"there is no table {plan.table} (there are {len(tables)})")
    table, operation = tables[plan.table - 1], plan.operation
    columns = tuple(_column_of(table, name) for name in plan.columns)
    if not columns and operation not in _COUNTING:
        raise DoesNotFit(f"the operation {operation} needs a column")
    by = columns[0] if columns and operation == "list" else None
    by = _column_of(table, plan.group_by) if plan.group_by else by
    columns = columns or (table.label,)
    aggregate: str = plan.aggregate if plan.group_by else "sum"
    aggregate = "count" if operation in _COUNTING else operation if operation in _TOTALS else aggregate
    conditions = _conditions(plan.filters, table)
    rows = _selected(table, columns[0], conditions, operation in _COUNTING or (by is not None and aggregate == "count"))
    if not rows and operation != "count":
        raise DoesNotFit(f"no row of {table.name} meets the conditions and has a figure in {table.columns[columns[0]]}")
    if by is None and operation in {*_OF_TWO, "compare"} and len(rows) > TWO:
        # Things set side by side that have several rows each are put together by the column that names them.
        by = next((condition.column for condition in conditions if len(condition.values) >= TWO), None)
    groups, number = _grouped(table, rows, columns[0], by, aggregate), None
    if by is None and operation in _TOTALS:
        number = _AGGREGATED[operation]([group.number for group in groups])
        groups = (Group(number, rows),)
    elif operation == "count":
        number = float(len(groups))
    elif operation in _OF_TWO:
        groups = tuple(sorted(groups, key=lambda group: _named_at(table.rows[group.rows[0]], conditions)))
        number = _between(operation, _two_figures(table, groups, columns))
    elif operation not in _COUNTING | _TOTALS:
        rising = operation == "min" or (operation != "max" and plan.order == "ascending")
        groups = tuple(sorted(groups, key=lambda group: group.number, reverse=not rising))
        rows = tuple(row for group in groups for row in group.rows)
    limit = plan.limit or (1 if operation in _EXTREMES else len(groups))
    equals = {groups[limit - 1].number} if operation in _EXTREMES and limit <= len(groups) else set[float]()
    shown = (group for place, group in enumerate(groups) if place < limit or group.number in equals)
    return PlanOutcome(plan, table, columns, conditions, by, tuple(shown) if number is None else groups, rows, number)


def _number_at(table: DocumentTable, row: int, column: int) -> float | None:
    cell = table.rows[row][column]
    return cell.number if cell else None


def _selected(table: DocumentTable, column: int, conditions: Sequence[Condition], counted: bool) -> tuple[int, ...]:
    """The rows that meet all conditions; without a figure in the column computed on only where they are counted."""
    return tuple(
        place
        for place, row in enumerate(table.rows)
        if (counted or _number_at(table, place, column) is not None)
        and all(condition.met_by(row) for condition in conditions)
    )


def _grouped(
    table: DocumentTable, rows: Sequence[int], column: int, by: int | None, aggregate: str
) -> tuple[Group, ...]:
    """The rows in groups, in the order of the table."""
    groups: dict[str | int, list[int]] = {}
    for place in rows:
        cell = None if by is None else table.rows[place][by]
        groups.setdefault(place if by is None else fold(cell.raw) if cell else "", []).append(place)
    made = []
    for own in groups.values():
        figures = [number for row in own if (number := _number_at(table, row, column)) is not None]
        made.append(Group(len(own) if aggregate == "count" else _AGGREGATED[aggregate](figures), tuple(own)))
    return tuple(made)


def _two_figures(table: DocumentTable, groups: Sequence[Group], columns: Sequence[int]) -> list[float | None]:
    """The figures of the groups, or of two columns of the only one."""
    if len(groups) == 1 and len(columns) == TWO:
        return [_number_at(table, groups[0].rows[0], column) for column in columns]
    return [group.number for group in groups]


def _between(operation: str, figures: Sequence[float | None]) -> float:
    """The difference or ratio of two figures."""
    if len(figures) != TWO or figures[0] is None or figures[1] is None:
        raise DoesNotFit(f"a {operation} is between two figures, and there are {len(figures)}")
    if operation == "ratio" and not figures[1]:
        raise DoesNotFit("the second figure of the ratio is 0")
    return figures[0] - figures[1] if operation == "difference" else figures[0] / figures[1]


def _named_at(row: Sequence[GridCell | None], conditions: Sequence[Condition]) -> int:
    """The place of a row among the things that a condition names."""
    for condition in conditions:
        cell = row[condition.column]
        if cell is not None and len(condition.values) >= TWO:
            return [condition.holds(cell, value) for value in condition.values].index(True)
    return 0


# --- names ----------------------------------------------------------------------------------------------------------


def _column_of(table: DocumentTable, name: str) -> int:
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
    conditions: dict[object, Condition] = {}
    for place, table_filter in enumerate(filters):
        column, comparison = _column_of(table, table_filter.column), table_filter.comparison
        values = _values(table_filter, column, table)
        several = comparison in {"equal", "contains", "not_equal"}
        key = (column, comparison) if several else place
        known = conditions[key].values if key in conditions else ()
        conditions[key] = Condition(column, comparison, (*known, *values))
    return tuple(conditions.values())


def _values(table_filter: TableFilter, column: int, table: DocumentTable) -> tuple[Value, ...]:
    """What a filter compares with: a figure, small beside the scale of its column, as the column writes it; else the
    cells that its text means: the same one, those that hold it, the one most alike."""
    text, comparison = fold(table_filter.value.strip()), table_filter.comparison
    amount = amount_of(table_filter.value) if comparison != "contains" else None
    if amount:
        scale = max((cell.scale for row in table.rows if (cell := row[column]) and cell.number is not None), default=1)
        bare = amount.scale == 1.0 < scale and abs(amount.number) < scale
        return ((text, amount.number * scale if bare else amount.number),)
    cells = list(dict.fromkeys(fold(cell.raw) for row in table.rows if (cell := row[column])))
    holding = [cell for cell in cells if text in cell]
    if comparison not in {"equal", "contains"} or (comparison == "contains" and holding):
        return ((text, None),)
    held = [cell for cell in cells if text == cell] or holding
    if not held and (nearest := _nearest(text, cells)) is not None:
        held = [cells[nearest]]
    if not held:
        raise DoesNotFit(f"no cell of {table.columns[column]} in {table.name} is called {text!r}")
    return tuple((cell, None) for cell in held)
