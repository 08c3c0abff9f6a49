"""Names and terms in Chinese text: where they stand, and of what kind.

Runs of nouns from a part-of-speech segmentation, bracketed titles, foreign terms in Latin letters, and the left side of
`中文(English)`. The segmenter's own name tags decide nothing alone (they are mostly wrong on technical prose).
"""

import logging
import re
import tempfile
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Protocol

from prompts.text.names import NameSpan
from prompts.text.terms_zh import PROSE, VERBAL, Word, is_saying, term_spans, within
from prompts.text.words import CJK

_WORK = re.compile(r"《([^《》\n]{2,30})》")
_QUOTED = re.compile(rf"[“「『【\"]([{CJK}A-Za-z0-9·\- ]{{2,20}})[”」』】\"]")
_GLOSSED = re.compile(
    rf"([{CJK}·A-Za-z0-9]{{2,16}})\s*[(（]\s*(?:(?:简称|英文名?|英文简称|又称|又名|即|缩写为?|亦称)[:：]?\s*)?"
    r"([A-Za-z][A-Za-z0-9 .,'&/-]{1,60}?)\s*(?=[)）]|[,，;；、][^()（）]{0,40}[)）])"
)
_SAID = re.compile(r"[的了吗呢是谁]|什么|如何")
_DEFINED = re.compile(rf"^([{CJK}]{{2,12}})(?=[(（][A-Za-z][A-Za-z ,-]+[)）](?:指|是|[:：]))", re.M)
_MIXED = re.compile(
    r"(?<![A-Za-z0-9])[A-Z][A-Za-z0-9.+-]*(?:算法|基准|数据集|定理|定律|函数|指数|系数|协议|引擎)(?![器库])"
)
_LATIN = re.compile(r"(?<![A-Za-z0-9%_])[A-Za-z][A-Za-z0-9]*(?:[ .\-+&][A-Za-z0-9+]+){0,4}\+?(?![A-Za-z0-9_])")
_SPELLED = re.compile("[A-Za-z]{2}")
_ENGLISH_JOINT = re.compile(r" (?:of|via|and|or|the|for|with|in|to|a|an|is|are|by|on|from|as|that)(?: |$)")
_CALL = re.compile(r"\b[A-Za-z]\.[A-Za-z]|\b[A-Za-z]+\.[a-z]|^(?:Stage|Step|Section|Figure|Table|Chapter|Part) \d")
_COMPOUND = re.compile(r"[a-z]{3,}-[a-z]{3,}")
_TRANSLITERATED = re.compile(rf"[{CJK}]{{1,12}}(?:·[{CJK}]{{1,8}})+")
_MASKED = re.compile(
    r"```.*?(?:```|\Z)|`[^`\n]*`|\]\([^)\s]+\)|https?://\S+|\\[A-Za-z]+(?:\{[^{}]*\})*|\$\$.*?\$\$|\$[^$\n]*\$|"
    r"(?<![\w.])/?[\w%.-]+(?:/[\w%.-]+)+|\b[\w-]+\.(?:py|md|json|txt|html?|com|org|io)\b|\b[a-z0-9]+_\w+|<[^<>\n]{1,200}>",
    re.S,
)
_WORDLIKE = re.compile(rf"[{CJK}A-Za-z]")
_QUALITY = re.compile(r"[性化度感]$|^(?:有|无|不|非|高|低|多|可)")  # abstract or a mere quality, where short
_CLAUSE_CUT = re.compile(r"[是为由在的了和与及或于给]|从(?=..)|到(?=..)|采用|提出|使用|包括|称为|叫做|名为")
_NOUN_TAGS = ("n", "vn", "an", "l", "i", "j", "eng", "b", "zg")
_CUT_TAGS = ("p", "c", "u", "r", "d", "f", "y", "m", "t")
_FUNCTION = re.compile(
    r"^[会将地因且是被把使向从对于由与及并而或即所其该此这那每各又也都就才仅只可应需]|[且是的了地得和与而为个些]$"
)
_SURNAMES = frozenset(
    "王李张刘陈杨黄赵吴周徐孙马朱胡郭何高林郑谢罗梁宋唐许韩冯邓曹彭曾肖田董袁潘于蒋蔡余杜叶程苏魏吕丁"
    "任沈姚卢姜崔钟谭陆汪范金石廖贾夏韦付方白邹孟熊秦邱江尹薛闫段雷侯龙史陶黎贺顾毛郝龚邵万钱严覃武戴"
    "莫孔向汤温康施洪欧阳司诸葛"
)
_SUFFIXES = frozenset("器度率值法性论")  # the segmenter cuts them off words that it does not know
_NO_NAME = re.compile("\u3000|^[图表] ?\\d|^[^A-Za-z\u3400-\u9fff]")
_WITHIN = frozenset("上中里内下")  # and these it leaves on
_HAN = re.compile(rf"[{CJK}]{{2,}}")
_COMMON_NAME, _COMMON_PERSON = 20_000, 50
_LONGEST_PERSON = 3
_PERSON_TAGS = frozenset({"nr", "nrt", "nrfg"})
_NAME_TAGS = frozenset({"nr", "ns", "nt", "nz", "nrt", "nrfg"})
_STOP = frozenset(
    """
    时候 问题 方面 情况 部分 东西 方式 结果 内容 作用 过程 关系 时间 地方 人们 大家 自己 以上 以下 之间 其中
    今年 去年 目前 本文 一些 一般 不同 相关 主要 基本 重要 具体 可能 需要 进行 使用 通过 就是 可以 没有 这种
    这个 那个 一个 两个 三个 每个 第一 第二 第三 现在 后来 全长 年份 方法 系统 模型 数据 信息 任务 能力 步骤
    流程 阶段 类型 形式 例子 示例 目标 目的 原因 特点 优点 缺点 优势 不足 意义 背景 概念 定义 功能 效果 性能
    效率 质量 数量 程度 范围 水平 条件 因素 要求 标准 原则 规则 角度 层面 领域 场景 用户 作者 人员 大小 长度
    高度 单位 名称 名字 文章 论文 图片 表格 代码 参数 变量 输入 输出 部门 公司 机构 组织 费用 价格 克朗 元素
    因此 首先 其次 最后 总之 同时 此外 例如 比如 实际上 事实上 一方面 另一方面 基础 核心 关键 整体 全局 局部
    总体 细节 本身 前者 后者 对应 对于 关于 根据 由于 如下 上述 下面 上面 左右 前后 内部 外部 简介 介绍 总结
    概述 说明 图示 如图 下图 表示 意味着 注意 接下来 值得注意 所有
    引言 前言 结论 结语 致谢 现有 全面 明智 卓越 密集型 大程度 提示 备注 参考 链接 文献 引用 章节 目录 标题 正文 附录
    """.split()
)
_KIND_SUFFIXES = (
    (
        "organisation",
        """公司 集团 大学 学院 研究所 研究院 委员会 协会 银行 博物馆 政府 部门 局 厅 部 社 厂 队 会 基金会 医院
        酒厂 船厂 管理局 事务所""".split(),
    ),
    ("place", "桥 河 江 湖 海 山 岛 港 城 镇 村 县 市 省 国 区 街 路 站 湾 谷 塔 寺 宫 大桥 码头".split()),
    ("method", "算法 模型 方法 框架 系统 模块 机制 策略 网络 任务 数据集 指标 结构 图谱 检索 生成 路由器".split()),
)
_GENERIC = frozenset(suffix for _, suffixes in _KIND_SUFFIXES for suffix in suffixes) | _STOP


class _Pair(Protocol):
    word: str
    flag: str


class _Tagger(Protocol):
    def lcut(self, text: str) -> list[_Pair]: ...


@lru_cache(maxsize=1)
def _tagger() -> _Tagger:
    """The segmenter, loaded once; its cache file goes to the temporary folder and its chatter nowhere."""
    import jieba
    import jieba.posseg

    jieba.setLogLevel(logging.WARNING)
    jieba.dt.tmp_dir = str(Path(tempfile.gettempdir()))
    tagger: _Tagger = jieba.posseg
    return tagger


@lru_cache(maxsize=1)
def _frequencies() -> dict[str, int]:
    """How often the segmenter's dictionary counts each word that it holds."""
    _tagger().lcut("")
    import jieba

    jieba.initialize()
    found: dict[str, int] = jieba.dt.FREQ
    return found


def is_generic(name: str) -> bool:
    """Whether a Chinese word names a sort of thing and no thing ("公司", "研究所")."""
    return name in _GENERIC


def kind_of(name: str) -> str:
    """The kind that a Chinese name's ending tells, or "thing"."""
    for kind, suffixes in _KIND_SUFFIXES:
        if any(name.endswith(suffix) and len(name) > len(suffix) for suffix in suffixes):
            return kind
    return "thing"


def may_be_person(name: str) -> bool:
    """Whether a Chinese name of two or three characters begins with a surname."""
    return 1 < len(name) <= _LONGEST_PERSON and name[0] in _SURNAMES


def tagged(text: str) -> list[tuple[str, str, int]]:
    """Words with part-of-speech tag and offset."""
    offset, found = 0, []
    for pair in _tagger().lcut(text):
        found.append((pair.word, pair.flag, offset))
        offset += len(pair.word)
    return found


def _candidates(text: str) -> list[tuple[int, int, str, int]]:
    """(start, end, kind, strength); where two overlap, the stronger, then the longer one stays."""
    found = [(m.start(1), m.end(1), "work", 5) for m in _WORK.finditer(text)]
    words = _words(text)
    starts = [word.start for word in words]
    for match in _QUOTED.finditer(text):
        name = match.group(1).rstrip()
        if _SAID.search(name) or is_saying(within(words, starts, *match.span(1))):
            continue
        if not name.isascii() or _is_term(name):
            found.append((match.start(1), match.start(1) + len(name), kind_of(name), 3))
    found += [(m.start(1), m.end(1), kind_of(m.group(1)), 5) for m in _DEFINED.finditer(text)]
    found += [(m.start(), m.end(), kind_of(m.group()), 3) for m in _MIXED.finditer(text)]
    for match in _GLOSSED.finditer(text):
        name = _tail(match.group(1))
        if name.isascii() or name.endswith("的") or not _SPELLED.search(match.group(2)):
            continue
        person = "·" in name
        found.append((match.end(1) - len(name), match.end(1), "person" if person else kind_of(name), 4))
        found.append((match.start(2), match.end(2), "thing", 4))
    found += [(start, end, "thing", 2) for start, end in _latin(text)]
    found += [(m.end() - len(_tail(m.group())), m.end(), "person", 4) for m in _TRANSLITERATED.finditer(text)]
    found += [(start, end, kind_of(text[start:end]), strength) for start, end, strength in term_spans(text, words)]
    counts = Counter(word.text for word in words)
    for word in words:
        if _is_proper(word, counts[word.text]):
            kind = "person" if word.tag in _PERSON_TAGS and kind_of(word.text) == "thing" else kind_of(word.text)
            found.append((word.start, word.end, kind, 2))
    return found


def _words(text: str) -> list[Word]:
    frequency = _frequencies()
    found: list[Word] = []
    for word, tag, start in tagged(text):
        count = frequency.get(word, 0)
        if word in _SUFFIXES and found and found[-1].end == start and _HAN.fullmatch(found[-1].text):
            found[-1] = Word(found[-1].text + word, "n", found[-1].start, 0)
        elif count == 0 and len(word) > 1 and word[-1] in _WITHIN and tag not in _NAME_TAGS:
            stem = word[:-1]
            found.append(Word(stem, tag, start, frequency.get(stem, 0)))
            found.append(Word(word[-1], "f", start + len(stem), 0))
        else:
            found.append(Word(word, tag, start, count))
    return found


def _is_proper(word: Word, count: int) -> bool:
    """Whether the segmenter's name tag can be believed of a word that the text holds `count` times."""
    if word.tag not in _NAME_TAGS or word.frequency > _COMMON_NAME or len(word.text) < 2:
        return False
    if word.frequency == 0 and _FUNCTION.search(word.text):
        return False
    if word.tag in {"nr", "nrfg"}:
        known = word.text[0] in _SURNAMES or (count > 1 and word.frequency == 0)
        return known and len(word.text) <= _LONGEST_PERSON and word.frequency < _COMMON_PERSON
    return word.tag in {"nt", "ns"} or len(word.text) > 2


def _latin(text: str) -> Iterator[tuple[int, int]]:
    """The foreign terms of a text; a run of foreign words ends at a function word."""
    for match in _LATIN.finditer(text):
        start = match.start()
        for piece in _ENGLISH_JOINT.split(match.group()):
            if _is_term(piece):
                at = text.index(piece, start)
                yield at, at + len(piece)
                start = at + len(piece)


def _is_term(latin: str) -> bool:
    """Foreign words count as terms when they look like names: a capital among two letters or more, or a compound."""
    if _CALL.search(latin):
        return False
    return (len(latin) > 1 and any(c.isupper() for c in latin)) or _COMPOUND.fullmatch(latin) is not None


@lru_cache(maxsize=10_000)
def _tail(run: str) -> str:
    """What a bracket after `run` glosses: the name that ends it, not the clause before ("前往奎伦角" → "奎伦角")."""
    tail = _CLAUSE_CUT.split(run)[-1]
    tail = tail if len(tail) > 1 else run
    head, dot, rest = tail.partition("·")
    words = tagged(head if dot else tail)
    start = 0
    for number, (word, tag, offset) in enumerate(words):
        after = offset + len(word)
        verb = tag.startswith("v") and tag != "vn" and len(word) > 1 and number < len(words) - 1
        # A calling before a transliterated name ("工程师托比亚斯·雷恩") is no part of it.
        calling = dot and tag in {"n", "v"} and len(word) > 1
        done = number < len(words) - 1 and (word in PROSE or (word in VERBAL and number < len(words) - 2))
        if (verb or done or calling or tag.startswith(_CUT_TAGS)) and len(head if dot else tail) - after > 1:
            start = after
    return (head[start:] if dot else tail[start:]) + dot + rest


def name_spans_zh(text: str) -> list[NameSpan]:
    """The names and terms in a Chinese text, in order, without overlaps; addresses, code and formulas hold none."""
    text = _MASKED.sub(lambda match: re.sub(r"\S", "\u3000", match.group()), text)
    chosen: list[tuple[int, int, str]] = []
    for start, end, kind, _ in sorted(_candidates(text), key=lambda c: (-c[3], c[0] - c[1], c[0])):
        place = bisect_left(chosen, (start, end, kind))
        free_before = place == 0 or chosen[place - 1][1] <= start
        if free_before and (place == len(chosen) or chosen[place][0] >= end):
            insort(chosen, (start, end, kind))
    spans = [NameSpan(text[start:end], start, end, kind) for start, end, kind in chosen]
    return [span for span in spans if span.text not in _STOP and not _NO_NAME.search(span.text)]


# --- questions -------------------------------------------------------------------------------------------------------

_TITLED = re.compile(r"《([^《》]{1,30})》")
_CUT = re.compile(
    rf"[^{CJK}A-Za-z·]+|(?<=\d)[年月日号]|第[一二三四五六七八九十]{{1,2}}[次届个座]|什么时候|什么|为什么|为何|何[时地处人]|怎样|如何|"
    r"怎么|多少|多[长高大宽深远重久]|哪一?[年个座家里位条些]|哪|谁|现在|目前|当时|如今|介绍一下|介绍|请问|请|告诉我|比较|"
    r"是否|是不是|有没有|曾经|曾|已经|全长|横跨|位于|坐落于?|出生于?|成立于?|"
    r"设计|建造|修建|创办|创立|举办|主持|开放|建成|生产|担任|当上|毕业|去世|结婚|属于|来自|"
    r"[长高宽深重](?=\d)|[写画作拍办](?=[的了过])|过(?![^过])|[他她它](?:们)?|[这那该此其](?!里)|"
    r"[是由的在有和与跟及于从被为了把对向吗呢吧还都也更最就]|[之以](?=[前后间])|会(?=[不在有是被去来把给])"
)
# A cut character that belongs to the name before or after it in these.
_KEPT = re.compile(r"公有|和平|共和国|向阳|永和|太和|和田|有限|为民|对马|就业|最高")
_PERSON_AFTER = re.compile(
    r"(?:于)?(?:\d+年)?(?:出生|结婚|去世|设计|创办|创立|写|画|作曲|当上|担任|主持|毕业|教|导演|什么时候(?:出生|当上|结婚|去世)|"
    r"在哪里(?:出生|上学)|举办)"
)
_PERSON_BEFORE = re.compile(r"(?:由|被|是谁|作者是|导演是|创始人是|[所校院局社会市县馆厂]长是)$")
_PLACE_BEFORE = re.compile(r"(?:出生于|位于|总部在|来自|省会是|首都是|在|坐落于)$")
_MOST = 14  # characters of a name
# A word by itself that is one of these names nothing: "面积", "写过", "那里".
_COMMON = ("n", "v", "vn", "a", "an", "d", "r", "m", "t", "f", "c", "p", "u", "q", "y", "l", "i", "b")
_DROPPED = ("v", "vd", "p", "d", "c", "r", "u", "m", "q", "f", "y", "t", "a", "ad")


def name_spans_told(text: str) -> list[NameSpan]:
    """The names in a turn, in order, without overlaps; the kind is "thing" where nothing tells it."""
    works = [NameSpan(found[1], found.start(1), found.end(1), "work") for found in _TITLED.finditer(text)]
    rest = _TITLED.sub(lambda found: "\u3000" * len(found.group()), text)
    spans = [span for start, end in _pieces(rest) if (span := _trimmed(rest, start, end)) is not None]
    return sorted([*works, *spans], key=lambda span: span.start)


def _pieces(text: str) -> list[tuple[int, int]]:
    """The stretches between function words."""
    kept = [found.span() for found in _KEPT.finditer(text)]
    at, found = 0, []
    for cut in _CUT.finditer(text):
        if any(start <= cut.start() and cut.end() <= end for start, end in kept):
            continue
        found.append((at, cut.start()))
        at = cut.end()
    found.append((at, len(text)))
    return [(start, end) for start, end in found if end - start > 1]


def _trimmed(text: str, start: int, end: int) -> NameSpan | None:
    """A stretch without the verbs and numbers at its ends; None where nothing that names is left."""
    words = tagged(text[start:end])
    if len(words) == 1 and words[0][1] in _COMMON:
        return None
    whole = list(words)
    while words and _drops(*words[0][:2]):
        words.pop(0)
    while words and _drops(*words[-1][:2]):
        words.pop()
    if len("".join(word for word, _, _ in words)) < 2 and 1 < len(whole) < 3 and end - start < 5:
        words = whole  # a person's name of which the segmenter made a word and a rest
    if not words:
        return None
    first, last = start + words[0][2], start + words[-1][2] + len(words[-1][0])
    name = text[first:last]
    if not 1 < len(name) <= _MOST or is_generic(name):
        return None
    return NameSpan(name, first, last, _kind(text, name, first, last))


def _drops(word: str, tag: str) -> bool:
    """Whether a word at the end of a stretch is no part of its name; single characters often are, being cut wrongly."""
    return word.isdigit() or word.startswith("第") or (len(word) > 1 and tag in _DROPPED)


def _kind(text: str, name: str, start: int, end: int) -> str:
    told = kind_of(name)
    doubtful = told == "place" and may_be_person(name)  # "孙玉山" is no mountain, "金山" may be one
    if told != "thing" and not doubtful:
        return told
    if _PERSON_AFTER.match(text, end) or _PERSON_BEFORE.search(text[:start]):
        return "person"
    return "place" if _PLACE_BEFORE.search(text[:start]) else "thing"
