"""Which different words mean much the same, in questions and in texts? A small thesaurus of everyday relations.

Words of one line count as one concept when a question is matched against a sentence. Nothing here is about a domain.
"""

import re
from functools import lru_cache

from prompts.language.words import HAN_RUN, STOPWORDS, WORD, fold, stem, word_terms

_ENGLISH = """
cost costs price priced spend spent paid pay expense expenses fee
income revenue turnover earnings receipts sales
lead leads leader led head heads headed direct directs director directed chief manager manage run chair president
found founded founder founders establish established create created
build built building construct constructed construction erected builder
design designed designer designs architect
born birth birthplace native
die died death dies dead
marry married spouse husband wife marriage wedding
father mother parent parents son daughter child children
write wrote written writer author authored
teach taught teacher pupil student studied study trained supervised tutor
ship ships vessel vessels boat boats
staff employee employees workers workforce
open opened opening inaugurated
close closed closure end
summary summarise summarize overview
length long
height high tall
width wide
weight heavy weigh mass
age old
distance far
carry carries carried
replace replaced replaces successor succeeded predecessor
buy bought purchase purchased acquire acquired
own owns owned owner
locate located location situated lies stands
name named call called
use used uses using
say said says
win won winner
film movie
begin began started start
recommend recommended recommendation recommendations
find found findings finding
cause caused causes reason reasons because
large largest big biggest
limit limits restriction maximum
connect connected links link linked relation related
problem problems trouble troubles damage damaged worry worried risk risks fail failed failure complain complaint
country nation nationality
"""
# Each line begins with the English word of its concept where there is one: a Chinese question finds English evidence.
_CHINESE = """
lead 领导 所长 负责人 主任 馆长 院长 校长 担任 主管 首席
found 创立 创办 成立 建立 创建 创始
design 设计 设计者 设计师
build 建造 修建 建成 兴建 竣工
cost 造价 费用 花费 成本 价格 耗资 经费
income 收入 营业额 营收
born 出生 生于 诞生
die 去世 逝世 死于 病逝
write 作者 撰写 编写 写的 著
length 全长 长度 多长 长达
height 高度 多高 海拔
locate 位于 坐落 地处 在哪
来自 从哪里来 水源 来源
缺点 不足 局限 问题 挑战 困难
优点 优势 好处 长处
组成 包括 包含 构成 分为
提出 发明 开发 推出
use 使用 采用 利用 用到
步骤 流程 过程 阶段
定义 是指 指的是 即为 是一种
"""
_CONCEPT_OF: dict[str, str] = {}
for _line in _ENGLISH.strip().splitlines():
    for _word in _line.split():
        # "Founded" (established) and "found" (discovered) have one stem: the first line that has a word wins.
        _CONCEPT_OF.setdefault(stem(_word), "~" + _line.split()[0])
_ZH_OF: dict[str, str] = {}
for _line in _CHINESE.strip().splitlines():
    _first, *_rest = _line.split()
    _ZH_OF |= dict.fromkeys(
        _rest if _first.isascii() else [_first, *_rest], _CONCEPT_OF.get(stem(_first), "~" + _first)
    )
_ZH_PATTERN = re.compile("|".join(sorted(map(re.escape, _ZH_OF), key=len, reverse=True)))


@lru_cache(maxsize=20_000)
def concept_terms(text: str) -> tuple[str, ...]:
    """The distinct terms of a text, in order, with words of one concept as that concept ("~cost")."""
    found: dict[str, None] = {}
    rest = fold(text)
    if HAN_RUN.search(rest):
        for match in _ZH_PATTERN.finditer(rest):
            found.setdefault(_ZH_OF[match.group()])
        rest = _ZH_PATTERN.sub(" ", rest)
    for word in WORD.findall(rest):
        if word in STOPWORDS:
            continue
        for term in word_terms(word):
            found.setdefault(_CONCEPT_OF.get(term, term))
    return tuple(found)


@lru_cache(maxsize=1)
def _members() -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    for word, concept in _CONCEPT_OF.items():
        found.setdefault(concept, []).append(word)
    return {concept: tuple(words) for concept, words in found.items()}


def members(concept: str) -> tuple[str, ...]:
    """The stems of a concept's words; nothing for a term that is no concept."""
    return _members().get(concept, ())
