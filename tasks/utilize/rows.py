"""Which cells are the figures of a thing, where the rows of a table are the things?"""

import re
from collections.abc import Sequence

from prompts.language.concepts import concept_terms
from prompts.language.table_plan import TablePlan
from prompts.language.table_wording import periods_in
from prompts.language.words import fold_name, is_han
from storage.structures import Cell
from tasks.utilize.slots import Slot
from tasks.utilize.subjects import Subject, holds_name, same_name

# Figures that may not be added up.
_NO_SUM = re.compile(r"rate|ratio|percent|price|average|per |%|margin|率|单价|均价|平均|每", re.I)
_LEAST_SHARED = 0.6
# What a figure is, whatever it is of: "maintenance cost" is the column "maintenance".
_GENERIC = frozenset(
    term for word in "cost costs amount number figure value expense count total".split() for term in concept_terms(word)
)
_PERIODIC = re.compile(r"year|quarter|period|month|date|season|年|季|月|期", re.I)
_PERIOD = re.compile(
    r"(?:19|20)\d{2}(?:[ -]?Q[1-4])?|Q[1-4](?: of)? (?:19|20)\d{2}|(?:19|20)\d{2}-\d{2}(?:-\d{2})?|"
    r"(?:19|20)\d{2}年.{0,6}",
    re.I,
)


def of_rows(plan: TablePlan, subjects: Sequence[Subject]) -> list[Slot]:
    """The rows of the tables whose column is the attribute: those asked about, else all of the best column."""
    columns: dict[tuple[str, str], list[Cell]] = {}
    for subject in subjects:
        for cell in subject.cells:
            if cell.number is not None and cell.column and cell.row:
                columns.setdefault((subject.document, cell.column), []).append(cell)
    scored = [(_shared(plan, column), cells) for (_, column), cells in columns.items()]
    best = max((score for score, _ in scored), default=0.0)
    if best < _LEAST_SHARED:
        return []
    slots: dict[tuple[str, str], Slot] = {}
    when = _row_periods(subjects)
    for score, cells in scored:
        if score < best:
            continue
        for found in cells:
            cell = found.model_copy(
                update={"period": found.period or when.get((found.document, found.quote_start), "")}
            )
            thing = _row_asked(plan, cell)
            if thing and _in(plan, cell):
                period = next((one for one in plan.periods if cell.period.startswith(one)), "")
                known = slots.get((thing, period))
                before = known.cells if known else ()
                slots[thing, period] = Slot(thing, period, (*before, cell), (cell.title,))
    made = list(slots.values())
    if any(len(slot.cells) > 1 for slot in made) and _NO_SUM.search(made[0].cells[0].column):
        return []
    return made if all(_of_one_table(slot) for slot in made) else []


def _row_periods(subjects: Sequence[Subject]) -> dict[tuple[str, int], str]:
    """The period that a row names in a cell of its own: `quarter: 2023 Q1`."""
    periodic = {
        column for column in {cell.column for one in subjects for cell in one.cells} if _PERIODIC.search(column)
    }
    return {
        (cell.document, cell.quote_start): periods_in(cell.raw)[0]
        for subject in subjects
        for cell in subject.cells
        if cell.column in periodic and _PERIOD.fullmatch(cell.raw.strip()) and periods_in(cell.raw)
    }


def _of_one_table(slot: Slot) -> bool:
    """Whether several cells of a thing are parts of one whole: rows of one table that differ in their period."""
    periods = {cell.period for cell in slot.cells}
    return len({(cell.document, cell.table) for cell in slot.cells}) == 1 and (
        len(slot.cells) == 1 or len(periods) == len(slot.cells)
    )


def _shared(plan: TablePlan, column: str) -> float:
    """How much of the attribute a column's name holds, less what it says beside (its unit, its year)."""
    every = set(concept_terms(plan.attribute))
    asked = every - _GENERIC or every
    own = set(concept_terms(re.sub(r"[_\d]+", " ", column)))
    if not asked or not own:
        return 0.0
    if is_han(column):
        return 1.0 if column in plan.attribute or plan.attribute in column else len(asked & own) / len(asked)
    return len(asked & own) / len(asked) - 0.1 * len(own - asked) / len(own)


def _row_asked(plan: TablePlan, cell: Cell) -> str:
    """The thing that a row is, or nothing where another one is asked about."""
    if not plan.things:
        return cell.row
    for thing in plan.things:
        if fold_name(thing) == fold_name(cell.row) or same_name(thing, cell.row) or _told_as(cell.row, thing):
            return cell.row
    return ""


def _told_as(row: str, thing: str) -> bool:
    """Whether a thing is a row's name with a word for its kind: "route Port Hask - Saltmere"."""
    words = fold_name(row).count(" ") + 1
    return words > 1 and holds_name(thing, row) and fold_name(thing).count(" ") <= words + 1


def _in(plan: TablePlan, cell: Cell) -> bool:
    """Whether a cell is of a period that is asked about; one that tells none is of all."""
    said = cell.period or next(iter(re.findall(r"(?:19|20)\d{2}", cell.column)), "")
    return not plan.periods or not said or any(said.startswith(one) or one.startswith(said) for one in plan.periods)
