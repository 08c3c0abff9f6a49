"""Do two names mean one thing, by rules: how alike the names are, the kinds, and what is said of both."""

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict

from prompts.text.likeness import Numbers, alike, numbers_said, opposed, unmatched, words_of
from prompts.text.words import fold

# Fitted on the training half of a public benchmark of pairs of records, where telephone numbers and addresses are said.
_WITH_NUMBER = 0.65
_WITH_FIGURE = 0.8
_WITH_COMPANY = 0.8
_TOLD_APART = 0.25


class NameInContext(BaseModel):
    """A name with its kind and sentences that say something of what it names."""

    model_config = ConfigDict(frozen=True)

    name: str
    kind: str = "thing"
    said: tuple[str, ...] = ()


class Pair(BaseModel):
    """Two names that may mean one thing; `shared` are other names, not frequent ones, that stand beside both."""

    model_config = ConfigDict(frozen=True)

    first: NameInContext
    second: NameInContext
    shared: tuple[str, ...] = ()


class Decided(BaseModel):
    """Whether a pair is one thing, and why, in words for the people who read the graph."""

    model_config = ConfigDict(frozen=True)

    same: bool
    reason: str


def decide(pair: Pair) -> Decided:
    """The rule: names that are alike need something that is said of both; what contradicts parts them."""
    first, second = words_of(pair.first.name), words_of(pair.second.name)
    against = opposed(first, second) or _contradiction(pair)
    if against:
        return Decided(same=False, reason=against)
    score = alike(first, second) - _TOLD_APART * _told_apart(first, second, pair)
    first_numbers, second_numbers = numbers_said(pair.first.said), numbers_said(pair.second.said)
    if number := _said_of_both(score, first_numbers, second_numbers):
        return Decided(same=True, reason=f"similar names, and {number} is said of both")
    if first_numbers.long and second_numbers.long and not first_numbers.long & second_numbers.long:
        return Decided(same=False, reason="other numbers are said of them")
    if pair.shared and score >= _WITH_COMPANY:
        return Decided(same=True, reason=f"similar names, both beside {pair.shared[0]}")
    if first == second:
        return Decided(same=True, reason="the same name, and nothing that is said tells them apart")
    return Decided(same=False, reason="too little is said of both")


def _said_of_both(score: float, first: Numbers, second: Numbers) -> str:
    """A number that is said of both and is enough for names that are so much alike, or nothing."""
    if score >= _WITH_NUMBER and first.long & second.long:
        return min(first.long & second.long)
    return min(first.short & second.short) if score >= _WITH_FIGURE and first.short & second.short else ""


def _told_apart(first: Sequence[str], second: Sequence[str], pair: Pair) -> bool:
    """Whether each name has a word of its own that tells it apart; what the other's text says (its city) does not."""
    left, right = unmatched(first, second)
    words = {word for name in (pair.first, pair.second) for text in name.said for word in words_of(text)}
    return bool(set(left) - words) and bool(set(right) - words)


def _contradiction(pair: Pair) -> str:
    kinds = {pair.first.kind, pair.second.kind}
    named = fold(pair.first.name) == fold(pair.second.name)
    if len(kinds) == 2 and "thing" not in kinds and not pair.shared and not named:
        return f"one is a {pair.first.kind}, the other a {pair.second.kind}"
    return ""
