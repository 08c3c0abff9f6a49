"""How do the steps of one question see the session? Judges, memory, searches and documents as plain values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
from storage.records import Mode, Passage, StructureType
from tasks.answer import Reach
from tasks.evidence import Pool, pool_of
from tasks.filter import Kept
from tasks.remember import remember
from tasks.retrieve.search import retrieve
from tasks.route import depth
from tasks.structurize import Structured, with_paths
from tasks.trigger import Likeness, Recall, overlap

LOOK_UP_PASSAGES = 8
RECALLED = frozenset({"fact", "list", "yesno"})
# What each mode fixes: the structure (None: the router chooses). `naive` searches without the graph.
MODES: dict[Mode, StructureType | None] = {
    "auto": None,
    "naive": "chunk",
    "mix": "chunk",
    "struct": None,
    "traverse": "graph",
}


@dataclass(frozen=True)
class AskOptions:
    """How a question is answered; `documents` restricts the evidence to those ids, `history` holds earlier turns.

    `on_text` gets pieces of the draft while a model writes it, Withdrawn where those before it do not hold; the answer
    itself may read otherwise.

    Raises SettingsError for a mode that this version does not have.
    """

    mode: Mode = "auto"
    structure: StructureType | None = None
    k: int = 8
    documents: tuple[str, ...] | None = None
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

    @cached_property
    def taken(self) -> Ask:
        """The question, taken apart."""
        return ask(self.question)

    @cached_property
    def relevance(self) -> Relevance:
        """What judges evidence for the question."""
        return relevance_of(self.taken, self.session)

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

        A restricted question has no use for it, nor has one that reads widely: what answered it once was only a part.
        """
        if self.options.documents is not None or self.taken.form not in RECALLED:
            return []
        position = self.session.index.position
        return [entry for entry in self.session.memory() if all(chunk in position for chunk in entry.evidence)]

    async def passages(self, queries: Sequence[str], recall: Recall) -> list[Passage]:
        """What memory offers if it is used for every query, else as many passages as a question of this form reads."""
        if recall.used:
            # In the order of a search by words and graph, so that a question asked again reads them alike.
            scores = self.session.index.scores(self.question, {})
            return self.session.index.rank_chunks(scores, recall.chunks)
        return await self._search(queries, depth(self.taken, self.options.k))

    async def _search(self, queries: Sequence[str], k: int) -> list[Passage]:
        documents = self.options.documents
        index = self.session.index if self.options.mode != "naive" else self.session.index.without_graph()
        return await retrieve(index, queries, self.session.dense(queries, documents, self.embedder), k, documents)

    def pool(self, passages: Sequence[Passage]) -> Pool:
        """The quotable units of passages."""
        return pool_of([self.session.index.chunk(passage.chunk) for passage in passages])

    def connected(self, structured: Structured) -> Structured:
        """For "how are A and B connected": the chains of relations between them instead of the passages' triples."""
        if self.taken.form != "connect" or structured.type != "graph":
            return structured
        facts = self.session.facts
        paths = self.session.paths(self.taken.text)[:1]
        chunks = [self.session.index.chunk(place.chunk) for path in paths for r in path for place in facts.places[r.id]]
        return with_paths(structured, paths, facts, chunks)

    @property
    def reach(self) -> Reach:
        """Further searches for sub-questions, and the documents by id."""

        async def look_up(part: Ask, pool: Pool) -> tuple[Pool, Relevance]:
            passages = await self._search([part.text], LOOK_UP_PASSAGES)
            more = pool.plus([self.session.index.chunk(passage.chunk) for passage in passages])
            return more, relevance_of(part, self.session)

        return Reach(look_up, self.session.documents)

    async def remember(self, passages: Sequence[Passage], kept: Kept) -> None:
        """Keep what a supported answer rests on; a restricted question may have missed the best of it."""
        if self.options.documents is None:
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
