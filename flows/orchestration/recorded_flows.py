"""The Prefect flows `index` and `query`: named runs with steps, pages and an end in words.

Their stories are told in `flows/index.py` and `flows/query.py`.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Annotated

from pydantic import Field

from flows.index import IndexOptions
from flows.indexing.concurrency import relaxed_gc
from flows.indexing.earlier_prompts import in_words as kept_in_words
from flows.modes.registry import mode_names
from flows.operations.history import index_run
from flows.orchestration.artifacts import Page, Progress, Table, plain, put, short
from flows.orchestration.pages import (
    answer_in_words,
    answer_page,
    documents_now,
    index_in_words,
    index_page,
    outcome_of,
    reports_page,
    walked,
)
from flows.orchestration.recording import begin, done, failed, flow, flow_run
from flows.orchestration.state_hooks import announce, end_hooks, ended_by_signals
from flows.query import answer_question
from flows.question import AskOptions
from flows.runtime import Runtime, open_runtime, usage_rows, with_budget
from flows.session import SESSIONS
from flows.settings import load_settings
from flows.usage import cost_rows, rows_of
from prompts.engine.errors import EngineError
from prompts.engine.key_masking import mask_error
from storage.answer_records import Answer, Effort, Mode, StructureType
from storage.errors import BudgetReached, TrellisError
from storage.meta import UsageRow
from storage.run_records import IndexReport
from storage.spending import NO_BUDGET, Budget
from tasks.retrieve.pages import FolderRetriever

logger = logging.getLogger(__name__)


def _sources_in_short() -> str:
    given = flow_run.parameters
    source = given.get("source") or []
    sources = [source] if isinstance(source, str) else [str(one) for one in source]
    more = f" and {len(sources) - 3} more" if len(sources) > 3 else ""
    into = f" into {given['workspace']}" if given.get("workspace") else ""
    return f"index {', '.join(sources[:3])}{more}{into}"


@flow(name="index", flow_run_name=_sources_in_short, persist_result=False, **end_hooks("index"))
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
            report = await _within_minutes(minutes, sources, IndexOptions(full, allow_removals, remake), runtime)
    except (TrellisError, EngineError) as error:
        return failed(error, IndexReport)
    except Exception as error:
        mask_error(error)  # Prefect tells the server its words
        raise
    with relaxed_gc():
        await _show(report, sources, before, runtime)
    return done(index_in_words(report), report)


async def _within_minutes(
    minutes: float | None, sources: Sequence[str], options: IndexOptions, runtime: Runtime
) -> IndexReport:
    """The run. Raises BudgetReached where it takes longer."""
    try:
        async with asyncio.timeout(None if minutes is None else minutes * 60) as limit:
            return await index_run(sources, options, runtime)
    except TimeoutError:
        if minutes is not None and limit.expired():
            raise BudgetReached(minutes, minutes, "minutes") from None
        raise


async def _show(report: IndexReport, sources: Sequence[str], before: Mapping[str, str], runtime: Runtime) -> None:
    """The pages of the run in the user interface, and word of what was published."""
    used = usage_rows(runtime.models.meter)
    outcome, _ = await asyncio.gather(
        asyncio.to_thread(outcome_of, report, sources, before, runtime), put(*_tables(report, used))
    )
    if report.published:
        announce(outcome, runtime.settings.workspace)
    said = index_in_words(report)
    logger.info(said)
    if report.kept_prompts:
        logger.warning(kept_in_words(report.kept_prompts))
    about = f"The reports of the largest communities of generation {report.generation}"
    pages = (
        [Page(key="index-reports", markdown=reports_page(outcome.themes), description=about)] if outcome.themes else []
    )
    addresses = await put(*pages)
    reports_at = addresses[0] if pages else None
    await put(Page(key="index-summary", markdown=index_page(outcome, used, reports_at), description=said))


def _tables(report: IndexReport, used: Sequence[UsageRow]) -> list[Table]:
    figures = report.model_dump(exclude={"documents", "skipped", "usage", "published", "kept_prompts"})
    rows = [{"what": f"documents {name}", "count": number} for name, number in report.documents.model_dump().items()]
    rows += [{"what": name.replace("_", " "), "count": value} for name, value in figures.items()]
    tables = [Table(key="index-figures", rows=tuple(rows), description="What the run found and made")]
    if used:
        tables.append(Table(key="index-cost", rows=tuple(cost_rows(used)), description="What the models cost, by step"))
    return tables


# What the form offers.
OfferedMode = Annotated[Mode, Field(json_schema_extra={"enum": list(mode_names())})]


def _question_in_short() -> str:
    return short(str(flow_run.parameters.get("question", "")), 70)


@flow(name="query", flow_run_name=_question_in_short, persist_result=False)
async def query(  # noqa: PLR0913, PLR0917 -- the fields of the form
    question: Annotated[str, Field(min_length=1)],
    workspace: str | None = None,
    mode: OfferedMode = "auto",
    structure: StructureType | None = None,
    k: Annotated[int, Field(ge=1, le=100)] = 8,
    documents: list[str] | None = None,
    where: str | None = None,
    as_of: Annotated[int, Field(ge=1)] | None = None,
    pages: str | None = None,
    effort: Effort | None = None,
    response: str = "",
) -> Answer:
    """Answer one question from the current generation, with a record of how.

    Args:
        question: In any language; the answer is in the language of the sources.
        workspace: The folder of state; without it the one of the settings (./.trellis).
        mode: How to retrieve and answer; auto decides by the question.
        structure: The structure to bring the evidence into, instead of the router's choice.
        k: How many passages to retrieve, 1 to 100.
        documents: Look only into the documents with these ids; without it into all.
        where: Look only into the documents that meet this filter, for example: year >= 2020 and title like '%bridge%'.
        as_of: The number of an older generation to ask; without it the current one.
        pages: A folder whose files are read beside the index.
        effort: How much is given to models: low, medium or high; without it what the settings say.
        response: The form that the answer shall have, in words: a list, one paragraph, in German.
    """
    only = None if documents is None else tuple(documents)
    try:
        settings = load_settings({"workspace": workspace})
        begin(settings)
        async with SESSIONS.use(workspace, as_of) as session:
            retriever = FolderRetriever(pages) if pages else None
            options = AskOptions(
                mode=mode, structure=structure, k=k, documents=only, retriever=retriever,
                where=() if where is None else (where,), effort=effort, response=response,
            )  # fmt: skip
            answer = await answer_question(question, options, session)
            way = walked(answer, session)
    except (TrellisError, EngineError) as error:
        return failed(error, Answer)
    except Exception as error:
        mask_error(error)  # Prefect tells the server its words
        raise
    said = answer_in_words(answer)
    logger.info(said)
    if answer.trace.decision is not None:
        logger.info("Mode %s: %s.", answer.trace.mode, answer.trace.decision.reason)
    models: dict[str, str] = {role: choice.name for role, choice in settings.model_choices().items() if choice}
    shown = answer_page(answer, way, rows_of(answer.usage, models))
    await put(Page(key="answer", markdown=shown, description=plain(question)))
    return done(said, answer)
