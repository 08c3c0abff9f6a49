"""Figures, amounts and dates of texts ("$1,308", "(0.63)", "3.5 million", "1.2万", "March 1990").

The one lexicon of months, number words and scales.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

MONTHS = tuple(
    "january february march april may june july august september october november december".split()
)
# The number of each month by its name and abbreviations.
MONTH_OF = {name: place for place, month in enumerate(MONTHS, 1) for name in (month, month[:3])} | {
    "sept": 9
}
MONTH = rf"(?:{'|'.join(sorted(MONTH_OF, key=len, reverse=True))})"
WEEKDAYS = tuple("monday tuesday wednesday thursday friday saturday sunday".split())
NUMBER_WORDS = {
    word: number
    for number, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
        "fifteen sixteen seventeen eighteen nineteen twenty".split()
    )
}
SCALES = {
    "k": 1e3,
    "hundred": 1e2,
    "thousand": 1e3,
    "m": 1e6,
    "mm": 1e6,
    "mn": 1e6,
    "million": 1e6,
    "bn": 1e9,
    "billion": 1e9,
    "trillion": 1e12,
    "百": 1e2,
    "千": 1e3,
    "万": 1e4,
    "十万": 1e5,
    "百万": 1e6,
    "千万": 1e7,
    "亿": 1e8,
    "十亿": 1e9,
    "百亿": 1e10,
    "千亿": 1e11,
    "万亿": 1e12,
}
_MONEY = r"(?:US|HK|[CA])?[$€£¥￥]|(?:USD|EUR|GBP|CNY|RMB)\b"
_SCALE = (
    r"(?:thousand|million|billion|trillion|mm|mn|bn)s?\b|(?<=\d)(?-i:[kM])(?![A-Za-z])"
    r"|[十百千]?万亿?|[十百千]?亿|[百千](?!分)"
)
# "1,308.50", "412.5", ".5"; as a whole cell also the continental "1.308,50" and "412,5".
_DIGITS = r"\d{1,3}(?:[,，]\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+"
_EURO = r"\d{1,3}(?:\.\d{3})+,\d{1,2}|\d+,\d{1,2}"
_ROOM = r"\s{{0,40}}+"
_FIGURE = (
    rf"(?P<sign>[-−－+–]\s?)?(?P<open>[(（]{_ROOM})?(?P<money>{_MONEY})?{_ROOM}(?P<inner>[(（]{_ROOM})?(?P<minus>[-−－–])?{_ROOM}"
    rf"(?P<digits>{{digits}})\s?(?P<scale>{_SCALE})?(?P<percent>\s?(?:%|％|‰|percent\b|个?百分点))?"
)
_UNIT = (
    r"(?P<unit>\s?(?:[A-Za-z°µ][A-Za-z²³°/]{0,14}\.?|[\u4e00-\u9fff]{1,4}(?:/[\u4e00-\u9fff])?))?"
)
_WHOLE = re.compile(
    _FIGURE.format(digits=f"{_EURO}(?![\\d,.])|{_DIGITS}")
    + _UNIT
    + r"(?P<close>\s*[)）](?:\s?[%％])?)?",
    re.I,
)
_INSIDE = re.compile(
    r"(?<![A-Za-z0-9_.,])" + _FIGURE.format(digits=_DIGITS) + r"(?P<close>\s*[)）])?(?![\d])"
)
_NOTE = re.compile(
    r"\s{0,40}+(?:[(（](?:注|[a-z]|\d)[^()（）]{0,8}[)）]|\*{1,40}+|[†‡]|\[\d{1,9}\])\s{0,40}+$",
    re.I,
)
_LONGEST = 40
_STATED = re.compile(
    r"\b(?:in|of|US\$|\$)\s*+(?:US\s?)?(?:dollars|\$)?\s*+(?P<en>thousand|million|billion)s?\b|"
    r"\((?P<word>thousand|million|billion)s?\b"
    r"|\(?\$?0?00[’']s\b(?P<ks>)|(?:单位\s*[：:]|人民币|[（(])\s*(?:人民币)?(?P<zh>百万|千万|[千万亿])(?=[元人吨股户辆台件次箱])"
    r"|_(?P<suffix>thousands?|millions?|billions?)\b",
    re.I,
)


@dataclass(frozen=True, slots=True)
class Amount:
    """A figure `text[start:end]`.

    `number` is in full units, `scale` the factor of its own word ("million": 1e6), `places` the
    number of its decimals.
    """

    start: int
    end: int
    number: float
    scale: float = 1.0
    unit: str = ""
    places: int = 0


@lru_cache(maxsize=100_000)
def amount_of(text: str) -> Amount | None:
    """Read a whole cell as a figure with its unit ("412.5 m", "450人"); ignore a note after it."""
    bare = text.strip()
    if not bare or len(bare) > _LONGEST or not any(sign.isdigit() for sign in bare):
        return None
    # A closing bracket may stand in the next cell.
    whole = bare + ")" if bare.count("(") > bare.count(")") else bare
    match = _WHOLE.fullmatch(whole)
    if match is None and (note := _NOTE.search(bare)) and note.start():
        bare = bare[: note.start()]
        match = _WHOLE.fullmatch(bare)
    if match is None or bool(match["open"] or match["inner"]) != bool(match["close"]):
        return None
    start = len(text) - len(text.lstrip())
    return _amount(match, start, start + len(bare))


def amounts_in(text: str) -> list[Amount]:
    """Return the figures in running text, in order, without their units."""
    return [
        _amount(match, match.start(), match.start() + len(match.group().rstrip()))
        for match in _INSIDE.finditer(text)
    ]


@lru_cache(maxsize=20_000)
def scale_stated(label: str) -> float:
    """Return the scale that a heading states ("in thousands", "单位：百万元"), else 1."""
    match = _STATED.search(label)
    if match is None:
        return 1.0
    word = match["en"] or match["word"] or match["suffix"] or match["zh"] or "thousand"
    return SCALES[word.lower().rstrip("s")]


def _amount(match: re.Match[str], start: int, end: int) -> Amount:
    digits = match["digits"].replace("，", ",")
    continental = re.fullmatch(_EURO, digits) is not None
    digits = digits.replace(".", "").replace(",", ".") if continental else digits.replace(",", "")
    scale = SCALES.get((match["scale"] or "").lower().removesuffix("s"), 1.0)
    number = float(digits) * scale
    bracketed = (match["open"] or match["inner"]) and match["close"]
    if bracketed or match["minus"] or (match["sign"] or "").strip() in set("-−－–"):
        number = -number
    unit = match["money"] or match.groupdict().get("unit") or ""
    unit = "%" if match["percent"] else unit.strip()
    return Amount(start, end, number, scale, unit, places=len(digits.partition(".")[2]))


# --- figures of sentences -------------------------------------------------------------------------

_DATE = re.compile(
    rf"\b\d{{1,2}}(?:st|nd|rd|th)?\s+(?:of\s+)?{MONTH}\b\.?(?:,?\s+\d{{4}}\b)?|"
    rf"\b{MONTH}\b\.?\s+(?:\d{{1,2}}(?:st|nd|rd|th)?,?\s+)?\d{{4}}\b|"
    r"\b\d{4}-\d{2}-\d{2}\b|\d{3,4}年(?:\d{1,2}月(?:\d{1,2}[日号])?)?|\d{1,2}月\d{1,2}[日号]",
    re.I,
)


def numbers_in(text: str) -> list[float]:
    """Return the numbers that the figures and number words of a text mean; of a date its year."""
    years = [
        float(year) for date in _DATE.findall(text) for year in re.findall(r"\d{3,4}", date)[:1]
    ]
    rest = _DATE.sub(" ", text).replace("–", " ")  # "from … to", not a minus
    words = [
        float(NUMBER_WORDS[word])
        for word in re.findall(r"[a-z]+", rest.lower())
        if word in NUMBER_WORDS
    ]
    return [*years, *(amount.number for amount in amounts_in(rest)), *words]


# --- figures to compare ---------------------------------------------------------------------------

_ANY_FIGURE = re.compile(
    r"(?<![A-Za-z\d_.,])(?<![A-Za-z][-–])(\d{1,3}(?:[,.\u00a0\u202f]\d{3})+(?!\d)(?:[.,]\d+)?|\d+(?:[.,]\d+)?)"
    r"(?!\d|(?:st|nd|rd|th)\b)(?:[\s-]?(hundred|thousand|million|billion|万|亿|m|bn|k)(?![A-Za-z]))?(s\b)?",
    re.I,
)
_MONTH_NAME = re.compile(rf"\b(?=[JFMASOND])(?i:{MONTH})\b\.?(?=(,? \d)?)")
_DAY_BEFORE = re.compile(r"\d(?:st|nd|rd|th)? (?:of )?$")


class Figure(NamedTuple):
    """The readings of a figure, each with half of its last digit.

    "1.200" is 1.2 or 1200, "3.1 million" is 3.1 too.
    """

    amounts: tuple[tuple[float, float], ...]
    decade: bool

    def stands_in(self, values: Iterable[float]) -> bool:
        """Whether one of the values equals it as precisely as it is written.

        14 equals 13.7; the 1990s equal 1993.
        """
        if self.decade:
            return any(
                value // 10 == amount // 10 for amount, _ in self.amounts for value in values
            )
        return any(abs(value - amount) <= half for amount, half in self.amounts for value in values)


@lru_cache(maxsize=1024)
def figures_in(text: str) -> tuple[Figure, ...]:
    """Return the figures written in digits, and the months of dates (1 to 12), but no ordinals."""
    figures = []
    for match in _ANY_FIGURE.finditer(_months_numbered(text)):
        raw = re.sub(r"[\u00a0\u202f]", "", match[1])
        readings = {
            raw.replace(",", ""),
            raw.replace(".", "").replace(",", "."),
            raw.replace(",", "."),
        }
        # 30,000 is rounded, the year 1800 is not.
        zeros = len(raw) - len(raw.rstrip("0,")) - 1 if "," in raw else 0
        amounts = []
        for scale in {1.0, SCALES[match[2].lower()] if match[2] else 1.0}:
            for reading in readings:
                if reading.count(".") < 2:
                    unit = 10.0 ** (
                        -len(reading.partition(".")[2]) if "." in reading else max(zeros, 0)
                    )
                    amounts.append((float(reading) * scale, 0.5 * unit * scale))
        figures.append(Figure(tuple(amounts), bool(match[3])))
    return tuple(figures)


def without_figures(text: str) -> str:
    """Remove from a text what `figures_in` reads."""
    return _ANY_FIGURE.sub(" ", _months_numbered(text))


def _months_numbered(text: str) -> str:
    """Write the months of dates as figures: "12 March 1990" holds what "1990-03-12" does."""

    def numbered(match: re.Match[str]) -> str:
        of_date = match[1] or _DAY_BEFORE.search(text, max(0, match.start() - 8), match.start())
        return str(MONTH_OF[match[0].lower().rstrip(".")]) if of_date else match[0]

    return _MONTH_NAME.sub(numbered, text)
