"""Figures as a spreadsheet shows them: `1,308,463`, `12.5%`, `(1.2)`, `1.2E+06`; dates, durations: `Mar-24`, `26:03`.

A date that is written in digits alone with the day or the month first is shown as ISO instead: 3/4/2024 is another
day in another country, and sheets show it by the reader's own settings.
"""

import datetime
import re
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction

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


_LITERAL = re.compile(r'"([^"]*)"|\\(.)|\[\$([^\]-]*)[^\]]*\]')
_IGNORED = re.compile(r"\[[^\]]*\]|_.|\*.")
_CONDITION = re.compile(r"\[(<=|>=|<>|<|>|=)(-?\d+(?:\.\d+)?)\]")
_DIGITS = re.compile(r"[#0?][#0?,. ]*")
_RUN = re.compile(r"[#0?]+")
_SCIENTIFIC = re.compile(r"([#0?][#0?,.]*)E([+-])([#0?]+)", re.IGNORECASE)
_FRACTION = re.compile(r"(?P<whole>[#0?]+ +)?[#0?]+ ?/ ?(?P<below>[#0?]+|\d+)")
_GENERAL_DIGITS = 11


def shown(value: object, number_format: str) -> str:
    """A cell's value as the sheet displays it; formats that are not understood show the plain value."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, datetime.datetime | datetime.date | datetime.time | datetime.timedelta):
        return shown_time(value, number_format)
    if isinstance(value, int | float):
        return _number(value, number_format)
    return _text(str(value), number_format)


def _text(value: str, number_format: str) -> str:
    """Text in the section for text, if the format has one."""
    sections = number_format.split(";")
    section = sections[3] if len(sections) > 3 else sections[0] if "@" in number_format else ""
    skeleton, literals = _skeleton(section)
    return _with_literals(skeleton.replace("@", value), literals).strip() if "@" in skeleton else value


def _number(value: int | float, number_format: str) -> str:
    if number_format in ("General", "@", ""):
        return _general(value)
    section, magnitude, sign = _section(Decimal(str(value)), number_format)
    skeleton, literals = _skeleton(section)
    if "general" in skeleton.lower():
        text = re.sub("general", lambda _: _general(abs(value)), skeleton, flags=re.IGNORECASE)
    elif match := _SCIENTIFIC.search(skeleton):
        text = skeleton[: match.start()] + _scientific(magnitude, match) + skeleton[match.end() :]
    elif match := _FRACTION.search(skeleton):
        text = skeleton[: match.start()] + _fraction(magnitude, match) + skeleton[match.end() :]
    elif not _DIGITS.search(skeleton):
        if magnitude and not literals:
            return _general(value) if skeleton.strip() else ""
        text = skeleton
    else:
        text = _plain(magnitude.scaleb(2 * skeleton.count("%")), skeleton)
    shows = re.search("[1-9]", text) is not None
    return ((sign if shows else "") + _with_literals(text, literals)).strip()


def _section(value: Decimal, number_format: str) -> tuple[str, Decimal, str]:
    """The part of a format that holds for a value, the amount to show there, and the sign that it does not show."""
    sections = number_format.split(";")
    conditions = [_CONDITION.search(section) for section in sections]
    if any(conditions):
        for section, condition in zip(sections, conditions, strict=True):
            if condition is None or _holds(value, condition[1], Decimal(condition[2])):
                return section, abs(value), "-" if value < 0 else ""
    if value < 0 and len(sections) > 1:
        return sections[1], -value, ""
    if value == 0 and len(sections) > 2:
        return sections[2], value, ""
    return sections[0], abs(value), "-" if value < 0 else ""


def _holds(value: Decimal, sign: str, limit: Decimal) -> bool:
    below, equal = value < limit, value == limit
    return {"<": below, "<=": below or equal, "=": equal, "<>": not equal, ">=": not below}.get(
        sign, not (below or equal)
    )


def _skeleton(section: str) -> tuple[str, list[str]]:
    """A section without colours and fillers, each literal text of it as one NUL, and those texts."""
    literals: list[str] = []

    def keep(match: re.Match[str]) -> str:
        literals.append(next((group for group in match.groups() if group is not None), ""))
        return "\x00"

    return _IGNORED.sub("", _LITERAL.sub(keep, section)), literals


def _with_literals(text: str, literals: list[str]) -> str:
    for literal in literals:
        text = text.replace("\x00", literal, 1)
    return text


def _plain(magnitude: Decimal, skeleton: str) -> str:
    """The skeleton with its digits, which literals may part: `000-0000`."""
    runs = list(_RUN.finditer(skeleton))
    first, last = runs[0].start(), runs[-1].end()
    inner = skeleton[first:last]
    if re.fullmatch(r"[#0?,. ]+", inner):
        digits = _DIGITS.search(skeleton)
        pattern = digits.group().rstrip() if digits else ""
        return skeleton[:first] + _digits(magnitude, pattern) + skeleton[first + len(pattern) :]
    rounded = str(magnitude.quantize(Decimal(1), rounding=ROUND_HALF_UP))
    left = rounded.zfill(sum(run.group().count("0") for run in runs))
    text = skeleton
    for place, run in reversed(list(enumerate(runs))):
        width = len(left) if place == 0 else len(run.group())
        filled, left = left[max(len(left) - width, 0) :], left[: max(len(left) - width, 0)]
        text = text[: run.start()] + filled + text[run.end() :]
    return text


def _digits(magnitude: Decimal, pattern: str) -> str:
    """The digits for a pattern such as `#,##0.00`; commas at its end divide by a thousand each."""
    scaled = pattern.rstrip(",")
    magnitude = magnitude.scaleb(-3 * (len(pattern) - len(scaled)))
    whole, _, fraction = scaled.partition(".")
    places = len(re.sub(r"[^#0?]", "", fraction))
    rounded = magnitude.quantize(Decimal(1).scaleb(-places), rounding=ROUND_HALF_UP)
    text = f"{rounded:,f}" if "," in whole else f"{rounded:f}"
    needed = fraction.count("0")
    while places > needed and text.endswith("0"):
        text, places = text[:-1], places - 1
    before, point, after = text.removesuffix(".").partition(".")
    return ("" if before == "0" else before).zfill(whole.count("0")) + point + after


def _scientific(magnitude: Decimal, match: re.Match[str]) -> str:
    exponent = magnitude.adjusted() if magnitude else 0
    mantissa = _digits(magnitude.scaleb(-exponent), match[1])
    if mantissa.startswith("10"):
        exponent, mantissa = exponent + 1, _digits(Decimal(1), match[1])
    sign = "-" if exponent < 0 else match[2].replace("-", "")
    return f"{mantissa}E{sign}{abs(exponent):0{len(match[3])}}"


def _fraction(magnitude: Decimal, match: re.Match[str]) -> str:
    below = match["below"]
    largest = int(below) if below.isdigit() and int(below) else 10 ** len(below) - 1
    part = magnitude % 1 if match["whole"] else magnitude
    fixed = below.isdigit() and int(below)
    fraction = Fraction(round(part * largest), largest) if fixed else Fraction(part).limit_denominator(largest)
    above, under = (round(part * largest), largest) if fixed else (fraction.numerator, fraction.denominator)
    whole = int(magnitude) if match["whole"] else 0
    if match["whole"] and above == under:
        whole, above = whole + 1, 0
    if above == 0:
        return str(whole)
    return f"{whole} {above}/{under}" if whole else f"{above}/{under}"


def _general(value: int | float) -> str:
    if isinstance(value, int) or (value.is_integer() and abs(value) < 10**_GENERAL_DIGITS):
        return str(int(value))
    return f"{value:.{_GENERAL_DIGITS}g}"
