"""What does a Chinese question ask for?"""

import re

from prompts.language.asked import Ask, Direction, Expected, Form

_FORMS: tuple[tuple[Form, str], ...] = (
    ("connect", r"(?:有什么|什么|有何|有哪些|之间的?)(?:关系|联系|关联|共同|相同)|(?:如何|怎样)(?:关联|联系)"),
    ("summary", r"总结|概括|概述|归纳|摘要|综述|主要内容|讲了什么|主要讲"),
    ("howto", r"如何|怎样|怎么(?!样|评价|看)|步骤|流程|应该做什么|需要做什么"),
    ("global", r"(?:所有|全部|整个|这些)(?:文档|资料|文件|文集|材料)|共同的?(?:主题|问题|特点)|主题是|反复出现"),
    ("about", r"介绍(?:一下)?|^(?:什么是|何谓)|^[^，。？?的]{2,24}(?:是什么|是谁)[?？]?$|讲讲|谈谈"),
    ("yesno", r"是否|是不是|有没有|能否|可否|吗[?？]?$"),
)
_DIRECTIONS: tuple[tuple[Direction, str], ...] = (
    ("max", r"最(?:高|大|多|长|晚|新|远|重|快|好|宽|深)|更(?:高|大|多|长|晚|新|远|重|快|好|宽|深)"),
    ("min", r"最(?:低|小|少|短|早|旧|近|轻|慢|窄|先)|更(?:低|小|少|短|早|旧|近|轻|慢|窄)|谁先|哪个先"),
)
_EXPECTED: tuple[tuple[Expected, str], ...] = (
    ("text", r"为什么|为何|什么原因|原因是什么"),
    ("money", r"多少(?:钱|元|美元|克朗|经费)|(?:费用|造价|价格|收入|成本|花费)(?:是|为|有)?多少"),
    ("date", r"什么时候|何时|哪(?:一)?年|哪(?:一)?天|几年|几月|什么时间|哪个?月|时间是|哪个?(?:年代|世纪)"),
    ("number", r"多少|几[个位名次座艘岁口年天条种]|多[长高大宽深远重久]"),
    ("place", r"哪里|哪儿|何处|何地|什么地方|在哪|哪些?个?(?:城市|国家|省|县|镇|地方|地区)|位于"),
    ("person", r"谁|哪位|何人|哪个人|什么人"),
)
_SEVERAL = re.compile(r"哪些|哪[两三四五六七八九十几]|几种|有什么(?!用|意义)")
_ASKED_OF = re.compile(r"(?:，|,)?(?:相比|之间|两者|二者|中|里)?(?:，|,)?(?:谁|哪一?[个座家条艘部种所]).*$")
_NOUN = re.compile(
    r"哪(?:一?[个家位所座种条艘部项类支]|些|[两三四五六七八九十几][个家位所座种条艘部项类支])(?!主要)([\u4e00-\u9fff]{2})"
)
_TOGETHER = re.compile(
    r"^(?P<one>[^，。？?]{2,20}?)(?:和|与|跟)(?P<two>[^，。？?]{2,20}?)(?:是否都|是不是都|都是|都在|都有|是否同|是同一)"
)
_SHARED = re.compile(r"^(?P<one>[^，。？?]{2,20}?)(?:和|与|跟)(?P<two>[^，。？?]{2,20}?)(?:之间)?(?:有|的)")


def ask_zh(text: str) -> Ask:
    """Take a Chinese question apart; white space in it is folded already."""
    direction: Direction = next((side for side, pattern in _DIRECTIONS if re.search(pattern, text)), "")
    form = next((form for form, pattern in _FORMS if re.search(pattern, text)), None)
    options = _choice(text, direction)
    if form in {None, "about"} and (options or (direction and re.search(r"哪|谁", text))):
        form = "compare"
    if form in {"yesno", "connect"}:
        options = _pair(text, form)
    several = _SEVERAL.search(text) is not None
    form = form or ("list" if several else "fact")
    return Ask(text, True, form, _expected(text, form), _noun(text), options, direction, several)


def _choice(text: str, direction: Direction) -> tuple[str, ...]:
    """The things to choose between: "…还是…" anywhere, "…和…哪个…" where something is compared."""
    bare = text.rstrip("?？")
    if "还是" in bare:
        # Of several clauses the one that chooses: "…，是甲、乙还是丙".
        clause = next(part for part in re.split(r"[，,：:]", bare) if "还是" in part)
        return tuple(re.sub(r"^是|更.$", "", part) for part in re.split(r"还是|、", clause) if part)
    if not direction or not _ASKED_OF.search(bare):
        return ()
    named = _ASKED_OF.sub("", bare)
    parts = [part for part in re.split(r"和|与|跟|、|或者?", named) if part]
    return tuple(parts) if len(parts) > 1 and all(len(part) <= 20 for part in parts) else ()


def _pair(text: str, form: Form) -> tuple[str, ...]:
    """The two things that are said or asked something of together."""
    found = (_TOGETHER if form == "yesno" else _SHARED).search(text)
    return (found["one"], found["two"]) if found else ()


def _noun(text: str) -> str:
    """The kind of thing that "哪个…" asks for, by its first two characters."""
    found = _NOUN.search(text)
    return found[1] if found else ""


def _expected(text: str, form: Form) -> Expected:
    if form == "yesno":
        return "yesno"
    if form in {"howto", "summary", "global", "about", "connect"}:
        return "text"
    return next((kind for kind, pattern in _EXPECTED if re.search(pattern, text)), "name")
