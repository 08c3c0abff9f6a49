"""Embedding: one vector for each window of text that the embedder can read, once per (model, text)."""

import asyncio
from collections.abc import Collection, Sequence

from prompts.engine.embedders import Embedder, Floats, text_hash
from storage.records import Chunk, Record
from storage.vectors import Window
from tasks.step import PATIENT, step


class Windows(Record):
    """The windows of some chunks, and the text of each that has no vector yet, by hash."""

    windows: tuple[Window, ...]
    missing: dict[str, str]


def embedded_text(chunk: Chunk, start: int, end: int) -> str:
    """What is embedded for a window: its text under the title, so that a passage keeps its subject."""
    text = chunk.text[start:end]
    return text if not chunk.title or text.startswith(chunk.title) else f"{chunk.title}\n{text}"


def windows_of(chunks: Sequence[Chunk], embedder: Embedder) -> list[tuple[Window, str]]:
    """The windows of the chunks that the embedder can read (other scripts are found lexically, never embedded)."""
    found = []
    for chunk in chunks:
        if not embedder.reads(chunk.text):
            continue
        for number, (start, end) in enumerate(embedder.windows(chunk.text, embedder.max_tokens - 24)):
            text = embedded_text(chunk, start, end)
            window = Window(
                id=f"{chunk.id}#{number}", chunk=chunk.id, document=chunk.document, text_hash=text_hash(text)
            )
            found.append((window, text))
    return found


def plan_windows(chunks: Sequence[Chunk], embedder: Embedder, have: Collection[str]) -> Windows:
    """The windows of new chunks, and which texts are new; `have` are the hashes that already have a vector."""
    pairs = windows_of(chunks, embedder)
    return Windows(
        windows=tuple(window for window, _ in pairs),
        missing={window.text_hash: text for window, text in pairs if window.text_hash not in have},
    )


@step("embed", PATIENT)
async def embed(texts: dict[str, str], embedder: Embedder) -> dict[str, Floats]:
    """The vector of each text, by its hash; made in a thread, so that calls to models go on meanwhile."""
    vectors = await asyncio.to_thread(embedder.embed, list(texts.values()))
    return dict(zip(texts, vectors, strict=True))
