"""A piece of evidence: one sentence, table row, triple or step of a document, with where it
stands.
"""

from typing import NamedTuple


class Evidence(NamedTuple):
    """A quotable unit; a question makes hundreds. `before` is the sentence before it, `prior` the
    rank of its passage (1 best, 0 worst).

    `label`, `attribute` and `value` are filled where the unit is structured: a triple, a step, a
    catalogue line. `cells` are the (column, value) pairs of a table row. `start` is its first code
    point in the document, `chunk` the passage that holds that.
    """

    number: int
    document: str
    title: str
    text: str
    heading: str = ""
    before: str = ""
    prior: float = 0.0
    label: str = ""
    attribute: str = ""
    value: str = ""
    cells: tuple[tuple[str, str], ...] = ()
    chunk: str = ""
    start: int = 0

    @property
    def end(self) -> int:
        return self.start + len(self.text)


def cells_of(line: str) -> tuple[tuple[str, str], ...]:
    """The (column, value) pairs of a table row written as `column: value | column: value`, or
    nothing.
    """
    if " | " not in line or line.lstrip().startswith("|"):
        return ()
    pairs = [part.split(": ", 1) for part in line.split(" | ")]
    return tuple((pair[0].strip(), pair[1].strip()) for pair in pairs if len(pair) == 2)


def row_of(line: str) -> tuple[str, ...]:
    """The cells of a Markdown table row (`| a | b |`), or nothing."""
    text = line.strip()
    if not (text.startswith("|") and text.endswith("|") and len(text) > 2):
        return ()
    return tuple(cell.strip() for cell in text[1:-1].split("|"))
