"""Forecast: how long a model's answers will be (as long as they were, where there were enough; else by rule)."""

from collections.abc import Mapping

from prompts.forecast import RATES
from storage.records import Record

# From so many calls on, what a model has written before says more than the rule.
ENOUGH_CALLS = 20


class Written(Record):
    """What a step's model has written in earlier runs."""

    calls: int = 0
    output_tokens: int = 0

    @property
    def average(self) -> float:
        """Tokens of an answer."""
        return self.output_tokens / self.calls


class Lengths(Record):
    """Tokens of an answer by step (`each`), for the other steps the rate at which the stand-in's count; `known` are the
    steps of which a model has written enough."""

    rates: dict[str, float]
    each: dict[str, float]
    known: frozenset[str]


def lengths_of(written: Mapping[str, Written], extraction: float) -> Lengths:
    """From what was written before, by step; `extraction` is the stand-in's average over the stored passages (0: none).

    An extraction is as long as its passage makes it: of that step the history gives the rate.
    """
    enough = {step: one for step, one in written.items() if step in RATES and one.calls >= ENOUGH_CALLS}
    each = {step: one.average for step, one in enough.items()}
    rates = dict(RATES)
    if extraction and "extract" in each:
        rates["extract"] = each.pop("extract") / extraction
    return Lengths(rates=rates, each=each, known=frozenset(enough))
