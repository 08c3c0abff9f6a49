"""Ambiguity: the words of a question that mean several things, and the reading that was answered.

A name that several things bear, each as its own, is what the index tells; pronouns and dates are what the rewriting
tells. The readings are reported; the answer follows the evidence (RQ-RAG and ERM4: disambiguation).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from prompts.rewrite import Ambiguous
from storage.answer_records import Ambiguity
from storage.graph_records import Entity
from tasks.retrieve.link import Link

MAX_READINGS = 5
SHOWN = 90  # characters of a description


@dataclass(frozen=True)
class Meant:
    """A name of the question and all that bear it: indices of entities, those that are named most first."""

    text: str
    entities: tuple[int, ...]


def several_meant(links: Sequence[Link], entities: Sequence[Entity]) -> list[Meant]:
    """The names that the best links of a stretch take for several entities; a likeness of spelling is no homonym."""
    by_place: dict[tuple[int, int], list[Link]] = {}
    for link in links:
        by_place.setdefault((link.start, link.end), []).append(link)
    found = []
    for here in by_place.values():
        best = max(link.score for link in here)
        same = [link.entity for link in here if link.score == best == 1.0]
        if len(same) > 1:
            same.sort(key=lambda place: (-entities[place].mentions, entities[place].name, entities[place].id))
            found.append(Meant(here[0].text, tuple(same[:MAX_READINGS])))
    return found


@dataclass(frozen=True)
class Places:
    """Where the things are that a question may mean: the chunks that name an entity, by its id; the titles of chunks;
    how much each chunk counted for the answer (cited ones most)."""

    chunks: Mapping[str, Sequence[str]]
    titles: Mapping[str, str]
    weights: Mapping[str, float]

    def weight(self, entity: Entity) -> float:
        return sum(self.weights.get(chunk, 0.0) for chunk in self.chunks.get(entity.id, ()))

    def title(self, entity: Entity) -> str:
        return next((self.titles[chunk] for chunk in self.chunks.get(entity.id, ()) if self.titles.get(chunk)), "")


def ambiguities(
    told: Sequence[Ambiguous], meant: Sequence[Meant], entities: Sequence[Entity], places: Places
) -> tuple[Ambiguity, ...]:
    """What the question leaves open; the reading that was taken is the one whose places the answer rests on, else the
    first. A reading that nothing is known of has none."""
    found = [Ambiguity(text=one.text, readings=tuple(one.readings), taken=next(iter(one.readings), "")) for one in told]
    for one in meant:
        bearing = [entities[place] for place in one.entities]
        bearing.sort(key=lambda entity: -places.weight(entity))
        readings = tuple(dict.fromkeys(_written(entity, bearing, places) for entity in bearing))
        if len(readings) > 1:
            found.append(Ambiguity(text=one.text, readings=readings, taken=readings[0]))
    return tuple({one.text: one for one in reversed(found)}.values())[::-1]


def _written(entity: Entity, bearing: Sequence[Entity], places: Places) -> str:
    """An entity as a reading: its name, and what tells it from the others of that name."""
    if sum(other.name == entity.name for other in bearing) == 1:
        return entity.name
    kind = "" if entity.kind in {"", "thing"} else entity.kind
    title = places.title(entity)
    told = [kind, f"in {title}" if title else " ".join(entity.description.split())[:SHOWN]]
    return f"{entity.name} ({', '.join(part for part in told if part)})" if any(told) else entity.name
