"""MCP: the workspace's answers, entities, reports and sources as tools and resources of the Model Context Protocol.

Over stdio (`trellis mcp`) for one workspace, and in the service over streamable HTTP at /mcp/WORKSPACE. Each tool only
reads; what it gives is bounded, because a model reads it.
"""

import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from functools import partial
from importlib.metadata import version
from typing import Annotated, Any, TypeVar
from urllib.parse import quote, unquote

from mcp.server import MCPServer
from mcp.server.mcpserver.context import Context
from mcp.server.mcpserver.exceptions import ResourceError, ToolError
from mcp.server.mcpserver.resources import ResourceSecurity
from mcp.server.transport_security import TransportSecuritySettings
from mcp.types import CallToolResult, InputRequiredResult, Resource, ToolAnnotations
from pydantic import Field, ValidationError
from starlette.exceptions import HTTPException
from starlette.types import Receive, Scope, Send

from flows.question import AskOptions
from flows.service import reading
from flows.service.asking import Questions
from flows.service.workspaces import DEFAULT, Workspaces
from flows.session import Session
from prompts.engine.errors import EngineError
from storage.answer_records import Citation, Effort, Fallback
from storage.errors import NoGeneration, NotFound, TrellisError, did_you_mean
from storage.records import Record

T = TypeVar("T")

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


class ToolAnswer(Record):
    """An answer with what supports it: `fallback` is none (supported by the sources), partial (partly supported;
    excerpts always, which no model has read), ungrounded (no source supports it) or abstained (no answer)."""

    answer: str
    fallback: Fallback
    citations: tuple[Citation, ...]
    generation: int


class ToolStep(Record):
    """A relation, with one of the places that state it."""

    source: str
    predicate: str
    target: str
    stated: reading.Quote | None


class ToolReport(Record):
    """A report on a group of entities: with its id `reports` gives it in full."""

    id: str
    level: int
    title: str
    summary: str
    members: int


class ToolSource(Record):
    """A stretch of a document's text; `length` is that of the whole."""

    document: str
    title: str
    start: int
    end: int
    length: int
    text: str


def mcp_server(workspaces: Workspaces, name: str = DEFAULT, asking: Workspaces | Questions | None = None) -> MCPServer:
    """The tools and resources of a workspace; questions go to `asking`, which may count and limit them."""
    server = _Server(workspaces, name, asking or workspaces)
    for tool in (server.ask, server.retrieve, server.entity, server.paths, server.reports, server.source):
        server.add_tool(tool, annotations=READ_ONLY)
    resource = partial(server.resource, security=ANY_ID)
    resource("trellis://documents/{+document}", title="Document", mime_type="text/plain")(server.document)
    resource("trellis://reports/{report}", title="Report", mime_type="text/markdown")(server.report)
    return server


class McpEndpoint:
    """The same over streamable HTTP for all workspaces of a service, as an ASGI application at /mcp/{workspace}.

    Requests stand on their own: no session outlives one. Who may ask is not its business.
    """

    def __init__(self, workspaces: Workspaces, asking: Workspaces | Questions) -> None:
        self._servers = {name: mcp_server(workspaces, name, asking) for name in workspaces.names}
        for server in self._servers.values():  # hosts and origins are looked at before anything comes here
            unguarded = TransportSecuritySettings(enable_dns_rebinding_protection=False)
            server.streamable_http_app(json_response=True, stateless_http=True, transport_security=unguarded)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Requests are answered for the length of the block."""
        async with AsyncExitStack() as stack:
            for server in self._servers.values():
                await stack.enter_async_context(server.session_manager.run())
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] != "POST":  # no session, so no stream that a client could wait at
            raise HTTPException(405, headers={"allow": "POST"})
        name = scope["path_params"].get("workspace", DEFAULT)
        if name not in self._servers:
            raise NotFound(f"No workspace is called {name[:80]!r}.", f"There are: {', '.join(self._servers)}.")
        await self._servers[name].session_manager.handle_request(scope, receive, send)


class _Server(MCPServer):
    def __init__(self, workspaces: Workspaces, name: str, asking: Workspaces | Questions) -> None:
        super().__init__(
            "trellis", title="Trellis", instructions=INSTRUCTIONS, version=version("trellis-rag"), log_level="WARNING"
        )
        self._workspaces = workspaces
        self._workspace = name
        self._asking = asking

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Call a tool; arguments that it cannot take are told in a sentence that a model can act
        on.
        """
        schemas = {tool.name: tool.input_schema for tool in await self.list_tools()}
        if name not in schemas:
            near = did_you_mean(name, schemas)
            raise ToolError(f"There is no tool {name[:80]!r}. {near}The tools are {', '.join(schemas)}.")
        taken: dict[str, Any] = schemas[name].get("properties", {})
        if unknown := next((argument for argument in arguments if argument not in taken), None):
            near = did_you_mean(unknown, taken)
            raise ToolError(f"{name!r} takes no {unknown[:80]!r}. {near}It takes {', '.join(taken)}.")
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as error:
            if isinstance(error.__cause__, ValidationError):
                raise ToolError(_refused(name, taken, error.__cause__)) from error
            raise

    async def _read(self, read: Callable[[Session], T]) -> T:
        return await self._workspaces.read(self._workspace, read)

    async def ask(
        self,
        question: Annotated[str, Field(description="One question that stands on its own, in any language.")],
        mode: Annotated[str, Field(description="auto (default), or a mode's name such as local or global.")] = "auto",
        effort: Annotated[Effort | None, Field(description="low, medium or high.")] = None,
        documents: Annotated[list[str] | None, Field(description="Only these documents, by id.")] = None,
        response: Annotated[str, Field(description='The form of the answer, such as "a list".')] = "",
    ) -> ToolAnswer:
        """Answer a question from the documents, with the places that support each statement."""
        with _told(ToolError):
            only = None if documents is None else tuple(documents)
            options = AskOptions(mode=mode, effort=effort, documents=only, response=response)
            answer = await self._asking.ask(self._workspace, question, options)
        return ToolAnswer(
            answer=answer.answer, fallback=answer.fallback, generation=answer.generation,
            citations=answer.citations,
        )  # fmt: skip

    async def retrieve(
        self,
        question: Annotated[str, Field(description="What to look for.")],
        k: Annotated[int, Field(description="How many passages.", ge=1, le=50)] = 8,
        documents: Annotated[list[str] | None, Field(description="Only these documents, by id.")] = None,
    ) -> list[reading.Quote]:
        """The passages that bear most on a question, best first, without an answer."""
        with _told(ToolError):
            options = AskOptions(k=k, documents=None if documents is None else tuple(documents))
            passages = (await self._asking.retrieve(self._workspace, question, options)).passages
            names = {passage.chunk for passage in passages}
            chunks = await self._read(lambda session: session.generation.documents.chunks(ids=names))
        places = {chunk.id: chunk for chunk in chunks}
        return [
            reading.Quote(
                document=passage.document, title=passage.title, quote=passage.text,
                start=places[passage.chunk].start, end=places[passage.chunk].end,
            )
            for passage in passages
            if passage.chunk in places  # not in a generation that was published meanwhile
        ]  # fmt: skip

    async def entity(self, name: Annotated[str, Field(description="A name or alias.")]) -> list[reading.EntityView]:
        """What the knowledge graph holds on an entity: description, relations and claims, each with its source."""
        with _told(ToolError):
            view = await self._read(lambda session: reading.look_up(name, session.generation))
        return [
            entity.model_copy(update={"relations": entity.relations[:SHOWN], "claims": entity.claims[:SHOWN]})
            for entity in view.entities
        ]

    async def paths(
        self,
        start: Annotated[str, Field(description="The name of an entity.")],
        end: Annotated[str, Field(description="The name of another.")],
    ) -> list[list[ToolStep]]:
        """How two entities are connected: the shortest chains of relations between them, with their sources."""
        with _told(ToolError):
            ways = await self._read(lambda session: reading.paths_between(session, start, end))
        return [
            [
                ToolStep(
                    source=step.source_name,
                    predicate=step.predicate,
                    target=step.target_name,
                    stated=next(iter(step.statements), None),
                )
                for step in way.steps
            ]
            for way in ways.paths
        ]

    async def reports(
        self,
        report: Annotated[str | None, Field(description="A report's id, for it in full.")] = None,
        level: Annotated[int, Field(description="Of the list; 0 holds the broadest.", ge=0)] = 0,
    ) -> list[ToolReport] | reading.ReportView:
        """What the collection is about: reports on groups of entities, the most important first, or one in full."""
        with _told(ToolError):
            if report is not None:
                return await self._report(report)
            listed = await self._read(lambda session: reading.list_reports(session.generation))
        rows = [row for row in listed.values() if row.level == level][:SHOWN]
        shown = {"level", "title", "summary", "members"}
        return [ToolReport(**row.model_dump(include=shown), id=row.community) for row in rows]

    async def source(
        self,
        document: Annotated[str, Field(description="A document's id, as the other tools name it.")],
        start: Annotated[int, Field(description="The first character.", ge=0)] = 0,
        length: Annotated[int, Field(description="How many characters.", ge=1, le=20_000)] = WINDOW,
    ) -> ToolSource:
        """A document's text as it is stored, from an offset on."""
        with _told(ToolError):
            stored = await self._read(lambda session: session.generation.documents.document(document))
        end = min(start + length, len(stored.text))
        return ToolSource(
            document=stored.id, title=stored.title, start=start, end=max(start, end), length=len(stored.text),
            text=stored.text[start:end],
        )  # fmt: skip

    # --- resources ---------------------------------------------------------------------------------------------------

    async def list_resources(self) -> list[Resource]:
        """The first documents and the most important reports; the templates reach all."""
        try:
            documents = await self._read(lambda session: session.generation.documents.summaries())
            reports = await self._read(lambda session: reading.list_reports(session.generation))
        except NoGeneration:
            return []
        return [
            *(
                Resource(
                    uri=f"trellis://documents/{quote(row.id)}", name=row.id, title=row.title, mime_type="text/plain"
                )
                for row in documents[:LISTED]
            ),
            *(
                Resource(uri=f"trellis://reports/{row.community}", name=row.title, mime_type="text/markdown")
                for row in list(reports.values())[:LISTED]
            ),
        ]

    async def document(self, document: str) -> str:
        """The stored text of a document."""
        with _told(ResourceError):
            return (await self._read(lambda session: session.generation.documents.document(unquote(document)))).text

    async def report(self, report: str) -> str:
        """A report in full, as Markdown."""
        with _told(ResourceError):
            view = await self._report(report)
        findings = (f"## {finding.summary}\n\n{finding.explanation}\n\n> {finding.quote}" for finding in view.findings)
        return "\n\n".join([f"# {view.title}", view.summary, *findings])

    async def _report(self, name: str) -> reading.ReportView:
        return await self._read(
            lambda session: reading.report_view(name, reading.list_reports(session.generation), session.generation)
        )


def _refused(tool: str, taken: Mapping[str, Any], error: ValidationError) -> str:
    """Which argument a tool cannot take, what was given, and what it may be."""
    first = error.errors(include_url=False)[0]
    name = str(first["loc"][0])
    schema = taken.get(name, {})
    may_be = f"It may be {_allowed(schema)}. {schema.get('description', '')}".strip()
    if first["type"] == "missing":
        return f"{tool!r} needs {name!r}. {may_be}"
    return f"{name!r} of {tool!r} cannot be {json.dumps(first['input'], default=str)[:80]}. {may_be}"


_KINDS = {"string": "a text", "boolean": "true or false", "null": "left out", "object": "an object"}


def _allowed(schema: Mapping[str, Any]) -> str:
    """What a JSON schema of ours allows, in words."""
    if "anyOf" in schema:
        return " or ".join(map(_allowed, schema["anyOf"]))
    if "enum" in schema:
        return f"one of {', '.join(map(str, schema['enum']))}"
    if schema.get("type") == "array":
        return f"a list, each entry {_allowed(schema.get('items', {}))}"
    if schema.get("type") == "integer":
        least, most = schema.get("minimum"), schema.get("maximum")
        return f"a whole number from {least}" + (f" to {most}" if most is not None else "")
    return _KINDS.get(schema.get("type", ""), "anything")


@contextmanager
def _told(kind: type[ToolError] | type[ResourceError]) -> Iterator[None]:
    """Errors that are raised on purpose, with their remedy, as the protocol tells them."""
    try:
        yield
    except (TrellisError, EngineError) as error:
        raise kind(f"{error.message} {error.remedy}".strip()) from error
