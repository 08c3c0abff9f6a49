"""How is an index run recorded? As the Prefect flow `index`: a named run with steps, pages and an end in words."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Annotated

from pydantic import Field

from flows.garbage import rare_collection
from flows.indexing import IndexOptions
from flows.operations.history import index_run
from flows.orchestration.artifacts import Page, Progress, Table, put
from flows.orchestration.events import announce
from flows.orchestration.index_page import documents_now, in_words, look, reports_page, summary
from flows.orchestration.recording import begin, done, failed, flow, flow_run
from flows.orchestration.state_hooks import ended_by_signals, told_by
from flows.remaking import in_words as kept_in_words
from flows.runtime import Runtime, open_runtime, usage_rows, with_budget
from flows.settings import load_settings
from flows.usage import cost_rows
from prompts.engine.errors import EngineError
from prompts.engine.redact import redact
from storage.errors import BudgetReached, TrellisError
from storage.meta import UsageRow
from storage.records import IndexReport
from storage.spending import NO_BUDGET, Budget

logger = logging.getLogger(__name__)


def _run_name() -> str:
    given = flow_run.parameters
    source = given.get("source") or []
    sources = [source] if isinstance(source, str) else [str(one) for one in source]
    more = f" and {len(sources) - 3} more" if len(sources) > 3 else ""
    into = f" into {given['workspace']}" if given.get("workspace") else ""
    return f"index {', '.join(sources[:3])}{more}{into}"


@flow(name="index", flow_run_name=_run_name, persist_result=False, **told_by("index"))
async def index(  # noqa: PLR0913, PLR0917 -- each is a field of the form in Prefect's page
    source: Annotated[list[str], Field(min_length=1)] | Annotated[str, Field(min_length=1)],
    workspace: str | None = None,
    full: bool = False,
    allow_removals: bool = False,
    remake: bool = False,
    minutes: Annotated[float, Field(gt=0)] | None = None,
    budget: Budget = NO_BUDGET,
) -> IndexReport:
    """Bring a workspace up to date with its sources and publish the next generation.

    Only the sources named are synchronised. Where nothing has changed, nothing is published. Whatever goes wrong, the
    current generation stays as it was, and the next run goes on from the answers that models have given.

    Args:
        source: Files, folders or glob patterns: one, or a list of them.
        workspace: The folder of state; without it the one of the settings (./.trellis).
        full: Extract everything again instead of what has changed.
        allow_removals: Go on where more than 30% of the documents would be removed.
        remake: Also make anew what the prompts of a new version would word otherwise, where that is much.
        minutes: Give up after so long; without it a run may take the time that it needs.
        budget: Stop, with nothing published, before models take more tokens or cost more US dollars than this.
    """
    sources = [source] if isinstance(source, str) else source
    progress = Progress()
    try:
        settings = load_settings({"workspace": workspace})
        begin(settings)
        runtime = with_budget(open_runtime(settings, progress.tell), budget)
        logger.info("Indexing %s into %s", ", ".join(sources), settings.workspace)
        runtime.workspace.recover(from_nothing=True)
        before = documents_now(runtime)
        async with ended_by_signals(), progress:
            report = await _within(minutes, sources, IndexOptions(full, allow_removals, remake), runtime)
    except (TrellisError, EngineError) as error:
        return failed(error, IndexReport)
    except Exception as error:
        redact(error)  # Prefect tells the server its words
        raise
    with rare_collection():
        await _show(report, sources, before, runtime)
    return done(in_words(report), report)


async def _within(
    minutes: float | None, sources: Sequence[str], options: IndexOptions, runtime: Runtime
) -> IndexReport:
    """The run. Raises BudgetReached where it takes longer."""
    if minutes is None:
        return await index_run(sources, options, runtime)
    try:
        async with asyncio.timeout(minutes * 60) as limit:
            return await index_run(sources, options, runtime)
    except TimeoutError:
        if limit.expired():
            raise BudgetReached(minutes, minutes, "minutes") from None
        raise


async def _show(report: IndexReport, sources: Sequence[str], before: Mapping[str, str], runtime: Runtime) -> None:
    """The pages of the run in the user interface, and word of what was published."""
    used = usage_rows(runtime.models.meter)
    seen, _ = await asyncio.gather(
        asyncio.to_thread(look, report, sources, before, runtime), put(*_tables(report, used))
    )
    if report.published:
        announce(seen, runtime.settings.workspace)
    said = in_words(report)
    logger.info(said)
    if report.kept_prompts:
        logger.warning(kept_in_words(report.kept_prompts))
    about = f"The reports of the largest communities of generation {report.generation}"
    pages = [Page(key="index-reports", markdown=reports_page(seen.themes), description=about)] if seen.themes else []
    addresses = await put(*pages)
    reports_at = addresses[0] if pages else None
    await put(Page(key="index-summary", markdown=summary(seen, used, reports_at), description=said))


def _tables(report: IndexReport, used: Sequence[UsageRow]) -> list[Table]:
    figures = report.model_dump(exclude={"documents", "skipped", "usage", "published", "kept_prompts"})
    rows = [{"what": f"documents {name}", "count": number} for name, number in report.documents.model_dump().items()]
    rows += [{"what": name.replace("_", " "), "count": value} for name, value in figures.items()]
    tables = [Table(key="index-figures", rows=tuple(rows), description="What the run found and made")]
    if used:
        tables.append(Table(key="index-cost", rows=tuple(cost_rows(used)), description="What the models cost, by step"))
    return tables
