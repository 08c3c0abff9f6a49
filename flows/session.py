"""Sessions: an open generation with its search index in memory, shared by many questions."""

import asyncio
import atexit
import logging
import threading
from collections import OrderedDict, defaultdict
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import TypeVar

from flows.runtime import Runtime, open_runtime
from flows.settings import Settings, load_settings
from prompts.engine.embedders import Embedder, text_hash
from prompts.engine.messages import rough_tokens
from prompts.schema import Schema
from prompts.text.names_zh import tagged
from storage.columns import column_of
from storage.errors import FilterError, NothingMatches, NothingToRead
from storage.graph import ReportSizes
from storage.graph_records import Claim, Report
from storage.memory import Memory
from storage.provenance import SCHEMA
from storage.records import Chunk, Document, DocumentText, by_key
from storage.workspace import Generation
from tasks.facts.answer import TypedGraph
from tasks.part import fill_part
from tasks.question_similarity import QuestionFeatures
from tasks.read_reports.near import CommunityChunkIndex
from tasks.read_reports.points import CitedDocuments
from tasks.read_reports.select import ReportTree, tree_of
from tasks.retrieve.dual_levels import DualLevelIndex, keyed_text
from tasks.retrieve.facts import GraphFacts
from tasks.retrieve.search import SearchIndex
from tasks.traverse.entity_names import Spellings
from tasks.traverse.meta_paths import Vocabulary
from tasks.traverse.plan import TraversalGraph

logger = logging.getLogger(__name__)

DocumentT = TypeVar("DocumentT", bound=DocumentText)

DENSE_DEPTH = 50  # nearest chunks by vector
MOST_KEPT = 4_000_000  # characters of documents in memory
SAMPLE = 200  # chunks from which titles and lengths are taken


@dataclass
class Session(AbstractContextManager["Session"]):
    """An open generation and what was loaded from it; any number of questions may use it at once.

    Use it as a context manager, or call `close`. It keeps its generation when newer ones are
    published. A `pinned` session was opened by the number of its generation, or on a part of it; it
    uses no memory, which other generations and documents have filled. `memory` replaces the memory
    of the workspace.
    """

    runtime: Runtime
    generation: Generation
    pinned: bool = False
    memory: Memory | None = None
    _documents: dict[str, Document] = field(default_factory=dict, repr=False)
    _texts: dict[str, DocumentText] = field(default_factory=dict, repr=False)

    @property
    def number(self) -> int:
        return self.generation.number

    @cached_property
    def index(self) -> SearchIndex:
        """The chunks, their words and the entity graph, in memory."""
        documents, graph = self.generation.documents, self.generation.graph
        return SearchIndex(
            documents.chunks(),
            documents.postings(),
            graph.entity_chunk_pairs(),
            graph.entities(),
            graph.aliases(),
        )

    @cached_property
    def spellings(self) -> Spellings:
        """The names of the graph, to recognise in texts."""
        return Spellings(column_of(self.index.entities, "id"), self.index.names)

    @cached_property
    def question_features(self) -> QuestionFeatures:
        """What memory compares questions by."""
        return QuestionFeatures(self.index, self.spellings)

    @cached_property
    def graph(self) -> "GraphReader":
        return GraphReader(self)

    @cached_property
    def reports(self) -> "ReportReader":
        return ReportReader(self)

    @cached_property
    def _vector_model(self) -> str | None:
        return self.generation.vectors.model()

    @cached_property
    def passage_tokens(self) -> float:
        """The rough mean of the tokens of a passage."""
        sample = self.index.chunks[:SAMPLE]
        return sum(rough_tokens(chunk.text) for chunk in sample) / max(len(sample), 1)

    @cached_property
    def titles(self) -> list[str]:
        """The titles of some documents."""
        return list(
            dict.fromkeys(chunk.title for chunk in self.index.chunks[:SAMPLE] if chunk.title)
        )

    @cached_property
    def _chunks(self) -> dict[str, list[Chunk]]:
        by_document = by_key((chunk.document, chunk) for chunk in self.index.chunks)
        return {
            name: sorted(chunks, key=lambda chunk: chunk.start)
            for name, chunks in by_document.items()
        }

    def chunks_of(self, documents: Collection[str]) -> dict[str, Sequence[Chunk]]:
        """Return the chunks of each document in order."""
        return {name: self._chunks[name] for name in documents if name in self._chunks}

    def dense(
        self,
        queries: Sequence[str],
        documents: Sequence[str] | None = None,
        embedder: Embedder | None = None,
        most: int = DENSE_DEPTH,
    ) -> list[Mapping[str, float]]:
        """Return the `most` nearest chunks of each query with their cosines; none for a query that
        the embedder cannot read. `embedder` is the runtime's with another meter.
        """
        embedder = embedder or self.runtime.embedder
        readable = [query for query in queries if embedder.reads(query)]
        if not readable or self._vector_model != embedder.name:
            return [{} for _ in queries]
        vectors = dict(zip(readable, embedder.embed(readable, query=True), strict=True))
        search = self.generation.vectors.search
        return [
            dict(search(vectors[query], most, documents)) if query in vectors else {}
            for query in queries
        ]

    def documents(self, names: Sequence[str]) -> dict[str, Document]:
        """Return documents by id."""
        return _read(names, self._documents, self.generation.documents.documents)

    def texts(self, names: Sequence[str]) -> dict[str, DocumentText]:
        """Return the texts of documents by id, without their parts."""
        return _read(names, self._texts, self.generation.documents.texts)

    def warm(self) -> None:
        """Load all that a question may need."""
        _ = self.index, self.graph.traversal
        self.index.link("a name that nothing bears")
        if any(chunk.language == "zh" for chunk in self.index.chunks):
            tagged("预备")
        self.dense(["warm"])

    @property
    def is_outdated(self) -> bool:
        """Whether the workspace now has another current generation."""
        return self.runtime.workspace.changed(self.generation)

    def close(self) -> None:
        """Release the generation."""
        self.generation.close()
        # The readers refer to the session: without this the garbage collector frees both late.
        for reader in ("graph", "reports"):
            vars(self).pop(reader, None)

    def __exit__(self, *_: object) -> None:
        self.close()


def _read(
    names: Sequence[str],
    known: dict[str, DocumentT],
    read: Callable[[list[str]], Sequence[DocumentT]],
) -> dict[str, DocumentT]:
    """Return documents by id, `known` or newly read; `known` keeps those that were read last."""
    wanted = {name: known[name] for name in names if name in known}
    if missing := sorted(set(names) - wanted.keys()):
        new = {document.id: document for document in read(missing)}
        wanted |= new
        known |= new
        sizes = accumulate(len(document.text) for document in reversed(list(known.values())))
        for name in list(known)[: sum(size > MOST_KEPT for size in sizes)]:
            known.pop(name, None)
    return wanted


class GraphReader:
    """The graph of a session's generation; each form of it is loaded at its first use."""

    def __init__(self, session: Session) -> None:
        self.index = session.index
        self._session = session
        self._stored = session.generation.graph

    @cached_property
    def facts(self) -> GraphFacts:
        """The relations with the passages that state them."""
        return GraphFacts(
            self.index.by_id, self._stored.relations(), self._stored.occurrences("relation")
        )

    @cached_property
    def traversal(self) -> TraversalGraph:
        """The relations as a graph on which plans run."""
        session, vocabulary = self._session, Vocabulary(self.facts.predicates)
        return TraversalGraph(
            self.facts, vocabulary, session.spellings, session.generation.traversal
        )

    @cached_property
    def triples_alone(self) -> frozenset[str]:
        """The entities that only triples name, and no text."""
        triples = {chunk.id for chunk in self.index.chunks if chunk.kind == "triples"}
        if not triples:
            return frozenset()
        in_text = [
            place for place, chunk in enumerate(self.index.chunks) if chunk.id not in triples
        ]
        named = set(self.index.entity_counts[:, in_text].nonzero()[0].tolist())
        return frozenset(
            name for name, place in self.index.by_id.place.items() if place not in named
        )

    @cached_property
    def levels(self) -> DualLevelIndex:
        """The graph as the two-level modes search it."""
        relations = [relation for relation in self.facts.relations.values() if relation.keys]
        texts = {relation.id: text_hash(keyed_text(relation)) for relation in relations}
        model = self._session.runtime.embedder.name
        stored = self._session.generation.vectors.get(model, list(texts.values())) if texts else {}
        vectors = {name: stored[key] for name, key in texts.items() if key in stored}
        return DualLevelIndex(self.index, self.facts, vectors)

    @cached_property
    def schema(self) -> Schema:
        """The schema of the generation's facts; empty where it has none."""
        stored = self._session.generation.meta.get_meta(SCHEMA)
        return Schema.model_validate(stored or {})

    @cached_property
    def fact_types(self) -> list[str]:
        """The types of which there are facts, as a model reads them, one a line."""
        return self.schema.lines({row.type for row in self._session.generation.facts.by_type()})

    def typed(self, only: Sequence[str] | None) -> TypedGraph:
        """Return the typed facts that these documents (None: all) state."""
        facts = self._session.generation.facts
        names = [(alias.entity, alias.name) for alias in self._stored.aliases()]
        return TypedGraph(
            self.schema,
            facts.things(list(self.schema.kinds), only),
            lambda day: facts.facts(day, only),
            names,
            self.index.chunk,
            self._session.spellings.named,
        )

    def claims(self, entities: Sequence[str]) -> list[Claim]:
        return self._stored.claims(entities)


class ReportReader:
    """The community reports of a session's generation, and their evidence."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._stored = session.generation.communities
        self._read: dict[str, Report] = {}

    @cached_property
    def tree(self) -> ReportTree:
        """The reports as a tree, which reads each at its first use."""
        return tree_of(self._stored.with_reports(), self._stored.ratings(), self.read)

    def read(self, communities: Sequence[str]) -> list[Report]:
        """Return the reports of these communities in order, and keep them in memory."""
        if missing := [name for name in communities if name not in self._read]:
            self._read |= {report.community: report for report in self._stored.reports(of=missing)}
        return [self._read[name] for name in communities if name in self._read]

    @cached_property
    def chunks(self) -> CommunityChunkIndex:
        """The chunks that name members of each community."""
        return CommunityChunkIndex(self.tree.members, self._session.index)

    @cached_property
    def sizes(self) -> ReportSizes:
        """The lengths of the reports, of which none is loaded."""
        return self._stored.report_sizes()

    def around(self, entities: Sequence[str]) -> list[Report]:
        """Return the reports of the communities of these entities, the narrowest first."""
        reports = self.read([community.id for community in self._stored.around(entities)])
        return sorted(reports, key=lambda report: (-report.level, report.community))

    def library(self, reports: Sequence[Report], only: Sequence[str] | None) -> CitedDocuments:
        """Return the documents that reports cite, restricted to `only`, with their chunks."""
        names = {finding.document for report in reports for finding in report.findings}
        documents = {name for name in names if only is None or name in only}
        return CitedDocuments(
            self._session.texts(sorted(documents)), self._session.chunks_of(documents)
        )


def open_session(runtime: Runtime, generation: int | None = None) -> Session:
    """Open the current generation or the given one. Raises NoGeneration, UnknownGeneration."""
    return Session(runtime, runtime.workspace.read(generation), pinned=generation is not None)


def open_part(whole: Session, where: str) -> Session:
    """Open what the documents that pass a filter give, as if there were no others.

    Raises NothingToRead where none passes, or where the filter names a field that none has.
    """
    generation = whole.generation
    try:
        documents = generation.filters.matching(where)
    except (FilterError, NothingMatches) as error:
        logger.warning("A key with a filter may read nothing: %s", error)
        raise NothingToRead from None
    part = whole.runtime.workspace.part(generation.number, documents)
    try:
        fill_part(generation, part, frozenset(documents))
    except BaseException:
        part.close()
        raise
    return Session(whole.runtime, part, pinned=True)


@dataclass
class Held:
    """An open session, the number of its users, and whether it closes after the last of them.

    `parts` are the open parts of its generation by their filters, the one used last at the end;
    `opening` has a lock for each filter.
    """

    settings: Settings
    session: Session
    users: int = 0
    closes: bool = False
    parts: OrderedDict[str, "Held"] = field(default_factory=OrderedDict)
    opening: defaultdict[str, threading.Lock] = field(
        default_factory=lambda: defaultdict(threading.Lock)
    )


class Sessions:
    """One session for each workspace, for any number of threads and event loops.

    A question ends on the generation on which it began: a replaced session closes after its last
    question.
    """

    def __init__(self) -> None:
        self._held: dict[Path, Held] = {}
        self._lock = threading.Lock()
        self._opening: dict[Path, threading.Lock] = defaultdict(threading.Lock)

    @contextmanager
    def hold(
        self,
        workspace: str | Path | None = None,
        as_of: int | None = None,
        where: str | None = None,
    ) -> Iterator[Session]:
        """Give the session of a workspace (None: that of the settings) on its current generation.

        With `as_of` another session opens that generation for this block alone. With `where` it is
        the session on the part of the documents that pass this filter. Raises NoGeneration,
        UnknownGeneration, NothingToRead, SettingsError.
        """
        held = self._take(load_settings({"workspace": workspace}), as_of, where)
        try:
            yield held.session
        finally:
            self._give_back(held)

    @asynccontextmanager
    async def use(
        self,
        workspace: str | Path | None = None,
        as_of: int | None = None,
        where: str | None = None,
    ) -> AsyncIterator[Session]:
        """Do the same without blocking the event loop."""
        settings = load_settings({"workspace": workspace})
        held = await asyncio.to_thread(self._take, settings, as_of, where)
        try:
            yield held.session
        finally:
            self._give_back(held)

    def close(self) -> None:
        """Close each session, after the last question that uses it."""
        with self._lock:
            for place in list(self._held):
                self._replace(place)

    def _take(self, settings: Settings, as_of: int | None, where: str | None) -> Held:
        if as_of is not None:
            return Held(settings, _opened(settings, as_of, where=where), users=1, closes=True)
        whole = self._take_whole(settings)
        if where is None:
            return whole
        try:
            return self._take_part(whole, where)
        finally:
            self._give_back(whole)

    def _take_part(self, whole: Held, where: str) -> Held:
        """Take the part of a held session; those used longest ago make room for a new one."""
        with self._lock:
            opening = whole.opening[where]
        with opening:  # one thread makes it, the others wait
            with self._lock:
                if part := whole.parts.get(where):
                    whole.parts.move_to_end(where)
                    part.users += 1
                    return part
            part = Held(whole.settings, _warmed(open_part(whole.session, where)), users=1)
            with self._lock:
                if whole.closes:  # meanwhile a newer generation took its place
                    part.closes = True
                    return part
                whole.parts[where] = part
                while len(whole.parts) > whole.settings.service.filters_kept:
                    self._end(whole.parts.popitem(last=False)[1])
            return part

    def _take_whole(self, settings: Settings) -> Held:
        place = settings.workspace.absolute()
        with self._lock:
            opening = self._opening[place]
        with opening:  # one thread opens it, the others wait
            held = self._held.get(place)
            same = held is not None and held.settings == settings
            if held is None or not same or held.session.is_outdated:
                runtime = held.session.runtime if held and same else None
                held = Held(settings, _opened(settings, runtime=runtime))
                atexit.register(self.close)  # registering it again does no harm
                with self._lock:
                    self._replace(place)
                    self._held[place] = held
            with self._lock:
                held.users += 1
            return held

    def _give_back(self, held: Held) -> None:
        with self._lock:
            held.users -= 1
            if held.closes and held.users == 0:
                held.session.close()

    def _replace(self, place: Path) -> None:
        if held := self._held.pop(place, None):
            for part in held.parts.values():
                self._end(part)
            held.parts.clear()
            self._end(held)

    def _end(self, held: Held) -> None:
        held.closes = True
        if held.users == 0:
            held.session.close()


def _opened(
    settings: Settings,
    as_of: int | None = None,
    runtime: Runtime | None = None,
    where: str | None = None,
) -> Session:
    """Open a session, or the part of it that a filter gives, and load everything."""
    session = open_session(runtime or open_runtime(settings, reading=True), as_of)
    if where is None:
        return _warmed(session)
    with session:
        return _warmed(open_part(session, where))


def _warmed(session: Session) -> Session:
    """Load everything; close the session again if that fails."""
    try:
        session.warm()
    except BaseException:
        session.close()
        raise
    return session


# Those of this process, closed at its end.
SESSIONS = Sessions()
