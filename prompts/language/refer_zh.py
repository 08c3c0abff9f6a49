"""What does a Chinese question mean by 她, 它的长度, 该公司 or 后者, and what does 那2022年呢？ leave out?"""

import re
from collections.abc import Sequence

from prompts.language.antecedents import Refers, distinct, found_for, latest
from prompts.language.mentions import Mention, Turn, groups_of, named
from prompts.language.names_zh import kind_of
from prompts.language.question import ask
from prompts.language.refer import Resolved, pair_of

_PRONOUN = re.compile(
    r"(?P<several>他们|她们|它们|两人|二人|两者(?!之间)|二者(?!之间))|(?P<person>[他她])(?!们|人)|(?P<thing>它)(?!们)|"
    r"(?<=[，？?])(?P<its>其)(?=[^他中实余它次])|^(?P<own>其)(?=[^他中实余它次])"
)
_ORDERED = re.compile(
    r"(?P<first>前者|第一个(?=[是在有的，？?]))|(?P<second>后者|第二个(?=[是在有的，？?]))|(?P<other>另(?:外)?一(?:个|座|家|位|条|所))"
)
_MEASURE = "个座家位条所部本艘项届种名支架首幅栋份篇场款间"
_POINTED = re.compile(rf"(?:(?:这|那|此)[{_MEASURE}]|该|本(?=公司|市|省|校|院))(?P<noun>[\u4e00-\u9fff]{{1,6}})")
_NOUNS: dict[str, tuple[str, ...]] = {
    "organisation": (
        "公司",
        "企业",
        "集团",
        "机构",
        "组织",
        "学校",
        "大学",
        "学院",
        "研究所",
        "银行",
        "博物馆",
        "酒厂",
        "厂",
    ),
    "place": (
        "城市",
        "市",
        "地方",
        "国家",
        "省",
        "县",
        "镇",
        "村",
        "大桥",
        "桥",
        "湖",
        "河",
        "山",
        "岛",
        "港口",
        "大坝",
        "建筑",
    ),
    "person": ("人", "作家", "设计师", "工程师", "导演", "画家", "科学家", "演员", "诗人", "音乐家", "建筑师"),
    "work": ("小说", "书", "电影", "作品", "歌", "画", "剧"),
}
# What may be called so whatever its own name says it is.
_GENERIC = frozenset("公司 企业 机构 组织 地方 建筑".split())
_TAIL = re.compile(r"呢[？?。]*$")
_LED = re.compile(r"^(?:那么|那|还有|以及|另外|而|至于|然后)[，,]?(?!个|座|家|位|条|里|年|时|些)")
_YEAR = re.compile(r"(?:\d{4}|[一二三四五六七八九〇零]{4})年(?:\d{1,2}月)?(?:第[一二三四]季度|上半年|下半年|底|初)?")
_STEP = re.compile(r"^(?P<back>前一年|上一年|之前一年)|^(?:后一年|下一年|第二年|之后一年)")
_WHY = re.compile(r"^(?:为什么|为何|什么时候|何时|在哪里|在哪|哪里|怎么|怎样|如何|谁|多少)$")
_ASKING = re.compile(r"什么时候|何时|哪一?年|在?哪里|在?哪儿|是谁|谁|为什么|怎样|怎么|如何|多少|什么")
_OF = re.compile(
    r"^(?P<owner>.+?)的(?P<noun>[^的？?，]{1,8}?)(?P<rest>(?:有|是|为)?(?:多少|谁|什么|哪里|哪位|几|怎样|如何).*)$"
)
_COMPARES = re.compile(r"^(?:那么?)?(?:哪一?[个座家位条艘]|谁)(?:[更最]|[^？]{0,6}(?:[更最先早晚]))")
_WHO = re.compile(r"(?:[人者长员师家任]|上一?届|作者|导演|主席|总统|总裁)$")
_MEASURED = re.compile(r"[度积口量值率数价]$|收入|费用|成本|利润|造价|价格|工资|年龄|身高|体重|人数")


def resolve_zh(question: str, turns: Sequence[Turn]) -> Resolved:
    """The question by the conversation; as it is where it points to nothing outside itself."""
    found = Resolved(question)
    _ordered(found, turns)
    _pointed(found, turns)
    _pronoun(found, turns)
    return found


def whole_zh(question: str, turns: Sequence[Turn]) -> str:
    """A part of a question with what it leaves out filled in from the last one."""
    asked = next((turn for turn in reversed(turns) if turn.is_question), None)
    if asked is None:
        return question
    if _COMPARES.match(question):
        return _compared(question, asked)
    if not is_part_zh(question):
        return question
    # "他呢？在哪里出生？": what is asked stands after it.
    said, _, more = question.partition("呢")
    part, more = _LED.sub("", said).strip("，, ？?"), more.strip("，,？?。 ")
    if more:
        return f"{part}{more}？"
    body = asked.text.rstrip("？?。 ")
    return (
        _in_time(part, body) or _other_word(part, body) or _of_its_own(part, body, asked, turns) or _other(part, asked)
    )


def _compared(question: str, asked: Turn) -> str:
    """ "哪个更大？" of the things compared before."""
    options = ask(asked.text).options or tuple(name.text for group in groups_of(asked) for name in group)
    return f"{'和'.join(options)}{question}" if len(options) > 1 else question


def is_part_zh(question: str) -> bool:
    """Whether a question is only a part of one, which nobody can answer without the one before."""
    said, ends, more = question.partition("呢")
    part = _LED.sub("", said).strip("，, ？?")
    if not ends:
        return bool(_YEAR.fullmatch(part) or _WHY.match(part)) and not more
    return bool(_WHY.match(part)) or _ASKING.search(part) is None


def _in_time(part: str, body: str) -> str:
    held = list(_YEAR.finditer(body))
    step = _STEP.match(part)
    if step and held:
        year = int(held[-1].group()[:4]) + (-1 if step["back"] else 1) if held[-1].group()[:4].isdigit() else None
        return f"{body[: held[-1].start()]}{year}年{body[held[-1].end() :]}？" if year else ""
    found = _YEAR.fullmatch(re.sub(r"^(?:在|到)|(?:的时候|时)$", "", part))
    if found is None:
        return ""
    if held:
        return f"{body[: held[-1].start()]}{found.group()}{body[held[-1].end() :]}？"
    return f"{found.group()}{body}？"


def _other_word(part: str, body: str) -> str:
    """The last question with another question word."""
    if not _WHY.match(part):
        return ""
    asking = _ASKING.search(body)
    if asking is None:
        return f"{part}{body}？"
    return f"{body[: asking.start()]}{part}{body[asking.end() :]}？"


def _of_its_own(part: str, body: str, asked: Turn, turns: Sequence[Turn]) -> str:
    """Another thing asked of what the last question was about: "创始人呢？", "它的面积呢？"."""
    owner, joint, noun = part.rpartition("的")
    if not joint:
        noun = part
        if [name for name in named(part) if name.kind != "thing"] or not _asks_for(noun):
            return ""
    subject = owner
    if not owner or _PRONOUN.fullmatch(owner):
        refers: Refers = "person" if owner in {"他", "她"} else "several" if owner.endswith("们") else "thing"
        names = found_for(refers, noun, turns)
        subject = names[0].text if names else ""
    if not subject:
        return ""
    held = _OF.match(body)
    same = held is not None and _asks_for(held["noun"]) == _asks_for(noun)
    rest = held["rest"] if held is not None and same else _asks_for(noun) or "是什么"
    if held is not None and same and subject != owner and subject in held["owner"]:
        subject = held["owner"]  # with the year that was asked of
    return f"{subject}的{noun}{rest}？"


def _asks_for(noun: str) -> str:
    """How a thing of a thing is asked for; empty for a noun that is none as far as we know."""
    return "是谁" if _WHO.search(noun) else "是多少" if _MEASURED.search(noun) else ""


def _other(part: str, asked: Turn) -> str:
    """The last question of another thing: in the place of the name that is most like it."""
    body = asked.text.rstrip("？?。 ")
    if not asked.names or not named(part):
        return f"{part}：{body}？"
    kind = kind_of(part)

    def unlike(old: Mention) -> tuple[bool, bool]:
        return old.text[-1] != part[-1], (old.kind or "thing") != kind

    old = min(asked.names, key=unlike)
    start, end = old.start, old.end
    if old.kind == "work":
        inside = body[start - 1 : start] == "《"
        start, end = (start - 1, end + 1) if inside and "《" in part else (start, end)
    return f"{body[:start]}{part}{body[end:]}？"


def _ordered(found: Resolved, turns: Sequence[Turn]) -> None:
    match = _ORDERED.search(found.text)
    if match is None:
        return
    pair = pair_of(turns)
    if len(pair) < 2:
        if match.group() in {"前者", "后者"}:
            found.missing.append(match.group())
        return
    said = {name.text for name in turns[-1].names}
    other = next((one for one in pair if one.text not in said), pair[1])
    name = other if match["other"] else pair[0] if match["first"] else pair[1]
    found.text = f"{found.text[: match.start()]}{name.text}{found.text[match.end() :]}"


def _pointed(found: Resolved, turns: Sequence[Turn]) -> None:
    """ "该公司", "这座城市": the last name that ends so, or which is of that kind."""
    match = _POINTED.search(found.text)
    if match is None or named(found.text[: match.start()]):
        return
    if any(name.start == 0 and len(name.text) > 3 for name in named(found.text[match.start("noun") :])):
        return  # "这个鲤鱼门天后庙" says its name
    names = sorted(distinct(turns), key=lambda name: (latest(turns) - name.turn, not name.asked))
    for length in range(len(match["noun"]), 1, -1):  # the longest noun that a name ends with: "这份报告"
        called = [name for name in names if name.text.endswith(match["noun"][:length]) and len(name.text) > length]
        if called:
            found.text = f"{found.text[: match.start()]}{called[0].text}{found.text[match.start('noun') + length :]}"
            return
    for kind, nouns in _NOUNS.items():
        noun = next((one for one in nouns if match["noun"].startswith(one)), None)
        if noun is None:
            continue
        ends = match.start("noun") + len(noun)
        fitting = [name for name in names if name.text.endswith(noun)] or [name for name in names if name.kind == kind]
        if noun in _GENERIC:
            sorts = {"", "thing", "organisation"} if kind == "place" else {"", "thing"}
            fitting = fitting or [name for name in names if name.asked and name.kind in sorts]
        if fitting:
            found.text = f"{found.text[: match.start()]}{fitting[0].text}{found.text[ends:]}"
        else:
            found.missing.append(found.text[match.start() : ends])
        return


def _pronoun(found: Resolved, turns: Sequence[Turn]) -> None:
    for match in reversed(list(_PRONOUN.finditer(found.text))):
        before = [name for name in named(found.text[: match.start()]) if name.kind != "person" or not match["thing"]]
        if before:
            continue
        refers: Refers = "person" if match["person"] else "several" if match["several"] else "thing"
        names = found_for(refers, found.text, turns)
        if not names:
            found.missing.insert(0, match.group())
            continue
        if len(names) > 1:
            found.several[match.group()] = tuple(name.text for name in names)
        owns = "的" if match["its"] or match["own"] else ""
        found.text = f"{found.text[: match.start()]}{names[0].text}{owns}{found.text[match.end() :]}"
