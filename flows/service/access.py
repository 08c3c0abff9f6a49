"""Who may use the service, how much and how often; and the one form of its errors:
{type, message, remedy}.
"""

import asyncio
import hashlib
import logging
import secrets
import time
import uuid
from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Annotated, Literal

from fastapi import Depends, Request
from fastapi.responses import JSONResponse
from fastapi.security import APIKeyHeader, HTTPAuthorizationCredentials, HTTPBearer
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from flows.service.metrics import Metrics
from flows.service.page_files import PATHS
from flows.setting_areas import ServiceSettings
from flows.settings import Settings, load_settings, settings_file
from flows.usage import error_of
from prompts.engine.errors import EngineError, ModelUnavailable
from prompts.engine.spending import Meter, Spent
from storage.errors import (
    BudgetReached,
    NotFound,
    StorageError,
    TrellisError,
    UsageError,
    WorkspaceLocked,
)

Role = Literal["ask", "edit", "admin"]
ROLES: tuple[Role, ...] = ("ask", "edit", "admin")  # each may do what those before it may
# A client may call its method anything; a metric for each name would be kept for good.
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"})
LONGEST_LOGGED = 200  # characters
# How long, and how many bytes, a refused body is still read.
LINGER, LINGER_BYTES = 2.0, 32_000_000
MINUTE = 60.0  # seconds
CLIENT_LEFT = 499  # in the log and the metrics, as proxies write it
LOOPBACK = {"127.0.0.1", "localhost", "[::1]"}

logger = logging.getLogger("trellis.service")


# --- errors ---


class ServiceError(TrellisError):
    """A request that the service refuses; `status` is HTTP's."""

    status = 400


class KeyMissing(ServiceError):
    """The request bears no key of this service."""

    status = 401


class NotAllowed(ServiceError):
    """The key's role may not do that, or the page that calls may not call."""

    status = 403


class TooSlow(ServiceError):
    """The body stopped coming."""

    status = 408


class Taken(ServiceError):
    """An upload has the name of a document that comes from elsewhere."""

    status = 409


class TooLarge(ServiceError):
    """The body is larger than it may be."""

    status = 413


class NotAFile(ServiceError):
    """A form came where the file itself is to be sent."""

    status = 415


class TooOften(ServiceError):
    """A key has used up its requests of the minute, or its tokens or money of the day."""

    status = 429


class NotReady(ServiceError):
    """The service has begun, and cannot answer questions yet."""

    status = 503


# The first kind that fits decides.
_STATUS: tuple[tuple[type[Exception], int], ...] = (
    (NotFound, 404),
    (WorkspaceLocked, 409),
    (BudgetReached, 402),
    (UsageError, 400),
    (StorageError, 500),
    (TrellisError, 409),
    (ModelUnavailable, 503),
    (EngineError, 502),
)


def status_of(error: Exception) -> int:
    """Give the HTTP status of an error; 500 for a fault of the program."""
    if isinstance(error, ServiceError):
        return error.status
    return next((status for kind, status in _STATUS if isinstance(error, kind)), 500)


def shown_error(error: Exception) -> dict[str, str]:
    """Word an error for clients, keys masked; of a fault of the program say only that it is one."""
    if isinstance(error, TrellisError | EngineError):
        return error_of(error)
    message = "The service failed at this."
    return {"type": "InternalError", "message": message, "remedy": "Its log says more."}


def error_answer(error: Exception) -> JSONResponse:
    """Answer with an error in the form of all errors."""
    status = status_of(error)
    headers = {"www-authenticate": "Bearer"} if status == 401 else {}
    return JSONResponse({"error": shown_error(error)}, status, headers)


# --- keys ---


@dataclass(frozen=True)
class Caller:
    """Who asks, by the name of the key."""

    name: str
    role: Role

    def may(self, role: Role) -> bool:
        """Whether the caller's role includes another."""
        return ROLES.index(self.role) >= ROLES.index(role)


NOBODY = Caller("nobody", "admin")  # where no key is set, who reaches this machine may do all
CALLER = ContextVar[Caller]("caller", default=NOBODY)  # of the request that is answered


def new_key(name: str, role: Role) -> tuple[str, str]:
    """Make a key, and its row for the setting `service.keys`, which does not give the key away."""
    key = f"trl-{secrets.token_urlsafe(32)}"
    return key, f"{name}:{role}:{_hashed(key)}"


def _hashed(key: str) -> str:
    # Of 256 random bits a plain hash tells nothing; salt protects words that people choose.
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()


class KeyList:
    """The callers by the hash of their key, and the requests that each made in the last minute.

    The keys are read anew as soon as the file of settings has changed.
    """

    def __init__(self, settings: Settings) -> None:
        self._callers = _callers_of(settings.service.keys)
        self._workspace = settings.workspace
        self._changed = _last_change()
        self._rpm = settings.service.rpm
        self._recent: dict[str, deque[float]] = defaultdict(deque)

    def _callers_now(self) -> Mapping[str, Caller]:
        """Give the callers that are let in now: those before where no keys can be read, because a
        mistake in the file must not open the service to everybody.
        """
        if self._callers and (changed := _last_change()) != self._changed:
            self._changed = changed
            try:
                rows = load_settings({"workspace": self._workspace}).service.keys
                self._callers = _callers_of(rows) or self._callers
            except TrellisError as error:
                logger.warning("The keys were not read anew, and those before hold: %s", error)
        return self._callers

    def caller(self, key: str | None) -> Caller:
        """Find who has the key, and count the request. Raises KeyMissing, TooOften."""
        callers = self._callers_now()
        caller = callers.get(_hashed(key)) if key else None
        if callers and caller is None:
            what = "This key is not known." if key else "The request bears no key."
            raise KeyMissing(what, "Send `Authorization: Bearer KEY` with a key of this service.")
        self._count(caller or NOBODY)
        return caller or NOBODY

    def _count(self, caller: Caller) -> None:
        if self._rpm is None:
            return
        now, recent = time.monotonic(), self._recent[caller.name]
        while recent and now - recent[0] >= MINUTE:
            recent.popleft()
        if len(recent) >= self._rpm:
            raise TooOften(
                f"The key {caller.name!r} may make {self._rpm} requests a minute.",
                f"Wait {MINUTE - (now - recent[0]):.0f} seconds.",
            )
        recent.append(now)


def _last_change() -> int:
    """Give the time in ns at which the file of settings was written; 0 without a file."""
    try:
        return settings_file().stat().st_mtime_ns
    except OSError:
        return 0


def _callers_of(rows: Sequence[str]) -> dict[str, Caller]:
    parts = [row.rsplit(":", 2) for row in rows]
    return {
        digest: Caller(name, next(r for r in ROLES if r == role)) for name, role, digest in parts
    }


Bearer = Annotated[HTTPAuthorizationCredentials | None, Depends(HTTPBearer(auto_error=False))]
Header = Annotated[str | None, Depends(APIKeyHeader(name="x-api-key", auto_error=False))]


async def admitted(request: Request, bearer: Bearer, header: Header) -> Caller:
    """Give the caller that a request's key names, for this request and its log."""
    keys: KeyList = request.app.state.keys
    caller = keys.caller(bearer.credentials.strip() if bearer else header)
    CALLER.set(caller)
    request.scope["caller"] = caller.name
    return caller


def needs(role: Role) -> Callable[[Caller], Caller]:
    """Make the dependency of a route whose callers have at least this role. NotAllowed."""

    def check(caller: Annotated[Caller, Depends(admitted)]) -> Caller:
        if not caller.may(role):
            raise NotAllowed(
                f"The key {caller.name!r} has the role {caller.role!r}; this needs {role!r}.",
                "Use another key, or give this one another role (service.keys).",
            )
        return caller

    return check


class DayLimits:
    """What each key's questions have taken of models since midnight UTC.

    A service that starts again counts anew.
    """

    def __init__(self, tokens: int | None, usd: float | None) -> None:
        self._tokens = tokens
        self._usd = usd
        self._day = date.min
        self._taken: dict[str, Spent] = defaultdict(Spent)

    def check(self) -> None:
        """Raise TooOften where the caller has used up what a day has."""
        today = datetime.now(UTC).date()
        if today != self._day:
            self._day = today
            self._taken.clear()
        name = CALLER.get().name
        used, most = self._taken[name], ""
        if self._tokens is not None and used.input_tokens + used.output_tokens >= self._tokens:
            most = f"take {self._tokens:,} tokens of models"
        elif self._usd is not None and (used.cost_usd is None or used.cost_usd >= self._usd):
            most = f"spend ${self._usd:g} on models"
        if most:
            raise TooOften(f"The key {name!r} may {most} a day.", "Ask again after midnight UTC.")

    def add(self, meter: Meter) -> None:
        """Count what a question of the caller took."""
        for _, _, spent in meter.rows():
            self._taken[CALLER.get().name].add(spent)


# --- the guard ---


@dataclass(frozen=True)
class RequestLimits:
    """What a body may be: its bytes, and how slowly it may come.

    A piece must come within `piece_seconds`; the whole may fall short of `bytes_a_second` for as
    long.
    """

    upload_bytes: int
    json_bytes: int = 1 << 20
    piece_seconds: float = 30.0
    bytes_a_second: int = 1024


class Guard:
    """Stands before all routes: refuses pages of other places and bodies that are too large or too
    slow, and enters every request in the log and the metrics.
    """

    def __init__(
        self,
        app: ASGIApp,
        settings: ServiceSettings,
        limits: RequestLimits,
        metrics: Metrics,
    ) -> None:
        self._app = app
        self._settings = settings
        self._limits = limits
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request, started, status = uuid.uuid4().hex[:16], time.monotonic(), 0

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                headers["x-request-id"] = request
                headers["x-content-type-options"] = "nosniff"
            await send(message)

        try:
            refuse_foreign_pages(Headers(scope=scope), scope["path"], self._settings)
            body = Body(receive, self._limits, scope)
            if scope["method"] != "PUT":
                await body.read_whole()
            with self._metrics.in_flight.track_inprogress():
                await self._app(scope, body.receive, answer)
        except ClientDisconnect:
            status = status or CLIENT_LEFT
        except Exception as error:
            if not isinstance(error, ServiceError):
                logger.exception("request failed", extra={"fields": {"request": request}})
            if isinstance(error, TooLarge) and "expect" not in Headers(scope=scope):
                await read_on(receive)
            if not status:
                await error_answer(error)(scope, receive, answer)
        finally:
            self._enter(scope, request, status, time.monotonic() - started)

    def _enter(self, scope: Scope, request: str, status: int, seconds: float) -> None:
        # The route and not the path, which may hold names of documents and people.
        route = getattr(scope.get("route"), "path", None) or "other"
        method = scope["method"] if scope["method"] in METHODS else "other"
        self._metrics.request(method, route, status, seconds)
        fields = {"request": request, "method": method, "route": route, "status": status}
        fields |= {"ms": round(seconds * 1000, 1), "key": scope.get("caller")}
        logger.info("request", extra={"fields": fields | scope.get("log", {})})


def refuse_foreign_pages(headers: Headers, path: str, settings: ServiceSettings) -> None:
    """Raise NotAllowed for a request that a page of another place makes in somebody's browser."""
    host, name = headers.get("host", ""), headers.get("host", "").rsplit(":", 1)[0]
    if not settings.keys and name not in LOOPBACK and host != "[::1]":
        # A page elsewhere whose name leads to this machine must not read what is here.
        message = f"This service has no keys and is not called {host[:200]!r}."
        raise NotAllowed(message, "Use http://127.0.0.1, or set keys.")
    origin = headers.get("origin")
    own = {f"http://{host}", f"https://{host}"}
    if origin is not None and origin not in own and origin not in settings.origins:
        message = f"Pages of {origin[:200]!r} may not call this service."
        raise NotAllowed(message, "Name it in service.origins.")
    opens_page = headers.get("sec-fetch-mode") == "navigate" and path in PATHS | {"/docs"}
    foreign = headers.get("sec-fetch-site") in {"cross-site", "same-site"}
    if origin is None and foreign and not opens_page:
        # A picture or a script of a page elsewhere: its browser tells no origin.
        message = "Pages of other places may not call this service."
        raise NotAllowed(message, "Name them in service.origins.")


async def read_on(receive: Receive) -> None:
    """Throw away what a client still sends, for a while: else it may never read why it is refused.

    Who asks by `Expect: 100-continue` has sent nothing yet.
    """
    with suppress(TimeoutError):
        async with asyncio.timeout(LINGER):
            more, size = True, 0
            while more and size < LINGER_BYTES:
                message = await receive()
                more, size = message.get("more_body", False), size + len(message.get("body", b""))


class Body:
    """The body of a request, within its limits. Raises TooLarge and TooSlow."""

    def __init__(self, receive: Receive, limits: RequestLimits, scope: Scope) -> None:
        self._receive = receive
        self._limits = limits
        self._is_file = scope["method"] == "PUT"
        self._most = limits.upload_bytes if self._is_file else limits.json_bytes
        self._size = 0
        self._waited = 0.0  # seconds
        self._whole: list[Message] = []
        self._ended = False
        if int(Headers(scope=scope).get("content-length", "0")) > self._most:
            raise self._too_large()

    async def read_whole(self) -> None:
        """Keep the body for who asks for it."""
        while not self._ended:
            self._whole.append(await self._next())

    async def receive(self) -> Message:
        """Give the next message."""
        return self._whole.pop(0) if self._whole else await self._next()

    async def _next(self) -> Message:
        if self._ended:
            return await self._receive()  # who waits here learns that the client has gone
        limits, began = self._limits, time.monotonic()
        left = limits.piece_seconds + self._size / limits.bytes_a_second - self._waited
        try:
            async with asyncio.timeout(min(limits.piece_seconds, max(left, 0.0))):
                message = await self._receive()
        except TimeoutError as error:
            slow = f"less than {limits.bytes_a_second:,} bytes a second"
            problem = f"Nothing came for {limits.piece_seconds:g} seconds, or {slow}."
            raise TooSlow(problem, "Send the whole body, then wait.") from error
        self._waited += time.monotonic() - began
        self._size += len(message.get("body", b""))
        self._ended = not message.get("more_body", False)
        if self._size > self._most:
            raise self._too_large()
        return message

    def _too_large(self) -> TooLarge:
        if self._is_file:
            remedy = "Divide it, or raise service.upload_bytes."
            return TooLarge(f"An uploaded file may have {self._most:,} bytes.", remedy)
        problem = f"A body other than an uploaded file may have {self._most:,} bytes."
        return TooLarge(problem, "Ask with less: this limit is fixed.")
