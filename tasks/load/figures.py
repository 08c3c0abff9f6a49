"""How does a spreadsheet show a number: `1,308,463`, `12.5%`, `(1.2)`, `2024-03-31`?"""

import datetime
import re
from decimal import ROUND_HALF_UP, Decimal

_LITERAL = re.compile(r'"([^"]*)"|\\(.)|\[\$([^\]-]*)[^\]]*\]')
_IGNORED = re.compile(r"\[[^\]]*\]|_.|\*.")
_DIGITS = re.compile(r"[#0?][#0?,. ]*")
_DATE_TOKEN = re.compile(r"yyyy|yy|mmmm|mmm|mm|m|dddd|ddd|dd|d|hh|h|ss|s|AM/PM|A/P", re.IGNORECASE)
_GENERAL_DIGITS = 11


def shown(value: object, number_format: str) -> str:
    """A cell's value as the sheet displays it; formats that are not understood show the plain value."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, datetime.datetime | datetime.date | datetime.time):
        return _date(value, number_format)
    if isinstance(value, int | float):
        return _number(value, number_format)
    return str(value)


def _number(value: int | float, number_format: str) -> str:
    if number_format in ("General", "@", ""):
        return _general(value)
    sections = number_format.split(";")
    pattern, magnitude = sections[0], Decimal(str(value))
    if value < 0 and len(sections) > 1:
        pattern, magnitude = sections[1], -magnitude
    elif value == 0 and len(sections) > 2:
        pattern = sections[2]
    literals: list[str] = []

    def keep(match: re.Match[str]) -> str:
        literals.append(next((group for group in match.groups() if group is not None), ""))
        return "\x00"

    skeleton = _IGNORED.sub("", _LITERAL.sub(keep, pattern))
    digits = _DIGITS.search(skeleton)
    if "E+" in skeleton.upper() or "/" in skeleton or (not digits and magnitude):
        return _general(value)
    if digits:
        percent = skeleton.count("%")
        core = _digits(magnitude.scaleb(2 * percent), digits.group().rstrip())
        skeleton = skeleton[: digits.start()] + core + skeleton[digits.start() + len(digits.group().rstrip()) :]
    for literal in literals:
        skeleton = skeleton.replace("\x00", literal, 1)
    return skeleton.strip()


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
    text = text.removesuffix(".")
    least = whole.count("0")
    sign, digits = ("-", text[1:]) if text.startswith("-") else ("", text)
    before, point, after = digits.partition(".")
    return sign + before.zfill(least) + point + after


def _general(value: int | float) -> str:
    if isinstance(value, int) or (value.is_integer() and abs(value) < 10**_GENERAL_DIGITS):
        return str(int(value))
    return f"{value:.{_GENERAL_DIGITS}g}"


def _date(value: datetime.datetime | datetime.date | datetime.time, number_format: str) -> str:
    """ISO dates and times: unlike 3/4/2024 they mean the same everywhere; the time shows where the format has it."""
    if isinstance(value, datetime.datetime):
        tokens = {token.lower() for token in _DATE_TOKEN.findall(number_format)}
        timed = value.time() != datetime.time() or {"h", "hh"} & tokens
        return value.isoformat(" ", "seconds") if timed else value.date().isoformat()
    return value.isoformat()
