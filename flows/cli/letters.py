"""`trellis dead-letter`: what failed, why, and does it succeed by now?"""

import asyncio
from argparse import Namespace
from collections import defaultdict
from collections.abc import Sequence

from flows.cli.opening import runtime_of
from flows.cli.screen import Screen
from flows.operations.retry import Letter, RetryReport, letters_of
from flows.usage import in_short
from storage.errors import UsageError

RETRY = "Try again: trellis dead-letter --retry"
NEEDS_SOURCE = "Mend the rows in their files, then run trellis index on them."
FAILED_AGAIN = 1
SHOWN_ALIKE = 20


def letters(options: Namespace, screen: Screen) -> int:
    """List what failed; with --retry try it again: 0 where all of it succeeds, 1 where some fails again."""
    if options.retry:
        return _retry(options, screen)
    with runtime_of(options).workspace.read(options.as_of) as generation:
        found = letters_of(generation)
    if screen.as_json:
        screen.json(found)
        return 0
    if not found:
        screen.line("Nothing failed.")
        return 0
    _show(found, screen)
    screen.line()
    if not all(one.needs_source for one in found):
        screen.line(RETRY, style="dim")
    if any(one.needs_source for one in found):
        screen.line(NEEDS_SOURCE, style="dim")
    return 0


def _retry(options: Namespace, screen: Screen) -> int:
    from flows.operations.history import retry_run

    if options.as_of is not None:
        raise UsageError("Only what failed in the current generation can be tried again.", "Leave --as-of out.")
    with screen.progress() as progress:
        report = asyncio.run(retry_run(runtime_of(options, progress)))
    if screen.as_json:
        screen.json(report)
    else:
        _show_report(report, screen)
    return FAILED_AGAIN if report.failed else 0


def _show_report(report: RetryReport, screen: Screen) -> None:
    if report.published:
        done = f"{report.succeeded} of {report.tried} succeeded: published generation {report.generation}"
        screen.line(done, style="bold green")
    elif report.tried:
        screen.line(f"None of {report.tried} succeeded: generation {report.generation} stays", style="bold yellow")
    else:
        screen.line("There is nothing to try again.")
    if used := in_short(report.usage):
        screen.line(used, indent=2)
    _show(report.failed, screen)
    _show(report.waiting, screen)
    if report.waiting:
        screen.line(NEEDS_SOURCE, style="dim")


def _show(found: Sequence[Letter], screen: Screen) -> None:
    """By step, error and remedy: a server that was down fails a hundred passages in the same words."""
    alike: dict[tuple[str, str, str], list[Letter]] = defaultdict(list)
    for one in found:
        alike[one.step, one.error, one.remedy].append(one)
    for (step, error, remedy), group in alike.items():
        screen.line(f"{len(group)} in step {step}: {error}", style="yellow")
        if remedy:
            screen.line(remedy, indent=2)
        for one in group[:SHOWN_ALIKE]:
            screen.line(f"{one.item}" + (f"  of {one.document}" if one.document else ""), indent=4)
        if len(group) > SHOWN_ALIKE:
            screen.line(f"and {len(group) - SHOWN_ALIKE} more (--json lists all)", indent=4, style="dim")
