"""Embedding: one vector for each window of text, computed once per model and text."""

import asyncio
from collections.abc import Sequence

from prompts.engine.embedders import Embedder, Floats, text_hash
from storage.records import Chunk
from storage.vectors import Window
from tasks.retrying import PATIENT
from tasks.step import step

_TITLE_TOKENS = 24  # kept free in each window


def windows_of(chunks: Sequence[Chunk], embedder: Embedder) -> list[tuple[Window, str]]:
    """Return the windows of the chunks, each with its text under the document's title.

    Chunks in scripts that the embedder cannot read have none: they are found by their words alone.
    """
    windows = []
    for chunk in chunks:
        if not embedder.reads(chunk.text):
            continue
        for start, end in embedder.windows(chunk.text, embedder.max_tokens - _TITLE_TOKENS):
            text = chunk.text[start:end]
            if chunk.title and not text.startswith(chunk.title):
                text = f"{chunk.title}\n{text}"
            window = Window(
                id=f"{chunk.id}#{start}-{end}",
                chunk=chunk.id,
                document=chunk.document,
                text_hash=text_hash(text),
            )
            windows.append((window, text))
    return windows


@step("embed", PATIENT, asks_model=True)
async def embed(texts: dict[str, str], embedder: Embedder) -> dict[str, Floats]:
    """Return the vector of each text, by its hash; a thread computes them."""
    vectors = await asyncio.to_thread(embedder.embed, list(texts.values()))
    return dict(zip(texts, vectors, strict=True))
