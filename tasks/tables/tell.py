"""The outcome of a plan in words: a Markdown table of its rows, one sentence, the bare values, and the cells behind it.

Figures stand as the documents write them; computed ones are written as those that they were computed of.
"""

import re
from collections.abc import Sequence

from prompts.text.amounts import scale_stated
from prompts.text.words import is_han
from storage.answer_records import TableCell, TableResult
from storage.table_query import Condition, Group
from tasks.tables.relations import Cell
from tasks.tables.run import Outcome

MOST_SHOWN, MOST_CELLS, MOST_NAMED = 30, 60, 40
_AFFIX = re.compile(r"(?P<before>[^\d(+\-−–.]*)[^A-Za-z%％\u4e00-\u9fff]*\d(?P<after>[^\d)）]*)[)）]?")
_SCALES = {1e3: "thousands", 1e4: "ten thousands", 1e6: "millions", 1e8: "hundred millions", 1e9: "billions"}
_SCALES_ZH = {1e3: "千", 1e4: "万", 1e6: "百万", 1e8: "亿", 1e9: "十亿"}
_SIGNS = {"equal": "=", "not_equal": "≠", "less": "<", "at_most": "≤", "more": ">", "at_least": "≥", "contains": "∋"}


def tell(question: str, outcome: Outcome) -> TableResult:
    """The result of an outcome, its sentence in the question's language."""
    words = _Words(outcome, is_han(question))
    return TableResult(
        table=_markdown(words),
        sentence=words.sentence(),
        values=tuple(dict.fromkeys(words.values())),
        cells=_cells(outcome),
        plan=_described(outcome),
    )


class _Words:
    """An outcome's names and figures as they are written."""

    def __init__(self, outcome: Outcome, chinese: bool) -> None:
        self.outcome = outcome
        self.chinese = chinese
        self.column = outcome.columns[0]
        self.named = _names(outcome)

    def values(self) -> list[str]:
        """The bare answers."""
        outcome, operation = self.outcome, self.outcome.plan.operation
        if outcome.number is not None:
            return [self.computed()]
        if operation in {"max", "min", "list", "compare", "sort"}:
            return [self.named[group.rows] for group in outcome.groups][: 1 if operation == "compare" else None]
        if operation == "lookup":
            return [
                cell.raw for group in outcome.groups for column in outcome.columns if (cell := self._at(group, column))
            ]
        return [self.figure(group) for group in outcome.groups]

    def sentence(self) -> str:
        """What came out, in one sentence."""
        operation, outcome, head = self.outcome.plan.operation, self.outcome, self.header(self.column)
        if outcome.plan.aggregate == "count" and outcome.by != "row":
            head = "数量" if self.chinese else "count"
        join, stop = ("、", "。") if self.chinese else ("; ", ".")
        groups = outcome.groups[:MOST_NAMED]
        names = join.join(self.named[group.rows] for group in groups)
        stated = join.join(f"{self.named[group.rows]}{self._colon}{self.figure(group)}" for group in groups)
        more = len(outcome.groups) - len(groups)
        tail = (f"，还有{more}项" if self.chinese else f"; and {more} more") if more > 0 else ""
        if operation == "lookup":
            stated = join.join(self._looked_up(group) for group in groups)
            return f"{stated}{tail}{stop}"
        if operation == "list":
            return f"{names}{tail}{stop}"
        if operation == "count":
            listed = f"{self._colon}{names}{tail}" if groups else ""
            return f"{self.computed()}{listed}{stop}"
        if outcome.number is not None:
            return self._computed_sentence(head, stated, stop)
        first = {"max": ("Highest", "最高"), "min": ("Lowest", "最低")}.get(operation)
        lead = first[self.chinese] if first else ""
        opening = f"{head}{lead}" if self.chinese else f"{lead} {head}" if lead else head
        return f"{opening}{self._colon}{stated}{tail}{stop}"

    def _computed_sentence(self, head: str, stated: str, stop: str) -> str:
        operation, rows = self.outcome.plan.operation, len(self.outcome.groups[0].rows)
        number = self.computed() + self.remark(self._own_cells())
        if operation in {"sum", "average"}:
            name = {"sum": ("Sum", "合计"), "average": ("Average", "平均")}[operation][self.chinese]
            if self.chinese:
                return f"{head}{name}（{rows}行）：{number}{stop}"
            return f"{name} of {head} ({rows} {'row' if rows == 1 else 'rows'}): {number}{stop}"
        if len(self.outcome.groups) == 1:
            stated = self._looked_up(self.outcome.groups[0])
        name = {"difference": ("difference", "相差"), "ratio": ("ratio", "比值")}[operation][self.chinese]
        joint = "；" if self.chinese else "; "
        return f"{stated}{joint}{name}{self._colon}{number}{stop}" if self.chinese else (
            f"{head}: {stated}{joint}{name}: {number}{stop}"
        )  # fmt: skip

    @property
    def _colon(self) -> str:
        return "：" if self.chinese else ": "

    def _looked_up(self, group: Group) -> str:
        """The cells asked for of one row, each with its column."""
        join = "，" if self.chinese else ", "
        said = [
            f"{self.header(column)}{self._colon}{cell.raw}{self.remark([cell])}"
            for column in self.outcome.columns
            if (cell := self._at(group, column))
        ]
        name = self.named[group.rows]
        return f"{name} – {join.join(said)}" if self.outcome.columns != (self.outcome.table.label,) else name

    def header(self, column: int) -> str:
        """What a column is called."""
        return self.outcome.table.columns[column] or ("数值" if self.chinese else "figure")

    def figure(self, group: Group) -> str:
        """A group's figure: the cell itself where it is of one row, else as its cells are written."""
        cells = [
            cell for row in group.rows if (cell := self.outcome.cell(row, self.column)) and cell.number is not None
        ]
        if self.outcome.plan.aggregate == "count" and self.outcome.by != "row":
            return str(len(group.rows))
        if len(cells) == 1:
            return cells[0].raw + self.remark(cells)
        return written(group.number or 0.0, cells, self._averages) + self.remark(cells)

    def computed(self) -> str:
        """The one figure of the outcome."""
        number, operation = self.outcome.number or 0.0, self.outcome.plan.operation
        if operation == "count":
            return f"{number:.0f}"
        if operation == "ratio":
            return f"{number:.4g}"
        difference = operation == "difference"
        return written(abs(number) if difference else number, self._own_cells(), self._averages)

    def remark(self, cells: Sequence[Cell]) -> str:
        """What the heading of the table says of its figures, where neither the cells nor their column do."""
        scales = {cell.scale for cell in cells if cell.number is not None}
        scale = scales.pop() if len(scales) == 1 else 1.0
        if scale == 1.0 or scale_stated(self.header(self.column)) != 1.0 or any(_affixes(c.raw)[1] for c in cells):
            return ""
        if self.chinese:
            return f"（{_SCALES_ZH[scale]}）" if scale in _SCALES_ZH else ""
        return f" (in {_SCALES[scale]})" if scale in _SCALES else ""

    @property
    def _averages(self) -> bool:
        plan = self.outcome.plan
        return plan.operation == "average" or (self.outcome.by != "row" and plan.aggregate == "average")

    def _own_cells(self) -> list[Cell]:
        rows = [row for group in self.outcome.groups for row in group.rows]
        found = (self.outcome.cell(row, column) for row in rows for column in self.outcome.columns)
        return [cell for cell in found if cell and cell.number is not None]

    def _at(self, group: Group, column: int) -> Cell | None:
        return self.outcome.cell(group.rows[0], column)


def written(number: float, cells: Sequence[Cell], averaged: bool = False) -> str:
    """A computed figure in the form of the cells that it was computed of: sign of money, unit, commas, decimals."""
    scales = {cell.scale for cell in cells}
    same = scales.pop() if len(scales) == 1 else 1.0
    affixes = [_affixes(cell.raw) for cell in cells]
    alike = len({(before.strip(), after.strip()) for before, after in affixes}) == 1
    before, after = affixes[0] if alike else ("", "")
    if same == 1.0 and any(cell.scale != 1.0 for cell in cells):
        after = ""
    number = number / same
    places = max((cell.places for cell in cells), default=0)
    comma = "," if any("," in cell.raw for cell in cells) or abs(number) >= 1e5 else ""
    text = f"{number:{comma}.{places + 2 if averaged else places}f}"
    if averaged and "." in text:
        kept, _, rest = text.partition(".")
        rest = rest[:places] + rest[places:].rstrip("0")
        text = f"{kept}.{rest}" if rest else kept
    return f"{before}{text}{after}"


def _affixes(raw: str) -> tuple[str, str]:
    """What stands before and after a figure: ("$", " million")."""
    match = _AFFIX.fullmatch(raw)
    return (match["before"], match["after"]) if match else ("", "")


def _names(outcome: Outcome) -> dict[tuple[int, ...], str]:
    """What each group of rows is called: the cell it was put together by, or its row's name, told apart by more of its
    words where two rows have one name."""
    every = [*outcome.groups, *outcome.considered]
    if isinstance(outcome.by, int):
        cells = {group.rows: outcome.cell(group.rows[0], outcome.by) for group in every}
        return {rows: cell.raw if cell else "–" for rows, cell in cells.items()}
    table = outcome.table
    words = [table.label, *(c for c in range(len(table.columns)) if c != table.label and _tells_apart(outcome, c))]
    made: dict[tuple[int, ...], str] = {}
    for many in range(1, min(len(words), 3) + 1):
        made = {
            group.rows: ", ".join(cell.raw for c in words[:many] if (cell := outcome.cell(group.rows[0], c)))
            for group in every
        }
        if len(set(made.values())) == len(made):
            break
    return {rows: " ".join(name.split()) or "–" for rows, name in made.items()}


def _tells_apart(outcome: Outcome, column: int) -> bool:
    """Whether a column holds words."""
    cells = [cell for row in outcome.table.rows[:20] if (cell := row[column])]
    return column not in outcome.columns and sum(cell.number is None for cell in cells) * 2 > len(cells)


def _rows(outcome: Outcome) -> list[int]:
    """The rows behind a result, those of the result first."""
    return list(dict.fromkeys(row for group in (*outcome.groups, *outcome.considered) for row in group.rows))


def _markdown(words: _Words) -> str:
    outcome = words.outcome
    used = [outcome.table.label, *([outcome.by] if isinstance(outcome.by, int) else [])]
    used += [condition.column for condition in outcome.conditions] + list(outcome.columns)
    columns, rows = list(dict.fromkeys(used)), _rows(outcome)
    if not rows:
        return ""
    lines = [[words.header(column) for column in columns], ["---"] * len(columns)]
    lines += [[cell.raw if (cell := outcome.cell(row, c)) else "" for c in columns] for row in rows[:MOST_SHOWN]]
    if len(rows) > MOST_SHOWN:
        lines.append([f"… {len(rows) - MOST_SHOWN} more rows", *[""] * (len(columns) - 1)])
    return "\n".join("| " + " | ".join(" ".join(c.split()).replace("|", "\\|") for c in line) + " |" for line in lines)


def _cells(outcome: Outcome) -> tuple[TableCell, ...]:
    """The cells that were computed on or asked for; where only rows were counted those that the conditions are on."""
    columns = [*outcome.columns] if outcome.columns != (outcome.table.label,) else []
    columns = columns or [condition.column for condition in outcome.conditions] or [outcome.table.label]
    found = dict.fromkeys((row, column) for row in _rows(outcome) for column in dict.fromkeys(columns))
    made = []
    for row, column in found:
        cell, label = outcome.cell(row, column), outcome.cell(row, outcome.table.label)
        if cell is not None and cell.document:
            named = " ".join(label.raw.split()) if label else ""
            made.append(
                TableCell(
                    document=cell.document, start=cell.start, end=cell.end, raw=cell.raw, row=named,
                    column=outcome.table.columns[column],
                )
            )  # fmt: skip
    return tuple(made[:MOST_CELLS])


def _described(outcome: Outcome) -> str:
    """What was done, for the trace."""
    table, plan = outcome.table, outcome.plan
    said = f"{plan.operation} of {', '.join(table.columns[column] for column in outcome.columns)} in {table.name}"
    if outcome.conditions:
        said += f" where {' and '.join(_condition(one, table.columns) for one in outcome.conditions)}"
    if isinstance(outcome.by, int):
        said += f" by {table.columns[outcome.by]}"
        said += f" ({plan.aggregate})" if plan.operation not in {"sum", "average", "count", "list"} else ""
    return said + (f", first {plan.limit}" if plan.limit else "")


def _condition(condition: Condition, columns: Sequence[str]) -> str:
    shown = " or ".join(
        f"{value.number:.10g}" if value.number is not None else value.text for value in condition.values
    )
    return f"{columns[condition.column]} {_SIGNS[condition.comparison]} {shown}"
