"""What does the scripted model answer where a question over tables is to be planned?"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_COLUMN = re.compile(r"^- (?P<name>[^:\n]+): (?P<cells>.*)$", re.M)


@dataclass(frozen=True, slots=True)
class TableFilter:
    """A condition on the rows."""

    column: str
    comparison: str
    value: str


@dataclass(frozen=True, slots=True)
class TablePlan:
    """The plan for a question."""

    reason: str
    operation: str
    table: int = 1
    columns: tuple[str, ...] = ()
    filters: tuple[TableFilter, ...] = ()
    group_by: str = ""
    aggregate: str = "sum"
    order: str = ""
    limit: int = 0


def plan_table(fields: Mapping[str, str | Sequence[str]]) -> TablePlan:
    """The row with the highest figure in the first table's last column; no plan for a question that begins with
    "who"."""
    if str(fields["question"]).lower().startswith("who"):
        return TablePlan("It asks for no figure.", "none")
    columns = _COLUMN.findall(str(fields["tables"]).partition("\n\n")[0])
    named = tuple(name for name, cells in columns if re.match(r"[\d$]", cells))[-1:]
    return TablePlan("The last column of figures.", "max" if named else "none", columns=named)


@dataclass(frozen=True, slots=True)
class Schema:
    """The columns of a table."""

    things: tuple[str, ...]
    attributes: tuple[str, ...]
    periods: tuple[str, ...]


def find_schema(fields: Mapping[str, str | Sequence[str]]) -> Schema:
    """The question's last two words."""
    return Schema((), (" ".join(str(fields["question"]).rstrip(" ?.").split()[-2:]),), ())
