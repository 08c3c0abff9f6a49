"""What does a question work on? One generation, open for reading, with its search index in memory."""

import copy
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import TracebackType

from flows.naming import hashes_of
from flows.notes import Notes
from flows.runtime import Runtime
from prompts.engine.calls import rough_tokens
from prompts.engine.embedder import Embedder, text_hash
from prompts.language.names_zh import tagged
from prompts.language.words import is_han
from storage.communities import ReportSizes
from storage.generations import Generation
from storage.records import Chunk, Document, Relation
from tasks.reports.near import Grounds
from tasks.reports.tree import Tree, tree_of
from tasks.retrieve.facts import GraphFacts
from tasks.retrieve.levels import Levels, keyed_text
from tasks.retrieve.link_vectors import NameVectors
from tasks.retrieve.search import SearchIndex
from tasks.retrieve.switches import Switches
from tasks.traverse.names import Spellings
from tasks.traverse.paths import shortest_paths
from tasks.traverse.plan import Graph
from tasks.traverse.run import Ground
from tasks.traverse.vocabulary import Vocabulary

DENSE_DEPTH = 50
MOST_KEPT = 32  # documents
SAMPLE = 200  # chunks


@dataclass
class Session:
    """A generation and what was loaded from it. Any number of questions may use one session, one after another or at
    once.

    Use it as a context manager, or call `close`. It stays on its generation however many newer ones are published.
    `pinned`: it was asked for by its number; then memory, which other generations fill, has no part in it.
    """

    runtime: Runtime
    generation: Generation
    pinned: bool = False
    _documents: dict[str, Document] = field(default_factory=dict, repr=False)

    @property
    def number(self) -> int:
        return self.generation.number

    @cached_property
    def index(self) -> SearchIndex:
        """The lexical index, the entity graph and the chunks, in memory."""
        rooms = self.generation
        return SearchIndex(
            rooms.documents.chunks(),
            rooms.postings.postings(),
            rooms.graph.entity_chunk_pairs(),
            rooms.graph.entities(),
            rooms.graph.aliases(),
        )

    @cached_property
    def facts(self) -> GraphFacts:
        """The relations with the places that state them."""
        graph = self.generation.graph
        return GraphFacts(graph.entities(), graph.relations(), graph.occurrences("relation"))

    @cached_property
    def ground(self) -> Ground:
        """The relations as a graph that plans are run on."""
        index, facts = self.index, self.facts
        spellings = Spellings(index.spellings, [entity.id for entity in index.entities], index.names)
        return Ground(Graph(facts, Vocabulary(facts.relations.values()), spellings), self.generation.traversal)

    @cached_property
    def triples_alone(self) -> frozenset[str]:
        """The entities that only triples name: no text says anything of them."""
        triples = {chunk.id for chunk in self.index.chunks if chunk.kind == "triples"}
        if not triples:
            return frozenset()
        pairs = self.generation.graph.entity_chunk_pairs()
        by_triples = [name in triples for name in pairs.chunks]
        ends = zip(pairs.chunk_index.tolist(), pairs.entity_index.tolist(), strict=True)
        in_text = {entity for chunk, entity in ends if not by_triples[chunk]}
        return frozenset(name for place, name in enumerate(pairs.entities) if place not in in_text)

    @cached_property
    def notes(self) -> Notes:
        """What memory compares questions by."""
        return Notes(self.index, self.generation.vectors)

    @cached_property
    def levels(self) -> Levels:
        """The graph as the modes of two levels search it."""
        embedder, relations = self.runtime.embedder, [one for one in self.facts.relations.values() if one.keys]
        texts = {one.id: text_hash(keyed_text(one)) for one in relations}
        stored = self.generation.vectors.get(embedder.name, list(texts.values())) if texts else {}
        vectors = {name: stored[key] for name, key in texts.items() if key in stored}
        return Levels(self.index, self.facts, self.generation.graph.entity_chunk_pairs(), vectors)

    @cached_property
    def reports(self) -> Tree:
        """The community reports as a tree."""
        rooms = self.generation.communities
        return tree_of(rooms.communities(), rooms.reports())

    @cached_property
    def grounds(self) -> Grounds:
        """Which chunks the community of each report stands in."""
        return Grounds(self.reports, self.generation.graph.entity_chunk_pairs())

    @cached_property
    def report_sizes(self) -> ReportSizes:
        """How much there is to read in community reports; loads none of them."""
        return self.generation.communities.report_sizes()

    @property
    def sample(self) -> Sequence[Chunk]:
        """The first chunks: their titles and sizes stand for all."""
        return self.index.chunks[:SAMPLE]

    @cached_property
    def passage_tokens(self) -> float:
        """The mean tokens of a passage, roughly."""
        return sum(rough_tokens(chunk.text) for chunk in self.sample) / max(len(self.sample), 1)

    @cached_property
    def tokens_a_sign(self) -> float:
        """How many tokens a sign of these texts is, roughly: languages differ."""
        signs = sum(len(chunk.text) for chunk in self.sample)
        return self.passage_tokens * len(self.sample) / max(signs, 1)

    @cached_property
    def _chunks(self) -> dict[str, list[Chunk]]:
        found: dict[str, list[Chunk]] = {}
        for chunk in self.index.chunks:
            found.setdefault(chunk.document, []).append(chunk)
        return {name: sorted(chunks, key=lambda chunk: chunk.start) for name, chunks in found.items()}

    def chunks_of(self, documents: Collection[str]) -> dict[str, Sequence[Chunk]]:
        """The chunks of documents, in their order."""
        return {name: self._chunks[name] for name in documents if name in self._chunks}

    @cached_property
    def name_vectors(self) -> NameVectors:
        """The entities' names with their vectors; empty where the generation has none of this embedder."""
        embedder, entities = self.runtime.embedder, self.index.entities
        if not self.runtime.settings.entity_vectors:
            return NameVectors([], {})
        names = hashes_of(entities, embedder)
        stored = self.generation.vectors.get(embedder.name, list(names))
        return NameVectors(entities, {names[key]: vector for key, vector in stored.items()})

    def switched(self, switches: Switches) -> "Session":
        """The same session, searched with some parts left out; close the first one only."""
        other = copy.copy(self)
        other.index = self.index.switched(switches)
        return other

    def dense(
        self, queries: Sequence[str], documents: Sequence[str] | None = None, embedder: Embedder | None = None
    ) -> list[Mapping[str, float]]:
        """For each query the nearest chunks with their cosines; empty where the embedder cannot read the query.

        `embedder` is the runtime's own with another ledger.
        """
        embedder = embedder or self.runtime.embedder
        readable = [query for query in queries if embedder.reads(query)]
        if not readable or self.generation.vectors.model() != embedder.name:
            return [{} for _ in queries]
        vectors = dict(zip(readable, embedder.embed(readable), strict=True))
        return [
            dict(self.generation.vectors.search(vectors[query], DENSE_DEPTH, documents)) if query in vectors else {}
            for query in queries
        ]

    def paths(self, question: str) -> list[list[Relation]]:
        """The chains of relations between the first two things that a question names."""
        groups: dict[str, list[str]] = {}
        for link in self.index.link(question):
            groups.setdefault(link.text, []).append(self.index.entities[link.entity].id)
        ends = list(groups.values())
        return shortest_paths(self.facts, ends[0], ends[1]) if len(ends) > 1 else []

    def documents(self, names: Sequence[str]) -> dict[str, Document]:
        """Documents by id."""
        wanted = set(names)
        known = {name: self._documents[name] for name in wanted & set(self._documents)}
        missing = sorted(wanted - set(known))
        read = self.generation.documents.documents(missing) if missing else []
        if read:  # the last ones read are kept: a document of many triples takes long to read, and is often cited
            self._documents = dict([*self._documents.items(), *((one.id, one) for one in read)][-MOST_KEPT:])
        return known | {one.id: one for one in read}

    def warm(self) -> None:
        """Load all that questions may need, so that the opening is slow and no question after it."""
        _ = self.index, self.ground
        self.index.link("a name that nothing bears")
        if any(is_han(chunk.text) for chunk in self.index.chunks):
            tagged("预备")
        self.dense(["warm"])

    def close(self) -> None:
        """Give the generation back."""
        self.generation.close()

    def __enter__(self) -> "Session":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_session(runtime: Runtime, generation: int | None = None) -> Session:
    """Open the current generation, or the one asked for. Raises NoGeneration or UnknownGeneration."""
    return Session(runtime, runtime.workspace.read(generation), pinned=generation is not None)
