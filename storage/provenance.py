"""Stores how a generation was made: settings, model use, extractions, dead letters, resolved names.

Resolved names and descriptions tell the next run what a change affects and which model calls it
need not repeat.
"""

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TypeVar

from pydantic import JsonValue

from storage.database import Column, Selection, Store, field_names, selection
from storage.facts import unknown_as_text
from storage.graph_records import (
    ClaimMention,
    Extraction,
    FactMention,
    LeftOutFact,
    Mention,
    RelationMention,
)
from storage.records import DeadLetter, by_key
from storage.run_records import UsageRow

_TABLES = ("mentions", "relation_mentions", "claim_mentions", "fact_mentions", "left_out_facts")

T = TypeVar("T", Mention, RelationMention, ClaimMention, FactMention, LeftOutFact)


class ExtractionStore(Store):
    """Extractions as they were saved, before names are resolved, and dead letters."""

    def extractions(self, chunks: Collection[str] | None = None) -> list[Extraction]:
        """Return the extraction of each chunk, also empty ones, by chunk id."""
        where = selection("chunk", chunks)
        mentions = self._by_chunk(Mention, "mentions", where)
        relations = self._by_chunk(RelationMention, "relation_mentions", where)
        claims = self._by_chunk(ClaimMention, "claim_mentions", where)
        facts = self._by_chunk(FactMention, "fact_mentions", where)
        left_out = self._by_chunk(LeftOutFact, "left_out_facts", where)
        extracted = self._db.strings(
            f"SELECT chunk FROM extractions WHERE {where[0]} ORDER BY chunk", where[1]
        )
        return [
            Extraction(
                c,
                tuple(mentions[c]),
                tuple(relations[c]),
                tuple(claims[c]),
                tuple(facts[c]),
                tuple(left_out[c]),
            )
            for c in extracted
        ]

    def _by_chunk(self, kind: type[T], table: str, where: Selection) -> dict[str, list[T]]:
        columns = self._db.columns(kind._fields, table, "chunk, ordinal", where)
        if "keys" in columns:
            columns["keys"] = [tuple(keys.tolist()) for keys in columns["keys"]]
        found = zip(columns["chunk"], map(kind, *columns.values()), strict=True)
        return defaultdict(list, by_key(found))

    def names(self) -> Iterable[tuple[str, str, int]]:
        """Return (name, kind, how often it is mentioned as that), by name and kind."""
        counted = "(SELECT name, kind, count(*) AS mentions FROM mentions GROUP BY ALL)"
        columns = self._db.columns(("name", "kind", "mentions"), counted, "name, kind")
        return zip(*columns.values(), strict=True)

    def naming(self) -> Iterable[tuple[str, str]]:
        """Return the different (chunk, name), by chunk and name."""
        distinct = "(SELECT DISTINCT chunk, name FROM mentions)"
        columns = self._db.columns(("chunk", "name"), distinct, "chunk, name")
        return zip(*columns.values(), strict=True)

    def related(self, predicate: str, names: Collection[str]) -> list[tuple[str, str, str, str]]:
        """Return (chunk, source, predicate, target) of statements, by chunk and place.

        They have this predicate, or one of these names as source or target.
        """
        at_an_end, values = selection("source, target", names)
        where = f"(predicate = ? OR {at_an_end})", [predicate, *values]
        fields = ("chunk", "source", "predicate", "target")
        columns = self._db.columns(fields, "relation_mentions", "chunk, ordinal", where)
        return list(zip(*columns.values(), strict=True))

    def inputs(self) -> dict[str, str]:
        """Return for each extracted chunk the hash of what its extraction was made from."""
        return dict(self._db.rows("SELECT chunk, inputs FROM extractions ORDER BY chunk"))

    def dead_letters(self) -> list[DeadLetter]:
        return self._db.select(DeadLetter, "dead_letters", "step, item")

    def save_extractions(
        self, extractions: Sequence[Extraction], inputs: Mapping[str, str]
    ) -> None:
        """Save the extractions of chunks in place of earlier ones.

        `inputs` maps each chunk to the hash of what its extraction was made from.
        """
        chunks = [e.chunk for e in extractions]
        with self._db.transaction():
            # A deletion reads the whole table, so it names only chunks that are there.
            where, parameters = selection("chunk", chunks)
            before = self._db.strings(f"SELECT chunk FROM extractions WHERE {where}", parameters)
            for table in ("extractions", *_TABLES):
                self._db.delete(table, "chunk", before)
            self._db.insert("extractions", {"chunk": chunks, "inputs": [inputs[c] for c in chunks]})
            self._insert("mentions", Mention, [e.mentions for e in extractions])
            self._insert("relation_mentions", RelationMention, [e.relations for e in extractions])
            self._insert("claim_mentions", ClaimMention, [e.claims for e in extractions])
            facts = [e.facts for e in extractions]
            numbers = unknown_as_text([fact for group in facts for fact in group])
            self._insert("fact_mentions", FactMention, facts, numbers)
            self._insert("left_out_facts", LeftOutFact, [e.left_out for e in extractions])

    def _insert(
        self,
        table: str,
        kind: type[T],
        groups: Sequence[Sequence[T]],
        columns: Mapping[str, Column] | None = None,
    ) -> None:
        records = [record for group in groups for record in group]
        ordinals = [ordinal for group in groups for ordinal in range(len(group))]
        more: dict[str, Column] = {"ordinal": ordinals, **(columns or {})}
        self._db.insert_records(table, records, kind._fields, more)

    def put_dead_letters(self, letters: Sequence[DeadLetter]) -> None:
        """Store failed work in place of letters with the same item and step."""
        last = {(letter.item, letter.step): letter for letter in letters}
        with self._db.transaction():
            for step in {step for _, step in last}:
                self.remove_dead_letters([item for item, of in last if of == step], step)
            fields = field_names(DeadLetter)
            self._db.insert_records("dead_letters", list(last.values()), fields)

    def remove_dead_letters(
        self, items: Collection[str] | None = None, step: str | None = None
    ) -> None:
        by_item, first = selection("item", items)
        by_step, second = selection("step", None if step is None else [step])
        self._db.execute(f"DELETE FROM dead_letters WHERE {by_item} AND {by_step}", first + second)


_COUNTED = (
    "documents",
    "chunks",
    "mentions",
    "entities",
    "aliases",
    "relations",
    "claims",
    "communities",
    "reports",
    "windows",
    "dead_letters",
)


SCHEMA = "schema"  # key in `meta`: the schema that the facts were checked against


class MetaStore(Store):
    """Settings, model use and counts."""

    def get_meta(self, key: str) -> JsonValue:
        """Return what `put_meta` stored under the key, or None."""
        values = self._db.strings("SELECT value FROM meta WHERE key = ?", [key])
        value: JsonValue = json.loads(values[0]) if values else None
        return value

    def usage(self) -> list[UsageRow]:
        return self._db.select(UsageRow, "usage", "step, model")

    def counts(self) -> dict[str, int]:
        """Count the records of each kind; communities only with two entities or more."""
        counts = {table: self._db.number(f"SELECT count(*) FROM {table}") for table in _COUNTED}
        sql = "SELECT count(DISTINCT members) FROM communities WHERE len(members) > 1"
        return counts | {"communities": self._db.number(sql)}

    def put_meta(self, key: str, value: JsonValue) -> None:
        with self._db.transaction():
            self._db.delete("meta", "key", [key])
            row = (key, json.dumps(value, ensure_ascii=False))
            self._db.insert_rows("meta", ("key", "value"), [row])

    def replace_usage(self, rows: Sequence[UsageRow]) -> None:
        with self._db.transaction():
            self._db.delete("usage", "", None)
            # Columns of numbers cannot hold None, which an unknown cost is.
            for row in rows:
                values = row.model_dump()
                marks = ", ".join("?" for _ in values)
                sql = f"INSERT INTO usage ({', '.join(values)}) VALUES ({marks})"
                self._db.execute(sql, list(values.values()))


DocumentName = tuple[str, str]  # a document and the key of a name in it
ResolvedTo = tuple[str, str]  # the key of the entity that the name means there, and the reason
PairDecision = tuple[bool, str]  # whether two names mean the same entity, and the reason


class ResolutionStore(Store):
    """What each name means, what a model decided about pairs of names, and what it described."""

    def places(self) -> dict[DocumentName, ResolvedTo]:
        fields = ("document", "name_key", "thing", "why")
        rows = zip(*self._db.columns(fields, "resolutions", "rowid").values(), strict=True)
        return {(document, key): (thing, why) for document, key, thing, why in rows}

    def decisions(self) -> dict[str, PairDecision]:
        """Return a model's decisions by the hash of the pair."""
        rows = self._db.rows("SELECT pair, same, reason FROM decisions")
        return {pair: (same, reason) for pair, same, reason in rows}

    def replace_places(
        self, documents: Collection[str] | None, places: Mapping[DocumentName, ResolvedTo]
    ) -> None:
        with self._db.transaction():
            self._db.delete("resolutions", "document", documents)
            rows = [(*name, *resolved) for name, resolved in places.items()]
            self._db.insert_rows("resolutions", ("document", "name_key", "thing", "why"), rows)

    def replace_decisions(self, decisions: Mapping[str, PairDecision]) -> None:
        with self._db.transaction():
            self._db.delete("decisions", "", None)
            rows = [(pair, *verdict) for pair, verdict in decisions.items()]
            self._db.insert_rows("decisions", ("pair", "same", "reason"), rows)

    def described(self) -> dict[str, str]:
        """Return the hash of what each description was made from, by entity or relation."""
        return dict(self._db.rows("SELECT item, inputs FROM descriptions"))

    def replace_described(self, items: Collection[str] | None, inputs: Mapping[str, str]) -> None:
        with self._db.transaction():
            self._db.delete("descriptions", "item", items)
            self._db.insert_rows("descriptions", ("item", "inputs"), list(inputs.items()))
