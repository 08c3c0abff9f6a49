"""Keywords of a question without a model: names, quoted terms and figures; and other words."""

import re

from prompts.text.languages import names_of
from prompts.text.names import OPENERS
from prompts.text.names_zh import tagged
from prompts.text.words import HAN_STOP, STOPWORDS, WORD, is_han

_QUOTED = re.compile(r"[\"“「『《]([^\"“”「」『』《》]{2,60})[\"”」』》]")
_FIGURE = re.compile(r"(?<![\w.])\d[\d,.]*(?:%|\b)")
# Words of a request that do not say what is wanted.
_ASKING = frozenset(
    "tell describe list name give explain show find compare many much long old kind one "
    "ones".split()
)
_ZH_ASKING = frozenset(
    "介绍 说明 解释 请问 告诉 列出 比较 指 怎么样 怎样 意思 问题 情况 有 是 用 做 取 时".split()
)
# Jieba's tags of nouns and verbs.
_ZH_TOPIC = ("n", "v", "eng", "l", "i", "j")


def keywords_offline(question: str) -> tuple[list[str], list[str]]:
    """Return the low-level keys (names, quotes, figures) and the high-level ones (topics)."""
    rest = " ".join(question.split())
    low: dict[int, str] = {}
    names = [(name.start, name.end) for name in names_of(rest) if name.text.lower() not in _ASKING]
    quoted, figures = (
        [match.span(match.re.groups) for match in p.finditer(rest)] for p in (_QUOTED, _FIGURE)
    )
    for start, end in (*quoted, *names, *figures):
        if "\0" not in rest[start:end]:  # Not inside an earlier key
            low[start] = rest[start:end]
            rest = rest[:start] + "\0" * (end - start) + rest[end:]
    if is_han(question):
        high = [
            word
            for word, tag, _ in tagged(rest)
            if tag.startswith(_ZH_TOPIC)
            and word not in _ZH_ASKING
            and not HAN_STOP.issuperset(word)
        ]
    else:
        high = [
            word for word in WORD.findall(rest.lower()) if word not in STOPWORDS | OPENERS | _ASKING
        ]
    return [low[start] for start in sorted(low)], high
