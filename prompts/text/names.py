"""Names in English text by their capitals: where they stand, and of what kind."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from prompts.text.amounts import MONTH_OF, WEEKDAYS
from prompts.text.tokens import usually_lower
from prompts.text.words import LEADING, STOPWORDS, TRAILING, group_of, is_signed, words_in

_WORD = r"[^\W_]+(?:(?:\.[-‐]|['’.\-‐])[^\W_]+)*"
_TOKEN = re.compile(rf"{LEADING}{_WORD}(?:{TRAILING}|\.)?|&")
# Small words inside names; "and" separates two names.
_CONNECTORS = words_in("english", "connectors") - frozenset("and on in to e y".split())
_DATES = MONTH_OF.keys() | {*WEEKDAYS, "bc", "bce"}
_REFERENCE = re.compile(
    r"(?:section|chapter|figure|fig|table|appendix|page|footnote|equation)s?\.? \d+$", re.I
)
_INDEFINITE = frozenset("a an another each every any some".split())
_ENDS = (":", ";", "!", "?", ".", "\n\n", "|", "--", "—", "·", "•")
_QUOTES = "“‘\"'"
_SHOUTED = 3  # Words in capitals from which they are a heading or a cry, and no name
_LONGEST = 100  # Characters
_QUALIFIER = re.compile(r"[(（][^()（）]*[)）]\s*$")

TITLES = words_in("english", "titles")
OPENERS = STOPWORDS | words_in("english", "openers")
KIND_OF = group_of("english", "kinds")
_ROLES = (
    "actor|actress|artist|author|bishop|composer|director|engineer|historian|king|lawyer|musician|novelist|painter"
    "|player|poet|politician|producer|professor|queen|scientist|singer|soldier|teacher|writer"
)
_LIFE = r"\((?:born\b|née\b|b\.\s|[^()]{0,30}\b\d{3,4}\s{0,9}[–-]\s{0,9}[^()]{0,30}\b\d{4}\b)"
_PERSON_AFTER = re.compile(
    rf"\s*+{_LIFE}|\s*+(?:\([^)]*\)\s*+)?,?\s*+"
    rf"(?:who\b|(?:was|is)\s+(?:born|an?\s+(?:\w+[ -]){{0,4}}?(?:{_ROLES}))"
    r"|(?:said|married|died|wrote|studied)\b)"
)
_PLACE_BEFORE = re.compile(
    r"\b(?:born in|died in|near|(?:nor|sou)th of|(?:ea|we)st of|lives in|town of|city of)\s+$"
)


@dataclass(frozen=True, slots=True)
class NameSpan:
    """A name as written at `start`..`end` of the text it was found in."""

    text: str
    start: int
    end: int
    kind: str


class _Token(NamedTuple):
    """A word; `opens` says whether its place asks for a capital."""

    text: str
    lower: str
    start: int
    end: int
    upper: bool
    opens: bool


class _Usage(NamedTuple):
    """The words that a text writes in lower case, and those it capitalises inside sentences."""

    small: frozenset[str]
    capital: frozenset[str]


def name_spans(text: str, sentences: Sequence[tuple[int, int]], title: str = "") -> list[NameSpan]:
    """Return the names in the `sentences` (spans) of a text, in order, without overlaps.

    Words of `title` count as capitalised on purpose.
    """
    read = [
        tokens for start, end in sentences if not _is_shouted(tokens := _tokens(text, start, end))
    ]
    meant = frozenset(
        _base(token.lower) for tokens in read for token in tokens if token.upper and not token.opens
    )
    usage = _Usage(
        frozenset(token.lower for tokens in read for token in tokens if not token.upper),
        meant.union(match.group().lower() for match in _TOKEN.finditer(title)),
    )
    titles = list(_named_by_title(text, title))
    runs = ((tokens, *run) for tokens in read for run in _runs(text, tokens, usage))
    found = [span for run in runs if (span := _span_of(text, *run))]
    apart = [
        one for one in found if all(one.end <= own.start or own.end <= one.start for own in titles)
    ]
    return sorted([*titles, *apart], key=lambda span: span.start)


def _tokens(text: str, start: int, end: int) -> list[_Token]:
    tokens: list[_Token] = []
    for match in _TOKEN.finditer(text, start, end):
        word, at = match.group(), match.start()
        lower = word.lower().rstrip(".")
        initial = len(word) == 2 and word[0].isupper()
        if word.endswith(".") and not (lower in TITLES or initial or word.count(".", 1) > 1):
            word = word[:-1]
        upper = word.lstrip(".")[:1].isupper()
        opens = upper and (not tokens or _opens(text[max(start, at - 4) : at], tokens[-1]))
        tokens.append(_Token(word, lower, at, at + len(word), upper, opens))
    return tokens


def _opens(before: str, previous: _Token) -> bool:
    """Whether a word after these characters begins a sentence, a clause or a speech."""
    bare = before.rstrip(" ([*_" + _QUOTES)
    if bare.endswith(_ENDS):
        return not previous.text.endswith(".")
    return before[-1:] != "" and before[-1:] in _QUOTES


def _is_shouted(tokens: Sequence[_Token]) -> bool:
    return len(tokens) >= _SHOUTED and all(token.text.upper() == token.text for token in tokens)


def _base(lower: str) -> str:
    return lower.partition("'")[0].partition("’")[0]


def _is_name(token: _Token, usage: _Usage) -> bool:
    """Whether a word is written as a name."""
    base = _base(token.lower)
    if not token.upper or token.lower in _DATES:
        return False
    if len(token.text) > 1 and token.text.isupper():
        return True
    if base in STOPWORDS:
        return False
    if not token.opens or (
        base in usage.capital and base not in OPENERS and base not in usage.small
    ):
        return True
    first, hyphen, _ = base.partition("-")
    first = first if hyphen and token.text[len(first) + 1 :].islower() else base  # "To-night"
    common = base in OPENERS or base in usage.small or base.endswith("ly") or first in OPENERS
    return not common and not usually_lower(first)


def _begins_name(text: str, tokens: Sequence[_Token], index: int, usage: _Usage) -> bool:
    """Whether a name begins here, which may open a sentence before another word of the name."""
    token = tokens[index]
    if _is_name(token, usage):
        return True
    if (
        not token.opens
        or token.lower in _DATES | OPENERS
        or token.lower.endswith("ly")
        or index + 1 == len(tokens)
    ):
        return False
    following = tokens[index + 1]
    return (
        not following.opens
        and text[token.end : following.start] == " "
        and _is_name(following, usage)
    )


def _runs(text: str, tokens: Sequence[_Token], usage: _Usage) -> Iterator[tuple[int, int]]:
    """Yield the first and last place of each run of name words, with connectors only inside."""
    index = 0
    while index < len(tokens):
        if not _begins_name(text, tokens, index, usage):
            index += 1
            continue
        last = index
        while (following := _next_in_name(text, tokens, last, usage)) is not None:
            last = following
        yield index, last
        index = last + 1


def _next_in_name(text: str, tokens: Sequence[_Token], last: int, usage: _Usage) -> int | None:
    """Return the place of the next name word of a run, across connectors; None at its end."""
    if tokens[last].text.endswith(("'s", "’s")):
        return None
    for step in range(last + 1, min(last + 4, len(tokens))):
        token, gap = tokens[step], text[tokens[step - 1].end : tokens[step].start]
        if gap.strip() not in ("", ".", "™", "®") or "\n\n" in gap or len(gap) > 2:
            return None
        if token.text.isdigit() and step == last + 1 and len(token.text) <= 3 and gap == " ":
            return None if tokens[last].text.isdigit() or tokens[last].text.endswith(".") else step
        if token.upper and ((not token.opens and _is_name(token, usage)) or token.lower in TITLES):
            return step
        if token.text not in _CONNECTORS or (token.text == "for" and not _is_body(tokens, step)):
            return None
    return None


def _is_body(tokens: Sequence[_Token], place: int) -> bool:
    """Whether an organisation stands before a "for" ("Institute for Tides")."""
    return any(
        KIND_OF.get(token.lower) == "organisation" for token in tokens[max(0, place - 3) : place]
    )


def _span_of(text: str, tokens: Sequence[_Token], first: int, last: int) -> NameSpan | None:
    """Return the name of a run, None where it is no name after all."""
    start, end = tokens[first].start, tokens[last].end
    end -= 2 * tokens[last].text.endswith(("'s", "’s"))
    name = text[start:end].rstrip("'’")
    plain = name.lower().rstrip(".")
    words = [token.lower for token in tokens[first : last + 1]]
    if sum(map(str.isalpha, name)) + is_signed(name) < 2 or len(name) > _LONGEST:
        return None
    if plain in OPENERS or plain in TITLES or _REFERENCE.match(name):
        return None
    if (
        name.isupper()
        and last > first
        and (last - first >= _SHOUTED or not STOPWORDS.isdisjoint(words))
    ):
        return None
    if first == last and first and tokens[first - 1].lower in _INDEFINITE and usually_lower(plain):
        return None
    return NameSpan(
        " ".join(name.split()), start, start + len(name), _kind(text, tokens, first, last)
    )


def _kind(text: str, tokens: Sequence[_Token], first: int, last: int) -> str:
    words, start = [token.lower for token in tokens[first : last + 1]], tokens[first].start
    if words[0] in TITLES and len(words) > 1 and words[0] not in {"st", "saint"}:
        return "person"
    if kind := kind_of_words(words):
        return kind
    titled = first > 0 and tokens[first - 1].lower in TITLES
    if titled or _PERSON_AFTER.match(text, tokens[last].end):
        return "person"
    return "place" if _PLACE_BEFORE.search(text, max(0, start - 16), start) else "thing"


def kind_of_words(words: Sequence[str]) -> str:
    """Return the kind that the head noun of a name's folded words tells, else nothing."""
    head = words[: words.index("of", 1)] if "of" in words[1:] else words
    return KIND_OF.get(head[-1]) or (KIND_OF.get(words[0], "") if len(words) > 2 else "")


def _named_by_title(text: str, title: str) -> Iterator[NameSpan]:
    """Yield where a text names its own title, if that has several words."""
    words = _QUALIFIER.sub("", title).split()
    if len(words) < 2:
        return
    name = r"\s+".join(map(re.escape, words))
    # "Orla Sound" is no name of its own where "Orla Sound Authority" stands.
    for match in re.finditer(rf"(?<!\w){name}(?!\w|{TRAILING})(?! [A-Z])", text):
        kind = kind_of_words([word.lower() for word in words])
        kind = kind or ("person" if _PERSON_AFTER.match(text, match.end()) else "thing")
        yield NameSpan(" ".join(match.group().split()), *match.span(), kind)
