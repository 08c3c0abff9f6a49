"""What does a comparison of modes hold? Ways of asking, the figures of each, and what follows from them."""

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from storage.answer_records import Mode
from storage.records import Record

Verdict = Literal["holds", "does not hold", "not measured"]
# How an answer is judged: by the gold answer, by all gold passages, by the exact set of values, as the sample corpus
# says, or by its claims.
Judged = Literal["answer", "passages", "exact", "sample", "claims"]


class Way(Record):
    """A way of asking: a mode, and for `global` the level whose reports are all read (None: the relevant branches)."""

    mode: Mode
    level: int | None = None

    @property
    def name(self) -> str:
        return self.mode if self.level is None else f"{self.mode}, level {self.level}"


class Asked(Record):
    """A question with what is known of its answer: ways to write it, passages, values; `abstains` where the documents
    do not say. One about the whole collection has documents that a good answer cites, and how many of them at least."""

    text: str
    answers: tuple[str, ...] = ()
    gold: tuple[str, ...] = ()
    abstains: bool = False
    covers: tuple[str, ...] = ()
    least: int = 0


class Measure(Record):
    """A figure of an answer, the more the better; `share` where it lies between 0 and 1."""

    name: str
    meaning: str
    share: bool = True


class Cost(Record):
    """What a question took: means of calls and tokens (`steps`: both ways, by step), seconds of the wall by rank,
    milliseconds of the processor."""

    questions: int
    calls: float
    input_tokens: float
    output_tokens: float
    seconds_median: float
    seconds_90: float
    cpu_ms: float
    steps: dict[str, float] = Field(default_factory=dict)

    @property
    def tokens(self) -> float:
        return self.input_tokens + self.output_tokens


class Figures(Record):
    """What one way of asking gave in a set. `asked` is None where it was not asked offline, `problem` says why, or what
    the first failure said; a failed question counts as wrong. `served`: the same on the scripted server."""

    way: Way
    quality: dict[str, float]
    asked: Cost | None = None
    served: Cost | None = None
    failed: int = 0
    problem: str = ""
    reports: float = 0.0


class SetFigures(Record):
    """What one set gave, by which command; the first measure is the one that ways are compared by.

    `beside` holds figures of the first measure that others published, `standing` how often the answer stands in the
    context of a mode.
    """

    name: str
    told: str
    multihop: bool
    questions: int
    command: str
    measures: tuple[Measure, ...]
    ways: tuple[Figures, ...]
    beside: dict[str, float] = Field(default_factory=dict)
    standing: dict[str, float] = Field(default_factory=dict)

    @property
    def main(self) -> Measure:
        return self.measures[0]

    def is_whole(self, one: Figures) -> bool:
        """Whether a way got every question, so that it can be set beside others."""
        return one.asked is not None and one.asked.questions + one.failed >= self.questions

    def of(self, name: str) -> Figures | None:
        """The figures of a way by its name."""
        return next((one for one in self.ways if one.way.name == name), None)

    def value(self, name: str, measure: str | None = None) -> float | None:
        """A way's figure, by the first measure unless another is named; None where it was not asked."""
        found = self.of(name)
        return None if found is None else found.quality.get(measure or self.main.name)

    def best(self, besides: Sequence[str] = ()) -> tuple[str, float] | None:
        """The best way of this set by its first measure, and its figure; of those that got every question, not those
        named."""
        known = [
            (value, one.way.name)
            for one in self.ways
            if one.way.name not in besides
            and self.is_whole(one)
            and (value := one.quality.get(self.main.name)) is not None
        ]
        if not known:
            return None
        value, name = max(known, key=lambda pair: pair[0])
        return name, value


class Finding(Record):
    """A statement that was to be true, whether it is, and by which figures."""

    statement: str
    verdict: Verdict
    figures: str


class Comparison(Record):
    """All sets."""

    sets: tuple[SetFigures, ...]
