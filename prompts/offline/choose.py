"""The choice between the whole collection and a part of it by rules: a question's wording alone."""

from dataclasses import dataclass
from typing import Literal

from prompts.language.asked import Ask
from prompts.routing.scope import scope_of

# Between these shares the wording does not tell: outside them none of 156 questions is mistaken (`benchmarks.auto`).
SURELY_PART, SURELY_WHOLE = 0.1, 0.9
# A passage that is not searched for is missed; a question that is searched first may still be asked of the whole.
LEAST_WHOLE = 0.6


@dataclass(frozen=True)
class RuleScope:
    """What a question is about, how sure that is (0-1), why, and whether its wording tells plainly."""

    about: Literal["whole", "part"]
    confidence: float
    reason: str
    plain: bool


def scope_offline(ask: Ask) -> RuleScope:
    """By the question's wording."""
    found = scope_of(ask)
    plain = not SURELY_PART < found.whole < SURELY_WHOLE
    if found.whole >= LEAST_WHOLE:
        return RuleScope("whole", found.whole, found.reason, plain)
    return RuleScope("part", round(1 - found.whole, 3), found.reason, plain)
