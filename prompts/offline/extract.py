"""Extraction without a model: the names of a passage, and which names stand together.

Each name is related to the one before it in its sentence or row by the words between them (as in
GraphRAG's cheap index), with the sentence as the description. Claims are left to a model.
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
    r"\([^()]*\)|\[[^\]]{0,300}\]|（[^（）]*）"
    r"|\b(?:was|were|is|are|has|have|had|been|be|also|the|a|an|its|his|her|their"
    r"|later|then|who|which|that|and|or|but)\b|['’]s\b|[的了于是由在]|以及|并且|而且|其中|通过|"
    rf"\b(?:in\s+)?(?:\d[\d.,/–-]*(?:th|st|nd|rd)?|{'|'.join(MONTHS)})\b",
    re.I,
)
_WORD = re.compile(rf"[^\W\d_{CJK}]+(?:['’-][^\W\d_{CJK}]+)*|[{CJK}]+")
_PREPOSITIONS = words_in("english", "prepositions")
_ZH_LISTING = frozenset("和 与 及 或 等 跟 同 我们".split())
_ZH_CLAUSE = re.compile(rf"[{CJK}*][，,；。]")
_MOST_WORDS, _MOST_HAN = 8, 12  # Words and Han characters of a predicate
_CELL_WORD = re.compile(rf"{LEADING}[^\W_]+(?:[-'’.&][^\W_]+)*(?:{TRAILING}|\.)?|&")
_HAN_NAME = re.compile(rf"[{CJK}·]{{2,14}}$")
_LINKING = frozenset("of the de la du del von van der den and for & y".split())
_LONGEST_CELL = 80


def extract_offline(title: str, passage: str) -> Extracted:
    """Return names and relations; a pronoun that opens a sentence refers to the title."""
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
        for relation in tied(passage, piece, inside, topic):
            relations.setdefault((relation.source, relation.target, relation.predicate), relation)
    for owner, alias, words in _stated_aliases(passage, names):
        relations[owner, alias, ALIAS_PREDICATE] = _stated(owner, ALIAS_PREDICATE, alias, words)
    entities = [
        EntityFound(name=name, kind=kind, description=described[name])
        for name, kind in kinds.items()
    ]
    return Extracted(entities=entities, relations=list(relations.values()))


def names_in(passage: str, spans: list[tuple[int, int]], title: str = "") -> list[NameSpan]:
    """Return names in order; words of `title` count as capitalised on purpose."""
    return name_spans_zh(passage) if is_han(passage) else name_spans(passage, spans, title)


def topic_of(title: str) -> str:
    """Return the thing that a title names: the title on one line."""
    return " ".join(title.split())[:100]


def _topic_name(title: str, names: Sequence[NameSpan]) -> str:
    """Return the title as the passage writes it, where it does."""
    topic = topic_of(title)
    bare = topic.partition(" (")[0].casefold()
    return next((name.text for name in names if name.text.casefold() == bare), topic)


# --- relations -----------------------------------------------------------------------------------


def _of_sentence(
    text: str, unit: Unit, names: Sequence[NameSpan], topic: str
) -> Iterator[RelationFound]:
    """Relate neighbouring names; the names of a list share the source and the words before it."""
    sentence = text[unit.start : unit.end]
    pronoun = PRONOUN.match(text, unit.start, names[0].start if names else unit.start)
    previous, position = (topic, pronoun.end()) if topic and pronoun else ("", unit.start)
    source = predicate = ""
    for name in names:
        words = _predicate(text[position : name.start])
        # "founded in Velin by Ada Korb": she founded, Velin did not.
        if predicate and words in _PREPOSITIONS:
            kept = [word for word in predicate.split() if word not in _PREPOSITIONS]
            predicate = " ".join([*kept, words])
        elif words or not predicate:
            source, predicate = previous, words
        if source and source != name.text:
            yield _stated(source, predicate or _together(name), name.text, sentence)
        previous, position = name.text, name.end


def _of_row(text: str, unit: Unit, names: Sequence[NameSpan], _: str) -> Iterator[RelationFound]:
    """Relate the name in the first cell of a row to the others, by their labels."""
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
    """Make a relation with its sentence as the description."""
    said = " ".join(sentence.split())
    return RelationFound(source=source, target=target, predicate=predicate, description=said)


def _predicate(between: str) -> str:
    """Return the words between two names without articles, auxiliaries, dates and brackets.

    "was later designed by the" becomes "designed by"; often nothing remains.
    """
    words = _WORD.findall(_LEFT_OUT.sub(" ", between).lower())
    if any("\u4e00" <= word[0] <= "\u9fff" for word in words):
        text = "".join(words)
        says_nothing = len(text) > _MOST_HAN or text in _ZH_LISTING or _ZH_CLAUSE.search(between)
        return "" if says_nothing else text
    return " ".join(words if len(words) <= _MOST_WORDS else [*words[:4], "…", *words[-3:]])


# --- cells ---------------------------------------------------------------------------------------


def _named_cells(text: str, unit: Unit) -> Iterator[NameSpan]:
    """Yield the names that fill whole cells of a row with labels."""
    at = unit.start
    for _, cell in cells_of(text[unit.start : unit.end]):
        at = text.index(cell, at)
        if kind := _kind_of_cell(cell):
            yield NameSpan(cell, at, at + len(cell), kind)
        at += len(cell)


def _kind_of_cell(text: str) -> str:
    """Return the kind of a cell that is a name, else nothing."""
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


# --- aliases -------------------------------------------------------------------------------------

_STATED = re.compile(
    r"^(?:[\s,(（]*+(?:also |better |otherwise |formerly |commonly |usually |previously |often )?"
    r"(?:(?:known|called|abbreviated|shortened|referred to|nicknamed)(?: simply)?(?: as| to)?"
    r"|aka|a\.k\.a\.|alias|née)"
    r"(?: the)?[\s\"“‘'*_]*"
    r"|[\s，,（(]*+(?:又称|简称|又名|也叫|亦称|原名|别名|全称|即|俗称|英文名为?)[:：\s“”\"「《]*)$",
    re.I,
)
_BRACKET = re.compile(r"^\s*+[(（]\s*+(?:or |short:? |abbr\. )?[\"“‘'*_]*$")


def _stated_aliases(text: str, names: Sequence[NameSpan]) -> Iterator[tuple[str, str, str]]:
    """Yield (name, alias, the words that say so) of neighbouring names."""
    for first, second in pairwise(names):
        gap = text[first.end : second.start]
        if len(gap) > 40 or "\n\n" in gap or first.text == second.text:
            continue
        same = bool(_STATED.match(gap))
        if not same and _BRACKET.match(gap):
            # A translation ("海岸水文研究所(Coastal Hydrology Institute)") or a short form.
            same = (
                is_han(first.text) != is_han(second.text)
                or _abbreviates(second.text, first.text)
                or _abbreviates(first.text, second.text)
            )
        if same:
            yield first.text, second.text, text[first.start : second.end]


def _abbreviates(short: str, name: str) -> bool:
    """Whether `short` consists of the initials of a name ("OBC", "Orla Bridge Company")."""
    letters = [sign for sign in short if sign.isalnum()]
    if len(letters) < 2 or not all(sign.isupper() or sign.isdigit() for sign in letters):
        return False
    firsts = [word[0] for word in re.findall(r"[^\W_]+", name)]
    return letters in (
        [letter.upper() for letter in firsts],
        [letter for letter in firsts if letter.isupper()],
    )


# --- overlooked names ----------------------------------------------------------------------------

# Passages with less are headings or signatures; single names may be wrong guesses.
LEAST_WORDS, LEAST_SIGNS, LEAST_NAMES = 40, 80, 3
SHOWN = 5


def overlooked(title: str, passage: str) -> list[str]:
    """Return some names of a long passage: a model that found none has overlooked them."""
    if is_han(passage):
        is_long = len(passage) >= LEAST_SIGNS
    else:
        is_long = len(WORD.findall(passage)) >= LEAST_WORDS
    if not is_long:
        return []
    topic = topic_of(title)
    names = [
        entity.name for entity in extract_offline(title, passage).entities if entity.name != topic
    ]
    return names[:SHOWN] if len(names) >= LEAST_NAMES else []
