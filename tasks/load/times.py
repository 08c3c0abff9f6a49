"""How does a spreadsheet show a date, a time or a duration: `2024`, `Mar-24`, `2024年3月31日`, `26:03`?

A date that is written in digits alone with the day or the month first is shown as ISO instead: 3/4/2024 is another
day in another country, and sheets show it by the reader's own settings.
"""

import datetime
import re

_MONTHS = "January February March April May June July August September October November December".split()
_DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
_TOKEN = re.compile(
    r'"(?P<quoted>[^"]*)"|\\(?P<escaped>.)|_.|\*.|\[\$[^\]]*\]|\[(?P<total>h+|m+|s+)\]|\[[^\]]*\]|'
    r"(?P<code>y+|m+|d+|h+|s+(?:\.0+)?|AM/PM|A/P|上午/下午|aaaa|aaa)|(?P<other>.)",
    re.IGNORECASE,
)
_NAMED = re.compile(r"mmm|年|^y+$", re.IGNORECASE)
_YEAR_FIRST = re.compile(r"^[^a-z]*y+", re.IGNORECASE)

Moment = datetime.datetime | datetime.date | datetime.time | datetime.timedelta


def shown_time(value: Moment, number_format: str) -> str:
    """A date, time or duration as its format displays it; ISO where the format is unknown or ambiguous."""
    section = number_format.split(";", maxsplit=1)[0]
    codes = "".join(match["code"] or "" for match in _TOKEN.finditer(section)).lower()
    if isinstance(value, datetime.timedelta):
        return _duration(value, section)
    if isinstance(value, datetime.time):
        return _filled(value, section) if "h" in codes and "d" not in codes else value.isoformat()
    if "y" not in codes and not re.search(r"mmm|d", codes) and "h" in codes:
        return _filled(value, section)
    plain = re.sub(r"\[[^\]]*\]|[\"\\]", "", section)
    if "y" in codes and (_NAMED.search(plain.strip()) or _YEAR_FIRST.match(plain)):
        return _filled(value, section)
    return _iso(value, codes)


def _iso(value: datetime.datetime | datetime.date, codes: str) -> str:
    if isinstance(value, datetime.datetime):
        timed = value.time() != datetime.time() or "h" in codes
        return value.isoformat(" ", "seconds") if timed else value.date().isoformat()
    return value.isoformat()


def _filled(value: datetime.datetime | datetime.date | datetime.time, section: str) -> str:
    """The format with its codes filled in; an `m` beside hours or seconds is minutes."""
    tokens = [match for match in _TOKEN.finditer(section) if match.group() != "@"]
    codes = [(match["code"] or match["total"] or "").lower() for match in tokens]
    half_day = any(code in {"am/pm", "a/p", "上午/下午"} for code in codes)
    named = [place for place, code in enumerate(codes) if code]
    shown = []
    for place, (match, code) in enumerate(zip(tokens, codes, strict=True)):
        if not code:
            shown.append(match["quoted"] or match["escaped"] or match["other"] or "")
            continue
        at = named.index(place)
        before = codes[named[at - 1]] if at else ""
        after = codes[named[at + 1]] if at + 1 < len(named) else ""
        is_minute = code in {"m", "mm"} and (before[:1] == "h" or after[:1] == "s")
        shown.append(_code("minute" if is_minute else code, len(code), value, half_day))
    return "".join(shown).strip()


def _code(code: str, width: int, value: datetime.datetime | datetime.date | datetime.time, half_day: bool) -> str:
    if isinstance(value, datetime.date):
        if code[0] == "y":
            return f"{value.year % 100:02}" if width <= 2 else f"{value.year:04}"
        if code[0] == "m" and code != "minute":
            name = _MONTHS[value.month - 1]
            return (
                name[:1]
                if width == 5
                else name
                if width >= 4
                else name[:3]
                if width == 3
                else f"{value.month:0{width}}"
            )
        if code[0] == "d":
            name = _DAYS[value.weekday()]
            return name if width >= 4 else name[:3] if width == 3 else f"{value.day:0{width}}"
    return _clock(code, width, value, half_day)


def _clock(code: str, width: int, value: datetime.datetime | datetime.date | datetime.time, half_day: bool) -> str:
    hour, minute, second = (getattr(value, name, 0) for name in ("hour", "minute", "second"))
    if code[0] == "h":
        return f"{(hour % 12 or 12) if half_day else hour:0{min(width, 2)}}"
    if code == "minute":
        return f"{minute:0{min(width, 2)}}"
    if code[0] == "s":
        return f"{second:0{min(width, 2)}}"
    morning, evening = ("上午", "下午") if "午" in code else ("AM", "PM") if "m" in code else ("A", "P")
    return morning if hour < 12 else evening


def _duration(value: datetime.timedelta, section: str) -> str:
    """Hours (all of them) and minutes, with seconds where the format has them."""
    total = round(abs(value.total_seconds()))
    text = f"{total // 3600}:{total // 60 % 60:02}"
    if "s" in section.lower() or not re.search("[hm]", section, re.IGNORECASE):
        text += f":{total % 60:02}"
    return f"-{text}" if value < datetime.timedelta() else text
