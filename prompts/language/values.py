"""Which dates and figures does a text hold, and what do they amount to? Raw strings stay as written."""

import re
from dataclasses import dataclass
from typing import Literal

ValueKind = Literal["date", "money", "percent", "measure", "number"]

_MONTH = (
    r"(?:January|February|March|April|May|June|July|August|September|October|November|December|"
    r"Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\.?"
)
_DATE = re.compile(
    rf"\b\d{{1,2}}(?:st|nd|rd|th)?\s+(?:of\s+)?{_MONTH},?\s+\d{{4}}\b|\b{_MONTH}\s+\d{{1,2}}(?:st|nd|rd|th)?,?\s+\d{{4}}\b|"
    rf"\b\d{{4}}-\d{{2}}-\d{{2}}\b|\b{_MONTH}\s+\d{{4}}\b|\b\d{{1,2}}\s+{_MONTH}\b|"
    r"\d{3,4}年(?:\d{1,2}月(?:\d{1,2}[日号])?)?|\d{1,2}月\d{1,2}[日号]|"
    r"(?<![\d.,/-])(?:1[0-9]{3}|20[0-9]{2})s?(?![\d]|[.,]\d|\s*(?:%|m\b|km\b|metres|crowns|mm\b|kg\b|tonnes|米|公里|元))|"
    r"\b\d{1,4}\s+(?:BC|AD|BCE|CE)\b"
)
_NUMBER_WORDS = {
    word: index
    for index, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
        "seventeen eighteen nineteen twenty".split()
    )
}
_SCALES = {
    "hundred": 1e2,
    "thousand": 1e3,
    "million": 1e6,
    "billion": 1e9,
    "万": 1e4,
    "亿": 1e8,
    "m": 1e6,
    "bn": 1e9,
    "k": 1e3,
}
_UNIT = (
    r"%|percent|per cent|‰|°[CF]|(?:km|cm|mm|µm|m)[²³2]?(?:/[sh])?|kg|mg/L|mg|g|tonnes?|tons?|litres?|liters?|"
    r"hectolitres?|ml|"
    r"metres?|meters?|kilometres?|kilometers?|miles?|feet|foot|ft|inches|yards?|acres?|hectares?|hours?|minutes?|seconds?|"
    r"days?|weeks?|months?|years?|bar|kW|MW|kWh|MWh|GWh|knots?|degrees?|tokens?|people|inhabitants|passengers|vehicles|"
    r"visitors|employees|staff|vessels|ships|pages|times|"
    r"米|公里|千米|厘米|毫米|平方公里|平方米|公斤|千克|克|吨|升|毫升|毫克|小时|分钟|秒|天|日|周|个月|年|人|名|位|艘|座|台|口|个|次|章|页|倍|岁|层|家|公顷|亩"
)
_CURRENCY = r"[$€£¥₹]|(?:US)?\$|USD|EUR|GBP|CNY|RMB"
_CURRENCY_AFTER = (
    r"crowns?|dollars?|euros?|pounds?|francs?|yen|yuan|marks?|rubles?|rupees?|元|美元|欧元|英镑|克朗|人民币|日元|港元"
)
_FIGURE = re.compile(
    rf"(?P<money>(?:{_CURRENCY})\s?)?(?P<number>(?<![A-Za-z0-9_.,])[-−]?\d{{1,3}}(?:[,  ]\d{{3}})+(?:\.\d+)?|"
    rf"(?<![A-Za-z0-9_.,])[-−]?\d+(?:\.\d+)?|"
    rf"\b(?:{'|'.join(_NUMBER_WORDS)})\b)(?P<scale>\s?(?:hundred|thousand|million|billion|bn|万|亿)\b|\s?[万亿])?"
    rf"(?:[\s-]?(?P<after>{_CURRENCY_AFTER})|[\s-]?(?P<unit>{_UNIT})(?![A-Za-z]))?",
    re.I,
)


@dataclass(frozen=True, slots=True)
class Value:
    """A date or figure as written at `start`..`end`; `number` is its amount (a year for dates) or None."""

    text: str
    start: int
    end: int
    kind: ValueKind
    number: float | None
    unit: str


def amount(text: str) -> float | None:
    """The number that a string such as "1,308,463", "3.1 million" or "七" stands for, or None."""
    match = _FIGURE.search(text)
    return _amount(match) if match else None


def _amount(match: re.Match[str]) -> float | None:
    raw = re.sub(r"[,  ]", "", match["number"]).replace("−", "-").lower()
    number = float(_NUMBER_WORDS[raw]) if raw in _NUMBER_WORDS else float(raw)
    scale = (match["scale"] or "").strip().lower()
    return number * _SCALES.get(scale, 1.0)


def values_in(text: str) -> list[Value]:
    """Dates and figures in order, without overlaps; dates win over numbers."""
    found: list[Value] = []
    for match in _DATE.finditer(text):
        year = re.search(r"\d{3,4}", match.group())
        found.append(
            Value(match.group(), match.start(), match.end(), "date", float(year.group()) if year else None, "")
        )
    taken = [(value.start, value.end) for value in found]
    for match in _FIGURE.finditer(text):
        if any(match.start() < end and start < match.end() for start, end in taken):
            continue
        unit = (match["unit"] or match["after"] or match["money"] or "").strip()
        found.append(Value(match.group().strip(), match.start(), match.end(), _kind(match, unit), _amount(match), unit))
    return sorted(found, key=lambda value: value.start)


def _kind(match: re.Match[str], unit: str) -> ValueKind:
    if match["money"] or match["after"]:
        return "money"
    if unit.lower() in {"%", "percent", "per cent", "‰"}:
        return "percent"
    return "measure" if unit else "number"
