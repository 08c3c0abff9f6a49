"""The service's own interface under /api/v1: questions, documents, index runs, the graph, reports
and generations.
"""

import asyncio
import unicodedata
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import StreamingResponse
from pydantic_core import to_json

from flows.operations.diff import Diff, compare
from flows.operations.forget import ForgetReport, forget
from flows.operations.retry import Letter, letters_of
from flows.service import reading
from flows.service.access import Caller, NotAFile, NotAllowed, Taken, needs
from flows.service.asking import (
    AskRequest,
    Event,
    RetrieveRequest,
    Service,
    note_question,
    service_of,
)
from flows.service.runs import IndexRun, RunRequest
from flows.service.workspaces import DEFAULT
from flows.session import Session
from storage.answer_records import Answer, Retrieval
from storage.errors import NotFound
from storage.graph_records import Community
from storage.run_records import QuestionForecast, UsageRow
from storage.uploads import store_upload, upload_folder
from storage.workspace import GenerationInfo
from tasks.load.discover import is_remote

T = TypeVar("T")
router = APIRouter(prefix="/api/v1", dependencies=[Depends(needs("ask"))])
Here = Annotated[Service, Depends(service_of)]
EDIT = [Depends(needs("edit"))]
USUAL = RunRequest()
NOT_BUFFERED = {"cache-control": "no-store", "x-accel-buffering": "no"}


@dataclass(frozen=True)
class GenerationPlace:
    """A workspace and one of its generations; None is the current one."""

    service: Here
    workspace: Annotated[str, Query()] = DEFAULT
    as_of: Annotated[int | None, Query(ge=1)] = None

    async def read(self, reading: Callable[[Session], T]) -> T:
        """Call a function with a session of the generation."""
        return await self.service.workspaces.read(self.workspace, reading, self.as_of)


Place = Annotated[GenerationPlace, Depends()]
Limit = Annotated[int, Query(ge=1, le=1000)]
Level = Annotated[int | None, Query(ge=0)]


# --- questions ---


class AskBody(AskRequest):
    """A question; with `stream` the answer arrives as server-sent events."""

    stream: bool = False


@router.post("/ask", response_model=Answer, tags=["questions"])
async def ask(body: AskBody, request: Request, service: Here) -> Answer | StreamingResponse:
    """Answer a question with sources. With `stream`: the events `step`, `text` and `withdrawn`,
    finally `answer` (the whole record) or `error`.
    """
    note_question(request, service.settings, body)
    if body.stream:
        lines = event_lines(service.questions.events(body))
        return StreamingResponse(lines, media_type="text/event-stream", headers=NOT_BUFFERED)
    return await service.questions.answer(body)


@router.post("/ask/forecast", tags=["questions"])
async def forecast(body: AskRequest, request: Request, service: Here) -> QuestionForecast:
    """Say what a question in mode `lazy` takes at most: tests, calls, tokens; nothing is asked."""
    note_question(request, service.settings, body)
    return await service.questions.forecast(body)


async def event_lines(events: AsyncIterator[Event]) -> AsyncIterator[str]:
    """Format events as a server-sent stream."""
    async for event in events:
        yield f"event: {event.event}\ndata: {to_json(event.data).decode()}\n\n"


@router.post("/retrieve", tags=["questions"])
async def retrieve(body: RetrieveRequest, request: Request, service: Here) -> Retrieval:
    """Find the best passages for a question, without an answer."""
    note_question(request, service.settings, body)
    return await service.questions.retrieve(
        body.workspace, body.question, body.options(), body.as_of
    )


# --- documents ---


@router.get("/documents", tags=["documents"])
async def documents(
    at: Place, q: str = "", limit: Limit = 100, offset: Annotated[int, Query(ge=0)] = 0
) -> reading.DocumentPage:
    """List the documents whose id or title contains `q`."""
    return await at.read(
        lambda session: reading.list_documents(session.generation, q, limit, offset)
    )


@router.get("/documents/{document:path}", tags=["documents"])
async def document(document: str, at: Place) -> reading.SourceText:
    """Return the stored text of a document and its passages; offsets count code points."""
    return await at.read(lambda session: reading.source_text(session.generation, document))


@router.put("/documents/{document:path}", tags=["documents"], status_code=202, dependencies=EDIT)
async def upload(
    document: str, request: Request, service: Here, workspace: str = DEFAULT, index: bool = True
) -> IndexRun | None:
    """Upload a file: the body is its content, the path its name. Then start an index run, unless
    `index=false`. 409 if a document from another source has this name.
    """
    kind = request.headers.get("content-type", "")
    if kind.lower().startswith("multipart/"):
        raise NotAFile(
            f"A body of the type {kind[:40]!r} is no file.",
            "Send the file itself: curl -T FILE ADDRESS.",
        )
    folder = service.workspaces.folder(workspace)
    with suppress(NotFound):  # a new document, or the first one
        await service.workspaces.read(
            workspace, lambda session: _check_free(document, folder, session)
        )
    await store_upload(folder, document, request.stream())
    return start_run(service, workspace, USUAL) if index else None


def _check_free(document: str, folder: Path, session: Session) -> None:
    """Raise Taken if the upload would replace the text that a document has from another source."""
    name, uploads = unicodedata.normalize("NFC", document), str(upload_folder(folder))
    (stored,) = session.generation.documents.documents([name])
    for part in stored.parts:
        if part.kind == "text" and part.source != uploads and Path(part.source).exists():
            raise Taken(
                f"{document!r} is the name of a document already, from {part.path}.",
                "Give the upload another name, or change the file there.",
            )


@router.delete("/documents/{document:path}", tags=["documents"], dependencies=EDIT)
async def forget_document(document: str, service: Here, workspace: str = DEFAULT) -> ForgetReport:
    """Remove a document and everything made from it, in older generations and uploads too, and
    block it from later index runs. The name of an uploaded file means all documents from it, and
    also a file that was never indexed.
    """
    report = await service.workspaces.change(workspace, lambda runtime: forget([document], runtime))
    if not report.held:
        return report
    # The service's own session held an old generation. It has moved on, unless a question uses it.
    stored = service.workspaces.workspace(workspace)
    await asyncio.to_thread(stored.clean)
    return report.model_copy(update={"held": tuple(stored.retired())})


# --- index runs ---


def usual_sources(service: Service, workspace: str) -> tuple[str, ...]:
    """Return the default sources: the uploads and, for the default workspace, those of the service
    itself.
    """
    uploads = upload_folder(service.workspaces.folder(workspace))
    given = service.sources if workspace == DEFAULT else ()
    return (*given, *([str(uploads)] if uploads.is_dir() else []))


def start_run(service: Service, workspace: str, wanted: RunRequest) -> IndexRun:
    """Start an index run on the requested sources, or on the usual ones."""
    sources = wanted.sources or usual_sources(service, workspace)
    folder = service.workspaces.folder(workspace)
    return service.runs.start(workspace, folder, wanted.model_copy(update={"sources": sources}))


@router.post("/index-runs", tags=["index runs"], status_code=202)
async def index(
    service: Here,
    caller: Annotated[Caller, Depends(needs("edit"))],
    wanted: RunRequest = USUAL,
    workspace: str = DEFAULT,
) -> IndexRun:
    """Update a workspace from its uploads and usual sources. Only the role `admin` may name other
    sources: files and folders of the server. Addresses, and lists of them, must be sources of
    `trellis serve`: nobody can make the service fetch another address.
    """
    if wanted.sources and not caller.may("admin"):
        raise NotAllowed(
            "Sources by path need the role 'admin'.", "Upload files instead, or use another key."
        )
    for source in wanted.sources:
        if is_remote(source) and source not in service.sources:
            raise NotAllowed(
                "Addresses, and lists of them, are indexed only if the service was started with "
                "them.",
                "Start it so: trellis serve ADDRESS.",
            )
    return start_run(service, workspace, wanted)


@router.get("/index-runs", tags=["index runs"])
async def index_runs(service: Here) -> list[IndexRun]:
    """List the latest runs that this service started, newest first."""
    return service.runs.list()


@router.get("/index-runs/{run}", tags=["index runs"])
async def index_run(run: str, service: Here) -> IndexRun:
    """Return the state of a run: its step and progress, or its result."""
    return service.runs.get(run)


@router.delete("/index-runs/{run}", tags=["index runs"], dependencies=EDIT)
async def cancel_run(run: str, service: Here) -> IndexRun:
    """Cancel a run and discard what it has not published."""
    return await service.runs.cancel(run)


# --- the graph and its reports ---


@router.get("/entities", tags=["graph"])
async def entities(at: Place, q: str = "", limit: Limit = 50) -> reading.EntityPage:
    """List the entities with a name that contains `q`, the most mentioned first."""
    return await at.read(lambda session: reading.search_entities(session.generation, q, limit))


@router.get("/entity", tags=["graph"])
async def entity(name: str, at: Place) -> reading.GraphView:
    """Return the entities of a name with their relations and claims, quoted from the sources."""
    return await at.read(lambda session: reading.look_up(name, session.generation))


@router.get("/paths", tags=["graph"])
async def paths(
    first: str, second: str, at: Place, k: Annotated[int, Query(ge=1, le=20)] = 3
) -> reading.Paths:
    """Find paths between two entities (by names or ids); each step is quoted from the sources."""
    return await at.read(lambda session: reading.paths_between(session, first, second, k))


@router.get("/communities", tags=["graph"])
async def communities(at: Place, level: Level = None) -> list[Community]:
    """List all communities, or those of a level (0 is the broadest)."""
    return await at.read(lambda session: session.generation.communities.communities(level))


@router.get("/reports", tags=["graph"])
async def reports(at: Place, level: Level = None) -> list[reading.ListedReport]:
    """List the reports, the broadest level first, and in each level the most important first."""
    listed = await at.read(lambda session: reading.list_reports(session.generation))
    return [report for report in listed.values() if level in {None, report.level}]


@router.get("/reports/{community}", tags=["graph"])
async def report(community: str, at: Place) -> reading.ReportView:
    """Return a report with quoted findings, the reports above and below it, and its entities."""
    return await at.read(lambda session: reading.report_view(community, session.generation))


@router.get("/schema", tags=["graph"])
async def schema(at: Place) -> reading.SchemaView:
    """Return the types of facts with how many there are of each, and what was left out and why."""
    return await at.read(lambda session: reading.schema_view(session.generation))


# --- the workspace ---


@router.get("/workspaces", tags=["workspace"])
async def workspaces(service: Here) -> list[str]:
    """List the names of the workspaces of this service."""
    return service.workspaces.names


@router.get("/generations", tags=["workspace"])
def generations(service: Here, workspace: str = DEFAULT) -> list[GenerationInfo]:
    """List the kept generations, oldest first."""
    return service.workspaces.workspace(workspace).generations()


@router.get("/diff", tags=["workspace"])
def diff(
    service: Here,
    before: Annotated[int, Query(ge=1)],
    after: Annotated[int | None, Query(ge=1)] = None,
    workspace: str = DEFAULT,
) -> Diff:
    """Compare two generations; the default of `after` is the current one."""
    return compare(service.workspaces.workspace(workspace), before, after)


@router.get("/dead-letters", tags=["workspace"])
async def dead_letters(at: Place) -> list[Letter]:
    """List the items that failed while the generation was built, with remedies."""
    return list(await at.read(lambda session: letters_of(session.generation)))


@router.get("/usage", tags=["workspace"])
async def usage(at: Place) -> list[UsageRow]:
    """Return the model calls that built the generation, by step and model."""
    return await at.read(lambda session: session.generation.meta.usage())


@router.get("/status", tags=["workspace"])
def status(service: Here, workspace: str = DEFAULT) -> reading.Status:
    """Return the content of the workspace, its size on disk, its settings and its latest runs."""
    return reading.workspace_status(service.workspaces.runtime(workspace, reading=True))


@router.get("/settings", tags=["workspace"])
def settings(service: Here, workspace: str = DEFAULT) -> dict[str, Any]:
    """Return the settings in force, without keys."""
    return status(service, workspace).settings
