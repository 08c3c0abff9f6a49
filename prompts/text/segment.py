"""The quotable units of a text, and its script.

Regular expressions only: the same text always gives the same spans. Headings, table rows, list
items and blank lines end a sentence; a line that was merely wrapped does not.
"""

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from itertools import pairwise
from typing import Literal, NamedTuple

from prompts.text.amounts import MONTH_OF, MONTHS
from prompts.text.words import known_languages, words_in

UnitKind = Literal["heading", "row", "item", "code", "plain"]
Script = Literal["han", "kana", "hangul", "latin", "other", "none"]


class Unit(NamedTuple):
    """A sentence, heading, table row or line of code, `text[start:end]`.

    `heading` is the heading above it, `header` the span of the row that names its table's columns.
    """

    start: int
    end: int
    kind: UnitKind
    heading: str = ""
    header: tuple[int, int] | None = None


def heading_words(line: str) -> str:
    """Return the words of a Markdown heading without its signs.

    Only a blank lets signs close a heading: `# C#` says "C#", `## Fees ##` says "Fees".
    """
    words = line.strip().lstrip("#").strip()
    without = words.rstrip("#")
    return without.rstrip() or words if without.endswith((" ", "\t")) else words


_RULE = re.compile(r"[\s|:+=_*-]+")
_FENCE = re.compile(r"\s*(?:```|~~~)")


@lru_cache(maxsize=4_096)
def quotable_units(text: str) -> tuple[Unit, ...]:
    """Return the units that say something: no headings, rules, fences and header rows."""
    quotable: list[Unit] = []
    heading, header = "", None
    above: Unit | None = None
    for unit in units(text):
        line = text[unit.start : unit.end]
        if unit.kind == "heading":
            heading, header = heading_words(line).strip("*_ "), None
        elif unit.kind == "row" and _RULE.fullmatch(line):
            # The row above the rule names the columns.
            if above and above.kind == "row" and quotable:
                quotable.pop()
                header = above.start, above.end
        elif any(map(str.isalnum, line)) and not _FENCE.match(line):
            header = header if unit.kind == "row" else None
            quotable.append(unit._replace(heading=heading, header=header))
        above = unit
    return tuple(quotable)


# --- lines ---------------------------------------------------------------------------------------

_LINE = re.compile(
    r"""[ \t\u3000]*(?:
      (?P<fence>```|~~~)
    | (?P<heading>\#{1,6}[ \t]+\S)
    | (?P<row>\||[-=*_]{3,}[ \t]*$)
    | (?P<item>(?:[-*+•▪◦‣●]|\(?\d{1,3}[.)]|\(?[a-zA-Z]\))[ \t]+(?=\S)|\d{1,3}[、．]
      |[（(]?[一二三四五六七八九十]{1,3}[）)、])
    | (?P<quote>>)
    )""",
    re.VERBOSE,
)
_TRIPLE = re.compile(r" -\[[^\]\n]{0,1000}\]-> ")
_SHORTEST, _UNWRAPPED = 30, 200  # Lines are wrapped between these lengths
_SENTENCE_ENDS = ".!?:;。！？：；|"
_BULLETS = "-*+•·▪◦‣●"


def units(text: str) -> list[Unit]:
    """Split a text into sentences, with the kind of their lines; all non-space text is kept."""
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
    """Return the spans of the sentences, in order and without overlaps."""
    return [(unit.start, unit.end) for unit in units(text)]


def _blocks(text: str) -> Iterator[tuple[int, int, UnitKind, int]]:
    """Yield runs of wrapped lines: (start, end, kind, start of the words after a list marker)."""
    opened: tuple[int, UnitKind, int] | None = None
    previous, fenced, after_blank = "", False, False
    position = 0
    # Only newlines end a line here, unlike in `splitlines`.
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
        if line[:1] in " \t" and after_blank and previous == "item" and kind == "plain":
            kind = "item"
        above = opened is not None and not after_blank and opened[1] in ("plain", "item")
        if not (above and kind == "plain" and _reads_on(text, start, line)):
            if opened:
                yield opened[0], start, opened[1], opened[2]
            opened = (start, kind, start + body)
        previous, after_blank = kind, False
    if opened:
        yield opened[0], len(text), opened[1], opened[2]


def _line_kind(line: str, fenced: bool) -> tuple[UnitKind | Literal["fence"] | None, int]:
    """Return the kind of a line (None: blank) and where its words begin."""
    if line.isspace():
        return None, 0
    match = _LINE.match(line)
    name = match.lastgroup if match else None
    if fenced or name == "fence":
        return ("fence" if name == "fence" else "code"), 0
    if name == "heading":
        return "heading", 0
    if name == "row" or " | " in line or (" -[" in line and _TRIPLE.search(line)):
        return "row", 0
    return ("item", match.end()) if match and name == "item" else ("plain", 0)


def _reads_on(text: str, start: int, line: str) -> bool:
    """Whether the newline before `line` only wraps: its first word had no room above."""
    before = text.rfind("\n", 0, start - 1) + 1
    above = start - 1 - before
    if above == 1:
        return text[before] in _BULLETS
    small = line.lstrip()[0].islower()
    if above < _SHORTEST:
        return small and " " in text[before : start - 1].strip()
    if small and text[start - 2] not in _SENTENCE_ENDS:
        return True
    further = text.rfind("\n", 0, before - 1) + 1 if before else 0
    width = max(len(line) - 1, min(before - 1 - further, _UNWRAPPED) if before else 0)
    word = line.split(None, 1)[0]
    room = 1 if word[0] > "\u3000" else len(word) + 1
    return above <= _UNWRAPPED and above + room > width * 0.85


# --- sentences -----------------------------------------------------------------------------------

_CLOSERS = r"[\"'”’」』）)\]】》〉*_]*"
_STOP = re.compile(
    rf"(?P<wide>(?:[。！？；｡।॥؟۔]|……)+[。！？；…!?]*{_CLOSERS})"
    rf"|(?P<loud>(?<![!?])[!?]++{_CLOSERS}+)(?=\s|$|[\u3040-\u30ff\u3400-\u9fff])"
    rf"|(?P<dot>(?:(?<!\.)\.++|…)(?:{_CLOSERS}+|“))(?=\s|$)"
    r"|(?<=[\u3400-\u9fff])(?P<mixed>\.)(?=[\u3400-\u9fff])"
)
_NEXT = re.compile(r"\s*[\"'“‘„¿¡(\[«「『（]*(\S?)")
_NEXT_WORD = re.compile(r"\s*[\"'“‘(\[]*([^\W\d_]*)")
_CODE = re.compile(r"`[^`\n]+`")
_INITIAL = re.compile(r"\s*[A-ZÀ-ÞА-Я]\.")
_LAST_WORD = re.compile(r"(?:[^\W\d_]\.){0,12}[^\W\d_]{1,24}$")
_ORDINAL = re.compile(r"(?<![\d.])\d{1,2}$")
_ALWAYS = words_in("english", "always_go_on")
_SHORT_MONTHS = MONTH_OF.keys() - MONTHS
_BEFORE_FIGURES = words_in("english", "before_figures") | _SHORT_MONTHS  # "No. 5", "Jan. 3"
_SOMETIMES = words_in("english", "sometimes_end") | _SHORT_MONTHS
_STARTERS = words_in("english", "starters")


def _stops(text: str, start: int, end: int) -> Iterator[int]:
    code = [span.span() for span in _CODE.finditer(text, start, end)]
    for match in _STOP.finditer(text, start, end):
        if any(first < match.start() < last for first, last in code):
            continue
        certain = match.lastgroup in ("wide", "mixed") or match.end() == end
        if certain or _ends(text, match, start, end):
            yield match.end()


def _ends(text: str, match: re.Match[str], start: int, end: int) -> bool:
    """Whether `!`, `?`, `.` or an ellipsis ends the sentence, by the words around it."""
    follows = _NEXT.match(text, match.end(), end)
    first = follows.group(1) if follows else ""
    if first.islower():
        return False
    if match.lastgroup == "loud" or match.group().startswith(("..", "…")):
        return True
    after = _NEXT_WORD.match(text, match.end(), end)
    following = after.group(1).lower() if after else ""
    word = _LAST_WORD.search(text, max(start, match.start() - 24), match.start())
    if not word:
        ordinal = _ORDINAL.search(text, start, match.start())
        return ordinal is None or following not in _listed("after_ordinals")  # "3. März"
    if len(word.group()) == 1 and _INITIAL.match(text, match.end(), end):
        return False
    return _ends_after(word.group(), first, following)


@cache
def _listed(key: str) -> frozenset[str]:
    """Return the words of one list in all languages but English."""
    lists = (known.get(key, "") for known in known_languages().values())
    return frozenset().union(*(words.split() for words in lists))


def _ends_after(word: str, first: str, following: str) -> bool:
    low = word.lower()
    if low in _ALWAYS or low in _listed("abbreviations"):
        return False
    if low in _BEFORE_FIGURES and (first.isdigit() or first == "#"):
        return False
    initials = (len(word) == 1 and word.isupper()) or "." in word
    if initials or low in _SOMETIMES:
        return following in _STARTERS or (bool(first) and is_cjk(first))
    return True


# --- scripts -------------------------------------------------------------------------------------

_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_KANA = re.compile(r"[\u3041-\u30ff\uff66-\uff9f]")
_HANGUL = re.compile(r"[\u1100-\u11ff\uac00-\ud7af]")
_LATIN_WORD = re.compile(r"[A-Za-z\u00c0-\u024f]+")
_OTHER_WORD = re.compile(r"[\u0370-\u0dff\u0e00-\u10ff]+")
_SAMPLE = 20_000


def is_cjk(text: str) -> bool:
    """Whether a text holds Han characters, kana or Hangul."""
    return any(pattern.search(text) for pattern in (_HAN, _KANA, _HANGUL))


def script_of(text: str) -> Script:
    """Return the dominant script: Han characters and kana are weighed against other *words*.

    A text is Japanese from a tenth of kana on. Of a long text three samples are read.
    """
    if len(text) > 3 * _SAMPLE:
        middle = len(text) // 2
        text = f"{text[:_SAMPLE]} {text[middle : middle + _SAMPLE]} {text[-_SAMPLE:]}"
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
