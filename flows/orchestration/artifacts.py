"""Artifacts of a run: pages, tables and progress bars in Prefect's user interface, none of which holds up the run."""

import flows.orchestration.recording  # noqa: F401 -- settles what Prefect tells its makers, before Prefect is imported

# isort: split
import asyncio
import logging
from collections.abc import Mapping, Sequence
from types import TracebackType
from uuid import UUID

import httpx
from prefect.artifacts import Artifact, MarkdownArtifact, ProgressArtifact, TableArtifact
from prefect.client.orchestration import PrefectClient
from prefect.client.schemas.actions import ArtifactUpdate
from prefect.context import FlowRunContext
from prefect.exceptions import PrefectException

from prompts.engine.redact import redacted

logger = logging.getLogger(__name__)

EVERY = 2.0  # seconds between two updates of the progress
Cell = str | int | float | None
UNREACHABLE = (httpx.HTTPError, PrefectException)


async def put(key: str, content: str | Sequence[Mapping[str, Cell]], description: str) -> None:
    """Put a page (Markdown) or a table on the run that is going on; `key` is of lower-case letters, digits and dashes.

    What cannot be put is a warning in the log: the run's work is done whether it is shown or not.
    """
    made: Artifact
    if isinstance(content, str):
        made = MarkdownArtifact(key=key, markdown=redacted(content), description=redacted(description))
    else:
        made = TableArtifact(key=key, table=[dict(row) for row in content], description=redacted(description))
    try:
        await made.acreate(_client())
    except UNREACHABLE as error:
        logger.warning("The page %s could not be stored: %s", key, error)


def _client() -> PrefectClient | None:
    """The client that the run has open: another one costs as much as the page."""
    run = FlowRunContext.get()
    return run.client if run is not None and isinstance(run.client, PrefectClient) else None


class Progress:
    """The progress of the steps as bars, renewed every two seconds while the block lasts.

    A block that ends before the first of them leaves none; one that was shown is shown at its end too.
    """

    def __init__(self) -> None:
        self._latest: dict[str, tuple[int, int]] = {}
        self._sent: dict[str, tuple[int, int]] = {}
        self._bars: dict[str, UUID] = {}
        self._sending: asyncio.Task[None] | None = None

    def tell(self, step: str, done: int, total: int) -> None:
        """A step has done so many of so many; from any thread, as often as you like."""
        self._latest[step] = (done, total)

    async def __aenter__(self) -> "Progress":
        self._sending = asyncio.create_task(self._keep_sending())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._sending is not None:
            self._sending.cancel()
            await asyncio.gather(self._sending, return_exceptions=True)
        await self._send(list(self._bars))

    async def _keep_sending(self) -> None:
        while True:
            await asyncio.sleep(EVERY)
            await self._send(list(self._latest))

    async def _send(self, steps: Sequence[str]) -> None:
        await asyncio.gather(*(self._send_one(step) for step in steps if self._sent.get(step) != self._latest[step]))

    async def _send_one(self, step: str) -> None:
        done, total = self._sent[step] = self._latest[step]
        percent = 100.0 * done / max(total, 1)
        description = f"{step}: {done:,} of {total:,}"
        try:
            client = _client()
            if step in self._bars and client is not None:
                changed = ArtifactUpdate(data=percent, description=description)
                await client.update_artifact(self._bars[step], changed)
            else:
                bar = ProgressArtifact(key=f"progress-{step}", progress=percent, description=description)
                self._bars[step] = (await bar.acreate(client)).id
        except UNREACHABLE as error:
            logger.warning("The progress of %s could not be shown: %s", step, error)
