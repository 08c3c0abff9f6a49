"""What stands in rows that name their columns (`Bridge: Orla | Length (m): 412`), as spreadsheets are stored?"""

from collections.abc import Iterator

from tasks.structurize.grids import Above, Entry, Row, label_of


def named_row(text: str, start: int, end: int, above: Above, table: int) -> Iterator[Row]:
    """The row at `start`..`end` whose cells name their columns; nothing where the line is of another form."""
    parts = []
    at = start
    for piece in text[start:end].split(" | "):
        column, colon, value = piece.partition(": ")
        left = at + len(column) + 2 if colon else at
        left += len(value if colon else piece) - len((value if colon else piece).lstrip())
        parts.append((label_of(column) if colon else "", left, at + len(piece.rstrip())))
        at += len(piece) + 3
    if sum(1 for column, _, _ in parts if column) * 2 < len(parts) or len(parts) < 2:
        return
    label = label_of(text[parts[0][1] : parts[0][2]])
    entries = [Entry(left, right, column) for column, left, right in parts[1:] if right > left]
    yield Row(
        label, start, start + len(text[start:end].rstrip()), entries,
        above.heading, "", above.context, above.caption, table,
    )  # fmt: skip
