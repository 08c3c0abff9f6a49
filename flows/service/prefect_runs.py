"""Index runs as runs of the deployment `index/index-now`, so that Prefect queues, records and shows them."""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

from prefect.client.orchestration import PrefectClient
from prefect.client.schemas.filters import (
    ArtifactFilter,
    ArtifactFilterFlowRunId,
    DeploymentFilter,
    DeploymentFilterName,
)
from prefect.client.schemas.objects import FlowRun, StateType
from prefect.client.schemas.sorting import FlowRunSort
from prefect.exceptions import ObjectNotFound
from prefect.states import Cancelling

from flows.orchestration.deployments import NOW
from flows.orchestration.run_folder import result_of
from flows.service.access import ServiceError
from flows.service.runs import IndexRun, RunRequest, RunState, no_such_run
from storage.errors import UsageError
from storage.run_records import IndexReport

SHOWN = 50
_STATES: Mapping[StateType, RunState] = {
    StateType.SCHEDULED: "waiting", StateType.PENDING: "waiting", StateType.PAUSED: "waiting",
    StateType.RUNNING: "running", StateType.COMPLETED: "completed", StateType.FAILED: "failed",
    StateType.CRASHED: "failed", StateType.CANCELLING: "cancelled", StateType.CANCELLED: "cancelled",
}  # fmt: skip


class NoDeployment(ServiceError):
    """The Prefect server does not have what index runs are runs of."""

    status = 503


class PrefectRuns:
    """Runs on the Prefect server at an address (`…/api`); `names` has the name of each workspace's folder."""

    def __init__(
        self, address: str, names: Mapping[str, str], published: Callable[[str], Coroutine[Any, Any, None]]
    ) -> None:
        self._address = address
        self._names = names
        self._published = published
        self._ended: set[str] = set()

    async def start(self, workspace: str, folder: Path, wanted: RunRequest) -> IndexRun:
        """Begin a run; Prefect lets one go on at a time."""
        if not wanted.sources:
            raise UsageError("There is nothing to index.", "Upload documents first, or name sources.")
        options = wanted.model_dump(include={"full", "allow_removals", "remake"})
        parameters = {"source": list(wanted.sources), "workspace": str(folder), **options}
        async with PrefectClient(self._address) as client:
            try:
                deployment = await client.read_deployment_by_name(f"index/{NOW}")
            except ObjectNotFound as error:
                raise NoDeployment(
                    f"The Prefect server has no deployment index/{NOW}.",
                    "Run `trellis serve` or `trellis serve --pool`.",
                ) from error
            run = await client.create_flow_run_from_deployment(deployment.id, parameters=parameters)
            return await self._shown(run, client)

    async def list(self) -> Sequence[IndexRun]:
        """The newest first."""
        of = DeploymentFilter(name=DeploymentFilterName(any_=[NOW]))
        async with PrefectClient(self._address) as client:
            order = FlowRunSort.EXPECTED_START_TIME_DESC
            runs = await client.read_flow_runs(deployment_filter=of, sort=order, limit=SHOWN)
            return [self._as_record(run) for run in runs]

    async def get(self, run: str) -> IndexRun:
        """The run as it is now, with its report where it is completed."""
        async with PrefectClient(self._address) as client:
            return await self._shown(await self._read(run, client), client)

    async def cancel(self, run: str) -> IndexRun:
        """Ask Prefect to cancel it, which takes its runner a moment."""
        async with PrefectClient(self._address) as client:
            known = await self._read(run, client)
            if known.state is None or not known.state.is_final():
                await client.set_flow_run_state(known.id, Cancelling())
            return await self._shown(await self._read(run, client), client)

    async def close(self) -> None:
        """Runs go on: they are Prefect's."""

    async def _read(self, run: str, client: PrefectClient) -> FlowRun:
        try:
            return await client.read_flow_run(UUID(run))
        except (ValueError, ObjectNotFound) as error:
            raise no_such_run(run) from error

    async def _shown(self, run: FlowRun, client: PrefectClient) -> IndexRun:
        record = self._as_record(run)
        if record.state == "running":
            of = ArtifactFilter(flow_run_id=ArtifactFilterFlowRunId(any_=[run.id]))
            artifacts = [row for row in await client.read_artifacts(artifact_filter=of) if row.type == "progress"]
            if artifacts:
                newest = max(artifacts, key=lambda row: str(row.updated))
                step = str(newest.key).removeprefix("progress-")
                return record.model_copy(update={"step": step, "done": round(float(str(newest.data))), "total": 100})
        if record.state == "completed":
            report = result_of(Path(str(run.parameters.get("workspace"))), run.id, IndexReport)
            if record.id not in self._ended and report is not None:
                self._ended.add(record.id)
                await self._published(record.workspace)
            return record.model_copy(update={"report": report})
        return record

    def _as_record(self, run: FlowRun) -> IndexRun:
        state, parameters = run.state, run.parameters
        name: RunState = _STATES[state.type] if state is not None else "waiting"
        folder, source = str(parameters.get("workspace")), parameters.get("source") or []
        begun, words = run.start_time or run.expected_start_time, state.message if state is not None else None
        return IndexRun(
            id=str(run.id), workspace=self._names.get(folder, folder), state=name,
            sources=(source,) if isinstance(source, str) else tuple(map(str, source)),
            started=begun.isoformat(timespec="seconds") if begun else "",
            finished=run.end_time.isoformat(timespec="seconds") if run.end_time else None,
            error={"type": "RunFailed", "message": words or "", "remedy": "Its page has the log."}
            if name == "failed" else None,
            url=f"{self._address.removesuffix('/api')}/runs/flow-run/{run.id}",
        )  # fmt: skip
