"""How do the steps of one question see the session? Judges, memory, searches and documents as plain values."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
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
from storage.records import Chunk, Document, Mode, Passage, StructureType
from tasks.answer import Reach
from tasks.evidence import Pool, pool_of
from tasks.filter import UNKNOWN, Standing
from tasks.filter_signs import shares
from tasks.partial import Library
from tasks.retrieve.link import Link
from tasks.retrieve.pages import Outside, Retriever, best_parts, joined, read_pages
from tasks.retrieve.search import retrieve
from tasks.route import depth
from tasks.structurize.step import Shelf, Structured, with_paths
from tasks.trigger import Recall

LOOK_UP_PASSAGES = 8
# What each mode fixes: the structure (None: the router chooses). `naive` searches without the graph.
MODES: dict[Mode, StructureType | None] = {
    "auto": None,
    "direct": "chunk",
    "naive": "chunk",
    "ts": "catalogue",
    "hyde": "chunk",
    "rq": "chunk",
    "local": "graph",
    "global": "catalogue",
    "drift": "catalogue",
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
    join what is found in it; None takes the one of the settings, if any. `level` is that of the reports that mode
    `global` reads (0: the broadest); None goes down the branches that are relevant.

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
    level: int | None = None

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
    # What the search found near by meaning, for each query.
    near: dict[str, Mapping[str, float]] = field(default_factory=dict)
    # What memory knows of how its passages stand beside each other.
    known_shares: dict[str, float] = field(default_factory=dict)

    @cached_property
    def taken(self) -> Ask:
        """The question, taken apart."""
        return ask(self.question)

    @cached_property
    def relevance(self) -> Relevance:
        """What judges evidence for the question."""
        return relevance_of(self.taken, self.session)

    @cached_property
    def links(self) -> Sequence[Link]:
        """The entities that the question may mean."""
        return self.session.index.link(self.question)

    @property
    def unlinked(self) -> tuple[str, ...]:
        """What the question names and the graph does not know."""
        return tuple(self.session.index.names.unlinked(self.question, self.links))

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
            # In the order in which they were read when they were found: nothing is scored for them.
            self.known_shares.update(recall.shares)
            count = len(recall.chunks)
            return [self.recalled_passage(name, 1 - rank / count) for rank, name in enumerate(recall.chunks)]
        return await self.search(queries, depth(self.taken, self.options.k))

    def recalled_passage(self, name: str, score: float = 0.0) -> Passage:
        """A chunk of the index as a passage."""
        chunk = self.session.index.chunk(name)
        return Passage(document=chunk.document, title=chunk.title, chunk=name, score=round(score, 6), text=chunk.text)

    async def search(self, queries: Sequence[str], k: int) -> list[Passage]:
        """The k best passages by words, meaning and graph, with what comes from outside; `naive` without the graph."""
        documents = self.options.documents
        index = self.session.index if self.options.mode != "naive" else self.session.index.without_graph()
        dense = self.session.dense(queries, documents, self.embedder)
        self.near.update(zip(queries, dense, strict=True))
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

    def library(self, names: Collection[str]) -> Library:
        """Those of these documents that the question may look into, with their chunks in order."""
        only = self.options.documents
        kept = {name for name in names if only is None or name in only}
        return Library(self.session.documents(sorted(kept)), self.session.chunks_of(kept))

    def pool(self, passages: Sequence[Passage]) -> Pool:
        """The quotable units of passages."""
        return pool_of([self.chunk(passage.chunk) for passage in passages])

    def standing(self, passages: Sequence[Passage]) -> Standing:
        """How the passages stand beside each other by the graph, for the filter; of what memory offers, as they did
        when they were found."""
        near = self.near.get(self.question)
        if self.options.mode == "naive":
            return UNKNOWN
        if near is None:
            return Standing(self.known_shares, wide=self.named_documents)
        chunks = [passage.chunk for passage in passages]
        return Standing(shares(self.session.index, self.question, near, chunks), wide=self.named_documents)

    @property
    def named_documents(self) -> bool:
        """Whether the caller says what to read: then nothing is left out that may belong to the answer."""
        return self.options.documents is not None or self.options.structure is not None

    def chains(self, pool: Pool, structure: StructureType) -> Structured | None:
        """For "how are A and B connected" as a graph: the chains of relations between them; None for all else."""
        if self.taken.form != "connect" or structure != "graph":
            return None
        found = self.session.paths(self.taken.text)
        paths = [path for path in found if all(self.stating(relation.id) for relation in path)][:1]
        chunks = [chunk for path in paths for relation in path for chunk in self.stating(relation.id)]
        return with_paths(pool, paths, self.session.facts, chunks)

    def stating(self, relation: str) -> list[Chunk]:
        """The chunks that state a relation, of the documents that the question may look into."""
        chunks = [self.session.index.chunk(place.chunk) for place in self.session.facts.places[relation]]
        only = self.options.documents
        return [chunk for chunk in chunks if only is None or chunk.document in only]

    def reach(self, search: Search, recall: Recall) -> Reach:
        """Further searches for sub-questions, and the documents by id. What memory answers is searched in memory."""

        async def look_up(part: Ask, pool: Pool) -> tuple[Pool, Relevance]:
            known = recall.chunks if recall.used else ()
            found = known or [passage.chunk for passage in await search(part.text, LOOK_UP_PASSAGES)]
            more = pool.plus([self.chunk(name) for name in found])
            return more, relevance_of(part, self.session)

        return Reach(look_up, self.documents)


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
