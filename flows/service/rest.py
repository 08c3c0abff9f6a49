"""The service's own interface under /api/v1: questions, documents, index runs, the graph, reports
and generations.
"""

import asyncio
import unicodedata
from collections.abc import AsyncIterator, Callable, Sequence
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
from storage.records import Part
from storage.run_records import UsageRow
from storage.uploads import store_upload, upload_folder
from storage.workspace import GenerationInfo

T = TypeVar("T")
router = APIRouter(prefix="/api/v1", dependencies=[Depends(needs("ask"))])
Here = Annotated[Service, Depends(service_of)]
EDIT = [Depends(needs("edit"))]
USUAL = RunRequest()


@dataclass(frozen=True)
class GenerationPlace:
    """Which workspace, and which of its generations (none: the current one)."""

    service: Here
    workspace: Annotated[str, Query()] = DEFAULT
    as_of: Annotated[int | None, Query(ge=1)] = None

    async def read(self, reading: Callable[[Session], T]) -> T:
        """What a function says of the session there."""
        return await self.service.workspaces.read(self.workspace, reading, self.as_of)


Place = Annotated[GenerationPlace, Depends()]
Limit = Annotated[int, Query(ge=1, le=1000)]


# --- questions ---


class AskBody(AskRequest):
    """A question; with `stream` the answer comes as server-sent events."""

    stream: bool = False


@router.post("/ask", response_model=Answer, tags=["questions"])
async def ask(body: AskBody, request: Request, service: Here) -> Answer | StreamingResponse:
    """Answer a question with sources. With `stream`: events `step`, `text`, `withdrawn`, and at
    last `answer` (the whole record) or `error`.
    """
    note_question(request, service.settings, body)
    if body.stream:
        events = service.questions.events(body)
        return StreamingResponse(
            event_lines(events), media_type="text/event-stream", headers=NOT_BUFFERED
        )
    return await service.questions.answer(body)


NOT_BUFFERED = {"cache-control": "no-store", "x-accel-buffering": "no"}


async def event_lines(events: AsyncIterator[Event]) -> AsyncIterator[str]:
    """Events as the text of a server-sent stream."""
    async for event in events:
        yield f"event: {event.event}\ndata: {to_json(event.data).decode()}\n\n"


@router.post("/retrieve", tags=["questions"])
async def retrieve(body: RetrieveRequest, request: Request, service: Here) -> Retrieval:
    """The best passages for a question, without an answer."""
    note_question(request, service.settings, body)
    return await service.questions.retrieve(
        body.workspace, body.question, body.options(), body.as_of
    )


# --- documents ---


@router.get("/documents", tags=["documents"])
async def documents(
    at: Place, q: str = "", limit: Limit = 100, offset: Annotated[int, Query(ge=0)] = 0
) -> reading.DocumentPage:
    """The documents whose id or title holds `q`."""
    return await at.read(
        lambda session: reading.list_documents(session.generation, q, limit, offset)
    )


@router.get("/documents/{document:path}", tags=["documents"])
async def document(document: str, at: Place) -> reading.SourceText:
    """The stored text of a document, as the offsets of citations count it (code points), with its
    passages.
    """
    return await at.read(lambda session: reading.source_text(session.generation, document))


@router.put("/documents/{document:path}", tags=["documents"], status_code=202, dependencies=EDIT)
async def upload(
    document: str, request: Request, service: Here, workspace: str = DEFAULT, index: bool = True
) -> IndexRun | None:
    """Upload a file: the body is its content, the path its name. Then index what was uploaded,
    unless `index=false` (to upload several and start one run). 409 for the name of a document that
    comes from a source.
    """
    kind = request.headers.get("content-type", "")
    if kind.lower().startswith("multipart/"):
        raise NotAFile(
            f"A body of the type {kind[:40]!r} is no file.",
            "Send the file itself: curl -T FILE ADDRESS.",
        )
    folder = service.workspaces.folder(workspace)
    with suppress(NotFound):
        name = unicodedata.normalize("NFC", document)
        stored = await service.workspaces.read(workspace, lambda session: _texts_of(name, session))
        await asyncio.to_thread(_check_free, document, stored, folder)
    await store_upload(folder, document, request.stream())
    return await start_run(service, workspace, RunRequest()) if index else None


def _texts_of(document: str, session: Session) -> list[Part]:
    (stored,) = session.generation.documents.documents([document])
    return [part for part in stored.parts if part.kind == "text"]


def _check_free(document: str, stored: Sequence[Part], folder: Path) -> None:
    """Raises Taken where a document has its text from a source that is there, which an upload would
    replace.
    """
    for part in stored:
        if part.source != str(upload_folder(folder)) and Path(part.source).exists():
            raise Taken(
                f"{document!r} is the name of a document already, from {part.path}.",
                "Give the upload another name, or change the file there.",
            )


@router.delete("/documents/{document:path}", tags=["documents"], dependencies=EDIT)
async def forget_document(document: str, service: Here, workspace: str = DEFAULT) -> ForgetReport:
    """Remove a document and all that was made from it, also from older generations, and keep it
    out. Its upload goes too; the name of an uploaded file stands for all documents from it, also
    where none is indexed.
    """
    report = await service.workspaces.change(workspace, lambda runtime: forget([document], runtime))
    if not report.held:
        return report
    # Our own session held one; it is given back by now, unless a question still reads it.
    stored = service.workspaces.workspace(workspace)
    await asyncio.to_thread(stored.clean)
    return report.model_copy(update={"held": tuple(stored.retired())})


# --- index runs ---


def usual_sources(service: Service, workspace: str) -> tuple[str, ...]:
    """What a run reads that names nothing: the uploads, and for the default workspace what the
    service was given.
    """
    uploads = upload_folder(service.workspaces.folder(workspace))
    given = service.sources if workspace == DEFAULT else ()
    return (*given, *([str(uploads)] if uploads.is_dir() else []))


async def start_run(service: Service, workspace: str, wanted: RunRequest) -> IndexRun:
    """Start a run on the sources named, or on the usual ones of a workspace."""
    sources = wanted.sources or usual_sources(service, workspace)
    return service.runs.start(
        workspace,
        service.workspaces.folder(workspace),
        wanted.model_copy(update={"sources": sources}),
    )


@router.post("/index-runs", tags=["index runs"], status_code=202)
async def index(
    service: Here,
    caller: Annotated[Caller, Depends(needs("edit"))],
    wanted: RunRequest = USUAL,
    workspace: str = DEFAULT,
) -> IndexRun:
    """Bring a workspace up to date with its uploaded files and usual sources; the role `admin` may
    name others, which are files and folders of this machine.
    """
    if wanted.sources and not caller.may("admin"):
        raise NotAllowed(
            "Sources by path need the role 'admin'.", "Upload files instead, or use another key."
        )
    return await start_run(service, workspace, wanted)


@router.get("/index-runs", tags=["index runs"])
async def index_runs(service: Here) -> list[IndexRun]:
    """The last runs that this service started, the newest first."""
    return service.runs.list()


@router.get("/index-runs/{run}", tags=["index runs"])
async def index_run(run: str, service: Here) -> IndexRun:
    """A run as it is now: its step, how far it is, how it ended."""
    return service.runs.get(run)


@router.delete("/index-runs/{run}", tags=["index runs"], dependencies=EDIT)
async def cancel_run(run: str, service: Here) -> IndexRun:
    """Cancel a run; what it has not published is gone."""
    return await service.runs.cancel(run)


# --- the graph and its reports ---


@router.get("/entities", tags=["graph"])
async def entities(at: Place, q: str = "", limit: Limit = 50) -> reading.EntityPage:
    """The entities one of whose names holds `q`, the most mentioned first."""
    return await at.read(lambda session: reading.search_entities(session.generation, q, limit))


@router.get("/entity", tags=["graph"])
async def entity(name: str, at: Place) -> reading.GraphView:
    """All that is known of the entities with a name: relations and claims with the places that
    state them.
    """
    return await at.read(lambda session: reading.look_up(name, session.generation))


@router.get("/paths", tags=["graph"])
async def paths(
    first: str, second: str, at: Place, k: Annotated[int, Query(ge=1, le=20)] = 3
) -> reading.Paths:
    """The ways from one entity to another (by names or ids), with the places that state each
    step.
    """
    return await at.read(lambda session: reading.paths_between(session, first, second, k))


@router.get("/communities", tags=["graph"])
async def communities(
    at: Place, level: Annotated[int | None, Query(ge=0)] = None
) -> list[Community]:
    """The communities of a level (0: the broadest), or all."""
    return await at.read(lambda session: session.generation.communities.communities(level))


@router.get("/reports", tags=["graph"])
async def reports(
    at: Place, level: Annotated[int | None, Query(ge=0)] = None
) -> list[reading.ListedReport]:
    """The reports, the broadest level first, within a level the most important first."""
    listed = await at.read(lambda session: reading.list_reports(session.generation))
    return [report for report in listed.values() if level in {None, report.level}]


@router.get("/reports/{community}", tags=["graph"])
async def report(community: str, at: Place) -> reading.ReportView:
    """A report with its findings quoted, the reports above and below it, and its entities."""
    return await at.read(
        lambda session: reading.report_view(
            community, reading.list_reports(session.generation), session.generation
        )
    )


# --- the workspace ---


@router.get("/workspaces", tags=["workspace"])
async def workspaces(service: Here) -> list[str]:
    """The workspaces of this service by name."""
    return service.workspaces.names


@router.get("/generations", tags=["workspace"])
def generations(service: Here, workspace: str = DEFAULT) -> list[GenerationInfo]:
    """The generations that are kept, oldest first."""
    return service.workspaces.workspace(workspace).generations()


@router.get("/diff", tags=["workspace"])
def diff(
    service: Here,
    before: Annotated[int, Query(ge=1)],
    after: Annotated[int | None, Query(ge=1)] = None,
    workspace: str = DEFAULT,
) -> Diff:
    """What came, went and changed from one generation to another (none: the current one)."""
    return compare(service.workspaces.workspace(workspace), before, after)


@router.get("/dead-letters", tags=["workspace"])
async def dead_letters(at: Place) -> list[Letter]:
    """What failed when the generation was made, with remedies."""
    return list(await at.read(lambda session: letters_of(session.generation)))


@router.get("/usage", tags=["workspace"])
async def usage(at: Place) -> list[UsageRow]:
    """What models did for the generation, by step and model."""
    return await at.read(lambda session: session.generation.meta.usage())


@router.get("/status", tags=["workspace"])
def status(service: Here, workspace: str = DEFAULT) -> reading.Status:
    """What the workspace holds, what it takes on disk, and its last runs."""
    return reading.workspace_status(service.workspaces.runtime(workspace, reading=True))


@router.get("/settings", tags=["workspace"])
def settings(service: Here, workspace: str = DEFAULT) -> dict[str, Any]:
    """The settings in force; keys are never shown."""
    return status(service, workspace).settings
