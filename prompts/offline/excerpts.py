"""Excerpts of the passages that speak most of a question: the answer where no model is set.

A passage is split into units: sentences, list items, table rows, lines of code. A unit's relevance
combines BM25 (Robertson and Zaragoza 2009) of the unit under its headings, with the collection's
idf, as a share of the best unit's; and, with twice the weight, the cosine of its embedding with the
question's. Further excerpts are chosen by maximal marginal relevance (Carbonell and Goldstein
1998). An excerpt is the unit and what follows it in its section while there is room. Whether it
answers the question is for the reader to judge.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from prompts.text.languages import Language, language_among, language_of
from prompts.text.segment import Unit, quotable_units

# Returns the inverse document frequency of a term in the collection.
Rarity = Callable[[str], float]
# Returns the cosine of a question with each text, 0 where the embedder cannot read them.
Similarity = Callable[[str, Sequence[str]], Sequence[float]]

MOST_EXCERPTS = 4
# Characters of the best excerpt and of each further one: in running text, and in a text that is
# laid out in lines, where a section reads as a whole.
FIRST_ROOM, FURTHER_ROOM = 250, 150
FIRST_SECTION, FURTHER_SECTION = 500, 300
PARAGRAPH = 600  # Mean characters of a line below which a text is laid out
FULL = 4  # Terms from which a sentence counts in full: "Agreed." says little alone
K1, B = 1.2, 0.75  # Of BM25, as its authors recommend
MEANING = 2.0  # The weight of the cosine; .5 to 3 do nearly as well (docs/experiments.md)
COMPARED = 36  # Units, the best by BM25, whose meaning is compared
DIVERSITY = 0.2  # What likeness to a shown excerpt costs
LEAST_COSINE = 0.25  # From here on a unit without a word of the question is shown
HEADING_WEIGHT = 0.5  # Of a term that stands in the heading or title alone


@dataclass(frozen=True, slots=True)
class OfferedPassage:
    """A passage that was found; `number` counts from 1, an empty `language` is detected."""

    number: int
    title: str
    heading: str
    text: str
    language: str = ""


@dataclass(frozen=True, slots=True)
class Excerpt:
    """The span `[start:end]` of a passage, of which `[start:best_end]` is the unit that was found.

    `header` is the span of the row that names the columns of a table row.
    """

    passage: OfferedPassage
    start: int
    end: int
    best_end: int
    heading: str
    header: tuple[int, int] | None = None

    @property
    def text(self) -> str:
        return self.passage.text[self.start : self.end]

    @property
    def header_text(self) -> str:
        return self.passage.text[slice(*self.header)].strip() if self.header else ""


@dataclass(frozen=True, slots=True)
class ExcerptAnswer:
    """Excerpts, the best first, and the label above them."""

    excerpts: tuple[Excerpt, ...]
    label: str


# --- relevance ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A unit of a passage, its terms, and its relevance to the question (0-1)."""

    passage: OfferedPassage
    place: int
    unit: Unit
    terms: frozenset[str]
    lexical: float = 0.0
    cosine: float | None = None  # None: meaning is not compared

    @property
    def text(self) -> str:
        return self.passage.text[self.unit.start : self.unit.end]

    @property
    def titled_text(self) -> str:
        """The unit under its heading, by which its meaning is compared."""
        heading = (
            self.unit.heading or self.passage.heading.rpartition(" > ")[2] or self.passage.title
        )
        return f"{heading}: {self.text}" if heading else self.text

    @property
    def relevance(self) -> float:
        share = 1.0 if self.unit.kind in ("row", "code") else min(1.0, len(self.terms) / FULL)
        if self.cosine is None:
            return share * self.lexical
        return share * (self.lexical + MEANING * self.cosine) / (1 + MEANING)


def best_excerpts(
    question: str,
    passages: Sequence[OfferedPassage],
    rarity: Rarity,
    similarity: Similarity | None = None,
) -> ExcerptAnswer:
    """Return the excerpts that speak most of a question, chosen by words alone without embedder."""
    languages = frozenset(passage.language or language_of(passage.text) for passage in passages)
    language = language_among(question, languages)
    candidates = _ranked_by_words(question, passages, rarity, language)
    if similarity is not None and candidates:
        compared, rest = candidates[:COMPARED], candidates[COMPARED:]
        cosines = similarity(question, [candidate.titled_text for candidate in compared])
        compared = [
            replace(one, cosine=float(cosine))
            for one, cosine in zip(compared, cosines, strict=True)
        ]
        candidates = [*compared, *(replace(candidate, cosine=0.0) for candidate in rest)]
    speaking = [one for one in candidates if one.lexical > 0 or (one.cosine or 0.0) >= LEAST_COSINE]
    return ExcerptAnswer(tuple(_chosen(speaking)), language.label)


def _ranked_by_words(
    question: str, passages: Sequence[OfferedPassage], rarity: Rarity, language: Language
) -> list[_Candidate]:
    """Rank all units by BM25, as a share of the best; equal ones by their place."""
    weights = {term: rarity(term) for term in language.content_terms(question)}
    units_of = [
        (passage, place, unit)
        for passage in passages
        for place, unit in enumerate(quotable_units(passage.text))
    ]
    counted = [
        _terms(passage.text[unit.start : unit.end], language) for passage, _, unit in units_of
    ]
    mean = sum(terms.total() for terms in counted) / max(len(counted), 1) or 1.0
    found = []
    for (passage, place, unit), terms in zip(units_of, counted, strict=True):
        header = passage.text[slice(*unit.header)] if unit.header else ""
        above = _terms(f"{passage.title}\n{passage.heading}\n{unit.heading}\n{header}", language)
        score = _bm25(weights, terms, above, terms.total() / mean)
        found.append(_Candidate(passage, place, unit, frozenset(terms), score))
    best = max((candidate.lexical for candidate in found), default=0.0) or 1.0
    scaled = [replace(candidate, lexical=candidate.lexical / best) for candidate in found]
    return sorted(
        scaled,
        key=lambda candidate: (-candidate.lexical, candidate.passage.number, candidate.place),
    )


@lru_cache(maxsize=16_384)
def _terms(text: str, language: Language) -> Counter[str]:
    return Counter(language.terms(text.replace("_", " ")))


def _bm25(
    weights: Mapping[str, float], terms: Counter[str], above: Counter[str], length: float
) -> float:
    """Return the BM25 of a unit; `above` are the terms of its headings, `length` is relative."""
    score = 0.0
    for term, weight in weights.items():
        often = terms[term] or HEADING_WEIGHT * (term in above)
        score += weight * often * (K1 + 1) / (often + K1 * (1 - B + B * length))
    return score


def _chosen(candidates: Sequence[_Candidate]) -> list[Excerpt]:
    """Choose the best unit, then those that add most (maximal marginal relevance)."""
    excerpts: list[Excerpt] = []
    shown: list[_Candidate] = []
    rest = list(candidates)
    while rest and len(excerpts) < MOST_EXCERPTS:
        best = max(
            rest,
            key=lambda one: (
                one.relevance - DIVERSITY * max((_alike(one, other) for other in shown), default=0)
            ),
        )
        shown.append(best)
        excerpts.append(_read_on(best, excerpts))
        rest = [one for one in rest if not any(_shows(excerpt, one) for excerpt in excerpts)]
    return excerpts


def _alike(one: _Candidate, other: _Candidate) -> float:
    """Return the share of terms that two units have in common (Jaccard)."""
    return len(one.terms & other.terms) / (len(one.terms | other.terms) or 1)


def _shows(excerpt: Excerpt, candidate: _Candidate) -> bool:
    """Whether an excerpt holds a unit, or its text, as passages may share sentences."""
    same = excerpt.passage == candidate.passage
    return (
        same and excerpt.start <= candidate.unit.start < excerpt.end
    ) or candidate.text in excerpt.text


def _read_on(candidate: _Candidate, before: Sequence[Excerpt]) -> Excerpt:
    """Extend a unit in its section while there is room; a table row stays alone."""
    laid_out = len(candidate.passage.text) < PARAGRAPH * candidate.passage.text.strip().count("\n")
    rooms = (FIRST_SECTION, FURTHER_SECTION) if laid_out else (FIRST_ROOM, FURTHER_ROOM)
    room = rooms[bool(before)]
    passage, unit = candidate.passage, candidate.unit
    taken = {excerpt.start for excerpt in before if excerpt.passage == passage}
    end = unit.end
    if unit.kind == "row":
        return Excerpt(passage, unit.start, end, end, unit.heading or passage.heading, unit.header)
    for following in quotable_units(passage.text)[candidate.place + 1 :]:
        if (
            following.heading != unit.heading
            or following.end - unit.start > room
            or following.start in taken
        ):
            break
        end = following.end
    return Excerpt(passage, unit.start, end, unit.end, unit.heading or passage.heading, unit.header)


# --- text -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ShownExcerpts:
    """Excerpts as text.

    `quotes` maps each marker to (passage number, start, end); `marks` are the places where markers
    end, as other brackets are the documents' own.
    """

    text: str
    quotes: Mapping[int, tuple[int, int, int]]
    marks: frozenset[int]


def shown(answer: ExcerptAnswer) -> ShownExcerpts:
    """Write excerpts as Markdown quotes, each under its heading and with its marker."""
    lines = [answer.label] if answer.excerpts else []
    marks = []
    above = ""
    for marker, excerpt in enumerate(answer.excerpts, 1):
        if excerpt.heading and excerpt.heading != above:
            lines.append(excerpt.heading)
        above = excerpt.heading
        table = (
            f"{excerpt.header_text}\n|{' --- |' * _columns(excerpt)}\n" if excerpt.header else ""
        )
        text = table + _balanced(excerpt.text)
        marked = text + ("\n" if table or text.endswith("```") else " ") + f"[{marker}]"
        lines += [f"> {line}".rstrip() for line in marked.splitlines()]
        marks.append(len("\n".join(lines)))
    quotes = {
        marker: (excerpt.passage.number, excerpt.start, excerpt.best_end)
        for marker, excerpt in enumerate(answer.excerpts, 1)
    }
    return ShownExcerpts("\n".join(lines), quotes, frozenset(marks))


def _columns(excerpt: Excerpt) -> int:
    return excerpt.header_text.strip("|").count("|") + 1


def _balanced(text: str) -> str:
    """Drop the marks of Markdown (emphasis, code) that have lost their other half."""
    for mark in ("```", "**", "__", "`"):
        if text.count(mark) % 2:
            text = text.replace(mark, "")
    return text
