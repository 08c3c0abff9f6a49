"""Which passages contradict each other on what is asked?

Two passages conflict where one is a copy of the other but for one value, where one denies what the other says, or where
one answers otherwise than most. `sides` tells which of the two is better supported; where neither is, both stand: the
sources disagree, and nothing in them tells who is right.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal

from prompts.language.asked import Ask
from prompts.language.words import fold_name
from prompts.reading.differ import agree, denies, has_value, put_for, words_of
from prompts.reading.evidence import Evidence
from prompts.reading.pick import options_in
from prompts.reading.relevance import Relevance, term_set
from prompts.reading.sides import Side, better, details, parts_of

Why = Literal["copy", "denial", "value"]

# A piece of text bears on the question by so much of its words; one that answers it has so many.
BEARING = 0.15
ANSWERING = 0.5
# So large a share of the passages that answer, and so many of them, make a value the one that most give.
MOST = 0.7
FEWEST = 3
# Of a passage so many sentences are compared, and the whole of one of so many characters.
SENTENCES = 4
LONGEST = 600
# So large a share of their terms is common to copies.
SHARED = 0.45
MOST_COMPARED = 60  # pieces of text
_SINGLE = frozenset({"person", "place", "date", "money", "number", "name"})
_YEAR = re.compile(r"\b(?:1\d{3}|20\d\d)\b")


@dataclass(frozen=True, slots=True)
class Told:
    """A passage as it is compared: its place among the passages, its title, its text and its units."""

    place: int
    title: str
    text: str
    units: Sequence[Evidence]


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two passages that do not agree, by their places, with what each says.

    `contradicted` is the place of the one that is worse supported, None where neither is.
    """

    one: int
    says: str
    other: int
    other_says: str
    why: Why
    contradicted: int | None = None


# A piece of one passage and a piece of another.
Pair = tuple[Told, str, Told, str]


def conflicts(
    relevance: Relevance, passages: Sequence[Told], trusted: Collection[int] = (), single: bool = False
) -> list[Conflict]:
    """The conflicts among passages on what is asked, in the order of the passages.

    `trusted` are places of passages that are known to hold; `single`: one passage answers by itself, so that one that
    answers otherwise than most contradicts them.
    """
    ask = relevance.ask
    if ask.plural or ask.form == "list":  # what has several answers is not contradicted by another one
        return []
    pairs = _pairs(list(_pieces(relevance, passages)))
    found = [*_settled(ask, _copies(relevance, pairs), passages, trusted), *_denials(relevance, pairs, trusted)]
    # Telling the names of Chinese apart takes longer than all else here.
    if single and ask.form == "fact" and ask.expects in _SINGLE and not ask.chinese:
        known = {place for one in found for place in (one.one, one.other)}
        found += [one for one in _otherwise(relevance, passages, trusted) if one.other not in known]
    return sorted(found, key=lambda one: (one.one, one.other))


def _pieces(relevance: Relevance, passages: Sequence[Told]) -> Iterator[tuple[Told, str]]:
    """The texts to compare: of each passage that bears on the question the sentences that do so most, and a short one
    as a whole."""
    for told in passages:
        covered = [(-relevance.judge(unit).coverage, place) for place, unit in enumerate(told.units)]
        near = [told.units[place].text for share, place in sorted(covered)[:SENTENCES] if -share >= BEARING]
        if near:
            whole = [told.text] if len(told.text) <= LONGEST else []
            yield from ((told, text) for text in dict.fromkeys((*whole, *near)))


def _pairs(pieces: Sequence[tuple[Told, str]]) -> list[Pair]:
    """The pieces of different passages that have most of their words in common: all that can be copies or denials."""
    near = []
    worded = [(told, piece, term_set(piece)) for told, piece in pieces[:MOST_COMPARED]]
    for (one, piece, first), (other, another, second) in combinations(worded, 2):
        if one.place != other.place and len(first & second) >= SHARED * max(len(first), len(second)):
            near.append((one, piece, other, another))
    return near


def _of_the_same(relevance: Relevance, titles: tuple[str, str], texts: tuple[str, str]) -> bool:
    """Whether two texts speak of the same: in documents of different titles "the film" is another one, unless both name
    what the question names."""
    if agree(*titles):
        return True
    first, second = (f" {fold_name(text)} " for text in texts)
    return any(f" {form} " in first and f" {form} " in second for group in relevance.names for form in group)


def _copies(relevance: Relevance, pairs: Sequence[Pair]) -> list[Conflict]:
    """Pairs of passages of which one puts another value where the other has its own."""
    found: dict[tuple[int, int], Conflict] = {}
    for one, piece, other, another in pairs:
        if (one.place, other.place) in found:
            continue
        put, titles = put_for(piece, another), (one.title, other.title)
        if (
            put is not None
            and _of_the_same(relevance, titles, (piece, another))
            and all(_may_answer(relevance.ask, value, titles) for value in (put.one, put.other))
        ):
            found[one.place, other.place] = Conflict(one.place, put.one, other.place, put.other, "copy")
    return list(found.values())


def _may_answer(ask: Ask, value: str, titles: Sequence[str]) -> bool:
    """Whether a value can be what is asked for: not what the question names, nor what the passages are about."""
    return not words_of(value) <= words_of(ask.text) and not any(title and agree(value, title) for title in titles)


def _denials(relevance: Relevance, pairs: Sequence[Pair], trusted: Collection[int]) -> list[Conflict]:
    """Pairs of passages of which one says that what the other says is not so."""
    found: dict[tuple[int, int], Conflict] = {}
    for one, piece, other, another in pairs:
        places, texts = (one.place, other.place), (piece, another)
        if places not in found and denies(*texts) and _of_the_same(relevance, (one.title, other.title), texts):
            worse = [place for place in places if place not in trusted]
            settled = worse[0] if len(worse) == 1 else None
            found[places] = Conflict(one.place, piece, other.place, another, "denial", settled)
    return list(found.values())


def _settled(
    ask: Ask, found: Sequence[Conflict], passages: Sequence[Told], trusted: Collection[int]
) -> Iterator[Conflict]:
    """The conflicts with the side that is worse supported, all of one pair of values by the same voices."""
    groups: dict[frozenset[frozenset[str]], list[Conflict]] = defaultdict(list)
    for conflict in found:
        groups[frozenset((words_of(conflict.says), words_of(conflict.other_says)))].append(conflict)
    for group in groups.values():
        values = group[0].says, group[0].other_says
        sides = Side(values[0]), Side(values[1])
        for told in passages:
            holds = [has_value(told.text, value) for value in values]
            if holds[0] != holds[1]:
                sides[holds[1]].add(told.text, told.place in trusted)
        right = better(ask, *sides)
        for conflict in group:
            if right is None:
                yield conflict
            else:
                is_right = words_of(conflict.says) == words_of(right.value)
                yield replace(conflict, contradicted=conflict.other if is_right else conflict.one)


def _otherwise(relevance: Relevance, passages: Sequence[Told], trusted: Collection[int]) -> list[Conflict]:
    """The passages that answer otherwise than most do, and hold nothing of what most say."""
    answers = {told.place: _answers(relevance, told) for told in passages}
    answering = [told for told in passages if answers[told.place]]
    holders = {
        value: [told.place for told in answering if has_value(told.text, value)]
        for value in dict.fromkeys(value for told in answering for value in answers[told.place])
    }
    if not holders:
        return []
    value = max(holders, key=lambda one: (len(holders[one]), len(one)))
    if len(holders[value]) < max(FEWEST, MOST * len(answering)):
        return []
    own, years = details(value, "", relevance.ask), set(_YEAR.findall(relevance.ask.text))
    found = []
    for told in answering:
        said = answers[told.place][0]
        if told.place in holders[value] or told.place in trusted or own & parts_of(told.text):
            continue
        if years and not years & set(_YEAR.findall(told.text)):
            continue  # of another year
        if not agree(value, said) and _shape(value) == _shape(said) and 2 * len(holders[said]) < len(holders[value]):
            found.append(Conflict(holders[value][0], value, told.place, said, "value", told.place))
    return found


def _shape(value: str) -> tuple[bool, bool]:
    """Whether a value has figures and whether it has several words: a full name is not set against a single word."""
    return any(map(str.isdigit, value)), " " in value.strip()


def _answers(relevance: Relevance, told: Told) -> list[str]:
    """The values of the kind asked for in the sentences that answer, the likeliest first."""
    ranked = []
    for unit in told.units:
        coverage = relevance.judge(unit).coverage
        if coverage >= ANSWERING:
            options = options_in(relevance.ask, unit, relevance.cues, relevance.names)
            ranked += [(-coverage, distance, value) for distance, value in options]
    return list(dict.fromkeys(value for _, _, value in sorted(ranked)))
