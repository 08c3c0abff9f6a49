"""Is it so? Yes and no with the sentence that shows it, about one thing or about two together."""

import re
from dataclasses import replace

from prompts.language.asked import NOUN_KIND, Ask, singular
from prompts.language.names import NameSpan
from prompts.language.words import fold, fold_name
from prompts.reading.claims import Claim, Desk, Reading, Support, abstain, claim, ending, plain, supported
from prompts.reading.compare import beside
from prompts.reading.evidence import Evidence
from prompts.reading.pick import names_of
from prompts.reading.relevance import Scored

_NEGATION = re.compile(r"\bnot\b|n't\b|\bnever\b|\bno longer\b|没有|不是|并非|未曾|尚未|不再|没能")
_SAME = re.compile(r"\b(?:the )?same ([\w-]+)|(?:是同|同一|相同的?)一?[个座家条种]?([\u4e00-\u9fff]{0,4})", re.I)
_BROADEST = frozenset("country nation continent nationality".split())
_TOGETHER = re.compile(
    r"\b(?:both|each|all|are|were|do|did|have|and|located|situated|based|members)\b|都|是否|是不是", re.I
)


def affirm(desk: Desk) -> Reading:
    """Yes where a sentence says so of both ends; no where it says the opposite, or says it of somebody else."""
    if len(desk.ask.options) == 2:
        return _of_two(desk)
    relevance = desk.relevance
    ranked = relevance.rank(plain(desk.evidence))
    both = next((scored for scored in ranked if supported(scored, names=0.95, cues=0.5)), None)
    if both is not None:
        return _said(desk.ask, _denies(both.evidence, desk.ask) is False, (claim(both.evidence),))
    if len(relevance.names) > 1:
        other = next((s for s in ranked if s.names >= 0.45 and s.cues >= 0.9 and _is_record(s.evidence)), None)
        if other is not None:
            return _said(desk.ask, False, (claim(other.evidence),))
    return abstain(desk.ask)


def _said(ask: Ask, so: bool, claims: tuple[Claim, ...], support: Support = "none") -> Reading:
    word = ("是" if so else "否") if ask.chinese else ("Yes" if so else "No")
    return Reading(claims=claims, values=(word.lower(),), support=support, lead=ending(word, ask))


def _denies(piece: Evidence, ask: Ask) -> bool:
    """Whether a sentence denies what is asked; a question that is itself put in the negative turns it round."""
    return (_NEGATION.search(fold(piece.text)) is not None) != (_NEGATION.search(fold(ask.text)) is not None)


def _is_record(piece: Evidence) -> bool:
    """Whether evidence is a row or a triple: what stands in its place for one thing excludes another."""
    return bool(piece.cells or piece.label or "-[" in piece.text)


def _of_two(desk: Desk) -> Reading:
    """Of two things together: each is looked up by itself; what only one of them is said to be, is no of both."""
    same = _SAME.search(desk.ask.text)
    return _alike(desk, (same[1] or same[2] or "").lower()) if same else _both(desk)


def _both(desk: Desk) -> Reading:
    """ "Are A and B both painters?": yes where it is said of each; no where what an opening says of one leaves it
    out."""
    said, others = [], []
    for option in desk.ask.options:
        ranked = _about(desk, option, _predicate(desk.ask))
        told = next(
            (s for s in ranked if supported(s, names=0.9, cues=0.6) and not _denies(s.evidence, desk.ask)), None
        )
        opening = next((s.evidence for s in sorted(ranked, key=_place) if s.names >= 0.9), None)
        if told is None and opening is None:
            return abstain(desk.ask)
        said += [told.evidence] if told else []
        others += [opening] if opening and not told else []
    pieces = dict.fromkeys([*said, *others])
    return _said(desk.ask, not others, tuple(map(claim, pieces)), "partial" if others else "none")


def _alike(desk: Desk, noun: str) -> Reading:
    """ "Are A and B in the same country?": what the opening of each names, compared."""
    wrong = {"place": {"person", "work"}}.get(NOUN_KIND.get(singular(noun), "name"), set[str]())
    own = {word for option in desk.ask.options for word in fold_name(option).split()}
    openings, named = [], list[set[str]]()
    for option in desk.ask.options:
        ranked = sorted(_about(desk, option, noun), key=_place)
        opening = next((s.evidence for s in ranked if s.names >= 0.9), None)
        if opening is None:
            return abstain(desk.ask)
        openings.append(opening)
        found = [name for name in _compared_names(opening.text, noun) if name.kind not in wrong]
        named.append({fold_name(name.text) for name in found if not set(fold_name(name.text).split()) <= own})
    if not all(named):
        return abstain(desk.ask)
    return _said(desk.ask, bool(named[0] & named[1]), tuple(map(claim, openings)), "partial")


def _compared_names(text: str, noun: str) -> list[NameSpan]:
    """The names of an opening; for a place within a country without the country that ends "…, county, country"."""
    names = list(names_of(text))
    if NOUN_KIND.get(singular(noun)) != "place" or noun in _BROADEST:
        return names
    goes_on = (",", f" {noun}")
    return [n for n in names if not text[: n.start].endswith(", ") or text[n.end :].lower().startswith(goes_on)]


def _about(desk: Desk, option: str, predicate: str) -> list[Scored]:
    ask = replace(desk.ask, text=f"{option} {predicate}", options=())
    known = beside(option, desk.relevance.aliases)
    relevance = desk.relevance.about(ask, known) if known else desk.relevance.naming(ask, option)
    return relevance.rank(plain(desk.evidence))


def _predicate(ask: Ask) -> str:
    """What is said of both: the question without the two names and without the words that tie them."""
    text = ask.text
    for option in ask.options:
        text = text.replace(option, " ")
    return " ".join(_TOGETHER.sub(" ", text).strip(" ?？,，和与跟").split())


def _place(scored: Scored) -> tuple[bool, int]:
    """Openings first: a document titled by the name, then the order of the evidence."""
    piece = scored.evidence
    return not fold_name(piece.text).startswith(fold_name(piece.title) or "\0"), piece.number
