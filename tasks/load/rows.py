"""JSON, tables and graphs: rows that are documents or triples, and all others as text.

A row with `text` is a document; a row with `s`, `p`, `o` and no `text` is a triple (optional `weight`, `document`);
anything else is a dead letter, and the rest goes on. Names are kept as written, but for line breaks and outer space.
"""

import csv
import io
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

from pydantic import Field, TypeAdapter, ValidationError

from prompts.text.regex import regex
from prompts.text.words import STOPWORDS
from storage.errors import UsageError
from storage.records import DeadLetter, Part, Record, Triple
from tasks.load.discover import SourceFile, printable
from tasks.load.text import (
    LARGEST_DOCUMENT,
    Unreadable,
    clean,
    one_line,
    pretty_stem,
    scalars,
    shortened,
    stem,
    title_of,
)

if TYPE_CHECKING:
    import networkx as nx

_REMEDY = "Give the row a `text` (a document) or `s`, `p` and `o` (a triple), then index again."
# A longer one is cut by passages, and then none of them holds it.
_LONGEST_TRIPLE = 1000
_MOST_LETTERS = 1_000  # of one file: what is wrong with the rest is only counted
_MOST_FAILED = 1_000_000  # of one file: it is no list of rows
MOST_DOCUMENTS = 2_000_000  # of a run, which holds some 3 kB of memory for each beside its text
MOST_CELLS = 4_000_000  # of a table, or values of a JSON text: some 200 bytes of memory each
_LINE = regex(r"[^\n]*\n|[^\n]+")
_RESERVED = frozenset({"id", "title", "text"})
_TRIPLE_COLUMNS = frozenset({"s", "p", "o", "weight", "document"})
_PREDICATES = ("predicate", "relation", "label")
_WEIGHT = TypeAdapter(Annotated[float, Field(gt=0, allow_inf_nan=False)])
_FIGURE = regex(r"[-+(]?(?:[$€£¥] ?)?[-+(]?\d[\d.,' ]*[%€£¥]?\)?$")
_YEAR = regex(r"[12]\d{3}$")
_LARGEST_FIELD = 1 << 28
_DELIMITERS = "\t;|,"
_NO_DELIMITER, _END = "\x01", "\x02"  # signs that no stored text holds
_NAMED_DELIMITER = regex(r'"?sep=([^\n"])"?[ \t]*(?:\n|$)', re.IGNORECASE)
_QUOTED = regex(r'"[^"]*"')
_SAMPLE = 1_000_000  # characters by which the delimiter is chosen
_MOST_HEADER_LINES = 3
_MOST_COLUMNS = 1_000  # of a merged region in a header
Table = Sequence[Sequence[str]]
Merged = Mapping[int, Sequence[tuple[int, int]]]  # of a row: first and last column of each region


class Rows(Record):
    """What the rows of one file became."""

    parts: tuple[Part, ...]
    dead_letters: tuple[DeadLetter, ...]


class BadRow(Exception):
    """A row is neither a document nor a triple; the text says why."""


class TooManyDocuments(UsageError):
    """Sources of more documents than a run can hold."""

    def __init__(self, most: int) -> None:
        super().__init__(
            f"The sources hold more than {most:,} documents.",
            "Index them into several workspaces, or put what belongs together into one document.",
        )


def read_jsonl(text: str, file: SourceFile, most: int = MOST_DOCUMENTS) -> Rows:
    """The rows of a JSON Lines text; blank lines are no rows. Raises TooManyDocuments."""
    # One at a time: there may be some 100 million.
    lines = enumerate(map(re.Match.group, _LINE.finditer(text.removeprefix("\ufeff"))), 1)
    return collect(((number, _parsed(line)) for number, line in lines if line.strip()), file, most)


def collect(rows: Iterable[tuple[int, object]], file: SourceFile, most: int = MOST_DOCUMENTS) -> Rows:
    """Documents in row order, then one triples part per document named; `rows` are (line, parsed row or `BadRow`)."""
    parts: list[Part] = []
    dead: list[DeadLetter] = []
    failed = 0
    triples: dict[str, dict[tuple[str, str, str], float]] = defaultdict(lambda: defaultdict(float))
    for line, row in rows:
        if len(parts) + len(triples) > most:
            raise TooManyDocuments(most)
        try:
            if isinstance(row, BadRow):
                raise row
            if not isinstance(row, dict):
                raise BadRow(f"not an object but a {type(row).__name__}")
            text = _text(row)
            if text is not None:
                parts.append(_text_part(row, text, line, file))
            else:
                triple = _triple(row)
                triples[_identifier(row.get("document")) or file.id][triple.s, triple.p, triple.o] += triple.weight
        except BadRow as bad:
            failed += 1
            if failed <= _MOST_LETTERS:
                dead.append(_letter(file, f":{line}", str(bad)))
            if failed == _MOST_FAILED:
                break
    if failed > _MOST_LETTERS:
        rest = "; what follows is not read" if failed == _MOST_FAILED else ""
        words = f"{failed - _MOST_LETTERS:,} further rows are neither documents nor triples{rest}"
        dead.append(_letter(file, "", words))
    parts += [_triples_part(document, weights, file) for document, weights in triples.items()]
    return Rows(parts=tuple(parts), dead_letters=tuple(dead))


def _letter(file: SourceFile, line: str, error: str) -> DeadLetter:
    return DeadLetter(item=f"{printable(file.path)}{line}", step="load", error=error, remedy=_REMEDY)


def _parsed(line: str) -> object:
    if len(line) > LARGEST_DOCUMENT:
        return BadRow("longer than 100 MB")
    try:
        return parse_json(line)
    except Unreadable as reason:
        return BadRow(str(reason))


def parse_json(text: str, figures: type[str] | None = None) -> object:
    """The value of a JSON text, figures as they are written where they are to be `str`.

    Raises `Unreadable` where it is broken, or begins more values than memory should hold: what is counted are brackets
    and commas, those in strings too.
    """
    if sum(map(text.count, "[{,")) > MOST_CELLS:
        raise Unreadable(f"JSON of more than {MOST_CELLS:,} values: divide it, or make it JSON Lines")
    try:
        # Control characters inside strings are no reason to lose a row: they are cleaned away later.
        return json.loads(text, strict=False, parse_float=figures, parse_int=figures)
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"broken JSON ({error})") from error


def _text(row: Mapping[str, object]) -> str | None:
    text = row.get("text")
    if text is None:
        return None
    if not isinstance(text, str):
        raise BadRow(f"`text` is not a string but a {type(text).__name__}")
    cleaned = clean(text)
    if cleaned.strip():
        return cleaned
    if "s" in row:
        return None
    raise BadRow("`text` is empty")


def _text_part(row: Mapping[str, object], text: str, line: int, file: SourceFile) -> Part:
    own = _identifier(row.get("id"))
    own_title = row.get("title")
    title = one_line(clean(own_title)) if isinstance(own_title, str) else ""
    return Part(
        document=own or f"{file.id}#{line}",
        source=file.source,
        path=f"{file.path}:{line}",
        kind="text",
        title=shortened(title) or opening_subject(text) or title_of(text, own or f"{pretty_stem(file.id)} {line}", {}),
        text=text,
        metadata=scalars({key: value for key, value in row.items() if key not in _RESERVED}),
    )


def _identifier(value: object) -> str:
    """An id as text; empty where there is none."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return ""
    return one_line(clean(str(value)))


def _triple(row: Mapping[str, object]) -> Triple:
    if not {"s", "p", "o"} <= set(row):
        raise BadRow("the row has neither `text` nor all of `s`, `p`, `o`")
    s, p, o = names = [_identifier(row[name]) for name in ("s", "p", "o")]
    if not all(names):
        raise BadRow(f"`{'spo'[names.index('')]}` is empty or not a string")
    weight = row.get("weight")
    try:
        triple = Triple(s=s, p=p, o=o, weight=1.0 if weight in (None, "") else _WEIGHT.validate_python(weight))
    except ValidationError as error:
        raise BadRow(f"`weight` is not a number above zero: {weight!r}") from error
    length = len(triple.rendered())
    if length > _LONGEST_TRIPLE:
        raise BadRow(f"the triple has {length} characters, more than {_LONGEST_TRIPLE}: what is so long is a `text`")
    return triple


def _triples_part(document: str, weights: Mapping[tuple[str, str, str], float], file: SourceFile) -> Part:
    triples = tuple(Triple(s=s, p=p, o=o, weight=weight) for (s, p, o), weight in weights.items())
    return Part(
        document=document,
        source=file.source,
        path=file.path,
        kind="triples",
        title=stem(file.id) if document == file.id else document,
        text="\n".join(triple.rendered() for triple in triples),
        triples=triples,
    )


# --- graphs ----------------------------------------------------------------------------------------------------


def graph_file(graph: "nx.Graph") -> SourceFile:
    """The place of a graph that a program gives, by the graph's name."""
    name = one_line(clean(str(graph.name))) or "graph"
    return SourceFile(source=f"networkx:{name}", path=f"networkx:{name}", id=name)


def read_graph(graph: "nx.Graph", file: SourceFile) -> Rows:
    """The edges of a NetworkX graph as triples.

    A node is named by its `name` or `label`, else by itself. An edge says its `predicate`, `relation` or `label`, else
    "related to"; its `weight` and `document` are those of a row. A node without an edge is in no triple.
    """
    names = {node: _first(data, "name", "label") or str(node) for node, data in graph.nodes(data=True)}
    rows = (
        {"s": names[source], "p": _first(data, *_PREDICATES) or "related to", "o": names[target]}
        | {name: data[name] for name in ("weight", "document") if name in data}
        for source, target, data in graph.edges(data=True)
    )
    return collect(enumerate(rows, 1), file)


def _first(data: Mapping[str, object], *names: str) -> object:
    return next((data[name] for name in names if data.get(name)), None)


# --- JSON that is no rows --------------------------------------------------------------------------------------


def readable_json(value: object, name: str = "") -> str:
    """Any JSON as lines of `key: value`, keys joined by dots; a list of flat objects gives one line per object."""
    if isinstance(value, dict):
        names = {key: clean(f"{name}.{key}" if name else str(key)) for key in value}
        return "\n".join(readable_json(inner, names[key]) for key, inner in value.items())
    if not isinstance(value, list) or not any(isinstance(item, dict | list) for item in value):
        return f"{name}: {_shown(value)}" if name else _shown(value)
    if all(
        isinstance(item, dict) and not any(isinstance(inner, dict | list) for inner in item.values()) for item in value
    ):
        # The list's own name stands above the rows, which name their columns as those of a table do.
        rows = (" | ".join(f"{clean(str(key))}: {_shown(inner)}" for key, inner in item.items()) for item in value)
        return "\n".join([f"{name}:", *rows] if name else rows)
    return "\n".join(readable_json(item, f"{name}[{number}]") for number, item in enumerate(value, 1))


def _shown(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(_shown, value))
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    return clean(str(value))


# --- tables --------------------------------------------------------------------------------------


class _Form(NamedTuple):
    """How the rows of a delimited text are cut into cells; most rows have `cells` of them."""

    delimiter: str
    quoting: Literal[0, 3]  # csv.QUOTE_MINIMAL or csv.QUOTE_NONE
    escape: str | None = None
    cells: int = 1


def read_table(text: str, delimiter: str | None) -> list[tuple[int, list[str]]]:
    """(Line from 1, cells) of each row of a delimited text; neighbouring blank lines are one row
    without cells.

    The delimiter is the one that a first line `sep=;` names, else the given one, else the one that
    cuts most lines into the same number of cells; where none does, each line is one cell. A line
    above the table is one cell, and so are a sentence below it and a comment in it.

    Raises `Unreadable` with the parser's reason, or where there are too many cells.
    """
    csv.field_size_limit(_LARGEST_FIELD)
    named = _NAMED_DELIMITER.match(text)
    above = named.group().count("\n") if named else 0
    text, delimiter = (text[named.end() :], named[1]) if named else (text, delimiter)
    given = delimiter if delimiter and delimiter in text else None
    try:
        form = _form_of(text, given, csv.QUOTE_MINIMAL)
        rows = _all_rows(text, form)
        if rows is None:  # a quotation mark never closes: here it is a sign like any other
            form = _form_of(text, given, csv.QUOTE_NONE)
            rows = _all_rows(text, form) or []
    except csv.Error as error:
        raise Unreadable(f"broken table ({error})") from error
    filled = [row for row in rows if row[1]]
    if len(rows) == 2 * len(filled) - 1:  # a blank line after each row says nothing
        rows = filled
    first, last = _edges([cells for _, cells in rows], form)
    table = list[tuple[int, list[str]]]()
    for place, (line, cells) in enumerate(rows):
        comment = len(cells) != form.cells and "".join(cells[:1]).startswith("#")
        whole = comment or not first <= place < last
        table.append((line + above, _as_one_cell(cells, form) if whole else cells))
    if form.cells > 1 and first < len(table):  # a header may be marked as a comment
        head = table[first][1]
        head[0] = head[0].lstrip("# ") or head[0]
    return table


def _form_of(text: str, given: str | None, quoting: Literal[0, 3]) -> _Form:
    """The form that cuts most rows of a text's beginning into one number of cells, two or more.

    Of two that cut as many, the one whose delimiter is not followed by a blank is preferred, as
    punctuation is; then the order of `_DELIMITERS` decides.
    """
    sample = text[:_SAMPLE]
    if len(text) > _SAMPLE:
        sample = sample.rpartition("\n")[0] or sample
    unquoted = _QUOTED.sub("", sample)
    best, most = _Form(given or _NO_DELIMITER, quoting), (0, False)
    for delimiter in given or _DELIMITERS:
        spaced = unquoted.count(f"{delimiter} ") * 2 > unquoted.count(delimiter)
        for escape in (None, "\\") if '\\"' in sample else (None,):
            form = _Form(delimiter, quoting, escape)
            rows = [cells for _, cells in _rows(sample, form) if cells]
            widths = Counter(len(cells) for cells in rows if len(cells) > 1)
            for width, count in widths.most_common(1):
                form = form._replace(cells=width)
                if (count, not spaced) > most and (given or _is_table(rows, form, spaced)):
                    best, most = form, (count, not spaced)
    return best


def _is_table(rows: Sequence[Sequence[str]], form: _Form, spaced: bool) -> bool:
    """Whether the rows are a table, and not a column of sentences or figures with commas in them.

    Where a blank follows the delimiter, all rows have the same number of cells, more than two or
    with figures. Else half of the rows have several cells, and where a title stands above, the
    first of them is a header.
    """
    if spaced and form.delimiter in ",;":
        more = form.cells > 2 or any(map(has_figure, rows))
        return more and all(len(cells) == form.cells for cells in rows)
    first, last = _edges(rows, form)
    titled = not all(cells[0].startswith("#") for cells in rows[:first])
    headed = is_header(rows[first])
    several = sum(len(cells) > 1 for cells in rows[first:last])
    return headed if several * 2 < last - first and not titled else headed or not titled


def _rows(text: str, form: _Form) -> Iterator[tuple[int, list[str]]]:
    """(Line, cells) of each row; a blank one has no cells."""
    reader = csv.reader(
        io.StringIO(text),
        delimiter=form.delimiter,
        quoting=form.quoting,
        escapechar=form.escape,
        skipinitialspace=f'{form.delimiter} "' in text,
    )
    for cells in reader:
        yield reader.line_num, cells if any(cell.strip() for cell in cells) else []


def _all_rows(text: str, form: _Form) -> list[tuple[int, list[str]]] | None:
    """All rows of a text, or None where the last one begins with a quotation mark that nothing
    closes."""
    rows, count = list[tuple[int, list[str]]](), 0
    for line, cells in _rows(f"{text}\n{_END}", form):
        count += len(cells)
        if count > MOST_CELLS:
            raise Unreadable(f"a table of more than {MOST_CELLS:,} cells: divide it")
        if cells or (rows and rows[-1][1]):
            rows.append((line, cells))
    closed = rows.pop()[1] == [_END]
    if rows and not rows[-1][1]:
        rows.pop()
    return rows if closed else None


def _edges(rows: Sequence[Sequence[str]], form: _Form) -> tuple[int, int]:
    """The places of the table's first row and of the end of its last one.

    The first row is the first that is no comment and no sentence and has as many cells as most
    rows, the last of them filled; or the one above it, where that names some of the columns.
    """
    if form.cells < 2 or not rows:
        return 0, len(rows)
    sentences = [len(row) > 1 and all(cell[:1] == " " for cell in row[1:]) for row in rows]
    if sum(sentences) * 2 > len(rows):  # the delimiter is followed by a blank everywhere
        sentences = [False] * len(rows)
    last = len(rows)
    while last and (sentences[last - 1] or not rows[last - 1]):
        last -= 1
    wide = [place for place, row in enumerate(rows[:last]) if len(row) >= form.cells and not sentences[place]]
    while len(wide) > 1 and rows[wide[0]][0].startswith("# ") and is_header(rows[wide[1]]):
        wide.pop(0)
    if not wide:
        return 0, last
    first = next((place for place in wide if rows[place][form.cells - 1].strip()), wide[0])
    above = [] if not first or sentences[first - 1] else [c for c in rows[first - 1] if c.strip()]
    if len(above) > 1 and is_header(above):
        figures = not all(is_header(row) for row in rows[first + 1 : last] if row)
        first -= not (figures and is_header(rows[first]))
    return first, last


def _as_one_cell(cells: Sequence[str], form: _Form) -> list[str]:
    """A line above or below the table, as it is written where it is a sentence."""
    filled = [cell for cell in cells if cell.strip()]
    sentence = all(cell[:1] == " " for cell in filled[1:])
    return [(form.delimiter if sentence else " | ").join(filled)] if filled else []


def triples_header(rows: Sequence[tuple[int, list[str]]]) -> list[str] | None:
    """The column names where the header is `s,p,o[,weight,document]` in any order, else None."""
    names = [cell.strip().lower() for cell in rows[0][1]] if rows else []
    known = {"s", "p", "o"} <= set(names) <= _TRIPLE_COLUMNS
    return names if known and len(set(names)) == len(names) else None


def read_triples(rows: Sequence[tuple[int, list[str]]], names: Sequence[str], file: SourceFile) -> Rows:
    """The triples below the header."""

    def row_of(cells: list[str]) -> object:
        many = BadRow(f"{len(cells)} cells under {len(names)} columns")
        return many if len(cells) > len(names) else dict(zip(names, cells, strict=False))

    return collect(((line, row_of(cells)) for line, cells in rows[1:] if cells), file)


class Marks(Record):
    """What a spreadsheet says beside its cells, by row: the merged regions, and notes by column."""

    merged: Merged = Field(default_factory=dict)
    notes: Mapping[int, Mapping[int, str]] = Field(default_factory=dict)


class _Header(NamedTuple):
    names: list[str]
    rows: int


def table_lines(table: Table, marks: Marks | None = None, names: Sequence[str] = ()) -> list[str]:
    """Rows as lines that repeat the column names (`Bridge: Orla | Length (m): 412`), so that a row
    can be found and cited by itself; its notes stand at its end.

    A row of names above another row is a header, also after an empty row; a lone cell there is a
    remark, and so is a row of one cell in a table of several columns. The lines of a header, groups
    of columns above their names, are one line (`Summer / Boats`). A table that goes on from another
    place has its `names` already.
    """
    marks = marks or Marks()
    rows = [[one_line(cell) for cell in row] for row in table]
    lines: list[str] = []
    begins, characters, at = True, 0, 0
    while at < len(rows):
        row, first = rows[at], at
        filled = [cell for cell in row if cell]
        header = _header(rows, at, bool(names), marks.merged) if begins and filled else None
        at += header.rows if header else 1
        names = header.names if header else names
        notes = [note for noted in range(first, at) for note in _notes(names, marks.notes.get(noted))]
        if header:
            begins = False
            said = [" | ".join(filter(None, names)), " | ".join(notes)]
        elif not filled:
            begins = True
            said = [" | ".join(notes)]
        elif len(filled) == 1 and (begins or len(row) == 1 < len(names)):
            said = [filled[0], " | ".join(notes)]
        else:
            begins = False
            said = [" | ".join(_labelled(names, enumerate(row)) + notes)]
        lines += filter(None, said)
        characters += sum(map(len, said))
        if characters > LARGEST_DOCUMENT:
            raise Unreadable("a table of more than 100 MB, its column names in each line: shorten them or divide it")
    return lines


def column_names(table: Table, merged: Merged) -> Sequence[str]:
    """The column names that the first lines of a table are, if they are."""
    header = _header(table, 0, again=False, merged=merged)
    return header.names if header else ()


def _labelled(names: Sequence[str], cells: Iterable[tuple[int, str]]) -> list[str]:
    """The cells that say something, each after its column's name where it has one."""
    labels = ((names[column] if column < len(names) else "", cell) for column, cell in cells)
    return [f"{label}: {cell}" if label else cell for label, cell in labels if cell]


def _notes(names: Sequence[str], notes: Mapping[int, str] | None) -> list[str]:
    if not notes:
        return []
    last = max(notes)
    labels = [f"{name} (note)" if name else "Note" for name in [*names, *[""] * last][: last + 1]]
    return _labelled(labels, sorted(notes.items()))


def _header(rows: Table, at: int, again: bool, merged: Merged) -> _Header | None:
    """The header that begins at a row, if one does.

    In a table that has names already (`again`), names stand again only above figures, and without
    a gap.
    """
    over: list[str] = []
    if not again and _are_pairs(rows, at):
        return None
    found = [_Header(list(rows[at]), 1)]
    for line in range(at, at + _MOST_HEADER_LINES - 1):
        groups = _groups(rows, line, merged)
        if not groups:
            break
        over = _joined(over, groups)
        found.append(_Header(_joined(over, rows[line + 1]), line + 2 - at))
    for header in reversed(found):
        end = at + header.rows
        row, below = rows[end - 1], rows[end] if end < len(rows) else []
        gap = "" in row[1 : _width(row)] or _width(row) < _width(below)
        doubtful = again and (gap or is_header(below))
        several = sum(map(bool, header.names)) > 1 and not has_figure(row)
        if several and any(below) and not doubtful and is_header(header.names, below):
            return header._replace(names=_numbered(header.names))
    return None


def _are_pairs(rows: Table, at: int) -> bool:
    """Whether rows up to an empty one are names with what they stand for, as above a table, and no
    table of two columns: a wider one follows, and not all of them have figures."""
    end = next((place for place in range(at, len(rows)) if not any(rows[place])), len(rows))
    narrow = all(_width(row) <= 2 for row in rows[at:end])
    wider = any(_width(row) > 2 for row in rows[end : end + 2])
    return narrow and wider and not all(map(has_figure, rows[at + 1 : end]))


def _groups(rows: Table, at: int, merged: Merged) -> list[str]:
    """The group of each column where a row stands over a row of column names; else nothing.

    A group is a merged cell over several names. Without merged cells, gaps of the row are filled
    from the left, where only a row of names would be below: it fills all gaps, and it repeats names
    or leaves out what stands above; figures follow.
    """
    row, below, after = [*rows[at : at + 3], [], []][:3]
    if has_figure(row) or has_figure(below) or not any(after):
        return []
    below = _spread(below, merged.get(at + 1, ()))
    width = max(_width(row), _width(below))
    named = _filled(below)
    if len(named) < 2:
        return []
    if at in merged:
        alone = sum(map(bool, row)) == 1  # from the first column on, it is a title
        wide = [
            (first, last)
            for first, last in merged[at]
            if set(range(first, last + 1)) <= set(named) and not (alone and first <= named[0])
        ]
        return _spread(row, wide) if wide else []
    over, below = ([*cells, *[""] * width][:width] for cells in (row, below))
    if after and not (row[0] or below[0]) and after[0] and _filled(row) == _filled(below):
        return list(row)  # two lines of names, both to the right of what the rows are called
    begins = next((column for column, cell in enumerate(over) if cell), 0)
    gaps = [column for column in range(begins, width) if not over[column]]
    twice = len({below[column] for column in named}) < len(named)
    names_below = twice or any(over[column] and not below[column] for column in range(width))
    if not gaps or not names_below or not set(gaps) <= set(named) or not has_figure(after):
        return []
    for column in gaps:
        over[column] = over[column - 1] if below[column - 1] else ""
    return over if sum(map(bool, row)) > 1 else []


def _spread(row: Sequence[str], merged: Sequence[tuple[int, int]]) -> list[str]:
    """The row with the value of each merged region in all its columns, as far as rows are read."""
    spread = list(row)
    for first, last in merged:
        if last < _MOST_COLUMNS:
            spread += [""] * (last + 1 - len(spread))
            spread[first : last + 1] = [spread[first]] * (last + 1 - first)
    return spread


def _filled(row: Sequence[str]) -> list[int]:
    return [column for column, cell in enumerate(row) if cell]


def _width(row: Sequence[str]) -> int:
    """The number of cells up to the last that says something."""
    return max((place for place, cell in enumerate(row, 1) if cell), default=0)


def _joined(over: Sequence[str], row: Sequence[str]) -> list[str]:
    """Two lines of a header as one; what stands in both, as a cell merged over both, stands once."""
    pairs = zip_longest(over, row, fillvalue="")
    return [above if above == name or not name else f"{above} / {name}" if above else name for above, name in pairs]


def _numbered(names: Sequence[str]) -> list[str]:
    """The names, each that stood before with a number (`Sales`, `Sales 2`)."""
    taken, numbers = set(names), Counter[str]()
    numbered = []
    for name in names:
        numbers[name] += 1
        own = name
        while name and numbers[name] > 1 and (own == name or own in taken):
            own = f"{name} {numbers[name]}"
            numbers[name] += own in taken
        taken.add(own)
        numbered.append(own)
    return numbered


def is_header(cells: Sequence[str], below: Sequence[str] = ()) -> bool:
    """Whether a row names columns: it has no figures other than years, and no name twice unless
    the row below has figures, or none of the names."""
    named = [cell for cell in cells if cell.strip()]
    differs = any(below) and (has_figure(below) or set(named).isdisjoint(below))
    distinct = differs or len(set(named)) == len(named)
    return bool(named) and distinct and not has_figure(named)


def has_figure(cells: Iterable[str]) -> bool:
    """Whether a cell is a figure and no year."""
    written = map(str.strip, cells)
    return any(_FIGURE.match(cell) and not _YEAR.match(cell) for cell in written)


# --- what a text begins with -----------------------------------------------------------------------------------------

_ANY_BRACKET = r"\((?:[^()]|\([^()]*\))*\)"
_KNOWN = (
    r",?\s{1,9}(?:(?:also|better|commonly|formerly|usually|sometimes|often|originally)\s+)?"
    r"(?:known|called|titled|spelt|spelled|born|née)\b[^.;]{0,120}?"
)
_OPENING = regex(
    r"\W{0,2}(?P<name>[^\W_][^,;()\n\"“”]{0,90}?)[\"”]?\s{0,9}"
    rf"(?P<more>(?:,?\s{{0,9}}{_ANY_BRACKET}\s{{0,9}}|{_KNOWN}){{0,3}}),?\s{{1,9}}(?:is|was|are|were)\s+(?P<article>an?|the|one)?\b"
)
_LOOKED_AT = 600  # characters
_MOST_WORDS = 12
_SENTENCE_END = regex(r"[a-z]{3}\. ")
_SAYS_ELSE = frozenset({"he", "she", "it", "they", "who", "which", "that"})


def opening_subject(text: str) -> str:
    """The name that an English text begins with and says the nature of, or empty.

    A sentence that begins with a pronoun or a function word, or names nothing with a capital, tells no name.
    """
    match = _OPENING.match(text[:_LOOKED_AT])
    if match is None or not (match["article"] or match["more"].strip()):
        return ""
    name = " ".join(match["name"].split())
    words = name.split()
    folded = [word.lower() for word in words]
    name_words = words[1:] if folded[0] in {"the", "a", "an"} else words
    is_sentence = bool(_SENTENCE_END.search(name)) or not _SAYS_ELSE.isdisjoint(folded)
    begins_plain = name_words is words and folded[0] in STOPWORDS and not text.startswith(('"', "“"))
    if is_sentence or begins_plain or len(words) > _MOST_WORDS:
        return ""
    return name if any(word[0].isupper() or word[0].isdigit() for word in name_words) else ""
