"""What a real model answered is bound to the text without a loss."""

import gzip
import json
from collections import Counter
from pathlib import Path

from prompts.extracted import EntityFound, Extracted, RelationFound
from tasks.extract import to_extraction
from tests.graphs import build_graph
from tests.records import chunk_of


def test_nothing_that_gpt_4o_extracted_is_lost(recorded_data: Path) -> None:
    lines = gzip.decompress(
        (recorded_data / "christmas_carol_gpt4o_extraction.jsonl.gz").read_bytes()
    ).splitlines()
    chunks, extractions = {}, []
    told: Counter[str] = Counter()
    for number, row in enumerate(map(json.loads, lines)):
        chunk = chunk_of(str(row["text"]), ordinal=number, title="")
        found = Extracted(
            entities=[EntityFound(kind=entity["type"], **entity) for entity in row["entities"]],
            relations=[
                RelationFound(predicate="is related to", strength=relation["weight"], **relation)
                for relation in row["relations"]
            ],
        )
        bound = to_extraction(chunk, found)
        names = Counter(mention.name for mention in bound.mentions)
        assert not Counter(entity.name for entity in found.entities) - names
        assert len(bound.relations) == len(found.relations)
        told += Counter(
            entities=len(found.entities),
            relations=len(found.relations),
            bound=len(bound.mentions),
            unnamed=sum(mention.start == mention.end for mention in bound.mentions),
        )
        chunks[chunk.id] = chunk
        extractions.append(bound)
    assert told == Counter(entities=642, relations=492, bound=643, unnamed=144)
    graph = build_graph(extractions, chunks)
    assert sum(entity.mentions for entity in graph.entities) == told["bound"]
    assert any(entity.name == "Scrooge" and entity.degree > 50 for entity in graph.entities)
