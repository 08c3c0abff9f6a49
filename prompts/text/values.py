"""Dates and figures of a text, and what they amount to; raw strings stay as written."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple

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
NUMBER_WORDS = {
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
    rf"\b(?:{'|'.join(NUMBER_WORDS)})\b)(?P<scale>\s?(?:hundred|thousand|million|billion|bn|万|亿)\b|\s?[万亿])?"
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
    number = float(NUMBER_WORDS[raw]) if raw in NUMBER_WORDS else float(raw)
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


# --- figures to compare ----------------------------------------------------------------------------------------

_ANY_FIGURE = re.compile(
    r"(?<![A-Za-z\d_.,])(?<![A-Za-z][-–])(\d{1,3}(?:[,.\u00a0\u202f]\d{3})+(?!\d)(?:[.,]\d+)?|\d+(?:[.,]\d+)?)"
    rf"(?!\d|(?:st|nd|rd|th)\b)(?:[\s-]?({'|'.join(_SCALES)})(?![A-Za-z]))?(s\b)?",
    re.I,
)
_MONTH_NAME = re.compile(rf"\b(?=[JFMASOND]){_MONTH}(?=(,? \d)?)")
_DAY_BEFORE = re.compile(r"\d(?:st|nd|rd|th)? (?:of )?$")
_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()


class Figure(NamedTuple):
    """What a figure may amount to, each with half of its last digit: "1.200" is either, "3.1 million" is 3.1 too."""

    amounts: tuple[tuple[float, float], ...]
    decade: bool

    def stands_in(self, values: Iterable[float]) -> bool:
        """Whether it is among others, to the precision in which it is written: 14 for 13.7, the 1990s for 1993."""
        if self.decade:
            return any(value // 10 == amount // 10 for amount, _ in self.amounts for value in values)
        return any(abs(value - amount) <= half for amount, half in self.amounts for value in values)


@lru_cache(maxsize=1024)
def figures_in(text: str) -> tuple[Figure, ...]:
    """The figures of a text that are written in digits, and the months of its dates (1 to 12); no ordinals."""
    found = []
    for match in _ANY_FIGURE.finditer(_months_numbered(text)):
        raw = re.sub(r"[\u00a0\u202f]", "", match[1])
        readings = {raw.replace(",", ""), raw.replace(".", "").replace(",", "."), raw.replace(",", ".")}
        zeros = len(raw) - len(raw.rstrip("0,")) - 1 if "," in raw else 0  # 30,000 is rounded, the year 1800 is not
        amounts = []
        for scale in {1.0, _SCALES[match[2].lower()] if match[2] else 1.0}:
            for reading in readings:
                if reading.count(".") < 2:
                    unit = 10.0 ** (-len(reading.partition(".")[2]) if "." in reading else max(zeros, 0))
                    amounts.append((float(reading) * scale, 0.5 * unit * scale))
        found.append(Figure(tuple(amounts), bool(match[3])))
    return tuple(found)


def without_figures(text: str) -> str:
    """The text without what `figures_in` reads, for those who count words."""
    return _ANY_FIGURE.sub(" ", _months_numbered(text))


def _months_numbered(text: str) -> str:
    """The months of dates as figures, so that "12 March 1990" and "1990-03-12" hold the same."""

    def numbered(match: re.Match[str]) -> str:
        of_date = match[1] or _DAY_BEFORE.search(text, max(0, match.start() - 8), match.start())
        return str(1 + _MONTHS.index(match[0][:3].lower())) if of_date else match[0]

    return _MONTH_NAME.sub(numbered, text)
