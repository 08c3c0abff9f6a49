"""Terms of a Chinese text, as far as the text itself shows them.

Three things show it: the place (a heading, bold type, the label before a colon), repetition between varied neighbours,
and a head noun that names a sort of thing with words before it that tell which. The segmenter's tags find the words
that no term holds; its dictionary tells how common a word is, and what is common alone is no term.
"""

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from prompts.text.words import CJK

_BREAK_TAGS = ("p", "c", "u", "r", "y", "f", "m", "q", "t", "x", "w", "e", "o")
_COMMON = 3000  # a word at least so frequent in the segmenter's dictionary names nothing by itself
_COMMON_ADVERB = 5000  # rarer ones are parts of terms too: "随机"
_LONGEST_TERM, _SHORTEST_TERM, _MOST_WORDS = 14, 3, 5
_FEW = 3
_PLACED, _REPEATED, _HEADED = 4, 2, 1

# Words of any prose: none stands inside a term.
PROSE = frozenset(
    """
    进行 使用 采用 提出 通过 获取 构建 创建 包括 包含 需要 能够 可以 基于 用于 根据 实现
    提高 提升 减少 增加 改善 具有 成为 作为 得到 提供 属于 存在 涉及 依赖 导致 允许 确保
    保持 避免 支持 帮助 促进 完成 执行 给出 给定 指出 表明 证明 显示 说明 认为 发现 探讨
    考虑 关注 专注 强调 旨在 针对 面对 面临 面向 适用 适合 对应 结合 引入 加入 添加 去掉
    替换 转化 形成 产生 带来 改变 设置 设定 确定 解决 具备 拥有 展示 展现 体现 代表 表示
    称为 名为 叫做 指的是 意味着 值得 容易 难以 无法 无需 不需要 没有 不会 可能 应该 必须
    往往 仍然 尤其 特别 非常 十分 显著 有效 有效地 高效地 更好 更多 更加 最终 首先 其次
    最后 然后 同时 此外 另外 因此 所以 但是 然而 例如 比如 以及 并且 而且 或者 如果 虽然
    尽管 由于 因为 为了 关于 对于 随着 之间 之后 之前 其中 相关 不同 各种 多种 多个 一些
    一种 某些 所有 整个 每个 现有 当前 目前 传统 主要 重要 关键 复杂 简单 具体 一般 相应
    上述 以下 如下 下面 上面 大量 少量 许多 正如 最新 整体 初始 基本 原始 最佳 最优 合适
    全面 充分 完整 统一 额外 明显 常见 达到 超过 优于 相比 相比之下 类似 相似 接近 分别
    分为 来自 起源于 位于 建于 担任 出生 负责 参加 成立 开始 结束 发展
    """.split()
)
# Verbs that are parts of terms too, but do not begin one: "训练" in "训练路由器" says what is done to it.
VERBAL = frozenset(
    """
    影响 处理 识别 提取 抽取 分析 比较 判断 设计 更新 输入 输出 生成 评估 训练 融合 整合
    集成 转换 合并 回答 理解 介绍 描述 讨论 研究 调整 部署 利用 分类 选择 查找 存储 返回
    计算 调用 优化 总结 遍历 检查 测试 增强 挑战 要求 了解 检验 缩短 解析 降低 保留 逐个
    深入 探索
    """.split()
)
# Heads that say nothing, whatever stands before them.
_WEAK = frozenset(
    """
    过程 结果 变化 次数 数量 能力 问题 信息 内容 方式 性能 质量 效率 效果 时间 成本 需求
    情况 阶段 部分 类型 关系 范围 程度 优势 答案 细节 步骤 方面 作用 特点 意义 背景 目标
    原因 现象 表现 差异 示例 例子 说明 规模 数据 类别 流程 方向
    """.split()
)
# Heads that with a word before them name one thing.
_HEADS = frozenset(
    """
    算法 模型 框架 机制 范式 理论 图谱 数据集 数据库 知识库 语料库 基准 定理 定律 公式 函数
    网络 引擎 协议 策略 指标 矩阵 路径 任务 系统 模块 方法 数据结构 相似度 复杂度 准确率
    召回率 精确率 胜率 阈值 参数 实验 技术 社区 摘要 工程 检索 推理 学习
    """.split()
)
_MADE = re.compile(rf"[{CJK}]{{2,}}(?:器|法|论|学|图|树|层|率|值|度|集|库|键|链|网)$")

_LABEL = re.compile(
    rf"(?:^|[\n。？！?!;；)）>]|[*•\-]\s)\s*(?:[-*•>#]+\s*|\d{{1,2}}[.、]\s*|\*\*)*"
    rf"((?=[^\n]{{0,24}}?[{CJK}])[{CJK}A-Za-z0-9+·\- ]{{2,18}}?)(?:\*\*)?\s*(?=[:：(（])"
)
_HEADING = re.compile(rf"^#{{1,6}}\s+(?:\d+(?:\.\d+)*\.?\s*)?([{CJK}A-Za-z0-9+·\- ]{{2,16}})\s*$", re.M)
_APART = re.compile(rf"(?<=[ \u3000])([{CJK}]{{3,6}})(?= )")
_LISTED = re.compile(rf"(?:例如|比如|如|包括)((?:[{CJK}A-Za-z0-9\-]{{2,10}}[、或和与及])+[{CJK}A-Za-z0-9\-]{{2,10}})")
_JOINT = re.compile("[、或和与及]")
_PHRASE = re.compile(
    rf"^[仅只不每该此]|[{CJK}] [{CJK}]|[的了吗呢么是在与和及或从将被把让为对等怎谁于请]|"
    r"什么|如何|几个|一个|这|那|其他|本文|我们|作者"
)


class Word(NamedTuple):
    """A word of the segmentation at `start`, with its tag and how often the segmenter's dictionary counts it."""

    text: str
    tag: str
    start: int
    frequency: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


def term_spans(text: str, words: Sequence[Word]) -> Iterator[tuple[int, int, int]]:
    """(start, end, strength) of terms; they may overlap, and the stronger is meant, then the longer."""
    starts = [word.start for word in words]
    for start, end in _places(text):
        inside = within(words, starts, start, end)
        if _is_placed_term(text[start:end], inside):
            yield (inside[1].start if len(inside) > 2 and inside[0].text in VERBAL else start), end, _PLACED
    runs = list(_runs(words))
    yield from _repeated(runs)
    for run in runs:
        yield from _headed(run)


def _places(text: str) -> Iterator[tuple[int, int]]:
    """Where terms are written: headings, bold type, labels, words set apart, enumerated examples."""
    for pattern in (_HEADING, _LABEL, _APART):
        for match in pattern.finditer(text):
            yield match.start(1), match.start(1) + len(match.group(1).rstrip())
    for match in _LISTED.finditer(text):
        start = match.start(1)
        for item in _JOINT.split(match.group(1)):
            name, _, _ = item.partition("等")
            if len(name) > 1:
                yield start, start + len(name)
            start += len(item) + 1


def is_saying(words: Sequence[Word]) -> bool:
    """Whether words of a quotation are a sentence and no name."""
    return len(words) >= _FEW and any(word.text in PROSE for word in words)


def within(words: Sequence[Word], starts: Sequence[int], start: int, end: int) -> Sequence[Word]:
    """The words that begin in `start`..`end`; `starts` are the places of all of them."""
    return words[bisect_left(starts, start) : bisect_left(starts, end)]


def _is_placed_term(name: str, words: Sequence[Word]) -> bool:
    """Whether what stands at such a place is a term and no phrase, number or everyday word."""
    if name.isascii() or len(name) < 2 or _PHRASE.search(name) or not words or words[-1].tag in {"a", "ad", "d"}:
        return False
    if words[-1].text in _WEAK or (len(words) > _FEW and any(word.text in VERBAL for word in words[1:-1])):
        return False
    if any(word.text in PROSE or word.tag in {"c", "r", "u", "uj", "ul", "y"} for word in words):
        return False
    return any(word.frequency < _COMMON and word.text not in _WEAK for word in words)


def _runs(words: Sequence[Word]) -> Iterator[list[Word]]:
    """Stretches of adjacent words that a term may hold."""
    run: list[Word] = []
    counted = False
    for word in words:
        measure = counted and len(word.text) == 1  # "多跳推理": the word after a number belongs to it
        counted = word.tag.startswith("m")
        inside = _inside(word) and not measure
        if run and (word.start != run[-1].end or not inside):
            yield run
            run = []
        if inside:
            run.append(word)
    if run:
        yield run


def _inside(word: Word) -> bool:
    if word.text in PROSE or word.tag.startswith(_BREAK_TAGS) or not word.text.strip():
        return False
    if word.tag in {"d", "ad", "a"}:
        return len(word.text) > 1 and word.frequency < _COMMON_ADVERB
    return len(word.text) > 1 or not word.tag.startswith(("v", "a", "d", "z"))


def _repeated(runs: Sequence[Sequence[Word]]) -> Iterator[tuple[int, int, int]]:
    """Word sequences that occur at least twice, not always before or after the same word."""
    places: dict[str, list[tuple[int, int]]] = defaultdict(list)
    before: dict[str, set[str]] = defaultdict(set)
    after: dict[str, set[str]] = defaultdict(set)
    for number, run in enumerate(runs):
        for first in range(len(run)):
            for last in range(first, min(first + _MOST_WORDS, len(run))):
                name = "".join(word.text for word in run[first : last + 1])
                if not _SHORTEST_TERM <= len(name) <= _LONGEST_TERM or not _is_compound(run[first : last + 1]):
                    continue
                places[name].append((run[first].start, run[last].end))
                before[name].add(run[first - 1].text if first else f"-{number}")
                after[name].add(run[last + 1].text if last + 1 < len(run) else f"-{number}")
    for name, spans in places.items():
        if len(spans) > 1 and len(before[name]) > 1 and len(after[name]) > 1:
            for start, end in spans:
                yield start, end, _REPEATED


def _is_compound(words: Sequence[Word]) -> bool:
    """Several words that end in a noun or a verb used as one, or one word that is rare."""
    if len(words) == 1:
        word = words[0]
        return word.frequency < _COMMON // 10 and word.tag[0] in "nlij" and word.text[-1] not in "性化"
    first, last = words[0], words[-1]
    if first.text in VERBAL or first.tag in {"ng", "k", "d"} or last.text in _WEAK:
        return False
    return last.tag[0] in "nvljkgz"


def _headed(run: Sequence[Word]) -> Iterator[tuple[int, int, int]]:
    """The part of a run up to its head, where it ends in one: at most three words before it."""
    head = run[-1]
    known = head.text in _HEADS or _MADE.fullmatch(head.text)
    if not known or head.tag.startswith("v") or len(run) < 2:
        return
    first = max(0, len(run) - 4)
    for place in range(first, len(run) - 2):
        first = place + 1 if run[place].text in VERBAL else first
    first += run[first].text in VERBAL
    if first < len(run) - 1 and run[-1].end - run[first].start <= _LONGEST_TERM:
        yield run[first].start, head.end, _HEADED
