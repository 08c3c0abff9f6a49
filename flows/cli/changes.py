"""`trellis forget`, `dead-letter` and `diff`: changes without the sources, and comparisons."""

import asyncio
from collections.abc import Sequence
from typing import Annotated

from cyclopts import Parameter

from flows.cli.common import COMMON, Common
from flows.cli.options import AsOf, Count
from flows.cli.running import command
from flows.cli.screen import Screen
from flows.operations import forget as forgetting
from flows.operations import retry as retrying
from flows.operations.diff import Changed, Diff, Difference, Thing, compare
from storage.errors import UsageError
from storage.export import KINDS
from storage.records import by_key

SHOWN_THINGS = 10
SHOWN_ALIKE = 20
FAILED_AGAIN = 1
RETRY = "Try again: trellis dead-letter --retry"
NEEDS_SOURCE = "Repair the rows in their files, then run trellis index on them."


@command
def forget(
    documents: Annotated[tuple[str, ...], Parameter(metavar="DOCUMENT")],
    /,
    *,
    undo: bool = False,
    common: Common = COMMON,
) -> None:
    """Forget documents; with --undo allow them again.

    Args:
        documents: The id of a document: its path, or the row's id.
        undo: Allow it again; the next index run of its source brings it back.
    """
    screen = common.screen
    if undo:
        generation = forgetting.let_in(documents, common.runtime())
        screen.result(
            {"documents": documents, "generation": generation},
            "Allowed again: index their source to bring them back.",
        )
        return
    with screen.progress() as progress:
        report = asyncio.run(forgetting.forget(documents, common.runtime(progress)))
    title = f"Forgotten: {', '.join(documents)}"
    screen.result(report, title, without=("documents", "held", "same_text", "files"))
    if not screen.as_json:
        _show_left(report, screen)


def _show_left(report: forgetting.ForgetReport, screen: Screen) -> None:
    """Show what remains of the documents."""
    if report.held:
        held = ", ".join(map(str, report.held))
        screen.warn(f"still in use, removed by the next run after that: generations {held}")
    if report.same_text:
        screen.warn(f"the same text stays in: {', '.join(report.same_text)}")
    files = [f"stays as it is: {file}" for file in report.files]
    screen.rows(files, SHOWN_ALIKE, style="yellow")
    if report.documents:
        screen.line(
            "It stays out until it is indexed by name or allowed with --undo. Your files are "
            "unchanged."
        )


@command
def dead_letter(*, retry: bool = False, as_of: AsOf = None, common: Common = COMMON) -> int:
    """List what failed; with --retry try it again, and return 1 if anything fails again.

    Args:
        retry: Try it again and publish what succeeds; needs no source.
    """
    screen = common.screen
    if retry:
        return _retry(as_of, common)
    with common.runtime().workspace.read(as_of) as generation:
        letters = retrying.letters_of(generation)
    screen.result(letters, lambda: _show_letters(letters, screen))
    return 0


def _retry(as_of: int | None, common: Common) -> int:
    screen = common.screen
    if as_of is not None:
        raise UsageError(
            "Only what failed in the current generation can be tried again.", "Leave --as-of out."
        )
    with screen.progress() as progress:
        report = asyncio.run(retrying.retry(common.runtime(progress)))
    number = report.generation
    end = f"published generation {number}" if report.published else f"generation {number} stays"
    title = f"{report.succeeded} of {report.tried} succeeded: {end}"
    screen.result(report, title, without=retrying.RetryReport.model_fields.keys() - {"usage"})
    failing = (*report.failed, *report.waiting)
    if failing and not screen.as_json:
        _show_letters(failing, screen)
    return FAILED_AGAIN if report.failed else 0


def _show_letters(letters: Sequence[retrying.Letter], screen: Screen) -> None:
    """Show failures grouped by step, error and remedy: they often have one cause."""
    if not letters:
        screen.line("Nothing failed.")
    groups = by_key(((letter.step, letter.error, letter.remedy), letter) for letter in letters)
    for (step, error, remedy), failed in groups.items():
        screen.line(f"{len(failed)} in step {step}: {error}", style="yellow")
        if remedy:
            screen.line(remedy, indent=2)
        items = [
            f"{letter.item}  of {letter.document}" if letter.document else letter.item
            for letter in failed
        ]
        screen.rows(items, SHOWN_ALIKE, indent=4, more=" (--json lists all)")
    if any(not letter.needs_source for letter in letters):
        screen.line(RETRY, style="dim")
    if any(letter.needs_source for letter in letters):
        screen.line(NEEDS_SOURCE, style="dim")


@command
def diff(
    before: Count,
    after: Count | None = None,
    /,
    *,
    every: Annotated[bool, Parameter(name="--all")] = False,
    common: Common = COMMON,
) -> None:
    """Show the difference; with --json all of it.

    Args:
        before: A number that `trellis generations` lists.
        after: Another one (default: the current one).
        every: Show all rows.
    """
    screen = common.screen
    difference = compare(common.runtime().workspace, before, after)
    most = None if every else SHOWN_THINGS
    screen.result(difference, lambda: _show_diff(difference, most, screen))


def _show_diff(difference: Diff, most: int | None, screen: Screen) -> None:
    screen.title(f"From generation {difference.before} to generation {difference.after}")
    if difference.same:
        screen.line("Nothing that is compared differs.", indent=2)
    for kind in KINDS:
        part = difference.of(kind)
        if part.added or part.removed or part.changed:
            screen.title(f"{kind}: {_counts(part)}")
            for sign, things in (("+", part.added), ("-", part.removed), ("~", part.changed)):
                screen.rows([_thing(sign, thing) for thing in things], most, more=" (--all)")


def _counts(part: Difference) -> str:
    numbers = {"added": part.added, "removed": part.removed, "changed": part.changed}
    counts = [f"{len(things)} {name}" for name, things in numbers.items() if things]
    return ", ".join([*counts, f"{part.unchanged} as before"])


def _thing(sign: str, thing: Thing) -> str:
    known_as = f" ({thing.id})" if thing.label != thing.id else ""
    fields = thing.fields if isinstance(thing, Changed) else ()
    shown = [
        f"\n      {field.field}: {_line(field.before)} → {_line(field.after)}" for field in fields
    ]
    return f"{sign} {_line(thing.label)}{known_as}{''.join(shown)}"


def _line(text: str) -> str:
    return " ".join(text.split()) or "(nothing)"
