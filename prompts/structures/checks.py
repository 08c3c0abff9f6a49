"""Checks of a structure's elements: each must say, in its words and figures, what its sentence says.

Published structurizers change figures while they copy them (StructRAG, section 5). Here every element is compared with
the sentence that it names; what differs is counted and told.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

from prompts.text.concepts import concept_terms
from prompts.text.evidence import Evidence
from prompts.text.words import fold_name

StructureName = Literal["table", "graph", "algorithm", "catalogue", "chunk"]
# The share of an element's words that its sentence (with title and heading) must have.
SAID = 0.6
_FIGURE = re.compile(r"\d(?:[\d.,:/\u00a0-]*\d)?")
_NUMBERED = re.compile(r"\d+(?:\.\d+)*")


def unverified(structure: StructureName, elements: Sequence[Evidence]) -> int:
    """How many elements do not say, in words and figures of their own sentence, what that sentence says.

    A paraphrase, or a name in place of a pronoun, is among them: a flag, no reason to refuse it.
    """
    holds = _HOLDS[structure]
    return sum(not holds(element) for element in elements)


def has_figures(said: str, source: str) -> bool:
    """Whether every figure of a statement stands in its source exactly as written ("1,308,463" is not "1308463")."""
    known = set(_FIGURE.findall(source))
    return all(figure in known for figure in _FIGURE.findall(said))


def numbered(lines: Sequence[Evidence]) -> list[Evidence]:
    """Catalogue lines under valid hierarchical numbers (1, 1.1, 1.2, 2): no gap, no number twice, no child alone.

    The depth of each line is kept where it has a line above it, one deeper at most; the order of the lines is theirs.
    """
    counters: list[int] = []
    made = []
    for line in lines:
        depth = min(_depth(line.label), len(counters) + 1)
        counters = [*counters[: depth - 1], (counters[depth - 1] if len(counters) >= depth else 0) + 1]
        made.append(replace(line, label=".".join(map(str, counters))))
    return made


def _depth(label: str) -> int:
    found = _NUMBERED.search(label)
    return found.group().count(".") + 1 if found else 1


def _around(element: Evidence) -> str:
    return f"{element.title}\n{element.heading}\n{element.before}\n{element.text}"


def _cell(element: Evidence) -> bool:
    """The cell stands in the sentence or row, character by character; its row is named near it."""
    return bool(element.value.strip()) and element.value in element.text


def _triple(element: Evidence) -> bool:
    """Both ends are named in the sentence or in what it hangs on, one of them in the sentence itself."""
    ends = [fold_name(end) for end in (element.label, element.value)]
    here, near = f" {fold_name(element.text)} ", f" {fold_name(_around(element))} "
    return all(end and _named(end, near) for end in ends) and any(_named(end, here) for end in ends)


def _named(name: str, text: str) -> bool:
    return f" {name} " in text or (not name.isascii() and name in text)


def _line(element: Evidence) -> bool:
    """A step or a catalogue line says, in words of its source, nothing that is not there; its figures stand there."""
    return (
        bool(element.value.strip())
        and _covered(element.value, element)
        and has_figures(element.value, _around(element))
    )


def _covered(said: str, element: Evidence) -> bool:
    terms = set(concept_terms(said))
    return not terms or len(terms & set(concept_terms(_around(element)))) >= SAID * len(terms)


_HOLDS: dict[StructureName, Callable[[Evidence], bool]] = {
    "table": _cell,
    "graph": _triple,
    "algorithm": _line,
    "catalogue": _line,
    "chunk": lambda element: True,
}
