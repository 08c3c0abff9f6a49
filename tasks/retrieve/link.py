"""Entity linking: the entities that a question names.

The longest stretches of words that are a known name, folded; then those that one slip of the pen
away are one. "Unlinked" is an answer: a question may name nothing that the graph knows. A question
in lower case is linked as one with capitals: what English writes small is no name by itself.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from typing import NamedTuple, TypeVar

from rapidfuzz import fuzz, process
from rapidfuzz.distance import OSA

from prompts.text.languages import names_of
from prompts.text.tokens import usually_lower
from prompts.text.words import (
    HAN_RUN,
    STOPWORDS,
    fold,
    fold_name,
    is_han,
    name_words,
    simplified,
    without_article,
)
from storage.records import Record
from tasks.resolve.keys import name_key

MAX_WORDS = 16  # of a name
LONGEST_HAN = 24  # characters of a Chinese name; each length costs a look-up at every place
ENDS, SHORTEST = 2, 5  # letters that two names begin or end with, and of a name, to be compared
LEAST_ALIKE = 84.0  # of a hundred (rapidfuzz ratio)
CANDIDATES = 2  # for a name that is not known
OTHER_NAME = 0.9  # what another name of an entity than its main one counts
_LAST_LINKED = 256  # questions
_POSSESSIVE = re.compile(r"['’]s$")
_QUALIFIED = re.compile(r"\s{0,9}([(（][^()（）]{1,60}[)）])")
# Figures, Roman numerals and signs: "Louis XIV" is no slip for "Louis XV", nor "C" for "C#".
_TELLING = re.compile(r"\d+|\b[ivxlc]+\b|[^\w\s']")
# With these a request begins; there they name nothing, whatever the graph holds.
_IMPERATIVES = frozenset(
    "tell describe list name give explain summarise summarize show find compare introduce state "
    "define outline".split()
)
# After these a title stands, however ordinary its words are.
_INTRODUCING = frozenset(
    "film movie song album book novel play poem series show game magazine "
    "band opera painting comic".split()
)

Item = TypeVar("Item")
Near = tuple[str, float]


class Link(Record):
    """A stretch of the question and an entity that it may mean; `score` is 1 where they are equal.

    One stretch may have several links: all that bear its name.
    """

    text: str
    entity: int
    score: float
    start: int = 0
    end: int = 0


class QuestionWord(NamedTuple):
    """A word or sign of a question; `tells` where it is no function word."""

    folded: str
    start: int
    end: int
    apart: bool
    capital: bool
    tells: bool


def _words_of(question: str) -> list[QuestionWord]:
    """The words in order as `fold_name` has them for a whole name, without possessive endings."""
    words = []
    for word in name_words(question):
        text, folded = question[word.start : word.end], _POSSESSIVE.sub("", word.folded)
        tells = folded not in STOPWORDS and (len(folded) > 1 or folded.isalnum())
        words.append(QuestionWord(folded, *word[1:], text != text.lower(), tells))
    return words


def longest_stretches(
    words: Sequence[Item], admits: Callable[[int, int], bool]
) -> Iterator[Sequence[Item]]:
    """The longest stretches that are admitted, from the left and none overlapping.

    `admits` is given a place in the words, and how many from there.
    """
    at = 0
    while at < len(words):
        size = next((n for n in range(min(MAX_WORDS, len(words) - at), 0, -1) if admits(at, n)), 0)
        if size:
            yield words[at : at + size]
        at += max(size, 1)


def _key_of(words: Sequence[QuestionWord]) -> str:
    return " ".join(word.folded for word in without_article(words))


def _is_cased(words: Sequence[QuestionWord]) -> bool:
    """Whether capitals tell names: some word but the first has one, and not every word has."""
    rest = words[1:]
    return any(word.capital for word in rest) and not (
        len(rest) > 1 and all(word.capital for word in rest)
    )


class _HanNames:
    """The keys that hold Chinese, for finding them in unspaced text of either script; immutable."""

    def __init__(self, keys: Iterable[str]) -> None:
        self._key_of: dict[str, str] = {}
        for key in keys:
            bare = simplified(key.replace(" ", ""))
            if len(bare) > 1 and HAN_RUN.search(bare):
                self._key_of.setdefault(bare, key)
        self._longest = min(LONGEST_HAN, max(map(len, self._key_of), default=0))

    def find(self, question: str) -> list[tuple[int, int, str]]:
        """(start, end, key) of the longest names, none overlapping another."""
        pairs = [
            (folded, place)
            for place, character in enumerate(simplified(question))
            if not character.isspace() and character not in "-·_"
            for folded in fold(character)
        ]
        bare = "".join(folded for folded, _ in pairs)
        found: list[tuple[int, int]] = []
        for size in range(self._longest, 1, -1):
            for start in range(len(bare) - size + 1):
                end = start + size
                if (
                    bare[start:end] not in self._key_of
                    or _cuts_word(bare, start)
                    or _cuts_word(bare, end)
                ):
                    continue
                if all(end <= other[0] or start >= other[1] for other in found):
                    found.append((start, end))
        return [
            (pairs[start][1], pairs[end - 1][1] + 1, self._key_of[bare[start:end]])
            for start, end in found
        ]


def _cuts_word(text: str, at: int) -> bool:
    """Whether a Latin word or figure goes on over this place."""
    around = text[max(at - 1, 0) : at + 1]
    return len(around) == 2 and around.isascii() and around.isalnum()


class _NearNames:
    """Keys of names, for looking up what is spelt almost alike; immutable once made."""

    def __init__(self, keys: Iterable[str]) -> None:
        self._keys = [key for key in keys if len(key) >= SHORTEST]
        self._by_end: dict[tuple[str, int], list[str]] = defaultdict(list)
        for key in self._keys:
            self._by_end[key[:ENDS], len(key)].append(key)
            self._by_end["…" + key[-ENDS:], len(key)].append(key)

    def one_slip(self, key: str) -> list[Near]:
        """Keys that one letter left out, added, changed or swapped makes of this one."""
        ends = (key[:ENDS], "…" + key[-ENDS:]) if len(key) >= SHORTEST else ()
        sizes = range(len(key) - 1, len(key) + 2)
        pool = sorted(
            {name for size in sizes for end in ends for name in self._by_end.get((end, size), ())}
        )
        matches = process.extract(key, pool, scorer=OSA.distance, score_cutoff=1, limit=3)
        return [
            (near, 1 - distance / max(len(near), len(key)))
            for near, distance, _ in matches
            if _TELLING.findall(key) == _TELLING.findall(near)
        ]

    def alike(self, key: str) -> list[Near]:
        """The keys most alike, with likeness (rapidfuzz ratio, 0 to 1)."""
        pool = self._keys if len(key) >= SHORTEST else ()
        matches = process.extract(
            key, pool, scorer=fuzz.ratio, score_cutoff=LEAST_ALIKE, limit=CANDIDATES
        )
        return [
            (near, score / 100)
            for near, score, _ in matches
            if _TELLING.findall(key) == _TELLING.findall(near)
        ]


class Names:
    """Every name of every entity, for looking up stretches of a question; immutable."""

    def __init__(self, names: Sequence[tuple[str, ...]]) -> None:
        """`names` are those of each entity, its main one first; a name may be that of several."""
        self.names = names
        self.by_key: dict[str, list[int]] = {}
        for others in (False, True):
            for entity, own in enumerate(names):
                for name in own[1:] if others else own[:1]:
                    for key in _keys(name):
                        known = self.by_key.setdefault(key, [])
                        if entity not in known:
                            known.append(entity)
        self._last_linked = lru_cache(_LAST_LINKED)(self._link)

    @cached_property
    def _near(self) -> _NearNames:
        return _NearNames(sorted(self.by_key))

    @cached_property
    def _han(self) -> _HanNames:
        return _HanNames(sorted(self.by_key))

    def called(self, name: str) -> list[int]:
        """The entities with exactly this name."""
        return sorted(
            entity for entity in self.by_key.get(name_key(name), ()) if name in self.names[entity]
        )

    def link(self, question: str) -> list[Link]:
        """The entities that a question names, in its order; longest stretch first, no overlaps."""
        return list(self._last_linked(question))

    def _link(self, question: str) -> list[Link]:
        words = _words_of(question)
        links = self._chinese(question) if is_han(question) else []
        # What a bracket says of a name before it names nothing with it.
        outside = _QUALIFIED.sub(lambda match: " " * len(match.group()), question)
        inside = [" " * match.start(1) + match[1] for match in _QUALIFIED.finditer(question)]
        for fragment in (outside, *inside):
            free = [
                word for word in _words_of(fragment) if not _touching(word.start, word.end, links)
            ]
            links += self._exact(question, free, _is_cased(words))
        links = self._misspelt(question, _words_of(outside), links)
        links.sort(key=lambda link: (link.start, -link.score))
        return list({link.entity: link for link in reversed(links)}.values())[::-1]

    def unlinked(self, question: str, links: Sequence[Link]) -> list[str]:
        """What looks like a name and is linked to nothing, in the order of the question."""
        bare = _QUALIFIED.sub(lambda match: " " * len(match.group()), question)
        spans = [span for span in names_of(bare) if span.text.lower() not in _IMPERATIVES]
        return [
            question[span.start : span.end]
            for span in spans
            if not _touching(span.start, span.end, links)
        ]

    def candidates(self, name: str) -> list[Link]:
        """The entities that a name by itself may mean, best first: equal, a slip away, or alike."""
        key = fold_name(name)
        exact = self.by_key.get(name_key(name)) or self.by_key.get(key)
        matches = [(key, 1.0)] if exact else self._near.one_slip(key) or self._near.alike(key)
        links = [
            Link(text=name, entity=entity, score=round(score, 4), end=len(name))
            for near, score in matches
            for entity in exact or self.by_key[near]
        ]
        return links[:CANDIDATES]

    # --- equal -----------------------------------------------------------------------------------

    def _exact(self, question: str, words: Sequence[QuestionWord], cased: bool) -> list[Link]:
        def admits(at: int, size: int) -> bool:
            introduced = at > 0 and words[at - 1].folded in _INTRODUCING
            return self._admits(question, words[at : at + size], cased, introduced)

        stretches = longest_stretches(words, admits)
        return [
            link for one in stretches for link in self._linked(question, one, self._known(one), 1.0)
        ]

    def _known(self, stretch: Sequence[QuestionWord]) -> str:
        """The key of a stretch, without an ending behind an apostrophe ("Kestel'de")."""
        key = _key_of(stretch)
        bare, _, ending = key.rpartition("'")
        return bare if key not in self.by_key and bare in self.by_key and " " not in ending else key

    def _admits(
        self, question: str, stretch: Sequence[QuestionWord], cased: bool, introduced: bool
    ) -> bool:
        """Whether a stretch is a known name, used as one; `introduced`: after "film" or the
        like.
        """
        first, key = stretch[0], self._known(stretch)
        if key not in self.by_key or (len(key) < 2 and (not first.capital or key in {"a", "i"})):
            return False
        if len(stretch) == 1 and (not first.tells or (first.start == 0 and key in _IMPERATIVES)):
            return False
        if any(character.isdigit() for character in key) and (
            len(stretch) == 1 or not key.isdigit()
        ):
            return True
        # The first word has a capital in any case.
        if cased and any(word.capital for word in stretch[first.start == 0 :]):
            return True
        qualifier = _QUALIFIED.match(question, stretch[-1].end)
        if qualifier is not None and name_key(f"{key} {qualifier[1]}") in self.by_key:
            return True
        spelt = (
            next(name for name in self.names[entity] if key in _keys(name))
            for entity in self.by_key[key]
        )
        capitals = any(name != name.lower() for name in spelt)
        telling = sum(word.tells for word in stretch)
        lone = telling == 0 or (cased and telling < 2 and not first.capital)
        is_name = not lone and (telling > 1 or (capitals and not usually_lower(key)))
        return is_name or (introduced and not cased and capitals)

    def _linked(
        self, question: str, stretch: Sequence[QuestionWord], key: str, score: float
    ) -> list[Link]:
        """The entities that a stretch means by a key; a qualifier in brackets after it decides."""
        start, end = stretch[0].start, stretch[-1].end
        entities = self.by_key[key]
        if qualifier := _QUALIFIED.match(question, end):
            entities = self.by_key.get(name_key(f"{key} {qualifier[1]}"), entities)
        weights = [
            1.0 if key.startswith(fold_name(self.names[entity][0])) else OTHER_NAME
            for entity in entities
        ]
        reach = _reach(question, end)
        return [
            Link(
                text=question[start:end],
                entity=entity,
                score=round(score * weight, 4),
                start=start,
                end=reach,
            )
            for entity, weight in zip(entities, weights, strict=True)
        ]

    def _chinese(self, question: str) -> list[Link]:
        return [
            Link(text=question[start:end], entity=entity, score=1.0, start=start, end=end)
            for start, end, key in self._han.find(question)
            for entity in self.by_key[key]
        ]

    # --- almost equal ----------------------------------------------------------------------------

    def _misspelt(
        self, question: str, words: Sequence[QuestionWord], links: list[Link]
    ) -> list[Link]:
        """The links with those that one slip hid; a longer one replaces links inside it."""
        for size in range(min(MAX_WORDS, len(words)), 0, -1):
            for at in range(len(words) - size + 1):
                stretch = words[at : at + size]
                start, end = stretch[0].start, _reach(question, stretch[-1].end)
                touching = _touching(start, end, links)
                outside = any(link.start < start or link.end > end for link in touching)
                if not outside and self._may_be_misspelt(stretch):
                    near = self._near.one_slip(_key_of(stretch))[:1]
                    found = [
                        link
                        for name, score in near
                        for link in self._linked(question, stretch, name, score)
                    ]
                    links = [link for link in links if not found or link not in touching] + found
        return links

    def _may_be_misspelt(self, stretch: Sequence[QuestionWord]) -> bool:
        """Whether a stretch is no known name, and says more than one ordinary word."""
        telling = [word.folded for word in stretch if word.tells]
        if _key_of(stretch) in self.by_key or not telling:
            return False
        return len(telling) > 1 or not (telling[0] in self.by_key or usually_lower(telling[0]))


def _keys(name: str) -> Collection[str]:
    """The keys under which a name is known: with its qualifier and without."""
    key, folded = name_key(name), fold_name(name)
    return (key,) if folded in ("", key) else (folded, key)


def _reach(question: str, end: int) -> int:
    """Where a name that stops here ends with its bracket: no other name is looked for in that."""
    qualifier = _QUALIFIED.match(question, end)
    return qualifier.end() if qualifier else end


def _touching(start: int, end: int, links: Sequence[Link]) -> list[Link]:
    """The links that share a place with a stretch."""
    return [link for link in links if link.start < end and start < link.end]
