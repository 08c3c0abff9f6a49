"""Relevance: how much of a question a sentence has, by the weighted coverage of its words.

A word counts fully where the sentence has it, nearly so where its title or heading has it, and by the sentence before
where it opens with a pronoun. Names count as a whole, under any alias.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from prompts.text.asked import Ask
from prompts.text.concepts import concept_terms
from prompts.text.evidence import Evidence
from prompts.text.names_zh import kind_of, tagged
from prompts.text.relations import PRONOUN
from prompts.text.spans import names_of
from prompts.text.words import CJK, HAN_STOP, fold, fold_name, is_han

TITLE_SHARE = 0.9
HEADING_SHARE = 0.8
BEFORE_SHARE = 0.5
PRONOUN_SHARE = 0.95
_ZH_ASKING = re.compile(
    r"请问|现在|目前|如今|由谁|是谁|谁|什么时候|什么|哪一年|哪年|哪里|哪儿|哪[一二两三四五六七八九十几]?[个些种位家项]?|多少|"
    r"怎么样|怎么|怎样|如何|为什么|为何|是否|有没有|能否|主要|从|的|了|是|在|被|把|由|和|与|及|或|吗|呢|[?？，,。:：、]"
)
_ZH_JOINS = re.compile(r"[的是在由和与]")
_DOTTED = re.compile(f"[{CJK}]{{1,6}}(?:·[{CJK}]{{1,6}})+")
_PRESENT = re.compile(r"\b(?:now|currently|today|present|current|is|are)\b|现在|目前|如今|现任", re.I)
# A Chinese question speaks of the present unless a particle or a date says otherwise.
_ZH_PAST = re.compile(r"了|曾|过|\d{3,4}年|[第首前]一?任|当时|以前|原来|最初")
_LASTING = re.compile(
    r"\b(?:since|current|currently|still|now|today|newly)\b|起[,，、 (]|年起|至今|现任|目前|现在", re.I
)
_BYGONE = re.compile(
    r"\b(?:former|formerly|previous|previously|until|was|were|used to|no longer|out of date)\b|至\d{4}|前任|曾|原来",
    re.I,
)
_ASKING = frozenset(
    "~say ~find ~use many much often name list tell give state kind type thing one two three please exactly "
    "哪个 哪些 什么 多少 请问 如何 怎么 为什 是什 现在 主要 最后 哪两 哪一 哪里 哪年 多长 多高".split()
)


@dataclass(frozen=True, slots=True)
class Scored:
    """Evidence with its coverage of the question's words, of its names and of its other words (each 0-1), and its
    rank score."""

    evidence: Evidence
    coverage: float
    names: float
    cues: float
    score: float


class Relevance:
    """Judges evidence for one question."""

    def __init__(
        self, ask: Ask, weights: Mapping[str, float], aliases: Mapping[str, Sequence[str]] | None = None
    ) -> None:
        """`weights` are the rarities of terms (a missing one counts as rare); `aliases` maps each name in the
        question to the other names of the same thing."""
        self.ask = ask
        self.rarity, self.aliases = weights, aliases or {}
        rarest = max(weights.values(), default=1.0)
        known = {name: (name, *others) for name, others in self.aliases.items() if not _is_plain_word(name)}
        if ask.chinese:
            known |= {name: (name,) for name in (*_unknown_bodies(ask.text, known), *_dotted(ask.text, known))}
        self.names = [tuple({form: None for form in map(fold_name, forms) if form}) for forms in known.values()]
        self.terms_of_names = [frozenset(concept_terms(name)) for name in known]
        self.name_terms = {term for terms in self.terms_of_names for term in terms}
        if ask.chinese:  # Of an unspaced name the graph may know a part only; the rest asks for nothing either.
            runs = [run for span in names_of(ask.text) for run in _ZH_JOINS.split(span.text)]
            whole = (run for run in runs if any(name in run for name in known))
            self.name_terms |= {term for name in whole for term in concept_terms(name)}
        text = _words_of(_ZH_ASKING.sub(" ", ask.text)) if ask.chinese else ask.text
        # "Summarise" says what to do with the evidence, not what is in it.
        asking = _ASKING | {"~summary"} if ask.form == "summary" else _ASKING
        wanted = [term for term in concept_terms(text) if term not in asking and not _is_filler(term)]
        self.weights = {term: weights.get(term, rarest * 0.7) for term in wanted}
        self.cues = [term for term in wanted if term not in self.name_terms]
        past = _ZH_PAST.search(ask.text) if ask.chinese else _PRESENT.search(ask.text) is None
        self.present = not past
        self._judged: dict[Evidence, Scored] = {}

    def judge(self, evidence: Evidence) -> Scored:
        """Coverage and score."""
        known = self._judged.get(evidence)
        if known is None:
            known = self._judged[evidence] = self._judge(evidence)
        return known

    def _judge(self, evidence: Evidence) -> Scored:
        shares, holdings = self._shares(evidence), self._holdings(evidence)
        for terms, held in zip(self.terms_of_names, holdings, strict=True):
            # A thing named otherwise ("Kestrel Bridge" for "红隼桥") is named all the same.
            shares |= {term: max(shares[term], held) for term in terms if term in shares}
        total = sum(self.weights.values()) or 1.0
        coverage = sum(weight * shares[term] for term, weight in self.weights.items()) / total
        cue_total = sum(self.weights[term] for term in self.cues)
        cues = sum(self.weights[term] * shares[term] for term in self.cues) / cue_total if cue_total else 1.0
        names = sum(holdings) / len(holdings) if holdings else 1.0
        score = coverage + (0.35 * names if self.names else 0.0) + 0.15 * evidence.prior - 0.1 * _is_heading(evidence)
        # Evidence in the question's own language comes first where both say it.
        score += 0.12 * (is_han(evidence.text) == self.ask.chinese)
        if self.present:
            # Asked about today, what still holds comes before what once did.
            score += 0.06 * holding(evidence.text)
        return Scored(evidence, coverage, names, cues, score)

    def _shares(self, evidence: Evidence) -> dict[str, float]:
        here, before = term_set(evidence.text), term_set(evidence.before)
        title, heading = term_set(evidence.title), term_set(evidence.heading)
        back = PRONOUN_SHARE if PRONOUN.match(evidence.text) else BEFORE_SHARE
        return {
            term: 1.0
            if term in here
            else max(TITLE_SHARE * (term in title), HEADING_SHARE * (term in heading), back * (term in before))
            for term in self.weights
        }

    def _holdings(self, evidence: Evidence) -> list[float]:
        """For each name of the question how far the evidence is about it: 1 in the text, .9 in its title, else 0."""
        if not self.names:
            return []
        here, title, before = _searchable(evidence.text), _searchable(f"{evidence.title} {evidence.heading}"), ""
        if PRONOUN.match(evidence.text):
            before = _searchable(evidence.before)
        return [
            1.0
            if any(_holds(here, form) for form in forms)
            else 0.9 * any(_holds(title, form) or _holds(before, form) for form in forms)
            for forms in self.names
        ]


def holding(text: str) -> int:
    """1 where a sentence says that what it tells still holds, -1 where it says that it no longer does, else 0."""
    return (_LASTING.search(text) is not None) - (_BYGONE.search(text) is not None)


@lru_cache(maxsize=50_000)
def term_set(text: str) -> frozenset[str]:
    """The distinct terms of a text, as `concept_terms` has them."""
    return frozenset(concept_terms(text))


def _searchable(text: str) -> str:
    return fold(text) if is_han(text) else f" {fold_name(text)} "


def _holds(text: str, form: str) -> bool:
    return f" {form} " in text if text.startswith(" ") and form.isascii() else form in text


def _is_plain_word(name: str) -> bool:
    """Whether a Chinese name is too short to be one of its own: the graph knows common words ("社区", "结构") too."""
    return len(name) < 3 and is_han(name)


def _dotted(text: str, known: Collection[str]) -> list[str]:
    """Foreign names ("奥雷尔·文特") of which the graph knows nothing: the dot says that they are names."""
    runs = (run for whole in _DOTTED.findall(text) for run in _ZH_JOINS.split(whole) if "·" in run)
    return [run for run in runs if not any(run in name or name in run for name in known)]


def _unknown_bodies(text: str, known: Collection[str]) -> list[str]:
    """The organisations and places, by their endings, that a Chinese question names and no linked name covers."""
    runs = [run for span in names_of(text) for run in _ZH_JOINS.split(span.text)]
    bodies = [run for run in runs if len(run) > 3 and kind_of(run) in {"organisation", "place"}]
    return [body for body in bodies if not any(name in body or body in name for name in known)]


def _words_of(text: str) -> str:
    """The words of a Chinese text apart, so that no term runs over the end of one; single characters say little."""
    return " ".join(word for word, _, _ in tagged(text) if len(word) > 1 or not is_han(word))


def _is_filler(term: str) -> bool:
    return len(term) == 2 and all(c in HAN_STOP for c in term)


def _is_heading(evidence: Evidence) -> bool:
    text = evidence.text.strip()
    return text.startswith("#") or re.fullmatch(r"\*[^*]+\*|\*\*[^*]+\*\*", text) is not None
