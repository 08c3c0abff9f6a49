"""What does the offline reader say? Claims that quote their evidence, bare values, and how well they are supported."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from prompts.language.asked import Ask
from prompts.language.words import is_han
from prompts.reading.evidence import Evidence
from prompts.reading.grounds import grounded
from prompts.reading.relevance import Relevance, Scored
from prompts.reading.weighing import Weighed, Weigher

_TRIPLE = re.compile(r"(?P<subject>.+?) -\[(?P<relation>[^\]]+)\]-> (?P<object>.+)")
Support = Literal["none", "partial", "ungrounded", "abstained"]


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

    @cached_property
    def ranked(self) -> list[Weighed]:
        """The sentences and rows, likeliest to hold the answer first."""
        return Weigher(plain(self.evidence), self.relevance).ranked()

    @cached_property
    def odds(self) -> float:
        """The log odds that the evidence is about what the question asks of."""
        return grounded(self.ranked, self.relevance)


def quoted(piece: Evidence) -> str:
    """The evidence as one line."""
    return " ".join(piece.text.split())


def claim(piece: Evidence) -> Claim:
    """A claim that quotes one piece of evidence; a triple is said as a sentence, the quote stays as it stands."""
    return Claim(said(piece), (piece.number,))


def said(piece: Evidence) -> str:
    """The evidence in words: a triple `A -[designed]-> B` as "A designed B."."""
    found = _TRIPLE.fullmatch(quoted(piece))
    if found is None or piece.cells:
        return quoted(piece)
    gap, stop = ("", "。") if is_han(found["relation"]) else (" ", ".")
    relation = found["relation"].replace("_", " ")
    return f"{found['subject']}{gap}{relation}{gap}{found['object']}".rstrip(".。") + stop


def ends_of(piece: Evidence) -> tuple[str, str]:
    """The two ends of a triple, or of what was read out of a sentence; empty where it is none."""
    found = _TRIPLE.fullmatch(quoted(piece))
    if found is not None and not piece.label:
        return found["subject"], found["object"]
    return piece.label, piece.value


def relation_of(piece: Evidence) -> str:
    """The relation of a triple in words; empty where it is none."""
    found = _TRIPLE.fullmatch(quoted(piece))
    return found["relation"].replace("_", " ") if found is not None and not piece.label else ""


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
