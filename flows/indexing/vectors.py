"""Vectors of a generation: of its chunks, of the names of entities where the settings ask for them, and of relations
that a model gave keys; with the terms by which chunks are found without vectors."""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from functools import partial

import numpy as np

from flows.indexing.concurrency import in_thread, side_by_side
from flows.runners.runner import Runner
from flows.runtime import Runtime
from prompts.engine.embedder import Embedder, text_hash
from storage.graph_records import Entity
from storage.records import Chunk
from storage.staging import Staging
from tasks.embed import embed, plan_windows
from tasks.resolve.candidates import near_pairs
from tasks.retrieve.dual_levels import keyed_text
from tasks.retrieve.lexical import chunk_terms

EMBED_BATCH, TERMS_BATCH, NAMES_BATCH = 256, 256, 512
# Names of one thing in other words lie there (0.8 to 0.9), as do many names of two: somebody has to decide.
LEAST_COSINE = 0.8


async def near_names(staging: Staging, runtime: Runtime) -> list[tuple[str, str]]:
    """The pairs of names whose vectors are alike; none without the setting `entity_vectors`.

    Stores the vector of each name, once per model and name.
    """
    if not runtime.settings.entity_vectors:
        return []
    names = _readable(staging.extractions.names(), runtime.embedder)
    await _embed(names, staging, runtime)
    vectors = staging.vectors.get(runtime.embedder.name, list(names))
    if not vectors:
        return []
    return await in_thread(near_pairs, list(names.values()), np.stack([vectors[key] for key in names]), LEAST_COSINE)


async def embed_graph(staging: Staging, runtime: Runtime) -> None:
    """Store a vector of each entity's name, with the setting `entity_vectors`, and one of keys and description for each
    relation that a model gave keys to; once per model and text.

    Call it when the generation's entities and relations are stored.
    """
    if runtime.settings.entity_vectors:
        await _embed(hashes_of(staging.graph.entities(), runtime.embedder), staging, runtime)
    relations = [keyed_text(one) for one in staging.graph.relations() if one.keys]
    await _embed(_readable(relations, runtime.embedder), staging, runtime)


async def _embed(names: dict[str, str], staging: Staging, runtime: Runtime) -> None:
    embedder = runtime.embedder
    known = staging.vectors.have(embedder.name, list(names))
    todo = [key for key in names if key not in known]
    for at in range(0, len(todo), NAMES_BATCH):
        batch = {key: names[key] for key in todo[at : at + NAMES_BATCH]}
        staging.vectors.put(embedder.name, await embed(batch, embedder))
        runtime.progress("embed names", min(at + NAMES_BATCH, len(todo)), len(todo))


def hashes_of(entities: list[Entity], embedder: Embedder) -> dict[str, str]:
    """The names that the embedder can read, by the hash under which their vectors are stored."""
    return _readable([entity.name for entity in entities], embedder)


def _readable(names: list[str], embedder: Embedder) -> dict[str, str]:
    return {text_hash(name): name for name in names if embedder.reads(name)}


async def embed_chunks(chunks: Sequence[Chunk], staging: Staging, runtime: Runtime, runner: Runner) -> None:
    """Store the terms and vectors of the chunks that have none yet, and the windows of all."""
    await asyncio.sleep(0)  # the calls to models go out first
    await _store_terms(chunks, staging)
    vectors, embedder = staging.vectors, runtime.embedder
    have = {window.chunk for window in vectors.windows()} if vectors.model() == embedder.name else set()
    new = [part for part in chunks if part.id not in have]
    planned = await in_thread(plan_windows, new, embedder, have=())
    known = vectors.have(embedder.name, list(planned.missing))
    texts = {key: text for key, text in planned.missing.items() if key not in known}
    keys = sorted(texts, key=lambda key: len(texts[key]))
    batches = [{key: texts[key] for key in keys[at : at + EMBED_BATCH]} for at in range(0, len(keys), EMBED_BATCH)]
    done = 0
    works = (partial(runner.embed, batch) for batch in batches)
    async with aclosing(side_by_side(works, await runner.at_once(1) if batches else 1)) as results:
        async for found in results:
            vectors.put(embedder.name, dict(found))
            done += len(found)
            runtime.progress("embed", done, len(keys))
    if vectors.model() not in (None, embedder.name):
        vectors.remove_windows()
    vectors.put_windows(embedder.name, list(planned.windows))
    await in_thread(staging.build_index)


async def _store_terms(chunks: Sequence[Chunk], staging: Staging) -> None:
    """The terms of the chunks that have none yet, batch by batch: what waits for a model gets its turn in between."""
    done = staging.postings.chunks_with_postings()
    todo = [chunk for chunk in chunks if chunk.id not in done]
    for start in range(0, len(todo), TERMS_BATCH):
        counts = {}
        for one in todo[start : start + TERMS_BATCH]:
            counts[one.id] = dict(chunk_terms(one))
            await asyncio.sleep(0)
        await in_thread(staging.postings.put_postings, counts)
