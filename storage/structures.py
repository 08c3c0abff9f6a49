"""What the knowledge structures of a question are made of (StructRAG, section 2.3): records with their place."""

from storage.record import Record


class Cell(Record):
    """One figure (or word) of a document's table or sentence: where it stands and what it means.

    `source[start:end] == raw` and `source[quote_start : quote_start + len(quote)] == quote`, where `source` is the
    stored text of the document.
    """

    document: str
    title: str
    # Labels as written: "Accounts payable", "March 31, 2024".
    row: str
    column: str
    raw: str
    # The value with its sign and scale: "(0.63)" is -0.63, "$1,308" in thousands 1308000.0; None where it is no figure.
    number: float | None
    # "USD", "CNY", "%", "shares", … ; empty where it cannot be told.
    unit: str
    # What the heading of the table says ("in thousands" is 1000.0); already applied in `number`.
    scale: float = 1.0
    # "2024-03-31", "2023", "2024-Q1", … ; empty where it cannot be told.
    period: str
    # The row or sentence.
    quote: str
    start: int
    end: int
    quote_start: int
    # Of the section or table: "Consolidated balance sheets".
    heading: str = ""
    # Ordinal of the table in its document; -1: read from a sentence.
    table: int = 0
    # The attribute of the schema that the cell answers, else empty.
    attribute: str = ""


class Schema(Record):
    """The schema pass: what the question needs of every document, so that the columns of different documents align.

    `things` are the names that are asked about (none: every document is one), `attributes` as the question writes
    them, `periods` as in `Cell.period`.
    """

    things: tuple[str, ...]
    attributes: tuple[str, ...]
    periods: tuple[str, ...] = ()
