"""How do people write names? In lower case, and with a slip of the pen in each: questions made worse on purpose."""

import random
import re
from collections.abc import Iterator

from prompts.text.words import STOPWORDS

_WORD = re.compile(r"[^\W_][\w'’.&-]*")
_OWN = re.compile(r"['’]s?$")
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_SHORTEST = 4


def lowered(question: str) -> str:
    """The question in lower case."""
    return question.lower()


def misspelt(question: str, seed: int = 1) -> str:
    """The question with one slip in the longest word of each name: two letters swapped, one lost, replaced or added,
    not at the word's ends. A name is a run of words with a capital; the same seed gives the same slips."""
    chance = random.Random(f"{seed}:{question}")  # noqa: S311 - slips of the pen, no secrets
    for start, word in reversed(list(_longest_words(question))):
        at = start + chance.randrange(1, len(word) - 1)
        here, after = question[at], question[at + 1]
        kind, letter = chance.choice("slra"), chance.choice([other for other in _LETTERS if other != here])
        if kind == "s" and here == after:
            kind = "l"
        slip = {"s": after + here, "l": "", "r": letter, "a": letter + here}[kind]
        question = question[:at] + slip + question[at + (2 if kind == "s" else 1) :]
    return question


def _longest_words(question: str) -> Iterator[tuple[int, str]]:
    """Where the longest word of each name begins, and the word; names of short words alone are left out."""
    run: list[tuple[int, str]] = []
    for match in [*_WORD.finditer(question), None]:
        if match is not None and match.group()[0].isupper() and (match.start() or not _asks(match.group())):
            run.append((match.start(), _OWN.sub("", match.group())))
            continue
        start, word = max(run, key=lambda one: len(one[1]), default=(0, ""))
        if len(word) >= _SHORTEST:
            yield start, word
        run = []


def _asks(word: str) -> bool:
    return word.lower() in STOPWORDS
