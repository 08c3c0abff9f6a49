"""Which names of entities get a vector? All of the generation's that have none yet, where the settings ask for it."""

from flows.runtime import Runtime
from prompts.engine.embedder import Embedder, text_hash
from storage.records import Entity
from storage.staging import Staging
from tasks.embed import embed

BATCH = 512


async def embed_names(staging: Staging, runtime: Runtime) -> None:
    """Store the vector of each entity's name, once per model and name; nothing without the setting `entity_vectors`.

    Call it when the generation's entities are stored.
    """
    if not runtime.settings.entity_vectors:
        return
    embedder = runtime.embedder
    names = hashes_of(staging.graph.entities(), embedder)
    known = staging.vectors.have(embedder.name, list(names))
    todo = [key for key in names if key not in known]
    for at in range(0, len(todo), BATCH):
        batch = {key: names[key] for key in todo[at : at + BATCH]}
        staging.vectors.put(embedder.name, await embed(batch, embedder))
        runtime.progress("embed names", min(at + BATCH, len(todo)), len(todo))


def hashes_of(entities: list[Entity], embedder: Embedder) -> dict[str, str]:
    """The names that the embedder can read, by the hash under which their vectors are stored."""
    return {text_hash(entity.name): entity.name for entity in entities if embedder.reads(entity.name)}
