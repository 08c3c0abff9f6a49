"""Relevance of a sentence to a question, and the topic of a question about a whole collection.

Relevance is the weighted coverage of the question's words. A word counts fully where the sentence
has it, nearly so in the title or heading, and in the sentence before where a pronoun refers back to
it. Names count as a whole, under any alias.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache

from prompts.text.evidence import Evidence
from prompts.text.names_zh import tagged
from prompts.text.question import ParsedQuestion
from prompts.text.thesaurus import concept_terms
from prompts.text.words import HAN_STOP, content_terms, fold, fold_name, is_han, words_in

# What opens a sentence and refers to something named before it.
PRONOUN = re.compile(
    r"\s*+[\"“'(*_#>-]*+\s*+(?:(?:in|by|since|until|after|before|on|at|during|from)\s{1,9}[\w "
    r",]{1,30}?,?\s{1,9})?"
    r"(?:he|she|it|they|his|her|its|their|the "
    r"(?:company|bridge|film|song|book|novel|album|town|village|city|river|"
    r"institute|museum|school|ship|ferry|brewery|firm|band|series|show|project|building|plant|station|author|engineer))\b"
    r"|\s*(?:他|她|它|其|该[公司桥馆校厂院社所船])",
    re.I,
)
TITLE_SHARE, HEADING_SHARE, BEFORE_SHARE, PRONOUN_SHARE = 0.9, 0.8, 0.5, 0.95
_ZH_ASKING = re.compile(
    r"请问|现在|目前|如今|由谁|是谁|谁|什么时候|什么|哪一年|哪年|哪里|哪儿|哪[一二两三四五六七八九十几]?[个些种位家项]?|多少|"
    r"怎么样|怎么|怎样|如何|为什么|为何|是否|有没有|能否|主要|从|的|了|是|在|被|把|由|和|与|及|或|吗|呢|[?？，"
    r",。:：、]"
)
_ASKING = frozenset(
    "~say ~find ~use many much often name list tell give state kind type thing one two three please"
    " exactly 哪个 哪些 什么 多少 请问 如何 怎么 为什 是什 现在 主要 最后 哪两 哪一 哪里 哪年 "
    "多长 多高".split()
)


class Relevance:
    """How much of one question a sentence has."""

    def __init__(
        self,
        question: ParsedQuestion,
        weights: Mapping[str, float],
        aliases: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        """Read a question.

        `weights` are the rarities of terms (a missing one counts as rare), `aliases` the other
        names of each name in the question.
        """
        self.question, self.aliases = question, aliases or {}
        rarest = max(weights.values(), default=1.0)
        # A Chinese name of two characters ("社区") may be a common word.
        known = {
            name: (name, *others)
            for name, others in self.aliases.items()
            if len(name) > 2 or not is_han(name)
        }
        self.names = [
            tuple({form: None for form in map(fold_name, forms) if form})
            for forms in known.values()
        ]
        self._terms_of_names = [frozenset(concept_terms(name)) for name in known]
        self.name_terms = frozenset[str]().union(*self._terms_of_names)
        text = question.text
        # Chinese words are separated, so that no term crosses their ends.
        if question.chinese:
            words = tagged(_ZH_ASKING.sub(" ", text))
            text = " ".join(word for word, _, _ in words if len(word) > 1 or not is_han(word))
        # "Summarise" says what to do, not what to look for.
        asking = _ASKING | {"~summary"} if question.form == "summary" else _ASKING
        fillers = {
            term for term in concept_terms(text) if len(term) == 2 and HAN_STOP.issuperset(term)
        }
        wanted = [term for term in concept_terms(text) if term not in asking | fillers]
        self.weights = {term: weights.get(term, rarest * 0.7) for term in wanted}
        self.cues = [term for term in wanted if term not in self.name_terms]

    def coverage(self, evidence: Evidence) -> float:
        """Return the weighted share (0-1) of the question's words that a sentence has."""
        shares, total = self._shares(evidence), sum(self.weights.values()) or 1.0
        return sum(weight * shares[term] for term, weight in self.weights.items()) / total

    def _shares(self, evidence: Evidence) -> dict[str, float]:
        """Return how far the sentence has each word; a name under an alias has all its words."""
        text_terms, before = term_set(evidence.text), term_set(evidence.before)
        title, heading = term_set(evidence.title), term_set(evidence.heading)
        refers_back = PRONOUN.match(evidence.text) is not None
        back = PRONOUN_SHARE if refers_back else BEFORE_SHARE
        shares = {
            term: (
                1.0
                if term in text_terms
                else max(
                    TITLE_SHARE * (term in title),
                    HEADING_SHARE * (term in heading),
                    back * (term in before),
                )
            )
            for term in self.weights
        }
        around = f"{evidence.title} {evidence.heading} {evidence.before if refers_back else ''}"
        for terms, forms in zip(self._terms_of_names, self.names, strict=True):
            held = max(float(_names(evidence.text, forms)), TITLE_SHARE * _names(around, forms))
            shares |= {term: max(shares[term], held) for term in terms if term in shares}
        return shares


@lru_cache(maxsize=200_000)  # As many as the reports of a large collection
def term_set(text: str) -> frozenset[str]:
    """Return the `concept_terms` of a text as a set."""
    return frozenset(concept_terms(text))


@lru_cache(maxsize=50_000)
def _names(text: str, forms: tuple[str, ...]) -> bool:
    """Whether a text holds a name in one of its folded forms, as whole words where it has any."""
    if is_han(text):
        return any(form in fold(text) for form in forms)
    folded = f" {fold_name(text)} "
    return any(f" {form} " in folded if form.isascii() else form in folded for form in forms)


# --- questions about a whole collection -----------------------------------------------------------

NEAR_SHARE = 0.6  # The weight of the words of the best passages beside the question's
OWN_FIT = 0.4  # What remains of a sentence's fit where its passage is not near
ENOUGH = 0.25  # The share of words from which a sentence speaks of a topic
SHORTEST = 25  # Characters; less is a label or an aside
SHORT, LONG = 60, 420  # Characters; less says little, more strays from the point
_HAN_SIGNS = 3  # Latin letters that say as much as one Han character


A_FILE = re.compile(r"\w_\w|\.(?:txt|md|pdf|docx?|html?)\b")
_ASKED_BACK = re.compile(r"[?？]\W*$")


@cache
def _of_collection() -> frozenset[str]:
    """Return the terms for documents and what is said in them."""
    return frozenset(
        term
        for language in ("english", "chinese")
        for word in words_in(language, "of_collections")
        for term in concept_terms(word)
    )


@dataclass(frozen=True)
class CollectionTopic:
    """The topic of a question about a collection, without the words about collections.

    "Which guests discuss the role of failure in innovation?" is about failure and innovation.
    `near` holds the words of the passages that fit best, with weights that sum up to 1 (relevance
    models: Lavrenko and Croft 2001). `everywhere` and `absent` are words of the question that
    nearly every passage has, and that no passage has.
    """

    relevance: Relevance
    near: Mapping[str, float] = field(default_factory=dict)
    everywhere: frozenset[str] = frozenset()
    absent: frozenset[str] = frozenset()

    @cached_property
    def asked(self) -> dict[str, float]:
        """The terms that the question asks about, with weights that sum up to 1.

        Empty where it asks about everything. Words that no passage has are left out beside others.
        """
        wanted = {} if self.of_all else self._wanted
        weights = {
            term: weight for term, weight in wanted.items() if term not in self.absent
        } or wanted
        total = sum(weights.values())
        return {term: weight / total for term, weight in weights.items()} if total else {}

    @cached_property
    def missing(self) -> float:
        """The weighted share (0-1) of the asked terms that the collection lacks."""
        total = sum(self._wanted.values())
        absent = sum(weight for term, weight in self._wanted.items() if term in self.absent)
        return absent / total if total else 0.0

    @cached_property
    def _wanted(self) -> dict[str, float]:
        left_out = _of_collection() | self.everywhere
        return {
            term: weight for term, weight in self.relevance.weights.items() if term not in left_out
        }

    @cached_property
    def words(self) -> list[str]:
        """The terms for lexical search; all terms where the question asks about everything."""
        terms = content_terms(self.relevance.question.text)
        return [
            term for term in terms if not all(map(self.of_collection, concept_terms(term)))
        ] or terms

    def of_collection(self, term: str) -> bool:
        """Whether a term is about documents and what is said in them."""
        return term in _of_collection()

    @cached_property
    def of_all(self) -> bool:
        """Whether the question asks about the whole collection and names nothing in it."""
        return not self.relevance.names and not set(self.relevance.cues) - _of_collection()

    def covered(self, text: str) -> float:
        """Return the weighted share (0-1) of the asked terms that a text has."""
        text_terms = term_set(text)
        return sum(weight for term, weight in self.asked.items() if term in text_terms)

    def worth(self, piece: Evidence) -> float:
        """Return how much a sentence helps to answer (0-1); `prior` is its passage's nearness."""
        text_terms = term_set(piece.text)
        near = min(
            1.0, sum(weight for term, weight in self.near.items() if term in text_terms) / ENOUGH
        )
        # A name may stand in the title, under any alias.
        asked = self.relevance.coverage(piece) if self.relevance.names else self.covered(piece.text)
        share = NEAR_SHARE if self.near else 0.0
        fit = (asked + share * near) / (1 + share) if self.asked else near
        # A sentence without the question's words is at most about something near it.
        spoken = min(1.0, asked / ENOUGH) if self.asked else 1.0
        text = " ".join(piece.text.split())
        return telling(text) * (1 + spoken) / 2 * fit * (OWN_FIT + (1 - OWN_FIT) * piece.prior)


@lru_cache(maxsize=50_000)
def telling(text: str) -> float:
    """Return how much a sentence says (0-1): less for questions, fragments and file names."""
    size = len(text) * (_HAN_SIGNS if is_han(text) else 1)
    if size < SHORTEST or text.startswith("#"):
        return 0.0
    worth = 1.0 if SHORT <= size <= LONG else 0.7
    worth *= 0.5 if _ASKED_BACK.search(text) else 1.0
    return worth * (0.3 if A_FILE.search(text) else 1.0)
