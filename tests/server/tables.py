"""What does the scripted model answer where a question over tables is to be planned?"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.server.words import figures

_OF = re.compile(r"\b(?:the|their) (?P<attribute>\w+(?: \w+)?)$|(?P<last>\w+)$")


@dataclass(frozen=True, slots=True)
class TablePlan:
    """A list of all figures of an attribute, or no plan."""

    operation: str
    attribute: str
    things: tuple[str, ...] = ()
    noun: str = ""
    periods: tuple[str, ...] = ()
    order: str = "descending"
    many: int = 1
    measure: str = ""
    bands: tuple[str, ...] = ()


def plan_table(fields: Mapping[str, str | Sequence[str]]) -> TablePlan:
    """The figures of what the question ends with, in order; no plan for a question that begins with "who"."""
    question = str(fields["question"]).rstrip(" ?.")
    if question.lower().startswith("who"):
        return TablePlan("none", "")
    named = _OF.search(question)
    return TablePlan("list", (named["attribute"] or named["last"]) if named else question)


@dataclass(frozen=True, slots=True)
class Cell:
    """A figure with its sentence."""

    thing: str
    attribute: int
    raw: str
    period: str
    sentence: int


@dataclass(frozen=True, slots=True)
class Table:
    """The cells of a document."""

    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Schema:
    """The columns of a table."""

    things: tuple[str, ...]
    attributes: tuple[str, ...]
    periods: tuple[str, ...]


def fill_table(fields: Mapping[str, str | Sequence[str]]) -> Table:
    """The first figure of each sentence, without the signs between its digits, as models write them."""
    found = []
    for place, sentence in enumerate(fields["sentences"]):
        told = figures(sentence.partition("] ")[2])
        if told:
            found.append(Cell(str(fields["title"]), 0, told[0].replace(",", ""), "", place))
    return Table(tuple(found))


def find_schema(fields: Mapping[str, str | Sequence[str]]) -> Schema:
    """The question's last two words."""
    return Schema((), (" ".join(str(fields["question"]).rstrip(" ?.").split()[-2:]),), ())
