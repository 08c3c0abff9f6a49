"""`trellis graph merge`, `split`, `edit`, `edits` and `undo`: how is the graph corrected by hand?"""

import asyncio
from argparse import Namespace
from collections.abc import Awaitable, Callable

from flows.cli.opening import runtime_of
from flows.cli.screen import Screen
from flows.editing import EditReport, change, merge, split, undo
from flows.runtime import Runtime
from storage.errors import UsageError
from storage.graph import Edit, Subject

_USAGE = {
    "merge": "trellis graph merge NAME OTHER",
    "split": "trellis graph split NAME --names A,B | --documents D1,D2",
    "edit": "trellis graph edit NAME [--kind KIND] [--name NAME] [--description TEXT]",
    "edits": "trellis graph edits",
    "undo": "trellis graph undo ID",
}


def graph(options: Namespace, screen: Screen) -> int:
    """Show what has the name; after one of the words above, change the graph."""
    action, *words = options.words
    if action in _ACTIONS and (words or action == "edits"):
        return _ACTIONS[action](options, screen)
    from flows.cli.look import graph as look

    if words:
        raise UsageError(
            f"`trellis graph` takes one name, not {len(words) + 1}.", f'Put it in quotes: "{" ".join(options.words)}".'
        )
    for given in ("names", "documents", *_SET):
        if getattr(options, given) is not None:
            raise UsageError(f"--{given} belongs to an edit.", f"Use: {_USAGE['edit' if given in _SET else 'split']}.")
    options.name = action
    return look(options, screen)


def _merge(options: Namespace, screen: Screen) -> int:
    name, other = _words(options, 2)
    return _run(options, screen, lambda runtime: merge(name, other, runtime))


def _split(options: Namespace, screen: Screen) -> int:
    (name,) = _words(options, 1)
    names, documents = _listed(options.names), _listed(options.documents)
    if bool(names) == bool(documents):
        raise UsageError("Say which part is another thing: --names, or --documents.", f"Use: {_USAGE['split']}.")
    return _run(options, screen, lambda runtime: split(name, names, documents, runtime))


def _edit(options: Namespace, screen: Screen) -> int:
    (name,) = _words(options, 1)
    kind, new_name, description = (_said(options, given) for given in _SET)
    if kind is new_name is description is None:
        raise UsageError("An edit changes something.", f"Use: {_USAGE['edit']}.")
    return _run(options, screen, lambda runtime: change(name, kind, new_name, description, runtime))


def _undo(options: Namespace, screen: Screen) -> int:
    (number,) = _words(options, 1)
    if not number.isdecimal():
        raise UsageError(f"{number!r} is no number of an edit.", "See `trellis graph edits`.")
    return _run(options, screen, lambda runtime: undo(int(number), runtime))


def _edits(options: Namespace, screen: Screen) -> int:
    _words(options, 0)
    with runtime_of(options).workspace.read(options.as_of) as generation:
        found = generation.edits.edits()
    if screen.as_json:
        screen.json(found)
        return 0
    for edit in found:
        screen.line(f"{edit.id:>4}  {edit.at}  {told(edit)}")
    screen.line(f"{len(found)} edits; undo one: trellis graph undo ID", style="dim")
    return 0


_SET = ("kind", "name", "description")
_ACTIONS: dict[str, Callable[[Namespace, Screen], int]] = {
    "merge": _merge, "split": _split, "edit": _edit, "edits": _edits, "undo": _undo,
}  # fmt: skip


def told(edit: Edit) -> str:
    """An edit in words."""
    name = _subject(edit.subject)
    if edit.action == "merge" and edit.other:
        return f"{_subject(edit.other)} is {name}"
    if edit.action == "split":
        return f"{', '.join(edit.names) or 'what stands in ' + ', '.join(edit.documents)} is not {name}"
    changes = ((given, getattr(edit, given)) for given in _SET)
    return f"{name}: " + ", ".join(f"{given} {value!r}" for given, value in changes if value is not None)


def _subject(subject: Subject) -> str:
    return f"{subject.name} (of {', '.join(subject.documents)})" if subject.documents else subject.name


def _run(options: Namespace, screen: Screen, work: Callable[[Runtime], Awaitable[EditReport]]) -> int:
    with screen.progress() as progress:
        report = asyncio.run(_awaited(work, runtime_of(options, progress)))
    if screen.as_json:
        screen.json(report)
        return 0
    said = f"Edit {report.edit.id} is undone" if report.undone else f"Edit {report.edit.id} is kept"
    screen.line(f"{said}: {told(report.edit)}.")
    screen.line(f"Published generation {report.generation} with {report.entities} entities.", style="bold green")
    return 0


async def _awaited(work: Callable[[Runtime], Awaitable[EditReport]], runtime: Runtime) -> EditReport:
    return await work(runtime)


def _words(options: Namespace, count: int) -> list[str]:
    action, *words = (str(word) for word in options.words)
    if len(words) != count:
        raise UsageError(f"`trellis graph {action}` takes {count} names, not {len(words)}.", f"Use: {_USAGE[action]}.")
    if options.as_of is not None and action != "edits":
        raise UsageError("An earlier generation cannot be edited.", "Leave --as-of out, or roll back first.")
    return words


def _listed(given: str | None) -> list[str]:
    """Names with commas between them; a comma that belongs to a name is written twice."""
    parts = (given or "").replace(",,", "\0").split(",")
    return [part.replace("\0", ",").strip() for part in parts if part.strip()]


def _said(options: Namespace, given: str) -> str | None:
    value = getattr(options, given)
    if value is not None and not value.strip():
        raise UsageError(f"--{given} is empty.", "Leave it out, or say what it should be.")
    return str(value) if value is not None else None
