"""Which names does an English text hold, where, and of what kind?

Capitalised runs with connectors ("Bank of Velin"), judged at the sentence's start by whether the text also writes the
word in lower case. No model, no word list beyond function words.
"""

import re
from dataclasses import dataclass

from prompts.language.words import STOPWORDS

_TOKEN = re.compile(r"[^\W_]+(?:['’.\-‐][^\W_]+)*\.?|&")
_CONNECTORS = {
    "of", "the", "de", "la", "le", "du", "des", "del", "della", "di", "da", "dos", "von", "van", "der", "den", "zu",
    "al", "el", "bin", "ibn", "y", "e", "and", "for", "on", "in", "to", "&", "mac", "af", "av",
}  # fmt: skip
# A run may cross these only when the joined name is well known as one; alone they separate two names.
_WEAK = {"and", "for", "on", "in", "to", "e", "y"}
_DATES = {
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday", "jan", "feb", "mar", "apr",
    "jun", "jul", "aug", "sep", "sept", "oct", "nov", "dec",
}  # fmt: skip
TITLES = {
    "mr", "mrs", "ms", "miss", "dr", "prof", "professor", "sir", "lady", "lord", "dame", "king", "queen", "prince", "st",
    "princess", "duke", "duchess", "count", "countess", "captain", "colonel", "general", "president", "saint", "father",
    "bishop", "pope", "emperor", "empress", "baron", "uncle", "aunt", "engineer", "chief", "director", "minister",
}  # fmt: skip
_OPENERS = STOPWORDS | {
    "according", "additionally", "after", "afterwards", "ago", "almost", "already", "although", "always", "among",
    "another", "anyone", "around", "besides", "chapter", "come", "currently", "despite", "earlier", "early", "eventually",
    "every", "everyone", "finally", "first", "following", "former", "formerly", "get", "given", "go", "good", "great",
    "hence", "however", "hush", "indeed", "instead", "introduction", "keep", "last", "later", "least", "less", "like",
    "likewise", "many", "meanwhile", "moreover", "much", "near", "nearly", "never", "nevertheless", "new", "next", "nobody",
    "nothing", "note", "oh", "old", "one", "open", "others", "otherwise", "overview", "perhaps", "please", "previously",
    "recently", "second", "see", "several", "similarly", "since", "somebody", "someone", "sometimes", "soon", "step",
    "still", "summary", "table", "therefore", "third", "three", "today", "together", "two", "unlike", "usually", "various",
    "well", "whose", "without", "yes", "ah", "why", "aye", "ay", "ha", "hallo", "hello", "o", "ii", "iii", "iv",
}  # fmt: skip
_KIND_WORDS = {
    "organisation": """academy agency airlines archive army association authority bank board brewery bureau cannery church
        club college commission committee company co consortium corporation corp council court department foundation
        gmbh group guild hospital house inc institute laboratory league library limited llc ltd ministry museum navy
        observatory office orchestra order parliament party plc press school service services society team trust union
        university works yard shipyard records studios cooperative registry""",
    "place": """avenue bay beach borough bridge canal cape castle cathedral cemetery channel city coast county cove creek
        dam desert district estuary falls ferry forest fort gulf harbor harbour hill hills island islands isle kingdom
        lake lane lighthouse mount mountain mountains narrows ocean palace park parish peninsula point port province quay
        republic reservoir ridge river road rock sea shire sound square station strait street terminal territory tower
        town township tunnel valley village weir wharf""",
    "work": "album anthem ballad book film gazette handbook journal magazine manual novel opera play poem report song story "
    "symphony trilogy",
    "event": "affair award battle championship conference cup election expedition exhibition fair festival flood games "
    "olympics prize revolution siege storm summit treaty trial tournament war",
}
_KIND_OF = {word: kind for kind, words in _KIND_WORDS.items() for word in words.split()}
_PERSON_AFTER = re.compile(
    r"\s*(?:\([^)]*\)\s*)?,?\s*(?:who\b|(?:was|is)\s+(?:born|an?\s+(?:\w+[ -]){0,4}?(?:actor|actress|artist|author|bishop|brewer|"
    r"chemist|composer|director|engineer|historian|king|lawyer|man|musician|novelist|painter|player|poet|politician|"
    r"producer|professor|queen|scientist|singer|soldier|teacher|woman|writer))|(?:said|says|married|studied|retired|died|"
    r"cried|replied|asked|thought|joined|wrote|grew|worked)\b)"
)
_PLACE_BEFORE = re.compile(r"\b(?:born in|died in|at|near|north of|south of|east of|west of|located in|lives in|moved to|town of|city of)\s+$")


@dataclass(frozen=True, slots=True)
class NameSpan:
    """A name as written at `start`..`end` of the text it was found in."""

    text: str
    start: int
    end: int
    kind: str


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    lower: str
    start: int
    end: int
    upper: bool
    opens: bool


def _tokens(text: str, start: int, end: int) -> list[_Token]:
    found: list[_Token] = []
    for match in _TOKEN.finditer(text, start, end):
        word = match.group()
        lower = word.lower().rstrip(".")
        if word.endswith(".") and not (lower in TITLES or len(word) == 2 and word[0].isupper() or word.count(".") > 1):
            word = word[:-1]
        before = text[max(start, match.start() - 2) : match.start()].rstrip(" ([\"“‘'*_")
        opens = not found or (before[-1:] in set(":;!?.\n|") if before and not found[-1].text.endswith(".") else False)
        found.append(_Token(word, lower, match.start(), match.start() + len(word), word[:1].isupper(), opens))
    return found


def _is_name_token(token: _Token, lower_words: frozenset[str]) -> bool:
    if not token.upper or token.lower in _DATES:
        return False
    if token.text.isupper() and len(token.text) > 1:
        return True
    base = token.lower.split("'")[0].split("’")[0]
    if base in STOPWORDS:
        return False
    return not (token.opens and (base in _OPENERS or base in lower_words or base.endswith("ly")))


def _gap(text: str, left: _Token, right: _Token) -> str:
    return text[left.end : right.start]


def _runs(text: str, tokens: list[_Token], lower_words: frozenset[str]) -> list[tuple[int, int]]:
    """Maximal runs of name tokens as index pairs [first, last], connectors only inside."""
    runs: list[tuple[int, int]] = []
    index = 0
    while index < len(tokens):
        if not _is_name_token(tokens[index], lower_words) and not _opens_run(text, tokens, index, lower_words):
            index += 1
            continue
        last = index
        while (following := _extend(text, tokens, last, lower_words)) is not None:
            last = following
        runs.append((index, last))
        index = last + 1
    return runs


def _opens_run(text: str, tokens: list[_Token], index: int, lower_words: frozenset[str]) -> bool:
    """A sentence opener may still begin a name when another capitalised word follows at once ("Good Hope Bridge is …")."""
    token = tokens[index]
    if not token.upper or token.lower in STOPWORDS or token.lower in _DATES or index + 1 >= len(tokens):
        return False
    following = tokens[index + 1]
    return (
        token.lower not in _OPENERS
        and not token.lower.endswith("ly")
        and _gap(text, token, following) == " "
        and not following.opens
        and _is_name_token(following, lower_words)
    )


def _extend(text: str, tokens: list[_Token], last: int, lower_words: frozenset[str]) -> int | None:
    """The index of the next token that belongs to the run ending at `last`, over connectors, or None."""
    if tokens[last].text.endswith(("'s", "’s")):
        return None
    step = last + 1
    weak = False
    while step < len(tokens) and step - last <= 3:
        token = tokens[step]
        if _gap(text, tokens[step - 1], token).strip("\u00a0 ") not in ("", "."):
            return None
        if "\n\n" in _gap(text, tokens[step - 1], token):
            return None
        number = token.text.isdigit() and step == last + 1 and len(token.text) <= 3 and not tokens[last].text.isdigit()
        if (_is_name_token(token, lower_words) and not token.opens) or number or (token.upper and token.lower in TITLES):
            return None if weak and not _joins(tokens, last, step) else step
        if token.text not in _CONNECTORS:
            return None
        weak = weak or token.text in _WEAK
        step += 1
    return None


def _joins(tokens: list[_Token], last: int, step: int) -> bool:
    """Whether a weak connector holds one name together: only inside names of organisations ("Institute for Tidal Studies")."""
    first_words = {token.lower for token in tokens[max(0, last - 3) : last + 1]}
    return tokens[last + 1].text == "for" and any(_KIND_OF.get(word) == "organisation" for word in first_words)


def _kind(text: str, tokens: list[_Token], first: int, last: int) -> str:
    words = [token.lower for token in tokens[first : last + 1]]
    if words[0] in TITLES and len(words) > 1 and words[0] not in {"st", "saint"}:
        return "person"
    head = words[: words.index("of")] if "of" in words[1:] else words
    kind = _KIND_OF.get(head[-1]) or (_KIND_OF.get(words[0]) if len(words) > 2 else None)
    if kind:
        return kind
    if first > 0 and tokens[first - 1].lower in TITLES:
        return "person"
    if _PERSON_AFTER.match(text, tokens[last].end):
        return "person"
    if _PLACE_BEFORE.search(text, max(0, tokens[first].start - 16), tokens[first].start):
        return "place"
    return "thing"


def name_spans(text: str, sentences: list[tuple[int, int]]) -> list[NameSpan]:
    """The names in a text, in order, without overlaps; `sentences` are the spans to look in."""
    token_lists = [_tokens(text, start, end) for start, end in sentences]
    lower_words = frozenset(token.lower for tokens in token_lists for token in tokens if not token.upper)
    found: list[NameSpan] = []
    for tokens in token_lists:
        for first, last in _runs(text, tokens, lower_words):
            span = _clean(text, tokens, first, last)
            if span is not None:
                found.append(span)
    return found


def _clean(text: str, tokens: list[_Token], first: int, last: int) -> NameSpan | None:
    while last > first and tokens[last].text in _CONNECTORS:
        last -= 1
    start, end = tokens[first].start, tokens[last].end
    if text[start:end].endswith(("'s", "’s")):
        end -= 2
    name = text[start:end].rstrip("'’")
    letters = sum(c.isalpha() for c in name)
    if letters < 2 or name.lower().rstrip(".") in _OPENERS | TITLES or len(name) > 100:
        return None
    return NameSpan(name, start, start + len(name), _kind(text, tokens, first, last))
