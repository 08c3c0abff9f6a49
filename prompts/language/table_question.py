"""Which plan over tables does a question ask for? Rules for English here and for Chinese beside.

The rules know the wording of questions and nothing of any domain. What they cannot place has no plan; `Planned.sure`
says whether a model could do better.
"""

import re

from prompts.language.asked import DIRECTION
from prompts.language.table_bands import band_of, figures_in
from prompts.language.table_patterns import (
    ATTRIBUTE,
    HAS,
    MANY,
    NOUN,
    NUMBER_WORDS,
    OF_ALL,
    SUPERLATIVE,
    THING,
    planned,
)
from prompts.language.table_plan import Band, Order
from prompts.language.table_question_whole import aggregate, classify, trend
from prompts.language.table_question_zh import planned_zh
from prompts.language.table_wording import Planned, cleaned, periods_in, without_periods
from prompts.language.words import is_han


def plan_of(question: str) -> Planned | None:
    """The plan that the question's wording shows, or None where it asks nothing that a table answers by itself."""
    text = " ".join(question.split())
    if is_han(text):
        return planned_zh(text)
    for form in _FORMS:
        plan = form(text)
        if plan is not None:
            return plan
    return None


# --- one form each ---------------------------------------------------------------------------------------------------

_COUNT = (
    rf"\bhow many (?:of (?:the|these|those) )?{NOUN}s? {HAS} "
    rf"(?:an? |the |their )?{ATTRIBUTE} (?:that (?:is|are) |of )?(?P<range>(?:over|above|more|greater|higher|exceed|"
    r"below|under|less|lower|fewer|at least|at most|between|equal|exactly|no (?:more|less)).*)$",
    rf"\bnumber of {NOUN}s? (?:with|having|whose) (?:an? |the )?{ATTRIBUTE} (?:(?:is|are|of) )?"
    r"(?P<range>(?:over|above|more|greater|higher|exceed|below|under|less|lower|fewer|at least|at most|between|"
    r"equal|exactly).*)$",
)
_COUNTS = tuple(re.compile(pattern, re.I) for pattern in _COUNT)


def _count(text: str) -> Planned | None:
    for pattern in _COUNTS:
        match = pattern.search(text)
        band = band_of(without_periods(match["range"])) if match else None
        if match is not None and band is not None:
            return planned("count", match["attribute"], match, noun=match["noun"], bands=(band,))
    return None


_WHICH = (
    rf"\bwhich {NOUN}s? (?:has|have|had|reported|reports|shows?|with) (?:an? |the )?{ATTRIBUTE} "
    r"(?:balance )?(?:of|at|equal to|that is) (?P<figure>[-−]?\(?(?:US)?[$€£¥]?\s?\(?[-−]?\d.*?)\??$",
    rf"\b{NOUN}s? (?:with|whose|has|having) (?:an? |the )?{ATTRIBUTE} (?:balance )?(?:of|is|was|at|equal to|being) "
    r"(?P<figure>[-−]?\(?(?:US)?[$€£¥]?\s?\(?[-−]?\d.*?)\??$",
    rf"\b(?P<noun>whose) {ATTRIBUTE} (?:is|was|are|were|equals) "
    r"(?P<figure>[-−]?\(?(?:US)?[$€£¥]?\s?\(?[-−]?\d.*?)\??$",
)
_WHICHES = tuple(re.compile(pattern, re.I) for pattern in _WHICH)


def _which(text: str) -> Planned | None:
    for pattern in _WHICHES:
        match = pattern.search(text)
        figures = figures_in(match["figure"]) if match else []
        if match is not None and figures:
            number = figures[0].number
            band = Band(name=figures[0].text, low=number, high=number, low_in=True, high_in=True)
            return planned("which", match["attribute"], match, noun=match["noun"], bands=(band,))
    return None


_LIST = (
    rf"\b(?:list|give|show|enumerate|provide|state) (?:me )?(?:the )?{ATTRIBUTE} (?:of|for) {OF_ALL}.*?"
    r"(?:in (?P<order>descending|ascending|decreasing|increasing) order|from (?P<from>\w+) to \w+|$)",
    rf"\b(?:rank|order|sort|list|arrange) (?:{OF_ALL}|(?:the )?{NOUN}) (?:\w+ )?(?:by|according to|in order of) "
    rf"(?:their |the |its )?{ATTRIBUTE}(?=,? in (?:descending|ascending|decreasing|increasing)|,? from \w+ to|[.?]|$)"
    r"(?:,? in (?P<order>descending|ascending|decreasing|increasing) order|,? from (?P<from>\w+) to \w+)?",
)
_LISTS = tuple(re.compile(pattern, re.I) for pattern in _LIST)
_COMPARED = re.compile(
    rf"^(?:please )?compare (?:the )?{ATTRIBUTE} (?:of|for|between|at) (?:{OF_ALL}|(?P<things>.+? and .+?))[.?]?$",
    re.I,
)
_UP = frozenset("ascending increasing lowest smallest least low small fewest shortest".split())


def _list(text: str) -> Planned | None:
    for pattern in _LISTS:
        match = pattern.search(text)
        if match is not None:
            said = (match["order"] or match["from"] or "").lower()
            order: Order = "ascending" if said in _UP else "descending"
            noun = match.groupdict().get("noun") or match.groupdict().get("all") or ""
            return planned("list", match["attribute"], match, noun=noun, order=order)
    compared = _COMPARED.search(without_periods(text))
    if compared is None:
        return None
    things = tuple(cleaned(one) for one in re.split(r",\s*(?:and )?|\s+and\s+", compared["things"] or "") if one)
    noun = compared["all"] or ""
    return planned("list", compared["attribute"], compared, noun=noun, things=things, periods=periods_in(text))


_TOP = (
    rf"\b(?:which|what|whose) (?:{MANY} )?(?:of (?:the|these|those) )?(?:{NOUN} )?"
    rf"(?:has|have|had|reported|reports|shows?|"
    rf"recorded|with|posted|carried|sold|produced|received|spent|handled|made) (?:the )?{SUPERLATIVE} {ATTRIBUTE}$",
    rf"\b(?:the )?{NOUN} (?:with|that has|having|that had) the {SUPERLATIVE} {ATTRIBUTE}$",
    rf"\b(?:top|first) {MANY} {NOUN} (?:by|in|with|in terms of) (?:the |their )?(?:{SUPERLATIVE} )?{ATTRIBUTE}$",
    rf"^(?:what|which) (?:are|is|were|was) the (?:{MANY} )?{SUPERLATIVE} {NOUN} (?:by|in terms of) (?:the |their )?"
    rf"{ATTRIBUTE}$",
    rf"\b(?P<noun>who) (?:has|have|had|reported) (?:the )?{SUPERLATIVE} {ATTRIBUTE}$",
)  # fmt: skip
_TOPS = tuple(re.compile(pattern, re.I) for pattern in _TOP)
# "Which two bridges are the longest?" names its measure by the adjective.
_IMPLIED = {
    "longest": "length", "shortest": "length", "highest": "height", "tallest": "height", "widest": "width",
    "narrowest": "width", "deepest": "depth", "heaviest": "weight", "lightest": "weight", "fastest": "speed",
    "slowest": "speed", "oldest": "opened", "newest": "opened", "dearest": "price", "cheapest": "price",
}  # fmt: skip
_UPSIDE = frozenset("shortest narrowest lightest slowest oldest cheapest".split())
_ADJECTIVE = re.compile(
    rf"^which (?:{MANY} )?(?:of the )?{NOUN} (?:is|are|was|were) the (?P<most>{'|'.join(_IMPLIED)})$", re.I
)
_OPTIONS = re.compile(
    r"(?:[,:]| -)\s*(?P<options>[^,:]+(?:, [^,:]+)* or .+)$|^(?:between|of) (?P<both>.+? and .+?), ", re.I
)
_AMONG = re.compile(r"\s+(?:among|out of|of|across|in) (?:all )?(?:the |these |those )\w+$", re.I)


def _top(text: str) -> Planned | None:
    plain = text.rstrip(" ?.")
    among = _OPTIONS.search(plain)
    things: tuple[str, ...] = ()
    if among is not None:
        said = among["options"] or among["both"]
        things = tuple(
            re.sub(r"^(?:or|and) ", "", one).strip() for one in re.split(r",\s*(?:or )?|\s+(?:or|and)\s+", said)
        )
        plain = (plain[: among.start()] if among["options"] else plain[among.end() :]).strip()
    for pattern in _TOPS:
        match = pattern.search(plain)
        if match is None:
            continue
        groups = match.groupdict()
        most = (groups.get("most") or "most").lower()
        order: Order = (
            "ascending" if DIRECTION.get(most) == "min" or most in {"minimum", "worst", "least"} else "descending"
        )
        many = groups.get("many") or "1"
        attribute = _AMONG.sub("", match["attribute"])
        return planned(
            "top", attribute, match, noun=groups.get("noun") or "", order=order, things=things,
            many=NUMBER_WORDS.get(many.lower(), 0) or int(many), sure=bool(things) or not among,
        )  # fmt: skip
    implied = _ADJECTIVE.search(plain)
    if implied is None:
        return None
    word, many = implied["most"].lower(), implied["many"] or "1"
    return planned(
        "top", _IMPLIED[word], implied, noun=implied["noun"], order="ascending" if word in _UPSIDE else "descending",
        many=NUMBER_WORDS.get(many.lower(), 0) or int(many),
    )  # fmt: skip


_LOOKUP = (
    r"^(?:what|how much|how high|how large) (?:is|are|was|were) (?:the )?(?P<asked>.+ (?:of|for|at|reported by) .+)$",
    r"^(?:please )?(?:give|tell|show|find|state) (?:me )?(?:the )?(?P<asked>.+ (?:of|for) .+)$",
    rf"^what (?:is|are|was|were) {THING}['’]s? {ATTRIBUTE}$",
    rf"^how (?:many|much) {ATTRIBUTE} (?:did|does|do|has|have|had) (?:the )?{THING} "
    r"(?:have|report|reported|carry|sell|produce|receive|spend|make|record|handle|own|cost|generate|hold|employ|earn)$",
)
_LOOKUPS = tuple(re.compile(pattern, re.I) for pattern in _LOOKUP)
_JOINT = re.compile(r" (?:of|for|at|reported by) (?:the )?")


def _lookup(text: str) -> Planned | None:
    plain = without_periods(text.rstrip(" ?.!")).strip(" ,")
    for pattern in _LOOKUPS:
        match = pattern.search(plain)
        if match is not None:
            groups = match.groupdict()
            attribute, thing = (
                split_of(groups["asked"]) if groups.get("asked") else (groups["attribute"], groups["thing"])
            )
            things = tuple(cleaned(one) for one in re.split(r"\s+and (?=[A-Z])", thing))
            return planned("lookup", attribute, match, things=things, periods=periods_in(text))
    return None


def split_of(asked: str) -> tuple[str, str]:
    """(attribute, thing) of "cash and cash equivalents of GSE Systems": at the first joint before a name, else at the
    last one."""
    joints = list(_JOINT.finditer(asked))
    named = [one for one in joints if asked[one.end()].isupper() or asked[one.end()].isdigit()]
    joint = (named or joints)[0 if named else -1]
    return asked[: joint.start()], asked[joint.end() :]


_FORMS = (classify, aggregate, trend, _count, _which, _list, _top, _lookup)
