"""Exports a generation as sorted rows, and as items that two generations are compared by."""

import json
from collections.abc import Collection
from dataclasses import asdict
from typing import Literal, get_args

from pydantic import JsonValue, TypeAdapter

from storage.database import Store, selection
from storage.records import Document, Record
from storage.staging import OpenGeneration

JsonRow = dict[str, JsonValue]
Export = dict[str, list[JsonRow]]


def export(generation: OpenGeneration) -> Export:
    """Return sorted rows for each kind of record."""
    graph, communities = generation.graph, generation.communities
    extractions = generation.extractions.extractions()
    rows_by_kind = {
        "documents": TypeAdapter(list[Document]).dump_python(
            generation.documents.documents(), mode="json"
        ),
        "chunks": [asdict(c) for c in generation.documents.chunks()],
        "mentions": [m._asdict() for e in extractions for m in e.mentions],
        "relation_mentions": [
            r._asdict() | {"keys": list(r.keys)} for e in extractions for r in e.relations
        ],
        "claim_mentions": [c._asdict() for e in extractions for c in e.claims],
        "fact_mentions": [f._asdict() for e in extractions for f in e.facts],
        "left_out_facts": [f._asdict() for e in extractions for f in e.left_out],
        "entities": [asdict(e) for e in graph.entities()],
        "aliases": [a.model_dump(mode="json") for a in graph.aliases()],
        "entity_occurrences": [o._asdict() for o in graph.occurrences("entity")],
        "relations": [asdict(r) | {"keys": list(r.keys)} for r in graph.relations()],
        "relation_occurrences": [o._asdict() for o in graph.occurrences("relation")],
        "claims": [c.model_dump(mode="json") for c in graph.claims()],
        "facts": [asdict(f) for f in generation.facts.facts()],
        "communities": [
            asdict(c) | {"members": list(c.members)} for c in communities.communities()
        ],
        "reports": [r.model_dump(mode="json") for r in communities.reports()],
    }
    return {kind: sorted(rows, key=_text) for kind, rows in rows_by_kind.items()}


def _text(row: JsonRow) -> str:
    return json.dumps(row, sort_keys=True, ensure_ascii=False)


# --- comparison ---

Kind = Literal["documents", "entities", "relations", "claims", "facts", "communities", "reports"]
KINDS: tuple[Kind, ...] = get_args(Kind)

# The compared fields of each kind, which are columns of its query below.
FIELDS: dict[Kind, tuple[str, ...]] = {
    "documents": ("title", "text", "language", "metadata"),
    "entities": ("name", "kind", "description", "aliases", "mentions", "degree"),
    "relations": ("description", "count", "keys"),
    "claims": ("status", "since", "until", "documents"),
    "facts": ("since", "until", "documents"),
    "communities": ("level", "members"),
    "reports": ("title", "summary", "rating", "findings"),
}
_QUERIES: dict[Kind, str] = {
    "documents": "SELECT id, title AS label, title, text, language, metadata FROM documents",
    "entities": """
        SELECT id, name AS label, name, kind, description, coalesce(names, []) AS aliases,
               mentions::VARCHAR AS mentions, degree::VARCHAR AS degree
        FROM entities LEFT JOIN (
            SELECT entity, list(name ORDER BY name) AS names FROM aliases GROUP BY entity)
            ON entity = id
    """,
    "relations": """
        SELECT r.id, s.name || ' -[' || r.predicate || ']-> ' || t.name AS label, r.description,
               r.count::VARCHAR AS count, r.keys
        FROM relations AS r
            JOIN entities AS s ON s.id = r.source JOIN entities AS t ON t.id = r.target
    """,
    # The id of a claim depends on its place; this one only on what is claimed.
    "claims": """
        SELECT 'clm_' || md5(concat_ws(chr(31), m.subject, coalesce(m.object, ''), m.kind,
                                       m.description))[:16] AS id,
               any_value(coalesce(nullif(m.description, ''), m.kind)) AS label,
               string_agg(DISTINCT m.status, ', ' ORDER BY m.status) AS status,
               coalesce(min(m.since), '') AS since, coalesce(max(m.until), '') AS until,
               list(DISTINCT c.document ORDER BY c.document) AS documents
        FROM claims AS m JOIN chunks AS c ON c.id = m.chunk GROUP BY 1
    """,
    # The same of a fact: what it says of its subject.
    "facts": """
        SELECT 'fct_' || md5(concat_ws(chr(31), f.subject, f.type, f.said))[:16] AS id,
               any_value(s.name || ': ' || f.type || ' = ' || coalesce(o.name, f.value)) AS label,
               coalesce(min(f.valid_from), '') AS since, coalesce(max(f.valid_to), '') AS until,
               list(DISTINCT c.document ORDER BY c.document) AS documents
        FROM facts AS f JOIN chunks AS c ON c.id = f.chunk JOIN entities AS s ON s.id = f.subject
            LEFT JOIN entities AS o ON o.id = f.object
        GROUP BY 1
    """,
    "communities": """
        SELECT c.id,
               coalesce(any_value(r.title), string_agg(e.name, ', ' ORDER BY e.name)[:80]) AS label,
               any_value(c.level)::VARCHAR AS level, list(e.name ORDER BY e.name, e.id) AS members
        FROM (SELECT id, level, unnest(members) AS member FROM communities) AS c
            JOIN entities AS e ON e.id = c.member LEFT JOIN reports AS r ON r.community = c.id
        GROUP BY c.id
    """,
    "reports": """
        SELECT r.community AS id, r.title AS label, r.title, r.summary, r.rating::VARCHAR AS rating,
               coalesce(list(f.summary ORDER BY f.ordinal) FILTER (f.summary IS NOT NULL), [])
                   AS findings
        FROM reports AS r LEFT JOIN (SELECT DISTINCT community, ordinal, summary FROM findings) AS f
             ON f.community = r.community
        GROUP BY r.community, r.title, r.summary, r.rating
    """,
}

Value = str | tuple[str, ...]


class Item(Record):
    """An item with its name for people (`label`) and its values in the order of `FIELDS`."""

    id: str
    label: str
    values: tuple[Value, ...]


class ItemReader(Store):
    """Reads the items of a generation by kind and id."""

    def prints(self, kind: Kind) -> dict[str, str]:
        """Return a hash of the compared fields of every item, by id."""
        columns = ", ".join(f"{name}::VARCHAR" for name in FIELDS[kind])
        sql = f"SELECT id, md5(concat_ws(chr(31), {columns})) FROM ({_QUERIES[kind]}) ORDER BY id"
        return dict(self._db.rows(sql))

    def items(self, kind: Kind, ids: Collection[str]) -> dict[str, Item]:
        columns = ", ".join(FIELDS[kind])
        where, parameters = selection("id", ids)
        sql = f"SELECT id, label, {columns} FROM ({_QUERIES[kind]}) WHERE {where} ORDER BY id"
        return {
            name: Item(id=name, label=label, values=tuple(values))
            for name, label, *values in self._db.rows(sql, parameters)
        }
