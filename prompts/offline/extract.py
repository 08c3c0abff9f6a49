"""Extraction by rules: the names of a passage, and the relations of those that one sentence or row holds together.

Each name is tied to the one before it by the words between (GraphRAG's cheap index relates names in the same way). The
sentence is kept as the statement; what says more is left to a model, and so are claims.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from prompts.extracted import ALIAS_PREDICATE, EntityFound, Extracted, RelationFound
from prompts.text.amounts import MONTHS
from prompts.text.evidence import cells_of
from prompts.text.names import NameSpan, kind_of_words, name_spans
from prompts.text.names_zh import is_generic, kind_of, name_spans_zh
from prompts.text.regex import regex
from prompts.text.relevance import PRONOUN
from prompts.text.segment import units
from prompts.text.tokens import usually_lower
from prompts.text.words import (
    CJK,
    LEADING,
    STOPWORDS,
    TRAILING,
    WORD,
    is_han,
    words_in,
)

# --- relations of names in a sentence --------------------------------------------------------------------------------

TOGETHER, TOGETHER_ZH = "named with", "同见"
_LEFT_OUT = regex(
    r"\([^()]*\)|\[[^\]]{0,300}\]|（[^（）]*）|\b(?:was|were|is|are|has|have|had|been|be|also|the|a|an|its|his|her|their|later|"
    r"then|who|which|that|and|or|but)\b|['’]s\b|[的了于是由在]|以及|并且|而且|其中|通过|"
    rf"\b(?:in\s+)?(?:\d[\d.,/–-]*(?:th|st|nd|rd)?|{'|'.join(MONTHS)})\b",
    re.I,
)
_WORD = regex(rf"[^\W\d_{CJK}]+(?:['’-][^\W\d_{CJK}]+)*|[{CJK}]+")
_PREPOSITIONS = words_in("english", "prepositions")
_ZH_LISTING = frozenset("和 与 及 或 等 跟 同 我们".split())
_ZH_CLAUSE = regex(rf"[{CJK}*][，,；。]")
_MOST_WORDS, _MOST_HAN = 8, 12
_CELL_WORD = regex(rf"{LEADING}[^\W_]+(?:[-'’.&][^\W_]+)*(?:{TRAILING}|\.)?|&")
_HAN_NAME = regex(rf"[{CJK}·]{{2,14}}$")
_LINKING = frozenset("of the de la du del von van der den and for & y".split())
_LONGEST = 80  # characters of a cell


def statements(text: str, start: int, end: int, names: Sequence[NameSpan], topic: str) -> Iterator[RelationFound]:
    """The relations of the names in the sentence `text[start:end]`; where it opens with a pronoun, of the topic too.

    In a list ("designed A, B and C") the words before it hold for all.
    """
    pronoun = PRONOUN.match(text, start, names[0].start if names else start)
    previous, position = (topic, pronoun.end()) if topic and pronoun else ("", start)
    source = predicate = ""
    for name in names:
        if name.start < position:
            continue
        words = _predicate(text[position : name.start])
        if predicate and words in _PREPOSITIONS:  # "founded in Velin by Ada Korb": by her was founded, not Velin
            predicate = " ".join([*(word for word in predicate.split() if word not in _PREPOSITIONS), words])
        elif words or not predicate:
            source, predicate = previous, words
        if source and source != name.text:
            yield _stated(source, predicate or _together(name), name.text, text[start:end])
        previous, position = name.text, name.end


def of_row(text: str, start: int, end: int, names: Sequence[NameSpan]) -> Iterator[RelationFound]:
    """The relations of the name in the first cell of the row `text[start:end]` with the other ones, by their labels."""
    if not names or "|" in text[start : names[0].start].strip("| "):
        return
    for before, name in pairwise(names):
        label = _predicate(text[before.end : name.start].rpartition("|")[2].partition(":")[0])
        if name.text != names[0].text:
            yield _stated(names[0].text, label or _together(name), name.text, text[start:end])


def named_cells(text: str, start: int, end: int) -> Iterator[NameSpan]:
    """The names that fill whole cells of the row `text[start:end]`, if its cells have labels."""
    at = start
    for _, cell in cells_of(text[start:end]):
        at = text.index(cell, at)
        if kind := _kind_of_cell(cell):
            yield NameSpan(cell, at, at + len(cell), kind)
        at += len(cell)


def _kind_of_cell(text: str) -> str:
    """The kind of a cell that is a name, or nothing."""
    if _HAN_NAME.match(text):
        return "" if is_generic(text) else kind_of(text)
    words = _CELL_WORD.findall(text)
    if not 0 < len(words) <= _MOST_WORDS or len(text) > _LONGEST or re.search("[!?;:]", text):
        return ""
    if not all(word in _LINKING or not word[0].islower() for word in words):
        return ""
    if not text.lstrip(".")[:1].isupper():
        return ""
    if len(words) == 1 and (words[0].lower() in STOPWORDS or usually_lower(words[0]) or len(words[0]) < 2):
        return ""
    return kind_of_words([word.lower().rstrip(".") for word in words]) or "thing"


def _together(name: NameSpan) -> str:
    return TOGETHER_ZH if re.search(f"[{CJK}]", name.text) else TOGETHER


def _stated(source: str, predicate: str, target: str, sentence: str) -> RelationFound:
    """A relation with the sentence that says so as its description."""
    return RelationFound(source=source, target=target, predicate=predicate, description=_one_line(sentence))


def _predicate(between: str) -> str:
    """The connecting words without articles, auxiliaries, dates and brackets: "was later designed by the" → "designed
    by"; empty where there are none, or a Chinese clause lies between."""
    words = _WORD.findall(_LEFT_OUT.sub(" ", between).lower())
    if any("\u4e00" <= word[0] <= "\u9fff" for word in words):
        text = "".join(words)
        return text if len(text) <= _MOST_HAN and text not in _ZH_LISTING and not _ZH_CLAUSE.search(between) else ""
    return " ".join(words if len(words) <= _MOST_WORDS else [*words[:4], "…", *words[-3:]])


# --- passages --------------------------------------------------------------------------------------------------------


def topic_of(title: str) -> str:
    """The thing that a title names: the title without a bracketed qualifier kept apart from its name."""
    return " ".join(title.split())[:100]


def extract_offline(title: str, passage: str) -> Extracted:
    """Names and relations of a passage; a sentence that opens with a pronoun is about the title's thing.

    Claims are left to a model."""
    pieces = [unit for unit in units(passage) if unit.kind != "code"]
    cells = [cell for piece in pieces if piece.kind == "row" for cell in named_cells(passage, piece.start, piece.end)]
    others = names_in(passage, [(piece.start, piece.end) for piece in pieces], title)
    free = [name for name in others if all(name.end <= cell.start or cell.end <= name.start for cell in cells)]
    names = sorted([*cells, *free], key=lambda name: name.start)
    topic = _topic_name(title, names)
    relations: list[RelationFound] = []
    described: dict[str, str] = {}
    following = 0
    for piece in pieces:
        start, end, first = piece.start, piece.end, following
        while following < len(names) and names[following].start < end:
            following += 1
        inside = names[first:following]
        for name in inside:
            described.setdefault(name.text, _one_line(passage[start:end]))
        row = piece.kind == "row"
        relations += of_row(passage, start, end, inside) if row else statements(passage, start, end, inside, topic)
    kinds: dict[str, str] = {}
    for span in names:
        if kinds.get(span.text, "thing") == "thing":
            kinds[span.text] = span.kind
    entities = [EntityFound(name=name, kind=kind, description=described.get(name, "")) for name, kind in kinds.items()]
    by_triple: dict[tuple[str, str, str], RelationFound] = {}
    for relation in relations:  # each once, quoted by the first sentence that makes it
        by_triple.setdefault((relation.source, relation.target, relation.predicate), relation)
    for owner, alias, words in stated_aliases(passage, names, topic):
        by_triple[owner, alias, ALIAS_PREDICATE] = _stated(owner, ALIAS_PREDICATE, alias, words)
    return Extracted(entities=entities, relations=list(by_triple.values()))


def names_in(passage: str, spans: list[tuple[int, int]], title: str = "") -> list[NameSpan]:
    """Names by the passage's script, in order; words of `title` are known to be written with a capital on purpose."""
    return name_spans_zh(passage) if is_han(passage) else name_spans(passage, spans, title)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _topic_name(title: str, names: list[NameSpan]) -> str:
    """The title, in the form in which the passage names it where it does."""
    topic = topic_of(title)
    bare = topic.partition(" (")[0].casefold()
    return next((name.text for name in names if name.text.casefold() == bare), topic)


# --- names that mean the same ----------------------------------------------------------------------------------------

_STATED = regex(
    r"^\s*+[,(（]?\s*+(?:also|better|otherwise|formerly|sometimes|commonly|usually|locally|previously|generally|popularly|"
    r"simply|often)?\s*+(?:known|called|abbreviated|shortened|referred to|nicknamed|styled|romanized|written|spelled)"
    r"(?:\s+(?:locally|simply|in short|to \w+|in \w+))?\s*+(?:as|to|the)?\s*+(?:the\s+)?[\"“‘'*_]*$",
    re.I,
)
_BRACKET = regex(
    r"^\s*+[,(（]\s*+(?:or|aka|a\.k\.a\.|alias|née|born|short:?|abbr\.|in short|hereafter|the)?\s*+[\"“‘'*_]*$", re.I
)
_ALSO = regex(r"\b(?:it|he|she|they) (?:is|was|are|were) also (?:known|called)", re.I)
_ZH_STATED = regex(
    r"^[\s，,（(]*(?:又称|简称|又名|也叫|亦称|原名|别名|全称|即|俗称|英文名为?|英文名?[:：]?)[\s“”\"「《]*$"
)


def _abbreviates(short: str, name: str) -> bool:
    """Whether `short` is made of the initials of the words of `name` ("OBC", "Orla Bridge Company")."""
    letters = [c for c in short if c.isalnum()]
    if len(letters) < 2 or not all(c.isupper() or c.isdigit() for c in letters):
        return False
    firsts = [word[0] for word in re.findall(r"[^\W_]+", name)]
    return letters in ([letter.upper() for letter in firsts], [letter for letter in firsts if letter.isupper()])


def stated_aliases(text: str, names: list[NameSpan], topic: str) -> Iterator[tuple[str, str, str]]:
    """(name, alias, the words that say so) of neighbouring names; `topic` stands in for a pronoun as subject."""
    for first, second in pairwise(names):
        gap = text[first.end : second.start]
        if len(gap) > 40 or "\n\n" in gap or first.text == second.text:
            continue
        same = bool(_STATED.match(gap) or _ZH_STATED.match(gap))
        if not same and _BRACKET.match(gap):
            # A short form, or a translation: "海岸水文研究所(Coastal Hydrology Institute)".
            glossed = gap.strip() in {"(", "（"} and is_han(first.text) != is_han(second.text)
            same = glossed or _abbreviates(second.text, first.text) or _abbreviates(first.text, second.text)
        if same:
            yield first.text, second.text, text[first.start : second.end]
    if topic and names and names[0].start < 60 and _ALSO.search(text[: names[0].start]):
        yield topic, names[0].text, text[: names[0].end]


# --- what a reader overlooked ----------------------------------------------------------------------------------------

# Shorter ones, headings and signatures say little; names that stand alone may be a wrong guess of the offline reader.
LEAST_WORDS, LEAST_SIGNS, LEAST_NAMES = 40, 80, 3
SHOWN = 5


def overlooked(title: str, passage: str) -> list[str]:
    """Some names of a passage that an answer without any cannot be true of; none where it may be."""
    long = len(passage) >= LEAST_SIGNS if is_han(passage) else len(WORD.findall(passage)) >= LEAST_WORDS
    if not long:
        return []
    names = [entity.name for entity in extract_offline(title, passage).entities if entity.name != topic_of(title)]
    return names[:SHOWN] if len(names) >= LEAST_NAMES else []
