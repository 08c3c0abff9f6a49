"""How far do two labels name the same figure: what a question writes and what a row says?

English labels compare by their words ("net loss" and "Net income (loss)" are one figure with two signs), Chinese
ones by pairs of characters. A label that says the opposite ("current" for "non-current") names something else.
"""

import re
import unicodedata
from functools import lru_cache

from prompts.language.words import is_han
from tasks.structurize.synonyms import GROUPS_EN, GROUPS_ZH

_SAME = {
    "loss": "income", "profit": "income", "earning": "income", "sale": "revenue", "turnover": "revenue",
    "stockholder": "holder", "shareholder": "holder", "owner": "holder", "member": "holder", "partner": "holder",
    "deficit": "equity", "deficiency": "equity", "cost": "expense", "expenditure": "expense", "inventory": "inventory",
    "tax": "tax", "ending": "end", "closing": "end", "opening": "beginning", "start": "beginning", "begin": "beginning",
    "eps": "share", "trade": "account", "unit": "share",
}  # fmt: skip
_STOP = frozenset(
    "the of in by from at for to and or a an on as with its s used provided resulting generated per during".split()
)
_LIGHT = "net total consolidated flow balance period year amount value condensed month three".split()
_WEIGHTS = dict.fromkeys(_LIGHT, 0.3)
_WEIGHTS |= {
    "equivalent": 0.4,
    "account": 0.7,
    "activity": 0.5,
    "common": 0.4,
    "stock": 0.6,
    "ordinary": 0.4,
    "holder": 0.6,
}
_OPPOSED = (
    ("current", "noncurrent"), ("end", "beginning"), ("payable", "receivable"), ("basic", "diluted"),
    ("operating", "investing", "financing"), ("asset", "liability"), ("income", "expense"), ("gross", "net"),
    ("shortterm", "longterm"), ("weighted", "total"),
)  # fmt: skip
_OPPOSED_ZH = (
    ("非流动", "流动"), ("期初", "期末"), ("应付", "应收"), ("预付", "预收"), ("流入", "流出"), ("收入", "支出"),
    ("收入", "成本"), ("收入", "费用"), ("收到", "支付"), ("经营活动", "投资活动", "筹资活动"), ("短期", "长期"),
    ("基本", "稀释"), ("少数股东", "母公司"), ("持续经营", "终止经营"), ("资产", "负债"), ("固定", "无形"),
)  # fmt: skip
_PREFIX_ZH = re.compile(r"^(?:[（(]?[一二三四五六七八九十\d]+[)）、.．]\s*|其中[:：]|减[:：]|加[:：]|[①-⑩])+")
_REMARK = re.compile(r"[（(【\[][^（）()【】]*[)）】\]]")
_TOTAL_ZH = re.compile(r"(?:合计|总计|总额|小计)$")
_NOTE_EN = re.compile(r"\((?:note|see)[^)]*\)|\bnotes? \d+\b", re.I)
_WORD = re.compile(r"[a-z]+")
# Where the name of a row ends and its details begin: "Accounts receivable (less allowance …)", "Receivables, net of …".
_DETAIL = re.compile(r"\s*(?:[,;:(–—]|\bless\b|\bnet of\b)\s*", re.I)
_HEAD_WEIGHT = 0.98
# What counts more: that all of the attribute is said, or that nothing else is.
_ASKED, _SAID, _SENTENCE = 0.62, 0.35, 0.8


@lru_cache(maxsize=20_000)
def words_of(label: str) -> frozenset[str]:
    """The words of an English label, folded: endings off, synonyms as one, what says nothing left out."""
    text = unicodedata.normalize("NFKC", label).lower().replace("’", "'").replace("'", "")
    text = _NOTE_EN.sub(" ", text)
    text = (
        re.sub(r"\bnon[\s-]+(?=[a-z])", "non", text).replace("long-term", "longterm").replace("long term", "longterm")
    )
    text = text.replace("short-term", "shortterm").replace("paid-in", "paidin").replace("paid in", "paidin")
    text = text.replace("net asset", "netasset")  # equity, which is no part of the assets
    return frozenset(word for found in _WORD.findall(text) if len(word := _folded(found)) > 1 and word not in _STOP)


def _folded(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        word = word[:-3] + "y"
    elif word.endswith("s") and not word.endswith("ss") and len(word) > 3:
        word = word[:-1]
    return _SAME.get(word, word)


@lru_cache(maxsize=20_000)
def folded_zh(label: str) -> str:
    """A Chinese label without numbering, remarks and blanks."""
    text = unicodedata.normalize("NFKC", label).replace(" ", "").replace("帐", "账").replace("股东权益", "所有者权益")
    text = _PREFIX_ZH.sub("", text)
    return _REMARK.sub("", text).strip(":：*") or text


@lru_cache(maxsize=2_000)
def variants(attribute: str) -> tuple[str, ...]:
    """An attribute and the other names of the same figure."""
    if is_han(attribute):
        key = folded_zh(attribute)
        same = [group for group in GROUPS_ZH if key in {folded_zh(name) for name in group}]
        first = [group for group in same if folded_zh(group[0]) == key] or same
    else:
        words = words_of(attribute)
        same = [group for group in GROUPS_EN if words in {words_of(name) for name in group}]
        first = [group for group in same if words_of(group[0]) == words] or same
    return tuple(dict.fromkeys([attribute, *(name for group in first[:1] for name in group)]))


@lru_cache(maxsize=2_000)
def _heard(attribute: str) -> frozenset[str]:
    """All words (or pairs of characters) of an attribute's names: a label without any of them is soon passed over."""
    names = variants(attribute)
    return frozenset(part for name in names for part in (_pairs(folded_zh(name)) if is_han(name) else words_of(name)))


@lru_cache(maxsize=40_000)
def _parts_of(label: str) -> frozenset[str]:
    return words_of(label) | _pairs(folded_zh(label)) if is_han(label) else words_of(label)


@lru_cache(maxsize=60_000)
def likeness(attribute: str, label: str) -> float:
    """From 0 to 1: whether a label names what an attribute asks for, by any of its names; 1 the same words."""
    if _heard(attribute).isdisjoint(_parts_of(label)):
        return 0.0
    best = 0.0
    for place, name in enumerate(variants(attribute)):
        one = (_likeness_zh if is_han(name) else _likeness_en)(name, label)
        best = max(best, one * (1.0 if not place else 0.97))
    return best


def _likeness_en(name: str, label: str) -> float:
    head = _DETAIL.split(label, maxsplit=1)[0]
    whole = _words_alike(name, label)
    return whole if head == label else max(whole, _HEAD_WEIGHT * _words_alike(name, head))


def _words_alike(name: str, label: str) -> float:
    asked, said = words_of(name), words_of(label)
    common = asked & said
    if not common or _opposed(asked, said):
        return 0.0
    if asked == said:
        return 1.0
    weight = _weight(common)
    share = weight / _weight(said)
    # One word says little: a label must say little else, or begin with it ("Cash held in trust", not "Petty cash").
    is_part = len(asked) == 1 and not re.match(
        rf"\W*{re.escape(name)}s?\b\s*(?:and|or|from|of|for|in|at|held)\b", label, re.I
    )
    return 0.97 * share if is_part else _ASKED * weight / _weight(asked) + _SAID * share


def _weight(words: frozenset[str]) -> float:
    return sum(_WEIGHTS.get(word, 1.0) for word in words)


def _opposed(asked: frozenset[str], said: frozenset[str]) -> bool:
    """Whether one label says what the other rules out ("payable", "receivable")."""
    for ones in _OPPOSED:
        a, b = asked & set(ones), said & set(ones)
        if a and b and not (a <= b) and (not a & b or ones in _OPPOSED[5:7]):
            return True
        if a and b and a < b and ones == ("asset", "liability"):
            return True
    return False


def _likeness_zh(name: str, label: str) -> float:
    asked, said = folded_zh(name), folded_zh(label)
    if asked == said:
        return 1.0
    if _TOTAL_ZH.sub("", asked) == _TOTAL_ZH.sub("", said):
        return 0.98
    if not said or any(
        _says(asked, ones) and _says(said, ones) and _says(asked, ones) != _says(said, ones) for ones in _OPPOSED_ZH
    ):
        return 0.0
    first, second = _pairs(asked), _pairs(said)
    common = len(first & second)
    if not common:
        return 0.0
    return _ASKED * common / len(first) + _SAID * common / len(second)


@lru_cache(maxsize=20_000)
def said_in(attribute: str, sentence: str) -> float:
    """From 0 to 0.8: how much of an attribute, by any of its names, a sentence says."""
    if _heard(attribute).isdisjoint(_parts_of(sentence)):
        return 0.0
    best = 0.0
    for name in variants(attribute):
        if is_han(name):
            asked, said = _pairs(folded_zh(name)), _pairs(folded_zh(sentence))
            part = len(asked & said) / len(asked)
        else:
            asked, said = words_of(name), words_of(sentence)
            part = 0.0 if _opposed(asked, said) or not asked else _weight(asked & said) / _weight(asked)
        best = max(best, part)
    return _SENTENCE * best


def _says(text: str, ones: tuple[str, ...]) -> str:
    """Which of opposed words a text says; the first that it holds, so that "非流动" comes before "流动"."""
    return next((one for one in ones if one in text), "")


def _pairs(text: str) -> frozenset[str]:
    return frozenset(text[place : place + 2] for place in range(len(text) - 1)) or frozenset({text})


def is_known(attribute: str) -> bool:
    """Whether an attribute is one of those that statements are known to have."""
    return len(variants(attribute)) > 1
