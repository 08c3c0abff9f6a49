"""Rows of JSON, tables and graphs as documents or triples; other JSON as readable text.

A row with `text` is a document. A row with `s`, `p`, `o` and no `text` is a triple, which may have
a `weight` and a `document`. Any other row becomes a dead letter. Names are kept as written, but for
line breaks and the spaces around them.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated

import networkx as nx
from pydantic import Field, TypeAdapter, ValidationError

from prompts.text.words import STOPWORDS
from storage.errors import UsageError
from storage.records import DeadLetter, Part, Record, Skipped, Triple
from tasks.load.discover import SourceFile, printable
from tasks.load.encodings import Unreadable
from tasks.load.tables import MOST_CELLS, TableWriter, WrittenTables, markdown_tables
from tasks.load.text import (
    LARGEST_DOCUMENT,
    clean,
    one_line,
    pretty_stem,
    scalars,
    shortened,
    stem,
    title_of,
)

_REMEDY = "Give the row a `text` (a document) or `s`, `p` and `o` (a triple), then index again."
_LONGEST_TRIPLE = 1000  # characters: a longer one is cut, and then no passage holds it whole
_MOST_LETTERS = 1_000  # dead letters of one file; further ones are only counted
_MOST_FAILED = 1_000_000  # bad rows after which a file is not read on
MOST_DOCUMENTS = 2_000_000  # of a run: each takes some 3 kB of memory besides its text
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_RESERVED = frozenset({"id", "title", "text"})
_TRIPLE_COLUMNS = frozenset({"s", "p", "o", "weight", "document"})
_WEIGHT = TypeAdapter(Annotated[float, Field(gt=0, allow_inf_nan=False)])


class Rows(Record):
    """What one file holds: parts of documents, the rows that failed, and what was not read."""

    parts: tuple[Part, ...]
    dead_letters: tuple[DeadLetter, ...]
    skipped: tuple[Skipped, ...] = ()


class BadRow(Exception):
    """Raised where a row is neither a document nor a triple; its text says why."""


class TooManyDocuments(UsageError):
    """Raised where the sources hold more documents than a run can hold."""

    def __init__(self, most: int) -> None:
        super().__init__(
            f"The sources hold more than {most:,} documents.",
            "Index them into several workspaces, or put what belongs together into one document.",
        )


def read_jsonl(text: str, file: SourceFile) -> Rows:
    """Read the rows of a JSON Lines text, without its blank lines."""
    # One line at a time, for there may be 100 million.
    lines = enumerate(map(re.Match.group, _LINE.finditer(text.removeprefix("\ufeff"))), 1)
    return collect(((number, _parse_row(line)) for number, line in lines if line.strip()), file)


def collect(
    rows: Iterable[tuple[int, object]], file: SourceFile, most: int = MOST_DOCUMENTS
) -> Rows:
    """Sort (line, row or `BadRow`) into documents in row order, then one part of triples for each
    document that they name. Raises `TooManyDocuments`.
    """
    parts: list[Part] = []
    letters: list[DeadLetter] = []
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
                document = _identifier(row.get("document")) or file.id
                triples[document][triple.s, triple.p, triple.o] += triple.weight
        except BadRow as bad:
            failed += 1
            if failed <= _MOST_LETTERS:
                letters.append(_letter(file, f":{line}", str(bad)))
            if failed == _MOST_FAILED:
                break
    if failed > _MOST_LETTERS:
        rest = "; what follows is not read" if failed == _MOST_FAILED else ""
        words = f"{failed - _MOST_LETTERS:,} further rows are neither documents nor triples{rest}"
        letters.append(_letter(file, "", words))
    parts += [_triples_part(document, weights, file) for document, weights in triples.items()]
    return Rows(parts=tuple(parts), dead_letters=tuple(letters))


def _letter(file: SourceFile, line: str, error: str) -> DeadLetter:
    item = f"{printable(file.path)}{line}"
    return DeadLetter(item=item, step="load", error=error, remedy=_REMEDY)


def _parse_row(line: str) -> object:
    if len(line) > LARGEST_DOCUMENT:
        return BadRow("longer than 100 MB")
    try:
        return parse_json(line)
    except Unreadable as reason:
        return BadRow(str(reason))


def parse_json(text: str, figures: type[str] | None = None) -> object:
    """Parse JSON; with `figures=str`, numbers stay as they are written.

    Raises `Unreadable` where it is broken, or has more brackets and commas, those in strings
    included, than values fit into memory.
    """
    if sum(map(text.count, "[{,")) > MOST_CELLS:
        raise Unreadable(
            f"JSON of more than {MOST_CELLS:,} values: divide it, or make it JSON Lines"
        )
    try:
        # `strict=False`: control characters in strings are removed later and cost no row.
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
    title = shortened(one_line(clean(own_title))) if isinstance(own_title, str) else ""
    return Part(
        document=own or f"{file.id}#{line}",
        source=file.source,
        path=f"{printable(file.path)}:{line}",
        kind="text",
        title=title
        or opening_subject(text)
        or title_of(text, own or f"{pretty_stem(file.id)} {line}", {}),
        text=text,
        metadata=scalars({key: value for key, value in row.items() if key not in _RESERVED}),
        tables=markdown_tables(text),
    )


def _identifier(value: object) -> str:
    """Return an id or a name as text, empty for other values."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return ""
    return one_line(clean(str(value)))


def _triple(row: Mapping[str, object]) -> Triple:
    if not {"s", "p", "o"} <= set(row):
        raise BadRow("the row has neither `text` nor all of `s`, `p`, `o`")
    s, p, o = names = [_identifier(row[name]) for name in "spo"]
    if not all(names):
        raise BadRow(f"`{'spo'[names.index('')]}` is empty or not a string")
    weight = row.get("weight")
    try:
        number = 1.0 if weight in (None, "") else _WEIGHT.validate_python(weight)
    except ValidationError as error:
        raise BadRow(f"`weight` is not a number above zero: {weight!r}") from error
    triple = Triple(s=s, p=p, o=o, weight=number)
    length = len(triple.rendered())
    if length > _LONGEST_TRIPLE:
        raise BadRow(
            f"the triple has {length} characters, more than {_LONGEST_TRIPLE}: what is so long is a"
            " `text`"
        )
    return triple


def _triples_part(
    document: str, weights: Mapping[tuple[str, str, str], float], file: SourceFile
) -> Part:
    triples = tuple(Triple(s=s, p=p, o=o, weight=weight) for (s, p, o), weight in weights.items())
    return Part(
        document=document,
        source=file.source,
        path=printable(file.path),
        kind="triples",
        title=stem(file.id) if document == file.id else document,
        text="\n".join(triple.rendered() for triple in triples),
        triples=triples,
    )


# --- graphs ---


def graph_file(graph: "nx.Graph") -> SourceFile:
    """Return the place of a graph in memory, called by the graph's name."""
    name = one_line(clean(str(graph.name))) or "graph"
    return SourceFile(source=f"networkx:{name}", path=f"networkx:{name}", id=name)


def read_graph(graph: "nx.Graph", file: SourceFile) -> Rows:
    """Read the edges of a NetworkX graph as triples; a node without edges is dropped.

    A node is named by its `name`, its `label`, or itself. The predicate of an edge is its
    `predicate`, `relation` or `label`, else "related to"; `weight` and `document` are as in a row.
    """
    names = {
        node: _first(data, "name", "label") or str(node) for node, data in graph.nodes(data=True)
    }
    rows = (
        {
            "s": names[source],
            "p": _first(data, "predicate", "relation", "label") or "related to",
            "o": names[target],
            **{name: data[name] for name in ("weight", "document") if name in data},
        }
        for source, target, data in graph.edges(data=True)
    )
    return collect(enumerate(rows, 1), file)


def _first(data: Mapping[str, object], *names: str) -> object:
    return next((data[name] for name in names if data.get(name)), None)


# --- JSON without rows ---


def readable_json(value: object) -> WrittenTables:
    """Write JSON as lines of `outer.key: value`; a list of flat objects becomes a table."""
    writer = TableWriter()
    _write(value, "", writer)
    return writer.written()


def _write(value: object, name: str, writer: TableWriter) -> None:
    if isinstance(value, dict):
        for key, inner in value.items():
            own = clean(str(key))
            _write(inner, f"{name}.{own}" if name else own, writer)
    elif not isinstance(value, list) or not any(isinstance(item, dict | list) for item in value):
        writer.remark(f"{name}: {_shown(value)}" if name else _shown(value))
    elif all(isinstance(item, dict) and _is_flat(item) for item in value):
        writer.remark(f"{name}:" if name else "")
        keys = list(dict.fromkeys(key for item in value for key in item))
        writer.begin([one_line(clean(str(key))) for key in keys], written=False)
        for item in value:
            writer.row([one_line(_shown(item[key])) if key in item else "" for key in keys])
    else:
        for number, item in enumerate(value, 1):
            _write(item, f"{name}[{number}]", writer)


def _is_flat(item: Mapping[str, object]) -> bool:
    return not any(isinstance(value, dict | list) for value in item.values())


def _shown(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(_shown, value))
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    return clean(str(value))


# --- triples of a table ---


def triples_header(rows: Sequence[tuple[int, list[str]]]) -> list[str] | None:
    """Return the column names where the header is `s,p,o[,weight,document]` in any order."""
    names = [cell.strip().lower() for cell in rows[0][1]] if rows else []
    known = {"s", "p", "o"} <= set(names) <= _TRIPLE_COLUMNS
    return names if known and len(set(names)) == len(names) else None


def read_triples(
    rows: Sequence[tuple[int, list[str]]], names: Sequence[str], file: SourceFile
) -> Rows:
    """Read the rows below a header of triples."""

    def row_of(cells: list[str]) -> object:
        many = BadRow(f"{len(cells)} cells under {len(names)} columns")
        return many if len(cells) > len(names) else dict(zip(names, cells, strict=False))

    return collect(((line, row_of(cells)) for line, cells in rows[1:] if cells), file)


# --- titles of rows ---

_BRACKET = r"\((?:[^()]|\([^()]*\))*\)"
_KNOWN_AS = (
    r",?\s{1,9}(?:(?:also|better|commonly|formerly|usually|sometimes|often|originally)\s+)?"
    r"(?:known|called|titled|spelt|spelled|born|née)\b[^.;]{0,120}?"
)
_OPENING = re.compile(
    r"\W{0,2}(?P<name>[^\W_][^,;()\n\"“”]{0,90}?)[\"”]?\s{0,9}"
    rf"(?P<more>(?:,?\s{{0,9}}{_BRACKET}\s{{0,9}}|{_KNOWN_AS}){{0,3}}),?\s{{1,9}}(?:is|was|are|were)\s+(?P<article>an?|the|one)?\b"
)
_OPENING_CHARACTERS = 600
_MOST_WORDS = 12
_SENTENCE_END = re.compile(r"[a-z]{3}\. ")
_PRONOUNS = frozenset({"he", "she", "it", "they", "who", "which", "that"})


def opening_subject(text: str) -> str:
    """Return the name that an English text begins by defining ("Ada Korb (born 1871) was an …").

    Empty where the subject is a pronoun, begins with a function word, or has no capital.
    """
    match = _OPENING.match(text[:_OPENING_CHARACTERS])
    if match is None or not (match["article"] or match["more"].strip()):
        return ""
    words = match["name"].split()
    folded = [word.lower() for word in words]
    has_article = folded[0] in {"the", "a", "an"}
    quoted = text.startswith(('"', "“"))
    if (
        len(words) > _MOST_WORDS
        or not _PRONOUNS.isdisjoint(folded)
        or (folded[0] in STOPWORDS and not has_article and not quoted)
        or not any(word[0].isupper() or word[0].isdigit() for word in words[has_article:])
    ):
        return ""
    name = " ".join(words)
    return "" if _SENTENCE_END.search(name) else name
