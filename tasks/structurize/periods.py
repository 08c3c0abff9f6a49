"""Of which day or time is a figure: what does "March 31, 2024", "Three months ended …", "本期发生额" or "2023" say?

A day is `2024-03-31`, a quarter `2024-Q1`, a year `2023`, another time `2023-10-01/2024-06-30` (ISO 8601). What is
relative ("期初余额", "prior year") counts from the document's own period.
"""

import datetime
import re
from dataclasses import dataclass
from functools import lru_cache

_MONTHS = {name: number for number, name in enumerate(
    ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"), 1
)}  # fmt: skip
_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|"
    r"aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
_DAY_EN = re.compile(rf"\b({_MONTH})\.?\s*(\d{{1,2}})\b(?:\s*,?\s*((?:19|20)\d\d)\b)?", re.I)
_DAY_US = re.compile(r"\b(\d{1,2})/(\d{1,2})/((?:19|20)?\d\d)\b")
_DAY_ISO = re.compile(r"\b((?:19|20)\d\d)-(\d\d)-(\d\d)\b")
_DAY_ZH = re.compile(r"((?:19|20)\d\d)\s*年\s*(\d{1,2})\s*月\s*(\d{1,2})\s*日")
_SPAN_ZH = re.compile(r"((?:19|20)\d\d)\s*年\s*(\d{1,2})\s*月?\s*[-—–－~至]+\s*(\d{1,2})\s*月")
_QUARTER_ZH = re.compile(
    r"((?:19|20)\d\d)\s*年?\s*(?:度)?\s*(?:第?([一二三四1-4])\s*季度?|(半年度?|上半年)|(前三季度))"
)
_QUARTER_EN = re.compile(
    r"\bQ([1-4])\s*(?:of\s*)?((?:19|20)\d\d)|\b((?:19|20)\d\d)[\s-]*Q([1-4])|"
    r"\b(first|second|third|fourth) quarter of ((?:19|20)\d\d)", re.I,
)  # fmt: skip
_YEAR = re.compile(r"(?<![\d,.$#/-])((?:19|20)\d\d)(?![\d,]|\.\d)")
_LASTS = re.compile(
    r"\b(three|six|nine|twelve|3|6|9|12)[\s-]+months?\b|\b(quarter(?:ly period)?)s?\b|"
    r"\b((?:fiscal )?years?)\s+(?:then )?end", re.I
)  # fmt: skip
_NUMBERS = {"three": 3, "3": 3, "six": 6, "6": 6, "nine": 9, "9": 9, "twelve": 12, "12": 12}
_ORDER = {"一": 1, "二": 2, "三": 3, "四": 4, "first": 1, "second": 2, "third": 3, "fourth": 4}
_BEFORE_ZH = re.compile(r"上年同期|上期|上年数|去年同期|上年发生|同期数")
_END_ZH = re.compile(r"期末|年末|本报告期末|本期末")
_START_ZH = re.compile(r"期初|年初|上年度?期?末|上年度期末|上期期?末|上一?年度?末")
_NOW_ZH = re.compile(r"本报告期|本期|报告期|本年|年初至")
CHANGE = re.compile(
    r"增减|变动|变化|同比|环比|\bchange\b|\bvariance\b|\bincrease\s*/?\s*\(?decrease|\$ change|% change", re.I
)
_AS_OF = re.compile(r"\bas (?:of|at)\b|\bat\b", re.I)
_BALANCE = re.compile(r"balance sheet|financial (?:condition|position)|assets and liabilities|资产负债", re.I)
_WHOLE = re.compile(
    r"(?:FY\s?)?(?:19|20)\d\d(?:\s?[年-]\s?(?:Q[1-4]|第?[一二三四]季度|\d{1,2}-\d{1,2}月))?年?|Q[1-4] \d{4}", re.I
)
_LONGEST_ROW = 50
_DIGIT, _DATED = re.compile(r"\d"), re.compile(r"(?:19|20)\d\d|\d/\d")
_OPENING = 9_000


@dataclass(frozen=True, slots=True)
class Own:
    """The period of the document itself: its last day (None where it tells none) and how many months it covers."""

    end: datetime.date | None = None
    months: int = 12


_OWN_EN = re.compile(
    rf"(?P<kind>quarter(?:ly period)?|(?:fiscal |calendar )?year|three months|six months|nine months)\s+ended:?\s+"
    rf"(?P<month>{_MONTH})\.?\s+(?P<day>\d{{1,2}})\s*,?\s*(?P<year>(?:19|20)\d\d)", re.I,
)  # fmt: skip
_OWN_ZH = re.compile(
    r"(?P<year>20\d\d|19\d\d)\s*年\s*(?:第?\s*(?P<quarter>[一三])\s*季度|(?P<half>半年度?)|(?P<whole>年度))\s*(?:财务)?报告"
)


def own_period(title: str, text: str) -> Own:
    """The period that a report is of, by its title and opening."""
    head = f"{title}\n{text[:_OPENING]}".replace("\xa0", " ")
    if match := _OWN_ZH.search(head):
        month = 12 if match["whole"] else 6 if match["half"] else 3 * _ORDER[match["quarter"]]
        return Own(_last_day(int(match["year"]), month), month)
    if match := _OWN_EN.search(head):
        kind = match["kind"].lower()
        months = 12 if "year" in kind else _NUMBERS.get(kind.split()[0], 3)
        day = _date(int(match["year"]), _MONTHS[match["month"][:3].lower()], int(match["day"]))
        return Own(day, months)
    return Own()


@lru_cache(maxsize=8_000)
def period_of(label: str, own: Own, context: str = "") -> str:
    """The period that a column label names, read with the heading of its table; empty where neither tells.

    `context` gives what the label leaves out: "Three months ended March 31" to the column "2024".
    """
    direct = (_stated(label, context, own) if _DIGIT.search(label) else "") or _relative(label, own)
    if direct or not _DATED.search(context):
        return direct
    return "" if CHANGE.search(label) else _stated(context, "", own)


@lru_cache(maxsize=8_000)
def period_of_row(label: str) -> str:
    """The period that the label of a row or a section is: "2023", "December 31, 2023", "Balance at March 31, 2024"."""
    if len(label) > _LONGEST_ROW or not _DATED.search(label) or not (_WHOLE.fullmatch(label) or _day(label, "")):
        return ""
    return _stated(label, "", Own())


def _stated(label: str, context: str, own: Own) -> str:
    if match := _SPAN_ZH.search(label):
        return _lasting(int(match[1]), int(match[2]), _last_day(int(match[1]), int(match[3])))
    if match := _QUARTER_ZH.search(label):
        month = 6 if match[3] else 9 if match[4] else 3 * int(_ORDER.get(match[2], 0) or match[2])
        return _lasting(int(match[1]), 1 if match[3] or match[4] else month - 2, _last_day(int(match[1]), month))
    if match := _QUARTER_EN.search(label):
        quarter = match[1] or match[4] or str(_ORDER[match[5].lower()])
        return f"{match[2] or match[3] or match[6]}-Q{quarter}"
    day = _day(label, context)
    if day is not None:
        return _ending(day, label, context)
    if match := _YEAR.search(label):
        return _of_year(int(match[1]), label, context, own)
    return ""


def _day(label: str, context: str) -> datetime.date | None:
    """The day that a label names; its year may stand in the context."""
    if match := _DAY_ZH.search(label) or _DAY_ISO.search(label):
        return _date(int(match[1]), int(match[2]), int(match[3]))
    if match := _DAY_US.search(label):
        year = int(match[3])
        return _date(year + 2000 if year < 100 else year, int(match[1]), int(match[2]))
    if match := _DAY_EN.search(label):
        year_text = match[3] or next((found[1] for found in _YEAR.finditer(label)), "")
        year_text = year_text or next((found[1] for found in _YEAR.finditer(context)), "")
        return _date(int(year_text), _MONTHS[match[1][:3].lower()], int(match[2])) if year_text else None
    return None


def _ending(day: datetime.date, label: str, context: str) -> str:
    is_day = _AS_OF.search(label) or _BALANCE.search(context)
    months = _months(label) or (0 if is_day else _months(context))
    if not months:
        return day.isoformat()
    first = _add_months(day, -months)
    return _lasting(first.year, first.month, day)


def _of_year(year: int, label: str, context: str, own: Own) -> str:
    """A bare year: the same day or time of that year as the heading or the document is of."""
    match = _DAY_EN.search(context)
    balance = _BALANCE.search(context)
    if match:
        day = _date(year, _MONTHS[match[1][:3].lower()], int(match[2]))
        months = 0 if balance else _months(f"{label} {context}")
    elif own.end and own.months != 12:
        day, months = _date(year, own.end.month, own.end.day), 0 if balance else own.months
        if balance and year < own.end.year:
            day = _last_day(year, 12)
    else:
        return str(year)
    if day is None:
        return str(year)
    if not months:
        return day.isoformat() if balance or match else str(year)
    first = _add_months(day, -months)
    return _lasting(first.year, first.month, day)


def _relative(label: str, own: Own) -> str:
    if own.end is None:
        return ""
    if CHANGE.search(label):
        return own.end.isoformat() if _END_ZH.search(label) else _own_time(own.end, own.months, 0)
    if _START_ZH.search(label):
        return _last_day(own.end.year - 1, 12).isoformat()
    if _END_ZH.search(label):
        return own.end.isoformat()
    if _NOW_ZH.search(label):
        return _own_time(own.end, own.months, 0)
    return _own_time(own.end, own.months, 1) if _BEFORE_ZH.search(label) else ""


def _own_time(own: datetime.date, months: int, years_ago: int) -> str:
    end = _last_day(own.year - years_ago, own.month)
    first = _add_months(end, -months)
    return _lasting(first.year, first.month, end)


def _months(text: str) -> int:
    match = _LASTS.search(text)
    if not match:
        return 0
    return _NUMBERS[match[1].lower()] if match[1] else 3 if match[2] else 12


def _lasting(year: int, month: int, end: datetime.date) -> str:
    """The name of the time from the first of a month until `end`."""
    months = (end.year - year) * 12 + end.month - month + 1
    whole = end == _last_day(end.year, end.month)
    if whole and months == 12 and end.month == 12:
        return str(end.year)
    if whole and months == 3 and end.month % 3 == 0:
        return f"{end.year}-Q{end.month // 3}"
    return f"{year:04}-{month:02}-01/{end.isoformat()}"


def _add_months(end: datetime.date, months: int) -> datetime.date:
    """The first day of the time of so many months (negative) that ends on a day."""
    count = end.year * 12 + end.month - 1 + months + 1
    return datetime.date(count // 12, count % 12 + 1, 1)


def _date(year: int, month: int, day: int) -> datetime.date | None:
    try:
        return datetime.date(year, month, day)
    except ValueError:
        return None


def _last_day(year: int, month: int) -> datetime.date:
    following = datetime.date(year + month // 12, month % 12 + 1, 1)
    return following - datetime.timedelta(days=1)


def end_of(period: str) -> str:
    """The last day of a period, to order periods by; empty where it has none."""
    if "/" in period:
        return period.rpartition("/")[2]
    if match := re.fullmatch(r"(\d{4})-Q([1-4])", period):
        return _last_day(int(match[1]), 3 * int(match[2])).isoformat()
    return f"{period}-12-31" if re.fullmatch(r"\d{4}", period) else period
