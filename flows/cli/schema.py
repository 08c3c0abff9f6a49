"""`trellis schema`: the types of facts, how many there are of each, and what was left out."""

from flows.cli.common import COMMON, Common
from flows.cli.options import AsOf
from flows.cli.running import command
from flows.cli.screen import Screen
from flows.service.reading import SchemaView, schema_view

SHOWN_LEFT_OUT = 20


@command
def schema(*, as_of: AsOf = None, common: Common = COMMON) -> None:
    """Show the schema of the index with the entities and facts of each type."""
    screen = common.screen
    with common.runtime().workspace.read(as_of) as generation:
        view = schema_view(generation)
    screen.result(view, lambda: _show(view, screen))


def _show(view: SchemaView, screen: Screen) -> None:
    if not view.kinds:
        screen.line("This index was made without a schema: write a table [schema] into the")
        screen.line("settings file (docs/howto.md), and index again.")
        return
    for kind in view.kinds:
        counted = "1 entity" if kind.entities == 1 else f"{kind.entities} entities"
        screen.title(f"{kind.name}: {counted}")
        screen.rows([f"{one.name} ({one.type}): {one.facts}" for one in kind.attributes])
    screen.title("relations")
    screen.rows([f"{one.name} ({one.type}): {one.facts}" for one in view.relations])
    if view.left_out:
        screen.title("left out")
        reasons = [
            f"{one.facts} of {one.type}: {one.reason} ({one.subject}: {one.value})"
            for one in view.left_out
        ]
        screen.rows(reasons, SHOWN_LEFT_OUT, more=" reasons (--json lists all)")
