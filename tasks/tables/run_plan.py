"""A model's plan as a query over rows: its names become columns and cells of the tables."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from rapidfuzz import fuzz, process

from prompts.plan_table import TableFilter, TablePlan
from prompts.text.amounts import amount_of
from prompts.text.words import fold, fold_name
from storage.tables import Aggregate, Condition, Operator, RowGroup, RowQuery, Value, select_groups
from tasks.tables.relations import TableRelation

_OPERATORS: dict[str, Operator] = {
    "equal": "=",
    "not_equal": "!=",
    "less": "<",
    "at_most": "<=",
    "more": ">",
    "at_least": ">=",
    "contains": "contains",
}
_AGGREGATES: dict[str, Aggregate] = {
    "sum": "sum",
    "average": "avg",
    "count": "count",
    "max": "max",
    "min": "min",
}
# Operations that need no figure, those on two things, on all rows, and on the best rows.
_COUNTING, _OF_TWO = frozenset({"lookup", "list", "count"}), frozenset({"difference", "ratio"})
_TOTALS, _EXTREMES = frozenset({"sum", "average"}), frozenset({"max", "min"})
LEAST_ALIKE = 75  # of 100: how similar a name of the plan must be to one of the table


class DoesNotFit(Exception):
    """A plan does not fit the tables; the message says why."""


@dataclass(frozen=True)
class PlanOutcome:
    """The result of a plan: groups of rows in order, and the columns that it is about.

    Equal cells of the column `by` make a group; if it is None, each row is a group. `number` is the
    single figure of a sum, an average, a count, a difference or a ratio.
    """

    plan: TablePlan
    relation: TableRelation
    columns: tuple[int, ...]
    conditions: tuple[Condition, ...]
    by: int | None
    groups: tuple[RowGroup, ...]
    number: float | None = None

    @property
    def rows(self) -> tuple[int, ...]:
        return tuple(row for group in self.groups for row in group.rows)


def run(plan: TablePlan, relations: Sequence[TableRelation]) -> PlanOutcome:
    """Run a plan over the relations, which it counts from 1.

    Raises DoesNotFit if there is no such table, column or cell, or no row is left.
    """
    if not 1 <= plan.table <= len(relations):
        raise DoesNotFit(f"there is no table {plan.table} (there are {len(relations)})")
    relation, operation = relations[plan.table - 1], plan.operation
    columns = tuple(_column_of(relation, name) for name in plan.columns)
    if not columns and operation not in _COUNTING:
        raise DoesNotFit(f"the operation {operation} needs a column")
    by = columns[0] if columns and operation == "list" else None
    by = _column_of(relation, plan.group_by) if plan.group_by else by
    columns = columns or (relation.label,)
    conditions = _conditions(plan.filters, relation)
    query = RowQuery(
        conditions=conditions,
        figure=None if operation in _COUNTING else columns[0],
        aggregate=_AGGREGATES[operation if operation in _TOTALS else plan.aggregate],
        by=by,
        together=operation in _TOTALS and by is None,
        order=_order(plan),
        best=_best(plan),
    )
    if by is None and operation in {*_OF_TWO, "compare"}:
        by, query = _side_by_side(relation, query)
    groups = _select(relation, query)
    if not groups and operation != "count":
        name = relation.columns[columns[0]]
        raise DoesNotFit(
            f"no row of {relation.name} meets the conditions and has a figure in {name}"
        )
    number = None
    if operation == "count":
        number = float(len(groups))
    elif query.together:
        number = groups[0].number
    elif operation in _OF_TWO:
        groups = sorted(groups, key=lambda group: _place_in_plan(relation, group, conditions))
        number = _between(operation, _two_figures(relation, groups, columns))
    return PlanOutcome(plan, relation, columns, conditions, by, tuple(groups), number)


def misfit(plan: TablePlan, relations: Sequence[TableRelation]) -> str:
    """Return why a plan does not fit the relations; empty if it does."""
    try:
        run(plan, relations)
    except DoesNotFit as problem:
        return str(problem)
    return ""


def meeting(relation: TableRelation, filters: Sequence[TableFilter]) -> list[int]:
    """Return the rows that meet all filters. Raises DoesNotFit."""
    conditions = _conditions(filters, relation)
    groups = _select(relation, RowQuery(conditions=conditions))
    return [row for group in groups for row in group.rows]


def _order(plan: TablePlan) -> Literal["", "ASC", "DESC"]:
    if plan.operation in _COUNTING | _TOTALS | _OF_TWO:
        return ""
    rising = plan.operation == "min" or (plan.operation != "max" and plan.order == "ascending")
    return "ASC" if rising else "DESC"


def _best(plan: TablePlan) -> int | None:
    if plan.operation in {"count", *_TOTALS, *_OF_TWO}:
        return None
    return plan.limit or (1 if plan.operation in _EXTREMES else None)


def _select(relation: TableRelation, query: RowQuery) -> list[RowGroup]:
    named = {query.figure, query.by, *(condition.column for condition in query.conditions)}
    columns = {place: relation.column(place) for place in named | {0} if place is not None}
    return select_groups(columns, query)


def _side_by_side(relation: TableRelation, query: RowQuery) -> tuple[int | None, RowQuery]:
    """Group the rows of things that are compared and have several rows each by their names."""
    named = [one.column for one in query.conditions if len(one.values) >= 2]
    if not named or len(_select(relation, query)) <= 2:
        return None, query
    return named[0], replace(query, by=named[0])


def _place_in_plan(
    relation: TableRelation, group: RowGroup, conditions: Sequence[Condition]
) -> int:
    for condition in conditions:
        cell = relation.rows[group.rows[0]][condition.column]
        texts = [text for text, _ in condition.values]
        if cell and len(texts) >= 2 and fold(cell.shown) in texts:
            return texts.index(fold(cell.shown))
    return 0


def _two_figures(
    relation: TableRelation, groups: Sequence[RowGroup], columns: Sequence[int]
) -> list[float | None]:
    if len(groups) == 1 and len(columns) == 2:
        cells = [relation.rows[groups[0].rows[0]][column] for column in columns]
        amounts = [cell.amount if cell else None for cell in cells]
        return [amount.number if amount else None for amount in amounts]
    return [group.number for group in groups]


def _between(operation: str, figures: Sequence[float | None]) -> float:
    if len(figures) != 2 or figures[0] is None or figures[1] is None:
        raise DoesNotFit(f"a {operation} is between two figures, and there are {len(figures)}")
    if operation == "ratio" and not figures[1]:
        raise DoesNotFit("the second figure of the ratio is 0")
    return figures[0] - figures[1] if operation == "difference" else figures[0] / figures[1]


# --- names -----------------------------------------------------------------------------------


def _column_of(relation: TableRelation, name: str) -> int:
    column = nearest(name, relation.columns)
    if column is None:
        known = ", ".join(relation.columns[:12])
        raise DoesNotFit(f"{relation.name} has no column {name!r}; it has {known}")
    return column


def nearest(name: str, among: Sequence[str]) -> int | None:
    """Return the place of the most similar name by shared words; equals by their spelling."""
    key, names = fold_name(name), [fold_name(other) for other in among]
    if key in names:
        return names.index(key)
    found = process.extract(
        key, names, scorer=fuzz.token_set_ratio, score_cutoff=LEAST_ALIKE, limit=None
    )
    best = max(found, key=lambda one: (one[1], fuzz.ratio(key, one[0]), -one[2]), default=None)
    return None if best is None else best[2]


def _conditions(filters: Sequence[TableFilter], relation: TableRelation) -> tuple[Condition, ...]:
    """Make conditions of filters; several equal comparisons of one column are alternatives."""
    conditions: dict[object, Condition] = {}
    for place, one in enumerate(filters):
        column, operator = _column_of(relation, one.column), _OPERATORS[one.comparison]
        key = (column, operator) if operator in {"=", "!=", "contains"} else place
        known = conditions[key].values if key in conditions else ()
        values = (*known, *_values(one, column, relation))
        conditions[key] = Condition(column, operator, values)
    return tuple(conditions.values())


def _values(one: TableFilter, column: int, relation: TableRelation) -> tuple[Value, ...]:
    """Return the values with which a filter compares.

    A figure with a scale of its own ("3 million") is converted to the scale of the column. An equal
    text is that of a cell, or else of the cells that hold it, or else of the most similar cell.
    """
    value = relation.spelt(one.value)
    text = fold(value.strip())
    bounds = None if one.comparison == "contains" else relation.bounds(column, value)
    if bounds is not None:
        return _between_bounds(one, column, relation, bounds)
    if one.comparison != "contains" and (amount := amount_of(one.value)):
        own = relation.scale(column) if amount.scale != 1.0 else 1.0
        return ((text, amount.number / own),)
    if one.comparison not in {"equal", "contains"}:
        return ((text, None),)
    cells = list(dict.fromkeys(fold(cell.shown) for row in relation.rows if (cell := row[column])))
    holding = [cell for cell in cells if text in cell]
    if one.comparison == "contains" and holding:
        return ((text, None),)
    held = [text] if text in cells else holding
    if not held and (like := nearest(text, cells)) is not None:
        held = [cells[like]]
    if not held:
        raise DoesNotFit(
            f"no cell of {relation.columns[column]} in {relation.name} is called {text!r}"
        )
    return tuple((cell, None) for cell in held)


def _between_bounds(
    one: TableFilter, column: int, relation: TableRelation, bounds: tuple[float, float]
) -> tuple[Value, ...]:
    """Return the values with which a filter compares a typed column: a bound, or all figures that
    lie between the bounds.
    """
    text, (low, high) = fold(one.value.strip()), bounds
    if one.comparison in {"less", "at_least"}:
        return ((text, low),)
    if one.comparison in {"more", "at_most"}:
        return ((text, high),)
    amounts = [cell.amount for row in relation.rows if (cell := row[column])]
    figures = {amount.number for amount in amounts if amount and low <= amount.number <= high}
    return tuple((text, figure) for figure in sorted(figures)) or ((text, low),)
