"""The choice between the whole collection and a part of it without a model: a question's wording alone.

"What do the guests worry about?" is about all that was said (GraphRAG, section 1: global sensemaking); "What did Ana
Korb worry about in 1931?" about one thing.
"""

from dataclasses import dataclass
from typing import Literal

from prompts.offline.classifier import REASON, classifier
from prompts.text.asked import Ask

# Between these probabilities the wording does not tell. Across fifths of the questions that the weights were fitted to
# 3 of 410 about the whole are below the first, none of 693 about a part above the second.
SURELY_PART, SURELY_WHOLE = 0.02, 0.95
# A passage that is not searched for is missed; a question that is searched first may still be asked of the whole.
LEAST_WHOLE = 0.5


@dataclass(frozen=True)
class RuleScope:
    """What a question is about, how sure that is (0-1), why, and whether its wording tells plainly."""

    about: Literal["whole", "part"]
    confidence: float
    reason: str
    plain: bool


def scope_offline(ask: Ask) -> RuleScope:
    """By the question's wording."""
    found = {verdict.label: verdict for verdict in classifier("choose").classify(ask)}
    whole = round(found["whole"].probability, 3)
    plain = not SURELY_PART < whole < SURELY_WHOLE
    if whole >= LEAST_WHOLE:
        return RuleScope("whole", whole, REASON, plain)
    return RuleScope("part", round(1 - whole, 3), REASON, plain)
