"""What does a filter on documents say? An expression as a typed tree, or an error that names the place.

    year >= 2020 and (source = 'notes' or not title like '%draft%')

A field is a name, in backquotes where it holds spaces. A value is text in quotes, a number, a date (2024-05-01), `true`
or `false`. Words of the language are read in any case; `and` binds closer than `or`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from storage.errors import FilterError

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
class Field:
    """A field as it was written, and the character (from 0) at which."""

    name: str
    at: int


@dataclass(frozen=True)
class Compare:
    """The field stands in this order to the value: as numbers where the value is one, else as text."""

    field: Field
    order: Order
    value: Value


@dataclass(frozen=True)
class Like:
    """The field has this pattern, in any case: `%` stands for any text, `_` for one character."""

    field: Field
    pattern: str


@dataclass(frozen=True)
class Contains:
    """The field holds this text, in any case."""

    field: Field
    text: str


@dataclass(frozen=True)
class Missing:
    """The document has no such field."""

    field: Field


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


def fields_of(tree: Filter) -> list[Field]:
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

    def _ordered(self, field: Field) -> tuple[Compare, bool]:
        sign = {"==": "=", "<>": "!="}.get(self._next.word, self._next.word)
        for order in get_args(Order):
            if sign == order or (sign == "!=" and order == "="):
                self._place += 1
                return Compare(field, order, self._value()), sign == "!="
        raise self._odd(_COMPARISONS, "A condition is a field, a comparison and a value: year >= 2020.")

    def _field(self) -> Field:
        token = self._next
        if token.kind == "quoted":
            self._place += 1
            return Field(token.text[1:-1], token.at)
        if token.kind != "word" or token.word in ("and", "or", "in", "like", "contains", "is", "null"):
            raise self._odd("a field", "A condition begins with a field: year >= 2020. Odd names go in backquotes.")
        self._place += 1
        return Field(token.text, token.at)

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
