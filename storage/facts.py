"""Reads the typed facts of a generation: each once, with the time for which it holds.

A fact of a type with one value at a time is closed by the first newer one of its subject that says
something else: it holds until the day before. Closing is computed when facts are read, so that it
follows from the documents that a question may look into. Where one statement of a fact is dated,
those that are not say nothing more.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from storage.database import Column, Store, selection
from storage.graph_records import Fact, FactMention
from storage.records import Record

_FACT = "f.subject, f.type, f.said"
_SAME = f"{_FACT}, f.valid_from, f.valid_to"
_FACTS = """
    WITH stated AS (
        SELECT f.*, c.document, count(*) OVER (PARTITION BY {same}) AS places
        FROM facts AS f JOIN chunks AS c ON c.id = f.chunk WHERE {where}
        QUALIFY row_number() OVER (PARTITION BY {same} ORDER BY c.document, f.start_at) = 1
            AND (coalesce(f.valid_from, f.valid_to) IS NOT NULL
                 OR count(coalesce(f.valid_from, f.valid_to)) OVER (PARTITION BY {fact}) = 0)
    ), closing AS (
        SELECT older.id, min(newer.valid_from) AS since,
               arg_min(newer.id, (newer.valid_from, newer.id)) AS closed_by
        FROM stated AS older JOIN stated AS newer USING (subject, type)
        WHERE older.single AND newer.valid_from > older.valid_from AND newer.said <> older.said
        GROUP BY older.id
    ), ended AS (
        SELECT stated.* EXCLUDE (valid_to), coalesce(closed_by, '') AS closed_by,
               least(valid_to, (since::DATE - 1)::VARCHAR) AS valid_to
        FROM stated LEFT JOIN closing USING (id)
    )
    SELECT id, subject, type, said, document, chunk, start_at, end_at, before, after, kind, single,
           value, object, object_kind, number, unit, day, yes, valid_from, valid_to, closed_by,
           places
    FROM ended
    WHERE ? IS NULL
       OR (coalesce(valid_from, '') <= ? AND coalesce(valid_to, '9999-12-31') >= ?)
    ORDER BY subject, type, valid_from DESC NULLS LAST, places DESC, said, id
"""
_THINGS = """
    SELECT e.id, e.name, e.kind, first(c.document ORDER BY c.document, o.start_at) AS document,
           first(o.chunk ORDER BY c.document, o.start_at) AS chunk,
           first(o.start_at ORDER BY c.document, o.start_at) AS start_at,
           first(o.end_at ORDER BY c.document, o.start_at) AS end_at
    FROM entities AS e JOIN entity_occurrences AS o ON o.item = e.id
        JOIN chunks AS c ON c.id = o.chunk
    WHERE {where} AND (list_contains(?::VARCHAR[], e.kind)
                       OR e.id IN (SELECT subject FROM facts UNION SELECT object FROM facts))
    GROUP BY e.id, e.name, e.kind ORDER BY e.name, e.id
"""
_BY_TYPE = """
    SELECT kind, type, count(DISTINCT (subject, said, valid_from, valid_to)) AS facts,
           count(DISTINCT subject) AS subjects
    FROM facts GROUP BY kind, type ORDER BY kind, type
"""
_LEFT_OUT = """
    SELECT type, reason, count(*) AS facts, any_value(subject) AS subject, any_value(value) AS value
    FROM left_out_facts GROUP BY type, reason ORDER BY facts DESC, type, reason
"""


@dataclass(frozen=True, slots=True)
class DatedFact(Fact):
    """A fact with its document and the time for which it holds.

    `closed_by` is the newer fact that ends it, or empty; `places` counts where it is stated.
    """

    document: str
    closed_by: str
    places: int


class Thing(Record):
    """An entity with the first place that names it."""

    id: str
    name: str
    kind: str
    document: str
    chunk: str
    start: int
    end: int


class TypeCount(Record):
    """How many different facts of a type the things of a kind have, and how many have any."""

    kind: str
    type: str
    facts: int
    subjects: int


class LeftOutCount(Record):
    """How many facts of a type were left out for a reason, with one of them."""

    type: str
    reason: str
    facts: int
    subject: str
    value: str


class FactReader(Store):
    """The typed facts of a generation."""

    def facts(
        self,
        as_of: str | None = None,
        documents: Collection[str] | None = None,
        subjects: Collection[str] | None = None,
    ) -> list[DatedFact]:
        """Return the facts that hold on a day (ISO; None: at any time), the newest first.

        They are those of these documents alone, about these entities (None: all).
        """
        stated_in, first = selection("c.document", documents)
        about, second = selection("f.subject", subjects)
        sql = _FACTS.format(fact=_FACT, same=_SAME, where=f"{stated_in} AND {about}")
        rows = self._db.mappings(sql, [*first, *second, as_of, as_of, as_of])
        return [DatedFact(**row) for row in rows]

    def things(
        self, kinds: Collection[str], documents: Collection[str] | None = None
    ) -> list[Thing]:
        """Return the entities of these kinds, and those with facts, that these documents (None:
        all) name, by name.
        """
        where, parameters = selection("c.document", documents)
        sql = _THINGS.format(where=where)
        return self._db.records(Thing, sql, [*parameters, list(kinds)])

    def count(self) -> int:
        """Count the facts, each as often as it is stated."""
        return self._db.number("SELECT count(*) FROM facts")

    def by_type(self) -> list[TypeCount]:
        return self._db.records(TypeCount, _BY_TYPE)

    def by_kind(self) -> dict[str, int]:
        """Count the entities of each kind."""
        return dict(
            self._db.rows("SELECT kind, count(*) FROM entities GROUP BY kind ORDER BY kind")
        )

    def left_out(self) -> list[LeftOutCount]:
        return self._db.records(LeftOutCount, _LEFT_OUT)


def unknown_as_text(facts: Sequence[Fact | FactMention]) -> dict[str, Column]:
    """Return the columns of facts that hold numbers or nothing, as the text that DuckDB reads."""
    return {
        "number": [None if fact.number is None else repr(fact.number) for fact in facts],
        "yes": [None if fact.yes is None else str(fact.yes) for fact in facts],
    }
