"""Extraction without a model: the names of a passage, and those that stand together.

Each name is tied to the one before it in its sentence or row by the words between (GraphRAG's cheap
index relates names in the same way). The sentence is kept as the statement; what says more is left
to a model, and so are claims.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import pairwise

from prompts.extracted import ALIAS_PREDICATE, EntityFound, Extracted, RelationFound
from prompts.text.amounts import MONTHS
from prompts.text.evidence import cells_of
from prompts.text.names import NameSpan, kind_of_words, name_spans
from prompts.text.names_zh import is_generic, kind_of, name_spans_zh
from prompts.text.relevance import PRONOUN
from prompts.text.segment import Unit, units
from prompts.text.tokens import usually_lower
from prompts.text.words import CJK, LEADING, STOPWORDS, TRAILING, WORD, is_han, words_in

TOGETHER, TOGETHER_ZH = "named with", "同见"
_LEFT_OUT = re.compile(
    r"\([^()]*\)|\[[^\]]{0,300}\]|（[^（）]*）|\b(?:was|were|is|are|has|have|had|been|be|also|the|a|an|its|his|her|their"
    r"|later|then|who|which|that|and|or|but)\b|['’]s\b|[的了于是由在]|以及|并且|而且|其中|通过|"
    rf"\b(?:in\s+)?(?:\d[\d.,/–-]*(?:th|st|nd|rd)?|{'|'.join(MONTHS)})\b",
    re.I,
)
_WORD = re.compile(rf"[^\W\d_{CJK}]+(?:['’-][^\W\d_{CJK}]+)*|[{CJK}]+")
_PREPOSITIONS = words_in("english", "prepositions")
_ZH_LISTING = frozenset("和 与 及 或 等 跟 同 我们".split())
_ZH_CLAUSE = re.compile(rf"[{CJK}*][，,；。]")
_MOST_WORDS, _MOST_HAN = 8, 12  # of a predicate
_CELL_WORD = re.compile(rf"{LEADING}[^\W_]+(?:[-'’.&][^\W_]+)*(?:{TRAILING}|\.)?|&")
_HAN_NAME = re.compile(rf"[{CJK}·]{{2,14}}$")
_LINKING = frozenset("of the de la du del von van der den and for & y".split())
_LONGEST_CELL = 80


def extract_offline(title: str, passage: str) -> Extracted:
    """Names and relations of a passage; a pronoun that opens a sentence means the title's thing."""
    pieces = [unit for unit in units(passage) if unit.kind != "code"]
    cells = [
        cell for piece in pieces if piece.kind == "row" for cell in _named_cells(passage, piece)
    ]
    others = names_in(passage, [(piece.start, piece.end) for piece in pieces], title)
    free = [
        name
        for name in others
        if all(name.end <= cell.start or cell.end <= name.start for cell in cells)
    ]
    names = sorted([*cells, *free], key=lambda name: name.start)
    topic = _topic_name(title, names)
    relations: dict[tuple[str, str, str], RelationFound] = {}
    described: dict[str, str] = {}
    kinds: dict[str, str] = {}
    starts = [name.start for name in names]
    for piece in pieces:
        inside = names[bisect_left(starts, piece.start) : bisect_left(starts, piece.end)]
        for name in inside:
            described.setdefault(name.text, " ".join(passage[piece.start : piece.end].split()))
            if kinds.get(name.text, "thing") == "thing":
                kinds[name.text] = name.kind
        tied = _of_row if piece.kind == "row" else _of_sentence
        for relation in tied(passage, piece, inside, topic):  # each once, by the first that says so
            relations.setdefault((relation.source, relation.target, relation.predicate), relation)
    for owner, alias, words in _stated_aliases(passage, names):
        relations[owner, alias, ALIAS_PREDICATE] = _stated(owner, ALIAS_PREDICATE, alias, words)
    entities = [
        EntityFound(name=name, kind=kind, description=described[name])
        for name, kind in kinds.items()
    ]
    return Extracted(entities=entities, relations=list(relations.values()))


def names_in(passage: str, spans: list[tuple[int, int]], title: str = "") -> list[NameSpan]:
    """Names by the passage's script, in order; words of `title` have their capitals on purpose."""
    return name_spans_zh(passage) if is_han(passage) else name_spans(passage, spans, title)


def topic_of(title: str) -> str:
    """The thing that a title names: the title on one line."""
    return " ".join(title.split())[:100]


def _topic_name(title: str, names: Sequence[NameSpan]) -> str:
    """The title, in the form in which the passage names it where it does."""
    topic = topic_of(title)
    bare = topic.partition(" (")[0].casefold()
    return next((name.text for name in names if name.text.casefold() == bare), topic)


# --- relations -----------------------------------------------------------------------------------


def _of_sentence(
    text: str, unit: Unit, names: Sequence[NameSpan], topic: str
) -> Iterator[RelationFound]:
    """Relations of neighbouring names; a list shares the source and the words before it."""
    sentence = text[unit.start : unit.end]
    pronoun = PRONOUN.match(text, unit.start, names[0].start if names else unit.start)
    previous, position = (topic, pronoun.end()) if topic and pronoun else ("", unit.start)
    source = predicate = ""
    for name in names:
        words = _predicate(text[position : name.start])
        if (
            predicate and words in _PREPOSITIONS
        ):  # "founded in Velin by Ada Korb": not Velin was, by her
            kept = [word for word in predicate.split() if word not in _PREPOSITIONS]
            predicate = " ".join([*kept, words])
        elif words or not predicate:
            source, predicate = previous, words
        if source and source != name.text:
            yield _stated(source, predicate or _together(name), name.text, sentence)
        previous, position = name.text, name.end


def _of_row(text: str, unit: Unit, names: Sequence[NameSpan], _: str) -> Iterator[RelationFound]:
    """Relations of the name in the first cell of a row with the other ones, by their labels."""
    if not names or "|" in text[unit.start : names[0].start].strip("| "):
        return
    for before, name in pairwise(names):
        label = _predicate(text[before.end : name.start].rpartition("|")[2].partition(":")[0])
        if name.text != names[0].text:
            yield _stated(
                names[0].text, label or _together(name), name.text, text[unit.start : unit.end]
            )


def _together(name: NameSpan) -> str:
    return TOGETHER_ZH if re.search(f"[{CJK}]", name.text) else TOGETHER


def _stated(source: str, predicate: str, target: str, sentence: str) -> RelationFound:
    """A relation with the sentence that says so as its description."""
    said = " ".join(sentence.split())
    return RelationFound(source=source, target=target, predicate=predicate, description=said)


def _predicate(between: str) -> str:
    """The connecting words without articles, auxiliaries, dates and brackets; often none.

    "was later designed by the" is "designed by".
    """
    words = _WORD.findall(_LEFT_OUT.sub(" ", between).lower())
    if any("\u4e00" <= word[0] <= "\u9fff" for word in words):
        text = "".join(words)
        return (
            ""
            if len(text) > _MOST_HAN or text in _ZH_LISTING or _ZH_CLAUSE.search(between)
            else text
        )
    return " ".join(words if len(words) <= _MOST_WORDS else [*words[:4], "…", *words[-3:]])


# --- cells ---------------------------------------------------------------------------------------


def _named_cells(text: str, unit: Unit) -> Iterator[NameSpan]:
    """The names that fill whole cells of a row whose cells have labels."""
    at = unit.start
    for _, cell in cells_of(text[unit.start : unit.end]):
        at = text.index(cell, at)
        if kind := _kind_of_cell(cell):
            yield NameSpan(cell, at, at + len(cell), kind)
        at += len(cell)


def _kind_of_cell(text: str) -> str:
    """The kind of a cell that is a name, or nothing."""
    if _HAN_NAME.match(text):
        return "" if is_generic(text) else kind_of(text)
    words = _CELL_WORD.findall(text)
    if not 0 < len(words) <= _MOST_WORDS or len(text) > _LONGEST_CELL or re.search("[!?;:]", text):
        return ""
    if not text.lstrip(".")[:1].isupper() or any(
        word[0].islower() and word not in _LINKING for word in words
    ):
        return ""
    if len(words) == 1 and (
        words[0].lower() in STOPWORDS or usually_lower(words[0]) or len(words[0]) < 2
    ):
        return ""
    return kind_of_words([word.lower().rstrip(".") for word in words]) or "thing"


# --- names that mean the same --------------------------------------------------------------------

_STATED = re.compile(
    r"^(?:[\s,(（]*+(?:also |better |otherwise |formerly |commonly |usually |previously |often )?"
    r"(?:(?:known|called|abbreviated|shortened|referred to|nicknamed)(?: simply)?(?: as| "
    r"to)?|aka|a\.k\.a\.|alias|née)"
    r"(?: the)?[\s\"“‘'*_]*"
    r"|[\s，,（(]*+(?:又称|简称|又名|也叫|亦称|原名|别名|全称|即|俗称|英文名为?)[:：\s“”\"「《]*)$",
    re.I,
)
_BRACKET = re.compile(r"^\s*+[(（]\s*+(?:or |short:? |abbr\. )?[\"“‘'*_]*$")


def _stated_aliases(text: str, names: Sequence[NameSpan]) -> Iterator[tuple[str, str, str]]:
    """(name, alias, the words that say so) of neighbouring names."""
    for first, second in pairwise(names):
        gap = text[first.end : second.start]
        if len(gap) > 40 or "\n\n" in gap or first.text == second.text:
            continue
        same = bool(_STATED.match(gap))
        if not same and _BRACKET.match(gap):
            # A short form, or a translation: "海岸水文研究所(Coastal Hydrology Institute)".
            glossed = is_han(first.text) != is_han(second.text)
            same = (
                glossed
                or _abbreviates(second.text, first.text)
                or _abbreviates(first.text, second.text)
            )
        if same:
            yield first.text, second.text, text[first.start : second.end]


def _abbreviates(short: str, name: str) -> bool:
    """Whether `short` is made of the initials of a name ("OBC", "Orla Bridge Company")."""
    letters = [sign for sign in short if sign.isalnum()]
    if len(letters) < 2 or not all(sign.isupper() or sign.isdigit() for sign in letters):
        return False
    firsts = [word[0] for word in re.findall(r"[^\W_]+", name)]
    return letters in (
        [letter.upper() for letter in firsts],
        [letter for letter in firsts if letter.isupper()],
    )


# --- what a reader overlooked --------------------------------------------------------------------

# Shorter ones, headings and signatures say little; names that stand alone may be a wrong guess.
LEAST_WORDS, LEAST_SIGNS, LEAST_NAMES = 40, 80, 3
SHOWN = 5


def overlooked(title: str, passage: str) -> list[str]:
    """Some names of a passage, of which an answer without any cannot be true."""
    long = (
        len(passage) >= LEAST_SIGNS
        if is_han(passage)
        else len(WORD.findall(passage)) >= LEAST_WORDS
    )
    if not long:
        return []
    topic = topic_of(title)
    names = [
        entity.name for entity in extract_offline(title, passage).entities if entity.name != topic
    ]
    return names[:SHOWN] if len(names) >= LEAST_NAMES else []
