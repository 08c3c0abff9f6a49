"""MCP: the workspace's answers, entities, reports and sources as tools and resources of the Model Context Protocol.

Over stdio (`trellis mcp`) for one workspace, and in the service over streamable HTTP at /mcp/WORKSPACE. Each tool only
reads; what it gives is bounded, because a model reads it.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from functools import partial
from typing import Annotated
from urllib.parse import quote, unquote

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ResourceError, ToolError
from mcp.server.mcpserver.resources import ResourceSecurity
from mcp_types import Resource, ToolAnnotations
from pydantic import Field

from flows.cli.browse import list_reports, look_up, report_view
from flows.operations.changes import entities_named
from flows.query import answer_question, retrieve_passages
from flows.question import AskOptions
from flows.session import Session
from prompts.engine.errors import EngineError
from storage.answer_records import Effort, Fallback
from storage.errors import TrellisError
from storage.graph_records import Relation
from storage.records import Record
from tasks.traverse.plan import shortest_paths

# The session of a workspace for the length of a block.
UseSession = Callable[[], AbstractAsyncContextManager[Session]]

INSTRUCTIONS = (
    "Answers from a collection of documents, each with the places that support it. `ask` answers a question; "
    "`retrieve` gives passages without an answer; `entity` and `paths` tell what the knowledge graph holds; `reports` "
    "sum up the collection by groups of entities; `source` shows a document's text at the offsets that the others name."
)
READ_ONLY = ToolAnnotations(read_only_hint=True, open_world_hint=False)
LISTED = 200  # resources of a kind
SHOWN = 25  # relations, claims, reports
WINDOW = 4_000  # characters of a source
# An id of a document is never used as the name of a file.
ANY_ID = ResourceSecurity(exempt_params={"document", "report"})


class Place(Record):
    """A place in a document, in characters of its text, with what stands there."""

    document: str
    title: str
    start: int
    end: int
    quote: str
    page: int | None = None


class CitedPlace(Place):
    """What supports the statements that bear its marker."""

    marker: str


class ToolAnswer(Record):
    """An answer with what supports it: `fallback` is none where all of it is supported, else as an `Answer` has it."""

    answer: str
    fallback: Fallback
    citations: tuple[CitedPlace, ...]
    generation: int


class ToolRelation(Record):
    """A relation, with one of the places that state it."""

    source: str
    predicate: str
    target: str
    stated: Place | None


class ToolEntity(Record):
    """What the graph knows of an entity; `more` counts the relations and claims that are left out."""

    id: str
    name: str
    kind: str
    description: str
    aliases: tuple[str, ...]
    relations: tuple[ToolRelation, ...]
    claims: tuple[str, ...]
    more: int


class ToolReport(Record):
    """A report on a group of entities: with its id `reports` gives it in full."""

    id: str
    level: int
    title: str
    summary: str
    members: int
    findings: tuple[str, ...] = ()
    places: tuple[Place, ...] = ()
    below: tuple[str, ...] = ()


class ToolSource(Record):
    """A stretch of a document's text; `length` is that of the whole."""

    document: str
    title: str
    start: int
    end: int
    length: int
    text: str


def mcp_server(use: UseSession, version: str) -> MCPServer:
    """The tools and resources over the sessions of one workspace."""
    server = _Server(use, version)
    for tool in (server.ask, server.retrieve, server.entity, server.paths, server.reports, server.source):
        server.add_tool(tool, annotations=READ_ONLY)
    resource = partial(server.resource, security=ANY_ID)
    resource("trellis://documents/{+document}", title="Document", mime_type="text/plain")(server.document)
    resource("trellis://reports/{report}", title="Report", mime_type="text/markdown")(server.report)
    return server


class _Server(MCPServer):
    def __init__(self, use: UseSession, version: str) -> None:
        super().__init__("trellis", title="Trellis", instructions=INSTRUCTIONS, version=version, log_level="WARNING")
        self._use = use

    async def ask(
        self,
        question: Annotated[str, Field(description="One question that stands on its own, in any language.")],
        mode: Annotated[str, Field(description="auto (default), or a mode's name such as local or global.")] = "auto",
        effort: Annotated[Effort | None, Field(description="low, medium or high.")] = None,
        documents: Annotated[list[str] | None, Field(description="Only these documents, by id.")] = None,
        response: Annotated[str, Field(description='The form of the answer, such as "a list".')] = "",
    ) -> ToolAnswer:
        """Answer a question from the documents, with the places that support each statement."""
        async with self._use() as session:
            with _told(ToolError):
                only = None if documents is None else tuple(documents)
                options = AskOptions(mode=mode, effort=effort, documents=only, response=response)
                answer = await answer_question(question, options, session)
        cited = (CitedPlace(**citation.model_dump(include={*CitedPlace.model_fields})) for citation in answer.citations)
        return ToolAnswer(
            answer=answer.answer, fallback=answer.fallback, citations=tuple(cited), generation=answer.generation
        )

    async def retrieve(
        self,
        question: Annotated[str, Field(description="What to look for.")],
        k: Annotated[int, Field(description="How many passages.", ge=1, le=50)] = 8,
        documents: Annotated[list[str] | None, Field(description="Only these documents, by id.")] = None,
    ) -> list[Place]:
        """The passages that bear most on a question, best first, without an answer."""
        async with self._use() as session:
            with _told(ToolError):
                options = AskOptions(k=k, documents=None if documents is None else tuple(documents))
                found = await retrieve_passages(question, options, session)
            chunks = {passage.chunk: session.index.chunk(passage.chunk) for passage in found.passages}
        return [
            Place(
                document=passage.document, title=passage.title, quote=passage.text, start=chunks[passage.chunk].start,
                end=chunks[passage.chunk].end,
            )
            for passage in found.passages
        ]  # fmt: skip

    async def entity(self, name: Annotated[str, Field(description="A name or alias.")]) -> list[ToolEntity]:
        """What the knowledge graph holds on an entity: description, relations and claims, each with its source."""
        async with self._use() as session:
            with _told(ToolError):
                view = look_up(name, session.generation)
        return [
            ToolEntity(
                id=entity.id, name=entity.name, kind=entity.kind, description=entity.description,
                aliases=tuple(alias.name for alias in entity.aliases),
                relations=tuple(
                    ToolRelation(
                        source=entity.name if relation.direction == "out" else relation.other,
                        predicate=relation.predicate,
                        target=relation.other if relation.direction == "out" else entity.name,
                        stated=Place.model_validate(dict(relation.statements[0])) if relation.statements else None,
                    )
                    for relation in entity.relations[:SHOWN]
                ),
                claims=tuple(claim.description for claim in entity.claims[:SHOWN]),
                more=max(len(entity.relations) - SHOWN, 0) + max(len(entity.claims) - SHOWN, 0),
            )
            for entity in view.entities
        ]  # fmt: skip

    async def paths(
        self,
        start: Annotated[str, Field(description="The name of an entity.")],
        end: Annotated[str, Field(description="The name of another.")],
    ) -> list[list[ToolRelation]]:
        """How two entities are connected: the shortest chains of relations between them, with their sources."""
        async with self._use() as session:
            with _told(ToolError):
                return _paths(session, start, end)

    async def reports(
        self,
        report: Annotated[str | None, Field(description="A report's id, for it in full.")] = None,
        level: Annotated[int, Field(description="Of the list; 0 holds the broadest.", ge=0)] = 0,
    ) -> list[ToolReport]:
        """What the collection is about: reports on groups of entities, the most important first, or one in full."""
        async with self._use() as session:
            listed = list_reports(session.generation)
            if report is None:
                rows = [row for row in listed.values() if row.level == level][:SHOWN]
                return [
                    ToolReport(
                        id=row.community, level=row.level, title=row.title, summary=row.summary, members=row.members
                    )
                    for row in rows
                ]
            with _told(ToolError):
                view = report_view(report, listed, session.generation)
        places = (place for finding in view.findings for place in (finding, *finding.others))
        return [
            ToolReport(
                id=view.community, level=view.level, title=view.title, summary=view.summary, members=len(view.members),
                findings=tuple(f"{finding.summary}: {finding.explanation}" for finding in view.findings),
                places=tuple(Place(**place.model_dump(include={*Place.model_fields})) for place in places),
                below=tuple(child.community for child in view.children),
            )
        ]  # fmt: skip

    async def source(
        self,
        document: Annotated[str, Field(description="A document's id, as the other tools name it.")],
        start: Annotated[int, Field(description="The first character.", ge=0)] = 0,
        length: Annotated[int, Field(description="How many characters.", ge=1, le=20_000)] = WINDOW,
    ) -> ToolSource:
        """A document's text as it is stored, from an offset on."""
        async with self._use() as session:
            with _told(ToolError):
                stored = session.generation.documents.document(document)
        end = min(start + length, len(stored.text))
        return ToolSource(
            document=stored.id, title=stored.title, start=start, end=max(start, end), length=len(stored.text),
            text=stored.text[start:end],
        )  # fmt: skip

    # --- resources ---------------------------------------------------------------------------------------------------

    async def list_resources(self) -> list[Resource]:
        """The first documents and the most important reports; the templates reach all."""
        async with self._use() as session:
            titles = {chunk.document: chunk.title for chunk in session.index.chunks}
            documents = [
                Resource(
                    uri=f"trellis://documents/{quote(name)}", name=name, title=titles.get(name), mime_type="text/plain"
                )
                for name in session.generation.documents.ids()[:LISTED]
            ]
            listed = list(list_reports(session.generation).values())[:LISTED]
        return documents + [
            Resource(uri=f"trellis://reports/{row.community}", name=row.title, mime_type="text/markdown")
            for row in listed
        ]

    async def document(self, document: str) -> str:
        """The stored text of a document."""
        async with self._use() as session:
            with _told(ResourceError):
                return session.generation.documents.document(unquote(document)).text

    async def report(self, report: str) -> str:
        """A report in full, as Markdown."""
        async with self._use() as session:
            with _told(ResourceError):
                view = report_view(report, list_reports(session.generation), session.generation)
        findings = (f"## {finding.summary}\n\n{finding.explanation}\n\n> {finding.quote}" for finding in view.findings)
        return "\n\n".join([f"# {view.title}", view.summary, *findings])


def _paths(session: Session, start: str, end: str) -> list[list[ToolRelation]]:
    facts, aliases = session.graph.facts, session.generation.graph.aliases()
    entities = list(facts.entities.values())
    first, last = ([entity.id for entity in entities_named(name, entities, aliases)] for name in (start, end))

    def stated(relation: Relation) -> Place | None:
        for place in facts.places.get(relation.id, ())[:1]:
            chunk = session.index.chunk(place.chunk)
            text = session.generation.documents.document(chunk.document).text
            return Place(
                document=chunk.document, title=chunk.title, start=place.start, end=place.end,
                quote=text[place.start : place.end],
            )  # fmt: skip
        return None

    return [
        [
            ToolRelation(
                source=facts.entities[relation.source].name, predicate=relation.predicate,
                target=facts.entities[relation.target].name, stated=stated(relation),
            )
            for relation in chain
        ]
        for chain in shortest_paths(facts, first, last)
    ]  # fmt: skip


@contextmanager
def _told(kind: type[ToolError] | type[ResourceError]) -> Iterator[None]:
    """Errors that are raised on purpose, with their remedy, as the protocol tells them."""
    try:
        yield
    except (TrellisError, EngineError) as error:
        raise kind(f"{error.message} {error.remedy}".strip()) from error
