"""Types of options that several commands share."""

import math
from collections.abc import Sequence
from typing import Annotated

from cyclopts import Parameter, Token
from cyclopts.validators import Number

# No `--no-…` for flags, no `--empty-…` for lists; the last value of a repeated option counts.
OPTIONS = Parameter(negative=(), show_default=False, allow_repeating=True)
Count = Annotated[int, Parameter(validator=Number(gte=1), metavar="N")]
CountFrom0 = Annotated[int, Parameter(validator=Number(gte=0), metavar="N")]


def _amount(_type: object, tokens: Sequence[Token]) -> float:
    """Read an amount above 0: 2.50, $2.50, 1e-5. A comma is ambiguous and refused."""
    text = tokens[0].value
    try:
        amount = float(text.strip().removeprefix("$"))
    except ValueError:
        amount = 0.0
    if not 0 < amount < math.inf:
        comma = ", with a point and no comma" if "," in text else ""
        raise ValueError(f"{text!r} is no amount above 0, such as 2.50 or 1e-5{comma}.")
    return amount


Amount = Annotated[float, Parameter(converter=_amount, metavar="X")]
# A file, or - for standard input
Input = Annotated[str, Parameter(metavar="FILE", allow_leading_hyphen=True)]
Names = Annotated[str, Parameter(metavar="A,B")]
Sources = Annotated[
    tuple[str, ...],
    Parameter(
        metavar="SOURCE",
        help="A file, a folder, a glob pattern or an address (s3://, gs://, az://, github://, "
        "https://).",
    ),
]
AsOf = Annotated[Count | None, Parameter(help="Read generation N, not the current one.")]
Record = Annotated[bool, Parameter(help="Run it as a Prefect flow, so that the run is recorded.")]
BudgetTokens = Annotated[Count | None, Parameter(help="Stop before models take more tokens.")]
BudgetUsd = Annotated[Amount | None, Parameter(help="Stop before models cost more US dollars.")]


def names_of(text: str | None) -> list[str]:
    """Split a list of names at its commas."""
    return [name.strip() for name in (text or "").split(",") if name.strip()]
