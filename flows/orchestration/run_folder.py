"""What a recorded run leaves in its workspace: its parameters, its page and its result.

Prefect keeps ids, sizes and states, and the parameters of a run. Texts of documents and answers are
kept here alone, in `recorded/RUN/` of the workspace, where RUN is the id of Prefect's flow run.
"""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar
from uuid import UUID

from prefect.client.orchestration import get_client
from prefect.context import FlowRunContext
from prefect.exceptions import ObjectNotFound
from pydantic_core import to_json

from flows.orchestration.local_server import prefect_server
from prompts.engine.bridge import waiting
from prompts.engine.key_masking import mask_keys
from storage.records import Record

RECORDED = "recorded"
PARAMETERS, PAGE, RESULT = "parameters.json", "page.md", "result.json"
RecordT = TypeVar("RecordT", bound=Record)


def keep_parameters(workspace: Path) -> Path | None:
    """Keep the parameters of this flow run; gives its folder, None outside of a run."""
    context = FlowRunContext.get()
    if context is None or context.flow_run is None:
        return None
    folder = workspace.absolute() / RECORDED / str(context.flow_run.id)
    folder.mkdir(parents=True, exist_ok=True)
    parameters = to_json(context.parameters, fallback=str).decode()
    (folder / PARAMETERS).write_text(mask_keys(parameters), encoding="utf-8")
    return folder


def keep(workspace: Path, name: str, text: str) -> Path | None:
    """Keep a text of the flow run that goes on, with its parameters; None outside of a flow run."""
    folder = keep_parameters(workspace)
    if folder is None:
        return None
    (folder / name).write_text(mask_keys(text), encoding="utf-8")
    return folder / name


def result_of(workspace: Path, flow_run: UUID, kind: type[RecordT]) -> RecordT | None:
    """Read the result that a flow run has left; None where it has left none."""
    path = workspace / RECORDED / str(flow_run) / RESULT
    return kind.model_validate_json(path.read_text(encoding="utf-8")) if path.is_file() else None


def forget_runs(workspace: Path, holds: Callable[[str], bool]) -> int:
    """Delete the flow runs of a workspace that have left a text of which `holds` is true, with all
    they have left.

    Prefect's server, the configured one or one of our own, deletes its records of them. Returns how
    many runs it were. Raises StorageError where that server does not answer.
    """
    folders = [folder for folder in sorted((workspace / RECORDED).glob("*")) if _any(folder, holds)]
    if folders:
        with prefect_server():
            _delete([UUID(folder.name) for folder in folders])
    for folder in folders:
        shutil.rmtree(folder)
    return len(folders)


def _any(folder: Path, holds: Callable[[str], bool]) -> bool:
    return any(holds(file.read_text(encoding="utf-8")) for file in folder.iterdir())


@waiting
async def _delete(flow_runs: list[UUID]) -> None:
    async with get_client() as client:
        for flow_run in flow_runs:
            try:
                await client.delete_flow_run(flow_run)
            except ObjectNotFound:
                continue  # somebody has deleted it, or another server has it
