"""Which of two values that exclude each other is better supported?

The one that something known to hold gives; else by voices (each passage that gives a value and not its rival is one)
and by details: a passage speaks against itself where a word of its own belongs to the rival alone, its surname or its
year. Where voices and details disagree, or both are as good as even, nothing tells.
"""

from dataclasses import dataclass, field

from prompts.language.asked import Ask
from prompts.language.words import STOPWORDS
from prompts.reading.differ import words_of

# One side must have so many times the voices of the other: a few more are the chance of what was retrieved.
AHEAD = 1.5
_SHORTEST = 3


@dataclass(slots=True, eq=False)  # two sides are never the same
class Side:
    """A value as written, the texts that give it and not its rival, and how many of them are known to hold."""

    value: str
    texts: list[str] = field(default_factory=list)
    trusted: int = 0

    def add(self, text: str, trusted: bool) -> None:
        """Count a passage for this side; `trusted`: it is known to hold."""
        self.texts.append(text)
        self.trusted += trusted


def better(ask: Ask, one: Side, other: Side) -> Side | None:
    """The side that is better supported; None where nothing tells."""
    if one.trusted or other.trusted:
        return _ahead(one, other, bool(one.trusted), bool(other.trusted))
    voices = _ahead(one, other, len(one.texts) >= AHEAD * len(other.texts), len(other.texts) >= AHEAD * len(one.texts))
    told = _ahead(one, other, _in_rivals(ask, one, other), _in_rivals(ask, other, one))
    if told is None or voices is None:
        return told or voices
    return told if told is voices else None


def _ahead(one: Side, other: Side, first: bool, second: bool) -> Side | None:
    if first == second:
        return None
    return one if first else other


def _in_rivals(ask: Ask, side: Side, rival: Side) -> bool:
    """Whether a text that gives the rival has a detail of this side."""
    own = details(side.value, rival.value, ask)
    return any(own & parts_of(text.replace(rival.value, " ")) for text in rival.texts)


def details(value: str, rival: str, ask: Ask) -> frozenset[str]:
    """The words that belong to one value alone: a surname, a year."""
    taken = parts_of(rival) | parts_of(ask.text) | STOPWORDS
    return frozenset(word for word in parts_of(value) if word not in taken and len(word) >= _SHORTEST)


def parts_of(text: str) -> frozenset[str]:
    """The distinct words of a text, those of its dates apart."""
    return frozenset(part for word in words_of(text) for part in word.split())
