"""Amounts as they are written ("$1,308", "(0.63)", "3.5 million", "1.2万", "12.5%") as numbers with scale and unit."""

import re
from dataclasses import dataclass
from functools import lru_cache

_SCALES = {
    "k": 1e3, "thousand": 1e3, "m": 1e6, "mm": 1e6, "mn": 1e6, "million": 1e6, "bn": 1e9, "billion": 1e9,
    "trillion": 1e12, "百": 1e2, "千": 1e3, "万": 1e4, "十万": 1e5, "百万": 1e6, "千万": 1e7, "亿": 1e8, "十亿": 1e9,
    "百亿": 1e10, "千亿": 1e11, "万亿": 1e12,
}  # fmt: skip
_MONEY = r"(?:US|HK|[CA])?[$€£¥￥]|(?:USD|EUR|GBP|CNY|RMB)\b"
_SCALE = (
    r"(?:thousand|million|billion|trillion|mm|mn|bn)s?\b|(?<=\d)(?-i:[kM])(?![A-Za-z])"
    r"|[十百千]?万亿?|[十百千]?亿|[百千](?!分)"
)
# 1,308.50; 412.5; .5; and, where a cell is nothing else, 1.308,50 and 412,5 as written on the continent.
_DIGITS = r"\d{1,3}(?:[,，]\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+"
_EURO = r"\d{1,3}(?:\.\d{3})+,\d{1,2}|\d+,\d{1,2}"
_FIGURE = (
    rf"(?P<sign>[-−－+–]\s?)?(?P<open>[(（]\s*)?(?P<money>{_MONEY})?\s*(?P<inner>[(（]\s*)?(?P<minus>[-−－–])?\s*"
    rf"(?P<digits>{{digits}})\s?(?P<scale>{_SCALE})?(?P<percent>\s?(?:%|％|‰|percent\b|个?百分点))?"
)
_UNIT = r"(?P<unit>\s?(?:[A-Za-z°µ][A-Za-z²³°/]{0,14}\.?|[\u4e00-\u9fff]{1,4}(?:/[\u4e00-\u9fff])?))?"
_WHOLE = re.compile(
    _FIGURE.format(digits=f"{_EURO}(?![\\d,.])|{_DIGITS}") + _UNIT + r"(?P<close>\s*[)）](?:\s?[%％])?)?", re.I
)
_INSIDE = re.compile(r"(?<![A-Za-z0-9_.,])" + _FIGURE.format(digits=_DIGITS) + r"(?P<close>\s*[)）])?(?![\d])")
_NOTE = re.compile(r"\s*(?:[(（](?:注|[a-z]|\d)[^()（）]{0,8}[)）]|\*+|[†‡]|\[\d+\])\s*$", re.I)
_LONGEST = 40
_STATED = re.compile(
    r"\b(?:in|of|US\$|\$)\s*(?:US\s?)?(?:dollars|\$)?\s*(?P<en>thousand|million|billion)s?\b|\((?P<word>thousand|million|billion)s?\b"
    r"|\(?\$?0?00[’']s\b(?P<ks>)|(?:单位\s*[：:]|人民币|[（(])\s*(?:人民币)?(?P<zh>百万|千万|[千万亿])(?=[元人吨股户辆台件次箱])"
    r"|_(?P<suffix>thousands?|millions?|billions?)\b",
    re.I,
)


@dataclass(frozen=True, slots=True)
class Amount:
    """A figure at `start`..`end` of the text: `number` in full units, `scale` what its own word made of it
    (3.5 million: 1e6), `places` the decimals that it is written with."""

    start: int
    end: int
    number: float
    scale: float = 1.0
    unit: str = ""
    places: int = 0


@lru_cache(maxsize=100_000)
def amount_of(text: str) -> Amount | None:
    """The figure that a whole cell is, its unit included ("412.5 m", "450人"); a remark after it is no part of it."""
    bare = text.strip()
    if not bare or len(bare) > _LONGEST or not any(sign.isdigit() for sign in bare):
        return None
    whole = bare + ")" if bare.count("(") > bare.count(")") else bare  # its closing bracket may stand in the next cell
    match = _WHOLE.fullmatch(whole)
    if match is None and (note := _NOTE.search(bare)) and note.start():
        bare = bare[: note.start()]
        match = _WHOLE.fullmatch(bare)
    if match is None or bool(match["open"] or match["inner"]) != bool(match["close"]):
        return None
    start = len(text) - len(text.lstrip())
    return _amount(match, start, start + len(bare))


def amounts_in(text: str) -> list[Amount]:
    """The figures in running text, in order; what measures them is left out."""
    return [
        _amount(match, match.start(), match.start() + len(match.group().rstrip())) for match in _INSIDE.finditer(text)
    ]


@lru_cache(maxsize=20_000)
def scale_stated(label: str) -> float:
    """What a heading or a column says of its figures: "in thousands", "（万元）", "单位：百万元"; 1: nothing."""
    match = _STATED.search(label)
    if match is None:
        return 1.0
    word = match["en"] or match["word"] or match["suffix"] or match["zh"] or "thousand"
    return _SCALES[word.lower().rstrip("s")]


def _amount(match: re.Match[str], start: int, end: int) -> Amount:
    digits = match["digits"].replace("，", ",")
    continental = re.fullmatch(_EURO, digits) is not None
    digits = digits.replace(".", "").replace(",", ".") if continental else digits.replace(",", "")
    scale = _SCALES.get((match["scale"] or "").lower().removesuffix("s"), 1.0)
    opened = (match["open"] or match["inner"]) and match["close"]
    negative = bool(opened or match["minus"] or (match["sign"] or "").strip() in set("-−－–") - {""})
    number = float(digits) * scale
    groups = match.groupdict()
    unit = "%" if match["percent"] else (match["money"] or groups.get("unit") or "").strip()
    return Amount(start, end, -number if negative else number, scale, unit, len(digits.partition(".")[2]))
