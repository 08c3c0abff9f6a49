"""Does a question that a model rewrote still ask the same? It keeps every name and figure, and brings none."""

import re
from collections.abc import Sequence

from prompts.language.mentions import named
from prompts.language.openers import OPENERS
from prompts.language.words import CJK, WORD, content_terms, fold, is_han

_FIGURE = re.compile(r"\d+(?:[.,]\d+)*")
_CAPITAL = re.compile(r"(?<!^)(?<![.?!] )\b[A-Z][\w’'-]*")
# A Chinese question may put other function words around what it keeps; so much of it must come from what was said.
_SHARE_SAID = 0.6


def unfaithful(rewritten: str, question: str, history: Sequence[str]) -> str:
    """What is wrong with a rewritten question, or nothing.

    A name or figure of the question that is gone, one that neither question nor history holds, another language.
    """
    if not rewritten.strip():
        return "it is empty"
    if any(c.isalpha() for c in question) and is_han(rewritten) != is_han(question):
        return "it is in another language"
    said = " ".join([question, *history])
    lost = [part for part in _told(question) if fold(part) not in fold(rewritten)]
    if lost:
        return f"it loses {lost[0]!r}"
    made = [part for part in (*_capitals(rewritten), *_FIGURE.findall(rewritten)) if not _holds(said, part)]
    if made:
        return f"it brings {made[0]!r}"
    return _foreign(rewritten, said) if is_han(rewritten) else ""


def _told(question: str) -> list[str]:
    """The names and figures of a question."""
    # The segments of a Chinese question may hold function words; only what has the look of a name counts.
    names = [name.text for name in named(question) if not is_han(question) or name.kind != "thing"]
    return [*names, *_FIGURE.findall(question)]


def _capitals(text: str) -> list[str]:
    return [word for word in _CAPITAL.findall(text) if word.lower() not in OPENERS]


def _holds(said: str, part: str) -> bool:
    """Whether a word or figure was said, as a whole; a possessive is none of it."""
    bare = re.sub(r"['’]s?$", "", part)
    if bare[:1].isdigit():
        return bare in _FIGURE.findall(said)
    return fold(bare) in {re.sub(r"['’]s?$", "", word) for word in WORD.findall(fold(said))}


def _foreign(rewritten: str, said: str) -> str:
    """A Chinese name that nobody said."""
    for name in named(rewritten):
        if name.text not in said and name.kind != "thing" and not re.search(f"[^{CJK}]", name.text):
            return f"it brings {name.text!r}"
    terms = content_terms(rewritten)
    known = sum(term in fold(said) for term in terms)
    return "" if known >= _SHARE_SAID * len(terms) else "it asks of something else"
