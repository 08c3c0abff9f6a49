"""Which plan over tables does a Chinese question ask for?"""

import re

from prompts.language.table_bands import band_of, figures_in
from prompts.language.table_bounds import bands_of
from prompts.language.table_plan import Measure, Operation, Order, TablePlan
from prompts.language.table_wording import Planned, cleaned, periods_in, without_periods_zh

_QUOTED = re.compile(r"['\"‘“「]\s*(?P<quoted>[^'\"‘’“”「」]{1,60}?)\s*['\"’”」]")
_SOURCE = re.compile(
    r"^(?:请问|请回答|请告诉我|请|根据|依据|基于|按照|结合)*[^，,]{0,60}?(?:财报|报告|报表|数据|信息|资料|文件|表格)"
    r"(?:信息|数据|资料|中|里|显示|的信息|内容)*[，,]\s*"
)
_POLITE = re.compile(r"^(?:请问|请回答|请告诉我|请你|请|试问|想知道)+\s*[，,]?\s*")
_ALL = (
    r"(?:上述|以上|这些|所有|各|每一?(?:个|家)|每|全部|给定的?)*(?:的)?"
    r"(?:公司|企业|机构|银行|文档|报告|集团|单位)+(?:的|财报|报告)*"
)
_UNIT = r"(?:家|个|条|座|所|只|位|项|种|支|艘|间)"
_COMPANY_WORD = re.compile(r"(?:这家|该)?(?:股份有限|有限|集团)?公司$")

_CLASSIFY = re.compile(
    r"(?:按照?|根据|依据|以)\s*(?P<attribute>[^，,。:：]+?)\s*(?:的(?:大小|高低|多少|金额))?\s*(?:进行|来|作)?"
    r"(?:划分|分类|分组|归类|分为|分成|划成)[^:：]*?[:：]?\s*(?P<classes>[^:：]*[(（].*[)）].*)$"
)
_CLASS = re.compile(r"(?P<name>[^,，;；、:：()（）。]+?)\s*[(（](?P<range>[^()（）]*)[)）]")


def planned_zh(text: str) -> Planned | None:
    """As `table_question.plan_of`."""
    for form in (_classify, _trend, _count, _top, _list, _aggregate, _which, _lookup):
        plan = form(text.rstrip(" ？?。."))
        if plan is not None:
            return plan
    return None


def _classify(text: str) -> Planned | None:
    match = _CLASSIFY.search(text)
    if match is None:
        return None
    classes = [
        (re.sub(r"^(?:和|以及|及|划分成|分成)", "", one["name"]).strip(), one["range"])
        for one in _CLASS.finditer(match["classes"])
    ]
    bands = bands_of(classes)
    if not bands:
        return None
    return _planned("classify", match["attribute"], text, bands=bands, sure=len(bands) == len(classes))


_TRENDED = re.compile(
    r"(?:是)?(?:如何|怎样|怎么|有何|有什么|有怎样的)(?:变化|发展|变动|演变|增长|增减)|(?:变化|发展|变动|增长|增减|总体)?"
    r"(?:趋势|走势|情况)|呈现(?:了|出)?|(?P<measure>增长了多少|增加了多少|减少了多少|下降了多少|增长率|增幅|变化了多少)"
)


def _trend(text: str) -> Planned | None:
    trended = _TRENDED.search(text)
    periods = periods_in(text)
    if trended is None or len(periods) < 2:
        return None
    said = trended["measure"] or ""
    measure: Measure = "growth" if "率" in said or "幅" in said else "difference" if said else ""
    plain = _SOURCE.sub("", text)
    end = _TRENDED.search(plain)
    asked = _strip(plain[: end.start()] if end and end.start() else plain)
    thing, attribute = _owned(asked)
    source = _before_periods(text)
    if source and thing != source:  # its 的 is the attribute's own: "投资活动产生的现金流量净额"
        thing, attribute = source, without_periods_zh(asked)
    things = (thing,) if thing else ()
    return _planned("trend", attribute, text, things=things, periods=periods, measure=measure, sure=bool(thing))


def _before_periods(text: str) -> str:
    """The name that stands before or after the years in "根据洋河股份2022年、2023年的财报"."""
    source = _SOURCE.match(text)
    if source is None:
        return ""
    named = re.sub(
        r"(?:一季度|季度|年度|季|给定|财报|年报|季报|报告|报表|财务|数据|信息|资料|[第的，,。]|\s)+",
        " ",
        without_periods_zh(source[0]),
    )
    return cleaned(re.sub(r"^(?:请问|请|根据|依据|基于|按照|结合|在|从)+", "", named.strip()))


_COUNT = re.compile(
    rf"(?:有|共有|求)?(?:多少|几){_UNIT}?(?P<noun>[\u4e00-\u9fff]{{2,4}}?)(?:的)\s*(?P<attribute>.+?)\s*(?:是|在|为)?"
    r"(?P<range>(?:大于|高于|超过|多于|小于|低于|少于|不低于|不超过|至少|至多|等于|介于|在)?\s*[-\d$¥].*)$|"
    r"(?P<attribute2>.+?)\s*(?:在|是|为)?\s*(?P<range2>(?:大于|高于|超过|多于|小于|低于|少于|不低于|不超过|至少|至多|等于)?\s*[-\d$¥][^的]*?)\s*"
    rf"的(?P<noun2>[\u4e00-\u9fff]{{2,4}}?)(?:数量|个数|家数|总数|数目)?(?:是|有|为|共有)?(?:多少|几)?{_UNIT}?$"
)
_NUMBER_ASKED = re.compile(r"数量|个数|家数|总数|数目|多少[家个条座]|几[家个条座]")


def _count(text: str) -> Planned | None:
    match = _COUNT.search(text) if _NUMBER_ASKED.search(text) else None
    if match is None:
        return None
    side = "" if match["attribute"] else "2"
    band = band_of(match[f"range{side}"])
    if band is None:
        return None
    return _planned("count", match[f"attribute{side}"], text, noun=match[f"noun{side}"], bands=(band,))


_MOST = re.compile(r"最(?P<most>高|大|多|长|强|低|小|少|短|弱)|(?:第一|居首)|更(?P<more>高|大|多|长|低|小|少|短)")
_DIGITS = {digit: number for number, digit in enumerate("一二三四五六七八九十", 1)} | {"两": 2}
_MANY = re.compile(r"(?:前|最[高大多低小少]的)\s*(?P<many>\d{1,2}|[一两二三四五六七八九十])\s*(?:名|家|个|位|条|座)?")
_ASKED_WHICH = re.compile(
    rf"(?:是)?哪一?[几两三四五]?{_UNIT}?(?P<noun>[\u4e00-\u9fff]{{2,4}}?)?(?:的|$|是|在|，|,)|谁的?|(?:公司|企业|银行)是(?:谁|哪)"
)


def _top(text: str) -> Planned | None:
    most = _MOST.search(text)
    if most is None or not re.search(r"哪|谁|前\s*[\d一两二三四五六七八九十]|名称", text):
        return None
    order: Order = "ascending" if (most["most"] or most["more"] or "") in set("低小少短弱") else "descending"
    many = _MANY.search(text)
    count = (_DIGITS.get(many["many"], 0) or int(many["many"])) if many else 1
    options = re.match(r"^(?P<all>[^，,的]+?(?:[、和与跟][^，,的、]+)+)(?:[，,]|中|之间|的|相比)", _strip(text))
    things = tuple(re.split(r"[、和与跟]", options["all"])) if options and "哪些" not in text else ()
    rest = _strip(text)[options.end() :] if things and options else _strip(text)
    attribute = rest[: found.start()] if (found := _MOST.search(rest)) else rest
    noun = re.search(rf"哪(?:一?{_UNIT})?(?![一些])([\u4e00-\u9fff]{{2}}?)(?=的|$|是)", text) or re.search(
        r"的(公司|企业|银行|线路|桥梁|文档)", text
    )
    attribute = re.sub(rf"^.*?(?:哪一?[几两三四五]?{_UNIT}?[\u4e00-\u9fff]{{0,4}}?|谁)的", "", attribute)
    attribute = re.sub(rf"^{_ALL}中?[，,]?", "", attribute)
    return _planned("top", attribute, text, noun=noun[1] if noun else "", order=order, many=count, things=things)


_ORDERED = re.compile(
    r"(?P<up>递增|升序|从小到大|从低到高|由低到高|由小到大|从少到多)|(?P<down>递减|降序|从大到小|从高到低|由高到低|由大到小|从多到少)|排序|排列|排名"
)
_LISTED = re.compile(r"列举|列出|排列|排序|排名|给出")


def _list(text: str) -> Planned | None:
    ordered = _ORDERED.search(text)
    if ordered is None or not _LISTED.search(text):
        return None
    order: Order = "ascending" if ordered["up"] else "descending"
    quoted = _QUOTED.search(text)
    rest = re.sub(
        rf"(?:请|将|把|对)|(?:按照?|以|根据)?(?:{_ORDERED.pattern})(?:的?顺序|方式)?(?:地)?|{_LISTED.pattern}|{_ALL}|^按照?|的?顺序|[，,]",
        "", _strip(text),
    )  # fmt: skip
    return _planned("list", quoted["quoted"] if quoted else rest.strip("的 "), text, order=order)


_AGGREGATE = re.compile(
    rf"{_ALL}(?P<attribute>[^，,]+?)(?:的)?(?P<measure>总和|合计|之和|总计|总额|平均值|平均数|平均|均值)(?:是|为|有)?(?:多少)?$|"
    rf"{_ALL}的?(?P<measure2>平均)(?P<attribute2>[^，,]+?)(?:是|为)多少$|"
    r"^(?P<thing>[^的，,]+?)(?:和|与|跟)(?P<other>[^的，,]+?)的(?P<attribute3>[^，,]+?)(?:的)?(?:相差|差额|差距|之差|差)(?:是|为)?(?:多少)?$"
)


def _aggregate(text: str) -> Planned | None:
    match = _AGGREGATE.search(_strip(text))
    if match is None:
        return None
    if match["thing"]:
        things = (match["thing"], match["other"])
        return _planned("aggregate", match["attribute3"], text, measure="difference", things=things)
    if match["measure2"]:
        return _planned("aggregate", match["attribute2"], text, measure="average")
    measure: Measure = "average" if match["measure"].startswith(("平均", "均")) else "sum"
    return _planned("aggregate", match["attribute"], text, measure=measure)


_WHICH = re.compile(
    r"哪一?(?:家|个|条|座)(?P<noun>[\u4e00-\u9fff]{2}?)的?(?P<attribute>.+?)(?:是|为|等于|达到)\s*(?P<figure>[-−(（]?\s*[¥$]?\s*[-−]?\d.*)$|"
    r"(?P<attribute2>.+?)\s*(?:是|为|等于|达到)\s*(?P<figure2>[-−(（]?\s*[¥$]?\s*[-−]?\d[^的]*?)\s*的(?P<noun2>公司|企业|[\u4e00-\u9fff]{2})"
)


def _which(text: str) -> Planned | None:
    match = _WHICH.search(_strip(text)) if re.search(r"哪|名称|谁", text) else None
    if match is None:
        return None
    side = "" if match["attribute"] else "2"
    figures = figures_in(match[f"figure{side}"])
    if not figures:
        return None
    number = figures[0].number
    band = band_of(figures[0].text, figures[0].text)
    if band is None or band.low != number:
        return None
    return _planned("which", match[f"attribute{side}"], text, noun=match[f"noun{side}"], bands=(band,))


_LOOKUP = re.compile(
    r"^(?P<asked>.+?的.+?)(?:分别)?(?:是|为|有|达到?了?)?(?:多少|几何|什么数值)(?:元|万元|亿元|股|人|人次|辆|米|吨)?$"
)


def _lookup(text: str) -> Planned | None:
    match = _LOOKUP.search(_strip(_SOURCE.sub("", text)))
    if match is None:
        return None
    thing, attribute = _owned(_strip(match["asked"]))
    if not thing:
        return None
    things = tuple(_company(one) for one in re.split(r"[、和与](?=[\u4e00-\u9fffA-Za-z]{2})", thing))
    return _planned("lookup", attribute, text, things=things)


def _owned(asked: str) -> tuple[str, str]:
    """(thing, attribute) of "A的B"; the attribute may hold more of these words."""
    plain = without_periods_zh(asked).strip("，, ")
    thing, mark, attribute = plain.partition("的")
    if not mark or not attribute:
        return "", plain
    return _company(cleaned(thing)), attribute


def _company(name: str) -> str:
    short = _COMPANY_WORD.sub("", name)
    return short if len(short) > 1 else name


def _strip(text: str) -> str:
    return without_periods_zh(_POLITE.sub("", text)).strip("，, ")


def _planned(operation: Operation, attribute: str, text: str, *, sure: bool = True, **more: object) -> Planned | None:
    quoted = _QUOTED.search(text)
    named = quoted["quoted"] if quoted else without_periods_zh(attribute)
    name = cleaned(re.sub(r"(?:的)?(?:总体)?$|^(?:其(?!他|中)|的|按照?|中)+", "", cleaned(named)))
    if not name or len(name) > 60:
        return None
    more.setdefault("periods", periods_in(text))
    return Planned(TablePlan.model_validate({"operation": operation, "attribute": name, **more}), sure)
