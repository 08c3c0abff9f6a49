"""Who may use the service, how much and how often, and the one form of its errors: {type, message, remedy}."""

import asyncio
import hashlib
import json
import logging
import secrets
import time
import uuid
from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Literal

from fastapi import Request
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from flows.service.metrics import Metrics
from flows.service.page_files import PATHS
from flows.setting_areas import ServiceSettings
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
MOST_HEADERS = 100
HEADER_BYTES = 32 << 10  # of all headers together, and of the address
# What else a client calls a method is `other`: it may write anything, and each name would be kept for good.
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "WEBSOCKET"})
LONGEST_LOGGED = 200  # characters
MOST_JSON = 1 << 20  # bytes
MINUTE = 60.0  # seconds
CLIENT_LEFT = 499  # in the log and the metrics, as proxies write it
LINGER_SECONDS = 2.0
LINGER_BYTES = 16 << 20
LOOPBACK = {"127.0.0.1", "localhost", "[::1]"}
# What is told to anybody: whether the service works.
OPEN = frozenset({"/health", "/ready"})

logger = logging.getLogger("trellis.service")


# --- errors ----------------------------------------------------------------------------------------------------------


class ServiceError(TrellisError):
    """A request that the service refuses; `status` is HTTP's."""

    status = 400


class KeyMissing(ServiceError):
    """The request bears no key, or one that is none of those that are set."""

    status = 401


class NotAllowed(ServiceError):
    """The key's role may not do that, or the page that calls may not call."""

    status = 403


class Taken(ServiceError):
    """An upload has the name of a document that comes from elsewhere."""

    status = 409


class NotAFile(ServiceError):
    """A form where the file itself is to be sent."""

    status = 415


class TooLarge(ServiceError):
    """A body or its headers are larger than they may be."""

    status = 413


class TooOften(ServiceError):
    """A key has used up its requests of the minute, or its tokens or money of the day."""

    status = 429


class TooSlow(ServiceError):
    """A body that stopped coming."""

    status = 408


class NotReady(ServiceError):
    """The service has begun, and is not yet there for questions."""

    status = 503


# The first that fits.
_STATUS: tuple[tuple[type[Exception], int], ...] = (
    (NotFound, 404), (WorkspaceLocked, 409), (BudgetReached, 402), (UsageError, 400), (StorageError, 500),
    (TrellisError, 409), (ModelUnavailable, 503), (EngineError, 502),
)  # fmt: skip


def status_of(error: Exception) -> int:
    """The HTTP status of an error; 500 for a fault of ours."""
    if isinstance(error, ServiceError):
        return error.status
    return next((status for kind, status in _STATUS if isinstance(error, kind)), 500)


def shown_error(error: Exception) -> dict[str, str]:
    """An error as clients read it, keys masked; of a fault of ours only that it is one."""
    if isinstance(error, TrellisError | EngineError):
        return error_of(error)
    return {"type": "InternalError", "message": "The service failed at this.", "remedy": "Its log says more."}


# --- keys ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Caller:
    """Who asks, by the name of the key."""

    name: str
    role: Role

    def may(self, role: Role) -> bool:
        """Whether the role includes another."""
        return ROLES.index(self.role) >= ROLES.index(role)


NOBODY = Caller("nobody", "admin")  # where no key is set, who reaches this machine may do all
CALLER = ContextVar[Caller]("caller", default=NOBODY)  # of the request that is answered


class DayLimits:
    """What each key's questions have taken of models since midnight UTC, in tokens and in US dollars; a service that
    starts again counts anew."""

    def __init__(self, tokens: int | None, usd: float | None) -> None:
        self._tokens = tokens
        self._usd = usd
        self._day = date.min
        self._taken: dict[str, Spent] = defaultdict(Spent)

    def check(self) -> None:
        """Raises TooOften where the caller has used up what a day has; the question that does so is answered."""
        today = datetime.now(UTC).date()
        if today != self._day:
            self._day = today
            self._taken.clear()
        name = CALLER.get().name
        used = self._taken[name]
        if self._tokens is not None and used.input_tokens + used.output_tokens >= self._tokens:
            raise self._used_up(f"take {self._tokens:,} tokens of models")
        if self._usd is not None and used.cost_usd is None:
            raise TooOften(
                f"What the questions of the key {name!r} cost today is not known.", "Use models with a list price."
            )
        if self._usd is not None and used.cost_usd is not None and used.cost_usd >= self._usd:
            raise self._used_up(f"spend ${self._usd:g} on models")

    def add(self, meter: Meter) -> None:
        """Count what a question of the caller took."""
        for _, _, spent in meter.rows():
            self._taken[CALLER.get().name].add(spent)

    def _used_up(self, most: str) -> TooOften:
        return TooOften(f"The key {CALLER.get().name!r} may {most} a day.", "Ask again after midnight UTC.")


def new_key(name: str, role: Role) -> tuple[str, str]:
    """A key, and its row for the setting `service.keys`, which does not give the key away."""
    key = f"trl-{secrets.token_urlsafe(32)}"
    return key, f"{name}:{role}:{_hashed(key)}"


def _hashed(key: str) -> str:
    # Of 256 random bits a plain hash tells nothing: salt and slowness protect words that people choose.
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()


# The keys in force now, and what changes where they may have: a file and the time of its last change.
Reread = tuple[Callable[[], Sequence[str]], Callable[[], object]]


class KeyList:
    """Who may use the service, by the hash of the key. The rows are read anew as soon as their file
    changes.
    """

    def __init__(self, rows: Sequence[str], reread: Reread | None) -> None:
        self._callers = _callers_of(rows)
        self._reread = reread
        self._state = reread[1]() if reread else None

    def callers(self) -> Mapping[str, Caller]:
        """The callers that are let in now, by the hash of their key.

        Where the rows cannot be read, or all are gone, the earlier keys stay in force: a mistake in the file must not
        open the service to everybody.
        """
        if self._reread is None or (state := self._reread[1]()) == self._state:
            return self._callers
        self._state = state
        try:
            rows = self._reread[0]()
        except TrellisError as error:
            logger.warning("The keys were not read anew, and those before hold: %s", error)
            return self._callers
        if rows or not self._callers:
            self._callers = _callers_of(rows)
        else:
            logger.warning("The settings name no key any more; those before hold until the service starts again.")
        return self._callers


def _callers_of(rows: Sequence[str]) -> dict[str, Caller]:
    parts = [row.rsplit(":", 2) for row in rows]
    return {digest: Caller(name, next(r for r in ROLES if r == role)) for name, role, digest in parts}


def _caller(headers: Headers, callers: Mapping[str, Caller]) -> Caller:
    """The caller that a request's key names. KeyMissing."""
    bearer = headers.get("authorization", "")
    key = bearer[7:].strip() if bearer[:7].lower() == "bearer " else headers.get("x-api-key", "")
    caller = callers.get(_hashed(key)) if key else None
    if caller is None:
        what = "This key is not known." if key else "The request bears no key."
        raise KeyMissing(what, "Send `Authorization: Bearer KEY` with a key of this service.")
    return caller


def needs(role: Role) -> Callable[[Request], Caller]:
    """A dependency of a route: its caller, who has at least this role. NotAllowed."""

    def check(request: Request) -> Caller:
        caller: Caller = request.scope["caller"]
        if not caller.may(role):
            raise NotAllowed(
                f"The key {caller.name!r} has the role {caller.role!r}; this needs {role!r}.",
                "Use another key, or give this one another role (service.keys).",
            )
        return caller

    return check


# --- the guard -------------------------------------------------------------------------------------------------------


@dataclass
class RequestLimits:
    """What a request may be: bytes of a file and of any other body, seconds in which a piece of it
    must come, and bytes a second, which it may fall short of for as long.
    """

    upload_bytes: int
    json_bytes: int = MOST_JSON
    piece_seconds: float = 30.0
    bytes_a_second: int = 1024


class Guard:
    """Lets in whom a key names, holds them to their limits, and enters every request in the log and the metrics.

    Stands before everything that the service answers, so that no route can be forgotten: what is mounted beside the
    routes has `scope["caller"]` too. A body other than an uploaded file's is read here, whole, before anything is done
    for it.
    """

    def __init__(
        self,
        app: ASGIApp,
        settings: ServiceSettings,
        limits: RequestLimits,
        metrics: Metrics,
        reread: "Reread | None" = None,
    ) -> None:
        self._app = app
        self._settings = settings
        self._limits = limits
        self._metrics = metrics
        self._keys = KeyList(settings.keys, reread)
        self._recent: dict[str, deque[float]] = defaultdict(deque)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in {"http", "websocket"}:
            await self._app(scope, receive, send)
            return
        entry = _Entry(scope, send)
        try:
            scope["request_id"] = entry.request_id
            upload = scope["type"] == "http" and scope["method"] == "PUT"
            body = entry.body = _Body(receive, self._limits, upload, Headers(scope=scope))
            scope["caller"] = entry.caller = self._admitted(scope)
            CALLER.set(entry.caller)
            body.check_length()
            if scope["type"] == "http" and not upload:
                await body.read_whole()
            with self._metrics.in_flight.track_inprogress():
                await self._app(scope, body.receive if scope["type"] == "http" else receive, entry.send)
        except ServiceError as error:
            await entry.refuse(error)
        except ClientDisconnect:
            entry.status = entry.status or CLIENT_LEFT
        except Exception as error:
            logger.exception("request failed", extra={"fields": {"request": entry.request_id}})
            await entry.refuse(error)
        finally:
            entry.end(self._metrics)

    def _admitted(self, scope: Scope) -> Caller:
        headers, callers = Headers(scope=scope), self._keys.callers()
        size = sum(len(name) + len(value) for name, value in scope["headers"])
        size += len(scope.get("raw_path") or b"") + len(scope.get("query_string", b""))
        if len(scope["headers"]) > MOST_HEADERS or size > HEADER_BYTES:
            error = TooLarge(
                f"A request may have {MOST_HEADERS} headers, and {HEADER_BYTES:,} bytes of headers and address.",
                "Send less of them.",
            )
            error.status = 431
            raise error
        host = headers.get("host", "").rsplit(":", 1)[0] if not headers.get("host", "").endswith("]") else "[::1]"
        if not callers and host not in LOOPBACK:
            # A page elsewhere whose name leads to this machine must not read what is here.
            raise NotAllowed(
                f"This service has no keys and is not called {host!r}.", "Use http://127.0.0.1, or set keys."
            )
        origin = headers.get("origin")
        own = {f"http://{headers.get('host')}", f"https://{headers.get('host')}"}
        if origin is not None and origin not in own and origin not in self._settings.origins:
            raise NotAllowed(f"Pages of {origin[:200]!r} may not call this service.", "Name it in service.origins.")
        opens_page = headers.get("sec-fetch-mode") == "navigate" and scope["path"] in PATHS | {"/docs"}
        if origin is None and headers.get("sec-fetch-site") in {"cross-site", "same-site"} and not opens_page:
            # A picture or a script of a page elsewhere: its browser tells no origin, and would do what is asked.
            raise NotAllowed("Pages of other places may not call this service.", "Name them in service.origins.")
        if scope["path"] in OPEN | PATHS or (scope["type"] == "http" and scope["method"] == "OPTIONS"):
            return Caller("anybody", "ask")
        caller = _caller(headers, callers) if callers else NOBODY
        self._count(caller)
        return caller

    def _count(self, caller: Caller) -> None:
        if self._settings.rpm is None:
            return
        now, recent = time.monotonic(), self._recent[caller.name]
        while recent and now - recent[0] >= MINUTE:
            recent.popleft()
        if len(recent) >= self._settings.rpm:
            wait = MINUTE - (now - recent[0])
            raise TooOften(
                f"The key {caller.name!r} may make {self._settings.rpm} requests a minute.", f"Wait {wait:.0f} seconds."
            )
        recent.append(now)


class _Body:
    """The body of a request, within its limits. Raises TooLarge and TooSlow."""

    def __init__(self, receive: Receive, limits: RequestLimits, upload: bool, headers: Headers) -> None:
        self._receive = receive
        self._limits = limits
        self._upload = upload
        self._most = limits.upload_bytes if upload else limits.json_bytes
        self._size = 0
        self._waited = 0.0  # seconds
        self._whole: list[Message] = []
        self._ended = False
        self._lets_out = limits.json_bytes
        self._length = headers.get("content-length", "0")
        self._waits = "expect" in headers  # for leave to send; what it is not given is not sent

    def check_length(self) -> None:
        """Refuse what says by itself that it is too large, before any of it comes."""
        if not self._length.isdecimal() or int(self._length) > self._most:
            raise self._too_large()

    async def let_out(self) -> None:
        """Take some of what still comes of a request that was refused: a client that sends on would not read why."""
        if not self._ended and not self._waits:
            with suppress(TimeoutError):
                async with asyncio.timeout(LINGER_SECONDS):
                    while self._size < self._lets_out:
                        message = await self._receive()
                        self._size += len(message.get("body", b""))
                        if not message.get("more_body", False):
                            return

    async def read_whole(self) -> None:
        """Keep the body for who asks for it."""
        while not self._ended:
            message = await self._next()
            self._whole.append(message)
            if message["type"] == "http.disconnect":
                return

    async def receive(self) -> Message:
        """The next message."""
        return self._whole.pop(0) if self._whole else await self._next()

    async def _next(self) -> Message:
        if self._ended:
            return await self._receive()  # who waits here learns that the client has gone
        limits, began = self._limits, time.monotonic()
        seconds = limits.piece_seconds + self._size / limits.bytes_a_second - self._waited
        try:
            message = await asyncio.wait_for(self._receive(), max(0.0, min(limits.piece_seconds, seconds)))
        except TimeoutError as error:
            raise TooSlow(
                f"Nothing came for {limits.piece_seconds:g} seconds, or less than {limits.bytes_a_second:,} bytes a "
                "second.",
                "Send the whole body, then wait.",
            ) from error
        self._waited += time.monotonic() - began
        self._size += len(message.get("body", b""))
        self._ended = not message.get("more_body", False)
        if self._size > self._most:
            raise self._too_large()
        return message

    def _too_large(self) -> TooLarge:
        self._lets_out = self._most + LINGER_BYTES
        if self._upload:
            return TooLarge(
                f"An uploaded file may have {self._most:,} bytes.", "Divide it, or raise service.upload_bytes."
            )
        return TooLarge(
            f"A body other than an uploaded file may have {self._most:,} bytes.", "Ask with less: this limit is fixed."
        )


@dataclass
class _Entry:
    """One request in the log."""

    scope: Scope
    _send: Send
    caller: Caller | None = None
    body: _Body | None = None
    status: int = 0
    request_id: str = field(default_factory=lambda: uuid.uuid4().hex[:16])
    started: float = field(default_factory=time.monotonic)

    async def send(self, message: Message) -> None:
        """Send on; the answer bears the request's id."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = [*message.get("headers", ()), (b"x-request-id", self.request_id.encode())]
            headers.append((b"x-content-type-options", b"nosniff"))
            message = {**message, "headers": headers}
        elif self.body is not None and message["type"] == "http.response.body" and not message.get("more_body"):
            await self._send({**message, "more_body": True})
            await self.body.let_out()
            message = {"type": "http.response.body", "body": b""}
        await self._send(message)

    async def refuse(self, error: Exception) -> None:
        """Answer with an error, where no answer has begun."""
        if self.status:
            return
        if self.scope["type"] == "websocket":
            self.status = status_of(error)
            await self._send({"type": "websocket.close", "code": 1008, "reason": shown_error(error)["message"][:100]})
            return
        body = json.dumps({"error": shown_error(error)}, ensure_ascii=False).encode()
        # What is left of a large body is not read: the connection ends. The length lets the client read before that.
        headers = [(b"content-type", b"application/json"), (b"connection", b"close")]
        headers.append((b"content-length", str(len(body)).encode()))
        if status_of(error) == 401:
            headers.append((b"www-authenticate", b"Bearer"))
        await self.send({"type": "http.response.start", "status": status_of(error), "headers": headers})
        await self.send({"type": "http.response.body", "body": body})

    def end(self, metrics: Metrics) -> None:
        """Enter it: the route and not the path, which may hold names of documents and people."""
        seconds = time.monotonic() - self.started
        route = getattr(self.scope.get("route"), "path", None) or "other"
        method = self.scope.get("method", "WEBSOCKET")
        method = method if method in METHODS else "other"
        metrics.request(method, route, self.status, seconds)
        fields = {
            "request": self.request_id, "method": method, "route": route, "status": self.status,
            "ms": round(seconds * 1000, 1), "key": self.caller.name if self.caller else None,
            **self.scope.get("log", {}),
        }  # fmt: skip
        logger.info("request", extra={"fields": fields})
