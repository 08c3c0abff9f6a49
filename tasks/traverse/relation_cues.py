"""Relation cues: the words of a question that ask for relations, in the order in which they lead away from a name.

"The gender of Ada's kid" leads from Ada to her kid, then to the gender: what belongs to the name by 's comes first,
what stands before it comes last to first.
"""

import re
from dataclasses import dataclass, replace

from prompts.text.regex import regex
from prompts.text.thesaurus import han_words, phrases
from prompts.text.words import CJK, HAN_STOP, STOPWORDS, fold, stem

# They begin a request or say what sort of word follows; no relation is meant by them.
_EMPTY = frozenset(
    """
    about all also any are between both called common current currently did different do does each entities
    entity enumerate ever every exactly find following give had has have identify individual individuals is
    jointly kind kinds like list many mention much mutual name named names now number one ones people person
    persons please present s same share shared show some somebody someone sort state tell thing things title
    titles together type types various was were
    """.split()
)
_SILENT = (STOPWORDS | _EMPTY) - {"own"}
_WHOSE = frozenset("s his her its their my your our".split())
_ASKING = frozenset("where when why how who whom".split())
_WORD = regex(rf"[^\W_{CJK}]+(?:['’-][^\W_{CJK}]+)*|[{CJK}]+")
_OWNED = regex(r"\s{0,9}['’]\s{0,9}s\b|\s{0,9}的")
_TO_DO = regex(r"\bdo(?: for (?:a |the )?living)?(?=\W*$)")  # "What does she do?"
_DOES = regex(r"\b(?:does|did|do)\b.+\bdo\b")
_WHERE = {"work": "work_at", "employ": "work_at"}  # "Where does she work?" asks for no profession
_ELDERS = frozenset("father mother parent parents dad mom mum pa ma".split())
_GRAND = regex(r"^(?:great-?)?grand-?(?=\w{3})")


@dataclass(frozen=True, slots=True)
class Cue:
    """A stem or phrase that may mean a relation; `asking` marks words such as "where", which need mean none.

    `word` is as it stands in the question; a `bound` cue ("the colour of …", "…'s colour") must mean a relation.
    """

    key: str
    word: str
    asking: bool = False
    bound: bool = False


@dataclass(frozen=True, slots=True)
class Cues:
    """The cues on both sides of a name, each side in the order of the question; `owned` says that 's follows it."""

    before: tuple[Cue, ...]
    after: tuple[Cue, ...]
    owned: bool

    def orders(self) -> list[tuple[Cue, ...]]:
        """The orders in which the cues may lead away from the name, likeliest first; words that ask come last."""
        asking = tuple(cue for cue in self.before + self.after if cue.asking)
        before = tuple(cue for cue in reversed(self.before) if not cue.asking)
        after = tuple(cue for cue in self.after if not cue.asking)
        if any(cue.word == "where" for cue in asking):
            after = tuple(replace(cue, key=_WHERE.get(cue.key, cue.key)) for cue in after)
        likely, other = (after + before, before + after) if self.owned else (before + after, after + before)
        return [order + asking for order in dict.fromkeys((likely, other))]


def cues_in(text: str) -> tuple[Cue, ...]:
    """The cues of a stretch without a name, last to first: as they would lead away from a name behind it."""
    cues = _cues(text, False)
    return (*(cue for cue in reversed(cues) if not cue.asking), *(cue for cue in cues if cue.asking))


def cues_around(question: str, start: int, end: int) -> Cues:
    """The cues of a question around the name at `start`..`end`."""
    after = question[end:]
    owned = _OWNED.match(after)
    rest = _OWNED.sub(" ", after, count=1)
    return Cues(tuple(_cues(question[:start], False)), tuple(_cues(rest, owned is not None)), owned is not None)


def _cues(text: str, owned: bool) -> list[Cue]:
    text = fold(text)
    if owned or _DOES.search(text):
        text = _TO_DO.sub("occupation", text)
    words = [piece for match in _WORD.finditer(text) for piece in _pieces(match.group())]
    stems = [stem(word) for word in words]
    cues: list[Cue] = []
    place = 0
    while place < len(words):
        size, key = _phrase(stems, place)
        if size:
            cues.append(Cue(key, " ".join(words[place : place + size])))
        elif words[place] == "how" and words[place + 1 : place + 2] in (["many"], ["much"]):
            pass
        elif words[place] in _ASKING:
            cues.append(Cue(stems[place], words[place], asking=True))
        elif words[place] not in _SILENT:
            owner = words[place - 1] if place else "s" if owned else ""
            if words[place] != "own" or owner not in _WHOSE:  # "her own" asks for nothing
                bound = owner == "s" or words[place + 1 : place + 2] == ["of"]
                cues.append(Cue(stems[place], words[place], bound=bound))
        place += max(size, 1)
    return cues


def _phrase(stems: list[str], place: int) -> tuple[int, str]:
    """The longest phrase of the lexicon that begins at a word: how many words, and its key. Articles do not count."""
    for phrase in phrases():
        parts = phrase.split("_")
        at = place
        for part in parts:
            if at < len(stems) and at > place and stems[at] in {"a", "an", "the"}:
                at += 1
            if at >= len(stems) or stems[at] != part:
                break
            at += 1
        else:
            return at - place, phrase
    return 0, ""


def _pieces(word: str) -> list[str]:
    """A word as the relations that it stands for: "grandmother" is twice one, and Chinese words run together."""
    if word >= "\u3400":
        return _han_pieces(word)
    if word.endswith(("'s", "’s")):
        return [*_pieces(word[:-2]), "s"]
    grand = _GRAND.match(word)
    if grand:
        rest = word[grand.end() :]
        between = "parent" if rest in _ELDERS else "child"
        return [between] * (1 + grand.group().startswith("great")) + [rest]
    return [word]


def _han_pieces(run: str) -> list[str]:
    """The words of the lexicon in a Chinese run, in order."""
    pieces: list[tuple[int, str]] = []
    left = run
    for word in han_words():
        while (at := left.find(word)) >= 0:
            pieces.append((at, word))
            left = left[:at] + " " * len(word) + left[at + len(word) :]
    rest = [(match.start(), match.group()) for match in re.finditer(rf"[{CJK}]{{2,}}", left)]
    return [word for _, word in sorted(pieces + rest) if not set(word) <= HAN_STOP]
