"""Terms of a Chinese text, as far as the text itself shows them.

Three things show it: the place (a heading, the label before a colon), repetition between varied neighbours,
and a head noun that names a sort of thing with words before it that tell which. The segmenter's tags find the words
that no term holds; its dictionary tells how common a word is, and what is common alone is no term.
"""

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from prompts.text.regex import regex
from prompts.text.words import CJK, words_in

_BREAK_TAGS = ("p", "c", "u", "r", "y", "f", "m", "q", "t", "x", "w", "e", "o")
_COMMON = 3000  # a word at least so frequent in the segmenter's dictionary names nothing by itself
_COMMON_ADVERB = 5000  # rarer ones are parts of terms too: "随机"
_LONGEST_TERM, _SHORTEST_TERM, _MOST_WORDS = 14, 3, 5
_FEW = 3
_PLACED, _REPEATED, _HEADED = 4, 2, 1

# Words of any prose: none stands inside a term.
PROSE = words_in("chinese", "prose")
# Verbs that are parts of terms too, but do not begin one: "训练" in "训练路由器" says what is done to it.
VERBAL = words_in("chinese", "verbal")
# Heads that say nothing, whatever stands before them.
_WEAK = words_in("chinese", "weak_heads")
# Heads that with a word before them name one thing.
_HEADS = words_in("chinese", "heads")

_MADE = regex(rf"[{CJK}]{{2,}}(?:器|法|论|学|图|树|层|率|值|度|集|库|键|链|网)$")

_LABEL = regex(
    rf"(?:^|[\n。？！?!;；)）>]|[*•\-]\s)[-*•>#\s]{{0,40}}+(?:\d{{1,2}}[.、][-*•>#\s]{{0,40}}+){{0,3}}"
    rf"((?=[^\n]{{0,24}}?[{CJK}])[{CJK}A-Za-z0-9+·\- ]{{2,18}}?)(?:\*\*)?\s{{0,9}}(?=[:：(（])"
)
_HEADING = regex(rf"^#{{1,6}}\s{{1,9}}(?:\d+(?:\.\d+)*\.?\s{{0,9}})?([{CJK}A-Za-z0-9+·\- ]{{2,16}})\s*$", re.M)
_LISTED = regex(rf"(?:例如|比如|如|包括)((?:[{CJK}A-Za-z0-9\-]{{2,10}}[、或和与及])+[{CJK}A-Za-z0-9\-]{{2,10}})")
_JOINT = regex("[、或和与及]")
_PHRASE = regex(
    rf"^[仅只不每该此]|[{CJK}] [{CJK}]|[的了吗呢么是在与和及或从将被把让为对等怎谁于请]|"
    r"什么|如何|几个|一个|这|那|其他|本文|我们|作者"
)


class SegmentedWord(NamedTuple):
    """A word of the segmentation at `start`, with its tag and how often the segmenter's dictionary counts it."""

    text: str
    tag: str
    start: int
    frequency: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


def term_spans(text: str, words: Sequence[SegmentedWord]) -> Iterator[tuple[int, int, int]]:
    """(start, end, strength) of terms; they may overlap, and the stronger is meant, then the longer."""
    starts = [word.start for word in words]
    for start, end in _places(text):
        inside = words[bisect_left(starts, start) : bisect_left(starts, end)]
        if _is_placed_term(text[start:end], inside):
            yield (inside[1].start if len(inside) > 2 and inside[0].text in VERBAL else start), end, _PLACED
    runs = list(_runs(words))
    yield from _repeated(runs)
    for run in runs:
        yield from _headed(run)


def _places(text: str) -> Iterator[tuple[int, int]]:
    """Where terms are written: headings, labels, enumerated examples."""
    for pattern in (_HEADING, _LABEL):
        for match in pattern.finditer(text):
            yield match.start(1), match.start(1) + len(match.group(1).rstrip())
    for match in _LISTED.finditer(text):
        start = match.start(1)
        for item in _JOINT.split(match.group(1)):
            name, _, _ = item.partition("等")
            if len(name) > 1:
                yield start, start + len(name)
            start += len(item) + 1


def _is_placed_term(name: str, words: Sequence[SegmentedWord]) -> bool:
    """Whether what stands at such a place is a term and no phrase, number or everyday word."""
    if name.isascii() or len(name) < 2 or _PHRASE.search(name) or not words or words[-1].tag in {"a", "ad", "d"}:
        return False
    if words[-1].text in _WEAK or (len(words) > _FEW and any(word.text in VERBAL for word in words[1:-1])):
        return False
    if any(word.text in PROSE or word.tag in {"c", "r", "u", "uj", "ul", "y"} for word in words):
        return False
    return any(word.frequency < _COMMON and word.text not in _WEAK for word in words)


def _runs(words: Sequence[SegmentedWord]) -> Iterator[list[SegmentedWord]]:
    """Stretches of adjacent words that a term may hold."""
    run: list[SegmentedWord] = []
    counted = False
    for word in words:
        measure = counted and len(word.text) == 1  # "多跳推理": the word after a number belongs to it
        counted = word.tag.startswith("m")
        inside = _inside(word) and not measure
        if run and (word.start != run[-1].end or not inside):
            yield run
            run = []
        if inside:
            run.append(word)
    if run:
        yield run


def _inside(word: SegmentedWord) -> bool:
    if word.text in PROSE or word.tag.startswith(_BREAK_TAGS) or not word.text.strip():
        return False
    if word.tag in {"d", "ad", "a"}:
        return len(word.text) > 1 and word.frequency < _COMMON_ADVERB
    return len(word.text) > 1 or not word.tag.startswith(("v", "a", "d", "z"))


def _repeated(runs: Sequence[Sequence[SegmentedWord]]) -> Iterator[tuple[int, int, int]]:
    """SegmentedWord sequences that occur at least twice, not always before or after the same word."""
    places: dict[str, list[tuple[int, int]]] = defaultdict(list)
    before: dict[str, set[str]] = defaultdict(set)
    after: dict[str, set[str]] = defaultdict(set)
    for number, run in enumerate(runs):
        for first in range(len(run)):
            for last in range(first, min(first + _MOST_WORDS, len(run))):
                name = "".join(word.text for word in run[first : last + 1])
                if not _SHORTEST_TERM <= len(name) <= _LONGEST_TERM or not _is_compound(run[first : last + 1]):
                    continue
                places[name].append((run[first].start, run[last].end))
                before[name].add(run[first - 1].text if first else f"-{number}")
                after[name].add(run[last + 1].text if last + 1 < len(run) else f"-{number}")
    for name, spans in places.items():
        if len(spans) > 1 and len(before[name]) > 1 and len(after[name]) > 1:
            for start, end in spans:
                yield start, end, _REPEATED


def _is_compound(words: Sequence[SegmentedWord]) -> bool:
    """Several words that end in a noun or a verb used as one, or one word that is rare."""
    if len(words) == 1:
        word = words[0]
        return word.frequency < _COMMON // 10 and word.tag[0] in "nlij" and word.text[-1] not in "性化"
    first, last = words[0], words[-1]
    if first.text in VERBAL or first.tag in {"ng", "k", "d"} or last.text in _WEAK:
        return False
    return last.tag[0] in "nvljkgz"


def _headed(run: Sequence[SegmentedWord]) -> Iterator[tuple[int, int, int]]:
    """The part of a run up to its head, where it ends in one: at most three words before it."""
    head = run[-1]
    known = head.text in _HEADS or _MADE.fullmatch(head.text)
    if not known or head.tag.startswith("v") or len(run) < 2:
        return
    first = max(0, len(run) - 4)
    for place in range(first, len(run) - 2):
        first = place + 1 if run[place].text in VERBAL else first
    first += run[first].text in VERBAL
    if first < len(run) - 1 and run[-1].end - run[first].start <= _LONGEST_TERM:
        yield run[first].start, head.end, _HEADED
