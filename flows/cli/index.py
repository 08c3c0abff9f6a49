"""`trellis index` and `tune`: index sources or forecast it, and fit the prompts to them."""

import asyncio
import os
from collections.abc import Sequence

from flows.cli.common import COMMON, Common
from flows.cli.options import BudgetTokens, BudgetUsd, Count, CountFrom0, Record, Sources
from flows.cli.running import command
from flows.cli.screen import Screen
from flows.index import IndexOptions, index_documents
from flows.index import index as index_flow
from flows.indexing.pace import time_in_words
from flows.indexing.source_changes import in_words
from flows.operations.forecast import forecast
from flows.operations.tune import TuneOptions, TuneReport, tune_workspace
from flows.orchestration.local_server import keep_server
from flows.runtime import with_budget
from flows.usage import facts_of, forecast_in_words
from prompts.tailoring import Tailoring
from storage.records import Skipped
from storage.remote import checked_address, is_address
from storage.run_records import Budget, Forecast, IndexReport
from tasks.sync import FORGOTTEN

SHOWN_SKIPPED = 10
BASES = {"history": "as its model wrote before", "rule": "by rule"}
# The fields of a report that are not shown in its list of figures
NO_FIGURES = frozenset(
    "generation published seconds skipped dead_letters kept_prompts changed_answers".split()
)


@command
def index(
    sources: Sources,
    /,
    *,
    full: bool = False,
    allow_removals: bool = False,
    remake: bool = False,
    dry_run: bool = False,
    budget_tokens: BudgetTokens = None,
    budget_usd: BudgetUsd = None,
    record: Record = False,
    common: Common = COMMON,
) -> None:
    """Index the sources; as a flow run with --record, or where a Prefect server is configured.

    Args:
        full: Extract everything again, not only what changed.
        allow_removals: Continue even if more than 30% of the documents would be removed.
        remake: Also rewrite what the prompts of a new version would word differently.
        dry_run: Only forecast calls, tokens, cost and time.
    """
    screen = common.screen
    options = IndexOptions(full, allow_removals, remake)
    budget = Budget(tokens=budget_tokens, usd=budget_usd)
    if dry_run:
        screen.note("Reading the sources; nothing is called or written.")
        with screen.progress() as progress:
            runtime = with_budget(common.runtime(progress, reading=True), budget)
            plan = asyncio.run(forecast(sources, options, runtime))
        screen.result(plan, lambda: _show_plan(plan, budget, screen))
        return
    if record or os.environ.get("PREFECT_API_URL"):
        for address in filter(is_address, sources):
            checked_address(address)  # Prefect would store a password in it.
        keep_server()
        run = index_flow(
            list(sources),
            workspace=common.workspace,
            full=full,
            allow_removals=allow_removals,
            remake=remake,
            budget=budget,
        )
        report: IndexReport = asyncio.run(run)
    else:
        with screen.progress() as progress:
            runtime = with_budget(common.runtime(progress, tell=screen.note), budget)
            report = asyncio.run(index_documents(sources, options, runtime))
    screen.result(report, lambda: show_report(report, screen))
    if report.kept_prompts and not screen.as_json:
        plan = asyncio.run(forecast(sources, IndexOptions(remake=True), common.runtime()))
        screen.warn(in_words(report.kept_prompts))
        screen.warn(f"--remake makes it anew: {forecast_in_words(plan)}")


def show_report(report: IndexReport, screen: Screen) -> None:
    """Show the report of an index run."""
    number = report.generation
    if report.published:
        screen.line(f"Published generation {number} in {report.seconds:.1f} s", style="bold green")
    else:
        screen.title(f"Nothing has changed: generation {number} stays")
    screen.facts(facts_of(report, NO_FIGURES), indent=2)
    warnings = []
    if not report.chunks:
        warnings.append("The sources hold nothing that can be read.")
    if report.dead_letters:
        warnings.append(f"{report.dead_letters} items failed: see trellis dead-letter")
    if report.changed_answers:
        changed = len(report.changed_answers)
        warnings.append(f"{changed} watched questions changed: see trellis watch")
    _show_skipped(report.skipped, screen)
    screen.rows(warnings, style="yellow")


def _show_skipped(skipped: Sequence[Skipped], screen: Screen) -> None:
    if kept_out := sum(file.reason.startswith(FORGOTTEN) for file in skipped):
        remedy = "trellis forget --undo DOCUMENT allows one again"
        screen.warn(f"{kept_out} kept out ({FORGOTTEN}): {remedy}")
    rows = [f"skipped {file.path}: {file.reason}" for file in skipped]
    screen.rows(rows, SHOWN_SKIPPED, style="yellow", more=" skipped (--json lists all)")


def _show_plan(plan: Forecast, budget: Budget, screen: Screen) -> None:
    screen.title("Forecast: nothing was called or written")
    counts = {
        "documents": plan.documents,
        "chunks": plan.chunks,
        "to extract": plan.chunks_to_extract,
    }
    facts = [
        *facts_of(counts),
        ("models", forecast_in_words(plan)),
        ("time", f"{time_in_words(plan.run_seconds)} (at {plan.rate})"),
    ]
    for step in plan.steps:
        cost = f"{step.model}: {forecast_in_words(step)}; output {BASES[step.basis]}"
        facts.append((step.step, cost))
    screen.facts(facts, indent=2)
    _show_skipped(plan.skipped, screen)
    needed = {"tokens": plan.input_tokens + plan.output_tokens, "usd": plan.cost_usd or 0}
    for unit, most in budget:
        if most is not None and needed[unit] > most:
            screen.warn(f"{needed[unit]:,} {unit} are more than the budget of {most:,}")


@command
def tune(
    sources: Sources,
    /,
    *,
    tokens: Count | None = None,
    seed: CountFrom0 = 0,
    force: bool = False,
    common: Common = COMMON,
) -> None:
    """Fit the prompts to a sample of the sources, and keep the result in the workspace.

    Args:
        tokens: The size of the sample (default: as much as an answer reads,
            TRELLIS_ANSWER_TOKENS).
        seed: Another number draws another sample.
        force: Replace an existing file.
    """
    screen = common.screen
    options = TuneOptions(tokens=tokens, seed=seed, force=force)
    with screen.progress() as progress:
        report = asyncio.run(tune_workspace(sources, options, common.runtime(progress)))
    screen.result(report, lambda: _show_tailoring(report, sources, common))


def _show_tailoring(report: TuneReport, sources: Sequence[str], common: Common) -> None:
    screen, tailoring = common.screen, report.tailoring
    screen.line(
        f"From {report.passages} passages of {report.documents} documents", style="bold green"
    )
    facts = {
        "persona": tailoring.persona,
        "language": tailoring.language,
        "kinds": [str(kind) for kind in tailoring.entity_types],
        "usage": report.usage,
        "examples": len(tailoring.examples),
    }
    screen.facts(facts_of(facts), indent=2)
    screen.rows([f"left out {reason}" for reason in report.left_out], style="yellow")
    # All other settings win over the file in the workspace.
    in_force = common.settings().tailoring
    for name in Tailoring.model_fields:
        if getattr(in_force, name) != getattr(tailoring, name):
            screen.line(f"Your settings name another {name}, which counts instead.", "yellow")
    screen.line()
    screen.line(f"Read it, and change what does not fit: {report.path}")
    anew = "what the new prompts change is extracted again"
    screen.line(f"Then: trellis index {' '.join(sources)}   ({anew})")
