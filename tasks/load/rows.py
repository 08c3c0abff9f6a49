"""JSON, tables and graphs: rows that are documents or triples, and all others as text.

A row with `text` is a document; a row with `s`, `p`, `o` and no `text` is a triple (optional
`weight`, `document`); anything else is a dead letter, and the rest goes on. Names are kept as
written, but for line breaks and outer space.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

from pydantic import Field, TypeAdapter, ValidationError

from prompts.text.regex import regex
from prompts.text.words import STOPWORDS
from storage.errors import UsageError
from storage.records import DeadLetter, Part, Record, Triple
from tasks.load.discover import SourceFile, printable
from tasks.load.tables import MOST_CELLS, TableWriter, WrittenTables, markdown_tables
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
_LINE = regex(r"[^\n]*\n|[^\n]+")
_RESERVED = frozenset({"id", "title", "text"})
_TRIPLE_COLUMNS = frozenset({"s", "p", "o", "weight", "document"})
_PREDICATES = ("predicate", "relation", "label")
_WEIGHT = TypeAdapter(Annotated[float, Field(gt=0, allow_inf_nan=False)])


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


def collect(
    rows: Iterable[tuple[int, object]], file: SourceFile, most: int = MOST_DOCUMENTS
) -> Rows:
    """Documents in row order, then one triples part per document named; `rows` are (line, parsed
    row or `BadRow`).
    """
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
                triples[_identifier(row.get("document")) or file.id][
                    triple.s, triple.p, triple.o
                ] += triple.weight
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
    return DeadLetter(
        item=f"{printable(file.path)}{line}", step="load", error=error, remedy=_REMEDY
    )


def _parsed(line: str) -> object:
    if len(line) > LARGEST_DOCUMENT:
        return BadRow("longer than 100 MB")
    try:
        return parse_json(line)
    except Unreadable as reason:
        return BadRow(str(reason))


def parse_json(text: str, figures: type[str] | None = None) -> object:
    """The value of a JSON text, figures as they are written where they are to be `str`.

    Raises `Unreadable` where it is broken, or begins more values than memory should hold: what is
    counted are brackets and commas, those in strings too.
    """
    if sum(map(text.count, "[{,")) > MOST_CELLS:
        raise Unreadable(
            f"JSON of more than {MOST_CELLS:,} values: divide it, or make it JSON Lines"
        )
    try:
        # Control characters inside strings are no reason to lose a row: they are cleaned away
        # later.
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
        title=shortened(title)
        or opening_subject(text)
        or title_of(text, own or f"{pretty_stem(file.id)} {line}", {}),
        text=text,
        metadata=scalars({key: value for key, value in row.items() if key not in _RESERVED}),
        tables=markdown_tables(text),
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
        triple = Triple(
            s=s, p=p, o=o, weight=1.0 if weight in (None, "") else _WEIGHT.validate_python(weight)
        )
    except ValidationError as error:
        raise BadRow(f"`weight` is not a number above zero: {weight!r}") from error
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
        path=file.path,
        kind="triples",
        title=stem(file.id) if document == file.id else document,
        text="\n".join(triple.rendered() for triple in triples),
        triples=triples,
    )


# --- graphs ---------------------------------------------------------------------------------------


def graph_file(graph: "nx.Graph") -> SourceFile:
    """The place of a graph that a program gives, by the graph's name."""
    name = one_line(clean(str(graph.name))) or "graph"
    return SourceFile(source=f"networkx:{name}", path=f"networkx:{name}", id=name)


def read_graph(graph: "nx.Graph", file: SourceFile) -> Rows:
    """The edges of a NetworkX graph as triples.

    A node is named by its `name` or `label`, else by itself. An edge says its `predicate`,
    `relation` or `label`, else "related to"; its `weight` and `document` are those of a row. A node
    without an edge is in no triple.
    """
    names = {
        node: _first(data, "name", "label") or str(node) for node, data in graph.nodes(data=True)
    }
    rows = (
        {"s": names[source], "p": _first(data, *_PREDICATES) or "related to", "o": names[target]}
        | {name: data[name] for name in ("weight", "document") if name in data}
        for source, target, data in graph.edges(data=True)
    )
    return collect(enumerate(rows, 1), file)


def _first(data: Mapping[str, object], *names: str) -> object:
    return next((data[name] for name in names if data.get(name)), None)


# --- JSON that is no rows --------------------------------------------------------------------


def readable_json(value: object) -> WrittenTables:
    """Write any JSON as lines of `key: value`, keys joined by dots; a list of flat objects is a
    table.
    """
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
    elif all(_is_flat(item) for item in value):
        writer.remark(f"{name}:" if name else "")
        keys = list(dict.fromkeys(key for item in value for key in item))
        writer.begin([one_line(clean(str(key))) for key in keys], written=False)
        for item in value:
            writer.row([one_line(_shown(item[key])) if key in item else "" for key in keys])
    else:
        for number, item in enumerate(value, 1):
            _write(item, f"{name}[{number}]", writer)


def _is_flat(item: object) -> bool:
    inner = item.values() if isinstance(item, dict) else [item, []]
    return not any(isinstance(one, dict | list) for one in inner)


def _shown(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(_shown, value))
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    return clean(str(value))


# --- triples of a table ----------------------------------------------------------------------


def triples_header(rows: Sequence[tuple[int, list[str]]]) -> list[str] | None:
    """The column names where the header is `s,p,o[,weight,document]` in any order, else None."""
    names = [cell.strip().lower() for cell in rows[0][1]] if rows else []
    known = {"s", "p", "o"} <= set(names) <= _TRIPLE_COLUMNS
    return names if known and len(set(names)) == len(names) else None


def read_triples(
    rows: Sequence[tuple[int, list[str]]], names: Sequence[str], file: SourceFile
) -> Rows:
    """The triples below the header."""

    def row_of(cells: list[str]) -> object:
        many = BadRow(f"{len(cells)} cells under {len(names)} columns")
        return many if len(cells) > len(names) else dict(zip(names, cells, strict=False))

    return collect(((line, row_of(cells)) for line, cells in rows[1:] if cells), file)


# --- what a text begins with ----------------------------------------------------------------------

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

    A sentence that begins with a pronoun or a function word, or names nothing with a capital, tells
    no name.
    """
    match = _OPENING.match(text[:_LOOKED_AT])
    if match is None or not (match["article"] or match["more"].strip()):
        return ""
    name = " ".join(match["name"].split())
    words = name.split()
    folded = [word.lower() for word in words]
    name_words = words[1:] if folded[0] in {"the", "a", "an"} else words
    is_sentence = bool(_SENTENCE_END.search(name)) or not _SAYS_ELSE.isdisjoint(folded)
    begins_plain = (
        name_words is words and folded[0] in STOPWORDS and not text.startswith(('"', "“"))
    )
    if is_sentence or begins_plain or len(words) > _MOST_WORDS:
        return ""
    return name if any(word[0].isupper() or word[0].isdigit() for word in name_words) else ""
