"""Names and terms in Chinese text: where they stand, and of what kind.

Runs of nouns from a part-of-speech segmentation, bracketed titles, foreign terms in Latin letters, and the left side of
`中文(English)`. The segmenter's own name tags decide nothing alone (they are mostly wrong on technical prose).
"""

import logging
import re
import tempfile
from bisect import bisect_left, insort
from collections import Counter
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from prompts.text.names import NameSpan
from prompts.text.regex import regex
from prompts.text.terms_zh import PROSE, VERBAL, SegmentedWord, term_spans
from prompts.text.words import CJK, LEADING, groups_in, words_in

_WORK = regex(r"《([^《》\n]{2,30})》")
_QUOTED = regex(rf"[“「『【\"]([{CJK}A-Za-z0-9·\- ]{{2,20}})[”」』】\"]")
_GLOSSED = regex(
    rf"([{CJK}·A-Za-z0-9]{{2,16}})\s*[(（]\s*(?:(?:简称|英文名?|英文简称|又称|又名|即|缩写为?|亦称)[:：]?\s*)?"
    r"([A-Za-z][A-Za-z0-9 .,'&/-]{1,60}?)\s*(?=[)）]|[,，;；、][^()（）]{0,40}[)）])"
)
_SAID = regex(r"[的了吗呢是谁]|什么|如何")
_DEFINED = regex(rf"^([{CJK}]{{2,12}})(?=[(（][A-Za-z][A-Za-z ,-]+[)）](?:指|是|[:：]))", re.M)
_MIXED = regex(r"(?<![A-Za-z0-9])[A-Z][A-Za-z0-9.+-]*(?:算法|基准|数据集|定理|定律|函数|指数|系数|协议|引擎)(?![器库])")
_LATIN = regex(
    rf"{LEADING}(?<![A-Za-z0-9%_])[A-Za-z][A-Za-z0-9]*(?:[ .\-+&][A-Za-z0-9+]+){{0,4}}"
    r"(?:\+|#)?(?![A-Za-z0-9_])"
)
_SPELLED = regex("[A-Za-z]{2}")
_CALL = regex(r"\b[A-Za-z]\.[A-Za-z]|\b[A-Za-z]+\.[a-z]|^(?:Stage|Step|Section|Figure|Table|Chapter|Part) \d")
_COMPOUND = regex(r"[a-z]{3,}-[a-z]{3,}")
_TRANSLITERATED = regex(rf"[{CJK}]{{1,12}}(?:·[{CJK}]{{1,8}})+")
_MASKED = regex(
    r"```.*?(?:```|\Z)|`[^`\n]*`|\]\([^)\s]{1,500}\)|https?://\S+|\\[A-Za-z]+(?:\{[^{}]*\})*|\$\$.*?\$\$|\$[^$\n]*\$|"
    r"(?<![\w.%-])/?[\w%.-]+(?:/[\w%.-]+)+|\b[\w-]{1,80}\.(?:py|md|json|txt|html?|com|org|io)\b|\b[a-z0-9]+_\w+|<[^<>\n]{1,200}>",
    re.S,
)
_CLAUSE_CUT = regex(r"[是为由在的了和与及或于给]|从(?=..)|到(?=..)|采用|提出|使用|包括|称为|叫做|名为")
_CUT_TAGS = ("p", "c", "u", "r", "d", "f", "y", "m", "t")
SURNAMES = words_in("chinese", "surnames")
_SUFFIXES = frozenset("器度率值法性论")  # the segmenter cuts them off words that it does not know
_NO_NAME = regex("\u3000|^[图表] ?\\d|^(?!\\.[A-Z])[^A-Za-z\u3400-\u9fff]")
_HAN = regex(rf"[{CJK}]{{2,}}")
_COMMON_NAME, _COMMON_PERSON = 20_000, 50
LONGEST_PERSON = 3
_PERSON_TAGS = frozenset({"nr", "nrt", "nrfg"})
_NAME_TAGS = frozenset({"nr", "ns", "nt", "nz", "nrt", "nrfg"})
_STOP = words_in("chinese", "no_names")
_KIND_SUFFIXES = tuple(groups_in("chinese", "kinds").items())
_GENERIC = frozenset(suffix for _, suffixes in _KIND_SUFFIXES for suffix in suffixes) | _STOP


@cache
def _segmenter() -> Any:  # nothing of it is typed by its package
    """The segmenter, loaded once; its cache file goes to the temporary folder and its chatter nowhere."""
    import jieba
    import jieba.posseg

    jieba.setLogLevel(logging.WARNING)
    jieba.dt.tmp_dir = str(Path(tempfile.gettempdir()))
    jieba.initialize()
    return jieba


def frequency(word: str) -> int:
    """How often the segmenter's dictionary counts a word; 0 for one that it lacks."""
    return int(_segmenter().dt.FREQ.get(word, 0))


def is_generic(name: str) -> bool:
    """Whether a Chinese word names a sort of thing and no thing ("公司", "研究所")."""
    return name in _GENERIC


def kind_of(name: str) -> str:
    """The kind that a Chinese name's ending tells, or "thing"."""
    for kind, suffixes in _KIND_SUFFIXES:
        if any(name.endswith(suffix) and len(name) > len(suffix) for suffix in suffixes):
            return kind
    return "thing"


@lru_cache(maxsize=64)  # one question is read for its names, its terms and its keywords; rare signs take 5 ms each
def tagged(text: str) -> tuple[tuple[str, str, int], ...]:
    """Words with part-of-speech tag and offset."""
    offset, words = 0, []
    for pair in _segmenter().posseg.lcut(text):
        words.append((pair.word, pair.flag, offset))
        offset += len(pair.word)
    return tuple(words)


def _candidates(text: str) -> list[tuple[int, int, str, int]]:
    """(start, end, kind, strength); where two overlap, the stronger, then the longer one stays."""
    candidates = [(m.start(1), m.end(1), "work", 5) for m in _WORK.finditer(text)]
    words = _words(text)
    for match in _QUOTED.finditer(text):
        name = match.group(1).rstrip()
        if not _SAID.search(name) and (not name.isascii() or _is_term(name)):
            candidates.append((match.start(1), match.start(1) + len(name), kind_of(name), 3))
    candidates += [(m.start(1), m.end(1), kind_of(m.group(1)), 5) for m in _DEFINED.finditer(text)]
    candidates += [(m.start(), m.end(), kind_of(m.group()), 3) for m in _MIXED.finditer(text)]
    for match in _GLOSSED.finditer(text):
        name = _tail(match.group(1))
        if name.isascii() or name.endswith("的") or not _SPELLED.search(match.group(2)):
            continue
        person = "·" in name
        candidates.append((match.end(1) - len(name), match.end(1), "person" if person else kind_of(name), 4))
        candidates.append((match.start(2), match.end(2), "thing", 4))
    candidates += [(m.start(), m.end(), "thing", 2) for m in _LATIN.finditer(text) if _is_term(m.group())]
    candidates += [(m.end() - len(_tail(m.group())), m.end(), "person", 4) for m in _TRANSLITERATED.finditer(text)]
    candidates += [(start, end, kind_of(text[start:end]), strength) for start, end, strength in term_spans(text, words)]
    counts = Counter(word.text for word in words)
    for word in words:
        if _is_proper(word, counts[word.text]):
            kind = "person" if word.tag in _PERSON_TAGS and kind_of(word.text) == "thing" else kind_of(word.text)
            candidates.append((word.start, word.end, kind, 2))
    return candidates


def _words(text: str) -> list[SegmentedWord]:
    words: list[SegmentedWord] = []
    for word, tag, start in tagged(text):
        if word in _SUFFIXES and words and words[-1].end == start and _HAN.fullmatch(words[-1].text):
            words[-1] = SegmentedWord(words[-1].text + word, "n", words[-1].start, 0)
        else:
            words.append(SegmentedWord(word, tag, start, frequency(word)))
    return words


def _is_proper(word: SegmentedWord, count: int) -> bool:
    """Whether the segmenter's name tag can be believed of a word that the text holds `count` times."""
    if word.tag not in _NAME_TAGS or word.frequency > _COMMON_NAME or len(word.text) < 2:
        return False
    if word.tag in {"nr", "nrfg"}:
        known = word.text[0] in SURNAMES or (count > 1 and word.frequency == 0)
        return known and len(word.text) <= LONGEST_PERSON and word.frequency < _COMMON_PERSON
    return word.tag in {"nt", "ns"} or len(word.text) > 2


def _is_term(latin: str) -> bool:
    """Foreign words count as terms when they look like names: a capital among two letters or more, or a compound."""
    if _CALL.search(latin):
        return False
    return (len(latin) > 1 and any(c.isupper() for c in latin)) or _COMPOUND.fullmatch(latin) is not None


@lru_cache(maxsize=10_000)
def _tail(run: str) -> str:
    """What a bracket after `run` glosses: the name that ends it, not the clause before ("前往奎伦角" → "奎伦角")."""
    tail = _CLAUSE_CUT.split(run)[-1]
    tail = tail if len(tail) > 1 else run
    head, dot, rest = tail.partition("·")
    words = tagged(head if dot else tail)
    start = 0
    for number, (word, tag, offset) in enumerate(words):
        after = offset + len(word)
        verb = tag.startswith("v") and tag != "vn" and len(word) > 1 and number < len(words) - 1
        # A calling before a transliterated name ("工程师托比亚斯·雷恩") is no part of it.
        calling = dot and tag in {"n", "v"} and len(word) > 1
        done = number < len(words) - 1 and (word in PROSE or (word in VERBAL and number < len(words) - 2))
        if (verb or done or calling or tag.startswith(_CUT_TAGS)) and len(head if dot else tail) - after > 1:
            start = after
    return (head[start:] if dot else tail[start:]) + dot + rest


def name_spans_zh(text: str) -> list[NameSpan]:
    """The names and terms in a Chinese text, in order, without overlaps; addresses, code and formulas hold none."""
    text = _MASKED.sub(lambda match: re.sub(r"\S", "\u3000", match.group()), text)
    chosen: list[tuple[int, int, str]] = []
    for start, end, kind, _ in sorted(_candidates(text), key=lambda c: (-c[3], c[0] - c[1], c[0])):
        place = bisect_left(chosen, (start, end, kind))
        free_before = place == 0 or chosen[place - 1][1] <= start
        if free_before and (place == len(chosen) or chosen[place][0] >= end):
            insort(chosen, (start, end, kind))
    spans = [NameSpan(text[start:end], start, end, kind) for start, end, kind in chosen]
    return [span for span in spans if span.text not in _STOP and not _NO_NAME.search(span.text)]
