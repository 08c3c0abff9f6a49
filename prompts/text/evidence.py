"""Evidence: a sentence, table row, triple or step of a document, and where it stands."""

from typing import NamedTuple


class Evidence(NamedTuple):
    """A quotable unit. A tuple, as a question makes hundreds.

    `before` is the sentence before it, `prior` the rank of its passage (1 best, 0 worst). `label`,
    `attribute` and `value` are set for structured units, `cells` for table rows (column, value).
    `start` is its place in the document, `chunk` the passage around it.
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
    """Return the (column, value) pairs of a row `column: value | column: value`, else nothing."""
    if " | " not in line or line.lstrip().startswith("|"):
        return ()
    pairs = [part.split(": ", 1) for part in line.split(" | ")]
    return tuple((pair[0].strip(), pair[1].strip()) for pair in pairs if len(pair) == 2)


def row_of(line: str) -> tuple[str, ...]:
    """Return the cells of a Markdown table row (`| a | b |`), else nothing."""
    text = line.strip()
    if not (text.startswith("|") and text.endswith("|") and len(text) > 2):
        return ()
    return tuple(cell.strip() for cell in text[1:-1].split("|"))
