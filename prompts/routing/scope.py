"""Is a question about a whole collection, or about a part of it? (GraphRAG, section 1: global sensemaking)

"What do the guests worry about?" is about all that was said; "What did Ana Korb worry about in 1931?" about one thing.
"""

from dataclasses import dataclass
from math import exp

from prompts.language.asked import Ask
from prompts.reading.pick import names_of
from prompts.routing.scope_en import ENGLISH
from prompts.routing.scope_marks import shown
from prompts.routing.scope_zh import CHINESE

# What must be outweighed: a question that shows no sign is about a part. And what each thing that it names weighs; a
# Chinese name is known by its looks less surely.
PRIOR, NAMED = -2.4, -2.1
PRIOR_ZH, NAMED_ZH = -2.9, -0.5
MOST_NAMED = 2


@dataclass(frozen=True, slots=True)
class Scope:
    """How sure it is (0-1) that a question is about the whole, and the strongest signs for what is likelier."""

    whole: float
    reason: str


def scope_of(ask: Ask) -> Scope:
    """By the question's wording."""
    marks = list(shown(ask.text, CHINESE if ask.chinese else ENGLISH))
    prior, weight = (PRIOR_ZH, NAMED_ZH) if ask.chinese else (PRIOR, NAMED)
    named = sum(ask.chinese or name.start > 0 for name in names_of(ask.text))
    total = prior + sum(mark.weight for mark in marks) + weight * min(named, MOST_NAMED)
    side = 1 if total >= 0 else -1
    told = sorted((mark for mark in marks if mark.weight * side > 0), key=lambda mark: -abs(mark.weight))
    reasons = ["names something"] if side < 0 and named else []
    reasons += [mark.reason for mark in told[:2]]
    return Scope(round(1 / (1 + exp(-total)), 3), "; ".join(dict.fromkeys(reasons)) or "no sign of the whole")
