"""What a recorded run leaves in its workspace: its parameters, its page and its result.

Prefect stores ids, sizes, states and the parameters of a run. Texts of documents and answers are
kept only here, in `recorded/RUN/` of the workspace, where RUN is the id of Prefect's flow run.
"""

import shutil
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from prefect.client.orchestration import PrefectClient
from prefect.context import FlowRunContext
from prefect.exceptions import ObjectNotFound
from prefect.settings import get_current_settings
from pydantic_core import to_json

from flows.orchestration.local_server import HOST, check_server, prefect_server
from prompts.engine.bridge import waiting
from prompts.engine.key_masking import mask_keys
from storage.errors import StorageError
from storage.layout import write_atomically
from storage.records import Record

RECORDED = "recorded"
STARTED, PAGE, RESULT = "started.json", "page.md", "result.json"


class StartedRun(Record):
    """The API address of the server that records a run, and the run's parameters."""

    server: str | None
    parameters: dict[str, Any]


def keep_parameters(workspace: Path) -> Path | None:
    """Store the parameters of the current flow run; return its folder, None outside of a run."""
    context = FlowRunContext.get()
    if context is None or context.flow_run is None:
        return None
    folder = workspace.absolute() / RECORDED / str(context.flow_run.id)
    folder.mkdir(parents=True, exist_ok=True)
    started = StartedRun(server=get_current_settings().api.url, parameters=context.parameters or {})
    text = to_json(started, fallback=str).decode()
    write_atomically(folder / STARTED, mask_keys(text))
    return folder


def keep(workspace: Path, name: str, text: str) -> Path | None:
    """Store a text of the current flow run; return its file, None outside of a flow run."""
    folder = keep_parameters(workspace)
    if folder is None:
        return None
    write_atomically(folder / name, mask_keys(text))
    return folder / name


def forget_runs(workspace: Path, holds: Callable[[str], bool]) -> int:
    """Delete the flow runs of which a stored text `holds` what is forgotten; return how many.

    Their Prefect server deletes its records of them. Raises StorageError where a server on another
    machine does not answer.
    """
    folders = [folder for folder in sorted((workspace / RECORDED).glob("*")) if _any(folder, holds)]
    by_server: dict[str | None, list[UUID]] = defaultdict(list)
    for folder in folders:
        by_server[_server_of(folder)].append(UUID(folder.name))
    for server, flow_runs in by_server.items():
        with nullcontext(server) if server is not None else prefect_server() as address:
            _delete(flow_runs, address)
    for folder in folders:
        shutil.rmtree(folder)
    return len(folders)


def _any(folder: Path, holds: Callable[[str], bool]) -> bool:
    return any(holds(file.read_text(encoding="utf-8")) for file in folder.iterdir())


def _server_of(folder: Path) -> str | None:
    """Return the server of a run; None for one of this machine that has ended: its successor has
    the records.
    """
    server = StartedRun.model_validate_json((folder / STARTED).read_text(encoding="utf-8")).server
    if server is None:
        return None
    try:
        waiting(check_server)(server)
    except StorageError:
        if urlsplit(server).hostname not in {HOST, "localhost"}:
            raise
        return None
    return server


@waiting
async def _delete(flow_runs: Sequence[UUID], server: str) -> None:
    async with PrefectClient(server) as client:
        for flow_run in flow_runs:
            with suppress(ObjectNotFound):  # somebody else has deleted it
                await client.delete_flow_run(flow_run)
