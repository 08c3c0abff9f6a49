"""A Prefect automation that ends zombie runs, whose process was killed.

A run sends a heartbeat every HEARTBEAT seconds. A killed process sends none, and Prefect would show
its run as running for ever.
"""

from datetime import timedelta

from prefect.client.orchestration import PrefectClient
from prefect.client.schemas.objects import StateType
from prefect.events import (
    AutomationCore,
    ChangeFlowRunState,
    EventTrigger,
    Posture,
    ResourceSpecification,
)

SILENT_AFTER = 75  # seconds: two heartbeats are missing
TAG = "trellis"  # only on runs of our deployments: others may send heartbeats less often
NAME = "Trellis: end runs that fell silent"


def automation() -> AutomationCore:
    """Return the automation as it should be."""
    return AutomationCore(
        name=NAME,
        description=(
            f"A run with the tag {TAG} that says nothing for {SILENT_AFTER} seconds is marked as "
            "crashed."
        ),
        trigger=EventTrigger(
            posture=Posture.Proactive,
            after={"prefect.flow-run.Running", "prefect.flow-run.heartbeat"},
            expect={"prefect.flow-run.*"},
            match=ResourceSpecification.model_validate(
                {"prefect.resource.id": "prefect.flow-run.*"}
            ),
            match_related=ResourceSpecification.model_validate(
                {"prefect.resource.role": "tag", "prefect.resource.id": f"prefect.tag.{TAG}"}
            ),
            for_each={"prefect.resource.id"},
            threshold=1,
            within=timedelta(seconds=SILENT_AFTER),
        ),
        actions=[
            ChangeFlowRunState(
                state=StateType.CRASHED,
                message=(
                    f"The process of this run said nothing for {SILENT_AFTER} seconds: it was "
                    "killed, or its machine went away. The index is as it was before; run it "
                    "again: answered calls are not repeated."
                ),
            )
        ],
    )


async def end_silent_runs(client: PrefectClient) -> None:
    """Create the automation on a server, or update it there."""
    known = await client.read_automations_by_name(NAME)
    for existing in known:
        # What a person has switched off stays off.
        await client.update_automation(
            existing.id, automation().model_copy(update={"enabled": existing.enabled})
        )
    if not known:
        await client.create_automation(automation())
