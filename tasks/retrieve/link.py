"""Entity linking: the entities that a question names.

The longest stretches of words that are a known name once folded, then those that are one slip of
the pen away from one. A question may name nothing that the graph knows. A question in lower case is
linked like one with capitals, but a word that English writes small is no name by itself.
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
# Only names of at least SHORTEST letters that begin or end with the same ENDS letters are compared.
ENDS, SHORTEST = 2, 5
LEAST_ALIKE = 84.0  # the least rapidfuzz ratio, of 100
CANDIDATES = 2  # for a name that is not known
OTHER_NAME = 0.9  # the score of an alias; the main name of an entity scores 1
_LAST_LINKED = 256  # questions
_POSSESSIVE = re.compile(r"['’]s$")
_QUALIFIED = re.compile(r"\s{0,9}([(（][^()（）]{1,60}[)）])")
# Figures, Roman numerals and signs: "Louis XIV" is no slip for "Louis XV", nor "C" for "C#".
_DISTINGUISHING = re.compile(r"\d+|\b[ivxlc]+\b|[^\w\s']")
# Words with which a request begins; there they name nothing, whatever the graph holds.
_IMPERATIVES = frozenset(
    "tell describe list name give explain summarise summarize show find compare introduce state "
    "define outline".split()
)
# Words that introduce a title, however ordinary its own words are.
_INTRODUCING = frozenset(
    "film movie song album book novel play poem series show game magazine "
    "band opera painting comic".split()
)

Item = TypeVar("Item")
Near = tuple[str, float]  # a key and how much it is like the one looked for, 0 to 1


class Link(Record):
    """A stretch of the question and an entity that it may mean; `score` is 1 for the same name.

    A stretch has a link for every entity of its name.
    """

    text: str
    entity: int
    score: float
    start: int = 0
    end: int = 0


class QuestionWord(NamedTuple):
    """A word or sign of a question; `apart`: a blank follows; `tells`: it is no function word."""

    folded: str
    start: int
    end: int
    apart: bool
    capital: bool
    tells: bool


def _words_of(question: str) -> list[QuestionWord]:
    """Fold the words as in a name, without possessive endings."""
    words = []
    for word in name_words(question):
        text, folded = question[word.start : word.end], _POSSESSIVE.sub("", word.folded)
        tells = folded not in STOPWORDS and (len(folded) > 1 or folded.isalnum())
        words.append(QuestionWord(folded, *word[1:], text != text.lower(), tells))
    return words


def longest_stretches(
    words: Sequence[Item], admits: Callable[[int, int], bool]
) -> Iterator[Sequence[Item]]:
    """Yield the longest admitted stretches, from the left and without overlaps.

    `admits` takes the place of a stretch's first word, and the number of its words.
    """
    at = 0
    while at < len(words):
        size = next((n for n in range(min(MAX_WORDS, len(words) - at), 0, -1) if admits(at, n)), 0)
        if size:
            yield words[at : at + size]
        at += max(size, 1)


def _key_of(words: Sequence[QuestionWord]) -> str:
    return " ".join(word.folded for word in without_article(words))


def _capitals_mark_names(words: Sequence[QuestionWord]) -> bool:
    """Whether some word after the first has a capital, but not all of several do."""
    rest = words[1:]
    return any(word.capital for word in rest) and not (
        len(rest) > 1 and all(word.capital for word in rest)
    )


class _HanNames:
    """The keys that hold Chinese, to find in unspaced text of either script; immutable."""

    def __init__(self, keys: Iterable[str]) -> None:
        self._key_of: dict[str, str] = {}
        for key in keys:
            bare = simplified(key.replace(" ", ""))
            if len(bare) > 1 and HAN_RUN.search(bare):
                self._key_of.setdefault(bare, key)
        self._longest = min(LONGEST_HAN, max(map(len, self._key_of), default=0))

    def find(self, question: str) -> list[tuple[int, int, str]]:
        """Return (start, end, key) of the longest names without overlaps."""
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
                    bare[start:end] in self._key_of
                    and not _cuts_word(bare, start)
                    and not _cuts_word(bare, end)
                    and all(end <= other[0] or start >= other[1] for other in found)
                ):
                    found.append((start, end))
        return [
            (pairs[start][1], pairs[end - 1][1] + 1, self._key_of[bare[start:end]])
            for start, end in found
        ]


def _cuts_word(text: str, at: int) -> bool:
    """Whether a Latin word or a figure goes on across this place."""
    around = text[max(at - 1, 0) : at + 1]
    return len(around) == 2 and around.isascii() and around.isalnum()


class _NearNames:
    """Keys of names, to look up by a similar spelling; immutable."""

    def __init__(self, keys: Iterable[str]) -> None:
        self._keys = [key for key in keys if len(key) >= SHORTEST]
        self._by_end: dict[tuple[str, int], list[str]] = defaultdict(list)
        for key in self._keys:
            for end in _ends(key):
                self._by_end[end, len(key)].append(key)

    def one_slip(self, key: str) -> list[Near]:
        """Return keys in which one letter is left out, added, changed or swapped."""
        if len(key) < SHORTEST:
            return []
        pool = {
            name
            for size in range(len(key) - 1, len(key) + 2)
            for end in _ends(key)
            for name in self._by_end.get((end, size), ())
        }
        matches = process.extract(key, sorted(pool), scorer=OSA.distance, score_cutoff=1, limit=3)
        return [
            (near, 1 - distance / max(len(near), len(key)))
            for near, distance, _ in matches
            if _same_signs(key, near)
        ]

    def alike(self, key: str) -> list[Near]:
        pool = self._keys if len(key) >= SHORTEST else ()
        matches = process.extract(
            key, pool, scorer=fuzz.ratio, score_cutoff=LEAST_ALIKE, limit=CANDIDATES
        )
        return [(near, score / 100) for near, score, _ in matches if _same_signs(key, near)]


def _ends(key: str) -> tuple[str, str]:
    return key[:ENDS], "…" + key[-ENDS:]


def _same_signs(one: str, other: str) -> bool:
    return _DISTINGUISHING.findall(one) == _DISTINGUISHING.findall(other)


class Names:
    """Every name of every entity, to look up stretches of a question; immutable."""

    def __init__(self, names: Sequence[tuple[str, ...]]) -> None:
        """`names` are those of each entity, its main one first; several may share a name."""
        self.names = names
        self.by_key: dict[str, list[int]] = {}
        main = [(entity, own[0]) for entity, own in enumerate(names)]
        others = [(entity, name) for entity, own in enumerate(names) for name in own[1:]]
        for entity, name in main + others:
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
        return sorted(
            entity for entity in self.by_key.get(name_key(name), ()) if name in self.names[entity]
        )

    def link(self, question: str) -> list[Link]:
        """Return links to the entities that a question names, in its order, without overlaps."""
        return list(self._last_linked(question))

    def _link(self, question: str) -> list[Link]:
        cased = _capitals_mark_names(_words_of(question))
        links = self._chinese(question) if is_han(question) else []
        # A bracket qualifies the name before it; together they are not one name.
        outside = _without_brackets(question)
        inside = [" " * match.start(1) + match[1] for match in _QUALIFIED.finditer(question)]
        for fragment in (outside, *inside):
            words = _words_of(fragment)
            free = [word for word in words if not _touching(word.start, word.end, links)]
            links += self._exact(question, free, cased)
        links = self._misspelt(question, _words_of(outside), links)
        links.sort(key=lambda link: (link.start, -link.score))
        return list({link.entity: link for link in reversed(links)}.values())[::-1]

    def unlinked(self, question: str, links: Sequence[Link]) -> list[str]:
        """Return what looks like a name and has no link, in the order of the question."""
        return [
            question[span.start : span.end]
            for span in names_of(_without_brackets(question))
            if span.text.lower() not in _IMPERATIVES and not _touching(span.start, span.end, links)
        ]

    def candidates(self, name: str) -> list[Link]:
        """Link a single name to entities of that name, or else of a similar one, best first."""
        key = fold_name(name)
        exact = self.by_key.get(name_key(name)) or self.by_key.get(key)
        matches = [(key, 1.0)] if exact else self._near.one_slip(key) or self._near.alike(key)
        links = [
            Link(text=name, entity=entity, score=round(score, 4), end=len(name))
            for near, score in matches
            for entity in exact or self.by_key[near]
        ]
        return links[:CANDIDATES]

    # --- the same name ----------------------------------------------------------------------------

    def _exact(self, question: str, words: Sequence[QuestionWord], cased: bool) -> list[Link]:
        def admits(at: int, size: int) -> bool:
            introduced = at > 0 and words[at - 1].folded in _INTRODUCING
            return self._admits(question, words[at : at + size], cased, introduced)

        return [
            link
            for stretch in longest_stretches(words, admits)
            for link in self._linked(question, stretch, self._known(stretch), 1.0)
        ]

    def _known(self, stretch: Sequence[QuestionWord]) -> str:
        """Return the key of a stretch, without an ending after an apostrophe ("Kestel'de")."""
        key = _key_of(stretch)
        bare, _, ending = key.rpartition("'")
        return bare if key not in self.by_key and bare in self.by_key and " " not in ending else key

    def _admits(
        self, question: str, stretch: Sequence[QuestionWord], cased: bool, introduced: bool
    ) -> bool:
        """Whether a stretch is a known name, and is used as one.

        `cased`: capitals mark the names of the question. `introduced`: it follows "film" or the
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
        # A question's first word has a capital in any case.
        if cased and any(word.capital for word in stretch[first.start == 0 :]):
            return True
        qualifier = _QUALIFIED.match(question, stretch[-1].end)
        if qualifier is not None and name_key(f"{key} {qualifier[1]}") in self.by_key:
            return True
        written = (
            next(name for name in self.names[entity] if key in _keys(name))
            for entity in self.by_key[key]
        )
        capitals = any(name != name.lower() for name in written)
        telling = sum(word.tells for word in stretch)
        lone = telling == 0 or (cased and telling < 2 and not first.capital)
        is_name = not lone and (telling > 1 or (capitals and not usually_lower(key)))
        return is_name or (introduced and not cased and capitals)

    def _linked(
        self, question: str, stretch: Sequence[QuestionWord], key: str, score: float
    ) -> list[Link]:
        """Link a stretch to the entities of a key; a qualifier in brackets after it decides."""
        start, end = stretch[0].start, stretch[-1].end
        text, reach = question[start:end], _reach(question, end)
        entities = self.by_key[key]
        if qualifier := _QUALIFIED.match(question, end):
            entities = self.by_key.get(name_key(f"{key} {qualifier[1]}"), entities)
        links = []
        for entity in entities:
            is_main = key.startswith(fold_name(self.names[entity][0]))
            weighted = round(score * (1.0 if is_main else OTHER_NAME), 4)
            links.append(Link(text=text, entity=entity, score=weighted, start=start, end=reach))
        return links

    def _chinese(self, question: str) -> list[Link]:
        return [
            Link(text=question[start:end], entity=entity, score=1.0, start=start, end=end)
            for start, end, key in self._han.find(question)
            for entity in self.by_key[key]
        ]

    # --- almost the same name ---------------------------------------------------------------------

    def _misspelt(
        self, question: str, words: Sequence[QuestionWord], links: list[Link]
    ) -> list[Link]:
        """Add the links of misspelt names; a longer one replaces the links inside it."""
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
        """Whether a stretch is no known name, and more than one ordinary word."""
        telling = [word.folded for word in stretch if word.tells]
        if _key_of(stretch) in self.by_key or not telling:
            return False
        return len(telling) > 1 or not (telling[0] in self.by_key or usually_lower(telling[0]))


def _keys(name: str) -> Collection[str]:
    """Return the keys of a name: with its qualifier, and without."""
    key, folded = name_key(name), fold_name(name)
    return (key,) if folded in ("", key) else (folded, key)


def _without_brackets(question: str) -> str:
    return _QUALIFIED.sub(lambda match: " " * len(match.group()), question)


def _reach(question: str, end: int) -> int:
    """Return the end of a name with its qualifier, in which no other name is looked for."""
    qualifier = _QUALIFIED.match(question, end)
    return qualifier.end() if qualifier else end


def _touching(start: int, end: int, links: Sequence[Link]) -> list[Link]:
    return [link for link in links if link.start < end and start < link.end]
