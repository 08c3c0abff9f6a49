"""What was looked for, and which cells answer for it?"""

from dataclasses import dataclass

from prompts.language.table_plan import TablePlan
from storage.structures import Cell
from tasks.structurize.units import is_nil


@dataclass(frozen=True)
class Slot:
    """A thing in a period with the cells that answer for it (several are added up); none: not found.

    `sources` are the titles of the documents that were looked through.
    """

    thing: str
    period: str
    cells: tuple[Cell, ...]
    sources: tuple[str, ...] = ()


@dataclass(frozen=True)
class Gathered:
    """What was found for a plan, `plan` as it was understood in the end, in the order of the things and periods."""

    plan: TablePlan
    slots: tuple[Slot, ...]

    @property
    def found(self) -> list[Slot]:
        """The slots that have a figure."""
        return [slot for slot in self.slots if slot.cells]

    @property
    def missing(self) -> list[Slot]:
        """The slots that have none."""
        return [slot for slot in self.slots if not slot.cells]


def amount_of(cell: Cell) -> float | None:
    """What a cell amounts to; a dash in a row of figures is nothing, which is 0. None for words."""
    return 0.0 if cell.number is None and is_nil(cell.raw) else cell.number
