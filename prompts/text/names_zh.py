"""Names and terms in Chinese text: titles in brackets, foreign words, and runs of nouns.

Jieba gives words, parts of speech and frequencies. A run of nouns is a name where one of its words
is rare or tagged as a name; a single common noun is none.
"""

import logging
import re
import tempfile
from collections.abc import Iterator
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import jieba
import jieba.posseg

from prompts.text.names import NameSpan
from prompts.text.words import CJK, LEADING, groups_in, words_in

_WORK = re.compile(r"《([^《》\n]{2,30})》")
_QUOTED = re.compile(
    rf"[“「『\"](?![^”」』\"]{{0,12}}[的了吗呢是谁])([{CJK}A-Za-z0-9·\- ]{{2,12}})[”」』\"]"
)
# A name followed by a foreign one in brackets: "红隼号(MV Kestrel)".
_GLOSSED = re.compile(rf"(?<![{CJK}·])([{CJK}]{{2,16}})(?=[(（][A-Za-z][^()（）\n]{{1,60}}[)）])")
_JOINING = re.compile(r"[是为由在的了和与及或于给]")  # Characters between names
_LATIN = re.compile(
    rf"{LEADING}(?<![A-Za-z0-9%_])[A-Za-z][A-Za-z0-9]*(?:[ .\-+&][A-Za-z0-9+]+){{0,4}}"
    r"(?:\+|#)?(?![A-Za-z0-9_(])"
)
_NO_NAME = re.compile(r"\b[a-z]+\.[a-z]|^(?:Stage|Step|Section|Figure|Table|Chapter|Part) \d")
_MASKED = re.compile(
    r"```.*?(?:```|\Z)|`[^`\n]*`|https?://\S+|\$\$.*?\$\$|\$[^$\n]*\$|\\[A-Za-z]+|<[^<>\n]{1,200}>"
    r"|(?<![\w.-])/?[\w.-]+(?:/[\w.-]+)+|\b[A-Za-z]+\.[A-Za-z]+\([^()\n]*\)",
    re.S,
)
_SURNAMES = words_in("chinese", "surnames")
_WEAK_HEADS = words_in("chinese", "weak_heads")
_GENERIC = words_in("chinese", "no_names") | _WEAK_HEADS
_PROSE = words_in("chinese", "prose") | words_in("chinese", "verbal")
_KIND_SUFFIXES = tuple(groups_in("chinese", "kinds").items())
_KIND_WORDS = frozenset(suffix for _, suffixes in _KIND_SUFFIXES for suffix in suffixes)
_NAMES = frozenset({"nr", "nrt", "nrfg", "ns", "nt", "nz"})  # Jieba's tags of names
_NOUNS = ("n", "s", "vn", "j", "l", "i")  # Nouns, places, abbreviations and set phrases
_NO_PART_OF_A_NAME = tuple("pcurdfyv")  # Function words and verbs
_SUFFIXES = frozenset("号器度率值法性论")  # Cut off words that the dictionary lacks
_COMMON = 3000  # From this frequency on a word names nothing by itself
_RARE = 300  # Below this frequency a word alone is a name
_LONGEST = 14
_LONGEST_PERSON = 3


class _HanWord(NamedTuple):
    text: str
    tag: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


@cache
def _segmenter() -> Any:  # Untyped by its package
    """Load jieba quietly, with its cache file in the temporary folder."""
    jieba.setLogLevel(logging.WARNING)
    jieba.dt.tmp_dir = str(Path(tempfile.gettempdir()))
    jieba.initialize()
    return jieba


def _frequency(word: str) -> int:
    return int(_segmenter().dt.FREQ.get(word, 0))


def is_generic(name: str) -> bool:
    """Whether a Chinese word names a kind of thing, not one thing ("公司", "研究所")."""
    return name in _GENERIC or name in _KIND_WORDS


def kind_of(name: str) -> str:
    """Return the kind that a Chinese name's ending tells, else "thing"."""
    for kind, suffixes in _KIND_SUFFIXES:
        if any(name.endswith(suffix) and len(name) > len(suffix) for suffix in suffixes):
            return kind
    return "thing"


@lru_cache(maxsize=64)
def tagged(text: str) -> tuple[tuple[str, str, int], ...]:
    """Return the words of a text with part-of-speech tag and offset."""
    offset, words = 0, []
    for pair in _segmenter().posseg.lcut(text):
        words.append((pair.word, pair.flag, offset))
        offset += len(pair.word)
    return tuple(words)


def name_spans_zh(text: str) -> list[NameSpan]:
    """Return the names and terms of a Chinese text in order, without overlaps; none in code."""
    text = _MASKED.sub(lambda match: re.sub(r"\S", "\u3000", match.group()), text)
    found = [NameSpan(match[1], *match.span(1), "work") for match in _WORK.finditer(text)]
    found += [
        NameSpan(match[1], *match.span(1), kind_of(match[1])) for match in _QUOTED.finditer(text)
    ]
    found += [
        NameSpan(match[0], *match.span(), "thing")
        for match in _LATIN.finditer(text)
        if len(match[0]) > 1 and match[0] != match[0].lower() and not _NO_NAME.search(match[0])
    ]
    found += [
        span for match in _GLOSSED.finditer(text) if (span := _glossed(match[1], match.start(1)))
    ]
    found += [_span_of(run) for run in _noun_runs(text) if _is_name(run)]
    names: list[NameSpan] = []
    for span in found:  # Of two that overlap, the sort found first above is kept
        if all(span.end <= other.start or other.end <= span.start for other in names):
            names.append(span)
    return sorted(names, key=lambda span: span.start)


def _glossed(text: str, start: int) -> NameSpan | None:
    """Return the name that ends a text, after its last verb or function word."""
    last = _JOINING.split(text)[-1]
    words = [_HanWord(*word) for word in tagged(last)]
    cuts = [word.end for word in words if word.text in _PROSE or _is_no_part(word)]
    name = last[max(cuts, default=0) :]
    if len(name) < 2 or name in _GENERIC:
        return None
    return NameSpan(name, start + len(text) - len(name), start + len(text), kind_of(name))


def _is_no_part(word: _HanWord) -> bool:
    """Whether a word cannot stand in a name; a one-character verb may, in a foreign name."""
    is_sign = word.tag.startswith("v") and len(word.text) == 1
    return word.tag.startswith(_NO_PART_OF_A_NAME) and not is_sign


def _noun_runs(text: str) -> Iterator[list[_HanWord]]:
    """Yield runs of adjacent nouns.

    "·" joins the parts of a foreign name, with a character before it that jieba cuts off ("托" of
    "托比亚斯·雷恩").
    """
    run: list[_HanWord] = []
    dotted = False
    sign: _HanWord | None = None
    for word in (_HanWord(*word) for word in tagged(text)):
        if word.text == "·" and run:
            if not dotted:
                cut_off = [sign] if sign and sign.end == run[-1].start else []
                run = [*cut_off, run[-1]]
            dotted = True
            run.append(word)
        elif (dotted and run[-1].text == "·") or _is_noun(word, bool(run)):
            # "记者 王磊 团队" are three runs.
            apart = _is_person_word(word) or (bool(run) and _is_person_word(run[-1]))
            if run and run[-1].text != "·" and (dotted or apart):
                yield run
                run, dotted = [], False
            run.append(word)
        else:
            if run:
                yield run
            run, dotted = [], False
            is_sign = len(word.text) == 1 and word.tag.startswith("v")
            sign = word if is_sign and not _JOINING.match(word.text) else None
    if run:
        yield run


def _is_noun(word: _HanWord, goes_on: bool) -> bool:
    if word.text in _PROSE or not word.text.strip() or not "\u3400" <= word.text[0] <= "\u9fff":
        return False
    if goes_on and word.text in _SUFFIXES:
        return True
    return word.tag.startswith(_NOUNS) and (goes_on or len(word.text) > 1 or word.text in _SURNAMES)


def _is_name(run: list[_HanWord]) -> bool:
    """Whether a run of nouns names something."""
    name, last = "".join(word.text for word in run), run[-1].text
    if not 2 <= len(name) <= _LONGEST or last == "·" or is_generic(name) or last in _WEAK_HEADS:
        return False
    if any(word.text == "·" for word in run):
        return True
    if len(run) == 1:
        proper = run[0].tag in _NAMES and (
            not run[0].tag.startswith("nr") or _is_person_word(run[0])
        )
        return _frequency(name) < (_COMMON if proper else _RARE)
    return any(_frequency(word.text) < _COMMON and word.text not in _GENERIC for word in run)


def _is_person_word(word: _HanWord) -> bool:
    surname = word.text[0] in _SURNAMES and 1 < len(word.text) <= _LONGEST_PERSON
    return surname and word.tag.startswith("nr")


def _span_of(run: list[_HanWord]) -> NameSpan:
    name = "".join(word.text for word in run)
    person = "·" in name or _is_person_word(run[-1])
    kind = kind_of(name)
    return NameSpan(
        name, run[0].start, run[-1].end, "person" if person and kind == "thing" else kind
    )
