"""Agent search: a model calls tools until the evidence holds every link of the question (A-RAG,
arXiv 2602.03442; ReAct, arXiv 2210.03629).

search → think → call a tool → think → … → answer. The answer is written and checked as in the other
modes, from the evidence that was seen; without a model, from the first search.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated, Any

from pydantic import Field

from flows.modes.query_mode import QueryMode
from flows.question import ModeResult, Resources
from flows.service.reading import EntityView, GraphPath, ListedReport, Quote, ReportView
from flows.tools import FOUND, Tool, WorkspaceTools, arguments_of, described, reader_of
from prompts.agent import CallTool, ToolCall
from prompts.plan_table import PlanTable
from storage.answer_records import Passage
from storage.records import Document
from tasks.agent import BUDGETS, AgentBudget, Exploration, Found, Refused, explore, next_call
from tasks.answer import AnswerContext, Note
from tasks.citations import Source, merged, number_of, packed, source_of
from tasks.retrieve.search import Reranked
from tasks.tables.answer import MOST_ASKED, sourced_table_answer

NOT_COMPUTED = "The tables do not tell."
FIRST_ALONE = "without a model the first search is all"


async def agent_search(resources: Resources) -> ModeResult:
    """Call tools from the first search on, and gather what an answer is written from."""
    tools = await tools_for(resources)
    caller = CallTool(resources.models)
    if not caller.is_offline:
        await explore(resources.question.text, tools.seen, tools, caller, budget_of(resources))
    return tools.result()


async def passages_seen(resources: Resources, k: int) -> list[Passage]:
    """Return the k best passages that the agent has seen."""
    return list((await agent_search(resources)).passages[:k])


async def open_link(resources: Resources) -> str | None:
    """Say what the first search leaves open, in the words of a large model at high effort; None
    where it leaves nothing, and elsewhere.

    The agent's first call is the same, and comes from the cache of answers.
    """
    caller, policy = CallTool(resources.models), resources.models.policy
    if caller.is_offline or policy.effort != "high" or policy.profile != "large":
        return None
    tools, left = await tools_for(resources), budget_of(resources).calls
    call = await next_call(resources.question.text, tools.seen, tools, caller, left, wanted=False)
    return None if call.tool == "finish" else call.thought or call.written


def budget_of(resources: Resources) -> AgentBudget:
    """Return the budget of the settings, or that of the effort."""
    usual = BUDGETS[resources.models.policy.effort]
    settings = resources.search.session.runtime.settings
    return AgentBudget(
        settings.agent_calls or usual.calls, settings.agent_budget_tokens or usual.tokens
    )


async def tools_for(resources: Resources) -> "QuestionTools":
    """Search for the question; the best passages are the first evidence."""
    question, search = resources.question, resources.search
    retrieved = await search.passages(question.queries, search.candidates(search.depth))
    first = await search.reranked(question.text, retrieved, search.depth)
    return tools_from(resources, first, QuestionTools)


def tools_from(
    resources: Resources, first: Reranked, kind: type["QuestionTools"]
) -> "QuestionTools":
    """Return tools whose first evidence is the best of what was searched for already."""
    question = resources.question
    shared = WorkspaceTools(reader_of(resources.search.session), question.only)
    known = {passage.chunk: passage for passage in first.passages}
    tools = kind(resources, shared, first, known)
    room = resources.models.policy.limits.part
    asked = ToolCall(tool="search", arguments=(question.text,))
    tools.seen.add(asked, tools.of_passages(first.passages[:FOUND]), room)
    return tools


@dataclass(frozen=True)
class QuestionTools:
    """The tools of one question and what they have found: those of the workspace, and the
    question's own search, which keeps to its documents and its reranker.

    `first` is the first search, `known` holds every passage found by its chunk, `notes` what was
    computed from tables.
    """

    resources: Resources
    shared: WorkspaceTools
    first: Reranked
    known: dict[str, Passage]
    seen: Exploration = field(default_factory=Exploration)
    notes: list[Note] = field(default_factory=list)

    # --- the tools ---

    async def search(
        self, query: Annotated[str, Field(description="A question or phrase.", min_length=1)]
    ) -> list[Passage]:
        """Find the passages that bear most on a query, by words, meaning and the graph."""
        search = self.resources.search
        found = await search.passages([query], search.candidates(FOUND))
        return (await search.reranked(query, found, FOUND)).passages

    async def search_meaning(
        self, text: Annotated[str, Field(description="A statement to be like.", min_length=1)]
    ) -> list[Passage]:
        """Find the passages nearest in meaning to a text, whatever their words."""
        search = self.resources.search
        return search.index.by_meaning(search.cosines(text), FOUND)

    async def passage(
        self, number: Annotated[int, Field(description="The n of evidence [n].", ge=1)]
    ) -> list[Found]:
        """Show the passage of a piece of evidence whole, with the passages before and after it."""
        if number > len(self.seen.sources):
            raise Refused(
                f"There is no evidence [{number}]; the last is [{len(self.seen.sources)}]."
            )
        search, (name, _) = self.resources.search, self.seen.sources[number - 1].chunks[0]
        middle = search.chunk(name)
        around = search.session.chunks_of([middle.document]).get(middle.document, [middle])
        near = [chunk for chunk in around if abs(chunk.ordinal - middle.ordinal) <= 1] or [middle]
        near.sort(key=lambda chunk: chunk.id != middle.id)  # what was asked for comes first
        return [Found("", source_of(chunk), again=True) for chunk in near]

    async def tables(
        self, question: Annotated[str, Field(description="What to count, sum or compare.")]
    ) -> list[Found]:
        """Compute an answer from the tables of the documents found so far."""
        planner = PlanTable(self.resources.models)
        search = self.resources.search
        computed = await sourced_table_answer(question, self._tabled, planner, search.chunk_at)
        if not computed.is_computed:
            return [Found(computed.result.plan or NOT_COMPUTED)]
        self.notes.extend(computed.notes)
        said = [Found(computed.result.sentence), Found(computed.result.plan)]
        return [*said, *(Found("", source) for source in computed.sources)]

    @property
    def _tabled(self) -> dict[str, Document]:
        """The documents with tables among those that the user names or that were found."""
        named = self.resources.question.only or ()
        found = [source.document for source in self.seen.sources]
        names = list(dict.fromkeys([*(named if len(named) <= MOST_ASKED else ()), *found]))
        documents = self.resources.search.documents(names[:MOST_ASKED])
        return {name: document for name, document in documents.items() if document.tables}

    # --- calls ---

    @property
    def offered(self) -> Mapping[str, Tool]:
        """The tools that have something to read, by name."""
        resources, shared = self.resources, self.shared
        related = len(resources.graph.facts.predicates) > 0
        reported = resources.question.only is None and resources.reports.sizes.reports > 0
        tools: dict[Tool, bool] = {
            self.search: True,
            shared.search_words: True,
            self.search_meaning: self._has_vectors,
            self.passage: True,
            shared.entity: related,
            shared.paths: related,
            shared.reports: reported,
            self.tables: bool(self._tabled),
        }
        return {tool.__name__: tool for tool, is_offered in tools.items() if is_offered}

    @cached_property
    def _has_vectors(self) -> bool:
        return bool(self.resources.search.cosines(self.resources.question.text))

    def described(self) -> list[str]:
        """Return a line for each tool."""
        return [described(tool) for tool in self.offered.values()]

    async def call(self, call: ToolCall) -> list[Found]:
        """Make a call. Raises Refused for arguments that do not fit, NotFound for unknown names."""
        offered = self.offered
        if call.tool not in offered:
            raise Refused(f"{call.tool} cannot be used here; there are {', '.join(offered)}.")
        tool = offered[call.tool]
        result = await tool(**arguments_of(tool, call.arguments))
        return self._lines_of(result)

    def _lines_of(self, result: Any) -> list[Found]:
        """Return the result of a tool as lines with their evidence."""
        rows = result if isinstance(result, list) else [result]
        if all(isinstance(row, Passage) for row in rows):
            return self.of_passages(rows)
        return [line for row in rows for line in self._lines(row)]

    def _lines(self, row: object) -> Iterator[Found]:
        match row:
            case Found():
                yield row
            case EntityView():
                yield from _entity_lines(row, self._source)
            case GraphPath():
                yield from _path_lines(row, self._source)
            case ReportView():
                yield Found(f"{row.title}: {row.summary}")
                yield from (Found(one.summary, self._source(one)) for one in row.findings)
            case ListedReport():
                yield Found(f"{row.community}: {row.title}: {row.summary}")

    def of_passages(self, passages: Sequence[Passage]) -> list[Found]:
        """Return passages as evidence."""
        for passage in passages:
            self.known.setdefault(passage.chunk, passage)
        return [Found("", source) for source in self._sources(passages)]

    def _sources(self, passages: Sequence[Passage]) -> list[Source]:
        chunk = self.resources.search.chunk
        return [replace(source_of(chunk(row.chunk)), also=row.also) for row in passages]

    def _source(self, quote: Quote) -> Source:
        chunk = self.resources.search.chunk_at(quote.document, quote.start)
        place = ((chunk.id, chunk.start),)
        return Source(quote.document, quote.title, quote.quote, quote.start, place)

    # --- the end ---

    def result(self) -> ModeResult:
        """Return the evidence seen, then the rest of the first search, as the context of an
        answer.
        """
        search, best = self.resources.search, self.seen.best
        first = self._sources(self.first.passages)
        rest = [one for one in first if number_of(best, one.document, one.start, one.end) is None]
        every = [*best, *rest]
        names = dict.fromkeys(name for source in every for name, _ in source.chunks)
        made = f"{len(self.seen.results)} calls of tools, ended by {self.seen.ended}"
        return ModeResult(
            # Packed before merging: one long merged stretch would take the room of all others.
            context=AnswerContext(search.bounded(merged(packed(every, search.most))), self.notes),
            passages=[self.known.get(name) or search.passage(name) for name in names],
            reason=made if self.seen.ended else FIRST_ALONE,
            subquestions=self.seen.trail,
            reranking=self.first.trace,
        )


def _entity_lines(view: EntityView, source: Callable[[Quote], Source]) -> Iterator[Found]:
    """Yield what an entity is, then its relations and claims, each with a place that states it."""
    called = f", also {', '.join(alias.name for alias in view.aliases)}" if view.aliases else ""
    yield Found(f"{view.name} ({view.kind}{called}): {view.description}".rstrip(": "))
    for relation in view.relations:
        ends = (view.name, relation.other)
        first, second = ends if relation.direction == "out" else ends[::-1]
        for quote in relation.statements[:1]:
            yield Found(f"{first} -[{relation.predicate}]-> {second}", source(quote))
    for claim in view.claims:
        words = f"{view.name}, {claim.kind} ({claim.status}) {claim.period}".rstrip()
        yield Found(words, source(claim))


def _path_lines(path: GraphPath, source: Callable[[Quote], Source]) -> Iterator[Found]:
    """Yield a path, then its steps, each with the place that states it."""
    yield Found(f"Path: {' – '.join(path.entities)}")
    for one in path.steps:
        words = f"{one.source_name} -[{one.predicate}]-> {one.target_name}"
        yield from (Found(words, source(quote)) for quote in one.statements[:1])


AGENT = QueryMode("agent", agent_search, retrieve=passages_seen)
