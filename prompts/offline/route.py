"""Routing without a model: the question's wording chooses a structure (StructRAG, section 2.2)."""

from dataclasses import dataclass
from typing import cast, get_args

from prompts.offline.classifier import REASON, classifier
from prompts.structures.checks import StructureName
from prompts.text.asked import Ask

STRUCTURES: tuple[StructureName, ...] = get_args(StructureName)
# What rows among the best passages add for a table; the classifier sees the question alone.
TABULAR = 0.3


@dataclass(frozen=True)
class RuleRoute:
    """A structure with its probability (0-1), its lead over the next one (0-1), and why."""

    structure: StructureName
    confidence: float
    margin: float
    reason: str


def route_offline(ask: Ask, tabular: bool) -> RuleRoute:
    """The likeliest structure; `tabular` says whether the best passages are rows."""
    return ranked(ask, tabular)[0]


def ranked(ask: Ask, tabular: bool) -> list[RuleRoute]:
    """All structures, the likeliest first; the margin of each is its lead over the next one."""
    found = classifier("route").classify(ask, {"table": TABULAR} if tabular else None)
    following = [*(verdict.probability for verdict in found[1:]), 0.0]
    return [
        RuleRoute(
            structure=cast(StructureName, verdict.label),
            confidence=round(verdict.probability, 3),
            margin=round(verdict.probability - after, 3),
            reason=REASON,
        )
        for verdict, after in zip(found, following, strict=True)
    ]
