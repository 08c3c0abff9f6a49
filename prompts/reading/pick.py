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

_COUNTED = frozenset(
    "people inhabitants passengers vehicles visitors employees staff vessels ships pages times days".split()
)
_WRONG_KINDS = {"person": {"place", "organisation", "method"}, "place": {"person", "work"}}
# Adjectives of places, which look like names.
_ORIGIN = re.compile(r"^\S*[a-z](?:ian|ish|ese|[cghr]an|ench|utch|wiss|reek)$")
_LOWER_NEXT = re.compile(r"[ -][a-z]")
_ASKS_ORIGIN = frozenset("nationality country language nation citizenship ethnicity".split())

Option = tuple[int, int, str]


def pick_value(ask: Ask, evidence: Evidence, cues: Collection[str], known: Iterable[Sequence[str]]) -> str:
    """The value, or an empty string. `cues` are the question's words that are no names, `known` the names it holds,
    folded."""
    cell = _cell(ask, evidence, cues)
    if cell:
        return cell
    options = _options(ask, evidence.text, known)
    if not options:
        return ""
    marks = _marks(evidence.text, set(cues)) or [0]
    return min(options, key=lambda option: (not says_its_kind(ask, option[2]), _distance(option, marks), option[0]))[2]


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
        return [(v.start, v.end, v.text) for v in values_in(text) if _fits(v, ask) and v.text not in ask.text]
    forms = {form for group in known for form in group}
    asked, wrong = fold(ask.text), _WRONG_KINDS.get(ask.expects, set())
    return [
        (name.start, name.end, name.text)
        for name in names_of(text)
        if fold(name.text) not in asked and fold_name(name.text) not in forms and name.kind not in wrong
        if ask.noun in _ASKS_ORIGIN or not _is_origin(text, name)
    ]


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
    return bool(noun) and stem(noun) in {stem(word) for word in fold(value).split()}


def _marks(text: str, cues: set[str]) -> list[int]:
    """Where the words that the question asks by stand in the text."""
    if is_han(text):
        return [text.find(cue) for cue in cues if cue in text]
    return [match.start() for match in re.finditer(r"[^\W_]+", text) if cues & set(concept_terms(match.group()))]


def _distance(option: Option, marks: Sequence[int]) -> int:
    # What follows a word of the question is more often its object than what comes before.
    return min((option[0] - mark) if option[0] >= mark else (mark - option[1]) + 6 for mark in marks)
