"""Small documents, graphs and vectors for the storage tests."""

import hashlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from storage.graph_records import (
    Alias,
    Community,
    Entity,
    Extraction,
    Finding,
    Mention,
    Occurrence,
    Relation,
    RelationMention,
    Report,
    TextSpan,
)
from storage.records import Chunk, Document, Part, Triple
from storage.staging import Staging
from storage.vector_search import open_vector_store
from storage.vector_store import ServerAddress
from storage.vectors import Window
from storage.workspace import Workspace

MODEL = "tiny"
SIZE = 8


def text_part(document: str, text: str) -> Part:
    return Part(
        document=document,
        source="src",
        path=f"{document}.md",
        kind="text",
        title=f"On {document}",
        text=text,
        metadata={"year": 1999, "share": 1.0, "draft": False, "note": None, "标签": "文"},
        pages=(0, 3),
    )


def triple_part(document: str, triples: list[Triple]) -> Part:
    return Part(
        document=document,
        source="facts",
        path="facts.csv",
        kind="triples",
        title="",
        text="\n".join(t.rendered() for t in triples),
        triples=tuple(triples),
    )


def document(name: str, *parts: Part) -> Document:
    return Document(
        id=name,
        title=f"On {name}",
        text="\n\n".join(p.text for p in parts),
        language="en",
        parts=parts,
        metadata={"year": 1999},
        pages=parts[0].pages if parts else (),
    )


def chunks_of(stored: Document, width: int = 20) -> list[Chunk]:
    starts = range(0, len(stored.text), width)
    return [
        Chunk(
            id=f"chk_{stored.id}_{ordinal}",
            document=stored.id,
            ordinal=ordinal,
            start=start,
            end=min(start + width, len(stored.text)),
            text=stored.text[start : start + width],
            tokens=5,
            language="en",
            title=stored.title,
            heading="A > B",
        )
        for ordinal, start in enumerate(starts)
    ]


def vector(text: str) -> NDArray[np.float32]:
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")
    return np.random.default_rng(seed).standard_normal(SIZE).astype(np.float32)


def window(chunk: Chunk, part: int = 0) -> Window:
    return Window(
        id=f"{chunk.id}#{part}",
        chunk=chunk.id,
        document=chunk.document,
        text_hash=f"{chunk.text}/{part}",
    )


def put(staging: Staging, name: str, text: str, embed: bool = True) -> list[Chunk]:
    """Writes a document and everything that an index run derives from it."""
    stored = document(name, text_part(name, text))
    chunks = chunks_of(stored)
    staging.documents.put_documents([stored])
    staging.documents.put_chunks(chunks, [name])
    staging.documents.put_postings({c.id: {"common": 1, name: 2} for c in chunks})
    staging.extractions.save_extractions(
        [extraction(c) for c in chunks], {c.id: f"in-{c.id}" for c in chunks}
    )
    if embed:
        windows = [window(c) for c in chunks]
        staging.vectors.put(MODEL, {w.text_hash: vector(w.text_hash) for w in windows})
        staging.vectors.put_windows(MODEL, windows)
    return chunks


def extraction(chunk: Chunk) -> Extraction:
    mention = Mention(chunk.id, "Zoë", "person", chunk.start, chunk.start + 3, "a\nb")
    plain = RelationMention(chunk.id, "b", "a", "p", 1, 2)
    relation = RelationMention(
        chunk.id, "Zoë", "ada", "knows", 0, 5, weight=0.5, keys=("friendship", "时间")
    )
    return Extraction(chunk.id, (mention, mention._replace(name="Ada")), (plain, relation))


def same_ranking(one: list[tuple[str, float]], other: list[tuple[str, float]]) -> bool:
    """Whether two searches agree, except in the last digit and among chunks as good as the last.

    An approximate index may miss one of several equal windows.
    """
    scores = np.array([[a, b] for (_, a), (_, b) in zip(one, other, strict=False)])
    last = other[-1][1] + 2e-5
    better = [[chunk for chunk, score in ranking if score > last] for ranking in (one, other)]
    close = bool(np.allclose(scores[:, 0], scores[:, 1], atol=2e-5))
    return len(one) == len(other) and close and better[0] == better[1]


def served_by(
    name: str, root: Path, keep: int = 5, address: ServerAddress | None = None
) -> Workspace:
    return Workspace(root, keep, open_vector_store(name, root, address))


def publish(
    place: Path | Workspace,
    texts: dict[str, str],
    keep: int = 5,
    store: str = "auto",
    embed: bool = True,
) -> int:
    workspace = place if isinstance(place, Workspace) else served_by(store, place, keep)
    with workspace.write() as staging:
        for name, text in texts.items():
            put(staging, name, text, embed)
        return staging.publish()


ENTITIES = [
    Entity("ent_1", "Ada", "person", mentions=2, degree=1),
    Entity("ent_2", "图灵", "person", "𝄞 note", mentions=1, degree=1),
]
ALIASES = [Alias(entity="ent_1", name="A. L.", reason="initials")]
RELATIONS = [
    Relation("rel_1", "ent_1", "ent_2", "met", weight=0.25, count=2),
    Relation("rel_2", "ent_2", "ent_2", "is", keys=("self",)),
]
COMMUNITIES = [
    Community("com_1", 0, None, ("ent_2", "ent_1")),
    Community("com_2", 1, "com_1", ("ent_1",)),
]
FINDINGS = (
    Finding(summary="z", explanation="first", document="a", start=0, end=3),
    Finding(
        summary="b",
        explanation="second",
        document="a",
        start=4,
        end=9,
        more=(TextSpan(document="b", start=7, end=8), TextSpan(document="a", start=0, end=3)),
    ),
)
REPORTS = [
    Report(
        community=community,
        level=level,
        title="T",
        summary="S",
        rating=7.5,
        rating_reason="R",
        inputs="h",
        findings=findings,
    )
    for community, level, findings in (("com_1", 0, FINDINGS), ("com_2", 1, ()))
]


def occurrences(chunk: str) -> list[Occurrence]:
    spans = [("ent_1", 0, 3), ("ent_1", 9, 12), ("ent_2", 4, 6)]
    return [Occurrence(item, chunk, start, end) for item, start, end in spans]
