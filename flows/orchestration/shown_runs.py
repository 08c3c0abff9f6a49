"""Show a run: its page and result in the workspace; on Prefect's page figures and ids, no texts."""

import asyncio
import logging
from collections.abc import Sequence

from flows.answer_page import answer_in_words, answer_page
from flows.indexing.source_changes import in_words as kept_in_words
from flows.operations.run_pages import index_in_words, index_page, read_run
from flows.orchestration.artifacts import put, put_page
from flows.orchestration.run_folder import RESULT, keep
from flows.orchestration.state_hooks import announce, announce_change
from flows.runtime import Runtime, usage_rows
from flows.session import Session
from flows.usage import ledger, plain
from storage.answer_records import Answer
from storage.run_records import IndexReport, UsageRow

logger = logging.getLogger(__name__)


async def show_index_run(report: IndexReport, sources: Sequence[str], runtime: Runtime) -> None:
    """Store the report and its page, show its figures, and announce what was published."""
    workspace, used = runtime.settings.workspace, usage_rows(runtime.models.meter)
    failed, largest = await asyncio.to_thread(read_run, report, runtime)
    keep(workspace, RESULT, report.model_dump_json())
    if report.published:
        announce(report, workspace)
    for change in report.changed_answers:
        announce_change(change, workspace)
    logger.info(index_in_words(report))
    if report.kept_prompts:
        logger.warning(kept_in_words(report.kept_prompts))
    await put("index-figures", _figures(report), "What the run found and made")
    page = index_page(report, sources, failed, largest, used)
    await put_page("index-summary", page, [index_in_words(report), ledger(used)], workspace)


def _figures(report: IndexReport) -> list[dict[str, str | int | float]]:
    """Return all counts of a run as rows of a table."""
    counted = {
        f"documents {name}": number for name, number in report.documents.model_dump().items()
    }
    lists = {"documents", "usage", "published", "kept_prompts", "community_quality"}
    for name, value in report.model_dump(exclude=lists).items():
        counted[name] = len(value) if isinstance(value, tuple) else round(value, 1)
    if report.community_quality is not None:
        counted |= report.community_quality.model_dump()
    return [{"what": name.replace("_", " "), "count": number} for name, number in counted.items()]


async def show_answer(answer: Answer, session: Session) -> None:
    """Store the answer and its page, and show how it was found."""
    settings = session.runtime.settings
    keep(settings.workspace, RESULT, answer.model_dump_json())
    choices = settings.model_choices()
    models: dict[str, str] = {role: choice.name for role, choice in choices.items() if choice}
    used = [
        UsageRow(step=step, model=models.get(step, ""), **dict(row))
        for step, row in sorted(answer.usage.by_step.items())
    ]
    documents = sorted({citation.document for citation in answer.citations})
    cited = f"Cited: {plain(', '.join(documents) or 'no document')}."
    summary = [answer_in_words(answer), cited, ledger(used)]
    await put_page("answer", answer_page(answer, used), summary, settings.workspace)
