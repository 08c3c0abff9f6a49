"""Vectors of the graph: of names, where the settings ask for them, and of relations that a model gave keys."""

from collections.abc import Sequence

import numpy as np

from flows.runtime import Runtime
from flows.side_by_side import in_thread
from prompts.engine.embedder import Embedder, text_hash
from storage.records import Entity, Relation
from storage.staging import Staging
from tasks.embed import embed
from tasks.resolve.near import near_pairs
from tasks.retrieve.levels import keyed_text

BATCH = 512
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


async def embed_names(staging: Staging, runtime: Runtime) -> None:
    """Store the vector of each entity's name; nothing without the setting `entity_vectors`.

    Call it when the generation's entities are stored.
    """
    if runtime.settings.entity_vectors:
        await _embed(hashes_of(staging.graph.entities(), runtime.embedder), staging, runtime)


async def embed_relations(staging: Staging, runtime: Runtime) -> None:
    """Store a vector of keys and description for each relation that a model gave keys to; once per model and text.

    Call it when the generation's relations are stored.
    """
    await _embed(relation_texts(staging.graph.relations(), runtime.embedder), staging, runtime)


def relation_texts(relations: Sequence[Relation], embedder: Embedder) -> dict[str, str]:
    """The texts that relations are found by, as far as the embedder can read them, by hash."""
    return _readable([keyed_text(one) for one in relations if one.keys], embedder)


async def _embed(names: dict[str, str], staging: Staging, runtime: Runtime) -> None:
    embedder = runtime.embedder
    known = staging.vectors.have(embedder.name, list(names))
    todo = [key for key in names if key not in known]
    for at in range(0, len(todo), BATCH):
        batch = {key: names[key] for key in todo[at : at + BATCH]}
        staging.vectors.put(embedder.name, await embed(batch, embedder))
        runtime.progress("embed names", min(at + BATCH, len(todo)), len(todo))


def hashes_of(entities: list[Entity], embedder: Embedder) -> dict[str, str]:
    """The names that the embedder can read, by the hash under which their vectors are stored."""
    return _readable([entity.name for entity in entities], embedder)


def _readable(names: list[str], embedder: Embedder) -> dict[str, str]:
    return {text_hash(name): name for name in names if embedder.reads(name)}
