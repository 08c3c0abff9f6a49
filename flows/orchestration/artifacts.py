"""Artifacts of a run in Prefect's user interface: the page of an index run and of a question, tables, progress bars.

None of them holds up the run.
"""

import flows.orchestration.recording  # noqa: F401 -- settles what Prefect tells its makers, before Prefect is imported

# isort: split
import asyncio
import logging
import re
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from uuid import UUID

import httpx
from prefect.artifacts import Artifact, MarkdownArtifact, ProgressArtifact, TableArtifact
from prefect.client.orchestration import PrefectClient
from prefect.client.schemas.actions import ArtifactUpdate
from prefect.context import FlowRunContext
from prefect.exceptions import PrefectException

from flows.indexing.changes import in_words as kept_in_words
from flows.usage import facts_of, ledger
from prompts.engine.key_masking import mask_keys
from storage.answer_records import Answer
from storage.records import DeadLetter
from storage.run_records import IndexReport, UsageRow

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
        made = MarkdownArtifact(key=key, markdown=mask_keys(content), description=mask_keys(description))
    else:
        made = TableArtifact(key=key, table=[dict(row) for row in content], description=mask_keys(description))
    try:
        await made.acreate(_client())
    except UNREACHABLE as error:
        logger.warning("The page %s could not be stored: %s", key, error)


def _client() -> PrefectClient | None:
    """The client that the run has open: another one costs as much as the page."""
    run = FlowRunContext.get()
    return run.client if run is not None and isinstance(run.client, PrefectClient) else None


class Progress:
    """The progress of the steps as bars, renewed every two seconds; a run that ends before that has none."""

    def __init__(self) -> None:
        self._latest: dict[str, tuple[int, int]] = {}
        self._sent: dict[str, tuple[int, int]] = {}
        self._bars: dict[str, UUID] = {}

    def tell(self, step: str, done: int, total: int) -> None:
        """A step has done so many of so many; from any thread, as often as you like."""
        self._latest[step] = (done, total)

    @asynccontextmanager
    async def shown(self) -> AsyncIterator[None]:
        """Show it while the block lasts, and at its end what it has come to."""
        sending = asyncio.create_task(self._keep_sending())
        try:
            yield
        finally:
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)
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


SHOWN_ROWS = 50


# --- Markdown --------------------------------------------------------------------------------------------------------

_MARKUP = str.maketrans({sign: f"\\{sign}" for sign in "\\`*_[]#!|~"} | {"<": "&lt;", ">": "&gt;", "&": "&amp;"})
# Addresses become links by themselves: an invisible joiner within each keeps it text.
_ADDRESS = re.compile(r"(?<=:)(?=//)|(?<=www)(?=\.)|(?<=@)", re.IGNORECASE)


def plain(text: str) -> str:
    """Text for a Markdown artifact that stays text: no link, no picture, no heading comes out of a document."""
    return " ".join(_ADDRESS.sub("\u2060", text).translate(_MARKUP).split())


def short(text: str, most: int) -> str:
    """One line of at most so many characters."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def _section(title: str, head: Sequence[str], rows: Iterable[Sequence[str]], note: str = "") -> list[str]:
    """A table of texts under a heading, cut where it is long; nothing where it has no rows."""
    every = list(rows)
    if not every:
        return []
    lines = [head, ["---"] * len(head), *([plain(short(cell, 300)) for cell in row] for row in every[:SHOWN_ROWS])]
    table = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    more = [f"and {len(every) - SHOWN_ROWS} more"] if len(every) > SHOWN_ROWS else []
    return [f"## {title} ({len(every)})", *([note] if note else []), table, *more]


# --- an index run ----------------------------------------------------------------------------------------------------


def index_in_words(report: IndexReport) -> str:
    """The outcome as one sentence."""
    counts = report.documents
    if not report.published:
        return f"Nothing has changed: generation {report.generation} stays, with {counts.unchanged} documents."
    changed = ", ".join(f"{number} {name}" for name, number in counts.model_dump().items() if number)
    return (
        f"Published generation {report.generation} ({changed or 'none changed'}; {report.chunks} chunks, "
        f"{report.entities} entities, {report.relations} relations) in {report.seconds:.1f} s."
    )


def index_page(
    report: IndexReport, sources: Sequence[str], letters: Sequence[DeadLetter], used: Sequence[UsageRow]
) -> str:
    """The page in Markdown."""
    failed = [(letter.item, letter.step, letter.error, letter.remedy) for letter in letters]
    retry = "These failed and are kept; `trellis dead-letter --retry` tries them again."
    parts = [
        f"# Generation {report.generation}",
        index_in_words(report),
        *([kept_in_words(report.kept_prompts)] if report.kept_prompts else []),
        f"Sources: {plain(', '.join(sources))}",
        *_section("Dead letters", ("item", "step", "reason", "remedy"), failed, retry),
        *_section("Skipped", ("path", "reason"), [(file.path, file.reason) for file in report.skipped]),
        ledger(used),
    ]
    return "\n\n".join(parts)


# --- a question ------------------------------------------------------------------------------------------------------


def answer_in_words(answer: Answer) -> str:
    """How the question ended, as one sentence."""
    cited = len({citation.document for citation in answer.citations})
    sources = "1 document" if cited == 1 else f"{cited} documents"
    if answer.trace.answered_by == "excerpts" and answer.fallback != "abstained":
        return f"The best excerpts, from {sources} (generation {answer.generation}, {answer.usage.seconds:.2f} s)."
    ends = {
        "none": f"Answered from {sources}",
        "partial": f"Answered in part, from {sources}",
        "ungrounded": "Answered by the model alone: no document supports it",
        "abstained": "Not answered: the documents do not say",
    }
    return f"{ends[answer.fallback]} (generation {answer.generation}, {answer.usage.seconds:.2f} s)."


def answer_page(answer: Answer, used: Sequence[UsageRow]) -> str:
    """The page in Markdown, with the whole trace."""
    flagged = [f"- {plain(answer.answer[row.start : row.end])}" for row in answer.grounding if row.supported is False]
    sources = []
    for citation in answer.citations:
        page = f", p. {citation.page}" if citation.page else ""
        sources += [
            f"{plain(citation.marker)} {plain(citation.title)} ({plain(citation.document)}{page})",
            f"> {plain(citation.quote)}",
        ]
    parts = [
        f"# {plain(answer.question)}",
        plain(answer.answer),
        answer_in_words(answer),
        *(["\n".join(["No source supports:", "", *flagged])] if flagged else []),
        *(["## Sources", *sources] if sources else []),
        "## How it came about",
        # Indented: nothing in it is markup.
        "\n".join(f"    {name:16} {text}" for name, text in facts_of(answer.trace, ("structures",))),
        ledger(used),
    ]
    return "\n\n".join(parts)
