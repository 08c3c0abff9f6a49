"""Which string in a piece of evidence is what the question asks for? The right kind, nearest to the words they
share."""

import re
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache

from prompts.language.asked import Ask, singular
from prompts.language.concepts import concept_terms
from prompts.language.names import NameSpan, name_spans
from prompts.language.names_zh import name_spans_zh
from prompts.language.values import Value, values_in
from prompts.language.words import fold, fold_name, is_han, stem
from prompts.reading.evidence import Evidence
from prompts.reading.pick_zh import pick_zh

_COUNTED = frozenset(
    "people inhabitants passengers vehicles visitors employees staff vessels ships pages times days".split()
)
_WRONG_KINDS = {"person": {"place", "organisation", "method", "work", "event"}, "place": {"person", "work"}}
# Adjectives of places, which look like names.
_ORIGIN = re.compile(r"^\S*[a-z](?:ian|ish|ese|[cghr]an|ench|utch|wiss|reek)$")
_LOWER_NEXT = re.compile(r"[ -][a-z]")
_ASKS_ORIGIN = frozenset("nationality country language nation citizenship ethnicity".split())

Option = tuple[int, int, str]
Mark = tuple[int, int]
_WORD = re.compile(r"[^\W_]+")
_LIFE = re.compile(r"\((?P<born>[^()]*?\d{3,4}[^()]*?)\s*[–—-]\s*(?P<died>[^()]*?\d{3,4}[^()]*)\)")
_DEMONYM = re.compile(
    r"\b(?:[A-Z][a-z]+-)?(?:[A-Z][a-z]+(?:ian|ish|ese|[cghr]an|can|ean|ench|utch|wiss|reek|aqi|eli|ani)|German|Thai|Welsh|"
    r"Scots?|Czech|Turk)\b"
)
_BY = re.compile(r"\b(?:by|with|to|of|named|called|was|is)\s+(?:\w+ing )?(?:the )?(?:[a-z]+(?:-[a-z]+)? ){0,2}$")
_IN = re.compile(r"\b(?:in|at|near|from|to|of|attended|,)\s+(?:the )?(?:[a-z]+ ){0,2}$")
_HOW_MANY = re.compile(r"how many\b", re.I)
_COUNTS = re.compile(r" ([a-z]{3,}s)\b")
_STANDS = re.compile(r"\b(?:in|at|near|on|from)\s+(?:the )?$")
_ACTIVE = re.compile(r"^who\s+(?!is\b|was\b|were\b|are\b|did\b|does\b)\w+", re.I)
_ROLE_NEXT = re.compile(r" (?:and|is|was|has|had|who|in|of|at|on|for|from|as|with|to|by|or|[a-z]+(?:ed|s))\b")
_ALIAS = re.compile(r"\b(?:as|née|né|titled|entitled|known as|called)\s+\S*$")
_ACTED = re.compile(r"\s*(?:\([^)]*\)\s*)?,?\s*(?:(?:has|had|have|is|was|who)\s+)?(?:\w+ly\s+)?[a-z]+(?:ed|s|t|n|w)?\b")
# Of "Kirkwood, Missouri, United States" a city is asked for first, a country last.
_WIDE = frozenset("country nation continent".split())
_MIDDLE = frozenset("state province county region district".split())
_WITHIN = re.compile(r",? (?:the )?|(?:[ ,-]+[a-z]+){0,3}[ ,]+(?:of|in) (?:the )?(?:[a-z-]+ )?")
_NATIONS = frozenset("united states|u.s|us|usa|canada|australia|india|england|united kingdom".split("|"))


def pick_value(ask: Ask, evidence: Evidence, cues: Collection[str], known: Iterable[Sequence[str]]) -> str:
    """The value, or an empty string. `cues` are the question's words that are no names, `known` the names it holds,
    folded."""
    cell = _cell(ask, evidence, cues)
    if cell:
        return cell
    if ask.chinese and is_han(evidence.text):
        return pick_zh(ask, evidence.text) or _nearest(ask, evidence.text, cues, known)
    return _nearest(ask, evidence.text, cues, known)


def options_in(
    ask: Ask, evidence: Evidence, cues: Collection[str], known: Iterable[Sequence[str]]
) -> list[tuple[int, str]]:
    """(distance from the question's words, value) of each string of the kind asked for that tells something, the
    nearest first; a bare small figure tells nothing, since every text has some."""
    marks = _marks(evidence.text, set(cues)) or [(0, 0)]
    found = [(_distance(option, marks), option[2]) for option in _options(ask, evidence.text, known)]
    return sorted(option for option in found if not (option[1].isdigit() and len(option[1]) < 3))


def _nearest(ask: Ask, text: str, cues: Collection[str], known: Iterable[Sequence[str]]) -> str:
    """Of the strings of the right kind the one that stands where such a value stands, nearest to the cues."""
    told = life_date(ask, text) or _nation(ask, text)
    if told:
        return told
    known = list(known)
    options = _options(ask, text, known)
    if not options:
        return ""
    marks = _marks(text, set(cues)) or [(0, 0)]
    if ask.expects in {"number", "money"}:  # "Georgia (186), North Carolina (35)": a figure belongs to its name
        marks = [*_places_of(text, known), *marks]
    best = min(
        options,
        key=lambda option: (not says_its_kind(ask, option[2]), _distance(option, marks) - _fit(ask, text, option),
                            option[0]),
    )  # fmt: skip
    return _level(ask, text, best, options)


def _fit(ask: Ask, text: str, option: Option) -> int:
    """How much nearer, in characters, a string counts by the words around it."""
    start, end, name = option
    before = text[max(0, start - 40) : start]
    if ask.expects == "person":
        fit = 60 * (_BY.search(before) is not None) + 20 * (1 < len(name.split()) < 5)
        fit -= 90 * (_STANDS.search(before) is not None)  # "was founded in Saltmere": nobody is in
        fit -= 60 * (_LOWER_NEXT.match(text, end) is not None and _ROLE_NEXT.match(text, end) is None)
        if _ACTIVE.match(ask.text) and start < 3 and _ACTED.match(text, end):
            fit += 90
        return fit
    if ask.expects == "place":
        return 50 * (_IN.search(before) is not None) - 40 * (start < 3) - 60 * (_ALIAS.search(before) is not None)
    return 0


def _level(ask: Ask, text: str, best: Option, options: Sequence[Option]) -> str:
    """Of a chain of places ("Kirkwood, Missouri, United States") the one of the level that is asked for."""
    if ask.expects != "place" or ask.noun not in _WIDE | _MIDDLE:
        return best[2]
    chained = [best]
    for option in sorted(options):
        if option[0] > best[0] and _WITHIN.fullmatch(text, chained[-1][1], option[0]):
            chained.append(option)
    if ask.noun in _MIDDLE and len(chained) > 1 and fold(chained[-1][2]).strip(".") in _NATIONS:
        chained.pop()
    return chained[-1][2] if len(chained) > 1 and ask.noun in _WIDE else chained[min(1, len(chained) - 1)][2]


def _places_of(text: str, known: Iterable[Sequence[str]]) -> list[Mark]:
    """Where the names that the question holds stand in a text, each by its last place."""
    low = fold(text)
    ends = [low.rfind(form) + len(form) for forms in known for form in forms if form in low]
    return [(end, end) for end in ends] if len(low) == len(text) else []


def life_date(ask: Ask, text: str) -> str:
    """Of "(1 May 1890 – 7 June 1961)" the part that a question about birth or death asks for."""
    life = _LIFE.search(text)
    terms = set(concept_terms(ask.text))
    side = "died" if "~die" in terms else "born" if "~born" in terms else ""
    if life is None or not side or ask.expects != "date":
        return ""
    dates = [value.text for value in values_in(life[side]) if value.kind == "date"]
    return dates[0] if dates else ""


def _nation(ask: Ask, text: str) -> str:
    """The adjective of a nation that tells a nationality."""
    found = _DEMONYM.search(text) if ask.noun == "nationality" else None
    return found.group() if found else ""


def _cell(ask: Ask, evidence: Evidence, cues: Collection[str]) -> str:
    """In a table row: the cell of the column that shares most words with the question, or the row's name."""
    if not evidence.cells:
        return ""
    asked = fold(ask.text)
    shares = []
    for place, (column, value) in enumerate(evidence.cells):
        terms = set(concept_terms(column.replace("_", " ")))
        shares.append((len(terms & set(cues)) / max(len(terms), 1), -place, value))
    share, _, value = max(shares)
    if share > 0 and fold(value) not in asked:
        return value
    first = evidence.cells[0][1]
    return first if ask.expects == "name" and fold(first) not in asked else ""


def _options(ask: Ask, text: str, known: Iterable[Sequence[str]]) -> list[Option]:
    if ask.expects in {"date", "money", "number"}:
        values = [v for v in values_in(text) if _fits(v, ask) and v.text not in ask.text]
        return [(v.start, v.end, v.text) for v in values if not _counts_others(ask, text, v)]
    forms = {form for group in known for form in group}
    asked, wrong = fold(ask.text), _WRONG_KINDS.get(ask.expects, set())
    words = set(concept_terms(ask.text))
    return [
        (name.start, name.end, name.text)
        for name in names_of(text)
        if fold(name.text) not in asked and fold_name(name.text) not in forms and name.kind not in wrong
        if ask.chinese or not set(concept_terms(name.text)) <= words
        if ask.noun in _ASKS_ORIGIN or not _is_origin(text, name)
        if ask.expects != "place" or ask.chinese or _may_be_place(text, name)
    ]


def _counts_others(ask: Ask, text: str, value: Value) -> bool:
    """Whether a figure counts something else than "how many …" asks for ("2,300 drawings" are no bridges)."""
    counted = _COUNTS.match(text, value.end)
    if ask.expects != "number" or not _HOW_MANY.match(ask.text) or not ask.noun or value.unit or counted is None:
        return False
    return not set(concept_terms(counted[1])) & set(concept_terms(ask.noun))


def _may_be_place(text: str, name: NameSpan) -> bool:
    """Whether a name stands where places stand, or is called one."""
    before = text[max(0, name.start - 40) : name.start]
    return name.kind == "place" or before.endswith(", ") or _IN.search(before) is not None


def _is_origin(text: str, name: NameSpan) -> bool:
    """Whether a name only tells where something is from, as an adjective before its noun ("an Australian team")."""
    return _ORIGIN.search(name.text) is not None and _LOWER_NEXT.match(text, name.end) is not None


@lru_cache(maxsize=20_000)
def names_of(text: str) -> tuple[NameSpan, ...]:
    """The names in a text by their looks; kept, since telling Chinese words apart takes milliseconds."""
    return tuple(name_spans_zh(text) if is_han(text) else name_spans(text, [(0, len(text))]))


def _fits(value: Value, ask: Ask) -> bool:
    if ask.expects == "date":
        return value.kind == "date"
    if ask.expects == "money":
        return value.kind == "money" or (value.kind == "number" and value.number is not None and value.number >= 1000)
    if value.kind == "date" or value.number is None:
        return False
    unit, noun = value.unit.lower(), ask.noun.rstrip("s")
    if not noun or unit not in _COUNTED:
        return True
    return stem(noun) == stem(unit.rstrip("s")) or set(concept_terms(noun)) == set(concept_terms(unit))


def says_its_kind(ask: Ask, value: str) -> bool:
    """Whether a name says itself that it is what is asked for ("which bridge": "Sluice Lane Bridge")."""
    if ask.chinese:
        return bool(ask.noun) and ask.noun in value and ask.noun != value
    noun = singular(ask.noun) if ask.plural else ask.noun
    if noun in _WIDE | _MIDDLE and noun != "county" and fold(value).strip(".") in _NATIONS:
        return False  # "United States" is no state
    return bool(noun) and stem(noun) in {stem(word) for word in fold(value).split()}


def _marks(text: str, cues: set[str]) -> list[Mark]:
    """Where the words that the question asks by stand in the text."""
    if is_han(text):
        return [(text.find(cue), text.find(cue) + len(cue)) for cue in cues if cue in text]
    return [match.span() for match in _WORD.finditer(text) if cues & set(concept_terms(match.group()))]


def _distance(option: Option, marks: Sequence[Mark]) -> int:
    # What follows a word of the question is more often its object than what comes before.
    return min(option[0] - end if option[0] >= end else abs(start - option[1]) + 10 for start, end in marks)
