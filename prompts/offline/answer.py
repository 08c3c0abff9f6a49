"""Answers without a model: the one to four excerpts of the passages found that answer a question best.

One scorer ranks what can be quoted (`units.py`): sentences, list items, table rows, lines of code. Each term of the
question weighs its idf in the collection; all together weigh 1. A piece is worth

- the terms that it holds, and of those that it does not, `HEADING` of what its heading or title holds, or else
  `BESIDE` of what the sentence before or after it holds;
- `KIND` more where a number, date, person, reason or step is asked for and stands there;
- less where it holds fewer than `NEWS` terms that the question has not, by `LENGTH` for each hundred
  characters (a divisor), by `RANK` for each place of its passage, and by `POINTS` where it says little more than
  where to read on;
- more for its cosine with the question, read under its heading, or that of its section if that is higher, by
  `MEANING`: where the question names nothing but acronyms and what the collection is all about, the opening of each
  section and the best pieces by words are compared so, `COMPARED` texts in all. What is near in meaning needs no word
  of the question.

For each further excerpt a term that is shown already counts `SHOWN`, and `LINK` is added where an excerpt names
what the piece's document is about: "directed by X", then who X is. The ends of such links (`END`) come first, then,
where one fact is asked of something named, what holds the words beside the question word, then the best.

What is shown of a text that is laid out is a piece with the section around it, as on a search page of documents: what
follows under its heading, then what precedes, whole units in room for `BEST` characters, of further excerpts for
`OTHERS`. A row of a table stands for itself, under the names of its columns, but where a list is asked for.
Running text is quoted by sentences. Nothing is written: an excerpt is a span.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

from prompts.offline.asked_terms import AskedTerms, Rarity, asked_of
from prompts.offline.units import Quotable, is_laid_out, quotables, section_around
from prompts.text.languages import Language, language_among, language_of
from prompts.text.regex import regex
from prompts.text.words import HAN_RUN, STEMMERS, WORD, fold, fold_name, is_han, simplified, stopwords

# The cosine of a question with each of the texts, by the embedding of the collection; 0 where it cannot read them.
Similarity = Callable[[str, Sequence[str]], Sequence[float]]

# --- excerpts --------------------------------------------------------------------------------------------------------

HEADING, KIND, RANK = 0.7, 0.1, 0.015
BESIDE = 0.3, 0.4  # Latin script, Chinese
NEWS, LINK, END = 2, 0.15, 2.0
LENGTH = 0.05, 0.0  # Latin script, Chinese
POINTS = 0.5  # what counts of a piece that says little more than where to read on
_LINK = r"\[[^\]]{0,500}\]\([^)]{0,500}\)"
_LAST_CELL = regex(rf"\|\s*{_LINK}\s*+(?:\|\s*+)?$")
# Excerpts, and the characters that they have together: in text that is laid out, of which the section around the best
# piece may take so many, that around another one so many; in running text, which is quoted by sentences.
MOST, ROOM, BEST, OTHERS = 4, 1300, 700, 300
MOST_SENTENCES, SENTENCES = 3, 700
SHORT = 200  # characters: of a longer piece the best stretch is marked
# The least of a question's weight in one piece, and in one passage: of a short one in Latin script that names something
# (all else it says is what is asked of it), and of another. Of a Chinese one the least in one piece, by what is rare
# in Chinese: people ask in ordinary words of their own. Least of all where it names in Latin letters what is known.
SPOKEN = {"short": (0.33, 0.35), "plain": (0.2, 0.25)}
SPOKEN_HAN, SPOKEN_KNOWN = 0.53, 0.15
KNOWN = regex(r"[a-z][a-z0-9.+-]{2,}")
SHORT_TERMS = 6
ABOVE = 0.9  # there, what only a heading holds, since it speaks of more than the piece
# Kinds that stand in a text or do not; and those that no one sentence shows by itself.
HELD = frozenset({"number", "date", "person"})
OPEN = frozenset({"list", "steps", "way", "reason", "yes or no"})
POOL = 60  # the pieces that are compared for further excerpts
MEANING, COMPARED, READ, OPENING = 1.0, 36, 250, 350  # the last two: characters of a piece, and of a section
SECTIONS = 24  # of the texts that are compared at most so many are sections
NEAR, CLEAR = 0.34, 0.44  # where no piece is so near in meaning, and no passage holds so much, nothing is said of it
NEARER = 0.4  # what is so near in meaning is spoken of, however few of the question's words it holds


@dataclass(frozen=True, slots=True)
class OfferedPassage:
    """A passage that was found: `number` from 1 on, the best first; `language` is told from the text where it is not
    known."""

    number: int
    title: str
    heading: str
    text: str
    language: str = ""


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A piece of a passage: `text` is its `[start:end]`, `best` the span of the stretch that says most of it.

    `header` is the span of the row that names the columns, where the excerpt is rows of a table.
    """

    number: int
    start: int
    end: int
    text: str
    heading: str
    best: tuple[int, int]
    header: tuple[int, int] | None = None
    header_text: str = ""


@dataclass(frozen=True, slots=True)
class ExcerptAnswer:
    """Excerpts, the best first, none where nothing is said of the question; the label that they stand under.

    Whether an excerpt answers the question is for the reader to judge.
    """

    excerpts: tuple[Excerpt, ...]
    label: str


# --- what each piece is worth ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Piece:
    """Something quotable with the terms of the question that it, its headings and its neighbours hold."""

    passage: OfferedPassage
    place: int
    unit: Quotable
    held: frozenset[str]
    above: frozenset[str]
    beside: frozenset[str]
    fits: bool
    news: float
    meaning: float = 0.0
    cosine: float | None = None  # its own with the question, where it was compared

    @property
    def speaks(self) -> bool:
        """Whether it, its headings or its neighbours hold a word of the question."""
        return bool(self.held or self.above or self.beside)

    def worth(self, asked: AskedTerms, shown: frozenset[str] = frozenset()) -> float:
        """What it adds to what is shown already."""
        gain = asked.weigh(self.held, shown) + HEADING * asked.weigh(self.above, shown)
        gain += BESIDE[asked.han] * asked.weigh(self.beside, shown)
        gain += KIND if self.fits and asked.kind != "list" else 0.0
        length = 1 + LENGTH[asked.han] * (self.unit.end - self.unit.start) / 100
        return self.news * gain / length - RANK * (self.passage.number - 1) + self.meaning


@lru_cache(maxsize=4096)
def _terms_of(text: str, language: Language) -> frozenset[str]:
    return frozenset(language.terms(text))


def _whole_text(passage: OfferedPassage) -> str:
    return f"{passage.title}\n{passage.heading}\n{passage.text}"


def _pieces(asked: AskedTerms, passages: Sequence[OfferedPassage]) -> list[_Piece]:
    wanted = frozenset(asked.weights)
    pieces: list[_Piece] = []
    for passage in passages:
        units = quotables(passage.text, asked.language)
        held = [wanted & unit.terms for unit in units]
        top = wanted & _terms_of(f"{passage.title}\n{passage.heading}", asked.language)
        for place, unit in enumerate(units):
            text = passage.text[unit.start : unit.end]
            before = held[place - 1] if place else frozenset()
            after = held[place + 1] if place + 1 < len(units) else frozenset()
            columns = passage.text[slice(*unit.header)] if unit.header else ""
            above = top | wanted & _terms_of(f"{unit.heading}\n{columns}", asked.language)
            if text[-1] in "?？":
                continue
            above -= held[place]
            beside = (before | after) - held[place] - above
            news = 1.0 if unit.leads else min(1.0, (len(unit.terms - wanted) + 1) / NEWS)
            news *= POINTS if _points_on(text) else 1.0
            pieces.append(_Piece(passage, place, unit, held[place], above, beside, asked.fits(text), news))
    return pieces


def _points_on(text: str) -> bool:
    """Whether the last cell of a row is a link, or links are most of a text."""
    return bool(_LAST_CELL.search(text)) or 2 * sum(map(len, re.findall(_LINK, text))) > len(text)


def _compared(question: str, asked: AskedTerms, pieces: Sequence[_Piece], similarity: Similarity) -> list[_Piece]:
    """The pieces by words and by what they, or the sections that they stand in, mean under their headings; the best
    first."""
    sections: dict[tuple[int, str], str] = {}
    for piece in sorted(pieces, key=_place):
        if is_laid_out(piece.passage.text, piece.unit) and len(sections) < SECTIONS:
            opening = piece.passage.text[piece.unit.start : piece.unit.start + OPENING]
            sections.setdefault(_section(piece), f"{_heading(piece)}: {opening}"[:OPENING])
    best = pieces[: COMPARED - len(sections)]
    own = list(map(_as_read, best))
    cosines = similarity(question, [*sections.values(), *own])
    of_section = dict(zip(sections, cosines, strict=False))
    of_piece = {_place(piece): cosine for piece, cosine in zip(best, cosines[len(sections) :], strict=True)}

    read: list[_Piece] = []
    for piece in pieces:
        sources = [of_piece.get(_place(piece)), of_section.get(_section(piece))]
        if compared := [cosine for cosine in sources if cosine is not None]:
            read.append(replace(piece, meaning=MEANING * max(compared), cosine=sources[0]))
    return sorted(read, key=lambda piece: -piece.worth(asked))


def _as_read(piece: _Piece) -> str:
    """A piece as it is compared with the question: under its heading."""
    return f"{_heading(piece)}: {_text(piece)}"[:READ]


def _section(piece: _Piece) -> tuple[int, str]:
    return piece.passage.number, piece.unit.heading


def _place(piece: _Piece) -> tuple[int, int]:
    return piece.passage.number, piece.unit.start


def _headings(piece: _Piece) -> str:
    return f"{piece.passage.heading}\n{piece.unit.heading}"


def _heading(piece: _Piece) -> str:
    return piece.unit.heading or piece.passage.heading.rpartition(" > ")[2]


def best_excerpts(
    question: str, passages: Sequence[OfferedPassage], rarity: Rarity, similarity: Similarity | None = None
) -> ExcerptAnswer:
    """The one to four excerpts of the passages that speak most of what a question asks.

    `rarity` is the idf of a term in the collection; without `similarity` words alone decide. Follow-up questions must
    have been rewritten before.
    """
    spoken = frozenset(passage.language or language_of(passage.text) for passage in passages)
    language = language_among(question, spoken)
    known = frozenset[str]().union(*(_terms_of(_whole_text(passage), language) for passage in passages))
    asked = asked_of(question, language, rarity, known)
    same = sum(asked.han == is_han(passage.text) for passage in passages)
    asked = replace(asked, foreign=2 * same < len(passages) or _reads_otherwise(question, language))
    pieces = sorted(_pieces(asked, passages), key=lambda piece: -piece.worth(asked))
    nearest = 0.0
    if similarity is not None and not asked.has_telling_name and pieces:
        pieces = _compared(question, asked, pieces, similarity)
        nearest = max(piece.meaning for piece in pieces)
    pieces = [piece for piece in pieces if piece.speaks or piece.meaning >= NEARER][:POOL]
    far = not asked.foreign and 0 < nearest < NEAR and _in_passage(asked, passages) < CLEAR
    if not pieces or far or (nearest < NEARER and not spoken_of(asked, passages, pieces)):
        return ExcerptAnswer((), language.label)
    quotes = _chosen(asked, pieces)
    chosen = [piece for quote in quotes for piece in quote.pieces]
    fact = bool(asked.names) and asked.kind not in OPEN

    def comes_first(piece: _Piece) -> float:
        return fact * asked.near(piece.unit.terms) + END * _linked(piece, chosen)

    quotes.sort(key=lambda quote: -max(comes_first(piece) for piece in pieces if quote.shows(piece)))
    excerpts = tuple(
        _excerpt(asked, quote, _marked(asked, quote, pieces, max(quote.pieces, key=comes_first))) for quote in quotes
    )
    return ExcerptAnswer(excerpts, language.label)


def _marked(asked: AskedTerms, quote: "_Quote", pieces: Sequence[_Piece], best: _Piece) -> _Piece:
    """The piece of a quote that is marked.

    Where a figure, date or name is asked for it holds one; of several pieces that do, it is the one with the words
    beside the question word ("How much did the Ambel Crossing *cost*?").
    """
    if asked.kind not in HELD:
        return best
    fitting = [piece for piece in pieces if piece.fits and quote.shows(piece)]
    return max(
        fitting,
        key=lambda piece: (asked.near(piece.unit.terms), piece.worth(asked)),
        default=best,
    )


def _reads_otherwise(question: str, language: Language) -> bool:
    """Whether a question has clearly more function words of another language."""
    words = WORD.findall(question.casefold())
    hits = {code: sum(word in stopwords(code) for word in words) for code in (*STEMMERS, language.code)}
    return not is_han(question) and max(hits.values()) > hits[language.code] + 1


def spoken_of(asked: AskedTerms, passages: Sequence[OfferedPassage], pieces: Sequence[_Piece]) -> bool:
    """Whether the collection speaks of what is asked: of each thing named in one passage, and of enough in one piece.

    People ask in other words than the documents': a question without names is let pass with few of its words. Of one in
    another language than the documents' nothing can be missed.
    """
    if asked.foreign:
        return True
    held = [_terms_of(_whole_text(passage), asked.language) for passage in passages]
    if not all(any(thing <= terms for terms in held) for thing in asked.things):
        return False
    if asked.han:
        return _spoken_of_han(asked, pieces)
    in_piece = max(asked.weigh(piece.held) + ABOVE * asked.weigh(piece.above) for piece in pieces)
    least_in_piece, least_around = SPOKEN["short" if asked.names and len(asked.weights) < SHORT_TERMS else "plain"]
    return in_piece >= least_in_piece or _in_passage(asked, passages) >= least_around


def _in_passage(asked: AskedTerms, passages: Sequence[OfferedPassage]) -> float:
    """The most of the question that one passage holds."""
    wanted = frozenset(asked.weights)
    return max(asked.weigh(wanted & _terms_of(_whole_text(passage), asked.language)) for passage in passages)


def _spoken_of_han(asked: AskedTerms, pieces: Sequence[_Piece]) -> bool:
    texts = list(map(_with_headings, pieces))
    known = any(KNOWN.fullmatch(word) and word in text for word in asked.words for text in texts)
    return max(_held_han(asked, text) for text in texts) >= (SPOKEN_KNOWN if known else SPOKEN_HAN)


def _with_headings(piece: _Piece) -> str:
    return simplified(fold("\n".join((piece.passage.title, _headings(piece), _text(piece)))))


def _held_han(asked: AskedTerms, text: str) -> float:
    """The share of a Chinese question's words, by how rare they are, that stands in a text."""
    held = sum(weight * _part(word, text) for word, weight in asked.words.items())
    return held / (sum(asked.words.values()) or 1.0)


def _part(word: str, text: str) -> float:
    """The share of a word that stands in a text: the segmenter joins what is two words, too."""
    if word in text:
        return 1.0
    pairs = ["".join(pair) for pair in pairwise(word)] if HAN_RUN.match(word) and len(word) > 2 else []
    return sum(pair in text for pair in pairs) / len(pairs) if pairs else 0.0


@dataclass(frozen=True, slots=True, eq=False)
class _Quote:
    """A stretch of a passage that is shown, and the pieces that it was chosen for, the best first."""

    passage: OfferedPassage
    start: int
    end: int
    pieces: tuple[_Piece, ...]

    def shows(self, piece: _Piece) -> bool:
        """Whether some of a piece stands in it."""
        return self.passage == piece.passage and piece.unit.start < self.end and self.start < piece.unit.end

    def holds(self, piece: _Piece) -> bool:
        """Whether it shows what a piece says; passages of one document share sentences."""
        return self.shows(piece) or _text(piece) in self.passage.text[self.start : self.end]

    def touches(self, passage: OfferedPassage, start: int, end: int) -> bool:
        """Whether nothing but blanks stands between it and a span of a passage."""
        return self.passage == passage and not passage.text[min(self.end, end) : max(self.start, start)].strip()


def _chosen(asked: AskedTerms, pieces: Sequence[_Piece]) -> list[_Quote]:
    """The best piece, then what adds most to it while there is room, each with the section around it.

    What follows on a quote joins it, and is no further one.
    """
    rest, shown, used = list(pieces), frozenset[str](), 0
    quotes: list[_Quote] = []
    while rest:
        chosen = [piece for quote in quotes for piece in quote.pieces]
        best = max(rest, key=lambda piece: piece.worth(asked, shown) + LINK * _linked(piece, chosen))
        rest.remove(best)
        alone = best.unit.kind == "row" and asked.kind != "list"
        passage, start, end = best.passage, best.unit.start, best.unit.end
        most, room = (MOST, ROOM) if is_laid_out(passage.text, best.unit) else (MOST_SENTENCES, SENTENCES)
        left = room - used
        beside = any(quote.touches(passage, start, end) for quote in quotes)
        if quotes and (end - start > left or (len(quotes) >= most and not beside) or (alone and not best.held)):
            continue
        if not beside and not alone:
            spans = [(quote.start, quote.end) for quote in quotes if quote.passage == passage]
            room = min(OTHERS if quotes else BEST, left)
            start, end = section_around(passage.text, quotables(passage.text, asked.language), best.place, room, spans)
        used += end - start
        joined = [quote for quote in quotes if quote.touches(passage, start, end)]
        together = (*(piece for quote in joined for piece in quote.pieces), best)
        start, end = min([start, *(quote.start for quote in joined)]), max([end, *(quote.end for quote in joined)])
        place = quotes.index(joined[0]) if joined else len(quotes)
        quotes.insert(place, _Quote(passage, start, end, together))
        quotes = [quote for quote in quotes if quote not in joined]
        shown = shown | best.held | best.above
        rest = [piece for piece in rest if not any(quote.holds(piece) for quote in quotes)]
    return quotes


def _linked(piece: _Piece, chosen: Sequence[_Piece]) -> bool:
    """Whether an excerpt names what this piece's document is about, and is of another document."""
    name = fold_name(piece.passage.title)
    return len(name) > 3 and any(
        name not in fold_name(other.passage.title) and name in fold(_text(other)) for other in chosen
    )


def _text(piece: _Piece) -> str:
    return piece.passage.text[piece.unit.start : piece.unit.end]


def _excerpt(asked: AskedTerms, quote: _Quote, best: _Piece) -> Excerpt:
    """A quote as an excerpt; its best stretch is that of the best of its pieces."""
    passage, unit = quote.passage, best.unit
    opening = next(u for u in quotables(passage.text, asked.language) if u.start >= quote.start)
    header = opening.header if opening.header and quote.start > opening.header[0] else None
    return Excerpt(
        number=passage.number, start=quote.start, end=quote.end, text=passage.text[quote.start : quote.end],
        heading=unit.heading or passage.heading,
        best=stretch(asked, passage.text, unit.start, unit.end),
        header=header, header_text=passage.text[slice(*header)] if header else "",
    )  # fmt: skip


_BREAK = regex(r"(?<=[,;:)])\s|(?<=[，；：、）])|\s(?=[–(])|\n")


def stretch(asked: AskedTerms, text: str, start: int, end: int) -> tuple[int, int]:
    """Of a long piece the stretch of at most `SHORT` characters, from one break to another, that holds most."""
    if end - start <= SHORT:
        return start, end
    breaks = [start, *(match.end() for match in _BREAK.finditer(text, start, end)), end]
    best, most = (start, end), -1.0
    for place, first in enumerate(breaks[:-1]):
        last = max((b for b in breaks[place + 1 :] if b - first <= SHORT), default=0)
        if last:
            worth = asked.weigh(frozenset(asked.weights) & frozenset(asked.language.terms(text[first:last])))
            fits = asked.fits(text[first:last]) * (1.0 if asked.kind in HELD else KIND)
            worth += fits + KIND * (first == start) + 0.0001 * (last - first)
            if worth > most:
                best, most = (first, last), worth
    if most < 0:
        cut = text.rfind(" ", start, start + SHORT)
        best = start, cut if cut > start else start + SHORT
    first, last = best
    return first, first + len(text[first:last].rstrip())


# --- how they are shown ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ShownExcerpts:
    """The excerpts as text, what each marker in it quotes, (passage number, start, end), and where markers end.

    Any other brackets are those of the documents.
    """

    text: str
    quotes: Mapping[int, tuple[int, int, int]]
    marks: frozenset[int]


def shown(answer: ExcerptAnswer) -> ShownExcerpts:
    """The excerpts as quotes under their headings, each with its marker; 1 is that of the best.

    The passage of the best comes first; those of one passage are in reading order.
    """
    lines = [answer.label] if answer.excerpts else []
    passages = list(dict.fromkeys(excerpt.number for excerpt in answer.excerpts))
    quotes: dict[int, tuple[int, int, int]] = {}
    marks: list[int] = []
    above = ""
    for excerpt in sorted(answer.excerpts, key=lambda excerpt: (passages.index(excerpt.number), excerpt.start)):
        marker = answer.excerpts.index(excerpt) + 1
        # All that stands before it, or where that is long the best stretch.
        short = excerpt.end - excerpt.start <= SHORT
        quotes[marker] = (excerpt.number, *((excerpt.start, excerpt.end) if short else excerpt.best))
        if excerpt.heading and excerpt.heading != above:
            lines.append(excerpt.heading)
        above = excerpt.heading
        text = _header(excerpt) + _as_written(excerpt)
        marked = text + ("\n" if excerpt.header or text.endswith("```") else " ") + f"[{marker}]"
        lines += [f"> {line}".rstrip() for line in marked.splitlines()]
        marks.append(len("\n".join(lines)))
    return ShownExcerpts("\n".join(lines), quotes, frozenset(marks))


_FENCE = regex(r"```\w*\n?")


def _header(excerpt: Excerpt) -> str:
    if excerpt.header is None:
        return ""
    columns = excerpt.header_text.strip().strip("|").count("|") + 1
    return f"{excerpt.header_text.strip()}\n|{' --- |' * columns}\n"


def _as_written(excerpt: Excerpt) -> str:
    """The text of an excerpt without half a pair of emphasis marks, or of the marks around code."""
    text = excerpt.text
    if text.count("```") % 2:
        text = _FENCE.sub("", text)
    for mark in ("**", "__", "`"):
        if text.count(mark) % 2:
            text = text.replace(mark, "")
    return text
