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

from flows.operations.diff import Diff, compare, difference
from flows.operations.forget import ForgetReport, forget, from_uploads
from flows.operations.retry import Letter, letters_of
from flows.service import reading
from flows.service.access import (
    CALLER,
    Caller,
    NotAFile,
    NotAllowed,
    Taken,
    needs,
    within_filter,
)
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
from storage.errors import NoGeneration, NotFound, NothingToRead
from storage.graph_records import Community
from storage.layout import Layout
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
@within_filter
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
@within_filter
async def forecast(body: AskRequest, request: Request, service: Here) -> QuestionForecast:
    """Say what a question in mode `lazy` takes at most: tests, calls, tokens; nothing is asked."""
    note_question(request, service.settings, body)
    return await service.questions.forecast(body)


async def event_lines(events: AsyncIterator[Event]) -> AsyncIterator[str]:
    """Format events as a server-sent stream."""
    async for event in events:
        yield f"event: {event.event}\ndata: {to_json(event.data).decode()}\n\n"


@router.post("/retrieve", tags=["questions"])
@within_filter
async def retrieve(body: RetrieveRequest, request: Request, service: Here) -> Retrieval:
    """Find the best passages for a question, without an answer."""
    note_question(request, service.settings, body)
    return await service.questions.retrieve(
        body.workspace, body.question, body.options(), body.as_of
    )


# --- documents ---


@router.get("/documents", tags=["documents"])
@within_filter
async def documents(
    at: Place, q: str = "", limit: Limit = 100, offset: Annotated[int, Query(ge=0)] = 0
) -> reading.DocumentPage:
    """List the documents whose id or title contains `q`."""
    return await at.read(
        lambda session: reading.list_documents(session.generation, q, limit, offset)
    )


@router.get("/documents/{document:path}", tags=["documents"])
@within_filter
async def document(document: str, at: Place) -> reading.SourceText:
    """Return the stored text of a document and its passages; offsets count code points."""
    return await at.read(lambda session: reading.source_text(session.generation, document))


@router.put("/documents/{document:path}", tags=["documents"], status_code=202, dependencies=EDIT)
@within_filter
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
    Layout(folder).refuse_copy()
    name = unicodedata.normalize("NFC", document)
    await _check_seen(name, service, workspace)
    with suppress(NotFound):  # a new document, or the first one
        await service.workspaces.read_whole(
            workspace, lambda session: _check_free(name, folder, session)
        )
    await store_upload(folder, document, request.stream())
    return _shown(start_run(service, workspace, USUAL)) if index else None


def _check_free(name: str, folder: Path, session: Session) -> None:
    """Raise Taken if the upload would replace the text that a document has from another source."""
    uploads = str(upload_folder(folder))
    (stored,) = session.generation.documents.documents([name])
    for part in stored.parts:
        if part.kind == "text" and part.source != uploads and Path(part.source).exists():
            raise Taken(
                f"{name!r} is the name of a document already, from {part.path}.",
                "Give the upload another name, or change the file there.",
            )


async def _check_seen(name: str, service: Service, workspace: str) -> None:
    """Raise Taken if a document of this name, or in an uploaded file of this name, does not pass
    the caller's filter.
    """
    if CALLER.get().where is None:
        return
    folder, seen, meant = service.workspaces.folder(workspace), set[str](), set[str]()

    def documents(session: Session) -> set[str]:
        return {*session.generation.documents.ids()}

    def named(session: Session) -> set[str]:
        inside = from_uploads([name], session.generation, folder)
        return {name, *inside} & documents(session)

    with suppress(NoGeneration, NothingToRead):
        meant = await service.workspaces.read_whole(workspace, named)
        seen = await service.workspaces.read(workspace, documents)
    if meant - seen:
        raise Taken(f"{name!r} is a name that is in use.", "Give the upload another name.")


@router.delete("/documents/{document:path}", tags=["documents"], dependencies=EDIT)
@within_filter
async def forget_document(document: str, service: Here, workspace: str = DEFAULT) -> ForgetReport:
    """Remove a document and everything made from it, in older generations and uploads too, and
    block it from later index runs. The name of an uploaded file means all documents from it, and
    also a file that was never indexed.
    """
    if sees_part := CALLER.get().where is not None:
        # Raises UnknownDocument for what the filter hides, as for what there is not.
        stored_ = await service.workspaces.read(
            workspace, lambda session: session.generation.documents.document(document)
        )
        await _check_seen(stored_.id, service, workspace)
    report = await service.workspaces.change(workspace, lambda runtime: forget([document], runtime))
    if sees_part:
        report = ForgetReport(**report.model_dump(include={"documents", "generation", "chunks"}))
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
    Layout(folder).refuse_copy()
    return service.runs.start(workspace, folder, wanted.model_copy(update={"sources": sources}))


def _shown(run: IndexRun) -> IndexRun:
    """Return of a run what the caller may see: with a filter only its state."""
    if CALLER.get().where is None:
        return run
    shown = run.model_dump(include={"id", "workspace", "state", "started", "finished"})
    return IndexRun(**shown, sources=())


@router.post("/index-runs", tags=["index runs"], status_code=202)
@within_filter
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
    return _shown(start_run(service, workspace, wanted))


@router.get("/index-runs", tags=["index runs"])
async def index_runs(service: Here) -> list[IndexRun]:
    """List the latest runs that this service started, newest first."""
    return service.runs.list()


@router.get("/index-runs/{run}", tags=["index runs"])
@within_filter
async def index_run(run: str, service: Here) -> IndexRun:
    """Return the state of a run: its step and progress, or its result."""
    return _shown(service.runs.get(run))


@router.delete("/index-runs/{run}", tags=["index runs"], dependencies=EDIT)
async def cancel_run(run: str, service: Here) -> IndexRun:
    """Cancel a run and discard what it has not published."""
    return await service.runs.cancel(run)


# --- the graph and its reports ---


@router.get("/entities", tags=["graph"])
@within_filter
async def entities(at: Place, q: str = "", limit: Limit = 50) -> reading.EntityPage:
    """List the entities with a name that contains `q`, the most mentioned first."""
    return await at.read(lambda session: reading.search_entities(session.generation, q, limit))


@router.get("/entity", tags=["graph"])
@within_filter
async def entity(name: str, at: Place) -> reading.GraphView:
    """Return the entities of a name with their relations and claims, quoted from the sources."""
    return await at.read(lambda session: reading.look_up(name, session.generation))


@router.get("/paths", tags=["graph"])
@within_filter
async def paths(
    first: str, second: str, at: Place, k: Annotated[int, Query(ge=1, le=20)] = 3
) -> reading.Paths:
    """Find paths between two entities (by names or ids); each step is quoted from the sources."""
    return await at.read(lambda session: reading.paths_between(session, first, second, k))


@router.get("/communities", tags=["graph"])
@within_filter
async def communities(at: Place, level: Level = None) -> list[Community]:
    """List all communities, or those of a level (0 is the broadest)."""
    return await at.read(lambda session: session.generation.communities.communities(level))


@router.get("/reports", tags=["graph"])
@within_filter
async def reports(at: Place, level: Level = None) -> list[reading.ListedReport]:
    """List the reports, the broadest level first, and in each level the most important first."""
    listed = await at.read(lambda session: reading.list_reports(session.generation))
    return [report for report in listed.values() if level in {None, report.level}]


@router.get("/reports/{community}", tags=["graph"])
@within_filter
async def report(community: str, at: Place) -> reading.ReportView:
    """Return a report with quoted findings, the reports above and below it, and its entities."""
    return await at.read(lambda session: reading.report_view(community, session.generation))


@router.get("/schema", tags=["graph"])
@within_filter
async def schema(at: Place) -> reading.SchemaView:
    """Return the types of facts with how many there are of each, and what was left out and why."""
    return await at.read(lambda session: reading.schema_view(session.generation))


# --- the workspace ---


@router.get("/workspaces", tags=["workspace"])
@within_filter
async def workspaces(service: Here) -> list[str]:
    """List the names of the workspaces of this service."""
    return service.workspaces.names


@router.get("/generations", tags=["workspace"])
@within_filter
def generations(service: Here, workspace: str = DEFAULT) -> list[GenerationInfo]:
    """List the kept generations, oldest first; with a filter only their numbers."""
    stored = service.workspaces.workspace(workspace).generations()
    if CALLER.get().where is None:
        return stored
    nothing = {"created": "", "counts": {}, "size_bytes": 0, "damage": "", "remedy": ""}
    return [info.model_copy(update=nothing) for info in stored]


@router.get("/diff", tags=["workspace"])
@within_filter
def diff(
    service: Here,
    before: Annotated[int, Query(ge=1)],
    after: Annotated[int | None, Query(ge=1)] = None,
    workspace: str = DEFAULT,
) -> Diff:
    """Compare two generations; the default of `after` is the current one."""
    if CALLER.get().where is None:
        return compare(service.workspaces.workspace(workspace), before, after)
    with (
        service.workspaces.hold(workspace, before) as first,
        service.workspaces.hold(workspace, after) as last,
    ):
        return difference(first.generation, last.generation)


@router.get("/dead-letters", tags=["workspace"])
@within_filter
async def dead_letters(at: Place) -> list[Letter]:
    """List the items that failed while the generation was built, with remedies."""
    return list(await at.read(lambda session: letters_of(session.generation)))


@router.get("/usage", tags=["workspace"])
@within_filter
async def usage(at: Place) -> list[UsageRow]:
    """Return the model calls that built the generation, by step and model."""
    return await at.read(lambda session: session.generation.meta.usage())


@router.get("/status", tags=["workspace"])
@within_filter
def status(service: Here, workspace: str = DEFAULT) -> reading.Status:
    """Return the content of the workspace, its size on disk, its settings and its latest runs; with
    a filter only the content that passes it.
    """
    if CALLER.get().where is None:
        return reading.workspace_status(service.workspaces.runtime(workspace, reading=True))
    with service.workspaces.hold(workspace) as session:
        return reading.part_status(session)


@router.get("/settings", tags=["workspace"])
def settings(service: Here, workspace: str = DEFAULT) -> dict[str, Any]:
    """Return the settings in force, without keys."""
    return status(service, workspace).settings
