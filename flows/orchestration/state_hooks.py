"""Events and state hooks: a published generation is announced; a run that fails, crashes or is
cancelled says so in words and leaves the workspace clean.
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
    """A workspace as the resource of an event: its id is `trellis.workspace.` and the path in a-z,
    0-9 and dashes.
    """
    path = str(workspace.absolute())
    slug = re.sub(r"[^a-z0-9]+", "-", path.lower()).strip("-")
    return {"prefect.resource.id": f"trellis.workspace.{slug}", "prefect.resource.name": path}


def announce(report: IndexReport, workspace: Path) -> None:
    """Say that the generation of a run was published, with its counts. Not for runs that found
    nothing to do.
    """
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
    """Say that a watched question is answered otherwise since a publication, or fails: ids, and no
    texts.
    """
    named = {"id", "generation", "before", "cited", "no_longer_cited"}
    payload = change.model_dump(mode="json", include=named) | {"failed": bool(change.error)}
    emit_event(event=CHANGE_EVENT, resource=resource_of(workspace), payload=payload)


def clean_up(flow: Flow[..., Any], flow_run: FlowRun, state: State[Any]) -> None:
    """The state hook of a run that failed, crashed or was cancelled: say how it ended, emit
    `trellis.FLOW.failed`, `.crashed` or `.cancelled`, and discard what it was building; the
    current generation is as it was.
    """
    end = "failed" if state.is_failed() else "crashed" if state.is_crashed() else "cancelled"
    logger = flow_run_logger(flow_run, flow)
    try:
        settings = load_settings({"workspace": flow_run.parameters.get("workspace")})
    except TrellisError as error:
        logger.warning("Nothing was looked after: %s", error)
        return
    left, generation = _left(Workspace(settings.workspace, settings.keep_generations))
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


def _left(workspace: Workspace) -> tuple[str, int | None]:
    """What the workspace is like now, after what nobody needs was discarded; its current
    generation.
    """
    try:
        workspace.clean()
    except NoGeneration:
        return f"Nothing is published in {workspace.root} yet; {GOES_ON}", None
    except WorkspaceLocked:
        return (
            f"Another run writes {workspace.root}: nothing of it was touched.",
            workspace.current(),
        )
    except StorageError as error:
        return str(error), None
    return (
        f"Generation {workspace.current()} of {workspace.root} stays as it was; {GOES_ON}",
        workspace.current(),
    )
