"""What amount does a figure of a table stand for: its sign, its unit, and the scale that the heading of the table sets?

The raw string is never changed; `number` is read from it.
"""

import re
from dataclasses import dataclass
from functools import lru_cache

_CURRENCIES = {
    "US$": "USD", "$": "USD", "C$": "CAD", "HK$": "HKD", "A$": "AUD", "€": "EUR", "£": "GBP", "¥": "CNY", "￥": "CNY",
    "USD": "USD", "EUR": "EUR", "GBP": "GBP", "CNY": "CNY", "RMB": "CNY", "HKD": "HKD", "CAD": "CAD",
}  # fmt: skip
_MONEY = r"(?:US|HK|[CA])?\$|[€£¥￥]|(?:USD|EUR|GBP|CNY|RMB|HKD|CAD)\b"
_DIGITS = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+"
_SCALES = {
    "hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12, "mm": 1e6,
    "千": 1e3, "万": 1e4, "百万": 1e6, "千万": 1e7, "亿": 1e8, "万亿": 1e12,
}  # fmt: skip
_FIGURE = re.compile(
    rf"(?P<fall>减少|下降|降低)?(?P<rise>增加|上升|提高|增长)?\s*(?P<sign>[-−－+＋–])?\s*(?P<open>[(（]\s*)?(?P<money>{_MONEY})?\s*"
    rf"(?P<inner>[(（]\s*)?(?P<minus>[-−－–])?\s*(?P<digits>{_DIGITS})"
    r"(?P<scale>\s?(?:hundred|thousand|million|billion|trillion|mm)\b|\s?(?:万亿|百万|千万|[千万亿]))?"
    r"(?P<percent>\s*(?:%|％|‰|个?百分点))?(?:\s*(?P<unit>元/股|美元|港元|欧元|元|股|倍))?"
    r"(?P<close>\s*[)）](?:\s*(?:%|％))?)?",
    re.I,
)
_NOTE = re.compile(r"\s*(?:[(（](?:注|[a-z]|\d)[^()（）]{0,8}[)）]|\*+|[†‡])\s*$", re.I)
_NOTE_ENDS = (")", "）", "*", "†", "‡")
_LONGEST = 80
_DIGIT = re.compile(r"\d")
# What stands for nothing in accounts.
NIL = frozenset({"—", "–", "――", "——", "--", "-", "―", "- -", "nil"})

_CAPTION_EN = re.compile(
    r"(?:\bin|\bof|\(|[$£€])\s*(?:U\.?S\.?\s*)?(?:dollars\s*)?\$?\s*(?P<scale>thousand|million|billion)s?\b"
    r"|\(?\$?0?00[’']?s\b(?:\s*omitted)?",
    re.I,
)
_MAY_CAPTION = re.compile(r"单位|人民币|housand|HOUSAND|illion|ILLION|00")
_EXCEPT = re.compile(r"\bexcept(?:ing)?\b(?P<rest>.{0,90})", re.I)
_SHARES_TOO = re.compile(r"\b(?:shares?|units?)\b(?!\s*(?:price|value)\b)", re.I)
_CAPTION_ZH = re.compile(
    r"单位\s*[：:]\s*(?:人民币)?\s*(?P<scale>百万|千万|[千万亿])?(?P<unit>元(?:/股)?|股|[%％]|美元|港元)"
    r"|人民币\s*(?P<scale2>百万|千万|[千万亿])?元"
)
_LABEL_ZH = re.compile(
    r"[（(【]\s*(?:单位[：:]\s*)?(?:人民币)?(?P<scale>百万|千万|[千万亿])?"
    r"(?P<unit>元/股|元|股|[%％]|美元|港元|欧元|倍|人次|人|户|标准箱|箱|吨|平方公里|平方千米|公里|千米|平方米|立方米|米|公顷|亩|"
    r"千瓦时|千瓦|度|辆|台|套|个|家|艘|座|件|小时|天|日|年)[^（）()]{0,12}[)）】]"
)
_LABEL_EN = re.compile(
    r"\((?:in )?(?P<unit>[%$€£]|[kcmµ]?m[²³2]?|km/h|m/s|[kmµ]?g|t|ha|ft|mi|yd|in|[kMGT]?Wh?|[kMG]?B|°[CF]|bar|"
    r"tonn?e?s?|lit(?:re|er)s?|metres|meters|miles|feet|inches|acres|hectares|seconds|minutes|hours|days|weeks|months|years|"
    r"people|persons|shares|units|times)\)\s*$"
)
_SUFFIX = re.compile(r"\w_(m|km|cm|mm|kg|t|ha|km2|m2|kmh|kwh|mw|pct|percent|usd|eur|gbp|cny)$", re.I)
_SUFFIXES = {
    "pct": "%",
    "percent": "%",
    "usd": "USD",
    "eur": "EUR",
    "gbp": "GBP",
    "cny": "CNY",
    "km2": "km²",
    "m2": "m²",
}
_BRACKET_ZH = re.compile(r"[（(【][^（）()]*[元股%％倍人户箱吨里米顷亩时瓦度辆台套个家艘座件天日年]")
_PER = re.compile(r"\bper\b.{0,40}\b(?:share|unit|ADS)s?\b|每股", re.I)
_SHARES = re.compile(
    r"^(?:(?:total |basic |diluted )?(?:weighted|average|number of|shares\b|units\b)|"
    r"(?:common |ordinary )?shares outstanding)|"
    r"^total shares\b|^number\b|\bshares outstanding$|股份数量|持股数",
    re.I,
)  # fmt: skip
_SHARES_SECTION = re.compile(r"weighted.*\b(?:shares|units)\b|number of (?:shares|units)", re.I)


@dataclass(frozen=True, slots=True)
class Caption:
    """What the heading of a table says of its figures: the scale, the unit, and whether it spares numbers of shares."""

    scale: float = 1.0
    unit: str = ""
    spares_shares: bool = True


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure at `start`..`end` of the text that was read; `number` with its sign and its own scale ("3 million")."""

    start: int
    end: int
    number: float
    unit: str


def figure_of(text: str) -> Figure | None:
    """The figure that a cell consists of, or None; remarks after it ("(1)", "*", "（注 1）") are no part of it."""
    begin = len(text) - len(text.lstrip())
    stripped = text.strip()
    if len(stripped) > _LONGEST or not _DIGIT.search(stripped):
        return None
    match = _FIGURE.fullmatch(" ".join(stripped.split()))
    if match is None and stripped.endswith(_NOTE_ENDS) and (note := _NOTE.search(stripped)):
        stripped = stripped[: note.start()]
        match = _FIGURE.fullmatch(" ".join(stripped.split()))
    if match is None or bool(match["open"] or match["inner"]) != bool(match["close"]):
        return None
    number, unit = _value(match)
    return Figure(begin, begin + len(stripped), number, unit)


def open_figure_of(text: str) -> Figure | None:
    """The figure of a cell; its closing bracket may stand in a cell of its own: "(63" is -63."""
    figure = figure_of(text)
    if figure is not None or "(" not in text or ")" in text:
        return figure
    closed = figure_of(f"{text.rstrip()})")
    return Figure(closed.start, closed.end - 1, closed.number, closed.unit) if closed else None


def _value(match: re.Match[str]) -> tuple[float, str]:
    number = float(match["digits"].replace(",", ""))
    number *= _SCALES.get((match["scale"] or "").strip().lower(), 1.0)
    opened = match["open"] or match["inner"]
    negative = bool((opened and match["close"]) or match["fall"] or match["minus"] or match["sign"] in (*"-−－–",))
    percent = "%" in match.group() or "％" in match.group() or "百分点" in (match["percent"] or "")
    unit = "%" if percent else _CURRENCIES.get((match["money"] or "").upper(), "") or match["unit"] or ""
    return (-number if negative else number) + 0.0, unit


def is_nil(text: str) -> bool:
    """Whether a cell holds a dash: nothing, in accounts."""
    return text.strip().lstrip("$").strip().lower() in NIL


def caption_of(text: str) -> Caption | None:
    """The scale and unit that a heading or a line above a table states, or None where it states none."""
    if not _MAY_CAPTION.search(text):
        return None
    if match := _CAPTION_ZH.search(text):
        scale = match["scale"] or match["scale2"] or ""
        unit = (match["unit"] or "元").replace("％", "%")
        return Caption(_SCALES.get(scale, 1.0), unit)
    if match := _CAPTION_EN.search(text):
        spared = _EXCEPT.search(text, match.end())
        shares = bool(spared and _SHARES_TOO.search(re.sub(r"per[\s-]+(?:share|unit)", "", spared["rest"], flags=re.I)))
        return Caption(_SCALES[(match["scale"] or "thousand").lower()], "", shares)
    return None


def scaled(figure: Figure, caption: Caption, row: str, column: str, section: str) -> tuple[float, str, float]:
    """(number, unit, scale) of a figure under a caption: shares, rates and amounts per share are not in thousands."""
    scale, unit = caption.scale, figure.unit or caption.unit
    stated = _stated(row) or _stated(column)
    if stated:
        scale, unit = scale if stated[0] is None else stated[0], figure.unit or stated[1]
    elif figure.unit == "%" or _is_per(row) or _is_per(section) or _is_per(column):
        scale = 1.0
        unit = figure.unit or ("元/股" if caption.unit == "元" else unit)
    elif _is_shares(row, column, section):
        scale, unit = (1.0 if caption.spares_shares else scale), figure.unit or "shares"
    number = figure.number * scale
    return (round(number, 6) if scale != 1.0 else number), unit, scale


@lru_cache(maxsize=8_000)
def _is_per(label: str) -> bool:
    return _PER.search(label) is not None


@lru_cache(maxsize=8_000)
def _stated(label: str) -> tuple[float | None, str] | None:
    """The scale and unit that a label carries itself: "营业收入（万元）", "持股比例(%)", "Length (m)".

    A sign of money alone ("($)") says nothing of the scale: None.
    """
    if named := _SUFFIX.search(label):
        return 1.0, _SUFFIXES.get(named[1], named[1])
    if not label.endswith((")", "）", "】")) and not _BRACKET_ZH.search(label):
        return None
    if match := _LABEL_ZH.search(label):
        return _SCALES.get(match["scale"] or "", 1.0), match["unit"].replace("％", "%")
    if match := _LABEL_EN.search(label):
        money = _CURRENCIES.get(match["unit"])
        return (None, money) if money else (1.0, match["unit"])
    return None


def _is_shares(row: str, column: str, section: str) -> bool:
    if not re.search(r"\b(?:shares|units)\b|股", f"{row} {column} {section}", re.I):
        return False
    return bool(_SHARES.search(row) or _SHARES.search(column) or _SHARES_SECTION.search(section))
