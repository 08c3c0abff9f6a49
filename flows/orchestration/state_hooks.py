"""Events and state hooks: announce what was published, and clean up after runs that fail, crash or
are cancelled.
"""

import re
from pathlib import Path
from typing import Any

from prefect import Flow, State
from prefect.client.schemas.objects import FlowRun
from prefect.events import emit_event
from prefect.logging.loggers import flow_run_logger

from flows.settings import load_settings
from prompts.engine.key_masking import mask_keys
from storage.errors import NoGeneration, StorageError, TrellisError, WorkspaceLocked
from storage.run_records import AnswerChange, IndexReport
from storage.workspace import Workspace

EVENT = "trellis.index.published"
CHANGE_EVENT = "trellis.answer.changed"
GOES_ON = "the next run goes on from what models have answered."


def resource_of(workspace: Path) -> dict[str, str]:
    """Return a workspace as the resource of an event.

    Its id is `trellis.workspace.` and the path, in a-z, 0-9 and dashes.
    """
    path = str(workspace.absolute())
    slug = re.sub(r"[^a-z0-9]+", "-", path.lower()).strip("-")
    return {"prefect.resource.id": f"trellis.workspace.{slug}", "prefect.resource.name": path}


def announce(report: IndexReport, workspace: Path) -> None:
    """Emit the event of a published generation, with its counts."""
    named = {
        "generation",
        "documents",
        "chunks",
        "entities",
        "relations",
        "reports",
        "dead_letters",
        "seconds",
    }
    emit_event(
        event=EVENT, resource=resource_of(workspace), payload=report.model_dump(include=named)
    )


def announce_change(change: AnswerChange, workspace: Path) -> None:
    """Emit the event of a watched question whose answer changed or failed: ids, and no texts."""
    named = {"id", "generation", "before", "cited", "no_longer_cited"}
    payload = change.model_dump(mode="json", include=named) | {"failed": bool(change.error)}
    emit_event(event=CHANGE_EVENT, resource=resource_of(workspace), payload=payload)


def clean_up(flow: Flow[..., Any], flow_run: FlowRun, state: State[Any]) -> None:
    """Discard what a failed, crashed or cancelled run was building, log how it ended, and emit
    `trellis.FLOW.failed`, `.crashed` or `.cancelled`. The current generation is untouched.
    """
    end = "failed" if state.is_failed() else "crashed" if state.is_crashed() else "cancelled"
    logger = flow_run_logger(flow_run, flow)
    try:
        settings = load_settings({"workspace": flow_run.parameters.get("workspace")})
    except TrellisError as error:
        logger.warning("Nothing was cleaned up: %s", error)
        return
    workspace = Workspace(settings.workspace, settings.keep_generations)
    left, generation = _clean(workspace)
    logger.info("The run %s. %s", "was cancelled" if end == "cancelled" else end, left)
    emit_event(
        event=f"trellis.{flow.name}.{end}",
        resource=resource_of(settings.workspace),
        related=[
            {
                "prefect.resource.id": f"prefect.flow-run.{flow_run.id}",
                "prefect.resource.role": "flow-run",
            }
        ],
        payload={"reason": mask_keys(state.message or ""), "generation": generation},
    )


def _clean(workspace: Workspace) -> tuple[str, int | None]:
    """Clean the workspace; return its state as a sentence, and its current generation."""
    try:
        workspace.clean()
        number = workspace.current()
    except NoGeneration:
        return f"Nothing is published in {workspace.root} yet; {GOES_ON}", None
    except WorkspaceLocked:
        words = f"Another run writes {workspace.root}: nothing of it was touched."
        return words, workspace.current()
    except StorageError as error:
        return str(error), None
    return f"Generation {number} of {workspace.root} stays as it was; {GOES_ON}", number
