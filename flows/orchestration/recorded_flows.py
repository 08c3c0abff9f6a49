"""The Prefect flows `index`, `query` and `evaluate`: named runs with steps, pages and an end in words.

Their stories are told in `flows/index.py`, `flows/query.py` and `flows/evaluate.py`.
"""

import asyncio
import logging
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

from pydantic import Field

from flows.evaluate import JUDGED, EvaluationEnding, evaluate_plan, plan_of, rated_or
from flows.index import IndexOptions
from flows.indexing.concurrency import relaxed_gc
from flows.indexing.source_changes import in_words as kept_in_words
from flows.modes.registry import mode_names
from flows.operations.evaluation_page import evaluation_in_words, markdown_page
from flows.operations.index_run import index_run
from flows.orchestration.artifacts import (
    Progress,
    address_of,
    answer_in_words,
    answer_page,
    index_in_words,
    index_page,
    put,
    read_run,
    text_with_sources,
)
from flows.orchestration.recording import begin, done, failed, flow, flow_run
from flows.orchestration.state_hooks import announce, announce_change, clean_up, ended_by_signals
from flows.query import answer_question
from flows.question import AskOptions
from flows.runtime import Runtime, open_runtime, usage_rows, with_budget
from flows.session import SESSIONS
from flows.settings import load_settings
from flows.usage import plain, rows_of, short
from prompts.engine.errors import EngineError
from prompts.engine.key_masking import mask_error
from storage.answer_records import Answer, Effort, Mode, StructureType
from storage.errors import BudgetReached, TrellisError
from storage.evaluation_records import EvaluationReport
from storage.run_records import NO_BUDGET, Budget, IndexReport
from tasks.retrieve.pages import FolderRetriever
from tasks.rewrite import turns

logger = logging.getLogger(__name__)


def _sources_in_short() -> str:
    parameters = flow_run.parameters
    source = parameters.get("source") or []
    sources = [source] if isinstance(source, str) else [str(path) for path in source]
    more = f" and {len(sources) - 3} more" if len(sources) > 3 else ""
    into = f" into {parameters['workspace']}" if parameters.get("workspace") else ""
    return f"index {', '.join(sources[:3])}{more}{into}"


def _question_in_short() -> str:
    return short(str(flow_run.parameters.get("question", "")), 70)


@flow(
    name="index", flow_run_name=_sources_in_short,
    on_failure=[clean_up], on_crashed=[clean_up], on_cancellation=[clean_up],
)  # fmt: skip
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
        remake: Also make anew what the prompts of a new version would word otherwise.
        minutes: Give up after so long; without it a run may take the time that it needs.
        budget: Stop, with nothing published, before models take more tokens or cost more US dollars than this.
    """
    sources = [source] if isinstance(source, str) else source
    progress = Progress()
    try:
        settings = load_settings({"workspace": workspace})
        await begin(settings)
        tell = partial(logger.info, "%s")
        runtime = with_budget(open_runtime(settings, progress.tell, tell=tell), budget)
        logger.info("Indexing %s into %s", ", ".join(sources), settings.workspace)
        async with ended_by_signals(), progress:
            report = await _within_minutes(minutes, sources, IndexOptions(full, allow_removals, remake), runtime)
    except (TrellisError, EngineError) as error:
        return failed(error, IndexReport)
    except Exception as error:
        mask_error(error)  # Prefect tells the server its words
        raise
    with relaxed_gc():
        await _show(report, sources, runtime)
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


async def _show(report: IndexReport, sources: Sequence[str], runtime: Runtime) -> None:
    """The page and tables of the run in the user interface, and word of what was published."""
    used = usage_rows(runtime.models.meter)
    failed_items, largest = await asyncio.to_thread(read_run, report, runtime)
    if report.published:
        announce(report, runtime.settings.workspace)
    for change in report.changed_answers:
        announce_change(change, runtime.settings.workspace)
    message = index_in_words(report)
    logger.info(message)
    if report.kept_prompts:
        logger.warning(kept_in_words(report.kept_prompts))
    lists = {"documents", "skipped", "usage", "published", "kept_prompts", "changed_answers"}
    counted = report.model_dump(exclude=lists) | {"seconds": round(report.seconds, 1)}
    counted |= counted.pop("community_quality") or {}
    counted = {f"documents {name}": number for name, number in report.documents.model_dump().items()} | counted
    figures = [{"what": name.replace("_", " "), "count": number} for name, number in counted.items()]
    await asyncio.gather(
        put("index-figures", figures, "What the run found and made"),
        put("index-summary", index_page(report, sources, failed_items, largest, used), message),
    )


# What the form offers.
OfferedMode = Annotated[Mode, Field(json_schema_extra={"enum": list(mode_names())})]


@flow(name="query", flow_run_name=_question_in_short)
async def query(  # noqa: PLR0913, PLR0917 -- the fields of the form
    question: Annotated[str, Field(min_length=1)],
    workspace: str | None = None,
    mode: OfferedMode = "auto",
    structure: StructureType | None = None,
    k: Annotated[int, Field(ge=1, le=100)] | None = None,
    history: list[str] | None = None,
    documents: list[str] | None = None,
    where: str | None = None,
    as_of: Annotated[int, Field(ge=1)] | None = None,
    pages: str | None = None,
    level: Annotated[int, Field(ge=0)] | None = None,
    effort: Effort | None = None,
    response: str = "",
) -> Answer:
    """Answer one question from the current generation, with a record of how.

    Args:
        question: In any language; the answer is in the language of the sources.
        workspace: The folder of state; without it the one of the settings (./.trellis).
        mode: How to retrieve and answer; auto decides by the question.
        structure: The structure to bring the evidence into, instead of the router's choice.
        k: The most passages that the answer is written from, 1 to 100; without it as many as fit.
        history: Earlier turns of the conversation, oldest first, which the question may refer to.
        documents: Look only into the documents with these ids; without it into all.
        where: Look only into the documents that meet this filter, for example: year >= 2020 and title like '%bridge%'.
        as_of: The number of an older generation to ask; without it the current one.
        pages: A folder whose files are read beside the index.
        level: The level of the community reports that mode global reads, 0 the broadest; without it what is relevant.
        effort: How much is given to models: low, medium or high; without it what the settings say.
        response: The form that the answer shall have, in words: a list, one paragraph, in German.
    """
    try:
        settings = load_settings({"workspace": workspace})
        await begin(settings)
        options = AskOptions(
            mode=mode, structure=structure, k=k, documents=None if documents is None else tuple(documents),
            where=() if where is None else (where,), retriever=FolderRetriever(pages) if pages else None,
            history=turns(history or ()), effort=effort, response=response, level=level,
        )  # fmt: skip
        async with SESSIONS.use(workspace, as_of) as session:
            with session.runtime.query_models.without_history():
                answer = await answer_question(question, options, session)
            cited = [name for name in {row.document for row in answer.citations} if name in session.index.documents]
            addresses = {name: address_of(document) for name, document in session.documents(cited).items()}
    except (TrellisError, EngineError) as error:
        return failed(error, Answer)
    except Exception as error:
        mask_error(error)  # Prefect tells the server its words
        raise
    message = answer_in_words(answer)
    logger.info("%s\n\n%s\n", message, text_with_sources(answer))
    if answer.trace.decision is not None:
        logger.info("Mode %s: %s.", answer.trace.mode, answer.trace.decision.reason)
    models: dict[str, str] = {role: choice.name for role, choice in settings.model_choices().items() if choice}
    await put("answer", answer_page(answer, rows_of(answer.usage, models), addresses), plain(question))
    return done(message, answer)


def _evaluation_in_short() -> str:
    parameters = flow_run.parameters
    return short(f"evaluate {len(parameters.get('systems') or [''])} systems on {parameters.get('questions', '')}", 90)


@flow(name="evaluate", flow_run_name=_evaluation_in_short)
async def evaluate(  # noqa: PLR0913, PLR0917 -- the fields of the form
    systems: list[str],
    questions: Annotated[str, Field(min_length=1)],
    measures: list[str] | None = None,
    criteria: list[str] | None = None,
    repeats: Annotated[int, Field(ge=1)] = 1,
    workspace: str | None = None,
    data: str | None = None,
    limit: Annotated[int, Field(ge=1)] | None = None,
    budget: Budget = NO_BUDGET,
    page: str | None = None,
    gate: str | None = None,
    accept: bool = False,
) -> EvaluationReport:
    """Compare systems on a question set by measures; the result is stored in the workspace.

    A run that was stopped goes on where it was when it is started again in the same words: no answer is asked twice.

    Args:
        systems: Each as it is typed: mode=mix,effort=high,name=deep, or answers=FILE.jsonl,name=theirs.
        questions: A JSONL file of rows {id, question, answers, values, gold_documents, …}, or the name of a set.
        measures: Their names; without it the usual ones that the questions have what is needed for.
        criteria: By which the role judge compares every two systems: comprehensiveness, diversity, overall and others.
        repeats: How often the judge looks at a pair in each order.
        workspace: The folder of state; without it the one of the settings (./.trellis).
        data: The folder of a published set's files.
        limit: Only the first questions.
        budget: Stop before models take more tokens or cost more US dollars than this; answers are kept.
        page: A file ending in .html or .md that the result is written to.
        gate: A TOML file of measures that must not fall against the last accepted evaluation; else the run fails.
        accept: Gates compare with this evaluation from now on, unless it fell.
    """
    progress = Progress()
    ending = EvaluationEnding(Path(page) if page else None, Path(gate) if gate else None, accept)
    try:
        ending.check()
        settings = load_settings({"workspace": workspace})
        await begin(settings)
        runtime = with_budget(open_runtime(settings, progress.tell), budget, JUDGED)
        async with ended_by_signals(), progress:
            plan = await plan_of(
                systems,
                rated_or(questions, runtime),
                measures or (),
                limit=limit,
                data=data,
                criteria=criteria or (),
                repeats=repeats,
            )
            report, result = await evaluate_plan(plan, runtime)
        report = ending.write(report, result, runtime)
        message = evaluation_in_words(report)
        logger.info(message)
        await put("evaluation", markdown_page(report, result), message)
        ending.hold(report, runtime)
    except (TrellisError, EngineError) as error:
        return failed(error, EvaluationReport)
    except Exception as error:
        mask_error(error)  # Prefect tells the server its words
        raise
    return done(message, report)
