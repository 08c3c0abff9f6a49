"""What does the offline reader say? Claims that quote their evidence, bare values, and how well they are supported."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from prompts.language.asked import Ask
from prompts.reading.evidence import Evidence
from prompts.reading.relevance import Relevance, Scored

Support = Literal["none", "partial", "abstained"]


@dataclass(frozen=True, slots=True)
class Claim:
    """A statement of the answer and the numbers of the evidence that shows it."""

    text: str
    evidence: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Reading:
    """An answer before its citations are bound; `lead` opens it and needs no citation of its own.

    `support` is the answer's fallback: "none" where the evidence supports it.
    """

    claims: tuple[Claim, ...] = ()
    values: tuple[str, ...] = ()
    support: Support = "none"
    lead: str = ""


@dataclass(frozen=True)
class Desk:
    """What the reader reads with: the question taken apart and its judge, the evidence, its elements in the
    structure."""

    ask: Ask
    evidence: Sequence[Evidence]
    elements: Sequence[Evidence]
    relevance: Relevance


def quoted(piece: Evidence) -> str:
    """The evidence as one line."""
    return " ".join(piece.text.split())


def claim(piece: Evidence) -> Claim:
    """A claim that quotes one piece of evidence."""
    return Claim(quoted(piece), (piece.number,))


def abstain(ask: Ask) -> Reading:
    """The documents do not say."""
    return Reading(support="abstained", lead="文档中没有说明。" if ask.chinese else "The documents do not say.")


def ending(text: str, ask: Ask) -> str:
    """A short text as a sentence of the question's language."""
    return f"{text}。" if ask.chinese else f"{text}."


def supported(scored: Scored, *, names: float = 0.85, cues: float = 0.4) -> bool:
    """Whether evidence is about the things that the question names and about what it asks of them."""
    return scored.names >= names and scored.cues >= cues


def plain(evidence: Sequence[Evidence]) -> list[Evidence]:
    """Sentences and rows; the steps of lists stand among the sentences already."""
    return [piece for piece in evidence if piece.attribute != "step"]
