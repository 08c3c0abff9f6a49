"""Typed values: numbers with their units, days, and yes or no, read from the words of a text.

A day is an ISO date of the precision that the text gives: "1938-06-06", "1938-06" or "1938".
"""

import re
from calendar import monthrange
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date

from prompts.schema import AttributeType
from prompts.text.amounts import MONTH, MONTH_OF, NUMBER_WORDS, Amount, amount_of, amounts_in
from prompts.text.words import fold
from storage.records import Span

_YES = frozenset({"yes", "true", "1", "是", "有", "对"})
_NO = frozenset({"no", "false", "0", "否", "无", "没有", "不是"})
# Units with their quantity and size; those of money and of what is counted stand in the schema.
_UNITS: dict[str, tuple[str, float]] = {
    name: (quantity, size)
    for quantity, sizes in {
        "length": {
            "mm millimetre millimeter 毫米": 0.001,
            "cm centimetre centimeter 厘米": 0.01,
            "m metre meter 米": 1.0,
            "km kilometre kilometer 公里 千米": 1000.0,
        },
        "mass": {"g gram 克": 0.001, "kg kilogram 千克 公斤": 1.0, "t tonne 吨": 1000.0},
        "time": {
            "s second 秒": 1.0,
            "min minute 分钟": 60.0,
            "h hour 小时": 3600.0,
            "day 天": 86400.0,
        },
        "area": {"m² m2 平方米": 1.0, "ha hectare 公顷": 1e4, "km² km2 平方公里": 1e6},
    }.items()
    for names, size in sizes.items()
    for name in names.split()
}
_DAY = re.compile(
    rf"(?<!\d)(?P<iso>\d{{4}})-(?P<iso_month>\d{{1,2}})(?:-(?P<iso_day>\d{{1,2}}))?(?!\d)"
    rf"|\b(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?(?P<month>{MONTH})\b\.?,?\s+(?P<year>\d{{4}})\b"
    rf"|\b(?P<us_month>{MONTH})\b\.?\s+(?:(?P<us_day>\d{{1,2}})(?:st|nd|rd|th)?,?\s+)?(?P<us_year>\d{{4}})\b"
    r"|(?P<zh>\d{4})年(?:(?P<zh_month>\d{1,2})月(?:(?P<zh_day>\d{1,2})[日号])?)?"
    r"|(?<![\d.,])(?P<alone>\d{4})(?![\d,]|\.\d)",
    re.IGNORECASE,
)


class Unfitting(ValueError):
    """Raised for a value that is not of its type; its text completes "left out, because …"."""


@dataclass(frozen=True, slots=True)
class TypedValue:
    """A value: of a number its size in `unit`, of a date its day, of a question yes or no."""

    number: float | None = None
    unit: str = ""
    day: str = ""
    yes: bool | None = None


UNTYPED = TypedValue()


def typed_value(text: str, attribute: AttributeType) -> TypedValue:
    """Read a value of an attribute. Raises Unfitting."""
    match attribute.type:
        case "number":
            return _number(text, attribute)
        case "date":
            days = [day for _, day in days_in(text)]
            if len(days) != 1:
                raise Unfitting(f"{text!r} is no date")
            return TypedValue(day=days[0])
        case "yes/no":
            return TypedValue(yes=_yes(text))
        case "text":
            return UNTYPED


def _number(text: str, attribute: AttributeType) -> TypedValue:
    amount = figure_of(text)
    if amount is None:
        raise Unfitting(f"{text!r} is no number")
    if not attribute.unit:
        return TypedValue(number=amount.number, unit=amount.unit)
    return TypedValue(number=amount.number * _size(amount.unit, attribute), unit=attribute.unit)


def figure_of(text: str) -> Amount | None:
    """Return the one figure of a text with the word after it ("42 km long" is 42 km)."""
    if whole := amount_of(text):
        return whole
    first, *rest = text.lower().split() or [""]
    if first in NUMBER_WORDS:
        return Amount(0, len(text), float(NUMBER_WORDS[first]), unit=" ".join(rest[:1]))
    found = amounts_in(text)
    if len(found) != 1:
        return None
    (only,) = found
    words = text[only.end :].split()
    return (amount_of(f"{text[only.start : only.end]} {words[0]}") if words else None) or only


def _size(written: str, attribute: AttributeType) -> float:
    """Return the size of a written unit in the attribute's. Raises Unfitting for another one."""
    name, wanted = _unit_name(written), _unit_name(attribute.unit)
    if name in {"", wanted}:
        return 1.0
    further = {_unit_name(unit): size for unit, size in attribute.units.items()}
    if name in further:
        return further[name]
    one, other = _UNITS.get(name), _UNITS.get(wanted)
    if one is None or other is None or one[0] != other[0]:
        raise Unfitting(f"{written!r} is no unit of {attribute.unit}")
    return one[1] / other[1]


def _unit_name(unit: str) -> str:
    """Return the form under which units are compared: in lower case, without a plural's s."""
    name = unit.strip().strip(".").lower()
    return name.removesuffix("s") if len(name) > 3 and name.isascii() else name


def _yes(text: str) -> bool:
    word = fold(text.strip(" .。!"))
    if word not in _YES | _NO:
        raise Unfitting(f"{text!r} is neither yes nor no")
    return word in _YES


# --- days -----------------------------------------------------------------------------------------


def days_in(text: str) -> Iterator[tuple[Span, str]]:
    """Yield the place and the ISO form of each date in a text; what is no day is passed over."""
    for match in _DAY.finditer(text):
        one = match.groupdict()
        year = next(filter(None, (one[key] for key in ("iso", "year", "us_year", "zh", "alone"))))
        month = next(
            filter(None, (one[key] for key in ("iso_month", "month", "us_month", "zh_month"))), ""
        )
        day = next(filter(None, (one[key] for key in ("iso_day", "day", "us_day", "zh_day"))), "")
        number = MONTH_OF.get(month.lower().rstrip("."), 0) or int(month or 0)
        try:
            date(int(year), number or 1, int(day or 1))
        except ValueError:
            continue
        parts = [year, *([f"{number:02}"] if number else []), *([f"{int(day):02}"] if day else [])]
        yield match.span(), "-".join(parts)


def day_of(text: str) -> str:
    """Return the first date in a text in ISO form, empty where there is none."""
    return next((day for _, day in days_in(text)), "")


def first_day(day: str) -> str:
    """Return the first day of a year, a month or a day."""
    return f"{day}-01-01"[:10] if len(day) == 4 else f"{day}-01"[:10]


def last_day(day: str) -> str:
    """Return the last day of a year, a month or a day."""
    if len(day) == 4:
        return f"{day}-12-31"
    year, month = map(int, day.split("-")[:2])
    return day if len(day) == 10 else f"{day}-{monthrange(year, month)[1]:02}"


def decimal_year(day: str) -> float:
    """Return a day as a number that grows with time, and whose whole part is the year."""
    year, month, of_month = map(int, first_day(day).split("-"))
    return year + (month - 1) / 12 + (of_month - 1) / 372  # 31 days of each of 12 months


def years_between(one: str, other: str) -> int:
    """Return the whole years between two days; of a bare year only the number counts."""
    earlier, later = sorted((one, other))
    years = int(later[:4]) - int(earlier[:4])
    is_short = len(earlier) > 4 and len(later) > 4 and later[4:] < earlier[4:]
    return years - is_short


# --- places ---------------------------------------------------------------------------------------


def place_of(text: str, written: str, value: TypedValue) -> Span | None:
    """Return where a text states the figure or the day that a model has written in another form."""
    if value.day:
        days = ((span, day) for span, day in days_in(text))
        return next((span for span, day in days if day.startswith(value.day)), None)
    figure = figure_of(written) if value.number is not None else None
    if figure is None:
        return None
    amounts = (amount for amount in amounts_in(text) if amount.number == figure.number)
    return next(((amount.start, amount.end) for amount in amounts), None)
