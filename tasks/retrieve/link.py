"""Entity linking: the entities that a question names. Longest n-gram, folded; then what is one slip of the pen away;
then what is near in meaning.

"Unlinked" is an answer: a question may name nothing that the graph knows. A question in lower case is linked as one
with capitals: what general English writes small is no name by itself.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import chain
from typing import NamedTuple, TypeVar

from rapidfuzz import fuzz, process
from rapidfuzz.distance import OSA

from prompts.text.names import name_spans
from prompts.text.names_zh import name_spans_zh
from prompts.text.regex import regex
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

_POSSESSIVE = regex(r"['’]s$")
_BRACKETED = regex(r"[(（][^()（）]{1,60}[)）]")
MAX_WORDS = 16  # of a name


class QuestionWord(NamedTuple):
    """A word or sign of a question: its folded form, its place, whether a blank follows, whether it
    has a capital and whether it carries meaning."""

    folded: str
    start: int
    end: int
    apart: bool
    capital: bool
    tells: bool


def words_of(question: str) -> list[QuestionWord]:
    """The words in order as `fold_name` has them for a whole name, possessive endings dropped."""
    words = []
    for word in name_words(question):
        text, folded = question[word.start : word.end], _POSSESSIVE.sub("", word.folded)
        tells = folded not in STOPWORDS and (len(folded) > 1 or folded.isalnum())
        words.append(QuestionWord(folded, *word[1:], text != text.lower(), tells))
    return words


def fragments_of(question: str) -> list[str]:
    """The question without its brackets, then each bracket; blanks stand for the rest, so that places stay. What a
    bracket says of a name before it names nothing."""
    outside = _BRACKETED.sub(lambda match: " " * len(match.group()), question)
    return [outside, *(" " * match.start() + match.group() for match in _BRACKETED.finditer(question))]


Item = TypeVar("Item")


def longest_stretches(words: Sequence[Item], admits: Callable[[int, int], bool]) -> Iterator[Sequence[Item]]:
    """The longest stretches that are admitted, from the left and none overlapping; `admits` is given a place in the
    words, and how many from there."""
    at = 0
    while at < len(words):
        size = next((n for n in range(min(MAX_WORDS, len(words) - at), 0, -1) if admits(at, n)), 0)
        if size:
            yield words[at : at + size]
        at += max(size, 1)


def key_of(words: Sequence[QuestionWord]) -> str:
    """The key under which a name of these words is known."""
    return " ".join(word.folded for word in without_article(words))


def is_cased(words: list[QuestionWord]) -> bool:
    """Whether capitals tell names: some word but the first has one, and not every word has."""
    rest = words[1:]
    return any(word.capital for word in rest) and not (len(rest) > 1 and all(word.capital for word in rest))


# Longer Chinese names are rare, and each length costs a look-up at every place of the question.
LONGEST = 24


class HanNames:
    """The keys that hold Chinese, for finding them in unspaced text of either script; immutable."""

    def __init__(self, keys: Iterable[str]) -> None:
        self._key_of: dict[str, str] = {}
        for key in keys:
            bare = simplified(key.replace(" ", ""))
            if len(bare) > 1 and HAN_RUN.search(bare):
                self._key_of.setdefault(bare, key)
        self._longest = min(LONGEST, max(map(len, self._key_of), default=0))

    def find(self, question: str) -> list[tuple[int, int, str]]:
        """(start, end, key) of the longest names, none overlapping another, in the order of the question."""
        pairs = [
            (folded, place)
            for place, character in enumerate(simplified(question))
            if not character.isspace() and character not in "-·_"
            for folded in fold(character)
        ]
        bare = "".join(folded for folded, _ in pairs)
        # No Latin word or figure is cut in two.
        cuts = [not (_is_latin(bare[at - 1 : at]) and _is_latin(bare[at : at + 1])) for at in range(len(bare) + 1)]
        matches = [
            (start, end)
            for size in range(self._longest, 1, -1)
            for start in range(len(bare) - size + 1)
            if bare[start : (end := start + size)] in self._key_of and cuts[start] and cuts[end]
        ]
        longest: list[tuple[int, int]] = []
        for start, end in matches:
            if all(end <= other[0] or start >= other[1] for other in longest):
                longest.append((start, end))
        return [
            (pairs[start][1], pairs[end - 1][1] + 1, self._key_of[bare[start:end]]) for start, end in sorted(longest)
        ]


def _is_latin(character: str) -> bool:
    return character.isascii() and character.isalnum()


ENDS = 2
SHORTEST = 5
FUZZY_CUTOFF = 84.0
# A name that is not known is linked to so many.
CANDIDATES = 2
Near = tuple[str, float]


class NearNames:
    """Keys of names, for looking up what is spelt almost alike; immutable once made."""

    def __init__(self, keys: Iterable[str]) -> None:
        self._keys = [key for key in keys if len(key) >= SHORTEST]
        self._by_end: dict[tuple[str, int], list[str]] = defaultdict(list)
        for key in self._keys:
            self._by_end[key[:ENDS], len(key)].append(key)
            self._by_end["…" + key[-ENDS:], len(key)].append(key)

    def one_slip(self, key: str) -> list[Near]:
        """Keys that one letter left out, added, changed, or swapped with the next makes of this one, with likeness."""
        # By name among equals, whatever the order in which they were found.
        ends = (key[:ENDS], "…" + key[-ENDS:]) if len(key) >= SHORTEST else ()
        sizes = range(len(key) - 1, len(key) + 2)
        pool = sorted({name for size in sizes for end in ends for name in self._by_end.get((end, size), ())})
        matches = process.extract(key, pool, scorer=OSA.distance, score_cutoff=1, limit=3)
        return [(near, 1 - distance / max(len(near), len(key))) for near, distance, _ in matches]

    def alike(self, key: str) -> list[Near]:
        """The keys most alike, at least FUZZY_CUTOFF in a hundred, with likeness (rapidfuzz ratio, 0 to 1)."""
        pool = self._keys if len(key) >= SHORTEST else ()
        matches = process.extract(key, pool, scorer=fuzz.ratio, score_cutoff=FUZZY_CUTOFF, limit=CANDIDATES)
        return [(near, score / 100) for near, score, _ in matches]


_TELLING = regex(r"\d+|\b[ivxlc]+\b|[^\w\s']")
# Signs that belong to the figure after or before them: "5 V" is no name in "-5 V", nor "5" in "5%".
_BEFORE, _AFTER = frozenset("+−^$€£¥§"), frozenset("%‰°′″")
_QUALIFIED = regex(r"\s{0,9}([(（][^()（）]{1,60}[)）])")
# What another name than its main one counts for.
OTHER_NAME = 0.9
_LAST_LINKED = 256  # questions
# With these a request begins; there they name nothing, whatever the graph holds.
IMPERATIVES = frozenset(
    "tell describe list name give explain summarise summarize show find compare introduce state define outline".split()
)
# After these a title stands, however ordinary its words are.
INTRODUCING = frozenset(
    "film movie song album book novel play poem series show game magazine band opera painting comic".split()
)


class Link(Record):
    """A stretch of the question and an entity that it may mean; `score` is 1 where they are equal, else likeness.

    One stretch may have several links: all that bear its name.
    """

    text: str
    entity: int
    score: float
    start: int = 0
    end: int = 0


class Names:
    """Every name of every entity, for looking up stretches of a question; immutable."""

    def __init__(self, names: Sequence[tuple[str, ...]]) -> None:
        """`names` are those of each entity, its main one first; a name may stand for several entities."""
        self.names = names
        self.by_key: dict[str, list[int]] = {}
        main = ((own[0], entity) for entity, own in enumerate(names))
        others = ((name, entity) for entity, own in enumerate(names) if len(own) > 1 for name in own[1:])
        for name, entity in chain(main, others):
            for key in _keys(name):
                if key not in self.by_key:
                    self.by_key[key] = [entity]
                elif entity not in self.by_key[key]:
                    self.by_key[key].append(entity)
        self._last_linked = lru_cache(_LAST_LINKED)(self._link)

    @cached_property
    def _near(self) -> NearNames:
        return NearNames(sorted(self.by_key))

    @cached_property
    def _han(self) -> HanNames:
        return HanNames(sorted(self.by_key))

    def called(self, name: str) -> list[int]:
        """The entities with exactly this name."""
        return sorted(entity for entity in self.by_key.get(name_key(name), ()) if name in self.names[entity])

    def link(self, question: str) -> list[Link]:
        """The entities that a question names, in the order of the question; longest stretch first, no overlaps.

        Those of the last questions are kept: several steps of one question ask for them.
        """
        return list(self._last_linked(question))

    def _link(self, question: str) -> list[Link]:
        cased = is_cased(words_of(question))
        links = self._chinese(question) if is_han(question) else []
        fragments = [words_of(fragment) for fragment in fragments_of(question)]
        for words in fragments:
            links += self._exact(
                question, [word for word in words if not _covered(word.start, word.start + 1, links)], cased
            )
        links = self._misspelt(question, fragments[0], links)
        links.sort(key=lambda link: (link.start, -link.score))
        return list({link.entity: link for link in reversed(links)}.values())[::-1]

    def unlinked(self, question: str, links: Sequence[Link]) -> list[str]:
        """What looks like a name and is linked to nothing, in the order of the question."""
        return [question[start:end] for start, end in self._spans(question) if not _covered(start, end, links)]

    def candidates(self, name: str) -> list[Link]:
        """The entities that a name by itself may mean, best first: equal, one slip away, or much alike."""
        key = fold_name(name)
        exact = self.by_key.get(name_key(name)) or self.by_key.get(key)
        matches = [(key, 1.0)] if exact else self._near.one_slip(key) or self._near.alike(key)
        links = [
            Link(text=name, entity=entity, score=round(score, 4), end=len(name))
            for near, score in matches
            if _same_signs(key, near)
            for entity in (exact or self.by_key[near])
        ]
        return links[:CANDIDATES]

    # --- equal ------------------------------------------------------------------------------------------------------

    def _exact(self, question: str, words: list[QuestionWord], cased: bool) -> list[Link]:
        def admits(at: int, size: int) -> bool:
            introduced = at > 0 and words[at - 1].folded in INTRODUCING
            stretch, end = words[at : at + size], at + size
            beside = [*words[at - 1 : at], *words[end : end + 1]]
            if _is_cut(question, stretch, beside):
                return False
            if len(key_of(stretch)) < 2 and not _is_letter(stretch[0], beside):
                return False
            return self._admits(question, stretch, cased, introduced)

        stretches = map(list, longest_stretches(words, admits))
        known = ((stretch, self._known(stretch)) for stretch in stretches)
        return [link for stretch, key in known for link in self._linked(question, stretch, key, 1.0)]

    def _known(self, stretch: Sequence[QuestionWord]) -> str:
        """The key of a stretch, without the ending behind its last apostrophe where it is known only
        so ("Kestel'de")."""
        key = key_of(stretch)
        bare, _, ending = key.rpartition("'")
        is_ending = bare in self.by_key and " " not in ending
        return bare if is_ending and key not in self.by_key else key

    def _admits(self, question: str, stretch: list[QuestionWord], cased: bool, introduced: bool) -> bool:
        """Whether a stretch is a known name, used as a name; `introduced`: after a word like "film"."""
        first, key = stretch[0], self._known(stretch)
        if key not in self.by_key:
            return False
        if len(stretch) == 1 and (not first.tells or (first.start == 0 and key in IMPERATIVES)):
            return False
        if any(character.isdigit() for character in key) and (len(stretch) == 1 or not key.isdigit()):
            return True
        # The first word has a capital in any case, so by itself it says as little as a word without one.
        if cased and any(word.capital for word in stretch[first.start == 0 :]):
            return True
        qualifier = _QUALIFIED.match(question, stretch[-1].end)
        if qualifier is not None and name_key(f"{key} {qualifier[1]}") in self.by_key:
            return True
        spelt = (next(name for name in self.names[entity] if key in _keys(name)) for entity in self.by_key[key])
        capitals = any(name != name.lower() for name in spelt)
        telling = sum(word.tells for word in stretch)
        lone = telling == 0 or (cased and telling < 2 and not first.capital)
        is_name = not lone and (telling > 1 or (capitals and not usually_lower(key)))
        return is_name or (introduced and not cased and capitals)

    def _linked(self, question: str, stretch: Sequence[QuestionWord], key: str, score: float) -> list[Link]:
        """The entities that a stretch means by a key; a bracketed qualifier after it ("Agni (2004 film)") decides."""
        start, end = stretch[0].start, stretch[-1].end
        qualifier = _QUALIFIED.match(question, end)
        entities = self.by_key[key]
        if qualifier is not None:
            entities = self.by_key.get(name_key(f"{key} {qualifier[1]}"), entities)
        text, reach = question[start:end], _reach(question, end)
        weights = [1.0 if key.startswith(fold_name(self.names[entity][0])) else OTHER_NAME for entity in entities]
        return [
            Link(text=text, entity=entity, score=round(score * weight, 4), start=start, end=reach)
            for entity, weight in zip(entities, weights, strict=True)
        ]

    def _chinese(self, question: str) -> list[Link]:
        return [
            Link(text=question[start:end], entity=entity, score=1.0, start=start, end=end)
            for start, end, key in self._han.find(question)
            for entity in self.by_key[key]
        ]

    # --- almost equal -----------------------------------------------------------------------------------------------

    def _misspelt(self, question: str, words: list[QuestionWord], links: list[Link]) -> list[Link]:
        """The links with those that one slip of the pen hid: longest stretch first. A longer one takes the place of
        links inside it."""
        for size in range(min(MAX_WORDS, len(words)), 0, -1):
            for at in range(len(words) - size + 1):
                stretch = words[at : at + size]
                start, end = stretch[0].start, _reach(question, stretch[-1].end)
                touching = [link for link in links if _covered(start, end, [link])]
                outside = any(link.start < start or link.end > end for link in touching)
                if not outside and self._may_be_misspelt(stretch):
                    corrected = self._one_slip(question, stretch)
                    links = [link for link in links if not corrected or link not in touching] + corrected
        return links

    def _may_be_misspelt(self, stretch: list[QuestionWord]) -> bool:
        """Whether a stretch is no known name, and two of its words carry meaning, or one that is no ordinary word."""
        telling = [word.folded for word in stretch if word.tells]
        if key_of(stretch) in self.by_key or not telling:
            return False
        return len(telling) > 1 or not (telling[0] in self.by_key or usually_lower(telling[0]))

    def _one_slip(self, question: str, stretch: list[QuestionWord]) -> list[Link]:
        key = key_of(stretch)
        near = [(name, score) for name, score in self._near.one_slip(key) if _same_signs(key, name)][:1]
        return [link for name, score in near for link in self._linked(question, stretch, name, score)]

    def _spans(self, question: str) -> list[tuple[int, int]]:
        """Where names stand, by their looks; a bracket qualifies a name and is none."""
        bare = _QUALIFIED.sub(lambda match: " " * len(match.group()), question)
        spans = name_spans_zh(bare) if is_han(bare) else name_spans(bare, [(0, len(bare))])
        return [(span.start, span.end) for span in spans if span.text.lower() not in IMPERATIVES]


def _keys(name: str) -> Collection[str]:
    """The keys under which a name is known."""
    key = name_key(name)
    if key == name.lower() and not key.endswith(")"):
        return (key,)
    folded = fold_name(name)
    return (key,) if folded in ("", key) else (folded, key)


def _reach(question: str, end: int) -> int:
    """Where a name that stops here ends with its bracket: no other name is looked for in that."""
    qualifier = _QUALIFIED.match(question, end)
    return qualifier.end() if qualifier else end


def _covered(start: int, end: int, links: Sequence[Link]) -> bool:
    """Whether a link touches a stretch."""
    return any(link.start < end and start < link.end for link in links)


def _is_cut(question: str, stretch: Sequence[QuestionWord], beside: Sequence[QuestionWord]) -> bool:
    """Whether a sign beside a stretch belongs to it."""
    for sign in beside:
        if sign.folded in _BEFORE and sign.end == stretch[0].start:
            return not question[: sign.start].strip() or question[sign.start - 1].isspace()
        if sign.folded in _AFTER and sign.start == stretch[-1].end:
            return True
    return False


def _is_letter(word: QuestionWord, beside: Sequence[QuestionWord]) -> bool:
    """Whether a word of one sign is a letter that may be a name ("Who designed C?"): no "I", and no
    part of "Plan B"."""
    if not word.capital or word.folded in {"a", "i"}:
        return False
    return not any(other.capital for other in beside)


def _same_signs(name: str, other: str) -> bool:
    """Whether two names have the same figures, arabic and roman, and signs: "Louis XIV" is no slip
    for "Louis XV", nor "Visual C" for "Visual C#"."""
    return _TELLING.findall(name) == _TELLING.findall(other)
