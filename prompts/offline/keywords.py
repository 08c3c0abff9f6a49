"""Keys of a question by rules: its names, quoted terms and figures; and its other telling words."""

import re

from prompts.text.languages import names_of
from prompts.text.names import OPENERS
from prompts.text.names_zh import tagged
from prompts.text.words import HAN_STOP, STOPWORDS, WORD, is_han

_QUOTED = re.compile(r"[\"“「『《]([^\"“”「」『』《》]{2,60})[\"”」』》]")
_FIGURE = re.compile(r"(?<![\w.])\d[\d,.]*(?:%|\b)")
# Words of a request that say nothing of what is wanted.
_ASKING = frozenset(
    "tell describe list name give explain show find compare many much long "
    "old kind one ones".split()
)
_ZH_ASKING = frozenset(
    "介绍 说明 解释 请问 告诉 列出 比较 指 怎么样 怎样 意思 问题 情况 有 是 用 做 取 时".split()
)
# Nouns and verbs, by jieba's tags.
_ZH_TOPIC = ("n", "v", "eng", "l", "i", "j")


def keywords_offline(question: str) -> tuple[list[str], list[str]]:
    """The low keys, in order, and the high ones."""
    rest = " ".join(question.split())
    low: dict[int, str] = {}
    names = [(name.start, name.end) for name in names_of(rest) if name.text.lower() not in _ASKING]
    quoted, figures = (
        [match.span(match.re.groups) for match in p.finditer(rest)] for p in (_QUOTED, _FIGURE)
    )
    for start, end in (*quoted, *names, *figures):
        if "\0" not in rest[start:end]:  # no part of an earlier one
            low[start] = rest[start:end]
            rest = rest[:start] + "\0" * (end - start) + rest[end:]
    if is_han(question):
        high = [
            word
            for word, tag, _ in tagged(rest)
            if tag.startswith(_ZH_TOPIC) and word not in _ZH_ASKING
        ]
        high = [word for word in high if not HAN_STOP.issuperset(word)]
    else:
        high = [
            word for word in WORD.findall(rest.lower()) if word not in STOPWORDS | OPENERS | _ASKING
        ]
    return [low[start] for start in sorted(low)], high
