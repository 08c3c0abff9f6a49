"""What did the knowledge filter decide, and what do the sources say against each other? `storage.records` offers these.

ERM4, Knowledge Filter: each passage is labelled with a short explanation.
"""

from typing import Literal

from storage.record import Record

# What was kept: all, because nothing was judged; the entailed alone; the neutral too; nothing.
FilterTier = Literal["all", "entailed", "neutral", "none"]
FilterLabel = Literal["entailment", "neutral", "contradiction"]


class JudgedPassage(Record):
    """A passage's label and why it has it."""

    chunk: str
    label: FilterLabel
    explanation: str


class Disagreement(Record):
    """A passage that denies what another one says on the question's matter, and how."""

    chunk: str
    document: str
    against_chunk: str
    against_document: str
    explanation: str


class FilterCounts(Record):
    """How many passages the knowledge filter labelled as entailing, as neutral and as contradicting, and what it kept
    (`tier`); the first judged passages with their explanations, and the sources that disagree."""

    entailment: int = 0
    neutral: int = 0
    contradiction: int = 0
    hypothesis: Literal["strong", "weak"] = "strong"
    tier: FilterTier = "all"
    judged: tuple[JudgedPassage, ...] = ()
    conflicts: tuple[Disagreement, ...] = ()
