"""Small documents, graphs and vectors that the storage tests write and expect back."""

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


def text_part(document: str, text: str, pages: tuple[int, ...] = ()) -> Part:
    metadata = {"year": 1999, "share": 1.0, "draft": False, "note": None, "标签": "文"}
    return Part(
        document=document,
        source="src",
        path=f"{document}.md",
        kind="text",
        title=f"On {document}",
        text=text,
        metadata=metadata,
        pages=pages,
    )


def triple_part(document: str, triples: tuple[Triple, ...]) -> Part:
    text = "\n".join(t.rendered() for t in triples)
    return Part(
        document=document,
        source="facts",
        path="facts.csv",
        kind="triples",
        title="",
        text=text,
        triples=triples,
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
    """One document with its chunks, postings, extractions and windows; what an index run writes for
    it.
    """
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
    mention = Mention(
        chunk=chunk.id,
        name="Zoë",
        kind="person",
        start=chunk.start,
        end=chunk.start + 3,
        description="a\nb",
    )
    relation = RelationMention(
        chunk=chunk.id,
        source="Zoë",
        target="ada",
        predicate="knows",
        start=0,
        end=5,
        weight=0.5,
        keys=("friendship", "时间"),
    )
    plain = RelationMention(chunk=chunk.id, source="b", target="a", predicate="p", start=1, end=2)
    return Extraction(
        chunk=chunk.id,
        mentions=(mention, mention._replace(name="Ada")),
        relations=(plain, relation),
    )


def same_ranking(one: list[tuple[str, float]], other: list[tuple[str, float]]) -> bool:
    """Whether two searches agree.

    Chroma and the database may differ in the last digit of a score, and an approximate index may
    miss one of equals, such as the windows of a text that repeats itself: those that score as the
    last one does are free.
    """
    scores = np.array([[a, b] for (_, a), (_, b) in zip(one, other, strict=False)])
    last = other[-1][1] + 2e-5
    better = [[chunk for chunk, score in ranking if score > last] for ranking in (one, other)]
    close = bool(np.allclose(scores[:, 0], scores[:, 1], atol=2e-5))
    return len(one) == len(other) and close and better[0] == better[1]


def served_by(name: str, root: Path, keep: int = 5, url: str | None = None) -> Workspace:
    """A workspace with the vector store of this name."""
    return Workspace(root, keep, open_vector_store(name, root, ServerAddress(url) if url else None))


def publish(
    place: Path | Workspace,
    texts: dict[str, str],
    keep: int = 5,
    store: str = "auto",
    embed: bool = True,
) -> int:
    with (
        place if isinstance(place, Workspace) else served_by(store, place, keep)
    ).write() as staging:
        for name, text in texts.items():
            put(staging, name, text, embed)
        return staging.publish()


ENTITIES = [
    Entity(id="ent_1", name="Ada", kind="person", description="", mentions=2, degree=1),
    Entity(id="ent_2", name="图灵", kind="person", description="𝄞 note", mentions=1, degree=1),
]
ALIASES = [Alias(entity="ent_1", name="A. L.", reason="initials")]
RELATIONS = [
    Relation(id="rel_1", source="ent_1", target="ent_2", predicate="met", weight=0.25, count=2),
    Relation(id="rel_2", source="ent_2", target="ent_2", predicate="is", keys=("self",)),
]
COMMUNITIES = [
    Community(id="com_1", level=0, parent=None, members=("ent_2", "ent_1")),
    Community(id="com_2", level=1, parent="com_1", members=("ent_1",)),
]
REPORTS = [
    Report(
        community="com_1",
        level=0,
        title="T",
        summary="S",
        rating=7.5,
        rating_reason="R",
        inputs="h",
        findings=(
            Finding(summary="z", explanation="first", document="a", start=0, end=3),
            Finding(
                summary="b",
                explanation="second",
                document="a",
                start=4,
                end=9,
                more=(
                    TextSpan(document="b", start=7, end=8),
                    TextSpan(document="a", start=0, end=3),
                ),
            ),
        ),
    ),
    Report(
        community="com_2",
        level=1,
        title="U",
        summary="",
        rating=1,
        rating_reason="",
        inputs="i",
        findings=(),
    ),
]


def occurrences(chunk: str) -> list[Occurrence]:
    spans = [("ent_1", 0, 3), ("ent_1", 9, 12), ("ent_2", 4, 6)]
    return [Occurrence(item=item, chunk=chunk, start=start, end=end) for item, start, end in spans]
