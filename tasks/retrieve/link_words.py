"""Into which comparable words does a question fall? Folded one by one, so that any stretch of them is a name's key."""

import re
from dataclasses import dataclass

from prompts.language.words import CJK, STOPWORDS, fold

_WORD = re.compile(f"[^\\W_{CJK}]+(?:['’.][^\\W_{CJK}]+)*|[{CJK}]+")
_POSSESSIVE = re.compile(r"['’]s$")
_BRACKETED = re.compile(r"[(（][^()（）]{1,60}[)）]")
_ARTICLES = frozenset({"the", "a", "an"})


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a question: its folded form, its place, and the number of the bracket that it stands in (0: none)."""

    folded: str
    start: int
    end: int
    capital: bool
    bracket: int = 0

    @property
    def tells(self) -> bool:
        """Whether it carries meaning."""
        return self.folded not in STOPWORDS


def words_of(question: str) -> list[Word]:
    """The words in order, possessive endings and full stops dropped (as `fold_name` does for a whole name)."""
    brackets = [match.span() for match in _BRACKETED.finditer(question)]
    found = []
    for match in _WORD.finditer(question):
        text = match.group()
        inside = next((n for n, (start, end) in enumerate(brackets, 1) if start <= match.start() < end), 0)
        folded = _POSSESSIVE.sub("", fold(text)).replace(".", "").replace("’", "'")
        found.append(Word(folded, match.start(), match.end(), text != text.lower(), inside))
    return found


def key_of(words: list[Word]) -> str:
    """The key under which a name of these words is known."""
    while len(words) > 1 and words[0].folded in _ARTICLES:
        words = words[1:]
    return " ".join(word.folded for word in words)


def is_cased(words: list[Word]) -> bool:
    """Whether capitals tell names: some word but the first has one, and not every word has."""
    rest = words[1:]
    return any(word.capital for word in rest) and not (len(rest) > 1 and all(word.capital for word in rest))
