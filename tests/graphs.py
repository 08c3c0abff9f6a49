"""Graphs of extractions in memory, for tests and benchmarks of resolution."""

import asyncio
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from prompts.engine.models import Models
from prompts.resolve import Resolve
from storage.graph import Edit
from storage.graph_records import Extraction
from storage.records import Chunk
from tasks.dedupe import dedupe
from tasks.resolve.assemble import ResolvedGraph


@dataclass(frozen=True)
class HeldExtractions:
    """Implements `tasks.resolve.mentions.Extractions` for a list."""

    held: Sequence[Extraction]

    def names(self) -> Iterable[tuple[str, str, int]]:
        counted = Counter(
            (mention.name, mention.kind) for own in self.held for mention in own.mentions
        )
        return [(name, kind, count) for (name, kind), count in sorted(counted.items())]

    def naming(self) -> Iterable[tuple[str, str]]:
        return sorted({(own.chunk, mention.name) for own in self.held for mention in own.mentions})

    def related(
        self, predicate: str, names: Collection[str]
    ) -> Iterable[tuple[str, str, str, str]]:
        return [
            (own.chunk, relation.source, relation.predicate, relation.target)
            for own in self.held
            for relation in own.relations
            if relation.predicate == predicate
            or not {relation.source, relation.target}.isdisjoint(names)
        ]

    def extractions(self, chunks: Collection[str] | None = None) -> Sequence[Extraction]:
        return (
            self.held if chunks is None else [own for own in self.held if own.chunk in set(chunks)]
        )


def build_graph(
    extractions: Sequence[Extraction], chunks: Mapping[str, Chunk], edits: Sequence[Edit] = ()
) -> ResolvedGraph:
    """Resolve the graph without a model; `chunks` are by id."""
    held = HeldExtractions(extractions)

    async def resolved() -> ResolvedGraph:
        return await dedupe(held, [*chunks.values()], Resolve(Models.offline()), edits)

    return asyncio.run(resolved())
