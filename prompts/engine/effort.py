"""Effort and profile: how many steps ask models, and how long their prompts may be.

A step whose role has a model asks it; rules only spare calls: at `low` effort all but retrieval and
answer, at `medium` those that were shown to be harmless, at `high` none. The trace of an answer
names each spared call. A profile says what the models can do: a `small` one is asked for none of
the steps that help (`HELPERS`), since it gains nothing by them.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Literal, get_args

Effort = Literal["low", "medium", "high"]
Profile = Literal["small", "large"]
LARGE = 14.0  # billions of parameters from which a model is large
# "1.5b", "8x7b", "135m"; not "4bit", nor the "k" of a context.
_SIZE = re.compile(r"(?<![\d.])(?:(\d+)x)?(\d+(?:\.\d+)?)([bm])(?![a-z0-9])", re.IGNORECASE)

# A model with a larger context window reads more, within limits: its input is paid for.
USUAL_WINDOW = 128_000
MOST_GROWTH = 4.0
WINDOW_SHARE = 0.4  # of a small window, what one input may take


@dataclass(frozen=True, slots=True)
class TokenLimits:
    """The most tokens of each kind of input in a prompt.

    `answer`: evidence of an answer. `notes`: results of earlier steps. `part`: evidence of a
    sub-question's answer. `filter`: passages in one call that judges them. `structure`: text in one
    call that structures it. `structures`: text of all documents to be structured. `map`: community
    reports (or texts) in one call of the map step. `points`: partial answers that the reduce step
    reads. `rate`: lists that a step chooses from. `report`: sources of a community's report.
    `summary`: statements behind a description. `examples`: a user's own examples, which every
    passage's prompt repeats.
    """

    answer: int
    notes: int
    part: int
    filter: int
    structure: int
    structures: int
    map: int
    points: int
    rate: int
    report: int
    summary: int
    examples: int

    def within(self, window: int | None) -> "TokenLimits":
        """The limits for a model's context window in tokens (None: unknown)."""
        if window is None:
            return self
        growth, most = min(max(1.0, window / USUAL_WINDOW), MOST_GROWTH), int(WINDOW_SHARE * window)
        grown = {name: int(getattr(self, name) * growth) for name in LIMIT_NAMES}
        # `structures` are read in several calls: a small window means more calls.
        within = {name: min(limit, most) for name, limit in grown.items() if name != "structures"}
        return TokenLimits(**{**grown, **within})


_LOW = (2_000, 6_000, 1_500, 3_000, 3_000, 6_000, 4_000, 2_000, 2_000, 3_000, 3_000, 1_200)
_MEDIUM = (6_000, 12_000, 2_500, 6_000, 4_000, 12_000, 8_000, 4_000, 3_000, 3_000, 3_000, 1_200)
_HIGH = (16_000, 48_000, 6_000, 12_000, 8_000, 48_000, 12_000, 8_000, 6_000, 12_000, 12_000, 4_000)
LIMITS: dict[Effort, TokenLimits] = {
    "low": TokenLimits(*_LOW),
    "medium": TokenLimits(*_MEDIUM),
    "high": TokenLimits(*_HIGH),
}
# The tokens and passages of evidence for an answer by a small model. On HotpotQA, five more
# passages of a hundred words took time and gained nothing; five long ones fill the tokens
# (docs/benchmarks.md).
SMALL_ANSWER: Mapping[Effort, int] = {"low": 700, "medium": 1_400, "high": 2_800}
SMALL_PASSAGES: Mapping[Effort, int] = {"low": 5, "medium": 5, "high": 10}
LIMIT_NAMES = tuple(limit.name for limit in fields(TokenLimits))

# Steps that help a large model before an answer, and ("resolve") in an index; the user may still
# ask for them. A model of 1.5 billion parameters called all of 33 near pairs the same, most of them
# wrongly (docs/tour.md).
HelperStep = Literal[
    "rewrite",
    "choose",
    "recognize",
    "agent",
    "route",
    "structurize",
    "filter",
    "decompose",
    "rate",
    "resolve",
]
HELPERS: tuple[HelperStep, ...] = get_args(HelperStep)
GAINLESS = "a small model gains nothing by it"
LEFT_OUT = "it is not among TRELLIS_HELPER_STEPS"


def billions_of(name: str) -> float | None:
    """The billions of parameters in a model's name; None without a number."""
    sizes = _SIZE.findall(name.rpartition("/")[2])
    unit_of = {"b": 1.0, "m": 0.001}
    named = (float(times or 1) * float(it) * unit_of[unit.lower()] for times, it, unit in sizes)
    return max(named, default=None)


def guessed_profile(name: str, window: int | None = None) -> Profile:
    """The profile of a model by the size in its name, or else by the window that the user set.

    A window too small for the evidence of an answer at medium effort means a small model.
    """
    billions = billions_of(name)
    if billions is not None:
        return "small" if billions < LARGE else "large"
    short = window is not None and WINDOW_SHARE * window < LIMITS["medium"].answer
    return "small" if short else "large"


@dataclass(frozen=True, slots=True)
class Policy:
    """The effort of a question or an index run, its token limits, and what its models can do.

    `helpers` are the helping steps to ask (None: as the profile says), `passages` the most that an
    answer is written from (None: any number).
    """

    effort: Effort = "medium"
    limits: TokenLimits = LIMITS["medium"]
    profile: Profile = "large"
    helpers: frozenset[HelperStep] | None = None
    passages: int | None = None

    @classmethod
    def of(
        cls,
        effort: Effort,
        window: int | None = None,
        given: Mapping[str, int | None] | None = None,
        profile: Profile = "large",
        helpers: frozenset[HelperStep] | None = None,
    ) -> "Policy":
        """The policy for models with this window; `given` limits replace the usual ones."""
        limits = {name: limit for name, limit in (given or {}).items() if limit is not None}
        usual, passages = LIMITS[effort], None
        if profile == "small":
            usual, passages = replace(usual, answer=SMALL_ANSWER[effort]), SMALL_PASSAGES[effort]
        limits_here = replace(usual.within(window), **limits)
        return cls(effort, limits_here, profile, helpers, passages)

    def spared(self, step: str) -> str:
        """The reason not to ask the step's model; empty where it may be asked."""
        if step not in HELPERS:
            return ""
        if self.helpers is None:
            return GAINLESS if self.profile == "small" else ""
        return "" if step in self.helpers else LEFT_OUT
