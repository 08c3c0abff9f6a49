"""What a question is about, and how much a text says about it: the weighted coverage of its words."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache

from prompts.text.evidence import Evidence
from prompts.text.names_zh import tagged
from prompts.text.question import ParsedQuestion
from prompts.text.thesaurus import concept_terms, members
from prompts.text.words import HAN_STOP, fold, fold_name, is_han, words_in

# What the words of the best passages count beside those of the question.
NEAR_SHARE = 0.6
# What is left of a sentence's fit where its passage is not near.
OWN_FIT = 0.4
# From this share of the words (the question's, those near to it) on a sentence speaks of it.
ENOUGH = 0.25
SHORTEST = 25  # signs: less is a label
_HAN_SIGNS = 3  # signs of a Latin script that say as much as one Han character
_ASKED_BACK = re.compile(r"[?？]\W*$")
_ZH_ASKING = re.compile(
    r"请问|现在|目前|如今|由谁|是谁|谁|什么时候|什么|哪一年|哪年|哪里|哪儿|哪[一二两三四五六七八九十几]?[个些种位家项]?|多少|"
    r"怎么样|怎么|怎样|如何|为什么|为何|是否|有没有|能否|主要|从|的|了|是|在|被|把|由|和|与|及|或|吗|呢|[?？，,。:：、]"
)
_ASKING = frozenset(
    "~say ~find ~use many much often name list tell give state kind type thing one two three please exactly "
    "哪个 哪些 什么 多少 请问 如何 怎么 为什 是什 现在 主要 最后 哪两 哪一 哪里 哪年 多长 多高".split()
)


@cache
def collection_terms() -> frozenset[str]:
    """The terms that speak of documents and what is said in them."""
    return frozenset(
        term
        for language in ("english", "chinese")
        for word in words_in(language, "of_collections")
        for term in concept_terms(word)
    )


@dataclass(frozen=True)
class QuestionTopic:
    """What a question is about, apart from the words that ask and those that speak of documents.

    "Which guests discuss the role of failure in innovation?" is about failure and innovation. `weights` are these terms
    with their rarities, `names` the terms of each thing named with its names as they are folded, under any of which it
    counts. `near` holds the words of the passages that fit best, with their weights (together 1; relevance models:
    Lavrenko and Croft 2001), `absent` the terms that nothing in the collection has.
    """

    question: ParsedQuestion
    weights: Mapping[str, float]
    names: Sequence[tuple[frozenset[str], tuple[str, ...]]] = ()
    near: Mapping[str, float] = field(default_factory=dict)
    absent: frozenset[str] = frozenset()

    @classmethod
    def of(
        cls, question: ParsedQuestion, rarity: Callable[[str], float], aliases: Mapping[str, Sequence[str]]
    ) -> "QuestionTopic":
        """`rarity` is that of a term in the collection; a concept is as rare as the commonest of its words. `aliases`
        has the other names of each thing that the question names."""
        text = question.text
        if question.chinese:  # its words apart, so that no term runs over the end of one; single characters say little
            words = tagged(_ZH_ASKING.sub(" ", text))
            text = " ".join(word for word, _, _ in words if len(word) > 1 or not is_han(word))
        # "Summarise" says what to do with the evidence, not what is in it.
        left_out = _ASKING | collection_terms() | ({"~summary"} if question.form == "summary" else set())
        wanted = [term for term in concept_terms(text) if term not in left_out]
        wanted = [term for term in wanted if not (len(term) == 2 and HAN_STOP.issuperset(term))]
        # The graph knows common Chinese words ("社区") as names too: one so short is no name of its own.
        known = {name: (name, *others) for name, others in aliases.items() if len(name) > 2 or not is_han(name)}
        names = [
            (frozenset(concept_terms(name)), tuple(filter(None, map(fold_name, forms))))
            for name, forms in known.items()
        ]
        return cls(question, {term: min(map(rarity, members(term)), default=rarity(term)) for term in wanted}, names)

    @cached_property
    def asked(self) -> dict[str, float]:
        """The terms that the question asks about with their weights (together 1); none where it asks about all.

        What nothing in the collection has tells no sentence from another, and is left out beside other words.
        """
        weights = {term: weight for term, weight in self.weights.items() if term not in self.absent} or self.weights
        total = sum(weights.values())
        return {term: weight / total for term, weight in weights.items()} if total else {}

    @property
    def missing(self) -> float:
        """The share of what the question asks about that the collection has no word of, 0-1."""
        total = sum(self.weights.values())
        return sum(weight for term, weight in self.weights.items() if term in self.absent) / total if total else 0.0

    def covered(self, text: str) -> float:
        """The share of what the question asks about that a text has, 0-1."""
        terms = term_set(text)
        terms = terms.union(*(own for own, forms in self.names if _named(text, forms)))
        return sum(weight for term, weight in self.asked.items() if term in terms)

    def worth(self, piece: Evidence) -> float:
        """How much a sentence helps to answer, 0-1; its `prior` (0-1) is the nearness of its passage. 0: not at all."""
        text = " ".join(piece.text.split())
        if not self.asked:
            return telling(text)
        near = min(1.0, sum(weight for term, weight in self.near.items() if term in term_set(text)) / ENOUGH)
        # Where the question names something, it may stand in the title too.
        asked = self.covered(f"{piece.title} {text}" if self.names else text)
        share = NEAR_SHARE if self.near else 0.0
        # What has next to none of the question's words is at most about something near to it.
        spoken = min(1.0, asked / ENOUGH)
        fit = (asked + share * near) / (1 + share)
        return telling(text) * (1 + spoken) / 2 * fit * (OWN_FIT + (1 - OWN_FIT) * piece.prior)


@lru_cache(maxsize=50_000)
def term_set(text: str) -> frozenset[str]:
    """The distinct terms of a text, as `concept_terms` has them."""
    return frozenset(concept_terms(text))


@lru_cache(maxsize=50_000)
def _named(text: str, forms: tuple[str, ...]) -> bool:
    """Whether a text holds a name under one of its folded forms, as whole words where it has spaces."""
    if is_han(text):
        return any(form in fold(text) for form in forms)
    folded = f" {fold_name(text)} "
    return any(f" {form} " in folded if form.isascii() else form in folded for form in forms)


def telling(text: str) -> float:
    """How much a sentence says that stands by itself, 0-1: less a question, nothing a label or a heading."""
    if len(text) * (_HAN_SIGNS if is_han(text) else 1) < SHORTEST or text.startswith("#"):
        return 0.0
    return 0.5 if _ASKED_BACK.search(text) else 1.0
