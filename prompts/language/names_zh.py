"""Which names and terms does a Chinese text hold, where, and of what kind?

Runs of nouns from a part-of-speech segmentation, bracketed titles, foreign terms in Latin letters, and the left side of
`中文(English)`. The segmenter's own name tags decide nothing alone (they are mostly wrong on technical prose).
"""

import logging
import re
import tempfile
from collections import Counter
from functools import lru_cache
from pathlib import Path
from typing import Protocol

from prompts.language.names import NameSpan
from prompts.language.words import CJK

_QUOTED = re.compile(r"[《“「『【]([^《》“”「」『』【】\n]{2,30})[》”」』】]")
_GLOSSED = re.compile(rf"([{CJK}·A-Za-z0-9]{{2,16}})\s*[(（]\s*([A-Za-z][A-Za-z0-9 .,'&/-]{{1,60}}?)\s*[)）]")
_LATIN = re.compile(r"(?<![A-Za-z0-9%])[A-Za-z][A-Za-z0-9]*(?:[ .\-+&][A-Za-z0-9+]+){0,4}\+?(?![A-Za-z0-9])")
_TRANSLITERATED = re.compile(rf"[{CJK}]{{1,6}}(?:·[{CJK}]{{1,6}})+")
_ADDRESS = re.compile(r"\]\([^)\s]+\)|https?://\S+|/?[\w%.-]+(?:/[\w%.-]+)+|\$\$?[^$]*\$?\$|<[^<>]{1,200}>")
_CLAUSE_CUT = re.compile(r"[是为由在的了和与及或于]|采用|提出|使用|包括|称为|叫做|名为")
_NOUN_TAGS = ("n", "vn", "nz", "nt", "ns", "nr", "an", "l", "i", "j", "nrt", "nrfg", "eng", "b", "zg")
_STOP = frozenset(
    "时候 问题 方面 情况 部分 东西 方式 结果 内容 作用 过程 关系 时间 地方 人们 大家 自己 以上 以下 之间 其中 今年 去年 目前 本文 一些 一般 "
    "不同 相关 主要 基本 重要 具体 可能 需要 进行 使用 通过 就是 可以 没有 这种 这个 那个 一个 两个 三个 每个 第一 第二 第三 现在 后来 全长 年份".split()
)
_KIND_SUFFIXES = (
    ("organisation", "公司 集团 大学 学院 研究所 研究院 委员会 协会 银行 博物馆 政府 部门 局 厅 部 社 厂 队 会 基金会 医院 酒厂 船厂".split()),
    ("place", "桥 河 江 湖 海 山 岛 港 城 镇 村 县 市 省 国 区 街 路 站 湾 谷 塔 寺 宫 大桥 码头".split()),
    ("method", "算法 模型 方法 框架 系统 模块 机制 策略 网络 任务 数据集 指标 结构 图谱 检索 生成 路由器".split()),
)


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


def kind_of(name: str) -> str:
    """The kind that a Chinese name's ending tells, or "thing"."""
    for kind, suffixes in _KIND_SUFFIXES:
        if any(name.endswith(suffix) and len(name) > len(suffix) for suffix in suffixes):
            return kind
    return "thing"


def tagged(text: str) -> list[tuple[str, str, int]]:
    """Words with part-of-speech tag and offset."""
    offset, found = 0, []
    for pair in _tagger().lcut(text):
        found.append((pair.word, pair.flag, offset))
        offset += len(pair.word)
    return found


def _noun_runs(text: str) -> list[tuple[int, int, str]]:
    """Runs of noun-like words as (start, end, tag of the last word)."""
    runs: list[tuple[int, int, str]] = []
    start = end = -1
    last = ""
    for word, tag, offset in [*tagged(text), ("", "x", len(text))]:
        nounish = tag.startswith(_NOUN_TAGS) and word not in _STOP and re.search(rf"[{CJK}A-Za-z]", word) is not None
        if nounish and offset == end:
            end, last = offset + len(word), tag
            continue
        if end > start >= 0:
            runs.append((start, end, last))
        start, end, last = (offset, offset + len(word), tag) if nounish else (-1, -1, "")
    return runs


def _candidates(text: str) -> list[tuple[int, int, str, int]]:
    """(start, end, kind, strength); where two overlap, the stronger, then the longer one stays."""
    found = [(m.start(1), m.end(1), "work", 3) for m in _QUOTED.finditer(text)]
    for match in _GLOSSED.finditer(text):
        name = _tail(match.group(1))
        found.append((match.end(1) - len(name), match.end(1), kind_of(name), 2))
        found.append((match.start(2), match.end(2), "thing", 2))
    found += [(m.start(), m.end(), "thing", 2) for m in _LATIN.finditer(text) if _is_term(m.group())]
    found += [(m.end() - len(_tail(m.group())), m.end(), "person", 4) for m in _TRANSLITERATED.finditer(text)]
    runs = _noun_runs(text)
    counts = Counter(text[start:end] for start, end, _ in runs)
    for start, end, tag in runs:
        name = text[start:end]
        proper = tag in {"nr", "ns", "nt", "nz", "nrt", "nrfg"}
        if (len(name) >= 3 or (len(name) == 2 and (proper or counts[name] > 1))) and len(name) <= 16:
            kind = "person" if tag in {"nr", "nrt", "nrfg"} and kind_of(name) == "thing" else kind_of(name)
            found.append((start, end, kind, 1))
    return found


def _is_term(latin: str) -> bool:
    """Foreign words count as terms when they look like names: an upper-case letter, and not one letter alone."""
    return len(latin) > 1 and any(c.isupper() for c in latin)


def glosses(text: str) -> list[tuple[str, str]]:
    """Pairs (中文, English) that the text equates by brackets; the Chinese side is the last noun run before the bracket."""
    pairs = []
    for match in _GLOSSED.finditer(text):
        pairs.append((_tail(match.group(1)), match.group(2)))
    return pairs


def _tail(run: str) -> str:
    """What a bracket after `run` glosses: all since the last function word ("设计者是托马斯" → "托马斯"), or the whole."""
    tail = _CLAUSE_CUT.split(run)[-1]
    return tail if len(tail) > 1 else run


def name_spans_zh(text: str) -> list[NameSpan]:
    """The names and terms in a Chinese text, in order, without overlaps."""
    text = _ADDRESS.sub(lambda match: " " * len(match.group()), text)
    chosen: list[tuple[int, int, str, int]] = []
    for start, end, kind, strength in sorted(_candidates(text), key=lambda c: (-c[3], c[0] - c[1], c[0])):
        if all(end <= other[0] or start >= other[1] for other in chosen):
            chosen.append((start, end, kind, strength))
    spans = [NameSpan(text[start:end], start, end, kind) for start, end, kind, _ in sorted(chosen)]
    return [span for span in spans if span.text not in _STOP]
