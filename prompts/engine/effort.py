"""Effort and profile: how much of a question is given to models, and how many tokens each of their prompts may hold.

A step whose role has a model asks it, and what it says stands. Rules only spare calls, the fewer the higher the effort:
`low` retrieves and answers, `medium` spares what was shown to be harmless, `high` spares nothing. The trace of an
answer names each call that was spared.

A profile says what the models can do: a `small` one is asked for none of the steps that
help (`HELPERS`), since it gains nothing by them.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Literal, get_args

from prompts.text.regex import regex

Effort = Literal["low", "medium", "high"]
Profile = Literal["small", "large"]
# Billions of parameters from which a model is large.
LARGE = 14.0
# "1.5b", "8x7b", "135m"; not "4bit", nor the "k" of a context.
_SIZE = regex(r"(?<![\d.])(?:(\d+)x)?(\d+(?:\.\d+)?)([bm])(?![a-z0-9])", re.I)

# A model with a larger context window reads more, but not without end: what it reads is paid for.
USUAL_WINDOW = 128_000
MOST_GROWTH = 4.0
# Of a small window: what one input may take; the rest is for instructions, other inputs and the answer.
WINDOW_SHARE = 0.4


@dataclass(frozen=True, slots=True)
class TokenLimits:
    """The most tokens that a prompt holds of one kind of input; what a model writes is limited by `max_tokens`.

    `answer`: evidence of an answer. `notes`: what earlier steps made of it, structures and answers of parts.
    `part`: evidence of a sub-question's answer. `filter`: passages in one call that judges them. `structure`: text
    in one call that structures it. `structures`: what all documents together give to be structured. `map`:
    community reports (or texts) in one call of the map step. `points`: partial answers that the reduce step reads.
    `rate`: lists that a step chooses from or looks up in, in one call: openings of reports, titles, relations of a
    graph, what is said of names, earlier turns of a conversation. `report`: what a community's report is written
    from. `summary`: statements that an entity's or a relation's description is written from. `examples`: a user's
    own examples, which are read again with every passage.
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
        """Grown or shrunk with a model's context window (tokens); unchanged where that is unknown."""
        if window is None:
            return self
        growth = min(max(1.0, window / USUAL_WINDOW), MOST_GROWTH)
        most = int(WINDOW_SHARE * window)
        grown = {name: int(getattr(self, name) * growth) for name in LIMIT_NAMES}
        # `structures` are read in many calls: a small window makes them more, not less.
        return TokenLimits(
            **{name: limit if name == "structures" else min(limit, most) for name, limit in grown.items()}
        )


LIMITS: dict[Effort, TokenLimits] = {
    "low": TokenLimits(2_000, 6_000, 1_500, 3_000, 3_000, 6_000, 4_000, 2_000, 2_000, 3_000, 3_000, 1_200),
    "medium": TokenLimits(6_000, 12_000, 2_500, 6_000, 4_000, 12_000, 8_000, 4_000, 3_000, 3_000, 3_000, 1_200),
    "high": TokenLimits(16_000, 48_000, 6_000, 12_000, 8_000, 48_000, 12_000, 8_000, 6_000, 12_000, 12_000, 4_000),
}
# The evidence of an answer by a small model: five passages of a hundred words, or ten. On HotpotQA the second five cost
# it time and gained nothing (docs/benchmarks.md).
SMALL_ANSWER: Mapping[Effort, int] = {"low": 700, "medium": 700, "high": 1_400}
LIMIT_NAMES = tuple(limit.name for limit in fields(TokenLimits))

# The steps before an answer that help a strong model; what the user asks for by name is done all the same.
HelperStep = Literal["rewrite", "choose", "route", "structurize", "filter", "decompose", "rate"]
HELPERS: tuple[HelperStep, ...] = get_args(HelperStep)
HELPFUL: Mapping[Profile, frozenset[HelperStep]] = {"small": frozenset(), "large": frozenset(HELPERS)}
GAINLESS = "a small model gains nothing by it"
LEFT_OUT = "it is not among TRELLIS_HELPER_STEPS"


def billions_of(name: str) -> float | None:
    """How many billion parameters a model's name tells of, the most where it tells of several; None: of none."""
    sizes = _SIZE.findall(name.rpartition("/")[2])
    billions = {"b": 1.0, "m": 0.001}
    return max((float(times or 1) * float(size) * billions[unit.lower()] for times, size, unit in sizes), default=None)


def guessed_profile(name: str, window: int | None = None) -> Profile:
    """The profile of a model by the size in its name; where that has none, by the context window that the user set:
    one that cannot hold the evidence of an answer at medium effort is a small model's. Else it is large."""
    billions = billions_of(name)
    if billions is None:
        return "small" if window is not None and WINDOW_SHARE * window < LIMITS["medium"].answer else "large"
    return "small" if billions < LARGE else "large"


@dataclass(frozen=True, slots=True)
class Policy:
    """The effort of a question or an index run, the token limits of its prompts, and what its models can do.

    `helpers`: the steps that help and are asked; None is as the profile says.
    """

    effort: Effort = "medium"
    limits: TokenLimits = LIMITS["medium"]
    profile: Profile = "large"
    helpers: frozenset[HelperStep] | None = None

    @classmethod
    def of(
        cls, effort: Effort, window: int | None = None, given: Mapping[str, int | None] | None = None,
        profile: Profile = "large", helpers: frozenset[HelperStep] | None = None,
    ) -> "Policy":  # fmt: skip
        """The policy of an effort for models with this context window; limits that are `given` hold as they are."""
        limits = {name: limit for name, limit in (given or {}).items() if limit is not None}
        usual = LIMITS[effort] if profile == "large" else replace(LIMITS[effort], answer=SMALL_ANSWER[effort])
        return cls(effort, replace(usual.within(window), **limits), profile, helpers)

    def spared(self, step: str) -> str:
        """Why the step's model is not asked; empty where it may be."""
        asked = HELPFUL[self.profile] if self.helpers is None else self.helpers
        if step not in HELPERS or step in asked:
            return ""
        return GAINLESS if self.helpers is None else LEFT_OUT
