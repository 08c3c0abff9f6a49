"""Which periods does a question name, and which words around its names only ask for them?"""

import re
from dataclasses import dataclass

from prompts.language.table_plan import TablePlan

_YEAR = r"(?:19|20)\d{2}"
_YEAR_END = r"\s*(?:年度?)?\s*(?:第?[一二三四1-4]季度)?\s*"
_RANGE = re.compile(
    rf"(?<!\d)({_YEAR}){_YEAR_END}(?:,? ?(?:to|through|until) |[-–—~～至到])\s*"
    rf"(?:the )?(?:year )?({_YEAR})(?!\d)|\bbetween ({_YEAR}) and ({_YEAR})(?!\d)"
)
_QUARTER = re.compile(rf"(?<!\d)({_YEAR})[ -]?Q([1-4])\b|\bQ([1-4])(?: of)? ({_YEAR})(?!\d)", re.I)
_DAY = re.compile(rf"(?<!\d)({_YEAR})-(\d{{2}})(?:-(\d{{2}}))?(?!\d)|({_YEAR})年(\d{{1,2}})月(\d{{1,2}})日")
_ONE = re.compile(rf"(?<![\d.$-])(?<!\d,)({_YEAR})(?!\d|[,.]\d)")
_AROUND = r"(?:the )?(?:fiscal |financial |calendar )?(?:years?|quarters?|period|end of)?\s*"
_SPAN = re.compile(
    r",?\s*\b(?:over the (?:fiscal )?years?|from|between|over|in|for|during|as of|at|on|since|by|ended|ending|of)\s+"
    rf"{_AROUND}"
    rf"(?:(?:January|February|March|April|May|June|July|August|September|October|November|December) (?:\d{{1,2}},? )?)?"
    rf"{_YEAR}(?:[ -]?Q[1-4])?(?:(?:,? (?:to|and|through|until)|,|\s*[-–—])\s*(?:(?:the|year|years) )*{_YEAR})*(?!\d)",
    re.I,
)
_HAN_SPAN = re.compile(
    rf"(?:从|在|于|自|截至)?{_YEAR}(?:年度?)?(?:(?:第?[一二三四1-4]季度?)|\d{{1,2}}月(?:\d{{1,2}}日)?)?(?:末|底|期间|间|度)?"
    rf"(?:(?:、|至|到|和|与|及|以及|-|~|—)\s*{_YEAR}(?:年度?)?(?:(?:第?[一二三四1-4]季度?)|\d{{1,2}}月(?:\d{{1,2}}日)?)?)*"
    r"(?:的?第?[一二三四1-4]季度)?(?:末|底|之间|期间|间|度|的)?"
)
_LONGEST = 20  # years
_ASKING = re.compile(
    r"^(?:the|a|an|its|their|each|every|all|please|company['’]s?|reported|same)\s+|\s+(?:balance|figure|amount|value)s?$|"
    r",?\s+(?:based on|according to|as per) .*$|\s+(?:in|from|of) (?:the|its|their) "
    r"(?:annual|quarterly|financial|latest).*$",
    re.I,
)


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan; `sure`: its wording left nothing open that a model could read better."""

    plan: TablePlan
    sure: bool = True


def periods_in(text: str) -> tuple[str, ...]:
    """The periods that a question names, in order; of a range every year: "2022", "2023-Q1", "2024-03-31"."""
    for match in _RANGE.finditer(text):
        first, last = int(match[1] or match[3]), int(match[2] or match[4])
        if first < last <= first + _LONGEST:
            return tuple(str(year) for year in range(first, last + 1))
    days = [
        f"{one[1] or one[4]}-{int(one[2] or one[5]):02d}"
        + (f"-{int(one[3] or one[6]):02d}" if one[3] or one[6] else "")
        for one in _DAY.finditer(text)
    ]
    if days:
        return tuple(dict.fromkeys(days))
    quarters = [f"{one[1] or one[4]}-Q{one[2] or one[3]}" for one in _QUARTER.finditer(text)]
    return tuple(dict.fromkeys(quarters or [one[1] for one in _ONE.finditer(text)]))


def without_periods(text: str) -> str:
    """The text without the words that name a period."""
    return " ".join(_SPAN.sub("", text).split())


def without_periods_zh(text: str) -> str:
    """The same for Chinese."""
    # The 的 behind a period belongs to the thing before it: "甲公司在2023年的收入".
    return _HAN_SPAN.sub(lambda span: "的" if span[0].endswith("的") else "", text).lstrip("的")


def cleaned(name: str) -> str:
    """A name or an attribute without quotation marks and the words that only ask for it."""
    text = name.strip(" ?.,;:!'\"‘’“”`《》？。，：；")
    while (shorter := _ASKING.sub("", text).strip(" ,'\"‘’“”")) != text:
        text = shorter
    return text
