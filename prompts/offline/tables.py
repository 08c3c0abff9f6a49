"""Rows of tables: the things they name, and what they say of the thing in their first cell.

Two forms of rows: `name: Kestrel Bridge | designer: Tobias Wren` (every cell with its column), and Markdown's
`| Kestrel Bridge | Tobias Wren |` under a header line and a rule.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from prompts.text.common import usually_lower
from prompts.text.kinds import kind_of_words
from prompts.text.names import NameSpan
from prompts.text.names_zh import is_generic, kind_of
from prompts.text.relations import Statement
from prompts.text.words import CJK, STOPWORDS

_LABELLED = re.compile(r"\s*([^:|]{1,40}?): (\S.*)$", re.S)
_RULE = re.compile(r"[\s|:\-]*-[\s|:\-]*$")
_WORD = re.compile(r"[^\W_]+(?:[-'’.&][^\W_]+)*\.?|&")
_HAN_NAME = re.compile(rf"[{CJK}·]{{2,14}}$")
_LINKING = frozenset("of the de la du del von van der den and for & y".split())
_MOST_WORDS, _LONGEST = 8, 80


@dataclass(frozen=True, slots=True)
class _Cell:
    label: str
    text: str
    start: int


def table_facts(text: str, rows: Sequence[tuple[int, int]]) -> tuple[list[NameSpan], list[Statement]]:
    """The names that fill whole cells, and `first cell -[column]-> cell` for each row.

    `rows` are the spans of the rows, in order; those of no recognised table yield nothing.
    """
    names: list[NameSpan] = []
    said: list[Statement] = []
    for start, end, cells in _read(text, rows):
        things = [(cell, thing) for cell in cells if (thing := _name(cell)) is not None]
        names += [thing for _, thing in things]
        if not things or things[0][0] is not cells[0]:
            continue
        subject = things[0][1].text
        said += [
            Statement(subject, thing.text, cell.label, start, end)
            for cell, thing in things[1:]
            if cell.label and thing.text != subject
        ]
    return names, said


def _read(text: str, rows: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int, list[_Cell]]]:
    """The rows of tables as cells with their labels."""
    header: list[str] = []
    above: list[str] = []
    last = -1
    for start, end in rows:
        if text[last:start].strip() or text.count("\n", max(last, 0), start) > 1:
            header, above = [], []
        last = end
        line = text[start:end]
        cells = _cells(line, start)
        if _RULE.match(line) and "-" in line:
            header = above
            continue
        above = [cell.text for cell in cells]
        labelled = [match for cell in cells if (match := _LABELLED.match(cell.text))]
        if len(labelled) > 1 and len(labelled) == len(cells):
            yield start, end, [_split(cell) for cell in cells]
        elif header and len(cells) <= len(header):
            yield (
                start,
                end,
                [_Cell(_label(name), cell.text, cell.start) for name, cell in zip(header, cells, strict=False)],
            )


def _cells(line: str, start: int) -> list[_Cell]:
    """The stripped cells of a line; the bars that frame a Markdown row make none."""
    found, at = [], 0
    for piece in line.split("|"):
        text = piece.strip()
        if text or 0 < at < len(line) - len(piece):
            found.append(_Cell("", text, start + at + len(piece) - len(piece.lstrip())))
        at += len(piece) + 1
    return found


def _split(cell: _Cell) -> _Cell:
    match = _LABELLED.match(cell.text)
    if match is None:
        return cell
    return _Cell(_label(match.group(1)), match.group(2).strip(), cell.start + match.start(2))


def _label(name: str) -> str:
    return " ".join(name.strip("*_ ").replace("_", " ").lower().split())


def _name(cell: _Cell) -> NameSpan | None:
    """The cell as a name, where all of it looks like one."""
    text = cell.text
    if not text or len(text) > _LONGEST:
        return None
    kind = ""
    if _HAN_NAME.match(text):
        kind = "" if is_generic(text) else kind_of(text)
    elif _looks_like_name(text):
        kind = kind_of_words([word.lower().rstrip(".") for word in _WORD.findall(text)]) or "thing"
    return NameSpan(text, cell.start, cell.start + len(text), kind) if kind else None


def _looks_like_name(text: str) -> bool:
    words = _WORD.findall(text)
    if (
        not text[0].isalnum()
        or not 0 < len(words) <= _MOST_WORDS
        or (any(c in text for c in ".!?;:") and "." not in text)
    ):
        return False
    capital = [word for word in words if word[0].isupper()]
    if not capital or not words[0][0].isupper() or max(map(len, capital)) < 2:
        return False
    if any(word not in _LINKING and not word[0].isupper() and not word[0].isdigit() for word in words):
        return False
    return len(words) > 1 or not (words[0].lower() in STOPWORDS or usually_lower(words[0]))
