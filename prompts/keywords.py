"""By which keys is the graph searched for a question? Low ones name things, high ones what is asked of them.

Source: LightRAG (arXiv 2410.05779), section 3.2, query keyword extraction.
"""

import re
from collections.abc import Iterable, Sequence

import dspy
from pydantic import BaseModel, Field

from prompts.engine.step import Step
from prompts.language.names import name_spans
from prompts.language.names_zh import name_spans_zh, tagged
from prompts.language.openers import OPENERS
from prompts.language.words import HAN_STOP, STOPWORDS, WORD, is_han

MAX_KEYS = 5
_LONGEST = 60
_QUOTED = re.compile(r"[\"“「『《]([^\"“”「」『』《》]{2,60})[\"”」』》]")
_FIGURE = re.compile(r"(?<![\w.])\d[\d,.]*(?:%|\b)")
# Words of a request that say nothing of what is wanted.
_ASKING = frozenset("tell describe list name give explain show find compare many much long old kind one ones".split())
_ZH_ASKING = frozenset("介绍 说明 解释 请问 告诉 列出 比较 指 怎么样 怎样 意思 问题 情况 有 是 用 做 取 时".split())
# Nouns and verbs, by jieba's tags.
_ZH_TOPIC = ("n", "v", "eng", "l", "i", "j")


class Keys(BaseModel):
    """The keys of a question, the most telling first."""

    low: list[str] = Field(default_factory=list, description=f"Names and specific things in it, at most {MAX_KEYS}.")
    high: list[str] = Field(
        default_factory=list, description=f"Relations and themes that it asks about, at most {MAX_KEYS}."
    )


class FindKeys(dspy.Signature):
    """Find the keys by which a knowledge graph is searched for the question: short, in the question's language."""

    question: str = dspy.InputField()
    found: Keys = dspy.OutputField()


class Keywords(Step):
    """A question → its keys, by one short answer of a model."""

    step = "keywords"
    role = "rewrite"
    task = FindKeys

    async def run(self, question: str, *, rewritten: bool = False) -> Keys:
        """`rewritten`: a model has had its one call for this question already, so that rules find the keys."""
        if self.is_offline or rewritten:
            return keywords_offline(question)
        found: Keys = (await self.acall(question=question)).found
        return Keys(low=_short(found.low), high=_short(found.high))

    def offline(self, **inputs: object) -> dspy.Prediction:
        return dspy.Prediction(found=keywords_offline(str(inputs["question"])))


def keywords_offline(question: str) -> Keys:
    """Names by their looks, quoted terms and figures; then the other words that carry meaning, in the question's
    order."""
    text = " ".join(question.split())
    spans = name_spans_zh(text) if is_han(text) else name_spans(text, [(0, len(text))])
    quoted = [(match.start(1), match.end(1)) for match in _QUOTED.finditer(text)]
    named = [(span.start, span.end) for span in spans if span.text.lower() not in _ASKING]
    named = quoted + [place for place in named if not _inside(place, quoted)]
    figures = [match.span() for match in _FIGURE.finditer(text)]
    places = sorted(named + [place for place in figures if not _inside(place, named)])
    high = _topics_zh(text, places) if is_han(text) else _topics(text, places)
    return Keys(low=_short(text[start:end] for start, end in places), high=_short(high))


def _topics(text: str, taken: Sequence[tuple[int, int]]) -> list[str]:
    """Neighbouring words make one phrase ("burial place"): a phrase tells more than its words."""
    phrases: list[list[str]] = []
    last = -1
    for match in WORD.finditer(text):
        word = match.group().lower()
        if _inside(match.span(), taken) or word in STOPWORDS | OPENERS | _ASKING:
            continue
        if last >= 0 and text[last : match.start()] == " ":
            phrases[-1].append(word)
        else:
            phrases.append([word])
        last = match.end()
    return [" ".join(phrase) for phrase in phrases]


def _topics_zh(text: str, taken: Sequence[tuple[int, int]]) -> list[str]:
    return [
        word
        for word, tag, start in tagged(text)
        if tag.startswith(_ZH_TOPIC)
        and word not in _ZH_ASKING
        and not (len(word) == 1 and word in HAN_STOP)
        and not all(character in HAN_STOP for character in word)
        and not _inside((start, start + len(word)), taken)
    ]


def _inside(place: tuple[int, int], taken: Sequence[tuple[int, int]]) -> bool:
    return any(place[0] < end and start < place[1] for start, end in taken)


def _short(keys: Iterable[str]) -> list[str]:
    """Distinct keys of a bearable length, at most MAX_KEYS."""
    found = [" ".join(key.split()) for key in keys]
    return list(dict.fromkeys(key for key in found if 0 < len(key) <= _LONGEST))[:MAX_KEYS]
