"""Which cells of a document answer an attribute: the row that names it, of the current period, of the whole company?"""

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from prompts.language.words import fold_name
from storage.structures import Cell, Schema
from tasks.structurize.labels import likeness, said_in
from tasks.structurize.periods import CHANGE, end_of

# A label less alike than this does not answer. Chosen on the questions that no benchmark of tables measures.
LEAST = 0.66
_BONUS_CURRENT, _BONUS_ASKED, _BONUS_STATEMENT = 0.12, 0.06, 0.05
_MALUS_CHANGE, _MALUS_PARENT, _MALUS_SENTENCE, _MALUS_WORDS = 0.4, 0.10, 0.16, 0.25
_STATEMENT = re.compile(
    r"balance sheets?|"
    r"statements? of (?:consolidated )?(?:operations|income|comprehensive|cash|financial|earnings|assets|loss)|"
    r"资产负债表|利润表|现金流量表|主要会计数据|主要财务数据",
    re.I,
)
_PARENT = re.compile(r"母公司|\bparent (?:company )?only\b|公司资产负债表|公司利润表|公司现金流量表", re.I)
_CONSOLIDATED = re.compile(r"合并")
_RATE = re.compile(r"率|比例|增减|变动|占比|%|\brate\b|\bratio\b|margin|percent|growth|change", re.I)
# In a statement of cash flows "Accounts receivable" is what it changed by.
_CASH_FLOW = re.compile(r"cash flows?\b|operating activities|changes in (?:operating )?(?:assets|working)", re.I)
_OF_CASH_FLOW = re.compile(
    r"cash|flow|change|payment|proceed|purchase|repayment|depreciation|amorti[sz]ation|paid|issuance|increase|decrease",
    re.I,
)
_SHARES = re.compile(
    r"\b(?:shares?|units?|stock) (?:issued and )?outstanding|number of (?:\w+ )?shares|outstanding shares", re.I
)
_PER_SHARE = re.compile(r"per (?:\w+ )?(?:share|unit)|\beps\b|每股", re.I)
_WEIGHTED = re.compile(r"weighted|average", re.I)
_SHARE_UNITS = frozenset({"shares", "股"})
_BONUS_SHARES, _MALUS_MOVEMENT = 0.12, 0.2
_ENOUGH = 8
_COLUMN_WEIGHT = 0.88
_SECTION_WEIGHT, _ADDED = 0.93, 0.05


def best_cells(attribute: str, cells: Sequence[Cell], schema: Schema, most: int) -> list[Cell]:
    """The cells that answer an attribute, best first; equal ones in the order of the text."""
    current = _current(cells)
    named = {fold_name(thing) for thing in schema.things}
    scored = []
    rows_named = {fold_name(cell.row) for cell in cells if cell.row} & named if named else set()
    for place, cell in enumerate(cells):
        alike = _alike(attribute, cell, rows_named)
        if alike >= LEAST:
            scored.append((-alike - _fit(attribute, cell, schema, current), place))
    ranked = [cells[place] for _, place in sorted(scored)[: 4 * most]]
    return [cell.model_copy(update={"attribute": attribute}) for cell in _each_once(ranked)[:most]]


def _alike(attribute: str, cell: Cell, rows_named: set[str]) -> float:
    """How well the labels of a cell name the attribute: its row, its row under its section, or its column."""
    if cell.table < 0 and cell.number is not None:
        return said_in(attribute, cell.row)
    row = likeness(attribute, cell.row) if cell.row else 0.0
    section = cell.heading.rpartition(" > ")[2] if " > " in cell.heading else ""
    if row < 1.0 and section:
        both = likeness(attribute, f"{section} {cell.row}")
        # Where the section alone says it, its rows are parts of what is asked for.
        row = max(row, _SECTION_WEIGHT * both if both > likeness(attribute, section) + _ADDED else 0.0)
    column = _COLUMN_WEIGHT * likeness(attribute, cell.column) if cell.column else 0.0
    if column > row and rows_named and fold_name(cell.row) not in rows_named:
        return 0.0
    return max(row, column)


def _fit(attribute: str, cell: Cell, schema: Schema, current: str) -> float:
    """What else speaks for a cell: its period, its statement, its kind."""
    fit = 0.0
    if cell.period:
        end = end_of(cell.period)
        is_current = end == current or (cell.table < 0 and end > current and end[:4] == current[:4])
        fit += _BONUS_CURRENT * is_current + _BONUS_ASKED * any(end.startswith(p[:4]) for p in schema.periods)
    fit += _BONUS_STATEMENT * bool(_STATEMENT.search(cell.heading)) - _MALUS_PARENT * _is_parent(cell.heading)
    if (cell.unit == "%" or CHANGE.search(cell.column)) and not _RATE.search(attribute):
        fit -= _MALUS_CHANGE
    if cell.table < 0:
        fit -= _MALUS_SENTENCE
    if _CASH_FLOW.search(cell.heading) and not _OF_CASH_FLOW.search(attribute):
        fit -= _MALUS_MOVEMENT
    if _PER_SHARE.search(attribute) and "." not in cell.raw:
        fit -= _MALUS_MOVEMENT
    if _SHARES.search(attribute):
        fit += _BONUS_SHARES if cell.unit in _SHARE_UNITS else -_BONUS_SHARES
        fit -= _MALUS_MOVEMENT * (_WEIGHTED.search(cell.row) is not None and not _WEIGHTED.search(attribute))
    return fit - (_MALUS_WORDS if cell.number is None else 0.0)


@lru_cache(maxsize=4_000)
def _is_parent(heading: str) -> bool:
    return bool(_PARENT.search(heading)) and not _CONSOLIDATED.search(heading)


def _current(cells: Sequence[Cell]) -> str:
    """The last day of the document's own period: the newest one that many cells are of."""
    ends = Counter(end_of(cell.period) for cell in cells if cell.period and cell.table >= 0)
    often = [end for end, count in ends.items() if count >= max(_ENOUGH, max(ends.values()) // 4)]
    return max(often or ends, default="")


def _each_once(cells: Sequence[Cell]) -> list[Cell]:
    """Cells that say the same under the same labels and period once: a statement and its summary."""
    seen: dict[tuple[str, str, float | None, str], Cell] = {}
    for cell in cells:
        seen.setdefault((cell.row, cell.period, cell.number, "" if cell.number is not None else cell.raw), cell)
    return list(seen.values())
