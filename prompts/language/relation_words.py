"""Do a word of a question and a word of a relation's name mean the same? ("kid" and `children`, "born" and `birth`)

A general lexicon of the words that people and graphs use for relations; nothing in it comes from any one graph.
"""

import re
from collections import defaultdict
from functools import lru_cache

from prompts.language.words import HAN_RUN, fold, is_han, stem

SAME, SYNONYM, DERIVED = 1.0, 0.9, 0.8
_LEAST_SHARED = 5  # letters that two words of one family begin with
_AGENT = re.compile(r"(?:ations?|ions?|ors?|ers?|ress|ments?|ship|ing|ist|ity|al|ed|ic)$")

# A meaning, and the words and short phrases that may stand for it. A word may have several meanings.
_MEANINGS = """
parent: parent father dad daddy papa mother mom mum mama mommy 父母 父亲 母亲 爸爸 妈妈
child: child children kid son daughter heir heiress offspring descendant baby 孩子 子女 儿子 女儿
spouse: spouse husband wife couple darling partner mate married marry wed wedded bride groom consort other_half
spouse: better_half significant_other beloved widow widower 配偶 妻子 丈夫 结婚
sibling: sibling brother sister sib 兄弟 姐妹 哥哥 弟弟 姐姐 妹妹
gender: gender sex man_or_woman male_or_female 性别 男女
nationality: nationality nation national citizenship citizen country come_from 国籍 国家
profession: profession job occupation work career trade vocation business do_for_living line_of_business 职业 工作
employer: employer work_for work_at employed employee institution organization organisation company firm 单位 雇主
institution: institution institute organization organisation school university college educational education work_for
education: education educational educated school university college study studied graduate graduated degree 学校 毕业
member: member belong join joined team club band party group 成员 加入
cause: cause reason why how kill killed die_of die_from 原因
death: death die died dead kill killed pass_away passed_away deceased die_of die_from 去世 死亡 逝世 死
birth: birth born birthplace birthday hometown native birth_place 出生 生日
burial: burial buried bury grave tomb rest_place interred 安葬 墓
place: place where city town village location site birthplace hometown spot state 地点 地方 哪里 在哪
location: location located address live living lived stay staying reside residence home situated where 位于 地址 住
date: date when year day time birthday 日期 时间 哪年 何时
religion: religion religious faith belief believe church denomination creed worship 宗教 信仰
ethnicity: ethnicity ethnic race racial ethnos 民族
language: language speak spoken tongue 语言
author: author write wrote written writer authored penned pen 作者 撰写 写
publish: publish published publication publisher release released issued 出版
direct: direct directed director filmmaker 导演 执导
act: act acted actor actress star starred starring cast play played appear appeared feature featured 主演 出演
produce: produce produced producer production 制作
compose: compose composed composer music score 作曲
found: found founded founder establish established set_up start started create created creator 创立 创办 成立 创始人
lead: lead led leader direct head chief boss in_charge chair chairman president ceo manage manager govern 领导 总裁
own: own owned owner belong_to possess acquire acquired bought purchase 拥有 收购
design: design designed designer architect architecture plan planned 设计
build: build built builder construct constructed construction erected make made manufacture manufactured 建造 生产
perform: perform performer performed sing singer sang sung vocalist artist musician record 演唱
instrument: instrument play played 乐器
character: character role portray portrayed 角色
label: label record_label signed_to
develop: develop developed developer programmer 开发
release: release released publish published come_out premiere debut
influence: influence influenced inspire inspired inspiration 影响
friend: friend companion buddy peer acquaintance 朋友
sport: sport discipline game 运动
position: position office post rank title hold
headquarters: headquarters headquartered based head_office 总部
industry: industry sector field branch
product: product produce make offer
height: height tall high altitude elevation 高度
length: length long duration runtime 长度
weight: weight heavy weigh 重量
area: area size surface large big 面积
price: price cost budget worth 价格
edit: edit edited editor
translate: translate translated translator 翻译
illustrate: illustrate illustrated illustrator draw drew drawn
invent: invent invented inventor invention discover discovered discoverer discovery 发明 发现
sequel: sequel followed_by
alias: alias nickname known_as pseudonym called 别名
genre: genre kind_of style category 类型 体裁
capital: capital 首都
currency: currency money 货币
population: population people inhabitant inhabitants 人口
cite: cite cited citation reference referenced 引用
collaborate: collaborate collaborated collaborator coauthor co-author partnered colleague associate 合作
teach: teach taught teacher mentor tutor advisor adviser supervise supervised supervisor professor 老师 导师
student: student pupil disciple advisee 学生
near: near neighbour neighbor neighbouring border borders bordering adjacent adjoin 邻近 接壤
contain: contain contained include included part comprise consist within 包含 属于
award: award prize win won winner honour honor receive received medal 奖
succeed: succeed succeeded successor follow followed 继任
precede: precede preceded predecessor before 前任
"""
# What a relation says in one direction, the other says in the opposite one.
_OPPOSITES = (("parent", "child"), ("teach", "student"), ("succeed", "precede"))
# Relations that hold in both directions at once.
_MUTUAL = frozenset({"spouse", "sibling", "collaborate", "near"})
_FEMALE = "mother mom mum mama mommy daughter wife sister bride heiress niece aunt 母亲 妈妈 女儿 妻子 姐姐 妹妹"
_MALE = "father dad daddy papa son husband brother groom nephew uncle 父亲 爸爸 儿子 丈夫 哥哥 弟弟"
SEXES = ("female", "male")
_SEX_OF = dict.fromkeys(_FEMALE.split(), "female") | dict.fromkeys(_MALE.split(), "male")
_SMALL = frozenset("of by in is has had was were the a an to at for on from with and or as be are been".split())
_SPLIT = re.compile(r"(?<=[a-z])(?=[A-Z])|[^\w]+|_+")


@lru_cache(maxsize=1)
def _lexicon() -> dict[str, frozenset[str]]:
    """Meanings by stem or phrase (stems joined by underscores)."""
    found: dict[str, set[str]] = defaultdict(set)
    for line in _MEANINGS.strip().splitlines():
        meaning, words = line.split(": ", 1)
        for word in words.split():
            found["_".join(map(stem, word.split("_")))].add(meaning)
    return {word: frozenset(meanings) for word, meanings in found.items()}


@lru_cache(maxsize=1)
def phrases() -> tuple[str, ...]:
    """The phrases of the lexicon, as stems joined by underscores, longest first."""
    return tuple(sorted((word for word in _lexicon() if "_" in word), key=lambda word: (-word.count("_"), word)))


@lru_cache(maxsize=1)
def han_words() -> tuple[str, ...]:
    """The Chinese words of the lexicon, longest first."""
    return tuple(sorted((word for word in _lexicon() if HAN_RUN.match(word)), key=lambda word: (-len(word), word)))


def meanings(word: str) -> frozenset[str]:
    """What a stem or phrase may mean; nothing where the lexicon does not know it."""
    return _lexicon().get(word, frozenset())


@lru_cache(maxsize=20_000)
def relation_words(relation: str) -> tuple[tuple[str, ...], ...]:
    """The telling stems of a relation's name, a group for each of its dotted parts, the last and most telling first."""
    parts = [part for part in re.split(r"[./]|__", relation) if part] or [relation]
    groups = []
    for part in reversed(parts):
        words = [fold(word) for word in _SPLIT.split(part) if word]
        telling = [word for word in words if word not in _SMALL] or words
        groups.append(tuple(stem(word) for word in telling))
    return tuple(group for group in groups if group)


@lru_cache(maxsize=200_000)
def likeness(word: str, other: str) -> float:
    """From 0 to 1, of two stems or phrases: equal, of one meaning, or of one family ("author" and "authored")."""
    if word == other:
        return SAME
    if meanings(word) & meanings(other):
        return SYNONYM
    if is_han(word) and is_han(other):
        return DERIVED if word in other or other in word else 0.0
    return DERIVED if _root(word) == _root(other) or _family(word, other) else 0.0


@lru_cache(maxsize=50_000)
def handles(word: str) -> frozenset[str]:
    """Marks of a stem or phrase: two that are alike share one, so that they can be looked up."""
    opposite = {two for one, two in (*_OPPOSITES, *((b, a) for a, b in _OPPOSITES)) if one in meanings(word)}
    return frozenset({word, f"root:{_root(word)}", f"begins:{word[:_LEAST_SHARED]}", *meanings(word), *opposite})


@lru_cache(maxsize=50_000)
def _root(word: str) -> str:
    bare = _AGENT.sub("", word)
    return bare if len(bare) > 2 else word


def _family(word: str, other: str) -> bool:
    short, long = sorted((word, other), key=len)
    shared = next((n for n, (a, b) in enumerate(zip(short, long, strict=False)) if a != b), len(short))
    return shared >= _LEAST_SHARED and shared >= len(short) - 1 and len(long) - shared <= _LEAST_SHARED


@lru_cache(maxsize=20_000)
def is_mutual(relation: str) -> bool:
    """Whether a relation holds in both directions at once ("spouse")."""
    return any(meanings(word) & _MUTUAL for word in relation_words(relation)[0])


@lru_cache(maxsize=50_000)
def is_opposite(word: str, relation: str) -> bool:
    """Whether a word asks for a relation the other way round ("parent" of `children`)."""
    asked = meanings(word)
    said = frozenset[str]().union(*(meanings(part) for part in relation_words(relation)[0]))
    return any((a in asked and b in said) or (b in asked and a in said) for a, b in _OPPOSITES)


@lru_cache(maxsize=20_000)
def is_one_way(relation: str) -> bool:
    """Whether a relation, read backwards, means something else that has a name of its own ("children": parents)."""
    said = frozenset[str]().union(*(meanings(part) for part in relation_words(relation)[0]))
    return any(a in said or b in said for a, b in _OPPOSITES)


def sex_of(word: str) -> str:
    """Whom a word for a relative names: "female", "male", or "" for either."""
    return _SEX_OF.get(word, "")
