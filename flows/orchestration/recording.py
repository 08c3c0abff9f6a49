"""Recording: what the flows use of Prefect, with nothing of it leaving the machine.

Prefect reports its use to its makers, the client when it is imported and the server while it runs, unless the
environment says otherwise. So the environment is settled here, before the one place where flows import Prefect.

Every run opens three clients, and each reads the certificates of all authorities, 25 ms a time, also where its server
is reached over plain HTTP and none is ever looked at. There it reads one that has signed nothing: a recorded question
takes half the time.
"""

import asyncio
import atexit
import logging
import math
import os
import sys
import time
from collections.abc import Callable, Coroutine, Generator
from pathlib import Path
from typing import Any, ClassVar, ParamSpec, TypeVar, cast
from urllib.parse import urlsplit

# Not ours to decide where the person has decided.
os.environ.setdefault("DO_NOT_TRACK", "1")
os.environ.setdefault("PREFECT_SERVER_ANALYTICS_ENABLED", "false")
# The server that Prefect starts where none is configured takes longer than its 20 s on a busy machine.
os.environ.setdefault("PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS", "120")
# Its SQLite gives up on a lock after 10 s, and says so at length.
os.environ.setdefault("PREFECT_SERVER_DATABASE_TIMEOUT", "60")

import httpx
import prefect.client.orchestration
from prefect import Flow
from prefect.client.base import PrefectHttpxAsyncClient
from prefect.client.orchestration import PrefectClient
from prefect.context import FlowRunContext, TaskRunContext, refresh_global_settings_context
from prefect.exceptions import PrefectException
from prefect.logging.handlers import APILogHandler
from prefect.runtime import flow_run
from prefect.serializers import JSONSerializer, prefect_json_object_decoder, prefect_json_object_encoder
from prefect.settings import get_current_settings
from prefect.states import Completed, Failed
from prefect.utilities.importtools import from_qualified_name, to_qualified_name

from flows.orchestration.local_server import check_server
from flows.orchestration.past_runs import WORKSPACE
from flows.settings import Settings
from prompts.engine.errors import EngineError
from prompts.engine.key_masking import LogMask, mask_error, mask_keys
from storage.errors import StorageError, TrellisError
from storage.records import Record

__all__ = ["begin", "done", "failed", "flow", "flow_run"]

P = ParamSpec("P")
R = TypeVar("R")

logger = logging.getLogger(__name__)

_CERTIFICATES = "PREFECT_API_SSL_CERT_FILE"
_NO_AUTHORITY = str(Path(__file__).with_name("no_authority.pem"))


def spare_certificates() -> None:
    """Read no authorities' certificates for a server that is reached over plain HTTP; for any other, read them.

    Where the person has named a file of certificates, it stays.
    """
    api = get_current_settings().api
    if api.url is not None and urlsplit(api.url).scheme != "http":
        if os.environ.get(_CERTIFICATES) != _NO_AUTHORITY:
            return
        del os.environ[_CERTIFICATES]
    elif api.ssl_cert_file in {None, os.environ.get("SSL_CERT_FILE")}:
        os.environ[_CERTIFICATES] = _NO_AUTHORITY
    refresh_global_settings_context()


spare_certificates()


class _BoundedClient(PrefectHttpxAsyncClient):
    """Gives a request up after the time that its tries may take: Prefect's limit for a reply begins anew with each
    byte, and a server that says it is being maintained is asked for ever. For a minute then that server is not asked
    again: at its end a process would ask for each of its events."""

    given_up: ClassVar[dict[bytes, float]] = {}  # by server; monotonic seconds

    async def send(self, request: httpx.Request, *args: Any, **options: Any) -> Any:
        settings, server = get_current_settings(), request.url.netloc
        tries = 1 + settings.client.max_retries
        seconds = tries * settings.api.request_timeout + 2 ** (tries + 1)  # the pauses double
        words = f"Prefect's server gave no whole reply within {seconds:g} s"
        if time.monotonic() - self.given_up.get(server, -math.inf) < 60:
            raise httpx.ReadTimeout(words, request=request)
        try:
            async with asyncio.timeout(seconds):
                return await super().send(request, *args, **options)
        except TimeoutError as error:
            self.given_up[server] = time.monotonic()
            raise httpx.ReadTimeout(words, request=request) from error


prefect.client.orchestration.PrefectHttpxAsyncClient = _BoundedClient  # type: ignore[attr-defined]  # there is no other way


# --- flows -----------------------------------------------------------------------------------------------------------


class _Finished(Coroutine[Any, Any, Any]):
    """Mixed into a result that is there already: `asyncio.run` and `await` take it too, and give it back."""

    __slots__ = ()

    def send(self, _value: Any) -> Any:
        raise StopIteration(self)

    def throw(self, kind: Any, value: Any = None, _trace: Any = None) -> Any:
        raise value or kind

    def __await__(self) -> Generator[Any, Any, Any]:
        yield from ()
        return self


def _finished(result: Any) -> Any:
    if not isinstance(result, Record):
        return result
    kind: Any = type(result)
    own = {"__slots__": (), "__module__": kind.__module__}
    return type(kind)(kind.__name__, (_Finished, kind), own).model_construct(**dict(result))


class _Flow(Flow[P, R]):
    """A coroutine function where an event loop runs; anywhere else a function that waits for the end of its run.

    What it then gives may be given to `asyncio.run` as well: `asyncio.run(index("docs/"))` does what it says.
    """

    def __call__(self, *args: Any, **options: Any) -> Any:
        run: Any = _begun(super().__call__(*args, **options))
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return _finished(asyncio.run(run))
        return run


async def _begun(run: Coroutine[Any, Any, R]) -> R:
    """The run, where Prefect's server answers, if one is configured. Raises StorageError where it ceases to."""
    if address := get_current_settings().api.url:
        try:
            await check_server(address)
        except BaseException:
            run.close()
            raise
    try:
        return await run
    except httpx.TransportError as error:
        problem = f"Prefect's server has ceased to answer ({str(error) or type(error).__name__})"
        remedy = "Look after it, then run again: what models have answered, and what is published, is kept."
        raise StorageError(address or "Prefect", problem, remedy) from error


def flow(**options: Any) -> Callable[[Callable[P, R]], Flow[P, R]]:
    """Prefect's decorator for an async function, with Prefect's options; it may also be called without a loop.

    What it gives, or raises, is kept as JSON where Prefect keeps results (`PREFECT_LOCAL_STORAGE_PATH`).
    """
    return lambda function: _Flow(function, persist_result=True, result_serializer=RESULTS, **options)


def encoded(value: Any) -> Any:
    """For JSON: a record by its fields, one of our errors by its sentences, everything else as Prefect writes it.

    Not all as Prefect writes it: it takes what has a field `data` for an old form of its own, and gives that field.
    """
    if isinstance(value, Record):
        return {"__kind__": to_qualified_name(type(value)), "content": value.model_dump(mode="json")}
    if isinstance(value, TrellisError | EngineError):
        return {"__kind__": to_qualified_name(type(value)), "content": [value.message, value.remedy]}
    return prefect_json_object_encoder(value)


def decoded(value: dict[str, Any]) -> Any:
    """What `encoded` has written."""
    if "__kind__" not in value:
        return prefect_json_object_decoder(value)
    kind, content = from_qualified_name(value["__kind__"]), value["content"]
    if issubclass(kind, Record):
        return kind.model_validate(content)
    error = kind.__new__(kind, *content)
    error.message, error.remedy = content
    return error


RESULTS = JSONSerializer[Any](object_encoder=f"{__name__}.encoded", object_decoder=f"{__name__}.decoded")


async def begin(settings: Settings) -> None:
    """To be called as soon as a run knows its settings: their keys are hidden, our loggers reach its page.

    A run whose parameters do not say where its workspace lies has it as a label: `forget` looks there.
    """
    settings.keep_secrets()
    show_logs()
    run, place = FlowRunContext.get(), str(settings.workspace.absolute())
    if run is None or run.flow_run is None or (run.parameters or {}).get("workspace") == place:
        return
    try:
        await cast(PrefectClient, run.client).update_flow_run_labels(run.flow_run.id, {WORKSPACE: place})
    except (httpx.HTTPError, PrefectException) as error:
        logger.warning("The run is not marked as one on %s: %s", place, error)


@atexit.register
def _end_in_silence() -> None:
    """Prefect leaves threads to the very end, and what they hold of DuckDB's, that reports as leaked, at length.

    What was registered after this module was imported has run by then, and told what it had to tell.
    """
    sys.stderr.flush()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


def done(message: str, result: R) -> R:
    """What a flow returns so that its run ends with a message for people; whoever called the flow gets `result`."""
    # Prefect takes a state in place of a result, and gives the result out of it to the caller.
    return cast(R, Completed(message=mask_keys(message), data=result))


def failed(error: Exception, kind: type[R]) -> R:
    """What a flow returns so that its run fails with the error's own words; whoever called the flow gets it raised.

    For errors raised on purpose: Prefect's own way would put a traceback between a person and the message.
    """
    mask_error(error)
    return cast(R, Failed(message=str(error), data=error))  # `kind` only says what the flow promised


# --- logs ------------------------------------------------------------------------------------------------------------

LAYERS = ("flows", "tasks", "prompts", "storage")
# Those of Prefect that hold what a run says, and what it fails with.
RUNS = ("prefect.flow_runs", "prefect.task_runs", "prefect.extra")


class RunLog(APILogHandler):
    """Sends what is logged inside of a run to its page; outside of one there is no page."""

    def emit(self, record: logging.LogRecord) -> None:
        if FlowRunContext.get() is not None or TaskRunContext.get() is not None:
            super().emit(record)


def show_logs() -> None:
    """Let the loggers of all our layers reach the page of the run; once is enough for a process.

    From the level on that Prefect's own setting names, INFO by default.

    Prefect's own setting for this (PREFECT_LOGGING_EXTRA_LOGGERS) is read when Prefect is imported, which a worker does
    long before it loads a flow.
    """
    extra = logging.getLogger("prefect.extra").handlers
    for layer in LAYERS:
        logger = logging.getLogger(layer)
        if not any(isinstance(handler, APILogHandler) for handler in logger.handlers):
            logger.addHandler(RunLog())
        if logger.level == logging.NOTSET:
            logger.setLevel(get_current_settings().logging.level)
    loggers = [logging.getLogger(name) for name in (*RUNS, *LAYERS, "")]
    for handler in {*extra, *(handler for logger in loggers for handler in logger.handlers)}:
        if not any(isinstance(known, LogMask) for known in handler.filters):
            handler.addFilter(LogMask())
