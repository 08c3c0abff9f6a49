"""What a question over tables returns: the figures with their places, and the sentence that states them."""

from storage.record import Record


class TableCell(Record):
    """A cell of a document's table; `text[start:end] == raw`, where `text` is the stored text of the document."""

    document: str
    start: int
    end: int
    raw: str
    # What the row and the column are called there.
    row: str
    column: str


class TableResult(Record):
    """The outcome of a plan over tables.

    `table` is Markdown: the rows that the result rests on, as many as are shown. `sentence` states it in the question's
    language with the raw figures, `values` are the bare answers, `plan` says in words what was done. A plan that names
    what no table has gives a result without cells, whose `plan` says what does not fit.
    """

    table: str = ""
    sentence: str = ""
    values: tuple[str, ...] = ()
    cells: tuple[TableCell, ...] = ()
    plan: str = ""
