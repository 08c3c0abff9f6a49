"""`trellis index`: what did the run find, and what did it make?"""

import asyncio
import os
from argparse import Namespace

from flows.cli.opening import runtime_of
from flows.cli.screen import Screen
from flows.remaking import in_words
from flows.usage import in_short
from storage.records import IndexReport, KeptPrompts
from storage.spending import Budget

SHOWN_SKIPPED = 10


def index(options: Namespace, screen: Screen) -> int:
    """Index the sources; with --record, or where a Prefect server is configured, as a flow run.

    With --dry-run only say what that would do and cost.
    """
    if options.dry_run:
        return _dry_run(options, screen)
    recorded = options.record or os.environ.get("PREFECT_API_URL")
    report = _recorded(options) if recorded else _plain(options, screen)
    if screen.as_json:
        screen.json(report)
    else:
        show(report, screen)
        if report.kept_prompts:
            _show_kept(report.kept_prompts, options, screen)
    return 0


def _show_kept(kept: KeptPrompts, options: Namespace, screen: Screen) -> None:
    """What --remake would do, with the forecast of what it takes."""
    from flows.cli.plan import used
    from flows.indexing import IndexOptions
    from flows.operations.forecast import forecast

    found = asyncio.run(forecast(options.sources, IndexOptions(remake=True), runtime_of(options)))
    screen.line(f"  {in_words(kept)}", style="yellow")
    screen.line(f"  --remake makes it anew: {used(found)}", style="yellow")


def show(report: IndexReport, screen: Screen) -> None:
    """The report for people."""
    counts = report.documents
    if report.published:
        screen.line(f"Published generation {report.generation} in {report.seconds:.1f} s", style="bold green")
    else:
        screen.line(f"Nothing has changed: generation {report.generation} stays", style="bold")
    changes = ", ".join(f"{number} {name}" for name, number in counts.model_dump().items() if number)
    screen.facts(
        [
            ("documents", changes or "none"),
            ("text", f"{report.chunks} chunks"),
            ("graph", f"{report.entities} entities, {report.relations} relations, {report.claims} claims"),
            ("themes", f"{report.communities} communities, {report.reports} reports"),
        ],
        indent=2,
    )
    if not report.chunks:
        screen.line("  The sources hold nothing that can be read.", style="yellow")
    if used := in_short(report.usage):
        screen.line(f"  {used}")
    for skipped in report.skipped[:SHOWN_SKIPPED]:
        screen.line(f"  skipped {skipped.path}: {skipped.reason}", style="yellow")
    if len(report.skipped) > SHOWN_SKIPPED:
        screen.line(f"  and {len(report.skipped) - SHOWN_SKIPPED} more skipped (--json lists all)", style="yellow")
    if report.dead_letters:
        screen.line(f"  {report.dead_letters} items failed: see trellis dead-letter", style="yellow")


def _plain(options: Namespace, screen: Screen) -> IndexReport:
    from flows.indexing import IndexOptions
    from flows.operations.history import index_run
    from flows.runtime import with_budget

    with screen.progress() as progress:
        runtime = with_budget(runtime_of(options, progress), _budget(options))
        wanted = IndexOptions(options.full, options.allow_removals, options.remake)
        return asyncio.run(index_run(options.sources, wanted, runtime))


def _dry_run(options: Namespace, screen: Screen) -> int:
    from flows.cli.plan import show_plan
    from flows.indexing import IndexOptions
    from flows.operations.forecast import forecast
    from flows.runtime import with_budget

    with screen.progress() as progress:
        runtime = with_budget(runtime_of(options, progress, reading=True), _budget(options))
        wanted = IndexOptions(options.full, options.allow_removals, options.remake)
        found = asyncio.run(forecast(options.sources, wanted, runtime))
    if screen.as_json:
        screen.json(found)
    else:
        show_plan(found, _budget(options), screen)
    return 0


def _budget(options: Namespace) -> Budget:
    return Budget(tokens=options.budget_tokens, usd=options.budget_usd)


def _recorded(options: Namespace) -> IndexReport:
    from flows.cli.recorded import shorten_errors
    from flows.index import index as index_flow

    shorten_errors()
    run = index_flow(
        options.sources, workspace=options.workspace, full=options.full, allow_removals=options.allow_removals,
        remake=options.remake, budget=_budget(options),
    )  # fmt: skip
    return asyncio.run(run)
