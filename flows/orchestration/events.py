"""Events that tell the rest of the world of a workspace: a generation was published, or a run ended early."""

import re
from pathlib import Path

import flows.orchestration.recording  # noqa: F401 -- settles what Prefect tells its makers, before Prefect is imported

# isort: split
from prefect.events import emit_event

from flows.orchestration.index_page import RunOutcome

EVENT = "trellis.index.published"


def resource_of(workspace: Path) -> dict[str, str]:
    """A workspace as the resource of an event: its id is `trellis.workspace.` and the path in a-z, 0-9 and dashes."""
    path = str(workspace.absolute())
    slug = re.sub(r"[^a-z0-9]+", "-", path.lower()).strip("-")
    return {"prefect.resource.id": f"trellis.workspace.{slug}", "prefect.resource.name": path}


def announce(outcome: RunOutcome, workspace: Path) -> None:
    """Say that the generation of a run was published, with its counts. Not for runs that found nothing to do."""
    report = outcome.report
    emit_event(
        event=EVENT,
        resource=resource_of(workspace),
        payload={
            "generation": report.generation,
            "documents": report.documents.model_dump(),
            "chunks": report.chunks,
            "entities": report.entities,
            "relations": report.relations,
            "reports": report.reports,
            "dead_letters": report.dead_letters,
            "seconds": round(report.seconds, 2),
        },
    )
