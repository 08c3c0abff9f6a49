"""How likely does a sentence hold the answer? A weighted sum of plain signs.

The signs are shares and yes-or-no facts that can be read off a question and a sentence. Their weights are those of a
conditional logit (McFadden 1974) over published questions, in a few numbers a language: `python -m
benchmarks.reader_weights` fits them.
"""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from prompts.language.asked import Ask
from prompts.language.concepts import concept_terms
from prompts.language.words import CJK, fold_name
from prompts.reading.evidence import Evidence
from prompts.reading.hints import hint_of
from prompts.reading.relevance import Relevance, term_set

SIGNS = (
    "coverage",  # of the question's words, of its names, and of the others, by the sentence
    "names",
    "cues",
    "prior",  # the rank of its passage, 1 best
    "passage",  # coverage of all words, and of those that are no names, by its whole passage
    "passage_cues",
    "best_passage",
    "titled",  # whether the question names the passage's title
    "linked",  # how well a sentence of another passage covers the question that names this passage's title
    "first",  # whether it opens its passage
    "short",
    "long",
    "hint",  # whether it holds what such questions are answered by, or does not where the question's kind tells
    "unhinted",
    "noun",  # whether it has the noun asked for ("which company")
    "unnouned",
    "named",  # whether it names anything
    "runs",  # Chinese: shares of the question's runs of three, its characters, and those beside the asking word
    "characters",
    "beside",
)
Signs = tuple[float, ...]

_ASKING_ZH = re.compile(
    r"由谁|是谁|谁|什么时候|什么样|什么|为何|哪[一二两三四五六七八九十几]?[个些种位家项年天里儿座条艘部所国]?|多少|几|怎么样|怎么|"
    r"怎样|如何|何时|何"
)
_NOUN_ZH = re.compile(
    rf"(?:什么|哪[一二两三四五六七八九十几]?[个些种位家项座条艘部所]?|多少|几)(?:主要|重要|的)?([{CJK}]{{1,4}})"
)
_NOUN_EN = re.compile(r"\b(?:which|what)\s+(?:of the\s+)?((?:[\w'’-]+\s+){0,2}[\w-]+)", re.I)
_HAN = re.compile(f"[{CJK}]")
_EMPTY = frozenset("的了是在和与及或于一个有什哪为")
_NAME = re.compile(r"(?<=[a-z,;] )[A-Z][a-z]+|《[^》]+》|·")
_ASIDE = re.compile(r"[\s\W_]+")
_LINKING = 0.3  # coverage from which a sentence leads on to what it names


@dataclass(frozen=True, slots=True)
class Weighed:
    """Evidence with its weight: the higher, the likelier it holds the answer; only differences mean anything."""

    evidence: Evidence
    weight: float
    signs: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class _Passage:
    """What a whole passage says of the question: shares of its words covered, and whether its title is named."""

    all: float
    cues: float
    titled: bool


class Weigher:
    """Weighs the sentences of one question's evidence."""

    def __init__(self, evidence: Sequence[Evidence], relevance: Relevance) -> None:
        self.ask, self.relevance, self.evidence = relevance.ask, relevance, evidence
        self.by_document: dict[str, list[Evidence]] = defaultdict(list)
        for piece in evidence:
            self.by_document[piece.document].append(piece)
        self.passages = {name: self._passage(pieces) for name, pieces in self.by_document.items()}
        self.most = max((passage.all for passage in self.passages.values()), default=0.0)
        self.linked = self._linked()
        self.hint = hint_of(self.ask.text)
        self.noun = _noun_zh(self.ask.text) if self.ask.chinese else _noun_terms(self.ask)
        bare = _ASKING_ZH.sub(" ", self.ask.text) if self.ask.chinese else ""
        self.runs, self.beside = grams(bare, 3), _beside(self.ask.text) if self.ask.chinese else frozenset[str]()
        for name in sorted((form for forms in relevance.names for form in forms), key=len, reverse=True):
            bare = bare.casefold().replace("·", " ").replace(name, "")
        self.characters = frozenset(_HAN.findall(bare)) - _EMPTY

    def ranked(self) -> list[Weighed]:
        """All of the evidence, likeliest first; ties go to the earlier piece."""
        weights = WEIGHTS_ZH if self.ask.chinese else WEIGHTS_EN
        weighed = []
        for piece in self.evidence:
            signs = self.signs(piece)
            weight = sum(value * sign for value, sign in zip(weights, signs, strict=True))
            weighed.append(Weighed(piece, weight, dict(zip(SIGNS, signs, strict=True))))
        return sorted(weighed, key=lambda one: (-one.weight, one.evidence.number))

    def signs(self, piece: Evidence) -> Signs:
        """The signs of one sentence, in the order of SIGNS."""
        judged, passage, text = self.relevance.judge(piece), self.passages[piece.document], piece.text
        hinted = self.hint is not None and self.hint.holds.search(text) is not None
        noun = self._noun_share(text)
        few, many = (12, 100) if self.ask.chinese else (40, 250)
        return (
            judged.coverage,
            judged.names if self.relevance.names else 0.0,
            judged.cues,
            piece.prior,
            passage.all,
            passage.cues,
            float(passage.all >= self.most - 1e-9),
            float(passage.titled),
            self.linked.get(piece.document, 0.0),
            float(not piece.before),
            float(len(text) < few),
            min(len(text) / many, 2.0),
            float(hinted),
            float(self.hint is not None and not hinted),
            noun,
            float(bool(self.noun) and not noun),
            float(_NAME.search(text) is not None),
            _shared(self.runs, text, 3),
            len(self.characters & set(text)) / len(self.characters) if self.characters else 0.0,
            _shared(self.beside, text, 2),
        )

    def _passage(self, pieces: Sequence[Evidence]) -> _Passage:
        weights, cues = self.relevance.weights, self.relevance.cues
        held = term_set(pieces[0].title).union(*(term_set(piece.text) for piece in pieces))
        title = fold_name(pieces[0].title.partition(" (")[0])
        asked = self.ask.text.casefold() if self.ask.chinese else f" {fold_name(self.ask.text)} "
        return _Passage(
            sum(weight for term, weight in weights.items() if term in held) / (sum(weights.values()) or 1.0),
            sum(weights[cue] for cue in cues if cue in held) / (sum(weights[cue] for cue in cues) or 1.0),
            bool(title) and (title if self.ask.chinese else f" {title} ") in asked,
        )

    def _linked(self) -> dict[str, float]:
        """For each document how well a sentence elsewhere that names its title covers the question."""
        titles = {name: fold_name(pieces[0].title) for name, pieces in self.by_document.items()}
        titles = {name: title if self.ask.chinese else f" {title} " for name, title in titles.items() if len(title) > 3}
        best: dict[str, float] = {}
        for piece in self.evidence:
            coverage = self.relevance.judge(piece).coverage
            if coverage < _LINKING:
                continue
            text = f" {fold_name(piece.text)} "
            for name, title in titles.items():
                if name != piece.document and title in text:
                    best[name] = max(best.get(name, 0.0), coverage)
        return best

    def _noun_share(self, text: str) -> float:
        """How far a sentence has the noun asked for: 1, in Chinese half for one of its characters, else 0."""
        if not self.noun:
            return 0.0
        if not self.ask.chinese:
            return float(bool(self.noun & term_set(text)))
        noun = "".join(self.noun)
        return 1.0 if noun in text else 0.5 * any(sign in text for sign in noun if sign not in _EMPTY)


@lru_cache(maxsize=50_000)
def grams(text: str, size: int) -> frozenset[str]:
    """The distinct runs of so many signs of a text, without what is neither letter nor digit."""
    plain = _ASIDE.sub("", text.casefold())
    return frozenset(plain[at : at + size] for at in range(len(plain) - size + 1))


def _shared(wanted: frozenset[str], text: str, size: int) -> float:
    return len(wanted & grams(text, size)) / len(wanted) if wanted else 0.0


def _noun_zh(question: str) -> frozenset[str]:
    found = _NOUN_ZH.search(question)
    return frozenset((found[1],)) if found else frozenset()


def _noun_terms(ask: Ask) -> frozenset[str]:
    """The terms of the noun after "which" or "what", its last two."""
    found = _NOUN_EN.search(ask.text)
    return frozenset(concept_terms(found[1])[-2:]) if found else frozenset((ask.noun,) if ask.noun else ())


def _beside(question: str) -> frozenset[str]:
    """The runs of two characters just before and after the last asking word."""
    found = list(_ASKING_ZH.finditer(question))
    if not found:
        return frozenset()
    start, end = found[-1].span()
    around = f"{question[max(0, start - 4) : start]}、{question[end : end + 3]}"
    return grams(around.replace("的", "").replace("是", ""), 2)


WEIGHTS_EN: Signs = (
    1.94, 0.07, 1.66, 3.61, 0.82, -1.05, 0.01, 0.18, 2.09, 1.59,
    -1.28, 0.88, 0.49, -0.49, 0.52, -0.27, 2.18, 0.00, 0.00, 0.00,
)  # fmt: skip
WEIGHTS_ZH: Signs = (
    3.70, 0.77, 1.80, 6.42, 1.73, -2.99, 1.56, 6.67, 3.24, 1.04,
    0.02, -0.83, 0.92, -0.84, -0.72, -1.02, -0.26, 2.06, 4.56, 1.70,
)  # fmt: skip
