"""What does the plan make of the cells? Sorting, counting and arithmetic, by SQL on the workbench."""

from dataclasses import dataclass

from prompts.language.table_plan import Band
from storage.workbench import Bounds, CellRow, Row, Step, Totals, Workbench, workbench
from tasks.utilize.slots import Gathered, Slot, amount_of


@dataclass(frozen=True)
class Outcome:
    """The slots in the order of the answer, and what was computed of them.

    `groups` are the names of the ranges with what lies in each, in the plan's order; `chosen` is what the question asks
    for (the first so many, those in the range); `number` the result of arithmetic; `steps` a course by period.
    """

    ordered: tuple[Slot, ...]
    chosen: tuple[Slot, ...] = ()
    groups: tuple[tuple[str, tuple[Slot, ...]], ...] = ()
    number: float | None = None
    steps: tuple[Step, ...] = ()
    totals: Totals | None = None


def work(gathered: Gathered) -> Outcome:
    """The plan's operation on what was found."""
    found, plan = gathered.found, gathered.plan
    places = {period: place for place, period in enumerate(dict.fromkeys(slot.period for slot in found))}
    cells = [
        CellRow(cell=number, thing=slot.thing, number=amount, slot=places[slot.period])
        for number, slot in enumerate(found)
        for cell in slot.cells
        if (amount := amount_of(cell)) is not None
    ]
    with workbench(cells) as bench:
        return _OPERATIONS[plan.operation](gathered, found, bench)


def _slots(rows: list[Row], found: list[Slot]) -> tuple[Slot, ...]:
    return tuple(found[row.cells[0]] for row in rows)


def _ordered(gathered: Gathered, found: list[Slot], bench: Workbench) -> Outcome:
    plan = gathered.plan
    ordered = _slots(bench.ordered(plan.order), found)
    return Outcome(ordered, chosen=ordered[: plan.many] if plan.operation == "top" else ordered)


def _as_found(gathered: Gathered, found: list[Slot], bench: Workbench) -> Outcome:
    return Outcome(tuple(found), chosen=tuple(found), totals=bench.totals())


def _within(gathered: Gathered, found: list[Slot], bench: Workbench) -> Outcome:
    banded = bench.banded([_bounds(band) for band in gathered.plan.bands])
    inside = _slots([row for place, row in banded if place is not None], found)
    return Outcome(_slots([row for _, row in banded], found), chosen=inside, number=float(len(inside)))


def _classified(gathered: Gathered, found: list[Slot], bench: Workbench) -> Outcome:
    bands = gathered.plan.bands
    banded = bench.banded([_bounds(band) for band in bands])
    groups = tuple(
        (band.name, _slots([row for at, row in banded if at == place], found)) for place, band in enumerate(bands)
    )
    inside = tuple(slot for _, slots in groups for slot in slots)
    return Outcome(_slots([row for _, row in banded], found), chosen=inside, groups=groups)


def _aggregated(gathered: Gathered, found: list[Slot], bench: Workbench) -> Outcome:
    """Sum and mean of all; difference and ratio of the first two."""
    totals, measure = bench.totals(), gathered.plan.measure
    numbers = [sum(cell.number or 0.0 for cell in slot.cells) for slot in found[:2]]
    number: float | None = totals.mean if measure == "average" else totals.total
    if measure in {"difference", "ratio", "growth"}:
        number = _between(measure, numbers) if len(numbers) == 2 else None
    return Outcome(tuple(found), chosen=tuple(found), number=number, totals=totals)


def _between(measure: str, numbers: list[float]) -> float | None:
    first, second = numbers
    if measure == "difference":
        return abs(first - second)
    return first / second if second else None


def _coursed(gathered: Gathered, found: list[Slot], bench: Workbench) -> Outcome:
    steps = bench.steps()
    ordered = _slots([step.row for step in steps], found)
    return Outcome(ordered, chosen=ordered, steps=tuple(steps))


def _bounds(band: Band) -> Bounds:
    return Bounds(low=band.low, high=band.high, low_in=band.low_in, high_in=band.high_in)


_OPERATIONS = {
    "lookup": _as_found,
    "which": _as_found,
    "top": _ordered,
    "list": _ordered,
    "count": _within,
    "aggregate": _aggregated,
    "classify": _classified,
    "trend": _coursed,
}
