"""A search index over a few passages: a name stands in a passage where its words do."""

from collections.abc import Mapping, Sequence

import numpy as np
from scipy.sparse import csr_matrix

from storage.database import SparseCounts
from storage.graph_records import Entity
from storage.records import Chunk
from tasks.extract import find_name
from tasks.retrieve.lexical import chunk_terms
from tasks.retrieve.search import SearchIndex
from tests.records import chunk_of


def postings_of(chunks: Sequence[Chunk]) -> SparseCounts:
    counts = [chunk_terms(chunk) for chunk in chunks]
    terms = sorted({term for count in counts for term in count})
    table = csr_matrix(np.array([[count[term] for term in terms] for count in counts], np.int32))
    return SparseCounts([chunk.id for chunk in chunks], terms, table)


def index_of(
    texts: Mapping[str, str], kinds: Mapping[str, str], triples: Mapping[str, str] | None = None
) -> SearchIndex:
    """`texts` are passages by title, which is their document too; `kinds` are names with their
    kinds; `triples` are rendered, by document.
    """
    chunks = [chunk_of(text, title) for title, text in texts.items()]
    for title, lines in (triples or {}).items():
        chunks.append(chunk_of(lines, title, 1, id=f"chk_{title}/triples", kind="triples"))
    entities = [
        Entity(id=f"ent_{place}", name=name, kind=kind)
        for place, (name, kind) in enumerate(kinds.items())
    ]
    written = [chunk.text if chunk.ordinal else f"{chunk.title}\n{chunk.text}" for chunk in chunks]
    pairs = [[find_name(text, name) is not None for text in written] for name in kinds]
    stands = csr_matrix(np.array(pairs, np.int32).reshape(len(kinds), len(chunks)))
    stored = SparseCounts(
        [entity.id for entity in entities], [chunk.id for chunk in chunks], stands
    )
    return SearchIndex(chunks, postings_of(chunks), stored, entities, [])
