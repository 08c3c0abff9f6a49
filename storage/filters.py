"""Reads a filter on documents into a typed tree, or an error that names the place, and selects documents by it.

    year >= 2020 and (source = 'notes' or not title like '%draft%')

A field is a name, in backquotes where it holds spaces. A value is text in quotes, a number, a date (2024-05-01), `true`
or `false`. Words of the language are read in any case; `and` binds closer than `or`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal, get_args

from storage.database import Database, Parameter
from storage.errors import FilterError, NothingMatches

Value = str | float | bool
Order = Literal["=", "<", "<=", ">", ">="]

LONGEST = 4_000  # characters
_DEEPEST = 50  # nested parentheses and negations
_TOKEN = re.compile(
    r"""\s*(?:
        (?P<date>\d{4}-\d\d(?:-\d\d)?(?![\w.-]))
      | (?P<number>-?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?![\w.]))
      | (?P<text>'(?:[^']|'')*'|"(?:[^"]|"")*")
      | (?P<quoted>`[^`]+`)
      | (?P<word>[^\W\d][\w.\-]*)
      | (?P<sign><=|>=|<>|!=|==|[=<>(),])
    )""",
    re.VERBOSE,
)
_VALUES = frozenset({"date", "number", "text"})
_COMPARISONS = "=, !=, <, <=, >, >=, in, like, contains or is null"


@dataclass(frozen=True)
class FilterField:
    """A field as it was written, and the character (from 0) at which."""

    name: str
    at: int


@dataclass(frozen=True)
class Compare:
    """The field stands in this order to the value: as numbers where the value is one, else as text."""

    field: FilterField
    order: Order
    value: Value


@dataclass(frozen=True)
class Like:
    """The field has this pattern, in any case: `%` stands for any text, `_` for one character."""

    field: FilterField
    pattern: str


@dataclass(frozen=True)
class Contains:
    """The field holds this text, in any case."""

    field: FilterField
    text: str


@dataclass(frozen=True)
class Missing:
    """The document has no such field."""

    field: FilterField


@dataclass(frozen=True)
class Not:
    """The inner one does not hold."""

    inner: "Filter"


@dataclass(frozen=True)
class Both:
    """All of the parts hold."""

    parts: tuple["Filter", ...]


@dataclass(frozen=True)
class Either:
    """One of the parts holds."""

    parts: tuple["Filter", ...]


Filter = Compare | Like | Contains | Missing | Not | Both | Either


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    at: int

    @property
    def word(self) -> str:
        """What the grammar sees of it: a word of the language, a sign, or nothing."""
        return self.text.lower() if self.kind == "word" else self.text if self.kind == "sign" else ""


def parse(expression: str) -> Filter:
    """The tree of an expression; FilterError where it cannot be read."""
    if len(expression) > LONGEST:
        problem = f"it has {len(expression)} characters, more than {LONGEST}"
        raise FilterError(expression[:40] + "…", LONGEST, problem, "Write a shorter one.")
    return _Parser(expression).whole()


def fields_of(tree: Filter) -> list[FilterField]:
    """The fields that a filter names, as often as it does."""
    if isinstance(tree, Not):
        return fields_of(tree.inner)
    if isinstance(tree, Both | Either):
        return [field for part in tree.parts for field in fields_of(part)]
    return [tree.field]


def _tokens(expression: str) -> list[_Token]:
    found, place = [], 0
    end = len(expression.rstrip())
    while place < end:
        match = _TOKEN.match(expression, place)
        if match is None or match.lastgroup is None:
            at = place + len(expression[place:]) - len(expression[place:].lstrip())
            odd = expression[at]
            remedy = "Close the quote." if odd in "'\"`" else "Write text in quotes and names in backquotes."
            raise FilterError(expression, at, f"{odd!r} begins nothing that is known", remedy)
        found.append(_Token(match.lastgroup, match[match.lastgroup], match.start(match.lastgroup)))
        place = match.end()
    return [*found, _Token("end", "", end)]


class _Parser:
    """Recursive descent; one method for each rule of the grammar."""

    def __init__(self, expression: str) -> None:
        self._expression = expression
        self._tokens = _tokens(expression)
        self._place = 0
        self._depth = 0

    def whole(self) -> Filter:
        tree = self._either()
        if self._next.kind != "end":
            raise self._odd("`and`, `or` or the end", "Join conditions with and, or; close every parenthesis.")
        return tree

    def _either(self) -> Filter:
        parts = [self._both()]
        while self._took("or"):
            parts.append(self._both())
        return parts[0] if len(parts) == 1 else Either(tuple(parts))

    def _both(self) -> Filter:
        parts = [self._condition()]
        while self._took("and"):
            parts.append(self._condition())
        return parts[0] if len(parts) == 1 else Both(tuple(parts))

    def _condition(self) -> Filter:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self._odd(f"at most {_DEEPEST} conditions inside one another", "Write it flatter.")
        tree: Filter
        if self._took("not"):
            tree = Not(self._condition())
        elif self._took("("):
            tree = self._either()
            if not self._took(")"):
                raise self._odd("`)`", "Close every parenthesis.")
        else:
            tree = self._comparison()
        self._depth -= 1
        return tree

    def _comparison(self) -> Filter:
        field = self._field()
        negated = self._took("not")
        tree: Filter
        if self._took("in"):
            tree = Either(tuple(Compare(field, "=", value) for value in self._list()))
        elif self._took("like"):
            tree = Like(field, self._text("like"))
        elif self._took("contains"):
            tree = Contains(field, self._text("contains"))
        elif negated:
            raise self._odd("`in`, `like` or `contains`", "Or put not before the field: not year = 2020.")
        elif self._took("is"):
            negated = self._took("not")
            if not self._took("null"):
                raise self._odd("`null`", "Write: is null, or is not null.")
            tree = Missing(field)
        else:
            tree, negated = self._ordered(field)
        return Not(tree) if negated else tree

    def _ordered(self, field: FilterField) -> tuple[Compare, bool]:
        sign = {"==": "=", "<>": "!="}.get(self._next.word, self._next.word)
        for order in get_args(Order):
            if sign == order or (sign == "!=" and order == "="):
                self._place += 1
                return Compare(field, order, self._value()), sign == "!="
        raise self._odd(_COMPARISONS, "A condition is a field, a comparison and a value: year >= 2020.")

    def _field(self) -> FilterField:
        token = self._next
        if token.kind == "quoted":
            self._place += 1
            return FilterField(token.text[1:-1], token.at)
        if token.kind != "word" or token.word in ("and", "or", "in", "like", "contains", "is", "null"):
            raise self._odd("a field", "A condition begins with a field: year >= 2020. Odd names go in backquotes.")
        self._place += 1
        return FilterField(token.text, token.at)

    def _list(self) -> Sequence[Value]:
        if not self._took("("):
            raise self._odd("`(`", "Write the values in parentheses: year in (2020, 2021).")
        values = [self._value()]
        while self._took(","):
            values.append(self._value())
        if not self._took(")"):
            raise self._odd("`,` or `)`", "Write the values in parentheses: year in (2020, 2021).")
        return values

    def _text(self, word: str) -> str:
        if self._next.kind not in ("text", "date"):
            raise self._odd("text in quotes", f"Write for example: title {word} 'bridge'.")
        return str(self._value())

    def _value(self) -> Value:
        token = self._next
        if token.kind not in _VALUES and token.word not in ("true", "false"):
            shown = token.text.replace("'", "''")
            remedy = (
                f"Text stands in quotes: '{shown}'." if token.kind == "word" else "Write text in quotes, or a number."
            )
            raise self._odd("a value", remedy)
        self._place += 1
        if token.kind == "text":
            mark = token.text[0]
            return token.text[1:-1].replace(mark * 2, mark)
        if token.kind == "number":
            return float(token.text)
        return token.text if token.kind == "date" else token.word == "true"

    @property
    def _next(self) -> _Token:
        return self._tokens[self._place]

    def _took(self, word: str) -> bool:
        if self._next.word != word:
            return False
        self._place += 1
        return True

    def _odd(self, wanted: str, remedy: str) -> FilterError:
        found = f"{self._next.text!r} stands" if self._next.text else "it ends"
        return FilterError(self._expression, self._next.at, f"{found} where {wanted} must stand", remedy)


# Of every document; `source` is also known by its last name.
OWN_FIELDS = ("document", "title", "language", "source")
_COLUMNS = {"document": "d.id", "title": "d.title", "language": "d.language"}
_OUTER = "metadata."
_NAMED = 12  # fields in an error

Sql = tuple[str, list[Parameter]]


class FilterReader:
    """The documents of a generation by what is known of them."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def fields(self) -> list[str]:
        """The fields that a filter can name: those of every document, then those of any document's metadata."""
        return [*OWN_FIELDS, *self._keys()]

    def matching(self, expression: str) -> list[str]:
        """The ids of the documents that meet an expression, at least one, in order.

        Raises FilterError for an expression that cannot be read or names an unknown field, NothingMatches where no
        document meets it.
        """
        tree = parse(expression)
        keys = self._keys()
        pointers = {field: _pointer(_known(field, [*OWN_FIELDS, *keys], expression), keys) for field in fields_of(tree)}
        condition, parameters = _sql(tree, pointers)
        found = self._db.strings(f"SELECT d.id FROM documents AS d WHERE {condition} ORDER BY d.id", parameters)
        if not found:
            raise NothingMatches(expression)
        return found

    def _keys(self) -> dict[str, str]:
        """The metadata's keys by the names of their fields: `date` also where rows hold it under `metadata`.

        The name of a field that every document has means that one; the metadata's is `metadata.NAME`.
        """
        keys = self._db.strings("SELECT DISTINCT unnest(json_keys(metadata)) AS key FROM documents ORDER BY key DESC")
        names: dict[str, str] = {}
        for key in keys:
            inner = key.removeprefix(_OUTER)
            names[inner if inner not in OWN_FIELDS and (inner == key or inner not in keys) else _OUTER + inner] = key
        return dict(sorted(names.items()))


def _known(field: FilterField, fields: list[str], expression: str) -> str:
    """The field that is meant: as it is written, without `metadata.`, or the only one that differs in capitals."""
    for name in (field.name, field.name.removeprefix(_OUTER)):
        same = [one for one in fields if one.casefold() == name.casefold()]
        if name in fields or len(same) == 1:
            return name if name in fields else same[0]
    near = get_close_matches(field.name, fields, n=3)
    listed = ", ".join(fields[:_NAMED]) + (f" and {len(fields) - _NAMED} more" if len(fields) > _NAMED else "")
    remedy = f"Nearest: {', '.join(near)}. " if near else ""
    raise FilterError(
        expression, field.at, f"no document has a field {field.name!r}", f"{remedy}Fields that exist: {listed}."
    )


def _pointer(name: str, keys: dict[str, str]) -> str:
    """Where a field stands: a JSON pointer into the metadata, or the name of a field of every document."""
    return name if name in OWN_FIELDS else "/" + keys[name].replace("~", "~0").replace("/", "~1")


def _sql(tree: Filter, pointers: dict[FilterField, str]) -> Sql:
    """A condition that is true or false, never null: a document without the field meets no comparison."""
    if isinstance(tree, Not):
        condition, parameters = _sql(tree.inner, pointers)
        return f"NOT {condition}", parameters
    if isinstance(tree, Both | Either):
        parts = [_sql(part, pointers) for part in tree.parts]
        joint = " AND " if isinstance(tree, Both) else " OR "
        return f"({joint.join(condition for condition, _ in parts)})", [p for _, given in parts for p in given]
    pointer = pointers[tree.field]
    if pointer != "source":
        return _test(tree, *_value(pointer))
    whole, given = _test(tree, "p.source", [])
    last, again = _test(tree, "regexp_extract(p.source, '[^/]*$')", [])
    if isinstance(tree, Missing):
        return "false", []
    return f"EXISTS (SELECT 1 FROM parts AS p WHERE p.document = d.id AND ({whole} OR {last}))", [*given, *again]


def _value(pointer: str) -> Sql:
    """The field as text."""
    return (_COLUMNS[pointer], []) if pointer in _COLUMNS else ("json_extract_string(d.metadata, ?)", [pointer])


def _test(tree: Compare | Like | Contains | Missing, value: str, given: list[Parameter]) -> Sql:
    match tree:
        case Missing():
            return f"({value} IS NULL)", given
        case Contains():
            return f"coalesce(contains(lower({value}), lower(?)), false)", [*given, tree.text]
        case Like():
            return f"coalesce({value} ILIKE ?, false)", [*given, tree.pattern]
        case Compare(value=bool()):
            return f"coalesce(lower({value}) {tree.order} ?, false)", [*given, str(tree.value).lower()]
        case Compare(value=str()):
            return f"coalesce({value} {tree.order} ?, false)", [*given, tree.value]
        case Compare():
            return f"coalesce(TRY_CAST({value} AS DOUBLE) {tree.order} ?::DOUBLE, false)", [*given, tree.value]
