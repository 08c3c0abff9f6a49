"""Which one to three excerpts of the passages found answer a question best? What a good search page shows.

One scorer ranks what can be quoted (`units.py`): sentences, list items, table rows, lines of code. Each term of the
question weighs its idf in the collection; all together weigh 1. A piece is worth

- the terms that it holds, and of those that it does not, `HEADING` of what its heading or title holds, or else
  `BESIDE` of what the sentence before or after it holds;
- `KIND` more where a number, date, person, reason or step is asked for and stands there;
- divided by 1 + `LENGTH` for each term that it holds, less `RANK` for each place of its passage.

For the second and third excerpt a term that is shown already counts `SHOWN`. Nothing is written: an excerpt is a span.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from rapidfuzz import fuzz, process

from prompts.language.names import name_spans
from prompts.language.names_zh import tagged
from prompts.language.words import HAN_RUN, content_terms, fold, fold_name, is_han, terms
from prompts.offline.units import Quotable, quotables

HEADING, BESIDE, AROUND, KIND, LENGTH, RANK, SHOWN = 0.7, 0.3, 0.1, 0.1, 0.05, 0.01, 0.3
NEWS = 2
LINK = 0.15
MOST, ROOM = 3, 430  # excerpts, and the characters that they have together before a further one is left out
WEAK = 0.0  # of the best score: what is worth less is not shown beside it
SHORT = 200  # characters: of a longer piece the best stretch is marked
SUPPORTED = 0.85  # the share of the question's weight that a supported answer holds in one piece
SPOKEN, SPOKEN_AROUND = (0.4, 0.5), (0.45, 0.7)  # the least in one piece, or one passage: Latin script, Chinese
POOL = 60  # the pieces that are compared for the second and third excerpt
ALIKE = 84  # how alike, in a hundred, a term that the collection does not know is to one that stands there

Support = Literal["none", "partial", "abstained"]
Rarity = Callable[[str], float]


@dataclass(frozen=True, slots=True)
class OfferedPassage:
    """A passage that was found: `number` from 1 on, the best first."""

    number: int
    title: str
    heading: str
    text: str


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A piece of a passage: `text` is its `[start:end]`, `best` the span of the stretch that says most of it.

    `header` is the span of the row that names the columns, where the excerpt is a row of a table.
    """

    number: int
    start: int
    end: int
    text: str
    heading: str
    score: float
    best: tuple[int, int]
    header: tuple[int, int] | None = None
    header_text: str = ""


@dataclass(frozen=True, slots=True)
class ExcerptAnswer:
    """Excerpts, the best first; whether they answer (`none`: nothing is missing); the label that they stand under."""

    excerpts: tuple[Excerpt, ...]
    support: Support
    label: str


# --- what is asked ---------------------------------------------------------------------------------------------

# What a question asks for, by its words, and what then stands in a text: (question, text).
_NUMERALS = r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|twelve|hundred|half|none)\b|[一二两三四五六七八九十百千万][^一-鿿]?"
_KINDS = {
    "number": (
        r"\bhow (?:many|much|long|old|far|tall|high|big|large|often|fast|deep|wide)\b|\bwhat (?:percentage|share)\b"
        r"|\bwie ?(?:viele?|lang|alt|hoch)\b|\bcombien\b|多少|几[个种类本次位章层]|多[长高大久远快]",
        r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|twelve|hundred|half)\b|[一二两三四五六七八九十百千万]",
    ),
    "date": (
        r"\bwhen\b|\b(?:what|which) (?:year|date|day|month)\b|\bwann\b|\bquand\b|何时|什么时候|哪一?[年天月日]|何年",
        r"\b1\d{3}\b|\b20\d\d\b|\b(?:Jan|Feb|Mar|Apr|May|June?|July?|Aug|Sep|Oct|Nov|Dec)[a-z]*\b|[年月日]",
    ),
    "person": (r"\bwho(?:m|se)?\b|\bwe[rmn]\b|\bqui\b|谁|哪位|何人", r""),
    "reason": (
        r"\bwhy\b|\bhow come\b|\bwarum\b|\bwieso\b|\bpourquoi\b|为什么|为何|为啥|原因",
        r"\b(?:because|since|due to|so that|therefore|reason|cause[sd]?|leads? to|weil|denn|car)\b|因为|由于|因此|所以|导致|以便|为了",
    ),
    "steps": (
        r"\bhow (?:do|can|could|should|would|to|does one)\b|\bwie (?:kann|muss|geht)\b|\bcomment\b|怎么|怎样|如何|\bset up\b",
        r"`|^\W*\d+[.)、]|(?:步骤|首先|然后|方式|通过)|\b(?:first|then|use|run|by)\b",
    ),
}
_KINDS["list"] = (
    r"\bwhat (?:are|were)\b|\b(?:which|what)(?: [\w-]+){1,3} (?:are|were|can)\b|\binclude[ds]?\b|\blist\b|\bwelche\w* \w+n\b"
    r"|哪些|哪[两三四五六七八几]|几[类种个]",
    r"[,;、；,][^.。]*(?:[,;、；,]|\band\b|\bor\b|和)|[:：]\s*\S+[^.。]*[,\n]|[•▪] ?\w| h [A-Z]",
)
_PATTERNS = {kind: (re.compile(asks, re.I), re.compile(says, re.I)) for kind, (asks, says) in _KINDS.items()}
_NAMED = re.compile(r"(?<!^)(?<![.!?] )\b[A-ZÀ-Þ][\w'’-]+|[\u4e00-\u9fff]{2,}")
# Function words of languages whose texts are searched by the words alone: they say nothing, however rare they are.
_FUNCTION = frozenset(
    """
    der die das den dem des ein eine einen einem einer ist sind war hat haben wird werden wie wer wen wem wann wo warum
    wieso welche welcher welches welchen was und oder nicht mit von zu zum zur im für auf bei aus nach gibt es man ich
    le la les un une du de des est sont qui que quoi quel quelle quels quelles comment pourquoi quand combien et ou dans
    pour sur avec au aux ce cette il elle y a-t-il
    """.split()
)


@dataclass(frozen=True, slots=True)
class Asked:
    """A question as it is compared: what its terms weigh (1 together), its names as terms, the kind asked for."""

    weights: Mapping[str, float]
    names: tuple[frozenset[str], ...]
    kind: str
    focus: Mapping[str, float]
    han: bool

    def near(self, terms: frozenset[str]) -> float:
        """How many of the words beside the question word stand among terms, the nearest counting most."""
        return sum(near for term, near in self.focus.items() if term in terms)

    def weigh(self, terms: frozenset[str], shown: frozenset[str] = frozenset()) -> float:
        """What terms of the question weigh together, those shown already less."""
        return sum(self.weights[term] * (SHOWN if term in shown else 1.0) for term in terms)

    def fits(self, text: str) -> bool:
        """Whether what is asked for, a number or a date say, stands in a text."""
        if not self.kind:
            return False
        if self.kind != "person":
            return _PATTERNS[self.kind][1].search(text) is not None
        return any(not set(terms(name)) <= self.weights.keys() for name in _NAMED.findall(text))


def asked_of(question: str, rarity: Rarity, known: frozenset[str]) -> Asked:
    """`known` are the terms of the passages: a term that the collection lacks stands for the one most like it."""
    unknown = rarity("\0")
    within = _within_words(question)
    wanted = [
        term
        for term in content_terms(question)
        if term not in _FUNCTION and (term in within or term in known or not HAN_RUN.match(term))
    ]
    weights: dict[str, float] = {}
    spelled: dict[str, str] = {}
    for term in wanted:
        weight = rarity(term)
        if term not in known and weight >= unknown and not HAN_RUN.match(term):
            spelled[term] = alike(term, known)
            term, weight = spelled[term], min(weight, rarity(spelled[term]))
        weights.setdefault(term, weight)
    named = [] if is_han(question) else name_spans(question, [(0, len(question))])
    names = [frozenset(spelled.get(term, term) for term in terms(name.text)) for name in named]
    kind = next((kind for kind, (asks, _) in _PATTERNS.items() if asks.search(question)), "")
    focus = {spelled.get(term, term): near for term, near in focus_of(question, frozenset().union(*names)).items()}
    total = sum(weights.values()) or 1.0
    return Asked(
        {term: weight / total for term, weight in weights.items()},
        tuple(filter(None, names)),
        kind,
        focus,
        is_han(question),
    )


@lru_cache(maxsize=4096)
def _within_words(question: str) -> frozenset[str]:
    """The bigrams of a Chinese question that lie in one word: one across two words tells nothing by being unknown."""
    if not HAN_RUN.search(question):
        return frozenset()
    return frozenset(term for word, kind, _ in tagged(question) if kind[0] not in "ruydpc" for term in terms(word))


def alike(term: str, known: frozenset[str]) -> str:
    """The known term that a term is a misspelling or another form of; itself where there is none."""
    if len(term) < 4:
        return term
    begun = [other for other in known if len(other) > 4 and (term.startswith(other) or other.startswith(term))]
    if begun:
        return max(begun, key=len)
    best = process.extractOne(term, [other for other in known if len(other) > 3], scorer=fuzz.ratio, score_cutoff=ALIKE)
    return best[0] if best else term


_OPEN = re.compile(r"\b(?:what|which|who|whom|whose|when|where|how|w[aeio]\w+|quel\w*|qui|combien)\b", re.I)


def focus_of(question: str, names: frozenset[str]) -> dict[str, float]:
    """The words nearest to the last question word, which say what is asked of the names: "founded in what *year*".

    Chinese question words have no such place, so there are none.
    """
    opened = list(_OPEN.finditer(question))
    if not opened or is_han(question):
        return {}
    after = [term for term in content_terms(question[opened[-1].end() :]) if term not in names][:3]
    before = [term for term in content_terms(question[: opened[-1].start()]) if term not in names][:-4:-1]
    near = {term: (0.5 if after else 1.0) / (1 + place) for place, term in enumerate(before)}
    return near | {term: 1 / (1 + place) for place, term in enumerate(after)}


# --- what each piece is worth ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Piece:
    """Something quotable with the terms of the question that it, its headings and its neighbours hold."""

    passage: OfferedPassage
    place: int
    unit: Quotable
    held: frozenset[str]
    above: frozenset[str]
    beside: frozenset[str]
    around: frozenset[str]
    fits: bool
    news: float

    def worth(self, asked: Asked, shown: frozenset[str] = frozenset()) -> float:
        """What it adds to what is shown already."""
        gain = asked.weigh(self.held, shown) + HEADING * asked.weigh(self.above, shown)
        gain += BESIDE * asked.weigh(self.beside, shown) + AROUND * asked.weigh(self.around, shown)
        gain += KIND if self.fits else 0.0
        return self.news * gain / (1 + LENGTH * (self.unit.end - self.unit.start) / 100) - RANK * (
            self.passage.number - 1
        )


@lru_cache(maxsize=4096)
def _terms_of(text: str) -> frozenset[str]:
    return frozenset(terms(text))


_REFERS = re.compile(r"\W*(?:(?:this|these|those|it|its|they|their|he|his|she|her|the|such)\b|[该这此其它他她])", re.I)


def _whole_text(passage: OfferedPassage) -> str:
    return f"{passage.title}\n{passage.heading}\n{passage.text}"


def _pieces(asked: Asked, passages: Sequence[OfferedPassage]) -> list[_Piece]:
    wanted = frozenset(asked.weights)
    found: list[_Piece] = []
    for passage in passages:
        units = quotables(passage.text)
        held = [wanted & unit.terms for unit in units]
        top = wanted & _terms_of(f"{passage.title}\n{passage.heading}")
        here = frozenset().union(*held)
        for place, unit in enumerate(units):
            text = passage.text[unit.start : unit.end]
            before = held[place - 1] if place else frozenset()
            after = held[place + 1] if place + 1 < len(units) else frozenset()
            above = top | wanted & _terms_of(unit.heading)
            if place and _REFERS.match(text):
                above |= before
            if not (held[place] or above or before or after) or text[-1] in "?？":
                continue
            above -= held[place]
            beside = (before | after) - held[place] - above
            around = here - held[place] - above - beside
            news = min(1.0, (len(unit.terms - wanted) + 1) / NEWS)
            found.append(_Piece(passage, place, unit, held[place], above, beside, around, asked.fits(text), news))
    return found


def best_excerpts(question: str, passages: Sequence[OfferedPassage], rarity: Rarity) -> ExcerptAnswer:
    """The one to three excerpts of the passages that answer a question best, and how well they do.

    `rarity` is the idf of a term in the collection. Follow-up questions must have been rewritten before.
    """
    known = frozenset[str]().union(*(_terms_of(_whole_text(passage)) for passage in passages))
    asked = asked_of(question, rarity, known)
    pieces = sorted(_pieces(asked, passages), key=lambda piece: -piece.worth(asked))[:POOL]
    label = "文档摘录：" if is_han(question) else "From the documents:"
    if not pieces or not spoken_of(asked, passages, pieces):
        return ExcerptAnswer((), "abstained", label)
    chosen = _chosen(asked, pieces)
    support: Support = "none" if any(supported(asked, piece) for piece, _ in chosen) else "partial"
    chosen.sort(key=lambda one: -asked.near(one[0].unit.terms))
    return ExcerptAnswer(tuple(_excerpt(asked, piece, worth) for piece, worth in chosen), support, label)


def spoken_of(asked: Asked, passages: Sequence[OfferedPassage], pieces: Sequence[_Piece]) -> bool:
    """Whether the collection speaks of what is asked: enough of it in one piece, or in one passage.

    Of a question in another language nothing can be missed.
    """
    wanted = frozenset(asked.weights)
    texts = [_whole_text(passage) for passage in passages]
    if asked.han != any(is_han(text) for text in texts):
        return True
    in_piece = max(asked.weigh(piece.held | piece.above) for piece in pieces)
    in_passage = max(asked.weigh(wanted & _terms_of(text)) for text in texts)
    return in_piece >= SPOKEN[asked.han] or in_passage >= SPOKEN_AROUND[asked.han]


def supported(asked: Asked, piece: _Piece) -> bool:
    """Whether a piece with its headings has all that is asked: every name, nearly every term, and the kind."""
    there = piece.held | piece.above
    named = all(name <= there for name in asked.names)
    return named and (piece.fits or not asked.kind) and asked.weigh(there) >= SUPPORTED


def _chosen(asked: Asked, pieces: Sequence[_Piece]) -> list[tuple[_Piece, float]]:
    """The best piece, then what adds most to it while there is room; what follows on a chosen piece is no further
    quote."""
    rest, shown, room, quotes = list(pieces), frozenset[str](), ROOM, 0
    chosen: list[tuple[_Piece, float]] = []
    while rest:
        best = max(rest, key=lambda piece: piece.worth(asked, shown) + LINK * _linked(piece, chosen))
        rest.remove(best)
        worth, size = best.worth(asked, shown), _length(asked, best)
        joins = _joins(best, chosen)
        if chosen and (size > room or (quotes == MOST and not joins)):
            continue
        chosen.append((best, worth))
        quotes += not joins
        shown, room = shown | best.held | best.above, room - size
        rest = [piece for piece in rest if not _repeats(piece, best, asked)]
    return chosen


def _linked(piece: _Piece, chosen: Sequence[tuple[_Piece, float]]) -> bool:
    """Whether an excerpt names what this piece's document is about, and is of another document."""
    name = fold_name(piece.passage.title)
    return len(name) > 3 and any(
        other.passage.title != piece.passage.title and name in fold(_text(other)) for other, _ in chosen
    )


def _joins(piece: _Piece, chosen: Sequence[tuple[_Piece, float]]) -> bool:
    """Whether a sentence stands right before or after one that is chosen."""
    return piece.unit.kind == "plain" and any(
        other.passage.number == piece.passage.number
        and abs(other.place - piece.place) == 1
        and other.unit.kind == "plain"
        and "\n\n"
        not in piece.passage.text[min(other.unit.end, piece.unit.end) : max(other.unit.start, piece.unit.start)]
        for other, _ in chosen
    )


def _length(asked, piece):
    start, end = _span(asked, piece)
    return min(end - start, SHORT) if (start, end) == (piece.unit.start, piece.unit.end) else end - start


def _repeats(piece, best, asked):
    text, other = _text(piece), _text(best)
    if text == other:
        return True
    a, b = _span(asked, best)
    return piece.passage.number == best.passage.number and piece.unit.start < b and a < piece.unit.end


def _text(piece: _Piece) -> str:
    return piece.passage.text[piece.unit.start : piece.unit.end]


def _span(asked: Asked, piece: _Piece) -> tuple[int, int]:
    unit = piece.unit
    return unit.whole if unit.leads or asked.kind == "steps" else (unit.start, unit.end)


def _excerpt(asked: Asked, piece: _Piece, worth: float) -> Excerpt:
    start, end = _span(asked, piece)
    passage, unit = piece.passage, piece.unit
    header = unit.header if unit.header else None
    return Excerpt(
        number=passage.number, start=start, end=end, text=passage.text[start:end],
        heading=unit.heading or passage.heading, score=worth, best=stretch(asked, passage.text, start, end),
        header=header, header_text=passage.text[slice(*header)] if header else "",
    )  # fmt: skip


_BREAK = re.compile(r"(?<=[,;:)])\s|(?<=[，；：、）])|\s(?=[–(])|\n")


def stretch(asked: Asked, text: str, start: int, end: int) -> tuple[int, int]:
    """Of a long piece the stretch of at most `SHORT` characters, from one break to another, that holds most."""
    if end - start <= SHORT:
        return start, end
    breaks = [start, *(match.end() for match in _BREAK.finditer(text, start, end)), end]
    best, most = (start, end), -1.0
    for place, first in enumerate(breaks[:-1]):
        last = max((b for b in breaks[place + 1 :] if b - first <= SHORT), default=0)
        if last:
            worth = asked.weigh(frozenset(asked.weights) & frozenset(terms(text[first:last])))
            worth += KIND * asked.fits(text[first:last]) + 0.0001 * (last - first)
            if worth > most:
                best, most = (first, last), worth
    if most < 0:
        cut = text.rfind(" ", start, start + SHORT)
        best = start, cut if cut > start else start + SHORT
    first, last = best
    return first, first + len(text[first:last].rstrip())


def quoted(excerpt: Excerpt, marker: int) -> str:
    """An excerpt as it is shown: its heading, the row that names the columns, the text with its marker."""
    lines = [excerpt.heading.rpartition(" > ")[2] + ":" if excerpt.heading else "", excerpt.header_text]
    return "\n".join([*filter(None, lines), f"{excerpt.text} [{marker}]"])
