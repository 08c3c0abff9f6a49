"""How do the steps of one question see the session? Judges, memory, searches and documents as plain values."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from flows.session import Session
from prompts.engine.drafts import Show
from prompts.engine.embedder import Embedder
from prompts.language.asked import Ask
from prompts.language.concepts import concept_terms, members
from prompts.language.question import ask
from prompts.reading.relevance import Relevance
from storage.errors import SettingsError
from storage.memory import MemoryEntry
from storage.records import Chunk, Document, Mode, Passage, StructureType
from tasks.answer import Reach
from tasks.evidence import Pool, pool_of
from tasks.filter import Kept
from tasks.remember import remember
from tasks.retrieve.pages import Outside, Retriever, best_parts, joined, read_pages
from tasks.retrieve.search import retrieve
from tasks.route import depth
from tasks.structurize.step import Shelf, Structured, with_paths
from tasks.trigger import Likeness, Recall, overlap

LOOK_UP_PASSAGES = 8
RECALLED = frozenset({"fact", "list", "yesno"})
# What each mode fixes: the structure (None: the router chooses). `naive` searches without the graph.
MODES: dict[Mode, StructureType | None] = {
    "auto": None,
    "naive": "chunk",
    "low": "graph",
    "high": "graph",
    "hybrid": "graph",
    "mix": "graph",
    "struct": None,
    "traverse": "graph",
}


# (question, k) → its k best passages.
Search = Callable[[str, int], Awaitable[list[Passage]]]


@dataclass(frozen=True)
class AskOptions:
    """How a question is answered; `documents` restricts the evidence to those ids, `where` to what meets all filters
    (`storage.filter_syntax`), `history` holds earlier turns. A `retriever` brings pages from outside the index, which
    join what is found in it; None takes the one of the settings, if any.

    `on_text` gets pieces of the draft while a model writes it, Withdrawn where those before it do not hold; the answer
    itself may read otherwise.

    Raises SettingsError for a mode that this version does not have.
    """

    mode: Mode = "auto"
    structure: StructureType | None = None
    k: int = 8
    documents: tuple[str, ...] | None = None
    where: tuple[str, ...] = ()
    retriever: Retriever | None = None
    history: tuple[str, ...] = ()
    on_text: Show | None = None

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise SettingsError("mode", self.mode, f"one that is there: {', '.join(MODES)}")

    @property
    def forced(self) -> StructureType | None:
        """The structure that the caller asks for, by name or by mode."""
        return self.structure or MODES[self.mode]


@dataclass(frozen=True)
class View:
    """A session as one question sees it; `question` is the rewritten one, `embedder` has the question's ledger."""

    session: Session
    options: AskOptions
    question: str
    embedder: Embedder
    outside: Outside = field(default_factory=Outside)

    @cached_property
    def taken(self) -> Ask:
        """The question, taken apart."""
        return ask(self.question)

    @cached_property
    def relevance(self) -> Relevance:
        """What judges evidence for the question."""
        return relevance_of(self.taken, self.session)

    @property
    def unlinked(self) -> tuple[str, ...]:
        """What the question names and the graph does not know."""
        index = self.session.index
        return tuple(index.names.unlinked(self.question, index.link(self.question)))

    @property
    def likeness(self) -> Likeness:
        """How the trigger compares queries with remembered titles."""
        settings = self.session.runtime.settings
        return Likeness(settings.tau, settings.theta, self.session.named, self._similarity)

    def _similarity(self, query: str, titles: Sequence[str]) -> list[float]:
        """Cosine of titles where the embedder reads them and the query, else likeness of words."""
        embedder = self.embedder
        likeness = overlap(query, titles)
        readable = [title for title in titles if embedder.reads(title)]
        if not readable or not embedder.reads(query):
            return likeness
        vectors = embedder.embed([query, *readable])
        cosines = dict(zip(readable, (vectors[1:] @ vectors[0]).tolist(), strict=True))
        return [cosines.get(title, like) for title, like in zip(titles, likeness, strict=True)]

    def memory(self) -> list[MemoryEntry]:
        """What memory offers: entries whose evidence is in this generation.

        One that reads widely has no use for it: what answered it once was only a part.
        """
        if not self.remembers or self.taken.form not in RECALLED:
            return []
        position, number = self.session.index.position, self.session.number
        return [
            entry
            for entry in self.session.memory()
            # After a rollback later ones are still there: they were chosen among documents that this one lacks.
            if entry.generation <= number and all(chunk in position for chunk in entry.evidence)
        ]

    @property
    def remembers(self) -> bool:
        """Whether memory has a part in the question: not where it is restricted, asks of a generation by its number,
        or reads pages that may be others tomorrow."""
        return self.options.documents is None and not self.session.pinned and self.retriever is None

    @property
    def retriever(self) -> Retriever | None:
        """What brings pages from outside the index."""
        return self.options.retriever or self.session.runtime.retriever

    async def passages(self, queries: Sequence[str], recall: Recall) -> list[Passage]:
        """What memory offers if it is used for every query, else as many passages as a question of this form reads."""
        if recall.used:
            # In the order of a search by words and graph, so that a question asked again reads them alike.
            scores = self.session.index.scores(self.question, {})
            return self.session.index.rank_chunks(scores, recall.chunks)
        return await self.search(queries, depth(self.taken, self.options.k))

    async def search(self, queries: Sequence[str], k: int) -> list[Passage]:
        """The k best passages by words, meaning and graph, with what comes from outside; `naive` without the graph."""
        documents = self.options.documents
        index = self.session.index if self.options.mode != "naive" else self.session.index.without_graph()
        dense = self.session.dense(queries, documents, self.embedder)
        return await self.with_pages(queries, await retrieve(index, queries, dense, k, documents))

    async def with_pages(self, queries: Sequence[str], passages: list[Passage]) -> list[Passage]:
        """The passages, and in turn with them the parts of pages from outside that have words of the queries."""
        if self.retriever is None:
            return passages
        documents, chunks = await read_pages(self.retriever, queries)
        self.outside.add(documents, chunks)
        return joined(passages, best_parts(chunks, queries))

    @property
    def shelf(self) -> Shelf | None:
        """Where structures that a model made are kept; pages from outside may be others tomorrow."""
        return self.session.shelf if self.retriever is None else None

    def chunk(self, name: str) -> Chunk:
        """A passage's chunk, of the index or of a page."""
        return self.outside.chunks.get(name) or self.session.index.chunk(name)

    def documents(self, names: Sequence[str]) -> dict[str, Document]:
        """Documents by id, of the generation or pages."""
        pages = {name: self.outside.documents[name] for name in names if name in self.outside.documents}
        return self.session.documents([name for name in names if name not in pages]) | pages

    def pool(self, passages: Sequence[Passage]) -> Pool:
        """The quotable units of passages."""
        return pool_of([self.chunk(passage.chunk) for passage in passages])

    def connected(self, structured: Structured) -> Structured:
        """For "how are A and B connected": the chains of relations between them instead of the passages' triples."""
        if self.taken.form != "connect" or structured.type != "graph":
            return structured
        found = self.session.paths(self.taken.text)
        paths = [path for path in found if all(self.stating(relation.id) for relation in path)][:1]
        chunks = [chunk for path in paths for relation in path for chunk in self.stating(relation.id)]
        return with_paths(structured, paths, self.session.facts, chunks)

    def stating(self, relation: str) -> list[Chunk]:
        """The chunks that state a relation, of the documents that the question may look into."""
        chunks = [self.session.index.chunk(place.chunk) for place in self.session.facts.places[relation]]
        only = self.options.documents
        return [chunk for chunk in chunks if only is None or chunk.document in only]

    def reach(self, search: Search) -> Reach:
        """Further searches for sub-questions, and the documents by id."""

        async def look_up(part: Ask, pool: Pool) -> tuple[Pool, Relevance]:
            passages = await search(part.text, LOOK_UP_PASSAGES)
            more = pool.plus([self.chunk(passage.chunk) for passage in passages])
            return more, relevance_of(part, self.session)

        return Reach(look_up, self.documents)

    async def remember(self, passages: Sequence[Passage], kept: Kept) -> None:
        """Keep what a supported answer rests on."""
        if self.remembers:
            entailed = [passage for passage in passages if passage.chunk in kept.entailed]
            self.session.remember(await remember(self.taken.text, entailed, self.session.number))

    @property
    def mode(self) -> Mode:
        """The mode in force: `auto` becomes the one that was followed."""
        if self.options.mode != "auto":
            return self.options.mode
        followed: Mapping[str, Mode] = {"connect": "traverse", "global": "mix"}
        return followed.get(self.taken.form, "struct")


def relevance_of(taken: Ask, session: Session) -> Relevance:
    """The judge of a question: how rare its terms are, and the other names of what it names.

    A concept is as rare as the commonest of its words.
    """
    rarity = session.index.lexicon.idf_of
    weights = {term: min(map(rarity, members(term)), default=rarity(term)) for term in concept_terms(taken.text)}
    aliases: dict[str, tuple[str, ...]] = {}
    for link in session.index.link(taken.text):
        aliases[link.text] = tuple(dict.fromkeys((*aliases.get(link.text, ()), *session.index.names_of(link.entity))))
    return Relevance(taken, weights, aliases)
