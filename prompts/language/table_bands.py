"""Which range of figures do words such as "over $1,000,000 and below 30 million" or "1千万以上且1亿以下" mean?"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from prompts.language.table_plan import Band

_SCALES = {
    "thousand": 1e3, "thousands": 1e3, "million": 1e6, "millions": 1e6, "billion": 1e9, "billions": 1e9, "k": 1e3,
    "m": 1e6, "mn": 1e6, "bn": 1e9, "十": 1e1, "百": 1e2, "千": 1e3, "万": 1e4, "十万": 1e5, "百万": 1e6, "千万": 1e7,
    "亿": 1e8, "十亿": 1e9, "百亿": 1e10, "千亿": 1e11, "万亿": 1e12,
}  # fmt: skip
_FIGURE = re.compile(
    r"(?P<open>\(\s*)?(?P<sign>(?<!\d)[-−–]\s?)?(?P<mark>(?:US)?[$€£¥￥]\s*)?(?P<open2>\(\s*)?(?P<number>\d[\d,，]*(?:\.\d+)?)"
    r"(?P<close>\s*\))?\s*"
    r"(?:(?:in )?(?P<scale>thousands?|millions?|billions?|bn|mn|(?<=\d)[kM](?![A-Za-z])|"
    r"[十百千]?万亿?|[十百千]?亿|[十百千](?!分))(?![a-z]))?"
    r"\s*(?P<percent>%|percent)?(?:\s*(?:US )?(?:dollars|yuan|crowns|euros|元|美元|股))?"
)
_LOW = r"over|above|more than|greater than|higher than|larger than|exceed(?:s|ing)?|beyond|大于|高于|超过|多于"
_LOW_IN = r"at least|no less than|not less than|not below|from|≥|>=|不低于|不少于|至少|大于等于|大于或等于"
_HIGH = r"below|under|less than|lower than|smaller than|fewer than|小于|低于|少于|不足|不到|不满"
_HIGH_IN = r"at most|no more than|not more than|not over|up to|≤|<=|不超过|不高于|至多|小于等于|小于或等于"
_EQUAL = r"equal to|exactly|等于|=|为"
_END = r"\s*(?:the )?$"
# The words before a figure, the more telling first: "not less than" ends in "less than".
_BEFORE: tuple[tuple[str, str], ...] = (
    ("low_in", rf"(?:{_LOW_IN}){_END}"),
    ("high_in", rf"(?:{_HIGH_IN}){_END}"),
    ("low", rf"(?:{_LOW}|>){_END}"),
    ("high", rf"(?:{_HIGH}|<){_END}"),
    ("low_in", rf"(?:between){_END}"),
    ("equal", rf"(?:{_EQUAL}){_END}"),
)
# The words after it; "and below 30" speaks of the figure that follows.
_NO_FIGURE = r"(?!\s*(?:[$€£¥￥(−-]\s*)?\d)"
_AFTER: tuple[tuple[str, str], ...] = (
    ("high_in", rf"\s*(?:and|or) (?:below|under|less|lower|fewer|smaller){_NO_FIGURE}"),
    ("low_in", rf"\s*(?:and|or) (?:above|over|more|higher|greater|up|larger){_NO_FIGURE}"),
    ("high_in", r"\s*(?:[及和或](?:者)?\s*[-0-9.,]*\s*)?(?:元|美元)?\s*以下|\s*以内"),
    ("low_in", r"\s*(?:[及和或](?:者)?\s*[-0-9.,]*\s*)?(?:元|美元)?\s*以上"),
)
_TO = re.compile(r"\s*(?:to|and|–|—|-|~|～|至|到)\s*$")
_POSITIVE = re.compile(r"\bpositive\b|正数|大于零|为正")
_NEGATIVE = re.compile(r"\bnegative\b|负数|小于零|为负")
_ZERO = re.compile(r"\bzero\b|\bnone\b|零")

Side = Literal["low", "low_in", "high", "high_in", "equal", ""]


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure as written at `start`..`end`, with what its scale word makes of it."""

    text: str
    start: int
    end: int
    number: float


def figures_in(text: str) -> list[Figure]:
    """The figures of a text: "$(415,325) in thousands" is -415325000."""
    return list(_figures(text))


def _figures(text: str) -> Iterator[Figure]:
    for match in _FIGURE.finditer(text):
        number = float(re.sub(r"[,，]", "", match["number"]))
        number *= _SCALES.get((match["scale"] or "").lower(), 1.0)
        opened = match["open2"] or (match["open"] if match["close"] else None)
        negative = bool(match["sign"]) or bool(opened and match["close"])
        start = match.start() if opened or not match["open"] else match.start() + len(match["open"])
        end = match.end() if opened or not match["close"] else match.end("number")
        yield Figure(text[start:end].strip(), start, end, -number if negative else number)


def band_of(text: str, name: str = "") -> Band | None:
    """The range that a phrase means, or None where it holds no figure and no word for one."""
    low: tuple[float, bool] | None = None
    high: tuple[float, bool] | None = None
    found = figures_in(text)
    before = 0
    for figure in found:
        side = _side(text[before : figure.start], text[figure.end :])
        if not side and before and _TO.search(text[before : figure.start]):
            side = "high_in"  # "1 to 5", "between 1 and 5"
            low = (_as_scaled(found[0], figure), True)
        if side in {"low", "low_in"}:
            low = (figure.number, side == "low_in")
        elif side in {"high", "high_in"}:
            high = (figure.number, side == "high_in")
        elif side == "equal" or len(found) == 1:
            low = high = (figure.number, True)
        before = figure.end
    if low is None and high is None:
        return _by_word(text, name) if not found else None
    if low and high and low[0] > high[0]:
        return None  # "above 5 or below 3" is not one range
    return Band(
        name=name,
        low=low[0] if low else None,
        high=high[0] if high else None,
        low_in=bool(low and low[1]),
        high_in=bool(high and high[1]),
    )


def _as_scaled(first: Figure, last: Figure) -> float:
    """The first figure of "1 to 5 million", in millions as the last one."""
    scale = _FIGURE.match(last.text)
    bare = first.number < last.number and not re.search(r"[^\d\s.,$€£¥￥()-]", first.text)
    word = (scale["scale"] or "").lower() if scale else ""
    return first.number * _SCALES.get(word, 1.0) if bare else first.number


def _side(before: str, after: str) -> Side:
    """Which end of a range the words around a figure make it."""
    for side, pattern in _AFTER:
        if re.match(pattern, after):
            return side  # type: ignore[return-value]
    for side, pattern in _BEFORE:
        if re.search(pattern, before, re.I):
            return side  # type: ignore[return-value]
    return ""


def _by_word(text: str, name: str) -> Band | None:
    if _POSITIVE.search(text):
        return Band(name=name, low=0.0)
    if _NEGATIVE.search(text):
        return Band(name=name, high=0.0)
    return Band(name=name, low=0.0, high=0.0, low_in=True, high_in=True) if _ZERO.search(text) else None
