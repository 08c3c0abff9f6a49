"""Relations of the names that one sentence holds together, each name tied to the one before it by the words between.

What says more about a text's things than that they share a sentence is left to a model (GraphRAG's cheap index relates
names in the same way). The sentence is kept as the statement.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from prompts.text.names import NameSpan
from prompts.text.words import CJK

PRONOUN = re.compile(
    r"\s*[\"“'(*_#>-]*\s*(?:(?:in|by|since|until|after|before|on|at|during|from)\s+[\w ,]{1,30}?,?\s+)?"
    r"(?:he|she|it|they|his|her|its|their|the (?:company|bridge|film|song|book|novel|album|town|village|city|river|"
    r"institute|museum|school|ship|ferry|brewery|firm|band|series|show|project|building|plant|station|author|engineer))\b"
    r"|\s*(?:他|她|它|其|该[公司桥馆校厂院社所船])",
    re.I,
)
TOGETHER, TOGETHER_ZH = "named with", "同见"
_LEFT_OUT = re.compile(
    r"\([^()]*\)|\[[^\]]*\]|（[^（）]*）|\b(?:was|were|is|are|has|have|had|been|be|also|the|a|an|its|his|her|their|later|"
    r"then|who|which|that|and|or|but)\b|['’]s\b|[的了于是由在]|以及|并且|而且|其中|通过|"
    r"\b(?:in\s+)?(?:\d[\d.,/–-]*(?:th|st|nd|rd)?|January|February|March|April|May|June|July|August|September|October|"
    r"November|December)\b",
    re.I,
)
_WORD = re.compile(rf"[^\W\d_{CJK}]+(?:['’-][^\W\d_{CJK}]+)*|[{CJK}]+")
_PREPOSITIONS = frozenset(
    "in at on by from to with for near under over into between through across as within outside against after "
    "before".split()
)
_ZH_LISTING = frozenset("和 与 及 或 等 跟 同 我们".split())
_ZH_CLAUSE = re.compile(rf"[{CJK}*][，,；。]")
_MOST_WORDS, _MOST_HAN = 8, 12


@dataclass(frozen=True, slots=True)
class Statement:
    """`source` -[`predicate`]-> `target`, said by the sentence at `start`..`end`."""

    source: str
    target: str
    predicate: str
    start: int
    end: int


def statements(text: str, start: int, end: int, names: Sequence[NameSpan], topic: str) -> Iterator[Statement]:
    """The relations of the names in the sentence `text[start:end]`; where it opens with a pronoun, of the topic too.

    In a list ("designed A, B and C") the words before it hold for all.
    """
    pronoun = PRONOUN.match(text, start, names[0].start if names else start)
    previous, position = (topic, pronoun.end()) if topic and pronoun else ("", start)
    source = predicate = ""
    for name in names:
        if name.start < position:
            continue
        words = _predicate(text[position : name.start])
        if predicate and words in _PREPOSITIONS:  # "founded in Velin by Ada Korb": by her was founded, not Velin
            predicate = " ".join([*(word for word in predicate.split() if word not in _PREPOSITIONS), words])
        elif words or not predicate:
            source, predicate = previous, words
        if source and source != name.text:
            together = TOGETHER_ZH if re.search(f"[{CJK}]", name.text) else TOGETHER
            yield Statement(source, name.text, predicate or together, start, end)
        previous, position = name.text, name.end


def _predicate(between: str) -> str:
    """The connecting words without articles, auxiliaries, dates and brackets: "was later designed by the" → "designed
    by"; empty where there are none, or a Chinese clause lies between."""
    words = _WORD.findall(_LEFT_OUT.sub(" ", between).lower())
    if any("\u4e00" <= word[0] <= "\u9fff" for word in words):
        said = "".join(words)
        return said if len(said) <= _MOST_HAN and said not in _ZH_LISTING and not _ZH_CLAUSE.search(between) else ""
    return " ".join(words if len(words) <= _MOST_WORDS else [*words[:4], "…", *words[-3:]])
