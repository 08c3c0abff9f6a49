"""Extraction by rules: the names of a passage, and the relations of those that one sentence holds together."""

import re
from bisect import bisect_right
from collections.abc import Iterator
from itertools import pairwise

from prompts.offline.found import ALIAS_PREDICATE, EntityFound, Extracted, RelationFound
from prompts.offline.tables import table_facts
from prompts.text.names import NameSpan, name_spans
from prompts.text.names_zh import name_spans_zh
from prompts.text.relations import Statement, statements
from prompts.text.segment import units
from prompts.text.words import WORD, is_han


def topic_of(title: str) -> str:
    """The thing that a title names: the title without a bracketed qualifier kept apart from its name."""
    return " ".join(title.split())[:100]


def extract_offline(title: str, passage: str) -> Extracted:
    """Names and relations of a passage; a sentence that opens with a pronoun is about the title's thing.

    Claims are left to a model."""
    lines = units(passage)
    cells, facts = table_facts(passage, [(unit.start, unit.end) for unit in lines if unit.kind == "row"])
    spans = [(unit.start, unit.end) for unit in lines if unit.kind != "code"]
    names = _without_overlaps(cells, names_in(passage, spans, title))
    topic = _topic_name(title, names)
    tabled = {fact.start for fact in facts}
    said = [*facts]
    described: dict[str, str] = {}
    following = 0
    for start, end in spans:
        first = following
        while following < len(names) and names[following].start < end:
            following += 1
        inside = names[first:following]
        for name in inside:
            described.setdefault(name.text, _one_line(passage[start:end]))
        if start not in tabled:
            said += statements(passage, start, end, inside, topic)
    kinds: dict[str, str] = {}
    for span in [*names, *actors(passage)]:
        if kinds.get(span.text, "thing") == "thing":
            kinds[span.text] = span.kind
    entities = [EntityFound(name=name, kind=kind, description=described.get(name, "")) for name, kind in kinds.items()]
    return Extracted(entities=entities, relations=_relations(passage, said, names, topic))


def _relations(passage: str, said: list[Statement], names: list[NameSpan], topic: str) -> list[RelationFound]:
    """Each statement once, quoted by the first sentence that makes it, and the aliases that the passage states."""
    found: dict[tuple[str, str, str], RelationFound] = {}
    for one in said:
        found.setdefault(
            (one.source, one.target, one.predicate),
            RelationFound(
                source=one.source,
                target=one.target,
                predicate=one.predicate,
                description=_one_line(passage[one.start : one.end]),
            ),
        )
    for name, alias, words in stated_aliases(passage, names, topic):
        found[name, alias, ALIAS_PREDICATE] = RelationFound(
            source=name, target=alias, predicate=ALIAS_PREDICATE, description=_one_line(words)
        )
    return list(found.values())


def names_in(passage: str, spans: list[tuple[int, int]], title: str = "") -> list[NameSpan]:
    """Names by the passage's script, in order; words of `title` are known to be written with a capital on purpose."""
    return name_spans_zh(passage) if is_han(passage) else name_spans(passage, spans, title)


def _without_overlaps(first: list[NameSpan], others: list[NameSpan]) -> list[NameSpan]:
    """Both lists in order; where two overlap, that of the first list stays."""
    if not first:
        return others
    starts = [span.start for span in first]
    kept = list(first)
    for span in others:
        place = bisect_right(starts, span.start)
        before_free = place == 0 or first[place - 1].end <= span.start
        if before_free and (place == len(first) or first[place].start >= span.end):
            kept.append(span)
    return sorted(kept, key=lambda span: span.start)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _topic_name(title: str, names: list[NameSpan]) -> str:
    """The title, in the form in which the passage names it where it does."""
    topic = topic_of(title)
    bare = topic.partition(" (")[0].casefold()
    return next((name.text for name in names if name.text.casefold() == bare), topic)


# --- names that mean the same ----------------------------------------------------------------------------------------

_STATED = re.compile(
    r"^\s*[,(（]?\s*(?:also|better|otherwise|formerly|sometimes|commonly|usually|locally|previously|generally|popularly|"
    r"simply|often)?\s*(?:known|called|abbreviated|shortened|referred to|nicknamed|styled|romanized|written|spelled)"
    r"(?:\s+(?:locally|simply|in short|to \w+|in \w+))?\s*(?:as|to|the)?\s*(?:the\s+)?[\"“‘'*_]*$",
    re.I,
)
_SHORT = re.compile(
    r"^\s*[,(（]\s*(?:or|aka|a\.k\.a\.|alias|née|born|short:?|abbr\.|in short|hereafter|the)?\s*[\"“‘'*_]*$", re.I
)
_ZH_STATED = re.compile(
    r"^[\s，,（(]*(?:又称|简称|又名|也叫|亦称|原名|别名|全称|即|俗称|英文名为?|英文名?[:：]?)[\s“”\"「《]*$"
)
_GLOSS = re.compile(r"^\s*[(（]\s*$")


def _abbreviates(short: str, name: str) -> bool:
    """Whether `short` is made of the initials of the words of `name` ("OBC", "Orla Bridge Company")."""
    letters = [c for c in short if c.isalnum()]
    if len(letters) < 2 or not all(c.isupper() or c.isdigit() for c in letters):
        return False
    every = [word[0].upper() for word in re.findall(r"[^\W_]+", name)]
    capitals = [word[0] for word in re.findall(r"[^\W_]+", name) if word[0].isupper()]
    return letters in (every, capitals)


def stated_aliases(text: str, names: list[NameSpan], topic: str) -> Iterator[tuple[str, str, str]]:
    """(name, alias, the words that say so) of neighbouring names; `topic` stands in for a pronoun as subject."""
    for first, second in pairwise(names):
        gap = text[first.end : second.start]
        if len(gap) > 40 or "\n\n" in gap or first.text == second.text:
            continue
        bracketed = _GLOSS.match(gap) is not None and text[second.end : second.end + 3].lstrip()[:1] in (
            ")",
            "）",
            ",",
            "，",
        )
        same = (
            _STATED.match(gap) is not None
            or _ZH_STATED.match(gap) is not None
            or (_SHORT.match(gap) is not None and _abbreviates(second.text, first.text))
            or (bracketed and (_abbreviates(first.text, second.text) or _is_gloss(first.text, second.text)))
        )
        if same:
            yield first.text, second.text, text[first.start : second.end]
    if topic and names:
        opening = text[: names[0].start]
        if len(opening) < 60 and re.search(
            r"\b(?:it|he|she|they) (?:is|was|are|were) also (?:known|called)", opening, re.I
        ):
            yield topic, names[0].text, text[: names[0].end]


def _is_gloss(first: str, second: str) -> bool:
    """One side Chinese, the other not: a translation in brackets."""
    return is_han(first) != is_han(second)


# --- people and places of a story ------------------------------------------------------------------------------------

_KINDRED = (
    "nephew|niece|wife|husband|son|daughter|father|mother|brother|sister|uncle|aunt|widow|cousin|grandfather|grandmother|"
    "family|partner|master|mistress|child|children|guests"
)
_PEOPLE = (
    "clerk|boy|girl|girls|boys|servant|stranger|gentleman|gentlemen|lady|ladies|woman|man|"
    "singer|soldier|sailor|captain|doctor|priest|teacher|schoolmaster|porter|guest|visitor|neighbour|neighbor|"
    "merchant|beggar|butler|cook|landlord|officer|policeman|lamplighter|charwoman|undertaker|spirit|ghost|phantom|"
    "king|queen|prince|princess|witch|giant|crowd"
)
_PLACES = (
    "office|house|counting-house|room|chamber|warehouse|church|school|schoolroom|shop|inn|tavern|city|town|village|street|"
    "streets|garden|kitchen|tower|castle|palace|forest|mine|ship|harbour|island|prison|hospital|market|bed|bell|clock"
)
_ADJECTIVES = "old|young|little|plump|poor|former|elder|eldest|younger|youngest"
_SPOKEN = re.compile(r"\b(?:said|says|cried|asked|replied|answered|exclaimed|whispered|returned)\b")
_KIN = re.compile(
    r"\b(?!(?:There|Here|It|That|This|What|Who|Where|He|She|Let)\b)[A-Z][a-z]+(?:['’]s) "
    rf"(?:(?:{_ADJECTIVES}) )?(?:{_PEOPLE}|{_KINDRED}|self|office|house|counting-house)\b"
)
# "The uncle" is somebody; "his uncle" is another one in every house.
_DEFINITE = re.compile(
    rf"\b(?:the (?:very )?((?:(?:{_ADJECTIVES}) )?(?:{_PEOPLE}|{_KINDRED}|{_PLACES}))|"
    rf"(?:his|her|their|my|our) ((?:(?:{_ADJECTIVES}) )?(?:{_PEOPLE}|{_PLACES})))\b",
    re.I,
)
_PLACE_HEAD = re.compile(rf"(?:{_PLACES})$")
_OPENING_QUOTE = re.compile(r"(?<!\w)[\"“'‘](?=\w)")
_QUOTES = 2  # openings of speech that make a story


def actors(text: str) -> list[NameSpan]:
    """The first place of each nameless person and place in a story, in order."""
    if len(_OPENING_QUOTE.findall(text)) < _QUOTES or not _SPOKEN.search(text):
        return []
    found = [(match.group(), match.start()) for match in _KIN.finditer(text)]
    for match in _DEFINITE.finditer(text):
        group = match.lastindex or 0
        found.append((match.group(group), match.start(group)))
    first: dict[str, NameSpan] = {}
    for name, at in sorted(found, key=lambda item: item[1]):
        kind = "place" if _PLACE_HEAD.search(name) else "person"
        first.setdefault(name.lower(), NameSpan(name, at, at + len(name), kind))
    return list(first.values())


# --- what a reader overlooked ----------------------------------------------------------------------------------------

# Shorter ones, headings and signatures say little; names that stand alone may be a wrong guess of the offline reader.
LEAST_WORDS, LEAST_SIGNS, LEAST_NAMES = 40, 80, 3
SHOWN = 5


def overlooked(title: str, passage: str) -> list[str]:
    """Some names of a passage that an answer without any cannot be true of; none where it may be."""
    long = len(passage) >= LEAST_SIGNS if is_han(passage) else len(WORD.findall(passage)) >= LEAST_WORDS
    if not long:
        return []
    names = [one.name for one in extract_offline(title, passage).entities if one.name != topic_of(title)]
    return names[:SHOWN] if len(names) >= LEAST_NAMES else []
