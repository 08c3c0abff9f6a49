"""What is the answer, and on which cells does it rest? (StructRAG, section 2.4: infer)"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from prompts.language.asked import Ask
from prompts.reading.claims import Claim, Reading, ending
from prompts.reading.evidence import Evidence
from storage.records import SubQuestion
from storage.structures import Cell
from tasks.evidence import Place, Pool
from tasks.utilize.slots import Gathered, Slot
from tasks.utilize.wording import as_written, bare, course, percent, said
from tasks.utilize.work import Outcome

# (document, offset) → the id of the chunk that the text there belongs to.
ChunkAt = Callable[[str, int], str]
# Figures and missing things that an answer shows, and sub-questions that its trace does; it counts them all.
MOST_CLAIMS, MOST_PARTS = 60, 100
NOT_FOUND, NOT_FOUND_ZH = "not found", "未找到"


@dataclass
class Cited:
    """The cells that are cited, numbered as they are asked for."""

    chunk_at: ChunkAt
    cells: dict[tuple[str, int, int], tuple[int, Cell]] = field(default_factory=dict)

    def number(self, cell: Cell) -> int:
        """The number of a cell's evidence."""
        return self.cells.setdefault((cell.document, cell.start, cell.end), (len(self.cells), cell))[0]

    def pool(self) -> Pool:
        """The cells as evidence whose place is exactly the figure."""
        pieces = [
            Evidence(
                number=number, document=cell.document, title=cell.title, text=cell.raw, heading=cell.heading, prior=1.0,
                before=cell.quote, label=cell.row, attribute=cell.column, value=cell.raw,
            )
            for number, cell in self.cells.values()
        ]  # fmt: skip
        places = [
            Place(
                document=cell.document, title=cell.title, chunk=self.chunk_at(cell.document, cell.start),
                start=cell.start, end=cell.end,
            )
            for _, cell in self.cells.values()
        ]  # fmt: skip
        return Pool(tuple(pieces), tuple(places))


@dataclass(frozen=True)
class Told:
    """The reading with the pool that its claims cite, and the sub-questions with what was extracted for each."""

    reading: Reading
    pool: Pool
    subquestions: tuple[SubQuestion, ...]


def tell(ask: Ask, gathered: Gathered, outcome: Outcome, chunk_at: ChunkAt) -> Told:
    """The outcome as claims that cite cells; what was not found is said, and makes the support partial."""
    cited = Cited(chunk_at)
    lead, values = _RESULTS[gathered.plan.operation](ask, gathered, outcome)
    first = [slot for slot in outcome.chosen if slot in outcome.ordered]
    rest = [slot for slot in outcome.ordered if slot not in outcome.chosen]
    claims = [_claim(slot, gathered, ask, cited) for slot in [*first, *rest][:MOST_CLAIMS]]
    claims += _rest(len(first) + len(rest), ask)
    claims += [Claim(_absent(slot, gathered, ask), ()) for slot in gathered.missing[:MOST_CLAIMS]]
    claims += _rest(len(gathered.missing), ask)
    reading = Reading(tuple(claims), tuple(values), "partial" if gathered.missing else "none", lead)
    return Told(reading, cited.pool(), _subquestions(gathered, ask, chunk_at))


# --- the result of each operation: (what opens the answer, its bare values) -----------------------------------------

Result = tuple[str, Sequence[str]]


def _looked_up(ask: Ask, gathered: Gathered, outcome: Outcome) -> Result:
    values = [bare(slot) for slot in outcome.chosen]
    return "", values


def _which(ask: Ask, gathered: Gathered, outcome: Outcome) -> Result:
    names = list(dict.fromkeys(slot.thing for slot in outcome.chosen))
    return ending(_joined(names, ask), ask), names


def _top(ask: Ask, gathered: Gathered, outcome: Outcome) -> Result:
    colon = "：" if ask.chinese else ": "
    names = [slot.thing for slot in outcome.chosen]
    lines = [f"{slot.thing}{colon}{said(slot, ask.chinese)}" for slot in outcome.chosen]
    return ending(("；" if ask.chinese else "; ").join(lines), ask), names


def _listed(ask: Ask, gathered: Gathered, outcome: Outcome) -> Result:
    return "", [bare(slot) for slot in outcome.chosen]


def _counted(ask: Ask, gathered: Gathered, outcome: Outcome) -> Result:
    count = str(len(outcome.chosen))
    return ending(count, ask), [count]


def _aggregated(ask: Ask, gathered: Gathered, outcome: Outcome) -> Result:
    cells = [cell for slot in outcome.ordered for cell in slot.cells]
    if outcome.number is None or not cells:
        return "", []
    measure = gathered.plan.measure
    text = (
        f"{outcome.number:.4g}" if measure == "ratio" else as_written(outcome.number, cells, finer=measure == "average")
    )
    return ending(text, ask), [text.partition(" (")[0]]


def _classified(ask: Ask, gathered: Gathered, outcome: Outcome) -> Result:
    groups = {name: [slot.thing for slot in slots] for name, slots in outcome.groups}
    values = [f"{name}: {', '.join(things)}" for name, things in groups.items() if things]
    return json.dumps(groups, ensure_ascii=False), values


def _trended(ask: Ask, gathered: Gathered, outcome: Outcome) -> Result:
    slots, plan = outcome.ordered, gathered.plan
    values = [bare(slot) for slot in slots]
    gone = course(outcome.steps, slots, ask.chinese)
    if not gone:
        return "", values
    subject = f"{slots[0].thing}的{plan.attribute}" if ask.chinese else f"The {plan.attribute} of {slots[0].thing}"
    change = ""
    if plan.measure:
        total = outcome.steps[-1].row.number - outcome.steps[0].row.number
        cells = [cell for slot in slots for cell in slot.cells]
        amount = as_written(abs(total), cells)
        base = abs(outcome.steps[0].row.number)
        share = percent(abs(total) / base) if base else ""
        values = [share, amount, *values] if plan.measure == "growth" and share else [amount, *values]
        beside = f" ({share})" if share else ""
        word = ("增加" if total >= 0 else "减少") if ask.chinese else ("an increase" if total >= 0 else "a decrease")
        change = f"{word}{amount}{beside}：" if ask.chinese else f"{word} of {amount}{beside}: it "
    joint = "" if ask.chinese else (" shows " if change else " ")
    return ending(f"{subject}{joint}{change}{gone}", ask), values


_RESULTS: dict[str, Callable[[Ask, Gathered, Outcome], Result]] = {
    "lookup": _looked_up,
    "which": _which,
    "top": _top,
    "list": _listed,
    "count": _counted,
    "aggregate": _aggregated,
    "classify": _classified,
    "trend": _trended,
}


# --- claims and sub-questions ----------------------------------------------------------------------------------------


def _claim(slot: Slot, gathered: Gathered, ask: Ask, cited: Cited) -> Claim:
    """A figure with its thing, its label in the source and its period."""
    cell = slot.cells[0]
    label = cell.row if cell.row != slot.thing else cell.column
    label = " ".join((label or gathered.plan.attribute).replace("_", " ").split()).strip(" :：")
    of = slot.period if len(slot.cells) > 1 or not cell.period else cell.period
    colon = "：" if ask.chinese else ": "
    when = (f"（{of}）" if ask.chinese else f" ({of})") if of else ""
    year = f" {slot.period}" if slot.period and not of.startswith(slot.period) else ""
    figure = said(slot, ask.chinese)
    parts = "" if len(slot.cells) == 1 else " = " + " + ".join(one.raw.strip() for one in slot.cells)
    text = f"{slot.thing}{year}{colon}{label}{when} {figure}{parts}"
    return Claim(text, tuple(cited.number(one) for one in slot.cells))


def _rest(count: int, ask: Ask) -> list[Claim]:
    """That there are more than are shown."""
    more = count - MOST_CLAIMS
    if more <= 0:
        return []
    return [Claim(f"另有{more}项" if ask.chinese else f"and {more} more", ())]


def _absent(slot: Slot, gathered: Gathered, ask: Ask) -> str:
    """That a document says nothing of it."""
    where = ", ".join(dict.fromkeys(slot.sources)) or ("文档" if ask.chinese else "the documents")
    period = f" {slot.period}" if slot.period else ""
    if ask.chinese:
        return f"{slot.thing}{period}：{where}中{NOT_FOUND_ZH}{gathered.plan.attribute}"
    return f"{slot.thing}{period}: {gathered.plan.attribute} {NOT_FOUND} in {where}"


def _subquestions(gathered: Gathered, ask: Ask, chunk_at: ChunkAt) -> tuple[SubQuestion, ...]:
    """One question for each thing and period, with the figure that was extracted for it."""
    absent = NOT_FOUND_ZH if ask.chinese else NOT_FOUND
    return tuple(
        SubQuestion(
            question=_part(slot, gathered, ask),
            answer=said(slot, ask.chinese) if slot.cells else absent,
            evidence=tuple(dict.fromkeys(chunk_at(cell.document, cell.start) for cell in slot.cells)),
        )
        for slot in gathered.slots[:MOST_PARTS]
    )


def _part(slot: Slot, gathered: Gathered, ask: Ask) -> str:
    if ask.chinese:
        when = f"{slot.period}年" if len(slot.period) == 4 else slot.period
        return f"{slot.thing}{when}的{gathered.plan.attribute}是多少？"
    when = f" in {slot.period}" if slot.period else ""
    return f"What is the {gathered.plan.attribute} of {slot.thing}{when}?"


def _joined(names: Sequence[str], ask: Ask) -> str:
    return ("、" if ask.chinese else ", ").join(names)
