"""The Model Context Protocol (MCP): a workspace as read-only tools, its documents and reports also
as resources.

`trellis mcp` serves one workspace over stdio, `trellis serve` each at /mcp/WORKSPACE over HTTP. The
size of results is limited, because a model reads them.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from importlib.metadata import version
from typing import Annotated, TypeVar
from urllib.parse import quote, unquote

from fastapi import APIRouter, Depends, HTTPException, Request
from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ResourceError, ToolError
from mcp.server.mcpserver.resources import ResourceSecurity
from mcp.server.transport_security import TransportSecuritySettings
from mcp.types import Resource, ToolAnnotations
from pydantic import Field
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from flows.question import AskOptions
from flows.service import reading
from flows.service.access import needs, within_filter
from flows.service.asking import MOST_BUDGET, Questions
from flows.service.workspaces import DEFAULT, UnknownWorkspace, Workspaces
from flows.session import Session
from flows.tools import WorkspaceTools
from prompts.engine.errors import EngineError
from storage.answer_records import Citation, Effort, Fallback, Passage
from storage.errors import NoGeneration, TrellisError
from storage.records import Record

T = TypeVar("T")

INSTRUCTIONS = (
    "Answers from a collection of documents, each with the places that support it. `ask` answers a "
    "question; `retrieve` gives passages without an answer, `search_words` those that hold given "
    "words; `entity` and `paths` tell what the knowledge graph holds; `reports` sum up the "
    "collection by groups of entities; `schema` tells over which types of facts mode `facts` "
    "computes; `source` shows a document's text at the offsets that the others name."
)
READ_ONLY = ToolAnnotations(read_only_hint=True, open_world_hint=False)
LISTED = 200  # resources of a kind
WINDOW = 4_000  # characters of a source
# Document ids may contain anything: they are never used as paths.
ANY_ID = ResourceSecurity(exempt_params={"document", "report"})


class ToolAnswer(Record):
    """An answer with what supports it.

    `fallback` is none (supported by the sources), partial (partly supported; excerpts always,
    which no model has read), ungrounded (no source supports it) or abstained (no answer).
    """

    answer: str
    fallback: Fallback
    citations: tuple[Citation, ...]
    generation: int


class ToolSource(Record):
    """A stretch of a document's text; `length` is that of the whole."""

    document: str
    title: str
    start: int
    end: int
    length: int
    text: str


class _Server(MCPServer):
    """A server that lists the resources of the current generation."""

    listed: Callable[[], Awaitable[list[Resource]]]

    async def list_resources(self) -> list[Resource]:
        """List the first documents and the most important reports; the templates reach all."""
        try:
            return await self.listed()
        except NoGeneration:
            return []


def mcp_server(workspaces: Workspaces, questions: Questions, name: str = DEFAULT) -> MCPServer:
    """Build the server of one workspace with its tools and resources."""
    server = _Server(
        "trellis",
        title="Trellis",
        instructions=INSTRUCTIONS,
        version=version("trellis-rag"),
        log_level="WARNING",
    )

    async def read(function: Callable[[Session], T]) -> T:
        with _errors_shown():
            return await workspaces.read(name, function)

    @server.tool(annotations=READ_ONLY)
    async def ask(
        question: Annotated[str, Field(description="One question that stands on its own.")],
        mode: Annotated[
            str, Field(description="auto, or a mode such as local or global.")
        ] = "auto",
        effort: Annotated[Effort | None, Field(description="low, medium or high.")] = None,
        documents: Annotated[list[str] | None, Field(description="Only these, by id.")] = None,
        response: Annotated[str, Field(description="The form, such as 'a list'.")] = "",
        budget: Annotated[
            int | None,
            Field(
                description="Of mode lazy: how many passages to test (100, 500 or 1500).",
                ge=1,
                le=MOST_BUDGET,
            ),
        ] = None,
    ) -> ToolAnswer:
        """Answer a question from the documents, with the places that support each statement."""
        only = None if documents is None else tuple(documents)
        options = AskOptions(
            mode=mode, effort=effort, documents=only, response=response, budget=budget
        )
        with _errors_shown():
            answer = await questions.ask(name, question, options)
        return ToolAnswer(**answer.model_dump(include={*ToolAnswer.model_fields}))

    @server.tool(annotations=READ_ONLY)
    async def retrieve(
        question: Annotated[str, Field(description="What to look for.")],
        k: Annotated[int, Field(description="How many passages.", ge=1, le=50)] = 8,
        documents: Annotated[list[str] | None, Field(description="Only these, by id.")] = None,
    ) -> list[Passage]:
        """Find the passages that bear most on a question, best first, without an answer."""
        options = AskOptions(k=k, documents=None if documents is None else tuple(documents))
        with _errors_shown():
            return list((await questions.retrieve(name, question, options)).passages)

    for tool in WorkspaceTools(read).listed:
        server.tool(annotations=READ_ONLY)(tool)

    @server.tool(annotations=READ_ONLY)
    async def source(
        document: Annotated[str, Field(description="A document's id, as other tools name it.")],
        start: Annotated[int, Field(description="The first character.", ge=0)] = 0,
        length: Annotated[int, Field(description="How many characters.", ge=1, le=20_000)] = WINDOW,
    ) -> ToolSource:
        """Give a document's text as it is stored, from an offset on."""
        stored = await read(lambda session: session.generation.documents.document(document))
        end = max(start, min(start + length, len(stored.text)))
        return ToolSource(
            document=stored.id,
            title=stored.title,
            start=start,
            end=end,
            length=len(stored.text),
            text=stored.text[start:end],
        )

    _add_resources(server, workspaces, name)
    return server


def _add_resources(server: _Server, workspaces: Workspaces, name: str) -> None:
    @server.resource("trellis://documents/{+document}", mime_type="text/plain", security=ANY_ID)
    async def document(document: str) -> str:
        """The stored text of a document."""
        with _errors_shown(ResourceError):
            return await workspaces.read(
                name, lambda session: session.generation.documents.document(unquote(document)).text
            )

    @server.resource("trellis://reports/{report}", mime_type="text/markdown", security=ANY_ID)
    async def report(report: str) -> str:
        """A report in full, as Markdown."""
        with _errors_shown(ResourceError):
            view = await workspaces.read(
                name, lambda session: reading.report_view(report, session.generation)
            )
        rows = (f"## {row.summary}\n\n{row.explanation}\n\n> {row.quote}" for row in view.findings)
        return "\n\n".join([f"# {view.title}", view.summary, *rows])

    server.listed = lambda: workspaces.read(name, _resources)


def _resources(session: Session) -> list[Resource]:
    documents = [
        Resource(
            uri=f"trellis://documents/{quote(row.id)}",
            name=row.id,
            title=row.title,
            mime_type="text/plain",
        )
        for row in session.generation.documents.summaries()[:LISTED]
    ]
    reports = [
        Resource(
            uri=f"trellis://reports/{row.community}", name=row.title, mime_type="text/markdown"
        )
        for row in [*reading.list_reports(session.generation).values()][:LISTED]
    ]
    return documents + reports


@contextmanager
def _errors_shown(kind: type[ToolError] | type[ResourceError] = ToolError) -> Iterator[None]:
    """Convert our own errors to the protocol's, with their remedy."""
    try:
        yield
    except (TrellisError, EngineError) as error:
        raise kind(f"{error.message} {error.remedy}".strip()) from error


@asynccontextmanager
async def http_servers(
    workspaces: Workspaces, questions: Questions
) -> AsyncIterator[dict[str, MCPServer]]:
    """Run a server for each workspace over streamable HTTP, without sessions."""
    servers = {name: mcp_server(workspaces, questions, name) for name in workspaces.names}
    # `Guard` has already checked host and origin.
    unguarded = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    async with AsyncExitStack() as stack:
        for server in servers.values():
            server.streamable_http_app(
                json_response=True, stateless_http=True, transport_security=unguarded
            )
            await stack.enter_async_context(server.session_manager.run())
        yield servers


class McpResponse(Response):
    """The response of an MCP server to a request."""

    def __init__(self, server: MCPServer) -> None:
        super().__init__()
        self._server = server

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._server.session_manager.handle_request(scope, receive, send)


METHODS = ["GET", "POST", "DELETE"]
router = APIRouter(dependencies=[Depends(needs("ask"))], tags=["mcp"])


@router.api_route("/mcp", methods=METHODS, response_model=None, include_in_schema=False)
@router.api_route("/mcp/{workspace}", methods=METHODS, response_model=None, include_in_schema=False)
@within_filter
async def mcp(request: Request, workspace: str = DEFAULT) -> McpResponse:
    """The Model Context Protocol over streamable HTTP."""
    if request.method != "POST":  # Without sessions there is no stream to wait for.
        raise HTTPException(405, headers={"allow": "POST"})
    servers: dict[str, MCPServer] = request.app.state.mcp
    if workspace not in servers:
        raise UnknownWorkspace(workspace, list(servers))
    return McpResponse(servers[workspace])
