"""From when until when does something hold, by the dates that a sentence names?

Dates are written as far as the text tells them: 2024-05-31, 2024-05 or 2024. A date without a year is none.
"""

import re
from dataclasses import dataclass

from prompts.language.values import Value, values_in

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_YEAR = re.compile(r"\d{4}")
_ISO = re.compile(r"(\d{4})-(\d{2})-(\d{2})")
_HAN = re.compile(r"(\d{3,4})年(?:(\d{1,2})月(?:(\d{1,2})[日号])?)?")
_MONTH = re.compile(r"[A-Za-z]{3,}")
_DAY = re.compile(r"(?<!\d)\d{1,2}(?!\d)")
_OTHER_ERA = re.compile(r"\b(?:BC|AD|BCE|CE)\b")

_BREAK = re.compile(r"[,;:，；：、]|\b(?:and|but|or|which|who|that)\b", re.I)
_TO = re.compile(r"\s*(?:to|until|till|through|–|—|-|至|到|~)\s*", re.I)
_AND = re.compile(r"\s*and\s*", re.I)
_BETWEEN = re.compile(r"\bbetween\s*$", re.I)
_FROM_BEFORE = re.compile(r"(?:\b(?:since|from|after|effective|starting|as of)|自从?|从)\s*$", re.I)
_FROM_AFTER = re.compile(r"\s*(?:起|以来|之后|以后)")
_UNTIL_BEFORE = re.compile(r"(?:\b(?:until|till|before|by|up to|through)|截至|截止|直到|直至)\s*$", re.I)
_UNTIL_AFTER = re.compile(r"\s*(?:为止|之前|以前)")


@dataclass(frozen=True, slots=True)
class Period:
    """The first and the last day; empty where the text does not say."""

    since: str = ""
    until: str = ""

    def __bool__(self) -> bool:
        return bool(self.since or self.until)


@dataclass(frozen=True, slots=True)
class _Dated:
    start: int
    end: int
    period: Period


def period_at(text: str, at: int) -> Period:
    """The period of the verb at the offset `at`: that which follows it in its clause, else the nearest; empty where
    `text` names none."""
    dated = _joined(text, [one for value in values_in(text) if (one := _read(value)) is not None])
    following = next((one for one in dated if one.start > at), None)
    if following and not _BREAK.search(text, at, following.start):
        return following.period
    return min(dated, key=lambda one: max(one.start - at, at - one.end)).period if dated else Period()


def _joined(text: str, dates: list[_Dated]) -> list[_Dated]:
    """Two dates with a "to" between them as one period; "since" and "until" leave the other end open."""
    found: list[_Dated] = []
    at = 0
    while at < len(dates):
        one = dates[at]
        before = text[: one.start]
        gap = text[one.end : dates[at + 1].start] if at + 1 < len(dates) else ""
        if _TO.fullmatch(gap) or (_AND.fullmatch(gap) and _BETWEEN.search(before)):
            other = dates[at + 1]
            found.append(_Dated(one.start, other.end, Period(one.period.since, other.period.until)))
            at += 2
            continue
        period = one.period
        if _FROM_BEFORE.search(before) or _FROM_AFTER.match(text, one.end):
            period = Period(since=period.since)
        elif _UNTIL_BEFORE.search(before) or _UNTIL_AFTER.match(text, one.end):
            period = Period(until=period.until)
        found.append(_Dated(one.start, one.end, period))
        at += 1
    return found


def _read(value: Value) -> _Dated | None:
    """A date with a year, as the period that it spans."""
    if value.kind != "date" or _OTHER_ERA.search(value.text):
        return None
    day = _written(value.text)
    if not day:
        return None
    decade = value.text.endswith("s") and day.endswith("0")
    return _Dated(value.start, value.end, Period(day, f"{day[:3]}9" if decade else day))


def _written(text: str) -> str:
    """A date as YYYY[-MM[-DD]], or nothing."""
    if match := _HAN.match(text) or _ISO.match(text):
        year, month, day = match.groups()
        return "-".join([year, *(f"{int(part):02d}" for part in (month, day) if part)])
    years, months = _YEAR.findall(text), [word[:3].lower() for word in _MONTH.findall(text)]
    if not years:
        return ""
    numbers = [_MONTHS.index(month) + 1 for month in months if month in _MONTHS]
    if not numbers:
        return str(years[0])
    days = _DAY.findall(text)
    return "-".join([years[0], f"{numbers[0]:02d}", *(f"{int(day):02d}" for day in days[:1])])
