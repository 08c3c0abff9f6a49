"""What does a question ask of a table? One typed plan, in the few operations that a table answers by itself.

A plan names operations, an attribute and figures, never SQL: `storage.workbench` has one bound statement for each
operation, so that nothing a model or a user writes is run.
"""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

# "none" is a model's word for a question that is none of these; a plan in use never has it.
Operation = Literal["lookup", "which", "top", "list", "count", "aggregate", "classify", "trend", "none"]
Order = Literal["descending", "ascending"]
Measure = Literal["", "sum", "average", "difference", "ratio", "growth"]


class Band(BaseModel):
    """A range of figures, named where the question names it; an end that is None is open.

    `low_in`, `high_in`: whether the end itself belongs to the range. Equal ends, both in: that figure alone.
    """

    model_config = ConfigDict(frozen=True)

    name: str = ""
    low: float | None = None
    high: float | None = None
    low_in: bool = False
    high_in: bool = False

    def holds(self, number: float) -> bool:
        """Whether a figure lies in the range."""
        above = self.low is None or number > self.low or (self.low_in and number == self.low)
        below = self.high is None or number < self.high or (self.high_in and number == self.high)
        return above and below


class TablePlan(BaseModel):
    """lookup: an attribute of things. which: the things whose attribute is the figure of `bands`. top: those with the
    most or least. list: the figures of all, in order. count: how many lie in `bands`. aggregate: `measure` over all.
    classify: the things of each of `bands`. trend: how it goes over `periods`.

    `things` as the question names them (none: everything there is), `noun` what they are ("company"); `periods` are
    years or as in `Cell.period`.
    """

    model_config = ConfigDict(frozen=True)

    operation: Operation
    attribute: str = Field(default="", description="What is measured, as the question writes it.")
    things: tuple[str, ...] = Field(default=(), description="Names asked about; empty: all there are.")
    noun: str = Field(default="", description="What the things are: company, route.")
    periods: tuple[str, ...] = Field(default=(), description="Years asked about, in order; trends: every year.")
    order: Order = Field(default="descending", description="top: descending gives the most.")
    many: int = Field(default=1, ge=1, le=100, description="top: how many are asked for.")
    measure: Measure = Field(default="", description="aggregate and trend: what is computed.")
    bands: tuple[Band, ...] = Field(default=(), description="Ranges, in full units: 3 million is 3000000.")
