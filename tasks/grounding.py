"""Grounding: flag the sentences of an answer that the evidence supports. A flag withholds nothing.

A sentence is compared with the whole passages that it cites, or with all passages that the model
read where it cites none. Its score is the share of its words and figures that stand there; rare
words weigh more. These rules go before the score:

- A figure or a name that stands nowhere counts against the sentence. A figure that two others give
  by arithmetic counts as found.
- Shared words alone support nothing: the source must also be able to state the sentence
  (`can_state`: the same negations, names in the same order).
- A bare name or figure is supported only by a sentence that also has the question's words.

The flag is None where words decide nothing: headings, code, talk about the answer itself, another
language than the evidence's, or a sentence that cites nothing although its words stand there.
`tasks/citations.py: citation_of` checks that quotes stand in their documents.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import permutations, zip_longest
from typing import Literal, NamedTuple, Protocol

from prompts.text.amounts import NUMBER_WORDS, figures_in, numbers_in, without_figures
from prompts.text.names_zh import tagged
from prompts.text.negation import is_negated
from prompts.text.question import Expected, parse_question
from prompts.text.segment import Script, UnitKind, script_of, sentences, units
from prompts.text.tokens import rarity, usually_lower
from prompts.text.words import CJK, HAN_RUN, HAN_STOP, STOPWORDS, WORD, fold, is_han, word_terms
from storage.answer_records import Fallback, Grounding
from tasks.statements import can_state

_SUPPORTED, _UNSUPPORTED = 0.5, 0.3  # The flag is True from the one score, False below the other
_NEARLY_ALL = 0.9  # The share of an uncited sentence that must stand in one passage
_UNCITED = 0.1  # What remains of the score: people call uncited sentences unsupported
_FURTHER_SOURCE = 0.1  # What each further cited passage adds, as people trust such sentences more
_AGAINST = 0.2  # What remains of the score where a name or a figure stands nowhere
_FIGURE_BITS = 4.0  # The weight of a figure
_TELLING = 9.0  # Bits of missing words below which a sentence says too little to be unsupported
_MOST_OPERANDS = 12  # With more figures some two of them give any result
_FEW_WORDS = 5  # At most as many, without a final mark, are no sentence
_NOUN_TAGS = frozenset("nmtqxejsua")  # The segmenter's tags of names, figures and what joins them
_VOWELS = frozenset("aeiouy")  # A short word without a vowel is a unit
_VERDICTS = frozenset("yes no 是 否 是的 不是 对 不".split())

# A script, or the one language that is told from others of its script.
_Language = Script | Literal["english"]


class Scorer(Protocol):
    """Scores how far the evidence supports a claim, from 0 to 1."""

    def __call__(self, claim: str, evidence: Sequence[str]) -> float: ...


# --- sentences ------------------------------------------------------------------------------------

_FILLER = "\ue000"  # Replaces markers and inline code; neither letter, space nor stop
_MARKS = r"\[\d+(?:\s*[,，]\s*\d+)*\]"
_MARKER = re.compile(_MARKS)
_CODE = re.compile(r"(?<!`)(`+)(?!`)([^\n]+?)(?<!`)\1(?!`)")
_AFTER_STOP = re.compile(
    rf"([.!?。！？；…]{{1,20}}[\"'”’」』）)*_]*)((?:[ \t]?{_MARKS})+)(?![ \t]*{_MARKS}|[ \t]+[a-z])"
)
_LEAD = re.compile(rf"[:：][\s*_{_FILLER}]*$")
_RULE = re.compile(r"[\s|:\-=*_]+")
_LINK = re.compile(r"\]\([^)\s]{0,2000}\)")


class Sentence(NamedTuple):
    """A sentence `text[start:end]` of an answer.

    `claim` is its words without code and markers, empty where there is nothing to check.
    """

    start: int
    end: int
    kind: UnitKind | Literal["lead", "header"]
    markers: tuple[str, ...]
    claim: str


def sentences_of(text: str) -> list[Sentence]:
    """Split an answer in Markdown into sentences; markers behind a stop belong to its sentence."""
    plain = _CODE.sub(lambda code: _FILLER * len(code.group()), text)
    masked = _AFTER_STOP.sub(lambda match: _FILLER * len(match[2]) + match[1], plain)
    masked = _MARKER.sub(lambda marker: _FILLER * len(marker.group()), masked)
    result: list[Sentence] = []
    split = units(masked)
    for unit, following in zip_longest(split, split[1:]):
        if unit.kind == "code" and result and result[-1].kind == "code":
            result[-1] = result[-1]._replace(end=unit.end)
            continue
        kind: UnitKind | Literal["lead", "header"] = unit.kind
        written = masked[unit.start : unit.end]
        if kind == "row" and following and _RULE.fullmatch(masked, following.start, following.end):
            kind = "header"
        elif kind in ("plain", "item") and _LEAD.search(written):
            kind = "lead"
        claim = ""
        if kind in ("plain", "item", "row") and WORD.search(written):
            claim = " ".join(_LINK.sub("]", written).replace(_FILLER, " ").split())
        markers = () if kind == "code" else _markers_in(plain[unit.start : unit.end])
        result.append(Sentence(unit.start, unit.end, kind, markers, claim))
    return result


def _markers_in(text: str) -> tuple[str, ...]:
    numbers = (number for marker in _MARKER.findall(text) for number in re.findall(r"\d+", marker))
    return tuple(dict.fromkeys(f"[{int(number)}]" for number in numbers))


# --- what a text holds ----------------------------------------------------------------------------

_NAME = re.compile(rf"(?<![^\W_{CJK}])[A-Z](?:[’'-]|[^\W_{CJK}])+")
# What follows a name that opens a sentence: another capital, or Chinese.
_SHOWN_A_NAME = re.compile(rf"\W{{1,2}}[A-Z]|\s?[{CJK}]")
_OPENS = re.compile(r"(?:^|[.!?:;|#•]\s*|[-*]\s+|\d[.)]\s+)[\"'“‘(\[*_]*$")


class _Reading(NamedTuple):
    """The terms and figures of one or more texts, and their languages."""

    terms: frozenset[str]
    values: frozenset[float]
    languages: frozenset[_Language]


@lru_cache(maxsize=4_096)
def _read(text: str) -> _Reading:
    words = set(WORD.findall(fold(text)))
    values = {amount for figure in figures_in(text) for amount, _ in figure.amounts}
    values.update(float(NUMBER_WORDS[word]) for word in NUMBER_WORDS.keys() & words)
    return _Reading(
        frozenset(term for word in words for term in word_terms(word)),
        frozenset(values),
        frozenset({_language_of(text)}),
    )


def _language_of(text: str) -> _Language:
    """Return the script of a text, or English where half of its short words are English."""
    script = script_of(text)
    if script != "latin":
        return script
    short = [
        word
        for word in text.split()
        if len(word) < 4 and word.islower() and not _VOWELS.isdisjoint(word)
    ]
    return "english" if sum(word in STOPWORDS for word in short) * 2 >= len(short) else "latin"


@lru_cache(maxsize=256)
def _read_all(texts: tuple[str, ...]) -> _Reading:
    readings = [_read(text) for text in texts]
    return _Reading(
        frozenset[str]().union(*(reading.terms for reading in readings)),
        frozenset[float]().union(*(reading.values for reading in readings)),
        frozenset[_Language]().union(*(reading.languages for reading in readings)),
    )


def _nearest_numbers(text: str, wanted: frozenset[str]) -> list[float]:
    """Return the numbers of the sentence with a number that shares most wanted terms."""
    said = [text[start:end] for start, end in sentences(text)]
    with_numbers = [sentence for sentence in said if numbers_in(sentence)]
    return numbers_in(
        max(with_numbers, key=lambda sentence: len(_read(sentence).terms & wanted), default="")
    )


@lru_cache(maxsize=1024)
def _words(claim: str) -> tuple[tuple[tuple[str, ...], float], ...]:
    """Return the content words of a claim: the terms of each, and its weight in bits."""
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
    """Return the share of a claim that stands in the evidence, and the bits of missing words."""
    total = covered = missing = 0.0
    for terms, bits in _words(claim):
        total = total + 1 + bits
        if evidence.terms.isdisjoint(terms):
            missing += bits
        else:
            covered += 1 + bits
    for figure in figures_in(claim):
        total += _FIGURE_BITS
        covered += _FIGURE_BITS * figure.stands_in(evidence.values)
    return covered / total if total else 0.0, missing


def _stands_in(claim: str, text: str) -> bool:
    """Whether nearly all of a claim stands in one text."""
    return _coverage(claim, _read(text))[0] >= _NEARLY_ALL


def word_coverage(claim: str, evidence: Sequence[str]) -> float:
    """Score a claim by the share of its content words and figures that stand in the evidence."""
    return _coverage(claim, _read_all(tuple(evidence)))[0]


# --- the flags ------------------------------------------------------------------------------------


class _Answer(NamedTuple):
    """What the sentences of one answer are judged against; `listed` counts its items and rows."""

    claims: str
    question: str
    offered: tuple[str, ...]
    listed: int

    def is_foreign(self, evidence: _Reading) -> bool:
        """Whether the answer is in another language than the evidence."""
        own, shown = _read(self.claims).languages, evidence.languages
        return "none" not in own | shown and not own & shown

    @property
    def known(self) -> _Reading:
        """All that was offered or asked, some sixty passages: read only where it is needed."""
        return _read_all((*self.offered, self.question))

    def has_strange_name(self, claim: str, evidence: _Reading) -> bool:
        """Whether a capitalised name stands neither in what was offered nor in the question."""
        return any(
            not self._knows_name(fold(match.group()))
            for match in _NAME.finditer(claim)
            if not _is_common(match) and evidence.terms.isdisjoint(word_terms(fold(match.group())))
        )

    def _knows_name(self, name: str) -> bool:
        known, terms = self.known.terms, word_terms(name)
        stem = terms[0][: max(4, len(terms[0]) - 3)]
        return not known.isdisjoint(terms) or any(term.startswith(stem) for term in known)

    def has_strange_figure(self, claim: str, evidence: Sequence[str]) -> bool:
        """Whether a figure neither stands in what was offered or asked nor follows from it."""
        shown = _read_all(tuple(evidence)).values
        unshown = [figure for figure in figures_in(claim) if not figure.stands_in(shown)]
        if not unshown:
            return False
        values = self.known.values
        strange = [figure for figure in unshown if not figure.stands_in(values)]
        if not strange:
            return False
        wanted = _read(f"{claim} {self.question}").terms
        operands = [
            *numbers_in(self.question),
            *(number for number in numbers_in(claim) if number in values),
            *(number for text in evidence for number in _nearest_numbers(text, wanted)),
        ]
        pool = list(dict.fromkeys(operands))[:_MOST_OPERANDS]
        results = [*map(float, range(self.listed + 1)), *_results_of(pool)]
        return not all(figure.stands_in(results) for figure in strange)

    def is_answered_by(self, claim: str, evidence: Sequence[str]) -> bool:
        """Whether a sentence that holds a bare name or figure also has the question's words.

        A name in a passage need not be the answer, and a name of the question is none.
        """
        if _is_of_another_kind(claim, parse_question(self.question).expects):
            return False
        if not _says_something(self.question):
            return any(_stands_in(claim, text) for text in evidence)
        if _stands_in(claim, self.question):
            return False
        said = (text[start:end] for text in evidence for start, end in sentences(text))
        return any(_stands_in(claim, one) and self._is_asked_in(_read(one)) for one in said)

    def _is_asked_in(self, said: _Reading) -> bool:
        """Whether every word and figure of the question stands in a sentence."""
        return all(not said.terms.isdisjoint(terms) for terms, _ in _words(self.question)) and all(
            figure.stands_in(said.values) for figure in figures_in(self.question)
        )

    def judge(self, claim: str, cited: tuple[str, ...]) -> tuple[bool | None, float]:
        """Return the flag of a claim and its score."""
        shown = cited or self.offered
        evidence = _read_all(shown)
        share, missing = _coverage(claim, evidence)
        score, foreign = weighed(share, len(cited)), self.is_foreign(evidence)
        if (
            self.has_strange_name(claim, evidence) and not self.is_foreign(_read_all(self.offered))
        ) or self.has_strange_figure(claim, shown):
            return False, score * _AGAINST
        if not _says_something(claim):  # "Yes [1]." states what was asked, "No [1]." the opposite
            stated = (
                bool(cited)
                and not is_negated(claim)
                and _coverage(self.question, evidence)[0] >= _SUPPORTED
                and can_state(self.question, cited)
            )
            return stated or None, score
        if _is_bare(claim, cited):
            return self.is_answered_by(claim, shown) or None, score
        if cited and (score >= _SUPPORTED or (missing < _TELLING and not foreign)):
            return can_state(claim, cited) or None, score
        if not cited and any(
            _stands_in(claim, text) and can_state(claim, [text]) for text in self.offered
        ):
            return True, score
        return (None if foreign or missing < _TELLING or share >= _UNSUPPORTED else False), score


def _is_common(match: re.Match[str]) -> bool:
    """Whether a capitalised word is no name: it opens a sentence, or is usually in lower case."""
    name, claim = match.group(), match.string
    if fold(name) in STOPWORDS or usually_lower(name):
        return True
    opens = _OPENS.search(claim, 0, match.start()) is not None
    return opens and not _SHOWN_A_NAME.match(claim, match.end())


def _results_of(pool: Sequence[float]) -> Iterator[float]:
    """Yield the sum of all numbers, and what each two of them give by arithmetic."""
    yield sum(pool)
    for a, b in permutations(pool, 2):
        yield from (a + b, a - b, a * b)
        if b:
            yield from (a / b, 100 * a / b, 100 * (a - b) / b)


def _says_something(text: str) -> bool:
    return bool(_words(text) or figures_in(text))


def _is_of_another_kind(claim: str, expected: Expected) -> bool:
    """Whether a bare claim is a figure where a name is asked for, or a name where a figure is."""
    if expected in {"person", "place"}:
        return bool(figures_in(claim)) and not _words(claim)
    return expected in {"date", "number", "money"} and not _read(claim).values


def _is_bare(claim: str, cited: Sequence[str]) -> bool:
    """Whether a claim is a name or a figure alone, or a few uncited words without a final mark."""
    if is_han(claim):
        return all(tag[0] in _NOUN_TAGS for _, tag, _ in tagged(claim))
    words = WORD.findall(claim)
    ends = claim.rstrip().endswith((".", "!", "?", ":"))
    named = all(word[0].isupper() or word[0].isdigit() or word in STOPWORDS for word in words)
    return bool(words) and (named or not (cited or ends or len(words) > _FEW_WORDS))


def weighed(score: float, sources: int) -> float:
    """Weigh a scorer's score by how many passages the sentence cites."""
    return min(1.0, score + _FURTHER_SOURCE * min(sources - 1, 2)) if sources else _UNCITED * score


def ground(
    text: str,
    cited: Mapping[str, str],
    offered: Sequence[str],
    question: str,
    scorer: Scorer = word_coverage,
) -> tuple[Grounding, ...]:
    """Flag each sentence of an answer.

    `cited` maps markers to passages, `offered` holds all passages that the model read.
    """
    return tuple(flag for flag, _ in ground_scored(text, cited, offered, question, scorer))


def ground_scored(
    text: str,
    cited: Mapping[str, str],
    offered: Sequence[str],
    question: str,
    scorer: Scorer = word_coverage,
) -> list[tuple[Grounding, float]]:
    """Return the flags with their scores (0: not checked).

    A scorer other than the default decides alone, without the rules on words.
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
            supported = True if enough else False if share < _UNSUPPORTED else None
            score = weighed(share, len(own))
        judged.append((_flag(row, supported), score))
    return judged


def uniform_flags(text: str, supported: bool | None) -> tuple[Grounding, ...]:
    """Give every sentence of a text that claims something the same flag."""
    return tuple(_flag(row, supported if row.claim else None) for row in sentences_of(text))


def _flag(row: Sentence, supported: bool | None) -> Grounding:
    return Grounding(start=row.start, end=row.end, supported=supported, markers=row.markers)


def fallback_of(grounding: Sequence[Grounding]) -> Fallback:
    """Return "none" (supported), "partial" or "ungrounded" for the flags of an answer.

    A cited sentence that could not be decided makes the answer partial.
    """
    if not any(row.supported for row in grounding):
        return "ungrounded"
    doubtful = any(
        row.supported is False or (row.supported is None and row.markers) for row in grounding
    )
    return "partial" if doubtful else "none"
