"""What a run shows: its page and result in the workspace; on Prefect's page figures and ids, and no
texts.
"""

import asyncio
import logging
from collections.abc import Sequence

from flows.indexing.source_changes import in_words as kept_in_words
from flows.operations.run_pages import (
    GENERATION,
    address_of,
    answer_in_words,
    answer_page,
    index_in_words,
    index_page,
    read_run,
)
from flows.orchestration.artifacts import put, put_page
from flows.orchestration.run_folder import RESULT, keep
from flows.orchestration.state_hooks import announce, announce_change
from flows.runtime import Runtime, usage_rows
from flows.session import Session
from flows.usage import ledger, plain, rows_of
from storage.answer_records import Answer
from storage.run_records import IndexReport

logger = logging.getLogger(__name__)


async def show_index_run(report: IndexReport, sources: Sequence[str], runtime: Runtime) -> None:
    """Keep the report and its page in the workspace, show its figures, and announce what was
    published.
    """
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
    await put("index-figures", figures(report), "What the run found and made")
    page = index_page(report, sources, failed, largest, used)
    await put_page("index-summary", page, [index_in_words(report), GENERATION, ledger(used)], workspace)


def figures(report: IndexReport) -> list[dict[str, str | int | float]]:
    """Make a table of all that a run has counted."""
    counted = {f"documents {name}": number for name, number in report.documents.model_dump().items()}
    lists = {"documents", "usage", "published", "kept_prompts", "community_quality"}
    for name, value in report.model_dump(exclude=lists).items():
        counted[name] = len(value) if isinstance(value, tuple) else round(value, 1)
    if report.community_quality is not None:
        counted |= report.community_quality.model_dump()
    return [{"what": name.replace("_", " "), "count": number} for name, number in counted.items()]


async def show_answer(answer: Answer, session: Session) -> None:
    """Keep the answer and its page in the workspace, and show how it was found."""
    settings = session.runtime.settings
    keep(settings.workspace, RESULT, answer.model_dump_json())
    cited = [name for name in {row.document for row in answer.citations} if name in session.index.documents]
    addresses = {name: address_of(document) for name, document in session.documents(cited).items()}
    models: dict[str, str] = {role: choice.name for role, choice in settings.model_choices().items() if choice}
    used = rows_of(answer.usage, models)
    found = f"Mode {answer.trace.mode}, evidence as {answer.trace.route.type}."
    documents = f"Cited: {plain(', '.join(sorted(cited)) or 'no document')}."
    summary = [answer_in_words(answer), found, documents, ledger(used)]
    await put_page("answer", answer_page(answer, used, addresses), summary, settings.workspace)
