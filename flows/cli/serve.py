"""`trellis serve`: the service with its deployments in Prefect.

`trellis mcp`: the workspace for one MCP client, which starts this command itself.
"""

import asyncio
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from flows.cli.common import COMMON, Common
from flows.cli.options import Count
from flows.cli.running import command
from flows.cli.screen import Screen
from flows.orchestration import deployments
from flows.orchestration.local_server import HEARTBEAT, server_in_use
from flows.service.access import ROLES, new_key
from flows.service.app import create_app
from flows.service.asking import Questions
from flows.service.log import log_to_stderr
from flows.service.mcp_server import mcp_server
from flows.service.metrics import Metrics
from flows.service.server import serving
from flows.service.workspaces import Workspaces
from flows.setting_areas import ServiceSettings
from flows.settings import Settings
from storage.errors import UsageError, did_you_mean
from storage.filters import check_filter
from storage.layout import Layout
from tasks.load.discover import resolve

LOOPBACK = "127.0.0.1"
THIS_MACHINE = (LOOPBACK, "::1", "localhost")
# The environment of the runs that this process starts. A run is a process in the current folder,
# whose modules must not replace ours (PYTHONSAFEPATH).
RUN_ENVIRONMENT = {"PREFECT_FLOWS_HEARTBEAT_FREQUENCY": str(HEARTBEAT), "PYTHONSAFEPATH": "1"}

Listen = tuple[str, int | None]


@command
def serve(
    sources: Annotated[tuple[str, ...], Parameter(metavar="SOURCE")] = (),
    /,
    *,
    cron: Annotated[str | None, Parameter(metavar="EXPR")] = None,
    timezone: Annotated[str, Parameter(metavar="NAME")] = "UTC",
    listen: Annotated[str | None, Parameter(metavar="ADDRESS")] = None,
    no_prefect: bool = False,
    new_key: Annotated[str | None, Parameter(metavar="NAME:ROLE")] = None,
    where: Annotated[str | None, Parameter(metavar="FILTER")] = None,
    port: Count | None = None,
    pool: Annotated[str | None, Parameter(metavar="NAME")] = None,
    common: Common = COMMON,
) -> None:
    """Serve until interrupted; with --pool only register the deployments.

    Args:
        sources: The sources of index runs.
        cron: When to index: "0 3 * * *" is every night at three.
        timezone: The time zone of --cron (default UTC).
        listen: The address of the service, [HOST:]PORT (default 127.0.0.1:8100); a host that others
            can reach needs a key.
        no_prefect: Run the service alone, without a Prefect server and deployments.
        new_key: Only make a key with the role ask, edit or admin.
        where: The filter of the documents that the new key reads: "team = 'north'" (default: all).
        port: The port of Prefect's server, unless PREFECT_API_URL names one.
        pool: Only register the deployments for the workers of this pool.
    """
    screen = common.screen
    if new_key:
        return _show_new_key(new_key, where, screen)
    if where:
        raise UsageError("--where limits a new key, and none is made.", "Add --new-key NAME:ROLE.")
    if cron and not sources:
        raise UsageError(
            "--cron schedules index runs, and no SOURCE is named.", "Name what to index."
        )
    if no_prefect and (cron or pool or port):
        raise UsageError(
            "--no-prefect leaves out what --cron, --pool and --port are for.",
            "Leave out the one or the others.",
        )
    plan = deployments.Plan(
        sources=sources, workspace=common.workspace, cron=cron, timezone=timezone
    )
    if pool:
        return _register(plan, pool, screen)
    settings = common.settings()
    address = _listen(listen, settings)
    if sources:
        Layout(settings.workspace).refuse_copy()
    workspace = str(settings.workspace.absolute())
    keys = tuple(source.key for source in resolve(sources))
    plan = plan.model_copy(update={"sources": keys, "workspace": workspace})
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        if no_prefect:
            _serve_alone(plan, settings, address, screen)
        else:
            _serve_with_prefect(plan, settings, address, port, screen)
    except (KeyboardInterrupt, SystemExit):  # Prefect raises SystemExit on SIGTERM.
        screen.note("stopped")
    return None


def _show_new_key(wanted: str, where: str | None, screen: Screen) -> None:
    """Make a key and show it. Raises UsageError if `wanted` is not NAME:ROLE, FilterError."""
    name, _, role = wanted.partition(":")
    known = next((known for known in ROLES if known == (role or "ask")), None)
    if known is None or not name:
        remedy = f"{did_you_mean(role, ROLES)}Roles: {', '.join(ROLES)}."
        raise UsageError(f"{wanted!r} is no NAME:ROLE.", remedy)
    if where:
        check_filter(where)
    key, row = new_key(name, known, where)
    try:
        ServiceSettings(keys=(row,))
    except ValueError as error:
        remedy = "Use letters, digits and . @ - _"
        raise UsageError(f"{name!r} cannot be the name of a key.", remedy) from error
    screen.result(
        {"key": key, "row": row},
        f"A key for {name}. It is shown once; the row goes into TRELLIS_SERVICE_KEYS (semicolons "
        "between rows)",
    )


def _listen(text: str | None, settings: Settings) -> Listen:
    """Parse [HOST:]PORT; None means the default port. Raises UsageError."""
    host, _, number = (text or "").rpartition(":")
    if text and not (number.isdecimal() and int(number) < 65536):
        raise UsageError(
            f"--listen {text!r} is no address.", "Use PORT or HOST:PORT, such as 0.0.0.0:8100."
        )
    host = host.strip("[]") or LOOPBACK
    if host not in THIS_MACHINE and settings.service.is_open:
        raise UsageError(
            f"{host} can be reached by others, and no key is set.",
            "Make one: `trellis serve --new-key NAME:ROLE`, and set TRELLIS_SERVICE_KEYS; or leave "
            "--listen out.",
        )
    return host, int(number) if text else None


def _serve_alone(
    plan: deployments.Plan, settings: Settings, listen: Listen, screen: Screen
) -> None:
    """Serve without deployments."""
    with _service(settings, plan.sources, os.environ.get("PREFECT_API_URL"), listen) as address:
        served = {
            "service": address,
            "workspace": plan.workspace,
            "sources": plan.sources,
            "docs": f"{address}/docs",
        }
        screen.result(served, f"Serving on {address}; stop with Ctrl-C", without=("service",))
        threading.Event().wait()


@contextmanager
def _service(
    settings: Settings, sources: tuple[str, ...], prefect: str | None, listen: Listen
) -> Iterator[str]:
    """Run the service during the block and yield its address."""
    app = create_app(settings, prefect=prefect, sources=sources)
    with log_to_stderr(settings.service.log_texts), serving(app, *listen) as address:
        yield address


def _serve_with_prefect(
    plan: deployments.Plan, settings: Settings, listen: Listen, port: int | None, screen: Screen
) -> None:
    """Serve, and do the runs that Prefect's schedule or its page starts."""
    for name, value in RUN_ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    deployed = asyncio.run(deployments.deployments(plan))
    with (
        server_in_use(port) as (server, own),
        _service(settings, plan.sources, server, listen) as service,
    ):
        ui = server.removesuffix("/api")
        served = {
            "service": service,
            "server": server,
            "own": own,
            "ui": ui,
            "workspace": plan.workspace,
            "deployments": [deployment.full_name for deployment in deployed],
            "sources": plan.sources,
            "schedule": f'"{plan.cron}" ({plan.timezone})' if plan.cron else "on demand only",
        }
        title = f"Serving on {service}, runs on {ui}; stop with Ctrl-C"

        def ready() -> None:
            screen.result(served, title, without=("ui", "own", "service"))

        asyncio.run(deployments.serve(deployed, ready))


def _register(plan: deployments.Plan, pool: str, screen: Screen) -> None:
    """Register the deployments for a pool of workers. Raises UsageError for relative paths."""
    relative = [
        path for path in (*plan.sources, plan.workspace or "/") if not Path(path).is_absolute()
    ]
    if relative:
        raise UsageError(
            f"A worker runs in a folder of its own: {relative[0]!r} means nothing there.",
            "Give absolute paths.",
        )
    deployed = asyncio.run(deployments.deployments(plan))
    asyncio.run(deployments.register(deployed, pool))
    start = f"Start a worker where Trellis is installed: prefect worker start --pool {pool}"
    names = [deployment.full_name for deployment in deployed]
    screen.result({"pool": pool, "deployments": names}, f"Registered. {start}")


@command
def mcp(*, common: Common = COMMON) -> None:
    """Serve the workspace to one MCP client over standard input and output."""
    settings = common.settings()
    workspaces = Workspaces(settings)
    questions = Questions(workspaces, Metrics(), settings.service)
    common.screen.note(
        "Waiting for an MCP client on standard input; clients start this command themselves."
    )
    try:
        mcp_server(workspaces, questions).run("stdio")
    finally:
        workspaces.close()
