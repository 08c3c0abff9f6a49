"""The service as one FastAPI application: its interfaces, health, metrics, and how it opens and closes."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.middleware.cors import CORSMiddleware
from fastapi.responses import HTMLResponse, JSONResponse, Response
from prometheus_client import generate_latest
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.routing import Route

from flows.runtime import ASKING, check_prices
from flows.service import openai_api, page_routes, rest
from flows.service.access import Guard, NotReady, RequestLimits, Reread, shown_error, status_of
from flows.service.asking import Questions, Service
from flows.service.mcp_server import McpEndpoint
from flows.service.metrics import Metrics
from flows.service.page_files import PageFiles, api_page
from flows.service.prefect_runs import PrefectRuns
from flows.service.runs import LocalRuns
from flows.service.workspaces import Workspaces
from flows.settings import Settings
from prompts.engine.errors import EngineError
from storage.errors import TrellisError
from storage.records import Record

_DESCRIPTION = "Answers from your documents, with sources. Errors are `{error: {type, message, remedy}}`."


class ErrorDetails(Record):
    """What happened, and what to do."""

    type: str
    message: str
    remedy: str


class ErrorBody(Record):
    """The one form of errors."""

    error: ErrorDetails


_ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorBody, "description": description}
    for status, description in {
        400: "The request cannot be met as it was put.",
        401: "No key of this service.",
        402: "The budget is reached.",
        403: "The key's role may not do that, or the page that calls may not call.",
        404: "There is nothing of that name.",
        405: "This address does not take that method.",
        408: "The body stopped coming.",
        409: "Another run holds the workspace, or the change is refused.",
        413: "The body is too large.",
        415: "The body is no file.",
        422: "A field is not as it should be.",
        429: "The key has used up its minute or its day.",
        431: "The headers are too large.",
        500: "The service failed at this.",
        502: "A model failed.",
        503: "The service or a model is not there yet.",
    }.items()
}


def create_app(
    settings: Settings, *, prefect: str | None = None, sources: Sequence[str] = (), limits: RequestLimits | None = None,
    reread: Reread | None = None,
) -> FastAPI:  # fmt: skip
    """The application of a service under these settings; nothing is opened before it starts.

    `prefect` is the address of the API of Prefect's server, whose deployment `index-now` does the
    index runs (None: processes of this machine do), `sources` what runs of the default workspace
    read beside its uploads, `reread` how the keys are read anew (None: those of `settings` hold).
    Raises UsageError for money limited where a price is unknown.
    """
    workspaces, metrics = Workspaces(settings), Metrics()
    if settings.service.usd_a_day is not None:
        for name in workspaces.names:
            check_prices(workspaces.runtime(name), ASKING, "TRELLIS_SERVICE_TOKENS_A_DAY")
    service = Service(
        settings=settings, workspaces=workspaces, metrics=metrics, sources=tuple(sources),
        questions=Questions(workspaces, metrics, settings.service), runs=_runs(workspaces, prefect),
        prefect=prefect.removesuffix("/api") if prefect else None,
    )  # fmt: skip
    mcp = McpEndpoint(workspaces, service.questions)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        app.state.opening = asyncio.create_task(workspaces.open_all())
        getattr(app.state, "begun", lambda: None)()
        try:
            async with mcp.running():
                yield
        finally:
            app.state.opening.cancel()
            await service.runs.close()
            workspaces.close()

    app = FastAPI(
        title="Trellis", version=version("trellis-rag"), description=_DESCRIPTION, lifespan=lifespan,
        docs_url=None, redoc_url=None,  # those pages load scripts from elsewhere
        responses=_ERRORS,
    )  # fmt: skip
    app.state.service = service
    app.include_router(rest.router)
    app.include_router(openai_api.router)
    app.include_router(page_routes.router)
    app.router.routes += [Route("/mcp", mcp), Route("/mcp/{workspace}", mcp)]
    _add_health(app, service)
    _add_errors(app)
    app.mount("/", PageFiles())
    app.add_middleware(
        CORSMiddleware, allow_origins=settings.service.origins, allow_methods=["*"], allow_headers=["*"],
        expose_headers=["x-request-id"],
    )  # fmt: skip
    limits = limits or RequestLimits(upload_bytes=settings.service.upload_bytes)
    app.add_middleware(Guard, settings=settings.service, limits=limits, metrics=metrics, reread=reread)
    return app


def _runs(workspaces: Workspaces, prefect: str | None) -> LocalRuns | PrefectRuns:
    if prefect is None:
        return LocalRuns(workspaces.follow)
    return PrefectRuns(prefect, {str(workspaces.folder(name)): name for name in workspaces.names}, workspaces.follow)


def _add_health(app: FastAPI, service: Service) -> None:
    @app.get("/health", tags=["service"])
    async def health() -> dict[str, str]:
        """The service runs."""
        return {"status": "ok"}

    @app.get("/ready", tags=["service"])
    async def ready() -> dict[str, object]:
        """What is published is open, so that no question waits for that; `empty` are workspaces without anything.

        503 until then.
        """
        opening: asyncio.Task[list[str]] = app.state.opening
        if not opening.done():
            raise NotReady("The workspaces are being opened.", "Ask again in a moment.")
        return {"status": "ready", "empty": opening.result()}

    @app.get("/docs", include_in_schema=False)
    def docs() -> HTMLResponse:
        return HTMLResponse(api_page(app.openapi()))

    @app.get("/metrics", tags=["service"])
    def metrics() -> Response:
        """The counters for Prometheus."""
        return Response(generate_latest(service.metrics.registry), media_type="text/plain; version=0.0.4")


def _add_errors(app: FastAPI) -> None:
    def told(error: dict[str, str], status: int) -> JSONResponse:
        return JSONResponse({"error": error}, status)

    async def raised(_: Request, error: Exception) -> JSONResponse:
        return told(shown_error(error), status_of(error))

    async def not_valid(_: Request, error: Exception) -> JSONResponse:
        first = error.errors()[0] if isinstance(error, RequestValidationError | ValidationError) else {}
        place = ".".join(str(part) for part in first.get("loc", ()))
        return told(
            {"type": "InvalidRequest", "message": f"{place}: {first.get('msg', 'not as it should be')}.",
             "remedy": "GET /docs shows what a request may hold."}, 422,
        )  # fmt: skip

    async def refused(_: Request, error: Exception) -> JSONResponse:
        status = error.status_code if isinstance(error, HTTPException) else 500
        words = {404: "There is nothing at this address.", 405: "This address does not take that method."}
        message = words.get(status, str(getattr(error, "detail", "")) or "The request was refused.")
        return told({"type": "HttpError", "message": message, "remedy": "GET /docs lists what there is."}, status)

    app.add_exception_handler(TrellisError, raised)
    app.add_exception_handler(EngineError, raised)
    app.add_exception_handler(RequestValidationError, not_valid)
    app.add_exception_handler(ValidationError, not_valid)
    app.add_exception_handler(HTTPException, refused)
