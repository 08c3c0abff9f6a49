"""Which names does a text say mean the same?

"X, also known as Y", "X (Y)" where Y abbreviates X, and 中文(English). Only what a text states; likeness decides
nothing here.
"""

import re
from collections.abc import Iterator
from itertools import pairwise

from prompts.language.names import NameSpan
from prompts.language.words import is_han

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
