"""Which English questions class, add up or follow the figures of all things?"""

import re

from prompts.language.table_bounds import bands_of
from prompts.language.table_patterns import ATTRIBUTE, CHANGE, DURING, OF_ALL, SPAN, THING, planned
from prompts.language.table_plan import Measure
from prompts.language.table_wording import Planned, cleaned, periods_in, without_periods

_CLASSIFY = re.compile(
    rf"\b(?:categori[sz]e|classify|group|divide|cluster|split|sort|bucket|partition)\b.*?\b(?:by|according to|based on|"
    rf"in terms of) (?:their |the )?{ATTRIBUTE},? (?:into|as|in)\b(?P<classes>.*\(.*\).*)$",
    re.I,
)
_CLASS = re.compile(r"(?P<name>[^,;:()]+?)\s*[(（](?P<range>[^()（）]*(?:\([^()]*\)[^()（）]*)?)[)）]")
_LEADING = re.compile(
    r"^.*\b(?:groups|categories|classes|sets|collections|bands)\b\s*[:\-]?\s*|^\s*(?:and|or)\s+", re.I
)


def classify(text: str) -> Planned | None:
    """The plan of "categorize the companies by X into: high (over 1,000), …"."""
    match = _CLASSIFY.search(text)
    if match is None:
        return None
    found = [(_LEADING.sub("", one["name"]).strip(), one["range"]) for one in _CLASS.finditer(match["classes"])]
    bands = bands_of([(re.sub(r"^(?:and|or)\s+", "", name), wording) for name, wording in found])
    if not bands:
        return None
    return planned("classify", match["attribute"], match, bands=bands, sure=len(bands) == len(found))


_TREND = (
    rf"\btrend (?:of|in|for) (?:the )?{ATTRIBUTE} (?:of|for|at|by) {THING}{SPAN}",
    rf"\btrend (?:of|in|for) {THING}['’]s? {ATTRIBUTE}{SPAN}",
    rf"\b(?:how|in what way) (?:did|has|have) {THING}['’]s? {ATTRIBUTE} {CHANGE}",
    rf"\b(?:how|in what way) (?:did|has|have) (?:the )?{ATTRIBUTE} (?:of|for|at) {THING} {CHANGE}",
    rf"\b(?:change|changes|development) (?:of|in) (?:the )?{ATTRIBUTE} (?:of|for|at) {THING}{DURING}",
    rf"\b(?:change|changes|development) (?:of|in) {THING}['’]s? {ATTRIBUTE}{DURING}",
    rf"\b(?:the )?{ATTRIBUTE} (?P<measure>growth) (?:of|for|at) {THING}{DURING}",
    rf"\b(?P<measure>growth|increase|decrease|decline|difference|growth rate) (?:of|in|for) (?:the )?{ATTRIBUTE} "
    rf"(?:of|for|at) {THING}{DURING}",
    rf"\b(?:by )?how much did {THING}['’]s? {ATTRIBUTE} (?P<measure>grow|increase|decrease|decline|fall|rise)",
)
_TRENDS = tuple(re.compile(pattern, re.I) for pattern in _TREND)


def trend(text: str) -> Planned | None:
    """The plan of "how did the X of A change from 2022 to 2024?"."""
    periods = periods_in(text)
    for pattern in _TRENDS:
        match = pattern.search(text)
        if match is not None:
            said = (match.groupdict().get("measure") or "").lower()
            measure: Measure = "growth" if "growth rate" in text.lower() else "difference" if said else ""
            attribute = re.sub(r"^(?:what was|what is|the)\s+(?:the )?", "", match["attribute"], flags=re.I)
            return planned("trend", attribute, match, periods=periods, measure=measure, sure=len(periods) > 1)
    return None


_AGGREGATE = re.compile(
    rf"\b(?:the )?(?P<measure>total|combined|sum of(?: the)?|average|mean|overall|aggregate) {ATTRIBUTE} "
    rf"(?:of|for|across|over|in) {OF_ALL}",
    re.I,
)
_AGGREGATED = re.compile(
    rf"\b(?P<measure>difference|ratio|gap) (?:between|of|in) (?:the )?{ATTRIBUTE} (?:of|for|between) {THING} "
    r"(?:and|to) (?P<other>.+?)\??$|\b(?P<measure2>difference|ratio|gap) "
    r"(?:between|of) (?P<thing2>.+?)['’]s? (?:and|to) (?P<other2>.+?)['’]s? (?P<attribute2>.+?)\??$",
    re.I,
)


_LISTING = re.compile(r"^(?:please )?(?:list|rank|sort|order|enumerate|arrange)\b", re.I)


def aggregate(text: str) -> Planned | None:
    """The plan of "the average X of the companies" or "the difference in X between A and B"."""
    match = None if _LISTING.search(text) else _AGGREGATE.search(text)
    if match is not None:
        measure: Measure = "average" if match["measure"].lower() in {"average", "mean"} else "sum"
        return planned("aggregate", match["attribute"], match, noun=match["all"], measure=measure)
    match = None if _LISTING.search(text) else _AGGREGATED.search(text)
    if match is None:
        return None
    second = "2" if match["measure2"] else ""
    measure = "ratio" if match[f"measure{second}"].lower() == "ratio" else "difference"
    things = (cleaned(without_periods(match[f"thing{second}"])), cleaned(without_periods(match[f"other{second}"])))
    return planned("aggregate", match[f"attribute{second}"], match, measure=measure, things=things)
