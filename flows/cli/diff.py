"""`trellis diff`: what came, what went and what changed between two generations?"""

from argparse import Namespace

from flows.cli.opening import runtime_of
from flows.cli.screen import Screen
from flows.operations.diff import Changed, Diff, Difference, Thing, compare
from storage.items import KINDS

SHOWN = 10


def diff(options: Namespace, screen: Screen) -> int:
    """Show the difference; with --json all of it. Raises UnknownGeneration."""
    found = compare(runtime_of(options).workspace, options.before, options.after)
    if screen.as_json:
        screen.json(found)
    else:
        _show(found, None if options.all else SHOWN, screen)
    return 0


def _show(found: Diff, most: int | None, screen: Screen) -> None:
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
