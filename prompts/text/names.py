"""Names in English text: where they stand, and of what kind."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from prompts.text.amounts import MONTH_OF, WEEKDAYS
from prompts.text.tokens import usually_lower
from prompts.text.words import STOPWORDS, group_of, words_in

__all__ = ["TITLES", "NameSpan", "name_spans"]

_TOKEN = re.compile(r"[^\W_]+(?:(?:\.[-‐]|['’.\-‐])[^\W_]+)*\.?|&")
_CONNECTORS = frozenset(
    "of the de la le du des del della di da dos von van der den zu al el bin ibn y e and for on in to & mac af".split()
)
# A run may cross these only when the joined name is well known as one; alone they separate two names.
_WEAK = frozenset("and for on in to e y".split())
_DATES = MONTH_OF.keys() | {*WEEKDAYS, "bc", "bce"}
_REFERENCE = re.compile(r"(?:section|chapter|figure|fig|table|appendix|page|footnote|equation)s?\.? \d+$", re.I)
_YEAR = re.compile(r"[12]\d{3} ")  # before an event it tells which one: "1964 Summer Olympics"
_REGNAL = re.compile(r"I(?=,? of |[,)]| \()")  # "Martin I of Sicily"; "II" is a name word by its capitals
_ARTICLE = re.compile(r", an? ")
_INDEFINITE = frozenset("a an another each every any some".split())
_OPENING_QUOTES = "“‘\"'"
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
    apposed: bool


@dataclass(frozen=True, slots=True)
class _Usage:
    """How the text writes its words: those seen small, and those seen with a capital inside a sentence."""

    small: frozenset[str]
    capital: frozenset[str]


def name_spans(text: str, sentences: Sequence[tuple[int, int]], title: str = "") -> list[NameSpan]:
    """The names in a text, in order, without overlaps; `sentences` are the spans to look in.

    Words of `title` count as written with a capital on purpose.
    """
    token_lists = [tokens for start, end in sentences if not _shouted(tokens := _tokens(text, start, end))]
    usage = _Usage(
        frozenset(token.lower for tokens in token_lists for token in tokens if not token.upper),
        frozenset(_base(token.lower) for tokens in token_lists for token in tokens if token.upper and not token.opens)
        | frozenset(match.group().lower() for match in _TOKEN.finditer(title)),
    )
    titles = [NameSpan(" ".join(text[a:b].split()), a, b, _title_kind(text, a, b)) for a, b in title_spans(text, title)]
    found: list[NameSpan] = list(titles)
    for tokens in token_lists:
        for first, last in _runs(text, tokens, usage):
            span = _clean(text, tokens, first, last)
            if span is not None and not any(one.start < span.end and span.start < one.end for one in titles):
                found.append(span)
    return sorted(found, key=lambda span: span.start) if titles else found


def _title_kind(text: str, start: int, end: int) -> str:
    if kind := kind_of_words(text[start:end].lower().split()):
        return kind
    if text[start - 1 : start] in ('"', "“"):
        return "work"
    return "person" if PERSON_AFTER.match(text, end) else "thing"


def _tokens(text: str, start: int, end: int) -> list[_Token]:
    found: list[_Token] = []
    for match in _TOKEN.finditer(text, start, end):
        word, at = match.group(), match.start()
        lower = word.lower().rstrip(".")
        initial = len(word) == 2 and word[0].isupper()
        if word.endswith(".") and not (lower in TITLES or initial or word.count(".") > 1):
            word = word[:-1]
        upper = word[:1].isupper()
        opens = upper and (not found or _opens(text, max(start, at - 4), at, found[-1]))
        after = match.end()
        found.append(_Token(word, lower, at, at + len(word), upper, opens, opens and _apposed(text, after)))
    return found


def _apposed(text: str, after: int) -> bool:
    """Whether a word is explained by what follows it ("Belle, a comely matron"), as only a name is."""
    return text[after : after + 1] == "," and _ARTICLE.match(text, after) is not None


def _opens(text: str, start: int, at: int, previous: _Token) -> bool:
    """Whether a word at `at` begins a sentence, a clause or a speech, where a capital is owed to the place."""
    before = text[start:at]
    quoted = before[-1:] in _OPENING_QUOTES and before[-1:] != ""
    before = before.rstrip(" ([*_" + _OPENING_QUOTES)
    if before.endswith((":", ";", "!", "?", ".", "\n\n", "|", "--", "—", "·", "•")):
        return not previous.text.endswith(".")
    return quoted and (before.endswith(",") or not _closes(text, at))


def _closes(text: str, at: int) -> bool:
    """Whether the quotation that begins before `at` closes without a mark of its own: a title, not a speech."""
    for place in range(at, min(at + 80, len(text))):
        if text[place] in '”"':
            return text[place - 1] not in ".,!?"
    return False


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
    return first not in OPENERS and (token.apposed or not usually_lower(first))


def _first_part(base: str, written: str) -> str:
    """What a word is judged by: "To-night" and "Half-a-dozen" by their first parts, "Anglo-Saxon" as a whole."""
    first, hyphen, _ = base.partition("-")
    return first if hyphen and written[len(first) + 1 :].islower() else base


def _opens_run(text: str, tokens: Sequence[_Token], index: int, usage: _Usage) -> bool:
    """A sentence opener may begin a name when another capitalised word follows at once ("Good Hope Bridge is …").

    Not where that word is a name by itself in this text ("Dreadful Marley").
    """
    token = tokens[index]
    if not token.upper or token.lower in _DATES or index + 1 >= len(tokens):
        return False
    if _first_part(token.lower, token.text) in OPENERS:
        return False
    following = tokens[index + 1]
    if token.lower.endswith("ly") or following.opens or text[token.end : following.start] != " ":
        return False
    if not _is_name_token(following, usage):
        return False
    return token.lower in usage.capital or not (usually_lower(token.lower) and _begins_names(text, tokens, following))


def _begins_names(text: str, tokens: Sequence[_Token], following: _Token) -> bool:
    """Whether a name word starts names elsewhere in its text: after a small letter, not after another name word."""
    pattern = re.compile(rf"[a-z,;] {re.escape(following.text)}\b")
    return any(match.start() + 2 != following.start for match in pattern.finditer(text))


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
    if tokens[last].text.endswith(("'s", "’s")) and not _titled_after(tokens, last):
        return None
    step = last + 1
    weak = meant = False
    while step < len(tokens) and step - last <= 3:
        token = tokens[step]
        gap = text[tokens[step - 1].end : token.start]
        if gap.strip() not in ("", ".", "™", "®") or "\n\n" in gap or len(gap) > 2:
            return None
        number = token.text.isdigit() and step == last + 1 and len(token.text) <= 3 and gap == " "
        number = number and not tokens[last].text.isdigit() and not tokens[last].text.endswith(".")
        if number or (step == last + 1 and _REGNAL.match(text, token.start)):
            return step
        if (token.upper and not token.opens and _is_name_token(token, usage)) or (
            token.upper and token.lower in TITLES
        ):
            return None if weak and not (meant or _joins(tokens, last, step)) else step
        if _capital_on_purpose(token):
            meant = True
        elif token.text not in _CONNECTORS:
            return None
        weak = weak or token.text in _WEAK
        step += 1
    return None


def _capital_on_purpose(token: _Token) -> bool:
    """A function word with a capital inside a sentence is part of a name: "Ghost of Christmas Yet To Come"."""
    return token.upper and not token.opens and token.lower in STOPWORDS and len(token.text) > 1


def _titled_after(tokens: Sequence[_Token], last: int) -> bool:
    """Whether a possessive goes on in a name of its own kind ("Pilot's Bridge", "St Paul's Cathedral")."""
    return (
        last + 1 < len(tokens) and tokens[last + 1].upper and KIND_OF.get(tokens[last + 1].lower) in {"place", "work"}
    )


def _joins(tokens: Sequence[_Token], last: int, step: int) -> bool:
    """Whether a weak connector holds one name together: in names of organisations ("Institute for Tidal Studies")."""
    first_words = {token.lower for token in tokens[max(0, last - 3) : last + 1]}
    return tokens[last + 1].text == "for" and any(KIND_OF.get(word) == "organisation" for word in sorted(first_words))


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


def _clean(text: str, tokens: Sequence[_Token], first: int, last: int) -> NameSpan | None:
    while last > first and tokens[last].text in _CONNECTORS:
        last -= 1
    kind = _kind(text, tokens, first, last)
    if kind == "event" and first > 0 and _YEAR.fullmatch(text, tokens[first - 1].start, tokens[first].start):
        first -= 1
    start, end = tokens[first].start, tokens[last].end
    if text[start:end].endswith(("'s", "’s")):
        end -= 2
    name = text[start:end].rstrip("'’")
    if name.isupper() and (last - first >= _SHOUTED or _is_phrase(tokens, first, last)):
        return None
    if first == last and first > 0 and tokens[first - 1].lower in _INDEFINITE and usually_lower(tokens[first].lower):
        return None
    if _REFERENCE.match(name):
        return None
    letters = sum(c.isalpha() for c in name)
    if letters < 2 or name.lower().rstrip(".") in OPENERS or name.lower().rstrip(".") in TITLES or len(name) > 100:
        return None
    return NameSpan(" ".join(name.split()), start, start + len(name), kind)


def _is_phrase(tokens: Sequence[_Token], first: int, last: int) -> bool:
    """Whether words in capitals are speech and no name: a function word is among them ("SHE LEFT HIM")."""
    return last > first and any(token.lower in STOPWORDS - {"us"} for token in tokens[first : last + 1])


# --- titles ----------------------------------------------------------------------------------------------------------

_QUALIFIER = re.compile(r"\s*[(（][^()（）]*[)）]\s*$")
_QUOTED = re.compile(r"[\"“]\s?((?:[A-Z][\w'’-]*)(?:[ :&-]+[\w'’!-]+){1,7})\s?[\"”]")
_SMALL = 3  # a word of so few letters may be written small within a title, whatever the language
_SMALL_TOO = frozenset({"from", "with"})


def title_spans(text: str, title: str) -> list[tuple[int, int]]:
    """(start, end) of titles, in order, without overlaps."""
    found = [match.span(1) for match in _QUOTED.finditer(text) if _is_title(match.group(1))]
    bare = _QUALIFIER.sub("", title).strip()
    if len(bare.split()) > 1:
        # Some texts put a blank after a hyphen or a quotation mark: only the words are compared.
        words = r"[\s]+".join(map(re.escape, bare.split()))
        # "Orla Sound" is no name of its own where "Orla Sound Authority" stands.
        found += [match.span() for match in re.finditer(rf"(?<!\w){words}(?!\w)(?! [A-Z])", text)]
    chosen: list[tuple[int, int]] = []
    for start, end in sorted(set(found), key=lambda span: (span[0], -span[1])):
        if not chosen or chosen[-1][1] <= start:
            chosen.append((start, end))
    return chosen


def _is_title(quoted: str) -> bool:
    words = quoted.split()
    return len(words) > 1 and all(
        word[0].isupper() or word[0].isdigit() or len(word) <= _SMALL or word in _SMALL_TOO for word in words
    )


TITLES = words_in("english", "titles")
KIND_OF = group_of("english", "kinds")


def kind_of_words(words: Sequence[str]) -> str:
    """The kind that a name's folded words tell by their head noun, or nothing."""
    head = words[: words.index("of", 1)] if "of" in words[1:] else words
    return KIND_OF.get(head[-1]) or (KIND_OF.get(words[0], "") if len(words) > 2 else "")


_ROLES = (
    "actor|actress|artist|author|bishop|brewer|chemist|composer|director|engineer|historian|king|lawyer|man|musician|"
    "novelist|painter|player|poet|politician|producer|professor|queen|scientist|singer|soldier|teacher|woman|writer"
)
_DEEDS = "said|says|married|studied|retired|died|cried|replied|asked|thought|joined|wrote|grew|worked"
_LIFE = r"\(\s*(?:born\b|née\b|b\.\s|[^()]{0,30}\b\d{3,4}\s*[–-]\s*[^()]{0,30}\b\d{4}\b)"
PERSON_AFTER = re.compile(
    rf"\s*{_LIFE}|\s*(?:\([^)]*\)\s*)?,?\s*"
    rf"(?:who\b|(?:was|is)\s+(?:born|an?\s+(?:\w+[ -]){{0,4}}?(?:{_ROLES}))|(?:{_DEEDS})\b)"
)
PLACE_BEFORE = re.compile(
    r"\b(?:born in|died in|near|north of|south of|east of|west of|located in|lives in|moved to|town of|city of)\s+$"
)


OPENERS = STOPWORDS | words_in("english", "openers")
