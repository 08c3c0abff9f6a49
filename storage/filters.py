"""Which documents meet a filter? The tree as SQL with bound parameters; fields are checked before anything is asked."""

from difflib import get_close_matches

from storage.database import Database, Parameter
from storage.errors import FilterError, NothingMatches
from storage.filter_syntax import Both, Compare, Contains, Either, Field, Filter, Like, Missing, Not, fields_of, parse

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


def _known(field: Field, fields: list[str], expression: str) -> str:
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


def _sql(tree: Filter, pointers: dict[Field, str]) -> Sql:
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
