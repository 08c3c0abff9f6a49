"""Selects documents by a filter, or says at which character it cannot be read.

    year >= 2020 and (source = 'notes' or not title like '%draft%')

A field is a name, in backquotes if it contains spaces. A value is text in quotes, a number, a date
(2024-05-01), `true` or `false`. Keywords may have any case; `and` binds closer than `or`.
"""

from collections.abc import Callable, Sequence
from difflib import get_close_matches
from functools import cache

from lark import Lark, Token, UnexpectedCharacters, UnexpectedToken, v_args
from lark.exceptions import VisitError
from lark.visitors import Transformer_NonRecursive

from storage.database import Parameter, Store
from storage.errors import FilterError, NothingMatches

LONGEST = 4_000  # characters
_GRAMMAR = r"""
?either: both (_OR both)*
?both: condition (_AND condition)*
?condition: NOT condition                          -> negated
    | "(" either ")"
    | field ORDER value                            -> ordered
    | field [NOT] _IN "(" value ("," value)* ")"   -> listed
    | field [NOT] (LIKE | CONTAINS) (TEXT | DATE)  -> held
    | field _IS [NOT] _NULL                        -> missing
field: NAME | QUOTED
?value: DATE | NUMBER | TEXT | TRUTH

ORDER: /<=|>=|<>|!=|==|[=<>]/
DATE.2: /\d{4}-\d\d(?:-\d\d)?(?![\w.-])/
NUMBER: /-?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?![\w.])/
TEXT: /'(?:[^']|'')*'|"(?:[^"]|"")*"/
QUOTED: /`[^`]+`/
NAME: /(?!(?:and|or|not|in|like|contains|is|null)(?![\w.-]))[^\W\d][\w.-]*/i
TRUTH: /(?:true|false)(?![\w.-])/i
_AND: /and(?![\w.-])/i
_OR: /or(?![\w.-])/i
NOT: /not(?![\w.-])/i
_IN: /in(?![\w.-])/i
LIKE: /like(?![\w.-])/i
CONTAINS: /contains(?![\w.-])/i
_IS: /is(?![\w.-])/i
_NULL: /null(?![\w.-])/i
%ignore /\s+/
"""
_IN_PARENTHESES = "Write the values in parentheses: year in (2020, 2021)."
# The first terminal that the parser would accept decides what an error says is missing, and how to
# write it.
_WANTED = {
    "NAME": (
        "a field",
        "A condition begins with a field: year >= 2020. Odd names go in backquotes.",
    ),
    "ORDER": (
        "=, !=, <, <=, >, >=, in, like, contains or is null",
        "A condition is a field, a comparison and a value: year >= 2020.",
    ),
    "NUMBER": ("a value", "Write text in quotes, or a number."),
    "TEXT": ("text in quotes", "Write for example: title contains 'bridge'."),
    "COMMA": ("`,` or `)`", _IN_PARENTHESES),
    "RPAR": ("`)`", "Close every parenthesis."),
    "LPAR": ("`(`", _IN_PARENTHESES),
    "LIKE": ("`in`, `like` or `contains`", "Or put not before the field: not year = 2020."),
    "_NULL": ("`null`", "Write: is null, or is not null."),
    "_AND": ("`and`, `or` or the end", "Join conditions with and, or; close every parenthesis."),
}

# The fields of every document. A `source` may also be named by the last part of its path.
OWN_FIELDS = ("document", "title", "language", "source")
_COLUMNS = {"document": "d.id", "title": "d.title", "language": "d.language"}
_PREFIX = "metadata."
_MOST_LISTED = 12  # fields in an error

# True or false, never null: a document without the field meets no comparison.
SqlCondition = tuple[str, list[Parameter]]
# From the name and place of a field to one of `OWN_FIELDS`, or a JSON pointer into the metadata.
ResolveField = Callable[[str, int], str]


def check_filter(expression: str) -> None:
    """Raise FilterError where an expression cannot be read, whatever fields there are."""
    _condition(expression, lambda name, at: "/")


@cache
def _parser() -> Lark:
    return Lark(_GRAMMAR, parser="lalr", start="either", maybe_placeholders=True)


def _condition(expression: str, resolve: ResolveField) -> SqlCondition:
    if len(expression) > LONGEST:
        problem = f"it has {len(expression)} characters, more than {LONGEST}"
        raise FilterError(expression[:40] + "…", LONGEST, problem, "Write a shorter one.")
    try:
        condition: SqlCondition = _ToSql(resolve).transform(_parser().parse(expression))
    except UnexpectedCharacters as error:
        # lark's types know only its default.
        at: int = error.pos_in_stream  # type: ignore[assignment]
        odd = expression[at]
        remedy = "Write text in quotes and names in backquotes."
        if odd in "'\"`":
            remedy = "Close the quote."
        raise FilterError(expression, at, f"{odd!r} begins nothing that is known", remedy) from None
    except UnexpectedToken as error:
        raise _misplaced(expression, error.token, error.accepts or error.expected) from None
    except VisitError as error:
        raise error.orig_exc from None
    return condition


def _misplaced(expression: str, token: Token, accepted: set[str]) -> FilterError:
    wanted, remedy = next(words for terminal, words in _WANTED.items() if terminal in accepted)
    if wanted == "a value" and token.type == "NAME":
        remedy = f"Text stands in quotes: '{token}'."
    ends = token.type == "$END"
    at = len(expression.rstrip()) if ends else token.start_pos or 0
    actual = "it ends" if ends else f"{str(token)!r} stands"
    return FilterError(expression, at, f"{actual} where {wanted} must stand", remedy)


@v_args(inline=True)
class _ToSql(Transformer_NonRecursive[Token, SqlCondition]):
    """Turns the rules of the grammar into SQL conditions."""

    def __init__(self, resolve: ResolveField) -> None:
        super().__init__()
        self._resolve = resolve

    def field(self, name: Token) -> str:
        return self._resolve(name.strip("`"), name.start_pos or 0)

    def either(self, *parts: SqlCondition) -> SqlCondition:
        return _joined(" or ", parts)

    def both(self, *parts: SqlCondition) -> SqlCondition:
        return _joined(" and ", parts)

    def negated(self, word: object, condition: SqlCondition) -> SqlCondition:
        sql, values = condition
        if not word:
            return condition
        return (sql[4:] if sql.startswith("NOT ") else f"NOT {sql}"), values

    def ordered(self, field: str, sign: Token, value: Token) -> SqlCondition:
        differs = sign in ("!=", "<>")
        order = "=" if differs or sign == "==" else str(sign)
        return self.negated(differs, _compared(field, order, value))

    def listed(self, field: str, negation: Token | None, *values: Token) -> SqlCondition:
        equal = [_compared(field, "=", value) for value in values]
        return self.negated(negation, _joined(" or ", equal))

    def held(self, field: str, negation: Token | None, word: Token, text: Token) -> SqlCondition:
        test = "{} ILIKE ?" if word.type == "LIKE" else "contains(lower({}), lower(?))"
        return self.negated(negation, _applied(field, f"coalesce({test}, false)", _unquoted(text)))

    def missing(self, field: str, negation: Token | None) -> SqlCondition:
        own = field in OWN_FIELDS
        condition = "false" if own else "(json_extract_string(d.metadata, ?) IS NULL)"
        return self.negated(negation, (condition, [] if own else [field]))


def _joined(word: str, parts: Sequence[SqlCondition]) -> SqlCondition:
    sql = word.join(sql for sql, _ in parts)
    return f"({sql})", [bound for _, values in parts for bound in values]


def _compared(field: str, order: str, value: Token) -> SqlCondition:
    """Compare a field with a value: as numbers where the value is one, else as text."""
    if value.type == "NUMBER":
        test = f"coalesce(TRY_CAST({{}} AS DOUBLE) {order} ?::DOUBLE, false)"
        return _applied(field, test, float(value))
    if value.type == "TRUTH":
        return _applied(field, f"coalesce(lower({{}}) {order} ?, false)", value.lower())
    return _applied(field, f"coalesce({{}} {order} ?, false)", _unquoted(value))


def _unquoted(text: Token) -> str:
    return str(text) if text.type == "DATE" else text[1:-1].replace(text[0] * 2, text[0])


def _applied(field: str, test: str, value: Parameter) -> SqlCondition:
    """Put a field in the place of the braces in a test."""
    if field == "source":
        whole, last = test.format("p.source"), test.format("regexp_extract(p.source, '[^/]*$')")
        return (
            f"EXISTS (SELECT 1 FROM parts AS p WHERE p.document = d.id AND ({whole} OR {last}))",
            [value, value],
        )
    if field in _COLUMNS:
        return test.format(_COLUMNS[field]), [value]
    return test.format("json_extract_string(d.metadata, ?)"), [field, value]


class FilterReader(Store):
    """Finds documents of a generation by filters."""

    def fields(self) -> list[str]:
        """List the fields that a filter can name: those of every document, then of metadata."""
        return [*OWN_FIELDS, *self._keys()]

    def matching(self, expression: str) -> list[str]:
        """Return the sorted ids of the documents that meet an expression.

        Raises FilterError for an expression that cannot be read or names an unknown field, and
        NothingMatches where no document meets it.
        """
        keys = self._keys()

        def resolve(name: str, at: int) -> str:
            field = _known(name, at, [*OWN_FIELDS, *keys], expression)
            if field in OWN_FIELDS:
                return field
            return "/" + keys[field].replace("~", "~0").replace("/", "~1")

        condition, parameters = _condition(expression, resolve)
        documents = self._db.strings(
            f"SELECT d.id FROM documents AS d WHERE {condition} ORDER BY d.id", parameters
        )
        if not documents:
            raise NothingMatches(expression)
        return documents

    def _keys(self) -> dict[str, str]:
        """Map the names of fields to metadata keys.

        The prefix of a key `metadata.NAME` may be left out. It is needed where NAME is a field of
        every document, or another key.
        """
        keys = self._db.strings(
            "SELECT DISTINCT unnest(json_keys(metadata)) AS key FROM documents ORDER BY key DESC"
        )
        names: dict[str, str] = {}
        for key in keys:
            inner = key.removeprefix(_PREFIX)
            is_unique = inner not in OWN_FIELDS and (inner == key or inner not in keys)
            names[inner if is_unique else _PREFIX + inner] = key
        return dict(sorted(names.items()))


def _known(field: str, at: int, fields: list[str], expression: str) -> str:
    """Find a field by its name, without `metadata.`, or the only one with other capitals."""
    for name in (field, field.removeprefix(_PREFIX)):
        same = [known for known in fields if known.casefold() == name.casefold()]
        if name in fields or len(same) == 1:
            return name if name in fields else same[0]
    near = get_close_matches(field, fields, n=3)
    remedy = f"Nearest: {', '.join(near)}. " if near else ""
    remedy += f"Fields that exist: {', '.join(fields[:_MOST_LISTED])}"
    if len(fields) > _MOST_LISTED:
        remedy += f" and {len(fields) - _MOST_LISTED} more"
    raise FilterError(expression, at, f"no document has a field {field!r}", f"{remedy}.")
