"""Sentences and other units of a text, and the script it is written in.

Regular expressions only: nothing is loaded or downloaded, and the same text always gives the same spans. Lines matter:
headings, table rows, list items and blank lines end a sentence; a line that was merely wrapped does not.
"""

import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from typing import Literal, NamedTuple

from prompts.text.amounts import MONTH_OF, MONTHS
from prompts.text.regex import regex
from prompts.text.words import known_languages, words_in

UnitKind = Literal["heading", "row", "item", "code", "plain"]
Script = Literal["han", "kana", "hangul", "latin", "other", "none"]


class Unit(NamedTuple):
    """A sentence, heading, table row or line of code: `text[start:end]`, and the kind of line that it stands on."""

    start: int
    end: int
    kind: UnitKind


def heading_words(line: str) -> str:
    """The words of a Markdown heading `# …`, without the signs before them and those that close it.

    Only a blank lets signs close a heading: `# C#` says "C#", `## Fees ##` says "Fees".
    """
    words = line.strip().lstrip("#").strip()
    without = words.rstrip("#")
    return without.rstrip() or words if without.endswith((" ", "\t")) else words


# --- sentences -------------------------------------------------------------------------------------------------

_LINE = regex(
    r"""[ \t\u3000]*(?:
      (?P<fence>```|~~~)
    | (?P<heading>\#{1,6}[ \t]+\S)
    | (?P<row>\|)
    | (?P<rule>[-=*_]{3,}[ \t]*$)
    | (?P<item>(?:[-*+•▪◦‣●]|\(?\d{1,3}[.)]|\(?[a-zA-Z]\))[ \t]+(?=\S)|\d{1,3}[、．]
      |[（(]?[一二三四五六七八九十]{1,3}[）)、])
    | (?P<quote>>)
    )""",
    re.VERBOSE,
)
_TRIPLE = regex(r" -\[[^\]\n]{0,1000}\]-> ")  # as long as a triple may be, that each place is tried quickly
_CLOSERS = r"[\"'”’」』）)\]】》〉*_]*"
_STOP = regex(
    rf"(?P<wide>(?:[。！？；｡।॥؟۔]|……)+[。！？；…!?]*{_CLOSERS})"
    rf"|(?P<loud>(?<![!?])[!?]++{_CLOSERS}+)(?=\s|$|[\u3040-\u30ff\u3400-\u9fff])"
    rf"|(?P<dot>(?:(?<!\.)\.++|…)(?:{_CLOSERS}+|“))(?=\s|$)"
    r"|(?<=[\u3400-\u9fff])(?P<mixed>\.)(?=[\u3400-\u9fff])"
)
_NEXT = regex(r"\s*[\"'“‘„¿¡(\[«「『（]*(\S?)")
_NEXT_WORD = regex(r"\s*[\"'“‘(\[]*([^\W\d_]*)")
_CODE = regex(r"`[^`\n]+`")
_INITIAL = regex(r"\s*[A-ZÀ-ÞА-Я]\.")
_LAST_WORD = regex(r"(?:[^\W\d_]\.){0,12}[^\W\d_]{1,24}$")
_ORDINAL = regex(r"(?<![\d.])\d{1,2}$")
_ALWAYS = words_in("english", "always_go_on")
_SHORT_MONTHS = MONTH_OF.keys() - MONTHS
_BEFORE_FIGURES = words_in("english", "before_figures") | _SHORT_MONTHS  # "No. 5", "Jan. 3"
_SOMETIMES = words_in("english", "sometimes_end") | _SHORT_MONTHS
_STARTERS = words_in("english", "starters")
_SHORTEST, _UNWRAPPED = 30, 200  # nobody wraps lines at fewer or more characters: such a newline is meant
_SENTENCE_ENDS = ".!?:;。！？：；|"
_BULLETS = "-*+•·▪◦‣●"
_SECTION = regex(r"\d{1,2}(?:\.\d{1,2})+\.?\s")


def units(text: str) -> list[Unit]:
    """Sentences in order with the kind of line each stands on; they never overlap and hold all non-space characters."""
    result: list[Unit] = []
    for start, end, kind, body in _blocks(text):
        stops = () if kind in ("heading", "row", "code") else _stops(text, body, end)
        for first, last in pairwise((start, *stops, end)):
            raw = text[first:last]
            if stripped := raw.strip():
                begin = first + len(raw) - len(raw.lstrip())
                result.append(Unit(begin, begin + len(stripped), kind))
    return result


def sentences(text: str) -> list[tuple[int, int]]:
    """Spans of the sentences in order; they never overlap and hold all non-space characters."""
    return [(unit.start, unit.end) for unit in units(text)]


def _blocks(text: str) -> Iterator[tuple[int, int, UnitKind, int]]:
    """Runs of lines that read on: (start, end, kind, where the words begin after a list marker)."""
    opened: tuple[int, UnitKind, int] | None = None
    previous, fenced, after_blank = "", False, False
    position = 0
    # Only newlines end a line here, whatever else `splitlines` knows.
    for line in re.findall(r"[^\n]*\n|[^\n]+", text):
        start, position = position, position + len(line)
        kind, body = _line_kind(line, fenced)
        if kind is None:
            if opened:
                yield opened[0], start, opened[1], opened[2]
            opened, after_blank = None, True
            continue
        if kind == "fence":
            fenced = not fenced
            kind = "code"
        indented = line[:1] in " \t" and after_blank and previous == "item" and kind == "plain"
        kind = "item" if indented else kind
        reads_on = opened is not None and kind == "plain" and opened[1] in ("plain", "item") and not after_blank
        if not (reads_on and _wrapped(text, start, line)):
            if opened:
                yield opened[0], start, opened[1], opened[2]
            opened = (start, kind, start + body)
        previous, after_blank = kind, False
    if opened:
        yield opened[0], len(text), opened[1], opened[2]


def _line_kind(line: str, fenced: bool) -> tuple[UnitKind | Literal["fence"] | None, int]:
    """The kind of one line (None: blank) and where its words begin."""
    if line.isspace():
        return None, 0
    match = None if line[0].isascii() and line[:2].isalpha() else _LINE.match(line)
    name = match.lastgroup if match else None
    if fenced or name == "fence":
        return ("fence" if name == "fence" else "code"), 0
    if name == "heading":
        return "heading", 0
    if name in ("row", "rule") or " | " in line or (" -[" in line and _TRIPLE.search(line)):
        return "row", 0
    if match and name == "item":
        return "item", match.end()
    return "plain", 0


def _wrapped(text: str, start: int, line: str) -> bool:
    """Whether the newline before `line` only wraps: the line above was too full to take this line's first word."""
    before = text.rfind("\n", 0, start - 1) + 1
    above = start - 1 - before
    if above == 1:
        return text[before] in _BULLETS
    small = line.lstrip()[0].islower()
    if above < _SHORTEST:
        return small and " " in text[before : start - 1].strip()
    if small and text[start - 2] not in _SENTENCE_ENDS:
        return True
    if above > _UNWRAPPED or _SECTION.match(text, before):
        return False
    further = text.rfind("\n", 0, before - 1) + 1 if before else 0
    width = max(len(line) - 1, min(before - 1 - further, _UNWRAPPED) if before else 0)
    if above >= width:
        return True
    word = line.split(None, 1)[0]
    room = 1 if word[0] > "\u3000" else len(word) + 1
    return above + room > width * 0.85


def _stops(text: str, start: int, end: int) -> Iterator[int]:
    code = [span.span() for span in _CODE.finditer(text, start, end)] if "`" in text[start:end] else []
    for match in _STOP.finditer(text, start, end):
        if any(first < match.start() < last for first, last in code):
            continue
        if match.lastgroup in ("wide", "mixed") or match.end() == end or _ends(text, match, start, end):
            yield match.end()


def _ends(text: str, match: re.Match[str], start: int, end: int) -> bool:
    """Whether `!`, `?`, `.` or an ellipsis before a space ends the sentence, judged by the words on either side."""
    follows = _NEXT.match(text, match.end(), end)
    first = follows.group(1) if follows else ""
    if first.islower():
        return False
    if match.lastgroup == "loud" or match.group().startswith(("..", "…")):
        return True
    word = _LAST_WORD.search(text, max(start, match.start() - 24), match.start())
    if not word:
        ordinal = _ORDINAL.search(text, start, match.start())
        return ordinal is None or _next_word(text, match.end(), end) not in _after_ordinals()
    if len(word.group()) == 1 and _INITIAL.match(text, match.end(), end):
        return False
    return _ends_after(word.group(), first, _next_word(text, match.end(), end))


def _next_word(text: str, start: int, end: int) -> str:
    match = _NEXT_WORD.match(text, start, end)
    return match.group(1).lower() if match else ""


@cache
def _after_ordinals() -> frozenset[str]:
    """The words before which other languages write a number with a point: "3. März"."""
    return frozenset(word for known in known_languages().values() for word in known.get("after_ordinals", "").split())


@cache
def _abbreviations() -> frozenset[str]:
    """What never ends a sentence, in any language."""
    others = (known.get("abbreviations", "") for known in known_languages().values())
    return _ALWAYS.union(*(words.split() for words in others))


def _ends_after(word: str, first: str, following: str) -> bool:
    low = word.lower()
    if low in _abbreviations():
        return False
    if low in _BEFORE_FIGURES and (first.isdigit() or first == "#"):
        return False
    initials = (len(word) == 1 and word.isupper()) or "." in word
    if initials or low in _SOMETIMES:
        return following in _STARTERS or (bool(first) and is_cjk(first))
    return True


# --- scripts ---------------------------------------------------------------------------------------------------

_HAN = regex(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_KANA = regex(r"[\u3041-\u30ff\uff66-\uff9f]")
_HANGUL = regex(r"[\u1100-\u11ff\uac00-\ud7af]")
_LATIN_WORD = regex(r"[A-Za-z\u00c0-\u024f]+")
_OTHER_WORD = regex(r"[\u0370-\u0dff\u0e00-\u10ff]+")
_CJK = regex(r"[\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\uac00-\ud7af\U00020000-\U0003ffff]")
_SAMPLE = 20_000


def is_cjk(text: str) -> bool:
    """Whether the text holds a Han character, kana or Hangul: such text has no spaces to split at."""
    return _CJK.search(text) is not None


def script_of(text: str) -> Script:
    """The script that dominates: Han characters and kana are weighed against Latin or other *words*.

    Kana make a text Japanese from a tenth of its Han and kana on. A long text is sampled at both ends and the middle.
    """
    if len(text) > 3 * _SAMPLE:
        middle = len(text) // 2
        text = text[:_SAMPLE] + " " + text[middle : middle + _SAMPLE] + " " + text[-_SAMPLE:]
    if text.isascii():
        return "latin" if _LATIN_WORD.search(text) else "none"
    han, kana = len(_HAN.findall(text)), len(_KANA.findall(text))
    counts: dict[Script, int] = {
        "kana" if kana * 10 > han + kana else "han": han + kana,
        "hangul": len(_HANGUL.findall(text)) // 2,
        "latin": len(_LATIN_WORD.findall(text)),
        "other": len(_OTHER_WORD.findall(text)),
    }
    best: Script = max(counts, key=lambda script: counts[script])
    return best if counts[best] else "none"
