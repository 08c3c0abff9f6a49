"""The service as one FastAPI application: its routes, health, metrics, start and end."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from http import HTTPStatus
from importlib.metadata import version

from fastapi import Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.middleware.cors import CORSMiddleware
from fastapi.responses import JSONResponse, Response
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from pydantic import ValidationError
from starlette.exceptions import HTTPException

from flows.runtime import ASKING, check_prices
from flows.service import mcp_server, ollama_api, openai_api, page_routes, rest
from flows.service.access import (
    Guard,
    KeyList,
    NotReady,
    RequestLimits,
    TokenReader,
    error_answer,
    needs,
)
from flows.service.asking import Questions, Service
from flows.service.metrics import Metrics
from flows.service.page_files import PageFiles
from flows.service.runs import IndexRuns
from flows.service.workspaces import Workspaces
from flows.settings import Settings
from prompts.engine.errors import EngineError
from storage.errors import SettingsError, TrellisError
from storage.records import Record


class ErrorDetails(Record):
    """What happened and what to do."""

    type: str
    message: str
    remedy: str


class ErrorBody(Record):
    """The form of all errors."""

    error: ErrorDetails


REFUSALS = (400, 401, 402, 403, 404, 405, 408, 409, 413, 415, 422, 429, 500, 502, 503)


def create_app(
    settings: Settings,
    *,
    prefect: str | None = None,
    sources: Sequence[str] = (),
    limits: RequestLimits | None = None,
) -> FastAPI:
    """Build the application; its workspaces are opened only when it starts.

    `prefect` is the address of Prefect's API, `sources` are the sources of the default workspace
    besides its uploads. Raises UsageError if money is limited and a model's price is unknown.
    """
    workspaces, metrics = Workspaces(settings), Metrics()
    if settings.service.usd_a_day is not None:
        for name in workspaces.names:
            check_prices(workspaces.runtime(name), ASKING, "TRELLIS_SERVICE_TOKENS_A_DAY")
    service = Service(
        settings=settings,
        workspaces=workspaces,
        metrics=metrics,
        sources=tuple(sources),
        questions=Questions(workspaces, metrics, settings.service),
        runs=IndexRuns(workspaces.follow),
        prefect=prefect.removesuffix("/api") if prefect else None,
    )

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        app.state.opening = asyncio.create_task(workspaces.open_all())
        app.state.begun()
        try:
            async with mcp_server.http_servers(workspaces, service.questions) as app.state.mcp:
                yield
        finally:
            app.state.opening.cancel()
            await service.runs.close()
            workspaces.close()

    app = FastAPI(
        title="Trellis",
        version=version("trellis-rag"),
        description="Answers from your documents, with sources.",
        lifespan=lifespan,
        responses={
            status: {"model": ErrorBody, "description": HTTPStatus(status).phrase}
            for status in REFUSALS
        },
    )
    app.state.service, app.state.keys = service, KeyList(settings)
    app.state.tokens = _token_reader(settings)
    app.state.begun = lambda: None  # The server replaces it to learn that the app has started.
    for router in (
        rest.router,
        openai_api.router,
        ollama_api.router,
        page_routes.router,
        mcp_server.router,
    ):
        app.include_router(router)
    _add_health(app, service)
    _add_errors(app)
    app.mount("/", PageFiles())
    app.add_middleware(
        CORSMiddleware,
        allow_origins=settings.service.origins,
        allow_methods=["*"],
        allow_headers=["*"],
        expose_headers=["x-request-id"],
    )
    limits = limits or RequestLimits(upload_bytes=settings.service.upload_bytes)
    app.add_middleware(Guard, settings=settings.service, limits=limits, metrics=metrics)
    return app


def _token_reader(settings: Settings) -> TokenReader | None:
    """Return what reads tokens, if the settings name an issuer. Raises SettingsError."""
    if settings.service.oidc_issuer is None:
        return None
    try:
        from flows.service.tokens import TokenIssuer  # PyJWT is of the extra `oidc`
    except ImportError as error:
        expected = f"`pip install 'trellis-rag[oidc]'` first ({error})"
        raise SettingsError("service.oidc_issuer", settings.service.oidc_issuer, expected) from None
    return TokenIssuer(settings.service)


def _add_health(app: FastAPI, service: Service) -> None:
    @app.get("/health", tags=["service"])
    async def health() -> dict[str, str]:
        """Report that the service runs."""
        return {"status": "ok"}

    @app.get("/ready", tags=["service"])
    async def ready() -> dict[str, object]:
        """Report that all workspaces are open; `empty` names those without an index. 503 before."""
        opening: asyncio.Task[list[str]] = app.state.opening
        if not opening.done():
            raise NotReady("The workspaces are being opened.", "Ask again in a moment.")
        return {"status": "ready", "empty": opening.result()}

    @app.get("/metrics", tags=["service"], dependencies=[Depends(needs("ask"))])
    def metrics() -> Response:
        """Return the metrics for Prometheus."""
        return Response(generate_latest(service.metrics.registry), media_type=CONTENT_TYPE_LATEST)


def _add_errors(app: FastAPI) -> None:
    def answer(kind: str, message: str, remedy: str, status: int) -> JSONResponse:
        return JSONResponse({"error": {"type": kind, "message": message, "remedy": remedy}}, status)

    @app.exception_handler(TrellisError)
    @app.exception_handler(EngineError)
    async def raised(_: Request, error: Exception) -> JSONResponse:
        return error_answer(error)

    @app.exception_handler(RequestValidationError)
    @app.exception_handler(ValidationError)
    async def not_valid(
        _: Request, error: RequestValidationError | ValidationError
    ) -> JSONResponse:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        remedy = "GET /docs shows what a request may hold."
        return answer("InvalidRequest", f"{place}: {first['msg']}.", remedy, 422)

    @app.exception_handler(HTTPException)
    async def refused(_: Request, error: HTTPException) -> JSONResponse:
        words = {
            404: "There is nothing at this address.",
            405: "This address does not take that method.",
        }
        message = words.get(error.status_code, error.detail)
        return answer("HttpError", message, "GET /docs lists what there is.", error.status_code)
