"""What does the scripted model answer where a question over tables is to be planned?"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

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
