"""Which things, attributes and periods does a question ask about? (the schema pass of the table structure, by rules)

One schema serves all documents, so that "net loss" of one and "Net income (loss)" of another stand in one column.
"""

import re
from collections.abc import Sequence
from itertools import pairwise

from prompts.language.words import CJK, is_han
from storage.structures import Schema
from tasks.structurize.labels import is_known

_QUOTED = re.compile(
    r"(?<![A-Za-z0-9’'])['‘’]([^'‘’\n]{2,80}(?:['’]s?\s[^'‘’\n]{2,60})?)['‘’](?![A-Za-z0-9])|"
    r"[\"“”]([^\"“”\n]{2,80})[\"“”]|[「『]([^」』]{1,60})[」』]"
)
_RANGE = re.compile(r"((?:19|20)\d\d)\s*(?:年度?)?\s*(?:to|through|until|-|–|—|~|至|到)\s*((?:19|20)\d\d)(?!\d)", re.I)
_YEAR = re.compile(r"(?<!\d)((?:19|20)\d\d)(?!\d)")
_QUARTER = re.compile(r"第?([一二三四1-4])季度|\bQ([1-4])\b|\b(first|second|third|fourth) quarter", re.I)
_QUARTERS = {name: number for number, names in enumerate(("一1first", "二2second", "三3third", "四4fourth"), 1)
             for name in (names[0], names[1], names[2:])}  # fmt: skip

_SOURCE_EN = re.compile(
    r",?\s*\b(?:as per|according to|based on|as (?:reported|shown|stated) in)\b[^?]*?"
    r"(?:reports?|statements?|filings?|10-[KQ]|documents?)\b",
    re.I,
)
_TIME_EN = re.compile(
    r",?\s*\b(?:from|between|in|for|over|during|as of|at|on|by|since|of)\s+(?:the\s+)?"
    r"(?:fiscal\s+|calendar\s+)?(?:years?\s+|end of\s+|year-end\s+)*"
    r"(?:(?:(?:19|20)\d\d|[A-Z][a-z]+ \d{1,2}, (?:19|20)\d\d|Q[1-4])(?:\s*(?:,|and|to|through|until|-|–)\s*)*)+"
    r"|,?\s*\b(?:over the (?:years|periods?)|year[ -]over[ -]year|over time)\b",
    re.I,
)
_THING = r"(?P<thing>(?-i:[A-Z])[^?]*?)['’]s?"
_ASKS = r"\b(?:what|how much|how high|how large|give|state|list|show|report|find|tell me)\b"
_IS = r"(?: (?:is|are|was|were|did|please|me))* (?:the )?"
_MOVES = r"\b(?:trends?|changes?|development|evolution) (?:in|of)"
# From the most telling on; the first that fits is taken.
_PATTERNS_EN = tuple(
    re.compile(pattern, re.I)
    for pattern in (
        r"\bby (?P<attr>[^?]+?) into\b",
        r"\b(?:with|having) (?:an? |the )?(?P<attr>[^?]+?) (?:of|at|equal to|amounting to) [-($€£¥]*\s?\d",
        rf"{_MOVES} (?:the )?{_THING} (?P<attr>[^?]+)",
        rf"{_MOVES} (?P<attr>[^?]+?) (?:for|of|at) (?P<thing>(?-i:[A-Z])[^?]*)",
        rf"{_MOVES} (?P<attr>[^?]+)",
        r"\b(?:highest|lowest|largest|smallest|greatest|biggest|most|least|longest|shortest|fewest) (?P<attr>[^?]+)",
        rf"\bhow (?:did|does|do|has|have) (?:the )?{_THING} (?P<attr>[^?]+?) (?:changed?|developed?|evolved?|grow)\b",
        r"\b(?:which|what) \w+ (?:\w+ ){0,2}?(?:has|have|had|reports?|reported|shows?|showed|recorded|with) "
        r"(?:an? |the |its |their )?(?P<attr>[^?]+?) (?:of|that is|equal to|amounting to|at|over|above|below|"
        r"exceeding|greater|more|less|under)\b",
        rf"{_ASKS}{_IS}(?!the\b){_THING} (?P<attr>[^?]+)",
        rf"{_ASKS}{_IS}(?P<attr>[^?]+?) (?:of|for|at|reported by) "
        r"(?P<thing>(?-i:[A-Z\"])[^?]*|each[^?]*|all[^?]*|the [^?]*compan[^?]*)",
        r"\bhow many (?P<attr>[^?]+?)(?: (?:does|did|do|has|have|had|are|were|is|was)\b[^?]*|\?|$)",
        rf"{_THING} (?P<attr>(?-i:[a-z])[^?]+)",
        rf"\b(?:what|how much)\b{_IS}(?P<attr>[^?]+)",
    )
)
_LEAD_EN = re.compile(r"^(?:(?:the|its|their|an?|total value of|value of|amount of|level of|number of)\s+)+", re.I)
_TAIL_EN = re.compile(
    r"\s+(?:growth|changed?|trends?|develop\w*|grow|figures?|values?|amounts?|respectively|among\b.*|in the\b.*|"
    r"across\b.*|reported\b.*|,?\s*and (?:what|how|why|when)\b.*|(?:what|how|why) (?:does|do|did|is|are)\b.*|"
    r"exceed\w*.*|compared\b.*|(?:is|are|was|were|has|have)\b.*)$",
    re.I,
)

_TIME_ZH = re.compile(
    r"在?(?:从)?(?:(?:19|20)\d\d年?(?:度)?(?:第?[一二三四]季度|上半年|半年度?|\d{1,2}月(?:\d{1,2}日)?)?"
    r"(?:的?末|初|期末|间|期间|底)?[、和与及至到\-—~,，]*)+(?:第?[一二三四]季度)?(?:年度)?"
    r"(?:的?(?:报告|财报|年报|季报)(?:数据|信息)?)?(?:中|里|期间|之间|年间|间)?(?:的(?=.))?"
)
_BASIS_ZH = re.compile(
    r"^(?:根据|依据|按照|基于|从)(?P<basis>.*?)(?:财报|报告|年报|季报|报表|数据|信息|来看|资料)?(?:信息|数据|中|来看)*$"
)
_LEAD_ZH = re.compile(
    r"^(?:请问|请|试|回答|列举|列出|比较|分析|说明|查询|上述|以上|各?个?|每个|这些|公司|企业|那么|"
    r"哪家公司|哪个公司|哪一家公司|哪些公司)+的?"
)
_TAIL_ZH = re.compile(
    r"(?:的?(?:数额|金额|数值|数据|情况|总体|整体|具体)*(?:的?(?:变化|发展|变动|增长|走势|趋势|增减)+.*|"
    r"(?:是|为(?=[\d多-])|达到|呈现|分别|如何|怎样|怎么|有多少|多少|最高|最低|最大|最小|最多|最少|超过|大于|小于|高于|"
    r"低于|在\d|排名).*))$"
)
_THING_ZH = re.compile(rf"^(?P<thing>[{CJK}A-Za-z0-9·*（）()\-]{{2,25}}?)(?:公司|集团)?(?:的|在(?=$))(?P<attr>.+)$")
_NO_THING = re.compile(
    r"类别|上述|以上|划分|每个|各个|集合|哪|\b(?:each|all|these|those|aforementioned|following|compan(?:y|ies))\b", re.I
)
_VERB_ZH = re.compile(
    r"收到|支付|取得|产生|处置|归属|购建|购买|销售|偿还|吸收|扣除|持有|计入|可供|用于|提供|属于|期末|期初"
)


def schema_of(question: str, names: Sequence[str] = ()) -> Schema:
    """What a question needs of every document: the attributes as it writes them; none where no rule tells.

    `names` are those of known things (the subjects of the documents at hand, `tables.thing_of`): where the question
    writes one, it is a thing that is asked about and no part of an attribute.
    """
    known = [name for name in sorted(set(names), key=len, reverse=True) if len(name) > 1 and name in question]
    known = [name for place, name in enumerate(known) if not any(name in longer for longer in known[:place])]
    for name in known if is_han(question) else ():
        question = re.sub(rf"{re.escape(name)}(?:公司)?的?", "", question)
    attributes = tuple(dict.fromkeys(found for match in _QUOTED.finditer(question) if (found := _quoted(match))))
    bare = _QUOTED.sub(" ", question) if attributes else question
    asked, things = _zh(bare, bool(known)) if is_han(bare) else _en(bare)
    if not attributes:
        attributes = tuple(part for phrase in asked for part in _parts(phrase))
    things = known or [thing for thing in things if not _NO_THING.search(thing)]
    return Schema(things=tuple(dict.fromkeys(things)), attributes=attributes, periods=periods_of(question))


def _quoted(match: re.Match[str]) -> str:
    return next(group for group in match.groups() if group is not None).strip()


def periods_of(question: str) -> tuple[str, ...]:
    """The years or quarters that a question names; a range with all between."""
    years = {int(match[1]) for match in _YEAR.finditer(question)}
    for match in _RANGE.finditer(question):
        years |= set(range(int(match[1]), min(int(match[2]), int(match[1]) + 60) + 1))
    quarter = _QUARTER.search(question)
    suffix = f"-Q{_QUARTERS[next(g for g in quarter.groups() if g).lower()]}" if quarter else ""
    return tuple(f"{year}{suffix}" for year in sorted(years))


def _en(question: str) -> tuple[list[str], list[str]]:
    text = _SOURCE_EN.sub("", " ".join(question.split()))
    text = _TIME_EN.sub(" ", text).strip()
    for pattern in _PATTERNS_EN:
        match = pattern.search(text)
        if not match:
            continue
        attribute = _cut_en(match["attr"])
        thing = (match.groupdict().get("thing") or "").strip(' ,.?"')
        if attribute and len(attribute.split()) <= 14:
            return [attribute], [thing] if thing and thing[0].isupper() else []
    return [], []


def _cut_en(phrase: str) -> str:
    before = ""
    while phrase != before:
        before, phrase = phrase, _TAIL_EN.sub("", _LEAD_EN.sub("", phrase.strip(" ,.?")))
    return phrase.strip(' ,.?"')


def _zh(question: str, is_named: bool) -> tuple[list[str], list[str]]:
    things: list[str] = []
    asked: list[str] = []
    for clause in re.split(r"[，,。；;？?！]", _TIME_ZH.sub("\x00", question)):
        text = clause.replace("\x00", "").strip()
        basis = _BASIS_ZH.match(text)
        if basis and not text.startswith("从"):
            thing = re.sub(r"^给定的|上述|公司|第?[一二三四]季度|的$", "", basis["basis"]).strip("的")
            things += [thing] if 1 < len(thing) <= 20 else []
            continue
        attribute, thing = _clause_zh(clause, is_named)
        things += [thing] if thing else []
        asked += [attribute] if attribute else []
    return asked[:1], things


def _clause_zh(clause: str, is_named: bool) -> tuple[str, str]:
    """(attribute, thing) of a clause; a time stands in it as NUL and parts the thing from the attribute.

    Where the thing is known already, a "的" is part of the attribute ("一年内到期的…").
    """
    before, mark, after = clause.partition("\x00")
    text = _TAIL_ZH.sub("", _LEAD_ZH.sub("", (after if mark and after.strip() else before).replace("\x00", "").strip()))
    thing = re.sub(r"公司$|在$|的$", "", _LEAD_ZH.sub("", before.strip())) if mark and after.strip() else ""
    match = None if is_named else _THING_ZH.match(text)
    if match and not _VERB_ZH.search(match["thing"]):
        thing, text = thing or re.sub(r"公司$", "", match["thing"]), match["attr"]
    asks = bool(thing) or _TAIL_ZH.search(clause) is not None
    text = re.sub(r"^(?:的|其(?![他中])|公司|在)+|(?:的|数额|金额|数值)$", "", text).strip()
    if not asks and not is_known(text):
        return "", ""
    if len(text) < 2 or re.fullmatch(r"(?:总体|整体|哪.*|请.*|什么.*|其(?![他中]).*)", text):
        return "", thing
    return text, thing if 1 < len(thing) <= 25 else ""


def _parts(phrase: str) -> list[str]:
    """The attributes that an "and" joins, where each of them is known by itself ("revenue and net income")."""
    parts = re.split(r",\s+(?:and\s+)?|\s+and\s+|以及|[、和与](?!现金等价物)", phrase)
    known = len(parts) > 1 and not is_known(phrase) and all(is_known(part) for part in parts)
    return parts if known and all(a != b for a, b in pairwise(parts)) else [phrase]
