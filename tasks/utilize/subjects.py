"""Which documents or rows are the things that a question asks about, and by which names?"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from prompts.language.words import fold, is_han
from storage.structures import Cell

_WORD = re.compile(r"[^\W_]+")
_YEAR = re.compile(r"(?<!\d)((?:19|20)\d{2})(?!\d)")
# What a company's legal form adds to its name.
_FORMS = frozenset(
    "inc incorporated corp corporation co company ltd limited partnership llc lp plc trust group holdings the".split()
)


@dataclass(frozen=True)
class Subject:
    """A document as a thing: its id and title, the names of what it is about (the first one is shown; none: its
    title is), and its cells."""

    document: str
    title: str
    names: tuple[str, ...]
    cells: tuple[Cell, ...]

    @property
    def name(self) -> str:
        """What it is called in an answer."""
        return self.names[0] if self.names else self.title

    @property
    def year(self) -> str:
        """The year by which the document is known: of its title, else of its id; empty where neither has one."""
        found = _YEAR.search(self.title) or _YEAR.search(self.document)
        return found[1] if found else ""

    def is_one_with(self, other: "Subject") -> bool:
        """Whether two documents are about one thing: two reports of a company."""
        return any(same_name(own, theirs) for own in self.names for theirs in other.names)

    def is_called(self, name: str) -> bool:
        """Whether a name is one of the document's own, or its title or id (a file's name) has it."""
        called = f"{self.title} {self.document}"
        return any(same_name(name, own) for own in self.names) or holds_name(called, name)


def proper(names: Sequence[str]) -> tuple[str, ...]:
    """Those of the names that are more than a legal form."""
    return tuple(name for name in names if is_han(name) or _plain(_words(name)))


def same_name(one: str, other: str) -> bool:
    """Whether two names are one, case, punctuation and the legal form aside; of Chinese ones one may hold the other."""
    if is_han(one) and is_han(other):
        first, second = fold(one), fold(other)
        return first in second or second in first
    first_words, second_words = _words(one), _words(other)
    return bool(first_words) and (first_words == second_words or [] != _plain(first_words) == _plain(second_words))


def holds_name(text: str, name: str) -> bool:
    """Whether a text has a name as whole words."""
    if is_han(name):
        return fold(name) in fold(text)
    words = _plain(_words(name)) or _words(name)
    return bool(words) and f" {' '.join(words)} " in f" {' '.join(_words(text))} "


def named_in(question: str, subjects: Sequence[Subject]) -> list[Subject]:
    """The documents that the question names, in the question's order."""
    places = []
    folded = f" {' '.join(_words(question))} "
    for subject in subjects:
        at = [place for name in subject.names if (place := _place(name, question, folded)) >= 0]
        if at:
            places.append((min(at), subject))
    return [subject for _, subject in sorted(places, key=lambda one: one[0])]


def _place(name: str, question: str, folded: str) -> int:
    if is_han(name):
        return fold(question).find(fold(name))
    words = _plain(_words(name)) or _words(name)
    return folded.find(f" {' '.join(words)} ") if words else -1


def without_names(attribute: str, subjects: Sequence[Subject]) -> str:
    """An attribute without the names of things that were taken for a part of it."""
    text = attribute
    for subject in subjects:
        for name in subject.names:
            if is_han(name):
                text = text.replace(f"{name}的", "").replace(name, "")
            else:
                text = re.sub(rf"\s*\b(?:of|for|at)?\s*{re.escape(name)}(?:['’]s)?\b\.?", " ", text, flags=re.I)
    return " ".join(text.split()) or attribute


def _words(text: str) -> list[str]:
    return _WORD.findall(fold(text).replace("'", "").replace("’", ""))


def _plain(words: Sequence[str]) -> list[str]:
    return [word for word in words if word not in _FORMS]
