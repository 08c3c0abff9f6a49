"""Question similarity: whether two questions ask the same of the same things (for ERM4's trigger).

Questions that differ in one name, one year or one relation are close in meaning and need different evidence: likeness
of meaning alone does not tell them apart. So each question is taken apart once, and two are compared part by part.

Chinese has no spaces and its names are often not in the graph: the longest stretches that both questions have are taken
out, then the words that ask, then function words. What is left on both sides was put in the other's place.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from functools import cache, lru_cache

from prompts.language.question import ask
from prompts.language.relation_words import likeness, meanings, sex_of
from prompts.language.words import CJK, STOPWORDS, WORD, content_terms, fold, is_han, word_terms
from storage.record import content_id
from tasks.traverse.cues import Cue, cues_around, cues_in

# One meaning a line, general words of questions; a word of the one question may stand for a word of the other.
_MEANINGS = """
设计 设计者 设计师 出自 之手
建造 修建 建成 兴建 竣工 完工 落成 始建 建于 造的 盖的 制造
创立 创办 成立 创建 创始 创始人 创办人 始创 开办 建立
造价 费用 花费 花了 成本 价格 售价 耗资 经费 多少钱 卖多少
收入 营收 营业额 营业收入
利润 盈利 赚 净利
出生 生于 诞生 出生年 哪里人 出生地
去世 逝世 死于 病逝 过世 死亡 遇难 丧生 身亡 遇害 死了
作者 撰写 编写 写的 写了 谁写 所写 著 作家 写作
导演 执导 拍摄 拍的
演唱 唱了 唱的 歌手 演唱者 主唱
全长 长度 多长 长达 有多长
高度 多高 海拔 有多高
重量 多重 有多重 重多少 公斤
速度 时速 最快 多快 最高时速 最大速度 跑多快
地点 举行 举办 举办地
源头 发源 发源地 发源于
产地 产自 出产 产于 生产 产品 出产的
通车 开通 启用 通行
容纳 座位 坐多少 坐得下
妻子 夫人 太太 老婆 娶 配偶
丈夫 先生 嫁
父亲 爸爸 生父
母亲 妈妈 生母
儿子 女儿 孩子 子女
老师 导师 师从
毕业 母校 就读 毕业于
奖 奖项 获奖 得过 获得 荣获
冠军 夺冠 获胜 赢得
人口 人数 多少人 游客 旅游 参加 参赛 接待
主编 总编
社长 负责人 主任 所长 馆长 院长 校长 领导 总裁
船长 掌舵
朝代 年代
发现 找到
公司 厂家 企业 厂商
面积 占地 多大面积
宽度 多宽
深度 多深
年龄 几岁 多少岁 岁数
国籍 哪国人
职业 从事
职务 职位 官职
哥哥 兄长
弟弟 胞弟
首都 国都
出版 发行 刊行
上映 首映 公映
票价 门票 入场费
电话 号码 联系方式
地址 住址 住在 居住
成员 队员 组员
目的 目标 宗旨
特点 特色 特征
用途 用处 功能 作用 用来 用于
组成 构成 包括 包含 分为
种类 类型 类别
来源 来自 取自
规模 大小
几点开门 开门时间 开放时间 营业时间
关闭 停业 倒闭 歇业
改名 更名 改称 改为
旧称 原名 曾用名 前身
搬迁 迁往 迁到 迁至 搬到
合并 并入
收购 买下 购得 并购
投资 出资
捐赠 捐出 捐助 捐献
发明 研制 研发 开发
击败 战胜 打败
就任 上任 就职 任职
退休 卸任 离任
得名 命名 取名
翻译 译者 译成 译为
主持 主管 负责
沉没 沉船
爆发 发生 出现
结束 终止 停止
开始 启动 开工 动工 始于
提出 倡导
原料 材料 用料
产量 年产 出产量
"""
_SHORT = frozenset("奖著娶嫁赚")
_ASKING = re.compile(
    "哪一年|哪年|何年|什么时候|何时|哪天|哪一天|年份|时间|日期|哪位|哪个人|何人|是谁|谁|哪里|哪儿|何处|什么地方|哪座城市|"
    "哪个城市|哪个国家|哪个地方|多少|几[个座名位张口艘条所间支种]?|有多[大高长重远深宽久快]|多[大高长重远深宽久快]|"
    "哪[一]?[个家座位部本首所支种条些]|什么|怎么|为什么|为何|叫什么名字|叫什么|名字"
)
_FILLER = re.compile(
    "位于|坐落|地处|设在|所在|请问|现任|现在|目前|如今|一共|总共|共有|分别|这[部本位座首个家所条]|那[部本位座首个家口条]|担任|主要|东西|"
    "[的了是在由于和与里中上内有被把为从呢吗过着地得时个座位次名之到给叫年能可以会并又也都这那所其将第 ]"
)
_NOT_HAN = re.compile(rf"[^{CJK}0-9a-z]+")
_MARK = "\ue000\ue000"
_RUN = 2  # characters that a shared stretch has at least
_LONGEST = 120  # characters of a question that are compared


@dataclass(frozen=True, slots=True)
class Compared:
    """What two questions share and have alone, in characters; `another`: they ask for or about something else."""

    shared: int
    one: str
    two: str
    another: bool

    @property
    def likeness(self) -> float:
        """0-1: the share of what is common; what stands on one side alone counts half of what was replaced."""
        alone = (len(self.one) + len(self.two)) / (1 if self.another else 2)
        return self.shared / (self.shared + alone) if self.shared else 0.0


@lru_cache(maxsize=1)
def _meaning_of() -> dict[str, int]:
    found: dict[str, int] = {}
    for number, line in enumerate(_MEANINGS.strip().splitlines()):
        for word in line.split():
            found.setdefault(word, number)
    return found


@lru_cache(maxsize=1)
def _word_pattern() -> re.Pattern[str]:
    return re.compile("|".join(sorted(map(re.escape, _meaning_of()), key=lambda one: (-len(one), one))))


@lru_cache(maxsize=20_000)
def compared(one: str, two: str) -> Compared:
    """The comparison of two questions, in either order."""
    first, second = (_NOT_HAN.sub("", fold(text))[:_LONGEST] for text in (one, two))
    mine, yours = _meanings(first), _meanings(second)
    same, first, second = _without_shared(first, second)
    before = _meanings(first) | _meanings(second)
    asked = _meanings(first) ^ _meanings(second)
    another = not asked <= mine & yours
    first, second = (_rest(text, mine & yours) for text in (first, second))
    return Compared(same + len(mine & yours & before), first, second, another or bool(first and second))


def _meanings(text: str) -> frozenset[int]:
    return frozenset(_meaning_of()[word] for word in _word_pattern().findall(text))


def _without_shared(one: str, two: str) -> tuple[int, str, str]:
    """Takes out the longest stretches that both have; their characters that say something, and what is left."""
    said = 0
    while True:
        match = SequenceMatcher(None, one, two, autojunk=False).find_longest_match()
        stretch = one[match.a : match.a + match.size]
        if match.size < _RUN or "|" in stretch:
            return said, one, two
        said += len(_FILLER.sub("", _ASKING.sub("", stretch)))
        one = one[: match.a] + "|" + one[match.a + match.size :]
        # Another mark: the marks themselves are never alike.
        two = two[: match.b] + "_" + two[match.b + match.size :]


def _rest(text: str, known: frozenset[int]) -> str:
    """What a side says alone: without words of a meaning that the other has too, words that ask, and fillers."""
    # A word of a meaning that the other lacks stays whatever it is made of, as two marks.
    text = _word_pattern().sub(lambda found: "" if _meaning_of()[found.group()] in known else _MARK, text)
    return _FILLER.sub("", _ASKING.sub("", text.replace("|", " ").replace("_", " ")))


_ORDINALS = dict(
    zip("first second third fourth fifth sixth seventh eighth ninth tenth".split(), map(str, range(1, 11)), strict=True)
)
_MONTHS = {
    name: f"m{number}"
    for number, name in enumerate(
        "january february march april may june july august september october november december".split(), 1
    )
}
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*|第[一二三四五六七八九十百]+|[a-z]+")
_HAN_DIGITS = {digit: str(value) for value, digit in enumerate("一二三四五六七八九十", 1)}
# What a word that asks, or the kind of thing asked for, may stand for: no relation by itself.
_KINDS = {
    **dict.fromkeys("where place citi town villag countri state locat spot site".split(), "place"),
    **dict.fromkeys("live stay address resid home".split(), "place"),
    **dict.fromkeys("when date year day time month".split(), "date"),
    **dict.fromkeys("why how caus reason".split(), "cause"),
}
# Relations that tell of a kind too: "what killed her" asks for no place.
_TELLING = {"kill": "cause", "die_from": "cause", "die_of": "cause"}
# They say little beside the relation that they stand with.
_LIGHT = frozenset("follow practic made make have belong".split())
_KIN = frozenset({"parent", "child", "spouse", "sibling"})
_FIGURES = frozenset({"number", "money"})  # "how long" asks for no cause
_VAGUE = frozenset({"name", "text"})


@dataclass(frozen=True, slots=True)
class Mention:
    """A stretch `start`..`end` of a question that names one of these entities."""

    start: int
    end: int
    entities: frozenset[str]


@dataclass(frozen=True)
class Question:
    """A question taken apart for comparison."""

    text: str
    mentions: tuple[Mention, ...] = ()
    names: frozenset[str] = frozenset()
    figures: frozenset[str] = frozenset()
    kinds: frozenset[str] = frozenset()
    relations: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    han: bool = False
    expects: str = field(default="text")


def taken_apart(text: str, mentions: Sequence[Mention]) -> Question:
    """The parts of a question; `mentions` are what it names, in its order."""
    cues = [] if is_han(text) else _cues(text, mentions)
    told, expects = _KINDS | _TELLING, ask(text).expects
    kinds = {told[cue.key] for cue in cues if cue.key in told and not (cue.key == "how" and expects in _FIGURES)}
    return Question(
        text=text, mentions=tuple(mentions), names=frozenset(name for one in mentions for name in one.entities),
        figures=_figures(text), kinds=frozenset(kinds),
        relations=tuple(cue.key for cue in cues if cue.key not in _KINDS and not cue.asking),
        words=_words(text), han=is_han(text), expects=expects,
    )  # fmt: skip


def differs(one: Question, two: Question) -> str:
    """In which part two questions do not ask the same: "language", "names", "figures", "kind", "relation"; "" in
    none.

    A part that only one of them tells of, such as the kind of thing asked for, is no difference.
    """
    checks: tuple[tuple[str, Callable[[Question, Question], bool]], ...] = (
        ("language", lambda mine, yours: mine.han != yours.han),
        # Chinese names are found here and not there: they are compared as text, with the rest.
        ("names", lambda mine, yours: not mine.han and mine.names != yours.names),
        ("figures", lambda mine, yours: mine.figures != yours.figures),
        ("kind", _other_kind),
        ("relation", _other_relation),
    )
    return next((part for part, other in checks if other(one, two)), "")


def alike(one: Question, two: Question) -> float:
    """Likeness of two questions by their words (0-1): for texts that the embedder cannot read."""
    if one.han and two.han:
        return compared(one.text, two.text).likeness
    if not one.words or not two.words:
        return 0.0
    mine = sum(max(likeness(word, other) for other in two.words) for word in one.words)
    yours = sum(max(likeness(word, other) for other in one.words) for word in two.words)
    return (mine + yours) / (len(one.words) + len(two.words))


def _cues(text: str, mentions: Sequence[Mention]) -> list[Cue]:
    """The words around the first name that may ask for relations, in the order in which they lead away from it."""
    if not mentions:
        return list(cues_in(text))
    blank = "".join(" " if any(one.start <= at < one.end for one in mentions[1:]) else c for at, c in enumerate(text))
    return list(cues_around(blank, mentions[0].start, mentions[0].end).orders()[0])


@lru_cache(maxsize=20_000)
def _figures(text: str) -> frozenset[str]:
    """Numbers, ordinals and months, in one writing; "May" only with a figure beside it."""
    found: set[str] = set()
    folded = fold(text)
    for match in _NUMBER.finditer(folded):
        word = match.group()
        if word[0].isdigit():
            found.add(word.replace(",", ""))
        elif word[0] == "第":
            found.add("".join(_HAN_DIGITS.get(digit, digit) for digit in word[1:]))
        elif word in _ORDINALS:
            found.add(_ORDINALS[word])
        elif word in _MONTHS and (word not in {"may", "march"} or text[match.start()].isupper()):
            found.add(_MONTHS[word])
    return frozenset(found)


def _words(text: str) -> tuple[str, ...]:
    found = (term for word in WORD.findall(fold(text)) if word not in STOPWORDS for term in word_terms(word))
    return tuple(dict.fromkeys(found))


def _other_kind(one: Question, two: Question) -> bool:
    if one.kinds and two.kinds:
        return not one.kinds & two.kinds
    wanted = {one.expects, two.expects}
    return len(wanted - _VAGUE) == 2 and not (one.kinds or two.kinds)


def _other_relation(one: Question, two: Question) -> bool:
    if one.han:
        return compared(one.text, two.text).another
    if _other_relations(one.relations, two.relations):
        return True
    return not one.names and _other_words(one.words, two.words)


def _other_relations(mine: Sequence[str], yours: Sequence[str]) -> bool:
    """Whether the two ask for other relations, or for the same in another order.

    What the lexicon knows must have its like, in the same place; what it does not know may have none.
    """
    first, second = _grouped(mine), _grouped(yours)

    @cache
    def agrees(one: int, two: int) -> bool:
        if one == len(first) and two == len(second):
            return True
        here = first[one] if one < len(first) else ()
        there = second[two] if two < len(second) else ()
        fit = here and there and (_same_group(here, there) or not (_known(here) or _known(there)))
        if fit and agrees(one + 1, two + 1):
            return True
        return bool(here and not _known(here) and agrees(one + 1, two)) or bool(
            there and not _known(there) and agrees(one, two + 1)
        )

    return not agrees(0, 0)


def _grouped(words: Sequence[str]) -> list[tuple[str, ...]]:
    """Neighbouring words of one meaning together ("educational institution"); relatives lead on one by one."""
    groups: list[tuple[str, ...]] = []
    for word in words:
        if word in _LIGHT:
            continue
        last = groups[-1][-1] if groups else ""
        if last and last != word and likeness(word, last) > 0 and not meanings(word) & _KIN:
            groups[-1] += (word,)
        else:
            groups.append((word,))
    return groups


def _known(group: Sequence[str]) -> bool:
    return any(meanings(word) for word in group)


def _same_group(one: Sequence[str], two: Sequence[str]) -> bool:
    return any(_same(word, other) for word in one for other in two)


def _other_words(mine: Sequence[str], yours: Sequence[str]) -> bool:
    """Whether each of two questions that name nothing has a word that is like none of the other's."""
    return not all(any(_same(word, other) for other in yours) for word in mine) and not all(
        any(_same(word, other) for other in mine) for word in yours
    )


def _same(word: str, other: str) -> bool:
    sexes = {sex_of(word), sex_of(other)} - {""}
    return len(sexes) < 2 and likeness(word, other) > 0


def keys(question: Question) -> tuple[str, ...]:
    """By what a question is looked up: one that asks the same shares a key with it.

    Names must agree, so all of them together are one key; where they are not found alike (Chinese) or there are none,
    each word is one.
    """
    if question.names and not question.han:
        return (content_id("n", *sorted(question.names)),)
    found = content_terms(question.text) or list(question.words)
    return tuple(f"w_{term}" for term in dict.fromkeys(found))
