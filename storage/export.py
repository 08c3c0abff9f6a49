"""Do two runs give the same? Everything that must be equal between them, as plain sorted rows.

Vectors, usage, settings and times are left out: they are outside that promise.
"""

import json

from pydantic import JsonValue

from storage.rooms import Rooms

JsonRow = dict[str, JsonValue]
Export = dict[str, list[JsonRow]]


def export(generation: Rooms) -> Export:
    """One list of rows for each kind of record, sorted."""
    graph, communities = generation.graph, generation.communities
    extractions = generation.extractions.extractions()
    found = {
        "documents": [d.model_dump(mode="json") for d in generation.documents.documents()],
        "chunks": [c.model_dump(mode="json") for c in generation.documents.chunks()],
        "mentions": [m.model_dump(mode="json") for e in extractions for m in e.mentions],
        "relation_mentions": [r.model_dump(mode="json") for e in extractions for r in e.relations],
        "claim_mentions": [c.model_dump(mode="json") for e in extractions for c in e.claims],
        "entities": [e.model_dump(mode="json") for e in graph.entities()],
        "aliases": [a.model_dump(mode="json") for a in graph.aliases()],
        "entity_occurrences": [o.model_dump(mode="json") for o in graph.occurrences("entity")],
        "relations": [r.model_dump(mode="json") for r in graph.relations()],
        "relation_occurrences": [o.model_dump(mode="json") for o in graph.occurrences("relation")],
        "claims": [c.model_dump(mode="json") for c in graph.claims()],
        "communities": [c.model_dump(mode="json") for c in communities.communities()],
        "reports": [r.model_dump(mode="json") for r in communities.reports()],
    }
    return {kind: sorted(rows, key=_text) for kind, rows in found.items()}


def _text(row: JsonRow) -> str:
    return json.dumps(row, sort_keys=True, ensure_ascii=False)
