"""One question with what it is answered from: its search in the open generation, what modes are
given and bring.
"""

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

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
from tasks.retrieve.search import Reranked, SearchIndex, rerank, retrieve
from tasks.rewrite import ambiguities, rewrite, shared_names
from tasks.route import question_type

AUTO: Mode = "auto"  # chooses among the other modes
EXCERPT_PASSAGES = 12
LISTED = 8  # passages that an answer or a retrieval lists where the user names no number
WIDENED = 4  # of the best passages, so many come with their neighbours where effort is high
LONGEST = 8_000  # characters of a question; an article of a newspaper has as many
LONGEST_HISTORY = 200_000  # of the turns before it together
# what a cited chunk counts beside the best passage, where a name is read by what was found
CITED = 10.0
NOT_RECALLED = Recall(decisions=(), chunks=())
# Forms of questions that a part of the documents answers: only these use memory. A question about
# many documents gains nothing from the few passages that answered it before.
RECALLED = frozenset({"fact", "list", "yesno"})


@dataclass(frozen=True)
class AskOptions:
    """How a question is answered.

    `k` is how many passages an answer is written from at most, in every mode; None: as many as fit
    into the tokens of the effort. `documents` restricts the evidence to those ids, `where` to what
    meets all filters (`storage.filters`); `history` holds earlier turns, oldest first. A
    `retriever` brings pages from outside the index, which join what is found in it; None takes the
    one of the settings, if any. `level` is that of the reports that mode `global` reads (0: the
    broadest); None goes down the branches that are relevant. `effort` None is the one of the
    settings. `response` says in words what form the answer shall have ("a list", "in German").

    `on_text` gets pieces of the draft while a model writes it, Withdrawn where those before it do
    not hold; the answer itself has other markers. `meter` is the ledger in which the calls of
    models are entered as they are answered; None is one of the question's own.
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
    effort: Effort | None = None
    response: str = ""
    meter: Meter | None = None


def check_question(text: str, history: Sequence[str] = ()) -> None:
    """Raises UsageError for what is no question: empty, longer than LONGEST, or no valid
    Unicode.
    """
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
    """The options with `where` and `documents` as one set of documents, each of which exists; None
    stays all.

    Raises UnknownDocument, FilterError, or NothingMatches: what leaves nothing is never taken for
    everything.
    """
    documents = options.documents
    if any(name not in session.index.documents for name in documents or ()):
        documents = tuple(session.generation.documents.named(documents or ()))
    strange = [name for name in documents or () if name not in session.index.documents]
    if strange:
        session.generation.documents.documents(strange)
    for expression in options.where:
        meeting = session.generation.filters.matching(expression)
        documents = (
            tuple(meeting) if documents is None else tuple(sorted(set(meeting) & set(documents)))
        )
        if not documents:
            raise NothingMatches(expression, of=" of those that the question is restricted to")
    return replace(options, documents=documents)


@dataclass(frozen=True)
class Question:
    """A question that stands on its own, read by the words and names of a generation; `wording` is
    the question as the answer step reads it, `ambiguous` what its rewriting left open.
    """

    wording: str
    queries: Sequence[str]
    options: AskOptions
    index: SearchIndex
    ambiguous: Sequence[Ambiguous] = ()

    @property
    def only(self) -> tuple[str, ...] | None:
        """The documents that it may look into; None for all."""
        return self.options.documents

    @cached_property
    def text(self) -> str:
        """The question in one line, as it is searched for; the first of its queries."""
        return " ".join(self.wording.split())

    @cached_property
    def parsed(self) -> ParsedQuestion:
        """The question, taken apart by rules: for the steps that have no model."""
        return parse_question(self.text)

    @property
    def plain(self) -> bool:
        """Whether it asks one short thing of one named thing."""
        return is_plain(self.parsed)

    @cached_property
    def links(self) -> Sequence[Link]:
        """The entities that the question may mean."""
        return self.index.link(self.text)

    @property
    def unlinked(self) -> tuple[str, ...]:
        """Names in the question that no entity of the graph has."""
        return tuple(self.index.names.unlinked(self.text, self.links))

    @property
    def rarity(self) -> Callable[[str], float]:
        """Inverse document frequency of a term in the collection."""
        return self.index.lexicon.idf_of

    @cached_property
    def relevance(self) -> Relevance:
        """The judge of sentences where no model reads them.

        A concept is as rare as the commonest of its words.
        """
        rarity = self.rarity
        weights = {
            term: min(map(rarity, members(term)), default=rarity(term))
            for term in concept_terms(self.text)
        }
        aliases: dict[str, tuple[str, ...]] = {}
        for link in self.links:
            names = (*aliases.get(link.text, ()), *self.index.spellings[link.entity])
            aliases[link.text] = tuple(dict.fromkeys(names))
        return Relevance(self.parsed, weights, aliases)


@dataclass(frozen=True)
class PassageSearch:
    """The search of one question: the chunks of a generation and pages from outside, of the
    documents that it may look into. `depth` is how many passages are searched for; an answer is
    made from `most` tokens of them and from `at_most` passages (None: any number); `widened` is how
    many of the best come with their neighbours; `embedder` has the question's ledger.
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
        """The chunks by words, and by the graph."""
        return self.session.index

    async def passages(
        self, queries: Sequence[str], k: int, *, graph: bool = True
    ) -> list[Passage]:
        """The k best passages by words, meaning and, with `graph`, the graph, with what comes from
        outside.
        """
        index = self.index if graph else self.index.without_graph()
        dense = self.session.dense(queries, self.only, self.embedder)
        return await self.with_pages(queries, await retrieve(index, queries, dense, k, self.only))

    def candidates(self, k: int) -> int:
        """How many passages are searched for where k go on: more where a reranker chooses among
        them.
        """
        return max(k, self.session.runtime.settings.reranker_passages) if self.reranker else k

    async def reranked(self, query: str, passages: Sequence[Passage], k: int) -> Reranked:
        """The k passages most relevant to the query by the reranker; the first k where none is
        set.
        """
        return (
            await rerank(query, passages, k, self.reranker)
            if self.reranker
            else Reranked(list(passages[:k]))
        )

    async def best(self, query: str, passages: Sequence[Passage]) -> Reranked:
        """As many passages as an answer is made from, the most relevant by the reranker; all where
        none is set.
        """
        return await self.reranked(query, passages, self.depth if self.reranker else len(passages))

    async def with_pages(self, queries: Sequence[str], passages: list[Passage]) -> list[Passage]:
        """The passages, and in turn with them the parts of pages from outside that have words of
        the queries.
        """
        if self.pages is None:
            return passages
        documents, chunks = await read_pages(self.pages, queries)
        self.outside.add(documents, chunks)
        return interleaved(passages, best_parts(chunks, queries, len(passages) or self.depth))

    def cosines(self, text: str) -> Mapping[str, float]:
        """The chunks nearest to a text; none where the embedder cannot read it."""
        return self.session.dense([text], self.only, self.embedder)[0]

    def sources(self, passages: Sequence[Passage], most: int | None = None) -> list[Source]:
        """The passages as sources for an answer, best first, as many as the user allows and as fit
        (`most` tokens; None: an answer's).
        """
        chunks = self.chunks(passages)[: self.at_most]
        best = [near for chunk in chunks[: self.widened] for near in self._with_neighbours(chunk)]
        chunks = [*best, *chunks[self.widened :]]
        # Packed before they are joined: what joins into one long stretch would take the room of all
        # others.
        sources = map(self._source, {chunk.id: chunk for chunk in chunks}.values())
        return merged(packed(sources, self.most if most is None else most))

    def joined(self, sources: Iterable[Source]) -> list[Source]:
        """Sources of several steps, as many as the user allows an answer and as fit."""
        return packed(self.bounded(merged(sources)), self.most)

    def bounded(self, sources: Iterable[Source]) -> list[Source]:
        """The sources of as many passages as the user allows an answer."""
        return of_passages(sources, self.at_most)

    def admits(self, sources: Sequence[Source], further: Source) -> bool:
        """Whether the user allows an answer this source beside the others."""
        return len(self.bounded([*sources, further])) > len(sources)

    def _source(self, chunk: Chunk) -> Source:
        """A chunk as a source, which names the other documents that hold its text."""
        return replace(source_of(chunk), also=self.index.other_documents(chunk.id, self.only))

    def _with_neighbours(self, chunk: Chunk) -> list[Chunk]:
        """A passage, then those before and after it in its document; a page's has none."""
        own = list(self.session.chunks_of([chunk.document]).get(chunk.document, ()))
        place = own.index(chunk) if chunk in own else len(own)
        return (
            [chunk, *own[max(place - 1, 0) : place], *own[place + 1 : place + 2]]
            if place < len(own)
            else [chunk]
        )

    def passage(self, name: str, score: float = 0.0) -> Passage:
        """A chunk by id as a passage."""
        return passage_of(self.chunk(name), score)

    def chunk(self, name: str) -> Chunk:
        """A chunk by id, of the index or of a page."""
        return self.outside.chunks.get(name) or self.index.chunk(name)

    def chunk_at(self, document: str, offset: int) -> Chunk:
        """The last chunk of a document that begins at or before an offset."""
        own = list(self.session.chunks_of([document]).get(document, ()))
        own = own or [chunk for chunk in self.outside.chunks.values() if chunk.document == document]
        return next((chunk for chunk in reversed(own) if chunk.start <= offset), own[0])

    def documents(self, names: Sequence[str]) -> dict[str, Document]:
        """Documents by id, of the generation or pages."""
        pages = {
            name: self.outside.documents[name] for name in names if name in self.outside.documents
        }
        return self.session.documents([name for name in names if name not in pages]) | pages

    def texts(self, names: Sequence[str]) -> dict[str, DocumentText]:
        """The texts of documents by id, of the generation or pages."""
        pages = {
            name: self.outside.documents[name] for name in names if name in self.outside.documents
        }
        return {**self.session.texts([name for name in names if name not in pages]), **pages}

    def chunks(self, passages: Sequence[Passage]) -> list[Chunk]:
        """The chunks of passages."""
        return [self.chunk(passage.chunk) for passage in passages]


@dataclass(frozen=True)
class Resources:
    """All that there is to answer a question with; a mode gets of it what its parameters name.

    `models` have the question's ledger and its effort, `answering` is how answers are finished.
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
        """The same for the question asked in this mode."""
        options = replace(self.question.options, mode=mode)
        return replace(self, question=replace(self.question, options=options))

    def withdraw_draft(self) -> None:
        """Tell whoever reads the draft that it does not hold."""
        if self.question.options.on_text is not None:
            self.question.options.on_text(Withdrawn())


async def resources_for(text: str, options: AskOptions, session: Session) -> Resources:
    """The question rewritten so that it stands on its own, with what it is answered from.

    Memory has no part in a question that is restricted, asks of a generation by its number, or
    reads pages that may be others tomorrow.
    """
    check_question(text, options.history)
    options, runtime, settings = (
        restricted(options, session),
        session.runtime,
        session.runtime.settings,
    )
    models = replace(
        runtime.query_models, meter=options.meter or Meter(), policy=settings.policy(options.effort)
    )
    rewriting = await rewrite(text, options.history, Rewrite(models))
    question = Question(
        rewriting.question, rewriting.queries, options, session.index, rewriting.ambiguities
    )
    embedder, policy = runtime.embedder.metered(models.meter), models.policy
    pages = options.retriever or runtime.retriever
    search = PassageSearch(
        session,
        options.documents,
        embedder,
        depth=options.k or max(LISTED, depth(models, session, policy.limits.answer)),
        most=policy.limits.answer,
        at_most=options.k or policy.passages,
        widened=WIDENED if policy.effort == "high" and options.k is None else 0,
        pages=pages,
        reranker=runtime.reranker.metered(models.meter) if runtime.reranker else None,
    )
    restricted_or_pinned = options.documents is not None or session.pinned or pages is not None
    memory = QuestionMemory(
        session.memory or runtime.workspace.database.memory,
        session.question_features,
        session.index,
        embedder,
        settings.tau,
        settings.theta,
        session.number,
        open=settings.memory != "off"
        and not restricted_or_pinned
        and question.parsed.form in RECALLED,
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
    """How many passages are searched for where an answer reads `most` tokens of them.

    Excerpts are chosen among few: what stands far down speaks of something else.
    """
    if models.is_offline("answer"):
        return EXCERPT_PASSAGES
    return math.ceil(most / max(session.passage_tokens, 1.0))


# --- what comes of it -----------------------------------------------------------------------------


@dataclass(frozen=True)
class ModeResult:
    """What a mode brings: passages, best first, and the context made of them. What it does not
    decide stays as here.

    `stated` is the answer where no model writes one. `writer` writes it where a model does. A mode
    that chooses no structure has no `route`; `reason` says what it did instead.
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


@dataclass(frozen=True)
class Response:
    """What a mode brought and what was answered from it; `decision` says why this mode, where
    `auto` chose it.
    """

    mode: Mode
    result: ModeResult
    answered: Answered
    recall: Recall = NOT_RECALLED
    decision: ModeDecision | None = None


async def written(resources: Resources, result: ModeResult) -> Answered:
    """The answer to the question from what a mode brought."""
    options = resources.answering
    writer = result.writer(resources.models, resources.question.options.on_text, options.language)
    return await answer(resources.question.wording, result.context, writer, options, result.stated)


async def answered_alone(resources: Resources, response: Response) -> Response:
    """The response, or where nothing at all was found and the settings let it, what the model knows
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
    """The answer to a part of the question, searched for by itself; its draft is shown to
    nobody.
    """
    search = resources.search
    most = resources.models.policy.limits.part
    wanted = search.at_most or depth(resources.models, search.session, most)
    passages = (
        await search.reranked(
            part, await search.passages([part], search.candidates(wanted)), wanted
        )
    ).passages
    sources = search.sources(passages, most)
    writer = AnswerStep(resources.models, None, resources.answering.language)
    answered = await helped(
        writer,
        lambda step: answer(part, AnswerContext(sources), step, resources.answering),
        "the best passages of that part of the question are quoted",
    )
    return PartAnswer.of(part, answered, sources)


async def answer_of(text: str, resources: Resources, response: Response, started: float) -> Answer:
    """The answer with its trace; `text` is the question as it was put, `started` when, by the
    monotonic clock.
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
    """What the question leaves open, and how it was read; the store is asked only where a name
    means several things.
    """
    index, ambiguous = question.index, question.ambiguous
    meant = shared_names(question.links, index.entities)
    if not meant:
        return ambiguities(ambiguous, {}, {}, {})
    places = session.generation.graph.occurrences(
        "entity", [e.id for same in meant.values() for e in same]
    )
    chunks = by_key((place.item, index.chunk(place.chunk)) for place in places)
    weights = {passage.chunk: 1 / rank for rank, passage in enumerate(passages, 1)}
    weights |= {citation.chunk: CITED for citation in citations}
    return ambiguities(ambiguous, meant, chunks, weights)
