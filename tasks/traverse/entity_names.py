"""The entities of the graph that a question names, and where in it the names stand."""

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from rapidfuzz import process

from prompts.text.words import STOPWORDS, WORD, fold_name, simplified
from storage.errors import NotFound
from storage.graph_records import Alias, Entity
from storage.records import by_key
from tasks.retrieve.link import Link, Names, longest_stretches
from tasks.step import step

SHORTEST = 2
NEAREST = 5  # names that an error suggests
_POSSESSIVE = re.compile(r"\s{0,9}['’]\s{0,9}s?$")
_JOINED = ("_", "-")


@dataclass(frozen=True, slots=True)
class NamedEntity:
    """A stretch `start`..`end` of the question, and the entities (ids) that it may mean.

    `doubtful`: it may also be an ordinary word.
    """

    text: str
    start: int
    end: int
    entities: tuple[str, ...]
    doubtful: bool = False


class Spellings:
    """The names of a graph exactly as written, in addition to the folded ones of the linker.

    An imported graph may call things by lower-case words, which the linker takes for ordinary
    words. Immutable.
    """

    def __init__(self, ids: Sequence[str], linker: Names) -> None:
        """`ids[i]` is the id of the linker's entity i."""
        self._ids = ids
        self._linker = linker
        self._names = frozenset(chain.from_iterable(linker.names))

    def named(self, question: str) -> list[NamedEntity]:
        """Return the longest names in a question, in its order and without overlaps."""
        written = self._written(question)
        linked = by_key(((link.start, link.end), link) for link in self._linker.link(question))
        by_linker = []
        for (start, reach), links in linked.items():
            text = _POSSESSIVE.sub("", question[start:reach])
            entities = tuple(dict.fromkeys(self._ids[link.entity] for link in links))
            by_linker.append(NamedEntity(text, start, start + len(text), entities))
        names = [name for name in written if not name.doubtful]
        for name in (*by_linker, *(name for name in written if name.doubtful)):
            if all(name.end <= other.start or name.start >= other.end for other in names):
                names.append(name)
        return sorted(names, key=lambda name: name.start)

    def resolve(self, name: str) -> tuple[str, ...]:
        """Return the entities of a single name as written, or else as folded."""
        exact = self._linker.called(name)
        return tuple(
            self._ids[entity] for entity in exact or self._linker.by_key.get(fold_name(name), [])
        )

    def unlinked(self, question: str, named: Sequence[NamedEntity]) -> list[str]:
        links = [
            Link(text=name.text, entity=0, score=1.0, start=name.start, end=name.end)
            for name in named
        ]
        return self._linker.unlinked(question, links)

    def nearest(self, name: str) -> list[str]:
        return list(dict.fromkeys(self._ids[link.entity] for link in self._linker.candidates(name)))

    def _written(self, question: str) -> list[NamedEntity]:
        words = [match.span() for match in WORD.finditer(question)]
        names: list[NamedEntity] = []
        for stretch in longest_stretches(
            words, lambda at, n: self._is(question, words[at][0], words[at + n - 1][1])
        ):
            start, end = stretch[0][0], stretch[-1][1]
            text = question[start:end]
            doubtful = text.isalpha() and text.islower()
            names.append(NamedEntity(text, start, end, self.resolve(text), doubtful))
        return names

    def _is(self, question: str, start: int, end: int) -> bool:
        if question[start - 1 : start] in _JOINED or question[end : end + 1] in _JOINED:
            return False  # part of a longer name
        text = question[start:end]
        return text in self._names and len(text) >= SHORTEST and text.lower() not in STOPWORDS


@dataclass(frozen=True, slots=True)
class Linked:
    """The names of the graph in a question, and what looks like a name but is none of them."""

    named: tuple[NamedEntity, ...]
    unlinked: tuple[str, ...]


@step("link")
async def link(question: str, spellings: Spellings) -> Linked:
    """Find the names of the graph in a question."""
    named = spellings.named(question)
    return Linked(tuple(named), tuple(spellings.unlinked(question, named)))


# --- names that a caller gives ---


def entities_named(name: str, entities: Sequence[Entity], aliases: Sequence[Alias]) -> list[Entity]:
    """Return all entities with this name or alias, compared as folded names.

    Where several match, those with exactly this spelling come alone ("Agni (film)"). Raises
    NotFound with the nearest names where none matches.
    """
    owners: dict[str, set[str]] = defaultdict(set)
    shown: dict[str, str] = {}
    for written, owner in all_names(entities, aliases):
        key = simplified(fold_name(written))
        owners[key].add(owner)
        shown.setdefault(key, written)
    key = simplified(fold_name(name))
    if key not in owners:
        near = [shown[other] for other, _, _ in process.extract(key, list(shown), limit=NEAREST)]
        raise NotFound(
            f"The graph knows nothing called {name!r}.",
            f"Nearest: {', '.join(near)}." if near else "",
        )
    named = [entity for entity in entities if entity.id in owners[key]]
    return [entity for entity in named if entity.name == name] or named


def all_names(entities: Sequence[Entity], aliases: Sequence[Alias]) -> list[tuple[str, str]]:
    """Return every name and alias with the id of its entity."""
    names = [(entity.name, entity.id) for entity in entities]
    return names + [(alias.name, alias.entity) for alias in aliases]
