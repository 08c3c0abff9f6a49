"""Which rows does a text hold: of Markdown tables, of flattened tables, of spreadsheets, and of sentences?"""

import re
from collections.abc import Iterator

from tasks.structurize.grids import Above, Row
from tasks.structurize.layout import Layout
from tasks.structurize.named_rows import named_row
from tasks.structurize.pipes import Pipes
from tasks.structurize.sentences import pairs, stated
from tasks.structurize.stacked import Stacked

_DIGIT = re.compile(r"\d")


def rows_in(text: str) -> Iterator[Row]:
    """All rows of a text in order; `text` is flattened (`grids.flattened`). Linear in its length."""
    above = Above()
    pipes, layout, stacked = Pipes(text, above), Layout(text, above), Stacked(text, above)
    lines = _lines(text)
    named = -1
    for place, (start, end) in enumerate(lines):
        line = text[start:end]
        if line.startswith("|") or line.lstrip().startswith("|"):
            yield from stacked.close()
            yield from layout.close()
            following = text[slice(*lines[place + 1])] if place + 1 < len(lines) else ""
            yield from pipes.line(start, end, following)
            continue
        found = list(named_row(text, start, end, above, named)) if " | " in line and ": " in line else []
        if found:
            if named < 0:
                named = found[0].table = above.begin()
            yield from layout.close()
            yield from found
            continue
        named = -1
        yield from stacked.line(start, end)
        if stacked.figures:
            continue
        yield from layout.line(start, end)
        if _DIGIT.search(line):
            yield from stated(text, start, layout.labelled(start, end), above)
        if "：" in line and len(line) < 200:
            yield from pairs(text, start, end, above)
    yield from stacked.close()
    yield from layout.close()


def _lines(text: str) -> list[tuple[int, int]]:
    """The span of each line that is not blank."""
    spans, start = [], 0
    for line in text.split("\n"):
        if line.strip():
            spans.append((start, start + len(line)))
        start += len(line) + 1
    return spans
