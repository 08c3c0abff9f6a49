"""Rendering of a structure in the form that its type has: markdown, triples, pseudo-code, numbered lines or text.

(StructRAG, section 2.3: the knowledge k_i of each type.) Figures stand as in the source.
"""

from collections.abc import Callable, Mapping, Sequence

from prompts.structures.checks import StructureName
from prompts.text.evidence import Evidence
from prompts.text.spans import names_of
from prompts.text.words import fold_name, is_han

_OPENERS = frozenset("if when whenever unless until once before after in only as where".split())
# From so many cells in a hundred on, a table is written with a column for each attribute.
_DENSE = 50


def rendered(structure: StructureName, elements: Sequence[Evidence]) -> str:
    """The elements as text; empty where there is none."""
    return _FORMS[structure](elements) if elements else ""


def _table(elements: Sequence[Evidence]) -> str:
    """Rows by columns where most of the cells are there, else one cell a line."""
    rows = list(dict.fromkeys(element.label for element in elements))
    columns = list(dict.fromkeys(element.attribute for element in elements))
    cells: dict[tuple[str, str], list[str]] = {}
    for element in elements:
        cells.setdefault((element.label, element.attribute), []).append(element.value)
    if 100 * len(cells) >= _DENSE * len(rows) * len(columns):
        table = [["", *columns], *([row, *("; ".join(cells.get((row, one), ())) for one in columns)] for row in rows)]
    else:
        table = [["row", "column", "cell"], *([one.label, one.attribute, one.value] for one in elements)]
    lines = [_row(line) for line in table]
    return "\n".join([lines[0], _row(["---"] * len(table[0])), *lines[1:]])


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in cells) + " |"


def _graph(elements: Sequence[Evidence]) -> str:
    """Typed triples, one a line: "Ilse Marrand (person) -[founded]-> Marrand & Oke (organisation)"."""
    kinds = kinds_in(elements)
    return "\n".join(
        dict.fromkeys(f"{_typed(one.label, kinds)} -[{one.attribute}]-> {_typed(one.value, kinds)}" for one in elements)
    )


def kinds_in(elements: Sequence[Evidence]) -> dict[str, str]:
    """The kinds of the names in the sentences (person, place, organisation, …), where the text tells them."""
    found: dict[str, str] = {}
    for element in elements:
        for name in (*names_of(element.text), *names_of(element.title)):
            if name.kind not in {"", "thing", "name"}:
                found.setdefault(fold_name(name.text), name.kind)
    return found


def _typed(end: str, kinds: Mapping[str, str]) -> str:
    kind = kinds.get(fold_name(end))
    return f"{end} ({kind})" if kind else end


def _algorithm(elements: Sequence[Evidence]) -> str:
    """One step a line, in order; its condition before it, in the words of the source ("IF the alarm sounds: …")."""
    lines = []
    for number, step in enumerate(elements, 1):
        condition = "" if step.attribute in {"", "step"} else f"{_opened(_line(step.attribute))}: "
        lines.append(f"{step.label or number}. {condition}{_line(step.value)}")
    return "\n".join(lines)


def _opened(condition: str) -> str:
    word, _, rest = condition.partition(" ")
    if is_han(condition):
        return condition
    return f"{word.upper()} {rest}" if word.lower() in _OPENERS else f"IF {condition}"


def _catalogue(elements: Sequence[Evidence]) -> str:
    return "\n".join(f"{'  ' * element.label.count('.')}{element.label} {_line(element.value)}" for element in elements)


def _chunk(elements: Sequence[Evidence]) -> str:
    return "\n".join(_line(element.text) for element in elements)


def _line(text: str) -> str:
    return " ".join(text.split())


_FORMS: dict[StructureName, Callable[[Sequence[Evidence]], str]] = {
    "table": _table,
    "graph": _graph,
    "algorithm": _algorithm,
    "catalogue": _catalogue,
    "chunk": _chunk,
}
