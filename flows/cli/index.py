"""`trellis index` and `tune`: what a run found and made, or what it would do and cost."""

import asyncio
import os
from argparse import Namespace
from collections.abc import Sequence

from flows.cli.screen import Screen, runtime_of
from flows.index import IndexOptions, index_documents
from flows.indexing.pace import time_in_words
from flows.indexing.source_changes import in_words
from flows.operations.forecast import forecast
from flows.operations.tune import TuneOptions, TuneReport, tune_workspace
from flows.runtime import with_budget
from flows.settings import load_settings
from flows.usage import cost_of, facts_of
from prompts.tailoring import Tailoring
from storage.records import Skipped
from storage.run_records import Budget, Forecast, IndexReport, StepForecast, StepUsage
from tasks.sync import FORGOTTEN

SHOWN_SKIPPED = 10
BASES = {"history": "as its model wrote before", "rule": "by rule"}


def index(options: Namespace, screen: Screen) -> None:
    """Index the sources; with --record, or where a Prefect server is configured, as a flow run.

    With --dry-run only say what that would do and cost.
    """
    wanted = IndexOptions(options.full, options.allow_removals, options.remake)
    budget = Budget(tokens=options.budget_tokens, usd=options.budget_usd)
    if options.dry_run:
        screen.note("Reading the sources; nothing is called or written.")
        with screen.progress() as progress:
            runtime = with_budget(runtime_of(options, progress, reading=True), budget)
            plan = asyncio.run(forecast(options.sources, wanted, runtime))
        screen.result(plan, lambda: show_plan(plan, budget, screen))
        return
    if options.record or os.environ.get("PREFECT_API_URL"):
        from flows.index import index as index_flow
        from flows.orchestration.local_server import keep_server

        keep_server()
        run = index_flow(
            options.sources, workspace=options.workspace, full=options.full, allow_removals=options.allow_removals,
            remake=options.remake, budget=budget,
        )  # fmt: skip
        report = asyncio.run(run)
    else:
        with screen.progress() as progress:
            runtime = with_budget(runtime_of(options, progress, tell=screen.note), budget)
            report = asyncio.run(index_documents(options.sources, wanted, runtime))
    screen.result(report, lambda: show_report(report, screen))
    if report.kept_prompts and not screen.as_json:  # what --remake would do, and what that takes
        plan = asyncio.run(forecast(options.sources, IndexOptions(remake=True), runtime_of(options)))
        screen.line(in_words(report.kept_prompts), indent=2, style="yellow")
        screen.line(f"--remake makes it anew: {cost_in_words(plan)}", indent=2, style="yellow")


def show_report(report: IndexReport, screen: Screen) -> None:
    """The report for people."""
    if report.published:
        screen.line(f"Published generation {report.generation} in {report.seconds:.1f} s", style="bold green")
    else:
        screen.line(f"Nothing has changed: generation {report.generation} stays", style="bold")
    omitted = {"generation", "published", "seconds", "skipped", "dead_letters", "kept_prompts", "changed_answers"}
    screen.facts(facts_of(report, omitted), indent=2)
    if not report.chunks:
        screen.line("The sources hold nothing that can be read.", indent=2, style="yellow")
    _show_skipped(report.skipped, screen)
    if report.dead_letters:
        screen.line(f"{report.dead_letters} items failed: see trellis dead-letter", indent=2, style="yellow")
    if report.changed_answers:
        number = len(report.changed_answers)
        screen.line(f"{number} watched questions changed: see trellis watch", indent=2, style="yellow")


def _show_skipped(skipped: Sequence[Skipped], screen: Screen) -> None:
    if kept_out := sum(file.reason.startswith(FORGOTTEN) for file in skipped):
        remedy = "trellis forget --undo DOCUMENT lets one in"
        screen.line(f"{kept_out} kept out ({FORGOTTEN}): {remedy}", indent=2, style="yellow")
    rows = [f"skipped {file.path}: {file.reason}" for file in skipped]
    screen.rows(rows, SHOWN_SKIPPED, style="yellow", more=" skipped (--json lists all)")


def show_plan(plan: Forecast, budget: Budget, screen: Screen) -> None:
    """The forecast for people."""
    screen.line("Forecast: nothing was called or written", style="bold")
    facts = [
        *facts_of({"documents": plan.documents, "chunks": plan.chunks, "to extract": plan.chunks_to_extract}),
        ("models", cost_in_words(plan)),
        ("time", f"{time_in_words(plan.run_seconds)} (at {plan.rate})"),
        *((step.step, f"{step.model}: {cost_in_words(step)}; output {BASES[step.basis]}") for step in plan.steps),
    ]
    screen.facts(facts, indent=2)
    _show_skipped(plan.skipped, screen)
    wanted = {"tokens": plan.input_tokens + plan.output_tokens, "usd": plan.cost_usd}
    for unit, most in budget:
        if most is not None and (wanted[unit] or 0) > most:
            screen.line(f"{wanted[unit]:,} {unit} are more than the budget of {most:,}", indent=2, style="yellow")


def cost_in_words(plan: Forecast | StepForecast | StepUsage) -> str:
    """Calls, tokens and cost in words."""
    if not plan.calls:
        return "no calls" + (f", {plan.cached_calls:,} answers from the cache" if plan.cached_calls else "")
    cached = f" and {plan.cached_calls:,} from the cache" if plan.cached_calls else ""
    cost = cost_of(StepUsage(cost_usd=plan.cost_usd))
    return f"about {plan.calls:,} calls{cached}, {plan.input_tokens:,} tokens in, {plan.output_tokens:,} out, {cost}"


# --- tune ------------------------------------------------------------------------------------------------------------


def tune(options: Namespace, screen: Screen) -> None:
    """Read a sample of the sources, keep what was found in the workspace, and show it."""
    wanted = TuneOptions(tokens=options.tokens, seed=options.seed, force=options.force)
    with screen.progress() as progress:
        report = asyncio.run(tune_workspace(options.sources, wanted, runtime_of(options, progress)))
    screen.result(report, lambda: _show_tailoring(report, options, screen))


def _show_tailoring(report: TuneReport, options: Namespace, screen: Screen) -> None:
    tailoring = report.tailoring
    screen.line(f"From {report.passages} passages of {report.documents} documents", style="bold green")
    kinds = list(map(str, tailoring.entity_types))
    facts = {"persona": tailoring.persona, "language": tailoring.language, "kinds": kinds, "usage": report.usage}
    screen.facts(facts_of(facts | {"examples": len(tailoring.examples)}), indent=2)
    screen.rows([f"left out {reason}" for reason in report.left_out], None, style="yellow")
    # Of what another place sets too: the file in the workspace comes last.
    in_force = load_settings({"workspace": options.workspace}).tailoring
    for name in Tailoring.model_fields:
        if getattr(in_force, name) != getattr(tailoring, name):
            screen.line(f"Your settings name another {name}, which counts instead.", style="yellow")
    screen.line()
    screen.line(f"Read it, and change what does not fit: {report.path}")
    screen.line(f"Then: trellis index {' '.join(options.sources)}   (everything is extracted anew where it differs)")
