"""How are figures and results of a table said? Figures as they are written, results in the form of the figures."""

import re
from collections.abc import Sequence

from storage.structures import Cell
from storage.workbench import Step
from tasks.utilize.slots import Slot

_SCALES = {
    1e3: ("in thousands", "千"),
    1e6: ("in millions", "百万"),
    1e4: ("in ten thousands", "万"),
    1e8: ("in 100 millions", "亿"),
}
_DECIMALS = re.compile(r"\.(\d+)")
_CURRENCY = {"USD": "$", "EUR": "€", "GBP": "£", "CNY": "元", "RMB": "元"}
_SAME = 1e-9


def shown(cell: Cell, chinese: bool) -> str:
    """The raw figure, with the scale and the unit that stand elsewhere in the table."""
    raw = cell.raw.strip()
    unit = "元" if chinese and _CURRENCY.get(cell.unit, cell.unit) == "元" else ""
    if cell.unit == "%" and "%" not in raw:
        unit = "%"
    scale = _SCALES.get(cell.scale)
    if scale and chinese:
        return f"{raw}{scale[1]}{unit}"
    return f"{raw}{unit} ({scale[0]})" if scale else f"{raw}{unit}"


def said(slot: Slot, chinese: bool) -> str:
    """The figure of a slot: the raw one, or the sum of several with how many."""
    if len(slot.cells) == 1:
        return shown(slot.cells[0], chinese)
    return as_written(sum(cell.number or 0.0 for cell in slot.cells), slot.cells)


def bare(slot: Slot) -> str:
    """The figure alone, as an answer's value."""
    return slot.cells[0].raw.strip() if len(slot.cells) == 1 else said(slot, chinese=False)


def as_written(number: float, cells: Sequence[Cell], *, finer: bool = False) -> str:
    """A computed figure in the form of those that it comes from: their scale, decimals and separators.

    `finer` allows two more decimals, as a mean needs them.
    """
    scales = {cell.scale for cell in cells}
    scale = scales.pop() if len(scales) == 1 else 1.0
    decimals = max((len(found[1]) if (found := _DECIMALS.search(cell.raw)) else 0 for cell in cells), default=0)
    value = round(number / scale, decimals + 2 if finer else decimals)
    text = f"{value:,.{decimals}f}" if round(value, decimals) == value else f"{value:,.{decimals + 2}f}"
    word = _SCALES.get(scale)
    return f"{text} ({word[0]})" if word else text


def percent(share: float) -> str:
    """A share as a percentage with at most two decimals."""
    return f"{round(100 * share, 2):g}%"


def course(steps: Sequence[Step], slots: Sequence[Slot], chinese: bool) -> str:
    """Where the figures of consecutive periods go: "increased from 5 in 2022 to 7 in 2023, then decreased to 6 in
    2024"."""
    words = [_direction(step, chinese) for step in steps[1:]]
    first = slots[0]
    if not words:
        return ""
    if len(set(words)) == 1 and words[0] in _UNCHANGED:
        return (
            f"从{first.period}年到{slots[-1].period}年保持不变，为{said(first, chinese)}"
            if chinese
            else f"remained unchanged at {said(first, chinese)} from {first.period} to {slots[-1].period}"
        )
    parts = []
    for place, (word, slot) in enumerate(zip(words, slots[1:], strict=True)):
        if chinese:
            opening = f"从{_year(first.period)}的{said(first, chinese)}" if place == 0 else "然后"
            parts.append(f"{opening}{word}到{_year(slot.period)}的{said(slot, chinese)}")
        else:
            opening = f"{word} from {said(first, chinese)} in {first.period} to" if place == 0 else f"then {word} to"
            parts.append(f"{opening} {said(slot, chinese)} in {slot.period}")
    return ("，" if chinese else ", ").join(parts)


_UNCHANGED = {"remained unchanged", "保持不变"}


def _year(period: str) -> str:
    return f"{period}年" if len(period) == 4 else period


def _direction(step: Step, chinese: bool) -> str:
    change = step.change or 0.0
    if abs(change) <= _SAME * max(1.0, abs(step.row.number)):
        return "保持不变" if chinese else "remained unchanged"
    if chinese:
        return "增加" if change > 0 else "减少"
    return "increased" if change > 0 else "decreased"
