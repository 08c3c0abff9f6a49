"""`trellis graph`: show what the graph knows of an entity, and correct it by hand."""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Annotated

from cyclopts import App, Parameter

from flows.cli.browse import quoted
from flows.cli.common import COMMON, Common
from flows.cli.options import OPTIONS, AsOf, Count, Names
from flows.cli.running import command
from flows.cli.screen import Screen
from flows.operations import edit as editing
from flows.service.reading import EntityView, look_up
from storage.errors import UsageError

SHOWN_RELATIONS = 200
EPILOGUE = """\
Examples:
  trellis graph "Ilse Marrand"
  trellis graph 海岸水文研究所 --json
  trellis graph merge "Ilse Marrand" "I. Marrand"      both are one thing
  trellis graph split "Mercury" --documents rocks.md   there it is another
  trellis graph split "Tarn" --names "Mrs. Tarn"       this name is another
  trellis graph edit "Mercury" --kind place --description "A planet."
  trellis graph edits                                  what every run applies
  trellis graph undo 2"""

graph = App(
    name="graph",
    help="Show what the graph knows of an entity, or correct the graph by hand.",
    help_epilogue=EPILOGUE,
    default_parameter=OPTIONS,
)
Name = Annotated[str, Parameter(help="Any name of an entity.")]


@graph.default
@command
def look(name: Name, /, *, as_of: AsOf = None, common: Common = COMMON) -> None:
    """Show all entities of a name."""
    screen = common.screen
    with common.runtime().workspace.read(as_of) as generation:
        view = look_up(name, generation)
    screen.result(view, lambda: _show_entities(view.entities, screen))


@graph.command
@command
def merge(name: Name, other: str, /, *, common: Common = COMMON) -> None:
    """Say that two names mean one entity.

    Args:
        other: Another name of the same entity.
    """
    _edit(partial(editing.merge, name, other), common)


@graph.command
@command
def split(
    name: Name,
    /,
    *,
    names: Names | None = None,
    documents: Names | None = None,
    common: Common = COMMON,
) -> None:
    """Say that some names, or some documents, mean another entity.

    Args:
        names: The names that mean another entity (,, is a comma).
        documents: The documents that mean another entity.
    """
    if bool(_listed(names)) == bool(_listed(documents)):
        raise UsageError(
            "What means another entity: names or documents?",
            "Use: trellis graph split NAME --names A,B | --documents D1,D2.",
        )
    _edit(partial(editing.split, name, _listed(names), _listed(documents)), common)


@graph.command
@command
def edit(
    name: Name,
    /,
    *,
    kind: str | None = None,
    new_name: Annotated[str | None, Parameter(name="--name")] = None,
    description: str | None = None,
    common: Common = COMMON,
) -> None:
    """Give an entity another kind, name or description.

    Args:
        kind: The new kind.
        new_name: The new name.
        description: The new description.
    """
    kind, new_name, description = (
        value and value.strip() for value in (kind, new_name, description)
    )
    if not any((kind, new_name, description)) or "" in (kind, new_name, description):
        raise UsageError(
            "An edit gives an entity a kind, a name or a description.",
            "Use: trellis graph edit NAME [--kind KIND] [--name NAME] [--description TEXT].",
        )
    _edit(partial(editing.change, name, kind, new_name, description), common)


@graph.command
@command
def edits(*, as_of: AsOf = None, common: Common = COMMON) -> None:
    """List the corrections, which every index run applies again."""
    screen = common.screen
    with common.runtime().workspace.read(as_of) as generation:
        kept = generation.edits.edits()
    lines = [f"{row.id:>4}  {row.at}  {editing.edit_in_words(row)}" for row in kept]
    lines.append(f"{len(kept)} edits; undo one: trellis graph undo ID")
    screen.result(kept, lambda: screen.rows(lines, indent=0))


@graph.command
@command
def undo(number: Annotated[Count, Parameter(metavar="ID")], /, *, common: Common = COMMON) -> None:
    """Undo a correction.

    Args:
        number: The number of the correction, as `trellis graph edits` lists it.
    """
    with common.screen.progress() as progress:
        report = asyncio.run(editing.undo(number, common.runtime(progress)))
        _show_edit(report, common.screen)


def _edit(change: editing.Editing, common: Common) -> None:
    with common.screen.progress() as progress:
        report = asyncio.run(editing.edit(change, common.runtime(progress)))
        _show_edit(report, common.screen)


def _show_edit(report: editing.EditReport, screen: Screen) -> None:
    done = f"Edit {report.edit.id} is {'undone' if report.undone else 'kept'}"
    words = editing.edit_in_words(report.edit)
    title = f"{done}: {words}. Published generation {report.generation}"
    screen.result(report, title, without=("edit", "undone", "generation"))


def _listed(text: str | None) -> list[str]:
    """Split names at commas; a comma within a name is written twice."""
    parts = (text or "").replace(",,", "\0").split(",")
    return [part.replace("\0", ",").strip() for part in parts if part.strip()]


def _show_entities(entities: Sequence[EntityView], screen: Screen) -> None:
    for entity in entities:
        screen.title(f"{entity.name} ({entity.kind})")
        if entity.description:
            screen.line(entity.description, indent=2)
        count = f"{entity.occurrences} occurrences in {entity.documents} documents"
        screen.line(f"{count}, id {entity.id}", indent=2)
        screen.rows([f"also {alias.name}: {alias.reason}" for alias in entity.aliases])
        for relation in entity.relations[:SHOWN_RELATIONS]:
            arrow = "→" if relation.direction == "out" else "←"
            line = f"{arrow} {relation.predicate} {arrow} {relation.other}"
            screen.line(line, indent=2, style="cyan")
            places = [f"{quoted(place)} ({place.document})" for place in relation.statements]
            screen.rows(places, indent=6)
        if len(entity.relations) > SHOWN_RELATIONS:
            hidden = len(entity.relations) - SHOWN_RELATIONS
            screen.line(f"and {hidden} more relations (--json lists all)", "dim", indent=2)
        claims = [
            f"claim: {claim.description} "
            f"({', '.join(filter(None, (claim.kind, claim.status, claim.period)))}; "
            f"{claim.document})"
            for claim in entity.claims
        ]
        screen.rows(claims, SHOWN_RELATIONS, more=" claims (--json lists all)")
        facts = [
            f"fact: {fact.type} = {fact.object or fact.value} "
            f"({', '.join(filter(None, (fact.period, fact.document)))})"
            for fact in entity.facts
        ]
        screen.rows(facts, SHOWN_RELATIONS, more=" facts (--json lists all)")
