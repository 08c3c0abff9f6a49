"""Embedding: one vector for each window of text that the embedder can read, once per (model,
text).
"""

import asyncio
from collections.abc import Sequence

from prompts.engine.embedders import Embedder, Floats, text_hash
from storage.records import Chunk
from storage.vectors import Window
from tasks.retrying import PATIENT
from tasks.step import step


def windows_of(chunks: Sequence[Chunk], embedder: Embedder) -> list[tuple[Window, str]]:
    """The windows of the chunks that the embedder can read, each with its text under the title, so
    that a passage keeps its subject. Other scripts are found lexically, never embedded.
    """
    windows = []
    for chunk in chunks:
        if not embedder.reads(chunk.text):
            continue
        for start, end in embedder.windows(chunk.text, embedder.max_tokens - 24):
            text = chunk.text[start:end]
            text = (
                text
                if not chunk.title or text.startswith(chunk.title)
                else f"{chunk.title}\n{text}"
            )
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
    """Compute the vector of each text, by its hash; in a thread, so that calls to models go on
    meanwhile.
    """
    vectors = await asyncio.to_thread(embedder.embed, list(texts.values()))
    return dict(zip(texts, vectors, strict=True))
