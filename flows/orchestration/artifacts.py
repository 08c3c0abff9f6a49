"""The artifacts of a run in Prefect's user interface: summaries, tables and progress bars.

Where the server refuses one, the log gets a warning and the run goes on.
"""

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from uuid import UUID

import httpx
from prefect.artifacts import (
    acreate_markdown_artifact,
    acreate_progress_artifact,
    acreate_table_artifact,
    aupdate_progress_artifact,
)
from prefect.exceptions import PrefectException

from flows.orchestration.run_folder import PAGE, keep
from prompts.engine.key_masking import mask_keys

logger = logging.getLogger(__name__)

EVERY = 2.0  # seconds between two updates of the progress
Cell = str | int | float | None
UNREACHABLE = (httpx.HTTPError, PrefectException)


async def put(key: str, content: str | Sequence[Mapping[str, Cell]], description: str) -> None:
    """Put Markdown or a table on the page of the current run; `key` is of a-z, 0-9 and dashes."""
    description = mask_keys(description)
    try:
        if isinstance(content, str):
            await acreate_markdown_artifact(mask_keys(content), key, description)
        else:
            await acreate_table_artifact([dict(row) for row in content], key, description)
    except UNREACHABLE as error:
        logger.warning("The page %s could not be stored: %s", key, error)


async def put_page(key: str, page: str, summary: Sequence[str], workspace: Path) -> None:
    """Keep a page with texts in the workspace, and put a summary without texts on the run's
    page.
    """
    path = keep(workspace, PAGE, page)
    await put(key, "\n\n".join([*summary, f"The page with all texts: `{path}`"]), summary[0])


class Progress:
    """Progress bars, one a step, updated every two seconds while the block lasts.

    A block that ends earlier shows none. A bar that was shown is updated at the end.
    """

    def __init__(self) -> None:
        self._latest: dict[str, tuple[int, int]] = {}
        self._sent: dict[str, tuple[int, int]] = {}
        self._bars: dict[str, UUID] = {}
        self._sending: asyncio.Task[None] | None = None

    def tell(self, step: str, done: int, total: int) -> None:
        """Note how many items of a step are done. Any thread may call this, at any rate."""
        self._latest[step] = (done, total)

    async def __aenter__(self) -> "Progress":
        self._sending = asyncio.create_task(self._keep_sending())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._sending is not None:
            self._sending.cancel()
            await asyncio.gather(self._sending, return_exceptions=True)
        await self._send(list(self._bars))

    async def _keep_sending(self) -> None:
        while True:
            await asyncio.sleep(EVERY)
            await self._send(list(self._latest))

    async def _send(self, steps: Iterable[str]) -> None:
        changed = [step for step in steps if self._sent.get(step) != self._latest[step]]
        await asyncio.gather(*map(self._send_one, changed))

    async def _send_one(self, step: str) -> None:
        done, total = self._sent[step] = self._latest[step]
        percent, words = 100.0 * done / max(total, 1), f"{step}: {done:,} of {total:,}"
        try:
            if step in self._bars:
                await aupdate_progress_artifact(self._bars[step], percent, words)
            else:
                self._bars[step] = await acreate_progress_artifact(
                    percent, f"progress-{step}", words
                )
        except UNREACHABLE as error:
            logger.warning("The progress of %s could not be shown: %s", step, error)
