"""What is each chunk about? The entity that its title names, or that its text opens with.

A chain of evidence runs over such entities: a passage mentions what another passage is about.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

from prompts.language.words import fold_name
from storage.records import Chunk, Entity

OPENING = 200  # characters
PEOPLE = frozenset({"person", "thing"})


def subjects(
    chunks: Sequence[Chunk],
    mentioned: Sequence[Collection[int]],
    spellings: Sequence[Sequence[str]],
    by_key: Mapping[str, Sequence[int]],
) -> list[tuple[int, ...]]:
    """For each chunk the entities that it is about, by index; `mentioned` holds those that it names.

    `spellings` are the names of each entity, `by_key` the entities of each folded name.
    """
    found = []
    for chunk, here in zip(chunks, mentioned, strict=True):
        titled = by_key.get(fold_name(chunk.title), ())
        about = {entity for entity in titled if entity in here} or set(titled)
        if chunk.ordinal == 0:
            about.update(_opening(chunk.text[:OPENING], here, spellings))
        found.append(tuple(sorted(about)))
    return found


def _opening(text: str, here: Collection[int], spellings: Sequence[Sequence[str]]) -> list[int]:
    """The entities with the longest name that the text begins with."""
    opening = f"{fold_name(text)} "
    names = [(len(key), entity) for entity in here for key in {fold_name(name) for name in spellings[entity]}
             if key and opening.startswith(f"{key} ")]  # fmt: skip
    longest = max((size for size, _ in names), default=0)
    return [entity for size, entity in names if size == longest]


def short_names(about: Sequence[Sequence[int]], entities: Sequence[Entity]) -> list[tuple[int, int]]:
    """(chunk, entity): the chunk is about a person whose middle names the entity's name leaves out or shortens.

    "Clarence Leon Brown" is "Clarence Brown" and "Clarence L. Brown", unless another such person has a chunk too.
    """
    names = [fold_name(entity.name).split() for entity in entities]
    by_ends: dict[tuple[str, str], list[int]] = defaultdict(list)
    for index, words in enumerate(names):
        if len(words) > 1:
            by_ends[words[0], words[-1]].append(index)
    own = {entity for here in about for entity in here}
    owners: dict[int, set[int]] = defaultdict(set)
    found: list[tuple[int, int]] = []
    for chunk, here in enumerate(about):
        for person in here:
            if entities[person].kind != "person" or len(names[person]) < 3:
                continue
            for other in by_ends[names[person][0], names[person][-1]]:
                if other not in own and entities[other].kind in PEOPLE and _shortens(names[other], names[person]):
                    owners[other].add(person)
                    found.append((chunk, other))
    return [(chunk, other) for chunk, other in found if len(owners[other]) == 1]


def _shortens(short: Sequence[str], whole: Sequence[str]) -> bool:
    """Whether the words between first and last are left out, or the first letters of the whole name's."""
    middle, full = short[1:-1], whole[1:-1]
    return len(middle) <= len(full) and all(
        len(one) == 1 and name.startswith(one) for one, name in zip(middle, full, strict=False)
    )
