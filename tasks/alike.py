"""Do two questions ask the same of the same things? (for ERM4's trigger, Better: names, figures and relations agree)

Questions that differ in one name, one year or one relation are close in meaning and need different evidence: likeness
of meaning alone does not tell them apart. So each question is taken apart once, and two are compared part by part.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache

from prompts.language.question import ask
from prompts.language.relation_words import likeness, meanings, sex_of
from prompts.language.words import STOPWORDS, WORD, content_terms, fold, is_han, word_terms
from storage.records import content_id
from tasks.alike_zh import compared
from tasks.traverse.cues import Cue, cues_around, cues_in

_ORDINALS = dict(
    zip("first second third fourth fifth sixth seventh eighth ninth tenth".split(), map(str, range(1, 11)), strict=True)
)
_MONTHS = {
    name: f"m{number}"
    for number, name in enumerate(
        "january february march april may june july august september october november december".split(), 1
    )
}
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*|第[一二三四五六七八九十百]+|[a-z]+")
_HAN_DIGITS = {digit: str(value) for value, digit in enumerate("一二三四五六七八九十", 1)}
# What a word that asks, or the kind of thing asked for, may stand for: no relation by itself.
_KINDS = {
    **dict.fromkeys("where place citi town villag countri state locat spot site".split(), "place"),
    **dict.fromkeys("live stay address resid home".split(), "place"),
    **dict.fromkeys("when date year day time month".split(), "date"),
    **dict.fromkeys("why how caus reason".split(), "cause"),
}
# Relations that tell of a kind too: "what killed her" asks for no place.
_TELLING = {"kill": "cause", "die_from": "cause", "die_of": "cause"}
# They say little beside the relation that they stand with.
_LIGHT = frozenset("follow practic made make have belong".split())
_KIN = frozenset({"parent", "child", "spouse", "sibling"})
_FIGURES = frozenset({"number", "money"})  # "how long" asks for no cause
_VAGUE = frozenset({"name", "text"})


@dataclass(frozen=True, slots=True)
class Mention:
    """A stretch `start`..`end` of a question that names one of these entities."""

    start: int
    end: int
    entities: frozenset[str]


@dataclass(frozen=True)
class Question:
    """A question taken apart for comparison."""

    text: str
    mentions: tuple[Mention, ...] = ()
    names: frozenset[str] = frozenset()
    figures: frozenset[str] = frozenset()
    kinds: frozenset[str] = frozenset()
    relations: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    han: bool = False
    expects: str = field(default="text")


def taken_apart(text: str, mentions: Sequence[Mention]) -> Question:
    """The parts of a question; `mentions` are what it names, in its order."""
    cues = [] if is_han(text) else _cues(text, mentions)
    told, expects = _KINDS | _TELLING, ask(text).expects
    kinds = {told[cue.key] for cue in cues if cue.key in told and not (cue.key == "how" and expects in _FIGURES)}
    return Question(
        text=text, mentions=tuple(mentions), names=frozenset(name for one in mentions for name in one.entities),
        figures=_figures(text), kinds=frozenset(kinds),
        relations=tuple(cue.key for cue in cues if cue.key not in _KINDS and not cue.asking),
        words=_words(text), han=is_han(text), expects=expects,
    )  # fmt: skip


def differs(one: Question, two: Question) -> str:
    """In which part two questions do not ask the same: "language", "names", "figures", "kind", "relation"; "" in
    none.

    A part that only one of them tells of, such as the kind of thing asked for, is no difference.
    """
    checks: tuple[tuple[str, Callable[[Question, Question], bool]], ...] = (
        ("language", lambda mine, yours: mine.han != yours.han),
        # Chinese names are found here and not there: they are compared as text, with the rest.
        ("names", lambda mine, yours: not mine.han and mine.names != yours.names),
        ("figures", lambda mine, yours: mine.figures != yours.figures),
        ("kind", _other_kind),
        ("relation", _other_relation),
    )
    return next((part for part, other in checks if other(one, two)), "")


def alike(one: Question, two: Question) -> float:
    """Likeness of two questions by their words (0-1): for texts that the embedder cannot read."""
    if one.han and two.han:
        return compared(one.text, two.text).likeness
    if not one.words or not two.words:
        return 0.0
    mine = sum(max(likeness(word, other) for other in two.words) for word in one.words)
    yours = sum(max(likeness(word, other) for other in one.words) for word in two.words)
    return (mine + yours) / (len(one.words) + len(two.words))


def _cues(text: str, mentions: Sequence[Mention]) -> list[Cue]:
    """The words around the first name that may ask for relations, in the order in which they lead away from it."""
    if not mentions:
        return list(cues_in(text))
    blank = "".join(" " if any(one.start <= at < one.end for one in mentions[1:]) else c for at, c in enumerate(text))
    return list(cues_around(blank, mentions[0].start, mentions[0].end).orders()[0])


@lru_cache(maxsize=20_000)
def _figures(text: str) -> frozenset[str]:
    """Numbers, ordinals and months, in one writing; "May" only with a figure beside it."""
    found: set[str] = set()
    folded = fold(text)
    for match in _NUMBER.finditer(folded):
        word = match.group()
        if word[0].isdigit():
            found.add(word.replace(",", ""))
        elif word[0] == "第":
            found.add("".join(_HAN_DIGITS.get(digit, digit) for digit in word[1:]))
        elif word in _ORDINALS:
            found.add(_ORDINALS[word])
        elif word in _MONTHS and (word not in {"may", "march"} or text[match.start()].isupper()):
            found.add(_MONTHS[word])
    return frozenset(found)


def _words(text: str) -> tuple[str, ...]:
    found = (term for word in WORD.findall(fold(text)) if word not in STOPWORDS for term in word_terms(word))
    return tuple(dict.fromkeys(found))


def _other_kind(one: Question, two: Question) -> bool:
    if one.kinds and two.kinds:
        return not one.kinds & two.kinds
    wanted = {one.expects, two.expects}
    return len(wanted - _VAGUE) == 2 and not (one.kinds or two.kinds)


def _other_relation(one: Question, two: Question) -> bool:
    if one.han:
        return compared(one.text, two.text).another
    if _other_relations(one.relations, two.relations):
        return True
    return not one.names and _other_words(one.words, two.words)


def _other_relations(mine: Sequence[str], yours: Sequence[str]) -> bool:
    """Whether the two ask for other relations, or for the same in another order.

    What the lexicon knows must have its like, in the same place; what it does not know may have none.
    """
    first, second = _grouped(mine), _grouped(yours)

    @cache
    def agrees(one: int, two: int) -> bool:
        if one == len(first) and two == len(second):
            return True
        here = first[one] if one < len(first) else ()
        there = second[two] if two < len(second) else ()
        fit = here and there and (_same_group(here, there) or not (_known(here) or _known(there)))
        if fit and agrees(one + 1, two + 1):
            return True
        return bool(here and not _known(here) and agrees(one + 1, two)) or bool(
            there and not _known(there) and agrees(one, two + 1)
        )

    return not agrees(0, 0)


def _grouped(words: Sequence[str]) -> list[tuple[str, ...]]:
    """Neighbouring words of one meaning together ("educational institution"); relatives lead on one by one."""
    groups: list[tuple[str, ...]] = []
    for word in words:
        if word in _LIGHT:
            continue
        last = groups[-1][-1] if groups else ""
        if last and last != word and likeness(word, last) > 0 and not meanings(word) & _KIN:
            groups[-1] += (word,)
        else:
            groups.append((word,))
    return groups


def _known(group: Sequence[str]) -> bool:
    return any(meanings(word) for word in group)


def _same_group(one: Sequence[str], two: Sequence[str]) -> bool:
    return any(_same(word, other) for word in one for other in two)


def _other_words(mine: Sequence[str], yours: Sequence[str]) -> bool:
    """Whether each of two questions that name nothing has a word that is like none of the other's."""
    return not all(any(_same(word, other) for other in yours) for word in mine) and not all(
        any(_same(word, other) for other in mine) for word in yours
    )


def _same(word: str, other: str) -> bool:
    sexes = {sex_of(word), sex_of(other)} - {""}
    return len(sexes) < 2 and likeness(word, other) > 0


def keys(question: Question) -> tuple[str, ...]:
    """By what a question is looked up: one that asks the same shares a key with it.

    Names must agree, so all of them together are one key; where they are not found alike (Chinese) or there are none,
    each word is one.
    """
    if question.names and not question.han:
        return (content_id("n", *sorted(question.names)),)
    found = content_terms(question.text) or list(question.words)
    return tuple(f"w_{term}" for term in dict.fromkeys(found))
