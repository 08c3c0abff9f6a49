"""Stores the propositions of each chunk: statements that stand alone, with the sentences that make
them. Generations of earlier versions have no table for them.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from storage.database import Store, selection
from storage.records import by_key

_TABLES = ("propositions", "proposition_inputs")


class Proposition(NamedTuple):
    """A statement that stands alone; the span is the sentence of the document that makes it."""

    chunk: str
    text: str
    start: int
    end: int


class PropositionStore(Store):
    """The propositions of a generation."""

    def propositions(self, chunks: Collection[str] | None = None) -> list[Proposition]:
        """Return the propositions of these chunks (None: all), by chunk and place."""
        if not self._db.has_table("propositions"):
            return []
        where = selection("chunk", chunks)
        columns = self._db.columns(Proposition._fields, "propositions", "chunk, ordinal", where)
        return list(map(Proposition, *columns.values()))

    def inputs(self) -> dict[str, str]:
        """Return for each chunk that was read the hash of what its propositions depend on."""
        if not self._db.has_table("proposition_inputs"):
            return {}
        return dict(self._db.rows("SELECT chunk, inputs FROM proposition_inputs ORDER BY chunk"))

    def put(self, made: Mapping[str, Sequence[Proposition]], inputs: Mapping[str, str]) -> None:
        """Store the propositions of chunks in place of earlier ones, with what they depend on."""
        with self._db.transaction():
            self.remove(made)
            rows = [(name, inputs[name]) for name in made]
            self._db.insert_rows("proposition_inputs", ("chunk", "inputs"), rows)
            records = [one for group in made.values() for one in group]
            ordinals = [place for group in made.values() for place in range(len(group))]
            fields = Proposition._fields
            self._db.insert_records("propositions", records, fields, {"ordinal": ordinals})

    def remove(self, chunks: Collection[str] | None = None) -> None:
        """Remove the propositions of these chunks (None: all), with the windows on them."""
        gone = by_key((one.chunk, one) for one in self.propositions(chunks))
        with self._db.transaction():
            if gone:
                where, parameters = selection("chunk", gone)
                sql = f"DELETE FROM windows WHERE contains(id, ':') AND {where}"
                self._db.execute(sql, parameters)
            for table in _TABLES:
                self._db.delete(table, "chunk", chunks)
