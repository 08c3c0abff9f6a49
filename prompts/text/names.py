"""Names in English text: where they stand, and of what kind."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from prompts.text.amounts import MONTH_OF, WEEKDAYS
from prompts.text.regex import regex
from prompts.text.tokens import usually_lower
from prompts.text.words import LEADING, STOPWORDS, TRAILING, group_of, is_signed, words_in

__all__ = ["TITLES", "NameSpan", "name_spans"]

# "A-" is a grade; a hyphen before "and" leaves a word out.
_GRADE = r"(?<=\b[A-Z])[-–](?=[\s.,;:!?)]|$)(?! (?:and|or|und|oder|et|ou|y|e|o)\b)"
_WORD = r"[^\W_]+(?:(?:\.[-‐]|['’.\-‐])[^\W_]+)*"
_TOKEN = regex(rf"{LEADING}{_WORD}(?:{TRAILING}|{_GRADE}|\.)?|&")
_CONNECTORS = words_in("english", "connectors")
# A run may cross these only when the joined name is well known as one; alone they separate two names.
_WEAK = frozenset("and for on in to e y".split())
_DATES = MONTH_OF.keys() | {*WEEKDAYS, "bc", "bce"}
_REFERENCE = regex(r"(?:section|chapter|figure|fig|table|appendix|page|footnote|equation)s?\.? \d+$", re.I)
_INDEFINITE = frozenset("a an another each every any some".split())
_OPENING_QUOTES = "“‘\"'"
_TURKIC, _ENDING = regex("[ığ]"), regex(r"(?<=\w\w)['’][a-zçğıöşü]{1,5}$")
_SHOUTED = 3  # a sentence of at least so many words in capitals is a heading or a cry: its capitals name nothing


@dataclass(frozen=True, slots=True)
class NameSpan:
    """A name as written at `start`..`end` of the text it was found in."""

    text: str
    start: int
    end: int
    kind: str


class _Token(NamedTuple):
    text: str
    lower: str
    start: int
    end: int
    upper: bool
    opens: bool


@dataclass(frozen=True, slots=True)
class _Usage:
    """How the text writes its words: those seen small, those seen with a capital inside a sentence,
    and whether names have endings behind an apostrophe, as in Turkish ("Kestel'de")."""

    small: frozenset[str]
    capital: frozenset[str]
    endings: bool = False

    def ending(self, word: str) -> int:
        """How many signs of a word are no part of its name: its apostrophe and what follows."""
        if word.endswith(("'s", "’s")):
            return 2
        match = _ENDING.search(word) if self.endings else None
        return len(match.group()) if match else 0


def name_spans(text: str, sentences: Sequence[tuple[int, int]], title: str = "") -> list[NameSpan]:
    """The names in a text, in order, without overlaps; `sentences` are the spans to look in.

    Words of `title` count as written with a capital on purpose.
    """
    token_lists = [tokens for start, end in sentences if not _shouted(tokens := _tokens(text, start, end))]
    usage = _Usage(
        frozenset(token.lower for tokens in token_lists for token in tokens if not token.upper),
        frozenset(_base(token.lower) for tokens in token_lists for token in tokens if token.upper and not token.opens)
        | frozenset(match.group().lower() for match in _TOKEN.finditer(title)),
        _TURKIC.search(text) is not None,
    )
    titles = []
    for start, end in _title_spans(text, title):
        kind = kind_of_words(text[start:end].lower().split()) or (
            "person" if PERSON_AFTER.match(text, end) else "thing"
        )
        titles.append(NameSpan(" ".join(text[start:end].split()), start, end, kind))
    spans: list[NameSpan] = list(titles)
    for tokens in token_lists:
        for first, last in _runs(text, tokens, usage):
            span = _clean(text, tokens, first, last, usage)
            if span is not None and not any(other.start < span.end and span.start < other.end for other in titles):
                spans.append(span)
    return sorted(spans, key=lambda span: span.start) if titles else spans


def _tokens(text: str, start: int, end: int) -> list[_Token]:
    tokens: list[_Token] = []
    for match in _TOKEN.finditer(text, start, end):
        word, at = match.group(), match.start()
        lower = word.lower().rstrip(".")
        initial = len(word) == 2 and word[0].isupper()
        if word.endswith(".") and not (lower in TITLES or initial or word.count(".", 1) > 1):
            word = word[:-1]
        upper = word.lstrip(".")[:1].isupper()
        opens = upper and (not tokens or _opens(text, max(start, at - 4), at, tokens[-1]))
        tokens.append(_Token(word, lower, at, at + len(word), upper, opens))
    return tokens


def _opens(text: str, start: int, at: int, previous: _Token) -> bool:
    """Whether a word at `at` begins a sentence, a clause or a speech, where a capital is owed to the place."""
    before = text[start:at]
    quoted = before[-1:] in _OPENING_QUOTES and before[-1:] != ""
    before = before.rstrip(" ([*_" + _OPENING_QUOTES)
    if before.endswith((":", ";", "!", "?", ".", "\n\n", "|", "--", "—", "·", "•")):
        return not previous.text.endswith(".")
    return quoted


def _shouted(tokens: Sequence[_Token]) -> bool:
    return len(tokens) >= _SHOUTED and all(token.text.upper() == token.text for token in tokens)


def _base(lower: str) -> str:
    return lower.partition("'")[0].partition("’")[0]


def _is_name_token(token: _Token, usage: _Usage) -> bool:
    if not token.upper or token.lower in _DATES:
        return False
    if len(token.text) > 1 and token.text.isupper():
        return True
    base = _base(token.lower)
    if base in STOPWORDS:
        return False
    return not token.opens or _names_at_start(base, token, usage)


def _names_at_start(base: str, token: _Token, usage: _Usage) -> bool:
    """Whether a word that opens a sentence is a name for all that the text shows."""
    if base in OPENERS or base in usage.small or base.endswith("ly"):
        return False
    if base in usage.capital:
        return True
    first = _first_part(base, token.text)
    return first not in OPENERS and not usually_lower(first)


def _first_part(base: str, written: str) -> str:
    """What a word is judged by: "To-night" and "Half-a-dozen" by their first parts, "Anglo-Saxon" as a whole."""
    first, hyphen, _ = base.partition("-")
    return first if hyphen and written[len(first) + 1 :].islower() else base


def _opens_run(text: str, tokens: Sequence[_Token], index: int, usage: _Usage) -> bool:
    """A sentence opener may begin a name when another name word follows at once ("Good Hope Bridge is …")."""
    token = tokens[index]
    if not token.upper or token.lower in _DATES or index + 1 >= len(tokens):
        return False
    if _first_part(token.lower, token.text) in OPENERS:
        return False
    following = tokens[index + 1]
    if token.lower.endswith("ly") or following.opens or text[token.end : following.start] != " ":
        return False
    return _is_name_token(following, usage)


def _runs(text: str, tokens: Sequence[_Token], usage: _Usage) -> list[tuple[int, int]]:
    """Maximal runs of name tokens as index pairs [first, last], connectors only inside."""
    runs: list[tuple[int, int]] = []
    index = 0
    while index < len(tokens):
        token = tokens[index]
        if not token.upper or not (_is_name_token(token, usage) or _opens_run(text, tokens, index, usage)):
            index += 1
            continue
        last = index
        while (following := _extend(text, tokens, last, usage)) is not None:
            last = following
        runs.append((index, last))
        index = last + 1
    return runs


def _extend(text: str, tokens: Sequence[_Token], last: int, usage: _Usage) -> int | None:
    """The index of the next token that belongs to the run ending at `last`, over connectors, or None."""
    if usage.ending(tokens[last].text):
        return None
    step = last + 1
    weak = meant = False
    while step < len(tokens) and step - last <= 3:
        token = tokens[step]
        gap = text[tokens[step - 1].end : token.start]
        if gap.strip() not in ("", ".", "™", "®") or "\n\n" in gap or len(gap) > 2:
            return None
        if token.text.isdigit() and step == last + 1 and len(token.text) <= 3 and gap == " ":
            return None if tokens[last].text.isdigit() or tokens[last].text.endswith(".") else step
        if (token.upper and not token.opens and _is_name_token(token, usage)) or (
            token.upper and token.lower in TITLES
        ):
            return None if weak and not (meant or _joins(tokens, last)) else step
        if _capital_on_purpose(token):
            meant = True
        elif token.text not in _CONNECTORS:
            return None
        weak = weak or token.text in _WEAK
        step += 1
    return None


def _joins(tokens: Sequence[_Token], last: int) -> bool:
    """Whether "for" holds one name together: in names of organisations ("Institute for Tidal Studies")."""
    before = tokens[max(0, last - 3) : last + 1]
    return tokens[last + 1].text == "for" and any(KIND_OF.get(token.lower) == "organisation" for token in before)


def _capital_on_purpose(token: _Token) -> bool:
    """A function word with a capital inside a sentence is part of a name: "Ghost of Christmas Yet To Come"."""
    return token.upper and not token.opens and token.lower in STOPWORDS and len(token.text) > 1


def _kind(text: str, tokens: Sequence[_Token], first: int, last: int) -> str:
    words, start = [token.lower for token in tokens[first : last + 1]], tokens[first].start
    if words[0] in TITLES and len(words) > 1 and words[0] not in {"st", "saint"}:
        return "person"
    if kind := kind_of_words(words):
        return kind
    if first > 0 and tokens[first - 1].lower in TITLES:
        return "person"
    if PERSON_AFTER.match(text, tokens[last].end):
        return "person"
    if PLACE_BEFORE.search(text, max(0, start - 16), start):
        return "place"
    return "thing"


def _clean(text: str, tokens: Sequence[_Token], first: int, last: int, usage: _Usage) -> NameSpan | None:
    while last > first and tokens[last].text in _CONNECTORS:
        last -= 1
    kind = _kind(text, tokens, first, last)
    start, end = tokens[first].start, tokens[last].end
    end -= usage.ending(text[start:end])
    name = text[start:end].rstrip("'’")
    if name.isupper() and (last - first >= _SHOUTED or _is_phrase(tokens, first, last)):
        return None
    if first == last and first > 0 and tokens[first - 1].lower in _INDEFINITE and usually_lower(tokens[first].lower):
        return None
    if _REFERENCE.match(name):
        return None
    signed = is_signed(name) or name.endswith(("-", "–"))
    plain = name.lower().rstrip(".")
    if sum(map(str.isalpha, name)) + signed < 2 or len(name) > 100:  # "C#" has two
        return None
    if plain in OPENERS or plain in TITLES:
        return None
    return NameSpan(" ".join(name.split()), start, start + len(name), kind)


def _is_phrase(tokens: Sequence[_Token], first: int, last: int) -> bool:
    """Whether words in capitals are speech and no name: a function word is among them ("SHE LEFT HIM")."""
    return last > first and any(token.lower in STOPWORDS - {"us"} for token in tokens[first : last + 1])


# --- titles ----------------------------------------------------------------------------------------------------------

_QUALIFIER = regex(r"[(（][^()（）]*[)）]\s*$")


def _title_spans(text: str, title: str) -> list[tuple[int, int]]:
    """Where a text names its own title of several words, without a bracketed qualifier."""
    words = _QUALIFIER.sub("", title).split()
    if len(words) < 2:
        return []
    name = r"\s+".join(map(re.escape, words))
    # "Orla Sound" is no name of its own where "Orla Sound Authority" stands.
    alone = rf"(?<!\w){name}(?!\w|{TRAILING})(?! [A-Z])"
    return [match.span() for match in re.finditer(alone, text)]


TITLES = words_in("english", "titles")
KIND_OF = group_of("english", "kinds")
# What somebody or something may be ("porter", "village"): no names by themselves.
CLASSES = frozenset({*KIND_OF, *group_of("english", "classes")})


def kind_of_words(words: Sequence[str]) -> str:
    """The kind that a name's folded words tell by their head noun, or nothing."""
    head = words[: words.index("of", 1)] if "of" in words[1:] else words
    return KIND_OF.get(head[-1]) or (KIND_OF.get(words[0], "") if len(words) > 2 else "")


_ROLES = (
    "actor|actress|artist|author|bishop|brewer|chemist|composer|director|engineer|historian|king|lawyer|man|musician|"
    "novelist|painter|player|poet|politician|producer|professor|queen|scientist|singer|soldier|teacher|woman|writer"
)
_DEEDS = "said|says|married|studied|retired|died|cried|replied|asked|thought|joined|wrote|grew|worked"
_LIFE = r"\(\s{0,9}+(?:born\b|née\b|b\.\s|[^()]{0,30}\b\d{3,4}\s{0,9}[–-]\s{0,9}[^()]{0,30}\b\d{4}\b)"
PERSON_AFTER = regex(
    rf"\s*+{_LIFE}|\s*+(?:\([^)]*\)\s*+)?,?\s*+"
    rf"(?:who\b|(?:was|is)\s+(?:born|an?\s+(?:\w+[ -]){{0,4}}?(?:{_ROLES}))|(?:{_DEEDS})\b)"
)
PLACE_BEFORE = regex(
    r"\b(?:born in|died in|near|north of|south of|east of|west of|located in|lives in|moved to|town of|city of)\s+$"
)


OPENERS = STOPWORDS | words_in("english", "openers")
