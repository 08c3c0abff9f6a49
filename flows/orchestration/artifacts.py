"""Artifacts of a run: pages, tables and progress bars in Prefect's user interface, none of which holds up the run."""

import flows.orchestration.recording  # noqa: F401 -- settles what Prefect tells its makers, before Prefect is imported

# isort: split
import asyncio
import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from uuid import UUID

import httpx
from prefect.artifacts import Artifact, MarkdownArtifact, ProgressArtifact, TableArtifact
from prefect.client.orchestration import PrefectClient
from prefect.client.schemas.actions import ArtifactUpdate
from prefect.context import FlowRunContext
from prefect.exceptions import PrefectException

from prompts.engine.key_masking import mask_keys
from storage.records import Record

logger = logging.getLogger(__name__)

EVERY = 2.0  # seconds between two updates of the progress
Cell = str | int | float | None
UNREACHABLE = (httpx.HTTPError, PrefectException)


class Page(Record):
    """A Markdown artifact; the key has lower-case letters, digits and dashes."""

    key: str
    markdown: str
    description: str


class Table(Record):
    """A table artifact."""

    key: str
    rows: tuple[Mapping[str, Cell], ...]
    description: str


async def put(*shown: Page | Table) -> list[str | None]:
    """Put all of them on the page of the run that is going on; the address of each, as seen from the page of another.

    What cannot be put (None) is a warning in the log: the run's work is done whether it is shown or not.
    """
    return list(await asyncio.gather(*map(_put, shown)))


async def _put(shown: Page | Table) -> str | None:
    description = mask_keys(shown.description)
    made: Artifact
    if isinstance(shown, Page):
        made = MarkdownArtifact(key=shown.key, markdown=mask_keys(shown.markdown), description=description)
    else:
        made = TableArtifact(key=shown.key, table=[dict(row) for row in shown.rows], description=description)
    try:
        return f"../artifact/{(await made.acreate(_client())).id}"
    except UNREACHABLE as error:
        logger.warning("The page %s could not be stored: %s", shown.key, error)
        return None


def _client() -> PrefectClient | None:
    """The client that the run has open: another one costs as much as the page."""
    run = FlowRunContext.get()
    return run.client if run is not None and isinstance(run.client, PrefectClient) else None


class Progress:
    """The progress of the steps as bars, renewed every two seconds while the block lasts.

    A block that ends before the first of them leaves none; one that was shown is shown at its end too.
    """

    def __init__(self) -> None:
        self._told: dict[str, tuple[int, int]] = {}
        self._sent: dict[str, tuple[int, int]] = {}
        self._bars: dict[str, UUID] = {}
        self._sending: asyncio.Task[None] | None = None

    def tell(self, step: str, done: int, total: int) -> None:
        """A step has done so many of so many; from any thread, as often as you like."""
        self._told[step] = (done, total)

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
            await self._send(list(self._told))

    async def _send(self, steps: Sequence[str]) -> None:
        news = [step for step in steps if self._sent.get(step) != self._told[step]]
        await asyncio.gather(*map(self._send_one, news))

    async def _send_one(self, step: str) -> None:
        done, total = self._sent[step] = self._told[step]
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


_MARKUP = str.maketrans({sign: f"\\{sign}" for sign in "\\`*_[]#!|~"} | {"<": "&lt;", ">": "&gt;", "&": "&amp;"})
# Addresses become links by themselves: an invisible joiner within each keeps it text.
_ADDRESS = re.compile(r"(?<=:)(?=//)|(?<=www)(?=\.)|(?<=@)", re.IGNORECASE)
_HARMLESS = frozenset(" .,?!-()…")


def plain(text: str) -> str:
    """Text for a Markdown artifact that stays text: no link, no picture, no heading comes out of a document."""
    return " ".join(_ADDRESS.sub("\u2060", text).translate(_MARKUP).split())


def short(text: str, most: int) -> str:
    """One line of at most so many characters."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def label(text: str, most: int = 60) -> str:
    """Text for a Mermaid label in double quotes: whatever could be syntax, markup or a link is a character's number."""
    shown = (sign for sign in short(text, most) if sign.isprintable())
    return "".join(sign if sign.isalnum() or sign in _HARMLESS else f"#{ord(sign)};" for sign in shown)


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown markdown_table; the cells are given as Markdown (`plain` them where they are not ours)."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
