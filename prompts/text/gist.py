"""The topic of a question about a whole collection, apart from the words that speak of the collection itself.

"Which guests discuss the role of failure in innovation?" is about failure and innovation; that guests discuss it is so
of every document. What documents say of it uses other words too: `near` holds those of the passages that fit best
(relevance models: Lavrenko and Croft 2001).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from prompts.text.concepts import concept_terms
from prompts.text.evidence import Evidence
from prompts.text.relevance import Relevance, term_set
from prompts.text.words import content_terms, is_han

# What the words of the best passages count beside those of the question.
NEAR_SHARE = 0.6
# What is left of a sentence's fit where its passage is not near.
OWN_FIT = 0.4
# From this share of the words (the question's, those near to it) on a sentence speaks of it.
ENOUGH = 0.25
SHORTEST, SHORT, LONG = 25, 60, 420  # signs: a label or an aside; little said; much beside the point
_HAN_SIGNS = 3  # signs of a Latin script that say as much as one Han character
_ABOUT_ALL = """
main major key central overall common commonly general generally important frequent frequently recur recurring typical
typically usual usually often consistently certain specific particular particularly various different several
many much most multiple number example instance kind sort type way part aspect area field sector context
theme topic subject issue idea point view perspective insight opinion thought role
document text corpus collection data set file source content report article paper chapter page book transcript record
podcast episode show series interview conversation discussion dialogue talk speech meeting message
guest speaker host interviewee participant author writer leader expert person people anyone someone
discuss cover talk speak say tell mention describe explain express share cite note highlight emphasise emphasize focus
feature present address deal explore raise broach suggest consider perceive see believe think view find contain
quote primarily across about appear arise revolve summary summarise summarize overview compare list identify standout
主题 话题 内容 文档 文件 资料 文章 材料 主要 总体 整体 概述 总结 讨论 涉及 重要 常见 经常 哪些 提到 谈到 介绍 说明 描述
嘉宾 作者 节目 采访 观点 看法 说法 方面 例子 关于 有关 对于
反复 出现 贯穿
"""


def _terms_of(words: str) -> frozenset[str]:
    return frozenset(term for word in words.split() for term in concept_terms(word))


_OF_COLLECTION = _terms_of(_ABOUT_ALL)
_COURTESY = re.compile(
    r"\b(?:welcome (?:back )?to|thank you|thanks|our guest|your host|nice to|great to|stay tuned|glad (?:to|you)|"
    r"my pleasure|see you next|joining us|listening|listeners|podcast|"
    r"guests?|(?:this|last|next) (?:show|episode)|"
    r"(?:our|this|the|earlier in the) conversations?|remind me|tell me|talk (?:a (?:little )?bit )?about)\b",
    re.I,
)
A_FILE = re.compile(r"\w_\w|\.(?:txt|md|pdf|docx?|html?)\b")
_ASKED_BACK = re.compile(r"[?？]\W*$")
_LOOSE = re.compile(r"(?:(?:and|but|so|or|yeah|yes|no|well|right|okay|like|because|which)\b)", re.I)
_I_MEAN = re.compile(r"\b(?:you know|sort of|kind of|I mean|I think|um+|uh+)\b|\blike,", re.I)


@dataclass(frozen=True)
class Gist:
    """The judge of a question, and the words near to what it asks about with their weights (together 1)."""

    relevance: Relevance
    near: Mapping[str, float] = field(default_factory=dict)
    # Words of the question that nearly every passage has, those that are commonplace, and those that none has.
    everywhere: frozenset[str] = frozenset()
    common: frozenset[str] = frozenset()
    absent: frozenset[str] = frozenset()

    @cached_property
    def asked(self) -> dict[str, float]:
        """The terms that the question asks about with their weights (together 1); none where it asks about all.

        What nothing in the collection has tells no sentence from another, and is left out beside other words.
        """
        wanted = {} if self.of_all else self._wanted
        kept = {term: weight for term, weight in wanted.items() if term not in self.absent} or wanted
        total = sum(kept.values())
        return {term: weight / total for term, weight in kept.items()} if total else {}

    @cached_property
    def missing(self) -> float:
        """The share of what the question asks about that the collection has no word of, 0-1."""
        total = sum(self._wanted.values())
        return sum(weight for term, weight in self._wanted.items() if term in self.absent) / total if total else 0.0

    @cached_property
    def _wanted(self) -> dict[str, float]:
        left_out = _OF_COLLECTION | self.everywhere
        return {term: weight for term, weight in self.relevance.weights.items() if term not in left_out}

    @cached_property
    def words(self) -> list[str]:
        """The terms for lexical search; all where the question asks about everything."""
        terms = content_terms(self.relevance.ask.text)
        return [term for term in terms if not all(map(self.of_collection, concept_terms(term)))] or terms

    def of_collection(self, term: str) -> bool:
        """Whether a term speaks of documents and what is said in them, whatever they are about."""
        return term in _OF_COLLECTION

    @cached_property
    def of_all(self) -> bool:
        """Whether the question asks about the collection as such, and names nothing in it."""
        return not self.relevance.names and not set(self.relevance.cues) - _OF_COLLECTION

    def covered(self, text: str) -> float:
        """The share of what the question asks about that the text has, 0-1."""
        here = term_set(text)
        return sum(weight for term, weight in self.asked.items() if term in here)

    def fit(self, piece: Evidence) -> float:
        """How much a sentence is about it, 0-1: the question's words, and the words near to them."""
        here = term_set(piece.text)
        near = min(1.0, sum(weight for term, weight in self.near.items() if term in here) / ENOUGH)
        if not self.asked:
            return near
        share = NEAR_SHARE if self.near else 0.0
        return (self.asked_in(piece) + share * near) / (1 + share)

    def asked_in(self, piece: Evidence) -> float:
        """The share of what the question asks about that a sentence has, 0-1. Where the question names something, under
        any of its names, in the title too."""
        return self.relevance.judge(piece).coverage if self.relevance.names else self.covered(piece.text)

    def worth(self, piece: Evidence) -> float:
        """How much a sentence helps to answer, 0-1; its `prior` (0-1) is the nearness of its passage. 0: not at all."""
        fit = self.fit(piece)
        if not fit:
            return 0.0
        # What has next to none of the question's words is at most about something near to it.
        asked = min(1.0, self.asked_in(piece) / ENOUGH) if self.asked else 1.0
        text = " ".join(piece.text.split())
        return telling(text) * (1 + asked) / 2 * fit * (OWN_FIT + (1 - OWN_FIT) * piece.prior)


@lru_cache(maxsize=50_000)
def telling(text: str) -> float:
    """How much a sentence says that stands by itself, 0-1: less a question, a courtesy, a fragment, a file's name."""
    size = len(text) * (_HAN_SIGNS if is_han(text) else 1)
    if size < SHORTEST or text.startswith("#"):
        return 0.0
    worth = 1.0 if SHORT <= size <= LONG else 0.7
    worth *= 0.5 if _ASKED_BACK.search(text) else 1.0
    worth *= 0.4 if _COURTESY.search(text) else 1.0
    worth *= 0.3 if A_FILE.search(text) else 1.0
    worth *= 0.9 if _LOOSE.match(text) else 1.0
    return worth * max(0.7, 1 - 0.1 * len(_I_MEAN.findall(text)))
