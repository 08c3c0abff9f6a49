"""Who may use the service and how much; and the one form of its errors: {type, message, remedy}.

A caller with a filter reads what the documents that pass it give, as if there were no others:
`Workspaces` opens nothing else for it. Routes refuse such a caller unless they are marked
`within_filter`, so a new route lets nothing through by oversight.
"""

import asyncio
import hashlib
import logging
import re
import secrets
import time
import uuid
from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Annotated, Literal, Protocol, TypeVar, cast, get_args

from fastapi import Depends, Request
from fastapi.responses import JSONResponse
from fastapi.security import APIKeyHeader, HTTPAuthorizationCredentials, HTTPBearer
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from flows.service.metrics import Metrics
from flows.service.page_files import PATHS
from flows.setting_areas import WHERE, ServiceSettings, read_key_row
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

Role = Literal["ask", "edit", "admin"]  # Each may do what those before it may.
ROLES: tuple[Role, ...] = get_args(Role)
# A client may invent methods, and each method name in a metric is kept forever.
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"})
LONGEST_LOGGED = 200  # characters
DRAIN_SECONDS, DRAIN_BYTES = 2.0, 32_000_000  # how much of a refused body is still read
MINUTE = 60.0  # seconds
CLIENT_LEFT = 499  # the status of nginx for a closed connection; in the log and the metrics only
LOOPBACK = {"127.0.0.1", "localhost", "[::1]"}

logger = logging.getLogger("trellis.service")


# --- errors ---


class ServiceError(TrellisError):
    """A refused request; `status` is the HTTP status."""

    status = 400


class KeyMissing(ServiceError):
    """The request has no valid key."""

    status = 401


class NotAllowed(ServiceError):
    """The role of the key, or the origin of the calling page, does not allow the request."""

    status = 403


class TooSlow(ServiceError):
    """The body stopped arriving."""

    status = 408


class Taken(ServiceError):
    """A document from another source has the name of the upload."""

    status = 409


class TooLarge(ServiceError):
    """The body exceeds its size limit."""

    status = 413


class NotAFile(ServiceError):
    """The body is a form instead of a file."""

    status = 415


class TooOften(ServiceError):
    """A key has reached its limit of requests, tokens or money."""

    status = 429


class NotReady(ServiceError):
    """The service is still opening its workspaces."""

    status = 503


class IssuerFailed(ServiceError):
    """The issuer of tokens does not give its keys, so no token can be checked."""

    status = 503


# The first class that matches decides.
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


def shown_error(error: Exception) -> dict[str, str]:
    """Describe an error to clients with masked keys; hide the details of a program fault."""
    if isinstance(error, TrellisError | EngineError):
        return error_of(error)
    message = "The service failed at this."
    return {"type": "InternalError", "message": message, "remedy": "Its log says more."}


def error_answer(error: Exception) -> JSONResponse:
    """Build the HTTP response for an error; the status is 500 for a program fault."""
    if isinstance(error, ServiceError):
        status = error.status
    else:
        status = next((status for kind, status in _STATUS if isinstance(error, kind)), 500)
    headers = {"www-authenticate": "Bearer"} if status == 401 else {}
    return JSONResponse({"error": shown_error(error)}, status, headers)


# --- keys ---


@dataclass(frozen=True)
class Caller:
    """The sender of a request: the name and the role of the key, and the filter of the documents
    that it reads (None: all).
    """

    name: str
    role: Role
    where: str | None = None

    @property
    def user(self) -> str:
        """Whose conversations are kept. Another filter is another user, so that what was answered
        within the old one is not shown within the new one.
        """
        return self.name if self.where is None else f"{self.name}{WHERE}{self.where}"

    def may(self, role: Role) -> bool:
        """Whether the caller's role includes another role."""
        return ROLES.index(self.role) >= ROLES.index(role)


NOBODY = Caller("nobody", "admin")  # A service without keys allows everything.
CALLER = ContextVar[Caller]("caller", default=NOBODY)  # the sender of the current request


def new_key(name: str, role: Role, where: str | None = None) -> tuple[str, str]:
    """Make a key and its row for the setting `service.keys`, which holds only a hash of the key."""
    key = f"trl-{secrets.token_urlsafe(32)}"
    return key, f"{name}:{role}:{_hashed(key)}" + (f"{WHERE}{where}" if where else "")


def _hashed(key: str) -> str:
    # A key has 256 random bits, so it needs no salt: salt protects passwords, which can be guessed.
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()


class KeyList:
    """The callers by the hash of their key, with the times of their requests in the last minute.

    The keys are read again whenever the settings file changes.
    """

    def __init__(self, settings: Settings) -> None:
        self._callers = _callers_of(settings.service.keys)
        self._workspace = settings.workspace
        self._changed = _last_change()
        self._open = settings.service.is_open
        self._rpm = settings.service.rpm
        self._recent: dict[str, deque[float]] = defaultdict(deque)

    def _current_callers(self) -> Mapping[str, Caller]:
        """Return the callers; if no keys can be read, the earlier ones, so that a mistake in the
        file does not open the service to everybody.
        """
        if self._callers and (changed := _last_change()) != self._changed:
            self._changed = changed
            try:
                rows = load_settings({"workspace": self._workspace}).service.keys
                self._callers = _callers_of(rows) or self._callers
            except TrellisError as error:
                logger.warning("The keys were not read anew, and those before hold: %s", error)
        return self._callers

    def owner(self, key: str | None) -> Caller | None:
        """Return the owner of a key; None for an unknown one."""
        return self._current_callers().get(_hashed(key)) if key else None

    def caller(self, key: str | None) -> Caller:
        """Return the owner of the key and count the request. Raises KeyMissing, TooOften."""
        caller = self.owner(key)
        if caller is None and not self._open:
            what = "This key is not known." if key else "The request bears no key."
            raise KeyMissing(what, "Send `Authorization: Bearer KEY` with a key of this service.")
        self.count(caller or NOBODY)
        return caller or NOBODY

    def count(self, caller: Caller) -> None:
        """Count a request. Raises TooOften beyond the limit of a minute."""
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
    """The modification time of the settings file in nanoseconds; 0 without a file."""
    try:
        return settings_file().stat().st_mtime_ns
    except OSError:
        return 0


def _callers_of(rows: Sequence[str]) -> dict[str, Caller]:
    # The settings accept only rows with a known role.
    return {
        row.digest: Caller(row.name, cast("Role", row.role), row.where)
        for row in map(read_key_row, rows)
    }


class TokenReader(Protocol):
    """Finds who sent a bearer token (`flows.service.tokens`)."""

    def reads(self, credential: str) -> bool:
        """Whether a credential has the form of a token."""

    async def caller(self, token: str) -> Caller:
        """Return the sender. Raises KeyMissing, NotAllowed, IssuerFailed."""


R = TypeVar("R", bound=Callable[..., object])
_WITHIN_FILTER = "__within_filter__"


def within_filter(route: R) -> R:
    """Mark a route that keeps to the filter of its caller."""
    setattr(route, _WITHIN_FILTER, True)
    return route


Bearer = Annotated[HTTPAuthorizationCredentials | None, Depends(HTTPBearer(auto_error=False))]
Header = Annotated[str | None, Depends(APIKeyHeader(name="x-api-key", auto_error=False))]


async def admitted(request: Request, bearer: Bearer, header: Header) -> Caller:
    """Return the caller of a request and note it for the limits of a day and for the log.

    Raises NotAllowed where the caller has a filter and the route is not marked `within_filter`.
    """
    keys: KeyList = request.app.state.keys
    tokens: TokenReader | None = request.app.state.tokens
    key = bearer.credentials.strip() if bearer else header
    if key and tokens and tokens.reads(key) and keys.owner(key) is None:
        caller = await tokens.caller(key)
        keys.count(caller)
    else:
        caller = keys.caller(key)
    CALLER.set(caller)
    request.scope["caller"] = caller.name
    if caller.where is not None and not getattr(request.scope["endpoint"], _WITHIN_FILTER, False):
        raise NotAllowed(
            f"The key {caller.name!r} has a filter; this tells of all documents, or changes them.",
            "Use a key without a filter (service.keys).",
        )
    return caller


def needs(role: Role) -> Callable[[Caller], Caller]:
    """Make a route dependency that raises NotAllowed if the caller's role does not include this."""

    def check(caller: Annotated[Caller, Depends(admitted)]) -> Caller:
        if not caller.may(role):
            raise NotAllowed(
                f"The key {caller.name!r} has the role {caller.role!r}; this needs {role!r}.",
                "Use another key, or give this one another role (service.keys).",
            )
        return caller

    return check


class DayLimits:
    """The tokens and the money that each key has spent since midnight UTC.

    A restart of the service sets them to zero.
    """

    def __init__(self, tokens: int | None, usd: float | None) -> None:
        self._tokens = tokens
        self._usd = usd
        self._day = date.min
        self._spent: dict[str, Spent] = defaultdict(Spent)

    def check(self) -> None:
        """Raise TooOften if the caller has reached a limit."""
        today = datetime.now(UTC).date()
        if today != self._day:
            self._day = today
            self._spent.clear()
        name = CALLER.get().name
        spent, limit = self._spent[name], ""
        if self._tokens is not None and spent.input_tokens + spent.output_tokens >= self._tokens:
            limit = f"take {self._tokens:,} tokens of models"
        elif self._usd is not None and (spent.cost_usd is None or spent.cost_usd >= self._usd):
            limit = f"spend ${self._usd:g} on models"
        if limit:
            raise TooOften(f"The key {name!r} may {limit} a day.", "Ask again after midnight UTC.")

    def add(self, meter: Meter) -> None:
        """Add the cost of a question to the caller's total."""
        for _, _, spent in meter.rows():
            self._spent[CALLER.get().name].add(spent)


# --- the guard ---


@dataclass(frozen=True)
class RequestLimits:
    """The largest size and the slowest speed of a request body.

    Each piece must arrive within `piece_seconds`, and the whole body at `bytes_a_second`, with a
    grace of `piece_seconds`.
    """

    upload_bytes: int
    json_bytes: int = 1 << 20
    piece_seconds: float = 30.0
    bytes_a_second: int = 1024


class Guard:
    """Middleware around all routes that refuses calls from foreign pages and bodies that are too
    large or too slow, and records every request in the log and the metrics.
    """

    def __init__(
        self, app: ASGIApp, settings: ServiceSettings, limits: RequestLimits, metrics: Metrics
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
                await drain(receive)
            if not status:
                await error_answer(error)(scope, receive, answer)
        finally:
            self._record(scope, request, status, time.monotonic() - started)

    def _record(self, scope: Scope, request: str, status: int, seconds: float) -> None:
        # The pattern of the route, not the path, which may contain names of documents and people.
        route = getattr(scope.get("route"), "path", None) or "other"
        method = scope["method"] if scope["method"] in METHODS else "other"
        self._metrics.request(method, route, status, seconds)
        fields = {"request": request, "method": method, "route": route, "status": status}
        fields |= {"ms": round(seconds * 1000, 1), "key": scope.get("caller")}
        logger.info("request", extra={"fields": fields | scope.get("log", {})})


def refuse_foreign_pages(headers: Headers, path: str, settings: ServiceSettings) -> None:
    """Raise NotAllowed for a request that a page of another site makes in a user's browser."""
    host = headers.get("host", "")
    if settings.is_open and re.sub(r":\d*$", "", host) not in LOOPBACK:
        # A foreign page whose name resolves to this machine (DNS rebinding) must read nothing.
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
        # For a picture or a script of a foreign page the browser sends no origin.
        message = "Pages of other places may not call this service."
        raise NotAllowed(message, "Name them in service.origins.")


async def drain(receive: Receive) -> None:
    """Discard the rest of a refused body for a while: many clients read no answer before they have
    sent everything. A client that sent `Expect: 100-continue` has not begun to send.
    """
    with suppress(TimeoutError):
        async with asyncio.timeout(DRAIN_SECONDS):
            more, size = True, 0
            while more and size < DRAIN_BYTES:
                message = await receive()
                more, size = message.get("more_body", False), size + len(message.get("body", b""))


class Body:
    """The body of a request within its limits. Raises TooLarge and TooSlow."""

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
        """Read the body and keep it for `receive`."""
        while not self._ended:
            self._whole.append(await self._next())

    async def receive(self) -> Message:
        """Return the next message."""
        return self._whole.pop(0) if self._whole else await self._next()

    async def _next(self) -> Message:
        if self._ended:
            return await self._receive()  # The next message says that the client has left.
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
