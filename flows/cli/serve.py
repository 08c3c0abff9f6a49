"""`trellis serve`: the service and the deployments until somebody ends it, or deployments for the workers of a pool.
`trellis mcp`: the workspace for one MCP client, which starts this command and talks to it."""

import asyncio
import os
import signal
import threading
from argparse import Namespace
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from flows.cli.screen import Screen
from flows.orchestration.local_server import HEARTBEAT, own_server
from flows.settings import Settings, load_settings, settings_file
from storage.errors import UsageError, did_you_mean
from tasks.load.discover import resolve

LOOPBACK = "127.0.0.1"

if TYPE_CHECKING:  # Prefect takes a second to load: what was typed is checked first
    from prefect.deployments.runner import RunnerDeployment

    from flows.orchestration.deployments import Plan


def serve(options: Namespace, screen: Screen) -> None:
    """Serve until told to end; with --pool register the deployments for that pool's workers and be done."""
    if options.new_key:
        return _new_key(options.new_key, screen)
    if options.cron and not options.sources:
        raise UsageError("--cron schedules index runs, and no SOURCE is named.", "Name what to index.")
    if options.no_prefect and (options.cron or options.pool or options.port):
        raise UsageError(
            "--no-prefect leaves out what --cron, --pool and --port are for.", "Leave out the one or the others."
        )
    if options.pool:
        return _register(options, screen)
    settings = load_settings({"workspace": options.workspace})
    listen = _listen(options.listen, settings)
    sources = tuple(source.key for source in resolve(options.sources))
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        if options.no_prefect:
            _serve_alone(settings, sources, listen, screen)
        else:
            _serve_with_prefect(options, settings, sources, listen, screen)
    except (KeyboardInterrupt, SystemExit):  # told to end: by Ctrl-C, or by SIGTERM while Prefect handles that one
        screen.note("stopped")


def _new_key(wanted: str, screen: Screen) -> None:
    from flows.service.access import ROLES, new_key
    from flows.settings import ServiceSettings

    name, _, role = wanted.partition(":")
    known = next((known for known in ROLES if known == (role or "ask")), None)
    if known is None or not name:
        raise UsageError(f"{wanted!r} is no NAME:ROLE.", f"{did_you_mean(role, ROLES)}Roles: {', '.join(ROLES)}.")
    key, row = new_key(name, known)
    try:
        ServiceSettings(keys=(row,))
    except ValueError as error:
        raise UsageError(f"{name!r} cannot be the name of a key.", "Use letters, digits and . @ - _") from error
    title = f"A key for {name}. It is shown once; the row goes into TRELLIS_SERVICE_KEYS (semicolons between rows)"
    screen.result({"key": key, "row": row}, title)


Listen = tuple[str, int | None]


def _listen(text: str | None, settings: Settings) -> Listen:
    """The host and the port (None: the usual one) of [HOST:]PORT. Raises UsageError."""
    host, _, number = (text or "").rpartition(":")
    if text and not (number.isdecimal() and int(number) < 65536):
        raise UsageError(f"--listen {text!r} is no address.", "Use PORT or HOST:PORT, such as 0.0.0.0:8100.")
    host = host.strip("[]") or LOOPBACK
    if not (host in {LOOPBACK, "::1", "localhost"} or settings.service.keys):
        raise UsageError(
            f"{host} can be reached by others, and no key is set.",
            "Make one: `trellis serve --new-key NAME:ROLE`, and set TRELLIS_SERVICE_KEYS; or leave --listen out.",
        )
    return host, int(number) if text else None


def _serve_alone(settings: Settings, sources: tuple[str, ...], listen: Listen, screen: Screen) -> None:
    """The service without deployments: index runs are processes, or Prefect's where its server is named."""
    with _service(settings, sources, os.environ.get("PREFECT_API_URL"), listen) as address:
        facts = {"workspace": str(settings.workspace.absolute()), "sources": sources, "docs": f"{address}/docs"}
        screen.result({"service": address, **facts}, f"Serving on {address}; stop with Ctrl-C", without=("service",))
        ended = threading.Event()
        while not ended.wait(3600):
            pass


@contextmanager
def _service(settings: Settings, sources: tuple[str, ...], prefect: str | None, listen: Listen) -> Iterator[str]:
    from flows.service.app import create_app
    from flows.service.log import log_to_stderr
    from flows.service.server import serving

    def keys() -> tuple[str, ...]:
        return load_settings({"workspace": settings.workspace}).service.keys

    def changed() -> object:
        try:
            return settings_file().stat().st_mtime_ns
        except OSError:
            return None

    app = create_app(settings, prefect=prefect, sources=sources, reread=(keys, changed))
    with log_to_stderr(settings.service.log_texts), serving(app, *listen) as address:
        yield address


def _serve_with_prefect(
    options: Namespace, settings: Settings, sources: tuple[str, ...], listen: Listen, screen: Screen
) -> None:
    _settle()
    from flows.orchestration.deployments import Plan, deployments

    workspace = str(settings.workspace.absolute())
    plan = Plan(sources=sources, workspace=workspace, cron=options.cron, timezone=options.timezone)
    runner_deployments = asyncio.run(deployments(plan))
    with _server(options.port) as (address, own), _service(settings, sources, address, listen) as service:
        _serve(plan, runner_deployments, {"service": service, "server": address, "own": own}, screen)


def _settle() -> None:
    """What Prefect, and the runs that it starts, take from the environment; to be called before Prefect is imported."""
    os.environ.setdefault("PREFECT_FLOWS_HEARTBEAT_FREQUENCY", str(HEARTBEAT))
    # A run is a process in this folder: packages that lie here must not take the names of ours.
    os.environ["PYTHONSAFEPATH"] = "1"


def _serve(
    plan: "Plan", runner_deployments: "list[RunnerDeployment]", where: Mapping[str, object], screen: Screen
) -> None:
    from flows.orchestration.deployments import serve as serve_deployments

    served = {
        **where, "ui": str(where["server"]).removesuffix("/api"), "workspace": plan.workspace,
        "deployments": [deployment.full_name for deployment in runner_deployments], "sources": plan.sources,
        "schedule": f'"{plan.cron}" ({plan.timezone})' if plan.cron else "on demand only",
    }  # fmt: skip
    title = f"Serving on {where['service']}, runs on {served['ui']}; stop with Ctrl-C"
    without = ("ui", "own", "service")
    asyncio.run(serve_deployments(runner_deployments, lambda: screen.result(served, title, without=without)))


@contextmanager
def _server(port: int | None) -> Iterator[tuple[str, bool]]:
    """The address of the API to use, and whether its server is our own."""
    from prefect.settings import PREFECT_API_URL, get_current_settings, temporary_settings

    settings = get_current_settings()
    if settings.api.url:
        if port is not None:
            raise UsageError(
                f"--port {port} is for a server of our own, and PREFECT_API_URL names {settings.api.url}.",
                "Leave --port out, or unset PREFECT_API_URL.",
            )
        yield settings.api.url, False
        return
    with own_server(port, Path(settings.home)) as address, temporary_settings({PREFECT_API_URL: address}):
        yield address, True


def _register(options: Namespace, screen: Screen) -> None:
    foreign = [path for path in (*options.sources, options.workspace or "/") if not Path(path).is_absolute()]
    if foreign:
        raise UsageError(
            f"A worker runs in a folder of its own: {foreign[0]!r} means nothing there.", "Give absolute paths."
        )
    from flows.orchestration.deployments import Plan, deployments, register

    plan = Plan(
        sources=tuple(options.sources), workspace=options.workspace, cron=options.cron, timezone=options.timezone
    )
    runner_deployments = asyncio.run(deployments(plan))
    asyncio.run(register(runner_deployments, options.pool))
    names = [deployment.full_name for deployment in runner_deployments]
    title = f"Registered. Start a worker where Trellis is installed: prefect worker start --pool {options.pool}"
    screen.result({"pool": options.pool, "deployments": names}, title)


# --- mcp -------------------------------------------------------------------------------------------------------------


def mcp(options: Namespace, screen: Screen) -> None:
    """Serve the workspace to one MCP client until it goes. Standard output is the protocol's: nothing else is written
    there."""
    from flows.service.mcp_server import mcp_server
    from flows.service.workspaces import Workspaces

    workspaces = Workspaces(load_settings({"workspace": options.workspace}))
    screen.note("Waiting for an MCP client on standard input; clients start this command themselves.")
    try:
        mcp_server(workspaces).run("stdio")
    finally:
        workspaces.close()
