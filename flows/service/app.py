"""The service as one FastAPI application: its interfaces, health, metrics, and how it opens and closes."""

import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from importlib.metadata import version

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.middleware.cors import CORSMiddleware
from fastapi.responses import JSONResponse, Response
from prometheus_client import generate_latest
from starlette.exceptions import HTTPException
from starlette.routing import Route

from flows.service import openai, page_routes, rest
from flows.service.access import Guard, Limits, shown_error, status_of
from flows.service.asking import Questions
from flows.service.mcp_server import McpEndpoint
from flows.service.metrics import Metrics
from flows.service.page_files import PageFiles
from flows.service.runs import IndexRuns, LocalRuns
from flows.service.state import Service
from flows.service.workspaces import Workspaces
from flows.settings import Settings
from prompts.engine.errors import EngineError
from storage.errors import TrellisError

logger = logging.getLogger("trellis.service")
_DESCRIPTION = "Answers from your documents, with sources. Errors are `{error: {type, message, remedy}}`."


def create_app(
    settings: Settings, *, runs: IndexRuns | None = None, prefect: str | None = None, sources: Sequence[str] = (),
    limits: Limits | None = None,
) -> FastAPI:  # fmt: skip
    """The application of a service under these settings; nothing is opened before it starts.

    `runs` is where index runs go (None: processes of this machine), `prefect` the address of Prefect's pages,
    `sources` what runs of the default workspace read beside its uploads.
    """
    workspaces, metrics = Workspaces(settings), Metrics()
    service = Service(
        settings=settings, workspaces=workspaces, metrics=metrics, prefect=prefect, sources=tuple(sources),
        questions=Questions(workspaces, metrics, settings.service.at_once), runs=runs or LocalRuns(workspaces.follow),
    )  # fmt: skip

    mcp = McpEndpoint(workspaces)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        try:
            async with mcp.running():
                yield
        finally:
            await service.runs.close()
            workspaces.close()

    app = FastAPI(
        title="Trellis", version=version("trellis-rag"), description=_DESCRIPTION, lifespan=lifespan,
        redoc_url=None,
    )  # fmt: skip
    app.state.service = service
    app.include_router(rest.router)
    app.include_router(openai.router)
    app.include_router(page_routes.router)
    app.router.routes += [Route("/mcp", mcp), Route("/mcp/{workspace}", mcp)]
    _add_health(app, service)
    _add_errors(app)
    app.mount("/", PageFiles())
    app.add_middleware(
        CORSMiddleware, allow_origins=settings.service.origins, allow_methods=["*"], allow_headers=["*"],
        expose_headers=["x-request-id"],
    )  # fmt: skip
    limits = limits or Limits(upload_bytes=settings.service.upload_bytes)
    app.add_middleware(Guard, settings=settings.service, limits=limits, metrics=metrics)
    return app


def _add_health(app: FastAPI, service: Service) -> None:
    @app.get("/health", tags=["service"])
    async def health() -> dict[str, str]:
        """The service runs."""
        return {"status": "ok"}

    @app.get("/ready", tags=["service"])
    async def ready() -> dict[str, object]:
        """What is published is open, so that questions need not wait; `empty` are workspaces without any."""
        return {"status": "ready", "empty": await service.workspaces.ready()}

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
        first = error.errors()[0] if isinstance(error, RequestValidationError) else {}
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
    app.add_exception_handler(HTTPException, refused)
