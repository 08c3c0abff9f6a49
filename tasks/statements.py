"""Whether a source can state what a claim states: the same way round, about the same names, in the same order.

Words that a claim shares with a source do not show this: "Voss did not build the weir" and "The weir built Voss" share
every word with "Voss built the weir". So a claim keeps the flag that its words earn only where

- a clause that is negated has a negated one nearest to it in the source, and a clause that is not is no denied one;
- a name of two or three words stands in the source as a whole;
- two names with a few words between them stand together in one sentence of the source, in the same order (turned by
  "by"), with one of these words. The title of the source stands for the subject of a sentence that names nothing before
  the other name.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise

from prompts.text.languages import names_of
from prompts.text.names_zh import tagged
from prompts.text.negation import is_negated
from prompts.text.segment import sentences
from prompts.text.words import content_terms, fold, is_han

Clause = tuple[frozenset[str], bool]  # its terms, and whether it is negated
MOST = 0.6  # of a clause's terms: then another one is about the same
BETWEEN = 8  # words at most between two names that one verb joins
_CLAUSE_END = re.compile(
    r"[,;:()—，；：。（）]|\b(?:and|but|while|whereas|although|though|or|und|aber|et|mais|y|pero)\b|但是?|而且?|并且"
)
# The segmenter's tags of words that a Chinese name begins with (nouns, places, Latin letters), and goes on with.
_NOUN, _IN_NAME = frozenset("nse"), frozenset("nsea")
_FULL_NAME = re.compile(r"[^\W\d_]+(?:[ -][^\W\d_]+){1,2}")
_LISTED = re.compile(r"[\s,;&、，和与及]*(?:\b(?:and|or|und|oder|et|ou|y)\b\s*)?(?:the\s+)?", re.IGNORECASE)
_APART = re.compile(r"[;:—]|\b(?:and|but|while|whereas|although|though)\b|；|但|而且?")
_BY = re.compile(r"\b(?:by|von|par|por)\b|由|被", re.IGNORECASE)


def can_state(claim: str, sources: Sequence[str]) -> bool:
    """Whether the sources (each a title, then its text on the next lines) can state the claim."""
    return _same_polarity(claim, sources) and _same_order(claim, sources)


def _same_polarity(claim: str, sources: Sequence[str]) -> bool:
    known = [clause for source in sources for clause in _clauses_of(source)]
    return all(
        _has_polarity(frozenset(terms), is_negated(clause), known)
        for clause in _CLAUSE_END.split(claim)
        if (terms := content_terms(clause))
    )


def _has_polarity(terms: frozenset[str], negated: bool, known: Sequence[Clause]) -> bool:
    """Whether the sources negate a clause with these terms as the claim does.

    The clauses of the sources that share most terms with it decide: a negated clause needs a negated one among them. A
    clause that is not negated only fails where they share MOST of its terms and all are negated.
    """
    shared = [(count, own_negated) for own, own_negated in known if (count := len(terms & own))]
    most = max((count for count, _ in shared), default=0)
    nearest = {own_negated for count, own_negated in shared if count == most}
    decides = negated or most >= MOST * len(terms)
    return negated in nearest or not decides


@lru_cache(maxsize=512)
def _clauses_of(source: str) -> tuple[Clause, ...]:
    return tuple(
        (frozenset(terms), is_negated(clause))
        for start, end in sentences(source)
        for clause in _CLAUSE_END.split(source[start:end])
        if (terms := content_terms(clause))
    )


def _names(text: str) -> tuple[tuple[int, int, str], ...]:
    """(start, end, folded text) of the names in a text; in Chinese of its nouns, those that adjoin taken as one."""
    if not is_han(text):
        return tuple((name.start, name.end, fold(name.text)) for name in names_of(text))
    spans: list[tuple[int, int]] = []
    for word, tag, start in tagged(text):
        end, adjoins = start + len(word), bool(spans) and spans[-1][1] == start
        if adjoins and tag[0] in _IN_NAME:
            spans[-1] = (spans[-1][0], end)
        elif tag[0] in _NOUN:
            spans.append((start, end))
    return tuple((start, end, fold(text[start:end])) for start, end in spans if end - start > 1)


def _same_order(claim: str, sources: Sequence[str]) -> bool:
    names = _names(claim)
    if is_han(claim):  # its nouns are names where the source has them too
        names = tuple(name for name in names if any(_place(name[2], fold(source)) >= 0 for source in sources))
    wholes = [fold(source) for source in sources]
    full = (name for _, _, name in names if _FULL_NAME.fullmatch(name))
    if any(all(_place(name, whole) < 0 for whole in wholes) for name in full):
        return False
    for (_, end, first), (start, other_end, second) in pairwise(names):
        between = claim[end:start]
        apart = len(between.split()) > BETWEEN or _APART.search(between)
        if first == second or apart or _LISTED.fullmatch(between):
            continue
        order = (second, first) if _BY.search(between) else (first, second)
        # Of "the bridge was designed by her" what is told stands between the names, of 桥由她设计 behind them.
        told = frozenset(content_terms(_BY.sub(" ", between)) or content_terms(claim[other_end:]))
        if not any(order in _orders(first, second, told, source) for source in sources):
            return False
    return True


def _orders(first: str, second: str, told: frozenset[str], source: str) -> Iterator[tuple[str, str]]:
    """The two names as (who does it, to whom), once for each sentence that has a term of `told` and both names.

    The title counts as a name before the sentence where the sentence has only the other one, behind a term of `told`,
    and no third name before that.
    """
    title, parts = _sentences_of(source)
    for sentence, terms, named in parts:
        if told and told.isdisjoint(terms):
            continue
        places = {name: place for name in (first, second) if (place := _place(name, sentence)) >= 0}
        if len(places) == 1:
            [(known, found)] = places.items()
            missing = second if known == first else first
            opens = all(_place(name, sentence) >= found for name in named)
            if missing in title and opens and not told.isdisjoint(content_terms(sentence[:found])):
                places[missing] = -1
        if len(places) > 1:
            before, after = sorted(places, key=places.__getitem__)
            between = sentence[max(places[before], 0) : places[after]]
            yield (after, before) if _BY.search(between) else (before, after)


def _place(name: str, text: str) -> int:
    """Where a folded name stands in a folded text, in Latin script as whole words; -1 where it does not."""
    if not name.isascii():
        return text.find(name)
    match = re.search(rf"(?<![a-z0-9]){re.escape(name)}(?![a-z0-9])", text)
    return match.start() if match else -1


@lru_cache(maxsize=512)
def _sentences_of(source: str) -> tuple[str, tuple[tuple[str, frozenset[str], tuple[str, ...]], ...]]:
    """The title of a source, folded, and of each of its sentences the folded text, its terms and its names."""
    title, _, text = source.partition("\n") if "\n" in source else ("", "", source)
    written = [text[start:end] for start, end in sentences(text)]
    return fold(title), tuple(
        (fold(part), frozenset(content_terms(part)), tuple(name for _, _, name in _names(part))) for part in written
    )
