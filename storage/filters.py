"""Selects documents by a filter, or tells at which character it cannot be read.

    year >= 2020 and (source = 'notes' or not title like '%draft%')

A field is a name, in backquotes where it holds spaces. A value is text in quotes, a number, a date (2024-05-01), `true`
or `false`. Words of the language are read in any case; `and` binds closer than `or`.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches

from storage.database import Database, Parameter
from storage.errors import FilterError, NothingMatches

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
_ORDERS = {"=": "=", "==": "=", "!=": "=", "<>": "=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_COMPARISONS = "=, !=, <, <=, >, >=, in, like, contains or is null"
_IN_PARENTHESES = "Write the values in parentheses: year in (2020, 2021)."

# Of every document; `source` is also known by its last name.
OWN_FIELDS = ("document", "title", "language", "source")
_COLUMNS = {"document": "d.id", "title": "d.title", "language": "d.language"}
_OUTER = "metadata."
_NAMED = 12  # fields in an error

# A condition that is true or false, never null: a document without the field meets no comparison.
SqlCondition = tuple[str, list[Parameter]]
# What a comparison says of a field's text, which stands where the braces are.
FieldTest = tuple[str, Parameter]
ResolveField = Callable[[str, int], str]  # the name and place of a field -> a JSON pointer, or one of `OWN_FIELDS`


@dataclass(frozen=True)
class _FilterToken:
    kind: str
    text: str
    at: int

    @property
    def word(self) -> str:
        """What the grammar sees of it: a word of the language, a sign, or nothing."""
        return self.text.lower() if self.kind == "word" else self.text if self.kind == "sign" else ""


def check_filter(expression: str) -> None:
    """Raises FilterError where an expression cannot be read, whatever fields there are."""
    _Parser(expression, lambda name, at: "/").whole()


def _tokens(expression: str) -> list[_FilterToken]:
    if len(expression) > LONGEST:
        problem = f"it has {len(expression)} characters, more than {LONGEST}"
        raise FilterError(expression[:40] + "…", LONGEST, problem, "Write a shorter one.")
    tokens, place = [], 0
    end = len(expression.rstrip())
    while place < end:
        match = _TOKEN.match(expression, place)
        if match is None or match.lastgroup is None:
            at = place + len(expression[place:]) - len(expression[place:].lstrip())
            odd = expression[at]
            remedy = "Close the quote." if odd in "'\"`" else "Write text in quotes and names in backquotes."
            raise FilterError(expression, at, f"{odd!r} begins nothing that is known", remedy)
        tokens.append(_FilterToken(match.lastgroup, match[match.lastgroup], match.start(match.lastgroup)))
        place = match.end()
    return [*tokens, _FilterToken("end", "", end)]


class _Parser:
    """Recursive descent into SQL; one method for each rule of the grammar."""

    def __init__(self, expression: str, resolve: ResolveField) -> None:
        self._expression = expression
        self._resolve = resolve
        self._tokens = _tokens(expression)
        self._place = 0
        self._depth = 0

    def whole(self) -> SqlCondition:
        condition = self._either()
        if self._next.kind != "end":
            raise self._odd("`and`, `or` or the end", "Join conditions with and, or; close every parenthesis.")
        return condition

    def _either(self) -> SqlCondition:
        return self._joined("or", lambda: self._joined("and", self._condition))

    def _joined(self, word: str, part: Callable[[], SqlCondition]) -> SqlCondition:
        parts = [part()]
        while self._took(word):
            parts.append(part())
        return f"({f' {word} '.join(sql for sql, _ in parts)})", [bound for _, values in parts for bound in values]

    def _condition(self) -> SqlCondition:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self._odd(f"at most {_DEEPEST} conditions inside one another", "Write it flatter.")
        if self._took("not"):
            condition = _negated(self._condition())
        elif self._took("("):
            condition = self._either()
            if not self._took(")"):
                raise self._odd("`)`", "Close every parenthesis.")
        else:
            condition = self._comparison()
        self._depth -= 1
        return condition

    def _comparison(self) -> SqlCondition:
        field = self._field()
        negated = self._took("not")
        if self._took("in"):
            tests = self._list()
        elif self._took("like"):
            tests = [("coalesce({} ILIKE ?, false)", self._text("like"))]
        elif self._took("contains"):
            tests = [("coalesce(contains(lower({}), lower(?)), false)", self._text("contains"))]
        elif negated:
            raise self._odd("`in`, `like` or `contains`", "Or put not before the field: not year = 2020.")
        elif self._took("is"):
            negated = self._took("not")
            if not self._took("null"):
                raise self._odd("`null`", "Write: is null, or is not null.")
            return _negated(_missing(field)) if negated else _missing(field)
        else:
            sign = self._next.word
            if sign not in _ORDERS:
                raise self._odd(_COMPARISONS, "A condition is a field, a comparison and a value: year >= 2020.")
            self._place += 1
            negated = sign in ("!=", "<>")
            tests = [self._value(_ORDERS[sign])]
        conditions = [_applied(field, *test) for test in tests]
        condition = f"({' OR '.join(sql for sql, _ in conditions)})", [p for _, values in conditions for p in values]
        return _negated(condition) if negated else condition

    def _field(self) -> str:
        token = self._next
        named = token.kind == "word" and token.word not in ("and", "or", "in", "like", "contains", "is", "null")
        if token.kind != "quoted" and not named:
            raise self._odd("a field", "A condition begins with a field: year >= 2020. Odd names go in backquotes.")
        self._place += 1
        return self._resolve(token.text.strip("`"), token.at)

    def _list(self) -> list[FieldTest]:
        if not self._took("("):
            raise self._odd("`(`", _IN_PARENTHESES)
        tests = [self._value("=")]
        while self._took(","):
            tests.append(self._value("="))
        if not self._took(")"):
            raise self._odd("`,` or `)`", _IN_PARENTHESES)
        return tests

    def _text(self, word: str) -> str:
        if self._next.kind not in ("text", "date"):
            raise self._odd("text in quotes", f"Write for example: title {word} 'bridge'.")
        return str(self._value("=")[1])

    def _value(self, order: str) -> FieldTest:
        """The field stands in this order to the value: as numbers where the value is one, else as text."""
        token = self._next
        if token.kind not in ("date", "number", "text") and token.word not in ("true", "false"):
            shown = token.text.replace("'", "''")
            remedy = (
                f"Text stands in quotes: '{shown}'." if token.kind == "word" else "Write text in quotes, or a number."
            )
            raise self._odd("a value", remedy)
        self._place += 1
        if token.kind == "number":
            return f"coalesce(TRY_CAST({{}} AS DOUBLE) {order} ?::DOUBLE, false)", float(token.text)
        if token.kind == "word":
            return f"coalesce(lower({{}}) {order} ?, false)", token.word
        mark = token.text[0]
        text = token.text if token.kind == "date" else token.text[1:-1].replace(mark * 2, mark)
        return f"coalesce({{}} {order} ?, false)", text

    @property
    def _next(self) -> _FilterToken:
        return self._tokens[self._place]

    def _took(self, word: str) -> bool:
        if self._next.word != word:
            return False
        self._place += 1
        return True

    def _odd(self, wanted: str, remedy: str) -> FilterError:
        actual = f"{self._next.text!r} stands" if self._next.text else "it ends"
        return FilterError(self._expression, self._next.at, f"{actual} where {wanted} must stand", remedy)


def _negated(condition: SqlCondition) -> SqlCondition:
    return f"NOT {condition[0]}", condition[1]


def _missing(field: str) -> SqlCondition:
    if field in OWN_FIELDS:
        return "false", []
    return "(json_extract_string(d.metadata, ?) IS NULL)", [field]


def _applied(field: str, test: str, value: Parameter) -> SqlCondition:
    if field == "source":
        whole, last = test.format("p.source"), test.format("regexp_extract(p.source, '[^/]*$')")
        return f"EXISTS (SELECT 1 FROM parts AS p WHERE p.document = d.id AND ({whole} OR {last}))", [value, value]
    if field in _COLUMNS:
        return test.format(_COLUMNS[field]), [value]
    return test.format("json_extract_string(d.metadata, ?)"), [field, value]


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
        keys = self._keys()

        def resolve(name: str, at: int) -> str:
            known = _known(name, at, [*OWN_FIELDS, *keys], expression)
            return known if known in OWN_FIELDS else "/" + keys[known].replace("~", "~0").replace("/", "~1")

        condition, parameters = _Parser(expression, resolve).whole()
        documents = self._db.strings(f"SELECT d.id FROM documents AS d WHERE {condition} ORDER BY d.id", parameters)
        if not documents:
            raise NothingMatches(expression)
        return documents

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


def _known(field: str, at: int, fields: list[str], expression: str) -> str:
    """The field that is meant: as it is written, without `metadata.`, or the only one that differs in capitals."""
    for name in (field, field.removeprefix(_OUTER)):
        same = [known for known in fields if known.casefold() == name.casefold()]
        if name in fields or len(same) == 1:
            return name if name in fields else same[0]
    near = get_close_matches(field, fields, n=3)
    listed = ", ".join(fields[:_NAMED]) + (f" and {len(fields) - _NAMED} more" if len(fields) > _NAMED else "")
    remedy = f"Nearest: {', '.join(near)}. " if near else ""
    raise FilterError(expression, at, f"no document has a field {field!r}", f"{remedy}Fields that exist: {listed}.")
