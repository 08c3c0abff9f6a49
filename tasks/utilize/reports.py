"""Which cell of which document is the figure of a thing, where documents are the things?"""

from collections.abc import Callable, Mapping, Sequence

from prompts.language.concepts import concept_terms
from prompts.language.table_plan import TablePlan
from storage.structures import Cell, Schema
from tasks.utilize.slots import Slot, amount_of
from tasks.utilize.subjects import Subject

# (what is asked, a document's cells) → attribute → its cells, best first; `tasks.structurize.tables.matching`.
Match = Callable[[Schema, Sequence[Cell]], Mapping[str, Sequence[Cell]]]
Ranked = Mapping[str, Sequence[Cell]]
_TELLING_DIGITS = 5


def of_documents(plan: TablePlan, by_thing: Mapping[str, Sequence[Subject]], match: Match) -> list[Slot]:
    """The figures of each thing, by the documents that are about it, in each period that is asked for."""
    schema = Schema(things=plan.things, attributes=(plan.attribute,), periods=plan.periods)
    slots = []
    for thing, own in by_thing.items():
        ranked = {one.document: list(match(schema, one.cells).get(plan.attribute, ())) for one in own}
        if plan.operation == "which":
            slots += _equal(plan, thing, own, ranked)
        elif periods := _course(plan, own):
            slots += _by_report(thing, periods, own, ranked) or _by_column(thing, periods, own, ranked)
        else:
            newest = sorted(own, key=lambda one: one.year, reverse=True)
            slots.append(_first(thing, "", newest, ranked))
    return slots


def _course(plan: TablePlan, own: Sequence[Subject]) -> Sequence[str]:
    """The periods that are asked for; of a trend without any those of the documents."""
    years = sorted({one.year for one in own if one.year}) if plan.operation == "trend" else ()
    return plan.periods or years


def _by_report(thing: str, periods: Sequence[str], own: Sequence[Subject], ranked: Ranked) -> list[Slot]:
    """Of documents that are each known by a year, the one of a year speaks for it with its own newest figure.

    A year without a report is filled from the columns of the others only with a figure of the same kind (a quarter for
    quarters). Empty where the documents are not known by the years that are asked for.
    """
    years = [one.year for one in own]
    if not set(periods) & set(years) or len(set(years)) < len(years) or (len(own) == 1 and len(periods) > 1):
        return []
    slots = {period: _first(thing, period, [one], ranked) for period in periods for one in own if one.year == period}
    told = next((slot for slot in slots.values() if slot.cells and slot.cells[0].period), None)
    absent = Slot(thing, "", ())
    return [
        known if (known := slots.get(period, absent)).cells else _same_kind(thing, period, told, own, ranked)
        for period in periods
    ]


def _same_kind(thing: str, period: str, told: Slot | None, own: Sequence[Subject], ranked: Ranked) -> Slot:
    """The figure of a period as the column of another report gives it: as far from its year as that which is told."""
    said = told.cells[0].period if told else ""
    if told and period.isdigit() and told.period.isdigit() and said[:4].isdigit():
        wanted = f"{int(said[:4]) + int(period) - int(told.period)}{said[4:]}"
        for one in own:
            alike = [cell for cell in ranked[one.document] if amount_of(cell) is not None and cell.period == wanted]
            if alike:
                return Slot(thing, period, (alike[0],), (one.title,))
    return Slot(thing, period, (), tuple(one.title for one in own))


def _by_column(thing: str, periods: Sequence[str], own: Sequence[Subject], ranked: Ranked) -> list[Slot]:
    """For each period the figure of the column that is headed by it, in the earliest document that has one."""
    ordered = sorted(own, key=lambda one: one.year)
    slots = []
    for period in periods:
        inside = [
            (one, cell)
            for one in ordered
            for cell in ranked[one.document]
            if amount_of(cell) is not None and cell.period.startswith(period)
        ]
        cells, titles = ((inside[0][1],), (inside[0][0].title,)) if inside else ((), tuple(one.title for one in own))
        slots.append(Slot(thing, period, cells, titles))
    return slots


def _first(thing: str, period: str, own: Sequence[Subject], ranked: Ranked) -> Slot:
    for one in own:
        for cell in ranked[one.document]:
            if amount_of(cell) is not None:
                return Slot(thing, period, (cell,), (one.title,))
    return Slot(thing, period, (), tuple(one.title for one in own))


def _equal(plan: TablePlan, thing: str, own: Sequence[Subject], ranked: Ranked) -> list[Slot]:
    """The cell that has the figure asked for, as written or with its scale: of the attribute, else one whose label
    shares a word with it; a long figure alone tells as much."""
    asked = set(concept_terms(plan.attribute))
    for one in own:
        alike = [cell for cell in ranked[one.document] if _has_figure(plan, cell)]
        if not alike:
            every = [cell for cell in one.cells if _has_figure(plan, cell)]
            alike = [cell for cell in every if asked & set(concept_terms(cell.row))]
            alike = alike or [cell for cell in every if sum(map(str.isdigit, cell.raw)) >= _TELLING_DIGITS]
        if alike:
            return [Slot(thing, "", (alike[0],), (one.title,))]
    return []


def _has_figure(plan: TablePlan, cell: Cell) -> bool:
    band = plan.bands[0]
    return cell.number is not None and (band.holds(cell.number) or band.holds(cell.number / cell.scale))
