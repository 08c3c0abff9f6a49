"""A question, what it is answered from, and what a mode returns."""

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np

from flows.runtime import usage_of
from flows.session import GraphReader, ReportReader, Session
from prompts.answer import AnswerStep, Direct
from prompts.engine.embedders import Embedder, cosines
from prompts.engine.helper import helped
from prompts.engine.models import Models
from prompts.engine.rerankers import Reranker
from prompts.engine.spending import Meter
from prompts.engine.streaming import Show, Withdrawn
from prompts.rewrite import Ambiguous, Rewrite
from prompts.text.question import ParsedQuestion, is_plain, parse_question
from prompts.text.relevance import Relevance
from prompts.text.thesaurus import concept_terms, members
from storage.answer_records import (
    Ambiguity,
    Answer,
    Citation,
    DegradedStep,
    DocumentStructure,
    Effort,
    Mode,
    ModeDecision,
    Passage,
    QuestionType,
    Recognition,
    RelevanceTests,
    ReportRead,
    Reranking,
    RouteDecision,
    SparedCall,
    StructureType,
    SubQuestion,
    Trace,
)
from storage.errors import NothingMatches, UsageError
from storage.records import Chunk, Document, DocumentText, by_key
from tasks.answer import (
    AnswerContext,
    Answered,
    AnswerOptions,
    StatedAnswer,
    answer,
    answer_directly,
)
from tasks.citations import Source, merged, of_passages, packed, source_of
from tasks.decompose import PartAnswer
from tasks.filter import FilterResult
from tasks.memory import QuestionMemory, Recall
from tasks.retrieve.lexical import passage_of
from tasks.retrieve.link import Link
from tasks.retrieve.pages import OutsidePages, Retriever, best_parts, interleaved, read_pages
from tasks.retrieve.search import NO_SEEDS, Reranked, SearchIndex, Seeds, rerank, retrieve
from tasks.rewrite import ambiguities, rewrite, shared_names
from tasks.route import question_type

AUTO: Mode = "auto"  # chooses one of the other modes
# Without a model an answer quotes the best of this few passages: those further down are off topic.
EXCERPT_PASSAGES = 12
LISTED = 8  # passages in a listing, unless the user gives a number
WIDENED = 4  # best passages that come with their neighbours at high effort
LONGEST = 8_000  # characters of a question: a newspaper article
LONGEST_HISTORY = 200_000  # characters of all earlier turns
CITED = 10.0  # weight of a cited chunk in the choice of a reading; the best passage has 1
NOT_RECALLED = Recall(decisions=(), chunks=())
# Only questions that few documents answer use memory: the passages of an earlier answer do not help
# with a question about the whole collection.
RECALLED = frozenset({"fact", "list", "yesno"})


@dataclass(frozen=True)
class AskOptions:
    """How a question is answered; None takes the value of the settings or of the effort.

    `k` is the most passages that an answer is written from. `documents` restricts the evidence to
    these ids, `where` to documents that pass all these filters (`storage.filters`). `retriever`
    finds pages outside the index. `history` holds earlier turns, oldest first. `level` is the level
    of the reports that mode `global` reads, 0 the broadest; without it the mode follows the
    relevant branches. `budget` is the number of passages that mode `lazy` tests. `response`
    describes the form of the answer ("a list", "in German").

    `on_text` receives the draft in pieces, and Withdrawn when the pieces before it are void; the
    final answer has other markers. `meter` records the calls to models as they end.
    """

    mode: Mode = AUTO
    structure: StructureType | None = None
    k: int | None = None
    documents: tuple[str, ...] | None = None
    where: tuple[str, ...] = ()
    retriever: Retriever | None = None
    history: tuple[str, ...] = ()
    on_text: Show | None = None
    level: int | None = None
    budget: int | None = None
    effort: Effort | None = None
    response: str = ""
    meter: Meter | None = None


def check_question(text: str, history: Sequence[str] = ()) -> None:
    """Refuse an empty or too long question, and invalid Unicode. Raises UsageError."""
    if not text.strip():
        raise UsageError("The question is empty.", "Write what you want to know.")
    if len(text) > LONGEST:
        raise UsageError(
            f"The question has {len(text):,} characters, more than {LONGEST:,}.",
            "Ask in fewer words, and index what it quotes as a document.",
        )
    if sum(map(len, history)) > LONGEST_HISTORY:
        raise UsageError(
            f"The conversation has more than {LONGEST_HISTORY:,} characters.",
            "Leave out its oldest turns.",
        )
    if any("\ud800" <= sign <= "\udfff" for turn in (text, *history) for sign in turn):
        raise UsageError("The question is not valid Unicode.", "Write it in UTF-8.")


def restricted(options: AskOptions, session: Session) -> AskOptions:
    """Return the options with `documents` and `where` as one set of documents; None means all.

    Raises UnknownDocument, FilterError, and NothingMatches where no document passes.
    """
    known, stored, documents = session.index.documents, session.generation, options.documents
    if any(name not in known for name in documents or ()):
        documents = tuple(stored.documents.named(documents or ()))
    if unknown := [name for name in documents or () if name not in known]:
        stored.documents.documents(unknown)  # raises UnknownDocument
    for expression in options.where:
        meeting = set(stored.filters.matching(expression))
        documents = tuple(sorted(meeting if documents is None else meeting & set(documents)))
        if not documents:
            raise NothingMatches(expression, of=" of those that the question is restricted to")
    return replace(options, documents=documents)


@dataclass(frozen=True)
class Question:
    """A question that is understood without its conversation, and the index that it is put to.

    `wording` is what the answer step reads, `ambiguous` what the rewriting left open.
    """

    wording: str
    queries: Sequence[str]
    options: AskOptions
    index: SearchIndex
    ambiguous: Sequence[Ambiguous] = ()

    @property
    def only(self) -> tuple[str, ...] | None:
        """The documents to look into; None means all."""
        return self.options.documents

    @cached_property
    def text(self) -> str:
        """The question on one line; the first of its queries."""
        return " ".join(self.wording.split())

    @cached_property
    def parsed(self) -> ParsedQuestion:
        """The question as rules take it apart, for steps without a model."""
        return parse_question(self.text)

    @property
    def plain(self) -> bool:
        """Whether it asks one short thing about one named thing."""
        return is_plain(self.parsed)

    @cached_property
    def links(self) -> Sequence[Link]:
        """The entities that the question may mean."""
        return self.index.link(self.text)

    @property
    def unlinked(self) -> tuple[str, ...]:
        """The names in the question that no entity has."""
        return tuple(self.index.names.unlinked(self.text, self.links))

    @property
    def rarity(self) -> Callable[[str], float]:
        """The inverse document frequency of a term."""
        return self.index.lexicon.idf_of

    @cached_property
    def relevance(self) -> Relevance:
        """What scores sentences where no model reads them; a concept is as rare as the most common
        of its words.
        """
        weights = {
            term: min(map(self.rarity, members(term)), default=self.rarity(term))
            for term in concept_terms(self.text)
        }
        aliases: dict[str, tuple[str, ...]] = {}
        for link in self.links:
            names = (*aliases.get(link.text, ()), *self.index.spellings[link.entity])
            aliases[link.text] = tuple(dict.fromkeys(names))
        return Relevance(self.parsed, weights, aliases)


@dataclass(frozen=True)
class PassageSearch:
    """The search of one question in the chunks of a generation and in pages from outside.

    `only` are the documents to look into. `depth` passages are searched for; an answer is written
    from at most `at_most` passages (None: any number) and `most` tokens of them. The `widened` best
    passages come with their neighbours. `embedder` has the question's meter.
    """

    session: Session
    only: tuple[str, ...] | None
    embedder: Embedder
    depth: int
    most: int
    at_most: int | None = None
    widened: int = 0
    pages: Retriever | None = None
    reranker: Reranker | None = None
    outside: OutsidePages = field(default_factory=OutsidePages)

    @property
    def index(self) -> SearchIndex:
        return self.session.index

    async def passages(
        self, queries: Sequence[str], k: int, *, graph: bool = True, seeds: Seeds = NO_SEEDS
    ) -> list[Passage]:
        """Return the k best passages by words, meaning and, with `graph`, the graph, whose walk
        also starts from the `seeds`; add pages from outside.
        """
        index = self.index.seeded(seeds) if graph else self.index.without_graph()
        dense = self.session.dense(queries, self.only, self.embedder)
        return await self.with_pages(queries, await retrieve(index, queries, dense, k, self.only))

    async def ranked(self, queries: Sequence[str], k: int) -> list[Passage]:
        """Return the k passages nearest to all queries together by words and meaning, for callers
        that read hundreds; add pages from outside.
        """
        index = self.index.without_graph()
        dense = self.session.dense(queries, self.only, self.embedder, k)
        fits = [index.asked(*query).base for query in zip(queries, dense, strict=True)]
        scores = np.where(index.allowed(self.only), np.sum(fits, axis=0), 0.0)
        return await self.with_pages(queries, index.rank(scores, k))

    def candidates(self, k: int) -> int:
        """Return how many passages to search for when k are wanted: more if a reranker chooses."""
        return max(k, self.session.runtime.settings.reranker_passages) if self.reranker else k

    async def reranked(self, query: str, passages: Sequence[Passage], k: int) -> Reranked:
        """Return the k passages that the reranker scores best; without one the first k."""
        if self.reranker is None:
            return Reranked(list(passages[:k]))
        return await rerank(query, passages, k, self.reranker)

    async def best(self, query: str, passages: Sequence[Passage]) -> Reranked:
        """Return the `depth` passages that the reranker scores best; without one all passages."""
        return await self.reranked(query, passages, self.depth if self.reranker else len(passages))

    async def with_pages(self, queries: Sequence[str], passages: list[Passage]) -> list[Passage]:
        """Interleave the passages with parts of outside pages that share words with the queries."""
        if self.pages is None:
            return passages
        documents, chunks = await read_pages(self.pages, queries)
        self.outside.add(documents, chunks)
        return interleaved(passages, best_parts(chunks, queries, len(passages) or self.depth))

    def cosines(self, text: str) -> Mapping[str, float]:
        """Return the chunks nearest to a text; none if the embedder cannot read it."""
        return self.session.dense([text], self.only, self.embedder)[0]

    def sources(self, passages: Sequence[Passage], most: int | None = None) -> list[Source]:
        """Return the passages as sources of an answer, best first, within the user's number and
        `most` tokens (None: those of an answer).
        """
        chunks = self.chunks(passages)[: self.at_most]
        best = [near for chunk in chunks[: self.widened] for near in self._with_neighbours(chunk)]
        chunks = [*best, *chunks[self.widened :]]
        # Packed before merging: one long merged stretch would take the room of all others.
        sources = map(self._source, {chunk.id: chunk for chunk in chunks}.values())
        return merged(packed(sources, self.most if most is None else most))

    def joined(self, sources: Iterable[Source]) -> list[Source]:
        """Merge the sources of several steps, within the user's number and the tokens of an
        answer.
        """
        return packed(self.bounded(merged(sources)), self.most)

    def bounded(self, sources: Iterable[Source]) -> list[Source]:
        """Keep the sources within the user's number of passages."""
        return of_passages(sources, self.at_most)

    def admits(self, sources: Sequence[Source], further: Source) -> bool:
        """Whether the user's number of passages leaves room for a further source."""
        return len(self.bounded([*sources, further])) > len(sources)

    def _source(self, chunk: Chunk) -> Source:
        """Return a chunk as a source, with the other documents that hold the same text."""
        return replace(source_of(chunk), also=self.index.other_documents(chunk.id, self.only))

    def _with_neighbours(self, chunk: Chunk) -> list[Chunk]:
        """Return a chunk, then those before and after it in its document; a page has none."""
        own = self._chunks_in(chunk.document)
        if chunk not in own:
            return [chunk]
        place = own.index(chunk)
        return [chunk, *own[max(place - 1, 0) : place], *own[place + 1 : place + 2]]

    def passage(self, name: str, score: float = 0.0) -> Passage:
        """Return a chunk by id as a passage."""
        return passage_of(self.chunk(name), score)

    def chunk(self, name: str) -> Chunk:
        """Return a chunk by id, of the index or of a page."""
        return self.outside.chunks.get(name) or self.index.chunk(name)

    def chunk_at(self, document: str, offset: int) -> Chunk:
        """Return the last chunk of a document that begins at or before an offset."""
        own = self._chunks_in(document)
        own = own or [chunk for chunk in self.outside.chunks.values() if chunk.document == document]
        return next((chunk for chunk in reversed(own) if chunk.start <= offset), own[0])

    def _chunks_in(self, document: str) -> Sequence[Chunk]:
        return self.session.chunks_of([document]).get(document, ())

    def documents(self, names: Sequence[str]) -> dict[str, Document]:
        """Return documents by id, of the generation or of pages."""
        pages = self._pages(names)
        return self.session.documents([name for name in names if name not in pages]) | pages

    def texts(self, names: Sequence[str]) -> dict[str, DocumentText]:
        """Return texts of documents by id, of the generation or of pages."""
        pages = self._pages(names)
        return {**self.session.texts([name for name in names if name not in pages]), **pages}

    def _pages(self, names: Sequence[str]) -> dict[str, Document]:
        pages = self.outside.documents
        return {name: pages[name] for name in names if name in pages}

    def chunks(self, passages: Sequence[Passage]) -> list[Chunk]:
        return [self.chunk(passage.chunk) for passage in passages]


@dataclass(frozen=True)
class Resources:
    """What a mode works with: the question, its search, the graph, the reports and the models.

    `models` have the question's meter and effort; `answering` says how answers are finished.
    """

    question: Question
    search: PassageSearch
    graph: GraphReader
    reports: ReportReader
    models: Models
    memory: QuestionMemory
    answering: AnswerOptions

    @property
    def writes(self) -> bool:
        """Whether a model writes the answer."""
        return not self.models.is_offline("answer")

    def in_mode(self, mode: Mode) -> "Resources":
        """Return the same for the question in this mode."""
        options = replace(self.question.options, mode=mode)
        return replace(self, question=replace(self.question, options=options))

    def withdraw_draft(self) -> None:
        """Tell the reader of the draft that it is void."""
        if self.question.options.on_text is not None:
            self.question.options.on_text(Withdrawn())


async def resources_for(text: str, options: AskOptions, session: Session) -> Resources:
    """Rewrite the question so that it needs no conversation, and gather what it is answered from.

    Memory is closed to a question that is restricted, asks an older generation by its number, or
    reads pages from outside, which may change.
    """
    check_question(text, options.history)
    options, runtime = restricted(options, session), session.runtime
    settings = runtime.settings
    policy, meter = settings.policy(options.effort), options.meter or Meter()
    models = replace(runtime.query_models, meter=meter, policy=policy)
    rewriting = await rewrite(text, options.history, Rewrite(models))
    question = Question(
        rewriting.question, rewriting.queries, options, session.index, rewriting.ambiguities
    )
    embedder, pages = runtime.embedder.metered(meter), options.retriever or runtime.retriever
    search = PassageSearch(
        session,
        options.documents,
        embedder,
        depth=options.k or max(LISTED, depth(models, session, policy.limits.answer)),
        most=policy.limits.answer,
        at_most=options.k or policy.passages,
        widened=WIDENED if policy.effort == "high" and options.k is None else 0,
        pages=pages,
        reranker=runtime.reranker.metered(meter) if runtime.reranker else None,
    )
    unrestricted = options.documents is None and not session.pinned and pages is None
    memory = QuestionMemory(
        session.memory or runtime.workspace.database.memory,
        session.question_features,
        session.index,
        embedder,
        settings.tau,
        settings.theta,
        session.number,
        open=settings.memory != "off" and unrestricted and question.parsed.form in RECALLED,
    )
    answering = AnswerOptions(
        documents=search.texts,
        rarity=question.rarity,
        similarity=partial(cosines, embedder),
        response=options.response,
        strict=settings.strict,
        scorer=runtime.grounding_scorer,
        language=settings.tailoring.language,
    )
    return Resources(question, search, session.graph, session.reports, models, memory, answering)


def depth(models: Models, session: Session, most: int) -> int:
    """Return how many passages to search for to fill `most` tokens of an answer's evidence."""
    if models.is_offline("answer"):
        return EXCERPT_PASSAGES
    return math.ceil(most / max(session.passage_tokens, 1.0))


# --- answers --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ModeResult:
    """What a mode found: passages, best first, and the context made of them.

    `stated` is the answer where no model writes one, `writer` the step that writes it otherwise. A
    mode that chooses no structure has no `route`, and says in `reason` what it did instead.
    """

    context: AnswerContext
    passages: Sequence[Passage] = ()
    stated: StatedAnswer | None = None
    writer: type[AnswerStep] = AnswerStep
    route: RouteDecision | None = None
    reason: str = ""
    filtered: FilterResult = field(default_factory=FilterResult)
    question_type: QuestionType | None = None
    subquestions: tuple[SubQuestion, ...] = ()
    structure: StructureType = "chunk"
    structures: tuple[DocumentStructure, ...] = ()
    reports: tuple[ReportRead, ...] = ()
    reranking: Reranking | None = None
    relevance: RelevanceTests | None = None
    recognition: Recognition | None = None


@dataclass(frozen=True)
class Response:
    """What a mode found and the answer to it; `decision` says why `auto` chose the mode."""

    mode: Mode
    result: ModeResult
    answered: Answered
    recall: Recall = NOT_RECALLED
    decision: ModeDecision | None = None


async def written(resources: Resources, result: ModeResult) -> Answered:
    """Write the answer from what a mode found."""
    options = resources.answering
    writer = result.writer(resources.models, resources.question.options.on_text, options.language)
    return await answer(resources.question.wording, result.context, writer, options, result.stated)


async def answered_alone(resources: Resources, response: Response) -> Response:
    """Where nothing was found and the settings allow it, let the model answer from what it knows
    (ERM4).
    """
    context = response.result.context
    alone = resources.search.session.runtime.settings.answer_alone and resources.writes
    if not alone or response.answered.fallback != "abstained" or context.sources or context.notes:
        return response
    stated = await answer_directly(resources.question.text, Direct(resources.models))
    result = replace(response.result, stated=stated)
    return replace(response, result=result, answered=await written(resources, result))


async def part_answer(resources: Resources, part: str) -> PartAnswer:
    """Search for a part of the question and answer it; nobody is shown the draft."""
    search, most = resources.search, resources.models.policy.limits.part
    wanted = search.at_most or depth(resources.models, search.session, most)
    found = await search.passages([part], search.candidates(wanted))
    sources = search.sources((await search.reranked(part, found, wanted)).passages, most)
    answered = await helped(
        AnswerStep(resources.models, None, resources.answering.language),
        lambda step: answer(part, AnswerContext(sources), step, resources.answering),
        "the best passages of that part of the question are quoted",
    )
    return PartAnswer.of(part, answered, sources)


async def answer_of(text: str, resources: Resources, response: Response, started: float) -> Answer:
    """Return the answer with its trace; `text` is the question as it was put, `started` a time of
    the monotonic clock.
    """
    response = await answered_alone(resources, response)
    question, session = resources.question, resources.search.session
    result, answered, meter = response.result, response.answered, resources.models.meter
    reason = result.reason or f"the mode {response.mode} does not choose a structure"
    unrouted = RouteDecision(type=result.structure, confidence=1.0, margin=1.0, reason=reason)
    trace = Trace(
        mode=response.mode,
        decision=response.decision,
        effort=resources.models.policy.effort,
        rewritten=question.text,
        queries=tuple(question.queries),
        trigger=response.recall.decisions,
        filter=result.filtered.counts,
        question_type=result.question_type or question_type(question.parsed),
        route=result.route or unrouted,
        structure=result.structure,
        subquestions=result.subquestions,
        structures=result.structures,
        reports=result.reports,
        unlinked=question.unlinked,
        ambiguity=_ambiguities(question, session, result.passages, answered.citations),
        answered_by=answered.answered_by,
        removed_markers=answered.removed_markers,
        spared=tuple(SparedCall(step=step, reason=reason) for step, reason in meter.spared()),
        degraded=tuple(
            DegradedStep(step=row.step, reason=row.reason, instead=row.instead, times=row.times)
            for row in meter.degraded()
        ),
        profile=resources.models.policy.profile,
        reranking=result.reranking,
        relevance=result.relevance,
        recognition=result.recognition,
    )
    return Answer(
        question=text,
        answer=answered.text,
        values=answered.values,
        citations=answered.citations,
        passages=tuple(result.passages[: question.options.k or LISTED]),
        fallback=answered.fallback,
        grounding=answered.grounding,
        trace=trace,
        usage=usage_of(meter, time.monotonic() - started),
        generation=session.number,
    )


def _ambiguities(
    question: Question, session: Session, passages: Sequence[Passage], citations: Sequence[Citation]
) -> tuple[Ambiguity, ...]:
    """Say what the question leaves open, and how it was read by what was found and cited."""
    meant = shared_names(question.links, question.index.entities)
    places = session.generation.graph.occurrences(
        "entity", [entity.id for same in meant.values() for entity in same]
    )
    chunks = by_key((place.item, question.index.chunk(place.chunk)) for place in places)
    weights = {passage.chunk: 1 / rank for rank, passage in enumerate(passages, 1)}
    weights |= {citation.chunk: CITED for citation in citations}
    return ambiguities(question.ambiguous, meant, chunks, weights)
