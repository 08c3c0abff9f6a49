"""What a run may spend on models, and what it is forecast to spend."""

from typing import Literal

from pydantic import Field

from storage.records import Record, Skipped
from storage.run_records import DocumentCounts


class Budget(Record):
    """Tokens in and out together, and US dollars; None is any amount."""

    tokens: int | None = Field(default=None, gt=0)
    usd: float | None = Field(default=None, gt=0)


NO_BUDGET = Budget()


class StepForecast(Record):
    """What one step will take of one model. `basis` says what the output tokens are estimated from.

    `cost_usd` is None where the price is unknown; `cached_calls` are answered already and cost nothing.
    """

    step: str
    model: str
    calls: int
    cached_calls: int
    input_tokens: int
    output_tokens: int
    cost_usd: float | None
    basis: Literal["history", "rule"]


class Forecast(Record):
    """What an index run would do. Calls, tokens and cost are those of all steps together; `seconds` is what the
    forecast itself took, `run_seconds` what the run would take at the `rate`, in words."""

    documents: DocumentCounts
    skipped: tuple[Skipped, ...]
    chunks: int
    chunks_to_extract: int
    calls: int
    cached_calls: int
    input_tokens: int
    output_tokens: int
    cost_usd: float | None
    steps: tuple[StepForecast, ...]
    seconds: float
    run_seconds: float
    rate: str
