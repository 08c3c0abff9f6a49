"""Grounding: which sentences of an answer the evidence supports. A flag that the reader sees, never
a gate.

Whether a citation's quote stands in its document is checked in `tasks/citations.py: citation_of`.

A sentence is compared with the whole passages that it cites, or with all that the model was shown
where it cites none: the share of its words and figures that stand there, rare words weighing more.
A figure or a name that stands nowhere speaks against it whatever else is found; a figure that two
others give by arithmetic counts as found. Words alone never support what `can_state` does not find
in the source: the same negations, and names in the same order. A bare name or figure is only
supported where a sentence that holds it has the question's words. Where words decide nothing
(headings, code, talk about the answer itself, an answer in another language than its evidence), and
where a sentence cites nothing although its words stand there, the flag is None.
"""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import permutations
from typing import Literal, NamedTuple, Protocol

from prompts.text.amounts import NUMBER_WORDS, figures_in, numbers_in, without_figures
from prompts.text.names_zh import tagged
from prompts.text.negation import is_negated
from prompts.text.question import Expected, parse_question
from prompts.text.regex import regex
from prompts.text.segment import Script, UnitKind, script_of, sentences, units
from prompts.text.tokens import rarity, usually_lower
from prompts.text.words import CJK, HAN_RUN, HAN_STOP, STOPWORDS, WORD, fold, is_han, word_terms
from storage.answer_records import Fallback, Grounding
from tasks.statements import can_state

_SUPPORTED, _UNSUPPORTED = 0.5, 0.3  # scores from which, and under which, the flag is set
_FEW = 5  # words that are no sentence where no mark ends them
_NEARLY_ALL = 0.9  # of a sentence without a marker must stand in one passage
# people who judge an answer call a sentence unsupported that cites nothing, whatever it says
_UNCITED = 0.1
_FURTHER_SOURCE = 0.1  # they believe a sentence more that cites several passages
_AGAINST = 0.2  # what is left of a score where a name or a figure stands nowhere
_FIGURE_BITS = 4.0
# bits of words not found under which a sentence says too little to be called unsupported
_TELLING = 9.0
_OPERANDS = 12  # two of more figures than these give any figure by chance
_NOUNS = frozenset("nmtqxejsua")  # the segmenter's tags of names, figures and what joins them
_VOWELS = frozenset("aeiouy")  # a short word without one is a unit
_VERDICTS = frozenset("yes no 是 否 是的 不是 对 不".split())  # they state what was asked


class Scorer(Protocol):
    """How far the evidence supports a claim, from 0 to 1."""

    def __call__(self, claim: str, evidence: Sequence[str]) -> float: ...


# --- sentences ------------------------------------------------------------------------------------

_FILLER = "\ue000"  # in the place of markers and inline code: no letter, no space, no stop
_MARKS = r"\[\d+(?:\s*[,，]\s*\d+)*\]"
_MARKER = regex(_MARKS)
_CODE = regex(r"(?<!`)(`+)(?!`)([^\n]+?)(?<!`)\1(?!`)")
_AFTER_STOP = regex(
    rf"([.!?。！？；…]{{1,20}}[\"'”’」』）)*_]*)((?:[ \t]?{_MARKS})+)(?![ \t]*{_MARKS}|[ \t]+[a-z])"
)
_LEAD = regex(rf"[:：][\s*_{_FILLER}]*$")
_RULE = regex(r"[\s|:\-=*_]+")
_LINK = regex(r"\]\([^)\s]{0,2000}\)")


class Sentence(NamedTuple):
    """`text[start:end]`, and its claim in words: no code, no markers; empty where nothing can be
    checked.
    """

    start: int
    end: int
    kind: UnitKind | Literal["lead", "header"]
    markers: tuple[str, ...]
    claim: str


def sentences_of(text: str) -> list[Sentence]:
    """The sentences of an answer in markdown, in order and apart; markers behind a stop belong to
    what it ends.
    """
    plain = _CODE.sub(lambda code: _FILLER * len(code.group()), text)
    masked = _AFTER_STOP.sub(lambda match: _FILLER * len(match[2]) + match[1], plain)
    masked = _MARKER.sub(lambda marker: _FILLER * len(marker.group()), masked)
    result: list[Sentence] = []
    split = units(masked)
    for unit, following in zip(split, [*split[1:], None], strict=False):
        if unit.kind == "code" and result and result[-1].kind == "code":
            result[-1] = result[-1]._replace(end=unit.end)
            continue
        kind: UnitKind | Literal["lead", "header"] = unit.kind
        written = masked[unit.start : unit.end]
        if (
            unit.kind == "row"
            and following
            and _RULE.fullmatch(masked, following.start, following.end)
        ):
            kind = "header"
        elif unit.kind in ("plain", "item") and _LEAD.search(written):
            kind = "lead"
        checkable = kind in ("plain", "item", "row") and WORD.search(written)
        claim = " ".join(_LINK.sub("]", written).replace(_FILLER, " ").split()) if checkable else ""
        markers = () if kind == "code" else _markers_in(plain[unit.start : unit.end])
        result.append(Sentence(unit.start, unit.end, kind, markers, claim))
    return result


def _markers_in(text: str) -> tuple[str, ...]:
    numbers = (number for marker in _MARKER.findall(text) for number in re.findall(r"\d+", marker))
    return tuple(dict.fromkeys(f"[{int(number)}]" for number in numbers))


# --- what a text holds ----------------------------------------------------------------------------

_NAME = regex(rf"(?<![^\W_{CJK}])[A-Z](?:[’'-]|[^\W_{CJK}])+")
_SHOWN_A_NAME = regex(
    rf"\W{{1,2}}[A-Z]|\s?[{CJK}]"
)  # at the start too: a capital, or Chinese, follows
_OPENS = regex(r"(?:^|[.!?:;|#•]\s*|[-*]\s+|\d[.)]\s+)[\"'“‘(\[*_]*$")


class _Reading(NamedTuple):
    terms: frozenset[str]
    values: frozenset[float]
    languages: frozenset[Script | Literal["english"]]


@lru_cache(maxsize=4_096)  # a question reads some sixty passages
def _read(text: str) -> _Reading:
    words = WORD.findall(fold(text))
    distinct = set(words)
    values = {amount for figure in figures_in(text) for amount, _ in figure.amounts}
    values.update(float(NUMBER_WORDS[word]) for word in NUMBER_WORDS.keys() & distinct)
    language: Script | Literal["english"] = script_of(text)
    if language == "latin":
        short = [
            word
            for word in text.split()
            if len(word) < 4 and word.islower() and not _VOWELS.isdisjoint(word)
        ]
        language = (
            "english" if sum(word in STOPWORDS for word in short) * 2 >= len(short) else "latin"
        )
    return _Reading(
        frozenset(term for word in distinct for term in word_terms(word)),
        frozenset(values),
        frozenset({language}),
    )


@lru_cache(maxsize=256)
def _read_all(texts: tuple[str, ...]) -> _Reading:
    readings = [_read(text) for text in texts]
    return _Reading(
        frozenset[str]().union(*(reading.terms for reading in readings)),
        frozenset[float]().union(*(reading.values for reading in readings)),
        frozenset[Script | Literal["english"]]().union(
            *(reading.languages for reading in readings)
        ),
    )


def _nearest_numbers(text: str, wanted: frozenset[str]) -> list[float]:
    """What can be computed with in the sentence that shares most with the wanted terms (of a date
    the year).
    """
    said = [text[start:end] for start, end in sentences(text)]
    with_numbers = [sentence for sentence in said if numbers_in(sentence)]
    return numbers_in(
        max(with_numbers, key=lambda sentence: len(_read(sentence).terms & wanted), default="")
    )


@lru_cache(maxsize=1024)
def _words(claim: str) -> tuple[tuple[tuple[str, ...], float], ...]:
    """The content words of a claim and their bits: each as its terms, a Chinese run as its
    bigrams.
    """
    words: dict[tuple[str, ...], float] = {}
    for word in WORD.findall(fold(without_figures(claim))):
        if word in _VERDICTS:
            continue
        if HAN_RUN.match(word):
            words.update(
                ((t,), 2.0) for t in word_terms(word) if sum(c in HAN_STOP for c in t) * 2 < len(t)
            )
        elif word not in STOPWORDS and len(word) > 1:
            number = (str(NUMBER_WORDS[word]),) if word in NUMBER_WORDS else ()
            words[(*word_terms(word), *number)] = rarity(word)
    return tuple(words.items())


def _coverage(claim: str, evidence: _Reading) -> tuple[float, float]:
    """The share of a claim's words and figures that stand in the evidence, and the bits of the
    words that do not.
    """
    total = covered = missing = 0.0
    for terms, bits in _words(claim):
        stands = not evidence.terms.isdisjoint(terms)
        total, covered, missing = (
            total + 1 + bits,
            covered + (1 + bits) * stands,
            missing + bits * (not stands),
        )
    for figure in figures_in(claim):
        total, covered = (
            total + _FIGURE_BITS,
            covered + _FIGURE_BITS * figure.stands_in(evidence.values),
        )
    return covered / total if total else 0.0, missing


def word_coverage(claim: str, evidence: Sequence[str]) -> float:
    """The default scorer: the share of the claim's content words and figures that stand in the
    evidence.
    """
    return _coverage(claim, _read_all(tuple(evidence)))[0]


# --- the flags ------------------------------------------------------------------------------------


class _Answer(NamedTuple):
    """What the sentences of one answer are judged against."""

    claims: str
    question: str
    offered: tuple[str, ...]
    listed: int

    def foreign(self, evidence: _Reading) -> bool:
        """Whether the answer is in another language than the evidence of a claim: then words need
        not agree.
        """
        own, shown = _read(self.claims).languages, evidence.languages
        return "none" not in own | shown and not own & shown

    @property
    def known(self) -> _Reading:
        """All that was offered or asked. A question reads some sixty passages: ask for it where the
        evidence lacks something.
        """
        return _read_all((*self.offered, self.question))

    def strange_name(self, claim: str, evidence: _Reading) -> bool:
        """Whether a capitalised name stands neither in what was offered nor in the question."""
        for match in _NAME.finditer(claim):
            name, terms = match.group(), word_terms(fold(match.group()))
            opens = _OPENS.search(claim, 0, match.start()) and not _SHOWN_A_NAME.match(
                claim, match.end()
            )
            if (
                opens
                or fold(name) in STOPWORDS
                or usually_lower(name)
                or not evidence.terms.isdisjoint(terms)
            ):
                continue
            known, stem = self.known.terms, terms[0][: max(4, len(terms[0]) - 3)]
            if known.isdisjoint(terms) and not any(term.startswith(stem) for term in known):
                return True
        return False

    def strange_figure(self, claim: str, evidence: Sequence[str]) -> bool:
        """Whether a figure neither stands in what was offered or asked nor follows from figures
        that do.
        """
        shown = _read_all(tuple(evidence)).values
        unshown = [figure for figure in figures_in(claim) if not figure.stands_in(shown)]
        if not unshown:
            return False
        values = self.known.values
        strange = [figure for figure in unshown if not figure.stands_in(values)]
        if not strange:
            return False
        # Operands: figures of the question, those of the claim that stand there, and those of the
        # sentence of each passage that is nearest to the claim.
        wanted = _read(f"{claim} {self.question}").terms
        found = [number for text in evidence for number in _nearest_numbers(text, wanted)]
        named = [
            *numbers_in(self.question),
            *(number for number in numbers_in(claim) if number in values),
        ]
        pool = list(dict.fromkeys([*named, *found]))[:_OPERANDS]
        results = [*map(float, range(self.listed + 1)), sum(pool)]
        for a, b in permutations(pool, 2):
            results += (
                a + b,
                a - b,
                a * b,
                *((a / b, 100 * a / b, 100 * (a - b) / b) if b else ()),
            )
        return not all(figure.stands_in(results) for figure in strange)

    def answers_question(self, claim: str, evidence: Sequence[str]) -> bool:
        """Whether a sentence that holds a bare name or figure has the words of the question, too:
        that the name stands in a passage does not tell that it is the answer. A name of the
        question is none.
        """
        if _is_of_another_kind(claim, parse_question(self.question).expects):
            return False
        if not (_words(self.question) or figures_in(self.question)):
            return any(_coverage(claim, _read(text))[0] >= _NEARLY_ALL for text in evidence)
        if _coverage(claim, _read(self.question))[0] >= _NEARLY_ALL:
            return False
        said = (_read(text[start:end]) for text in evidence for start, end in sentences(text))
        return any(
            _coverage(claim, one)[0] >= _NEARLY_ALL and self._holds_question(one) for one in said
        )

    def _holds_question(self, said: _Reading) -> bool:
        """Whether each word and figure of the question stands in a sentence, its verb as well."""
        words = (terms for terms, _ in _words(self.question))
        figures = figures_in(self.question)
        return all(not said.terms.isdisjoint(terms) for terms in words) and all(
            figure.stands_in(said.values) for figure in figures
        )

    def judge(self, claim: str, cited: tuple[str, ...]) -> tuple[bool | None, float]:
        """The flag and its score."""
        evidence = _read_all(cited or self.offered)
        share, missing = _coverage(claim, evidence)
        score, foreign = weighed(share, len(cited)), self.foreign(evidence)
        strange_name = self.strange_name(claim, evidence) and not self.foreign(
            _read_all(self.offered)
        )
        if strange_name or self.strange_figure(claim, cited or self.offered):
            return False, score * _AGAINST
        if not _words(claim) and not figures_in(
            claim
        ):  # "Yes [1]." states what was asked, "No [1]." the opposite
            asked = (
                bool(cited)
                and not is_negated(claim)
                and _coverage(self.question, evidence)[0] >= _SUPPORTED
            )
            return (True if asked and can_state(self.question, cited) else None), score
        if _is_bare(claim, cited):
            return (True if self.answers_question(claim, cited or self.offered) else None), score
        if cited and (score >= _SUPPORTED or (missing < _TELLING and not foreign)):
            return (True if can_state(claim, cited) else None), score
        near = (
            ()
            if cited
            else [text for text in self.offered if _coverage(claim, _read(text))[0] >= _NEARLY_ALL]
        )
        if any(can_state(claim, [text]) for text in near):
            return True, score
        return (None if foreign or missing < _TELLING or share >= _UNSUPPORTED else False), score


def _is_of_another_kind(claim: str, expected: Expected) -> bool:
    """Whether a bare claim is a date or a figure where a person or place is asked for, or none
    where one is.
    """
    if expected in {"person", "place"}:
        return bool(figures_in(claim)) and not _words(claim)
    return expected in {"date", "number", "money"} and not _read(claim).values


def _is_bare(claim: str, cited: Sequence[str]) -> bool:
    """Whether a claim is a name or a figure alone, or without a source a few words, and states
    nothing.
    """
    if is_han(claim):
        return all(tag[0] in _NOUNS for _, tag, _ in tagged(claim))
    words = WORD.findall(claim)
    ends = claim.rstrip().endswith((".", "!", "?", ":"))
    named = all(word[0].isupper() or word[0].isdigit() or word in STOPWORDS for word in words)
    return bool(words) and (named or not (cited or ends or len(words) > _FEW))


def weighed(score: float, sources: int) -> float:
    """A scorer's score after how many passages the sentence cites: none, one, or several."""
    return min(1.0, score + _FURTHER_SOURCE * min(sources - 1, 2)) if sources else _UNCITED * score


def ground(
    text: str,
    cited: Mapping[str, str],
    offered: Sequence[str],
    question: str,
    scorer: Scorer = word_coverage,
) -> tuple[Grounding, ...]:
    """A flag a sentence. `cited`: the passage behind each marker; `offered`: all passages that the
    model was shown.
    """
    return tuple(flag for flag, _ in ground_scored(text, cited, offered, question, scorer))


def ground_scored(
    text: str,
    cited: Mapping[str, str],
    offered: Sequence[str],
    question: str,
    scorer: Scorer = word_coverage,
) -> list[tuple[Grounding, float]]:
    """The flags with the scores behind them (0: not checked). A scorer other than the default
    decides alone.
    """
    rows = sentences_of(text)
    claims = " ".join(row.claim for row in rows)
    listed = sum(row.kind in ("item", "row") for row in rows)
    answer = _Answer(claims, question, tuple(dict.fromkeys((*offered, *cited.values()))), listed)
    judged: list[tuple[Grounding, float]] = []
    for row in rows:
        own = tuple(cited[marker] for marker in row.markers if marker in cited)
        supported, score = None, 0.0
        if row.claim and answer.offered and scorer is word_coverage:
            supported, score = answer.judge(row.claim, own)
        elif row.claim and answer.offered:
            share = scorer(row.claim, own or answer.offered)
            enough = share >= (_SUPPORTED if own else _NEARLY_ALL)
            supported, score = (
                (True if enough else False if share < _UNSUPPORTED else None),
                weighed(share, len(own)),
            )
        judged.append(
            (
                Grounding(start=row.start, end=row.end, supported=supported, markers=row.markers),
                score,
            )
        )
    return judged


def uniform_flags(text: str, supported: bool | None) -> tuple[Grounding, ...]:
    """The sentences of a text, those that say anything with one and the same flag."""
    return tuple(
        Grounding(
            start=row.start,
            end=row.end,
            supported=supported if row.claim else None,
            markers=row.markers,
        )
        for row in sentences_of(text)
    )


def fallback_of(grounding: Sequence[Grounding]) -> Fallback:
    """What the flags of an answer come to: none (supported), partial or ungrounded.

    A sentence that cites sources which cannot be told to support it leaves the answer supported in
    part.
    """
    if not any(row.supported for row in grounding):
        return "ungrounded"
    doubtful = any(
        row.supported is False or (row.supported is None and row.markers) for row in grounding
    )
    return "partial" if doubtful else "none"
