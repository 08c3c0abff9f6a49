"""A small graph in memory: six passages, what they name, and the relations that they state."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from storage.columns import ById
from storage.database import SparseCounts
from storage.graph_records import Alias, Entity, Occurrence, Relation
from storage.records import Chunk
from tasks.retrieve.dual_levels import DualLevelIndex
from tasks.retrieve.facts import GraphFacts
from tasks.retrieve.search import SearchIndex
from tests.records import chunk_of
from tests.retrieve.passages import postings_of

TEXTS: Mapping[str, tuple[str, str]] = {
    "bridge": (
        "Orla Bridge",
        "Orla Bridge was designed by Tomas Reyd. It carries salt to the harbour.",
    ),
    "reyd": (
        "Tomas Reyd",
        "Tomas Reyd was born in Velin. He wrote of salt, of changing it and of tides.",
    ),
    "velin": ("Velin", "Velin is a town with salt works. Changing it took years."),
    "film": ("Salt (2010 film)", "Salt is a film by Mara Lund. Mara Lund also made Changed It."),
    "louis": ("Louis XIV", "Louis XIV received the envoy of Velin."),
    "mill": ("Fenn Mill", "Fenn Mill was restored by Ilka Dorn."),
}
NAMES = (
    "Orla Bridge",
    "Tomas Reyd",
    "Velin",
    "Salt (2010 film)",
    "Mara Lund",
    "Changed It",
    "Louis XIV",
    "Fenn Mill",
    "Ilka Dorn",
    "Agni",
    "Agni (2004 film)",
    "混合结构路由器",
    "路由器",
    "LoRA微调",
)
# The places of the names that each passage holds.
STANDS = {
    "bridge": (0, 1),
    "reyd": (1, 2),
    "velin": (2,),
    "film": (3, 4, 5),
    "louis": (6, 2),
    "mill": (7, 8),
}
# Source, predicate, target, the passage that states it, and further keys.
STATED = (
    ("Orla Bridge", "designed by", "Tomas Reyd", "bridge", ()),
    ("Tomas Reyd", "born in", "Velin", "reyd", ("origin",)),
    ("Salt (2010 film)", "by", "Mara Lund", "film", ()),
    ("Fenn Mill", "restored by", "Ilka Dorn", "mill", ("preservation of monuments",)),
)


def passage(document: str) -> Chunk:
    title, text = TEXTS[document]
    return chunk_of(text, document, title=title)


def graph(
    vectors: Mapping[str, NDArray[np.float32]] | None = None,
) -> tuple[SearchIndex, GraphFacts, DualLevelIndex]:
    """The same graph in the forms that retrieval reads; `vectors` of its relations."""
    chunks = [passage(document) for document in TEXTS]
    ids = {name: f"ent_{place:02}" for place, name in enumerate(NAMES)}
    entities = [
        Entity(id=ids[name], name=name, kind="thing", description=f"{name}.") for name in NAMES
    ]
    stands = [[place in STANDS[document] for document in TEXTS] for place in range(len(NAMES))]
    pairs = SparseCounts(
        list(ids.values()), [chunk.id for chunk in chunks], csr_matrix(np.array(stands, np.int32))
    )
    alias = Alias(entity=ids["Tomas Reyd"], name="T. Reyd", reason="initials")
    index = SearchIndex(chunks, postings_of(chunks), pairs, entities, [alias])
    relations, places = [], []
    for number, (source, predicate, target, document, keys) in enumerate(STATED):
        name = f"rel_{number}"
        relations.append(
            Relation(
                id=name, source=ids[source], target=ids[target], predicate=predicate, keys=keys
            )
        )
        end = TEXTS[document][1].index(".") + 1
        places.append(Occurrence(item=name, chunk=f"chk_{document}", start=0, end=end))
    facts = GraphFacts(ById(entities), relations, places)
    return index, facts, DualLevelIndex(index, facts, vectors or {})
