"""`trellis forget`: a document goes from everything, and stays out."""

import asyncio
from argparse import Namespace

from flows.cli.opening import runtime_of
from flows.cli.screen import Screen
from flows.operations.forget import ForgetReport, let_in
from flows.usage import in_short
from storage.errors import UsageError


def forget(options: Namespace, screen: Screen) -> int:
    """Forget documents; with --undo let them in again."""
    if options.undo:
        return _undo(options, screen)
    from flows.operations.history import forget_run

    with screen.progress() as progress:
        runtime = runtime_of(options, progress)
        report = asyncio.run(forget_run(options.documents, runtime, options.keep_history))
    if screen.as_json:
        screen.json(report)
    else:
        _show(report, screen)
    return 0


def _undo(options: Namespace, screen: Screen) -> int:
    if options.keep_history:
        raise UsageError("--undo brings no generation back.", "Leave --keep-history out.")
    number = let_in(options.documents, runtime_of(options))
    if screen.as_json:
        screen.json({"documents": options.documents, "generation": number})
    else:
        screen.line(f"Let in again: {', '.join(options.documents)}. Index their source to bring them back.")
    return 0


def _show(report: ForgetReport, screen: Screen) -> None:
    screen.line(f"Forgotten: {', '.join(report.documents)}", style="bold green")
    kept = f"{report.chunks} passages, {report.memory} memories, {report.model_answers} cached answers"
    screen.facts(
        [
            ("published", f"generation {report.generation}"),
            ("removed", f"{kept}, {report.embeddings} cached vectors"),
            ("generations", f"{', '.join(map(str, sorted(report.retired))) or 'none'} removed"),
        ],
        indent=2,
    )
    if used := in_short(report.usage):
        screen.line(used, indent=2)
    if report.held:
        numbers = ", ".join(map(str, report.held))
        screen.line(f"read by somebody, gone with the next run after: {numbers}", indent=2, style="yellow")
    if report.same_text:
        screen.line(f"the same text stays in: {', '.join(report.same_text)}", indent=2, style="yellow")
    screen.line("It stays out until it is indexed by name, or let in with --undo. Your files are as they were.")
