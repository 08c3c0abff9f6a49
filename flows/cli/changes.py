"""`trellis graph` (a look, or an edit by hand), `forget`, `dead-letter` and `diff`: changes without the sources."""

import asyncio
from argparse import Namespace
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any

from flows.cli.browse import show_entities
from flows.cli.screen import Screen, runtime_of
from flows.operations import changes
from flows.operations.diff import Changed, Diff, Difference, Thing, compare
from flows.runtime import Runtime
from storage.errors import UsageError, did_you_mean
from storage.export import KINDS
from storage.graph import Edit, Subject
from storage.records import by_key

SHOWN_THINGS = 10
SHOWN_ALIKE = 20
FAILED_AGAIN = 1
RETRY = "Try again: trellis dead-letter --retry"
NEEDS_SOURCE = "Mend the rows in their files, then run trellis index on them."


# --- the graph -------------------------------------------------------------------------------------------------------

_EDITABLE = ("kind", "name", "description")
_USAGE = {
    "merge": "trellis graph merge NAME OTHER",
    "split": "trellis graph split NAME --names A,B | --documents D1,D2",
    "edit": "trellis graph edit NAME [--kind KIND] [--name NAME] [--description TEXT]",
    "edits": "trellis graph edits",
    "undo": "trellis graph undo ID, one that `trellis graph edits` lists",
}


def graph(options: Namespace, screen: Screen) -> None:
    """Show what has the name; after one of the words above, change the graph."""
    fields = [field for field in ("names", "documents", *_EDITABLE) if getattr(options, field) is not None]
    names, documents = _listed(options.names), _listed(options.documents)
    values = [value and value.strip() for value in (options.kind, options.name, options.description)]
    match options.words:
        case ["edits"]:
            return _edits(options, screen)
        case ["merge", name, other] if not fields:
            editing = partial(changes.merge, name, other)
        case ["split", name] if bool(names) != bool(documents):
            editing = partial(changes.split, name, names, documents)
        case ["edit", name] if any(values) and "" not in values:
            editing = partial(changes.change, name, *values)
        case ["undo", number] if number.isdecimal():
            return _change(lambda runtime: changes.undo(int(number), runtime), options, screen)
        case [name] if not fields:
            return show_entities(name, options.as_of, options, screen)
        case [action, *_] if action in _USAGE or fields:
            usage = _USAGE[action if action in _USAGE else "edit" if fields[0] in _EDITABLE else "split"]
            raise UsageError("That is no edit of the graph: it says too little, or too much.", f"Use: {usage}.")
        case words:
            near = did_you_mean(words[0], _USAGE)
            remedy = f'{near}A name of several words stands in quotes: "{" ".join(words)}".'
            raise UsageError(f"`trellis graph` takes one name, not {len(words)}.", remedy)
    return _change(lambda runtime: changes.edit(editing, runtime), options, screen)


def _edits(options: Namespace, screen: Screen) -> None:
    with runtime_of(options).workspace.read(options.as_of) as generation:
        edits = generation.edits.edits()
    lines = [f"{edit.id:>4}  {edit.at}  {edit_in_words(edit)}" for edit in edits]
    lines.append(f"{len(edits)} edits; undo one: trellis graph undo ID")
    screen.result(edits, lambda: screen.rows(lines, None, indent=0))


def _change(
    change: Callable[[Runtime], Coroutine[Any, Any, changes.EditReport]], options: Namespace, screen: Screen
) -> None:
    if options.as_of is not None:
        raise UsageError("An earlier generation cannot be edited.", "Leave --as-of out, or roll back first.")
    with screen.progress() as progress:
        report = asyncio.run(change(runtime_of(options, progress)))
    done = "undone" if report.undone else "kept"
    title = f"Edit {report.edit.id} is {done}: {edit_in_words(report.edit)}. Published generation {report.generation}"
    screen.result(report, title, without=("edit", "undone", "generation"))


def _listed(text: str | None) -> list[str]:
    """Names with commas between them; a comma that belongs to a name is written twice."""
    parts = (text or "").replace(",,", "\0").split(",")
    return [part.replace("\0", ",").strip() for part in parts if part.strip()]


def edit_in_words(edit: Edit) -> str:
    """An edit in words."""
    name = _subject_in_words(edit.subject)
    if edit.action == "merge" and edit.other:
        return f"{_subject_in_words(edit.other)} is {name}"
    if edit.action == "split":
        return f"{', '.join(edit.names) or 'what stands in ' + ', '.join(edit.documents)} is not {name}"
    values = ((field, getattr(edit, field)) for field in _EDITABLE)
    return f"{name}: " + ", ".join(f"{field} {value!r}" for field, value in values if value is not None)


def _subject_in_words(subject: Subject) -> str:
    return f"{subject.name} (of {', '.join(subject.documents)})" if subject.documents else subject.name


# --- forgetting ------------------------------------------------------------------------------------------------------


def forget(options: Namespace, screen: Screen) -> None:
    """Forget documents; with --undo let them in again."""
    names = ", ".join(options.documents)
    if options.undo:
        result = {"documents": options.documents, "generation": changes.let_in(options.documents, runtime_of(options))}
        screen.result(result, "Let in again: index their source to bring them back.")
        return
    with screen.progress() as progress:
        report = asyncio.run(changes.forget(options.documents, runtime_of(options, progress)))
    screen.result(report, f"Forgotten: {names}", without=("documents", "held", "same_text", "files"))
    if not screen.as_json:
        if report.held:
            numbers = ", ".join(map(str, report.held))
            screen.line(f"read by somebody, gone with the next run after: {numbers}", indent=2, style="yellow")
        if report.same_text:
            screen.line(f"the same text stays in: {', '.join(report.same_text)}", indent=2, style="yellow")
        screen.rows([f"stays as it is: {file}" for file in report.files], SHOWN_ALIKE, style="yellow")
        if report.documents:
            screen.line("It stays out until it is indexed by name, or let in with --undo. Your files are as they were.")


# --- what failed -----------------------------------------------------------------------------------------------------


def letters(options: Namespace, screen: Screen) -> int:
    """List what failed; with --retry try it again: 0 where all of it succeeds, 1 where some fails again."""
    if options.retry:
        if options.as_of is not None:
            raise UsageError("Only what failed in the current generation can be tried again.", "Leave --as-of out.")
        with screen.progress() as progress:
            report = asyncio.run(changes.retry(runtime_of(options, progress)))
        number = report.generation
        end = f"published generation {number}" if report.published else f"generation {number} stays"
        title = f"{report.succeeded} of {report.tried} succeeded: {end}"
        screen.result(report, title, without=changes.RetryReport.model_fields.keys() - {"usage"})
        if not screen.as_json:
            _show_letters((*report.failed, *report.waiting), screen)
        return FAILED_AGAIN if report.failed else 0
    with runtime_of(options).workspace.read(options.as_of) as generation:
        stored = changes.letters_of(generation)
    screen.result(stored, lambda: _show_letters(stored, screen) if stored else screen.line("Nothing failed."))
    return 0


def _show_letters(shown: Sequence[changes.Letter], screen: Screen) -> None:
    """By step, error and remedy: a server that was down fails a hundred passages in the same words."""
    alike = by_key(((letter.step, letter.error, letter.remedy), letter) for letter in shown)
    for (step, error, remedy), failed in alike.items():
        items = [letter.item + (f"  of {letter.document}" if letter.document else "") for letter in failed]
        screen.line(f"{len(items)} in step {step}: {error}", style="yellow")
        if remedy:
            screen.line(remedy, indent=2)
        screen.rows(items, SHOWN_ALIKE, indent=4, more=" (--json lists all)")
    for remedy, applies in ((RETRY, False), (NEEDS_SOURCE, True)):
        if any(letter.needs_source is applies for letter in shown):
            screen.line(remedy, style="dim")


# --- differences -----------------------------------------------------------------------------------------------------


def diff(options: Namespace, screen: Screen) -> None:
    """Show the difference; with --json all of it. Raises UnknownGeneration."""
    difference = compare(runtime_of(options).workspace, options.before, options.after)
    screen.result(difference, lambda: _show_diff(difference, None if options.all else SHOWN_THINGS, screen))


def _show_diff(difference: Diff, most: int | None, screen: Screen) -> None:
    screen.line(f"From generation {difference.before} to generation {difference.after}", style="bold")
    if difference.same:
        screen.line("Nothing that is compared differs.", indent=2)
    for kind in KINDS:
        part = difference.of(kind)
        if part.added or part.removed or part.changed:
            screen.line(f"{kind}: {_counts(part)}", style="bold")
            for sign, things in (("+", part.added), ("-", part.removed), ("~", part.changed)):
                screen.rows([_thing(sign, thing) for thing in things], most, more=" (--all shows them)")


def _counts(part: Difference) -> str:
    numbers = {"added": part.added, "removed": part.removed, "changed": part.changed}
    return ", ".join(
        [*(f"{len(things)} {name}" for name, things in numbers.items() if things), f"{part.unchanged} as before"]
    )


def _thing(sign: str, thing: Thing) -> str:
    known_as = f" ({thing.id})" if thing.label != thing.id else ""
    fields = thing.fields if isinstance(thing, Changed) else ()
    shown = (f"\n      {field.field}: {_line(field.before)} → {_line(field.after)}" for field in fields)
    return f"{sign} {_line(thing.label)}{known_as}{''.join(shown)}"


def _line(text: str) -> str:
    return " ".join(text.split()) or "(nothing)"
