"""`trellis diff`, `forget` and `dead-letter`: what changed between generations, what goes for good, and what failed."""

import asyncio
from argparse import Namespace
from collections import defaultdict
from collections.abc import Sequence

from flows.cli.screen import Screen, runtime_of
from flows.operations.diff import Changed, Diff, Difference, Thing, compare
from flows.operations.forget import ForgetReport, let_in
from flows.operations.retry import Letter, RetryReport, letters_of
from flows.usage import in_short
from storage.errors import UsageError
from storage.export import KINDS

SHOWN_THINGS = 10


def diff(options: Namespace, screen: Screen) -> int:
    """Show the difference; with --json all of it. Raises UnknownGeneration."""
    found = compare(runtime_of(options).workspace, options.before, options.after)
    screen.result(found, lambda: _show_diff(found, None if options.all else SHOWN_THINGS, screen))
    return 0


def _show_diff(found: Diff, most: int | None, screen: Screen) -> None:
    screen.line(f"From generation {found.before} to generation {found.after}", style="bold")
    if found.same:
        screen.line("Nothing that is compared differs.", indent=2)
    for kind in KINDS:
        part = found.of(kind)
        if part.added or part.removed or part.changed:
            screen.line(f"{kind}: {_counts(part)}", style="bold")
            _list("+", part.added, most, screen)
            _list("-", part.removed, most, screen)
            _list("~", part.changed, most, screen)


def _counts(part: Difference) -> str:
    numbers = {"added": part.added, "removed": part.removed, "changed": part.changed}
    told = [f"{len(things)} {word}" for word, things in numbers.items() if things]
    return ", ".join([*told, f"{part.unchanged} as before"])


def _list(sign: str, things: tuple[Thing, ...], most: int | None, screen: Screen) -> None:
    for thing in things[:most]:
        known_as = f" ({thing.id})" if thing.label != thing.id else ""
        screen.line(f"{sign} {_line(thing.label)}{known_as}", indent=2)
        for change in thing.fields if isinstance(thing, Changed) else ():
            screen.line(f"{change.field}: {_line(change.before)} → {_line(change.after)}", indent=6, style="dim")
    left = len(things) - len(things[:most])
    if left:
        screen.line(f"{sign} and {left} more (--all shows them)", indent=2, style="dim")


def _line(text: str) -> str:
    return " ".join(text.split()) or "(nothing)"


def forget(options: Namespace, screen: Screen) -> int:
    """Forget documents; with --undo let them in again."""
    if options.undo:
        return _undo(options, screen)
    from flows.operations.history import forget_run

    with screen.progress() as progress:
        runtime = runtime_of(options, progress)
        report = asyncio.run(forget_run(options.documents, runtime, options.keep_history))
    screen.result(report, lambda: _show_forgotten(report, screen))
    return 0


def _undo(options: Namespace, screen: Screen) -> int:
    if options.keep_history:
        raise UsageError("--undo brings no generation back.", "Leave --keep-history out.")
    number = let_in(options.documents, runtime_of(options))
    screen.result(
        {"documents": options.documents, "generation": number},
        lambda: screen.line(f"Let in again: {', '.join(options.documents)}. Index their source to bring them back."),
    )
    return 0


def _show_forgotten(report: ForgetReport, screen: Screen) -> None:
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
    _show_letters(found, screen)
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
    screen.result(report, lambda: _show_retried(report, screen))
    return FAILED_AGAIN if report.failed else 0


def _show_retried(report: RetryReport, screen: Screen) -> None:
    if report.published:
        done = f"{report.succeeded} of {report.tried} succeeded: published generation {report.generation}"
        screen.line(done, style="bold green")
    elif report.tried:
        screen.line(f"None of {report.tried} succeeded: generation {report.generation} stays", style="bold yellow")
    else:
        screen.line("There is nothing to try again.")
    if used := in_short(report.usage):
        screen.line(used, indent=2)
    _show_letters(report.failed, screen)
    _show_letters(report.waiting, screen)
    if report.waiting:
        screen.line(NEEDS_SOURCE, style="dim")


def _show_letters(found: Sequence[Letter], screen: Screen) -> None:
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
