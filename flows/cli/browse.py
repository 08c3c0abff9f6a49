"""`trellis reports` and `show`: the reports and texts of a generation."""

from collections.abc import Sequence
from itertools import groupby
from typing import Annotated

from cyclopts import Parameter

from flows.cli.common import COMMON, Common
from flows.cli.options import AsOf, CountFrom0
from flows.cli.running import command
from flows.cli.screen import Screen
from flows.service.reading import (
    ListedReport,
    Quote,
    ReportView,
    list_reports,
    report_view,
    source_text,
)
from storage.errors import UsageError

SHOWN_OF_A_LEVEL = 10
SHOWN_MEMBERS = 30


@command
def show(document: str, /, *, as_of: AsOf = None, common: Common = COMMON) -> None:
    """Print the stored text of a document; with --json also its sources.

    Args:
        document: Its id: the path in its source, or the row's id.
    """
    screen = common.screen
    with common.runtime().workspace.read(as_of) as generation:
        view = source_text(generation, document)
    screen.result(view.model_dump(exclude={"spans"}), lambda: screen.exactly(view.text))


@command
def reports(
    report: Annotated[str | None, Parameter(metavar="ID")] = None,
    /,
    *,
    level: CountFrom0 | None = None,
    as_of: AsOf = None,
    common: Common = COMMON,
) -> None:
    """List the reports by level and importance, or show one.

    Args:
        report: The id of a report, as the list shows it.
        level: Only this level; 0 is the broadest.
    """
    screen = common.screen
    with common.runtime().workspace.read(as_of) as generation:
        if report:
            view = report_view(report, generation)
            screen.result(view, lambda: _show_report(view, screen))
            return
        listed = list_reports(generation)
    levels = sorted({row.level for row in listed.values()})
    if level is not None and level not in levels:
        have = ", ".join(map(str, levels)) or "none"
        raise UsageError(f"There is no level {level}.", f"Levels: {have}.")
    shown = [row for row in listed.values() if level in (None, row.level)]
    most = SHOWN_OF_A_LEVEL if level is None else None
    screen.result(shown, lambda: _show_levels(shown, most, screen))


def _show_levels(shown: Sequence[ListedReport], most: int | None, screen: Screen) -> None:
    for level, group in groupby(shown, key=lambda report: report.level):
        rows = [f"{row.community}  {row.rating:4.1f}  {row.title}  {_size(row)}" for row in group]
        screen.title(f"Level {level}: {len(rows)} reports")
        screen.rows(rows, most, more=f": trellis reports --level {level}")
    screen.line("One in full, with those above and below it: trellis reports ID", style="dim")


def _size(report: ListedReport) -> str:
    below = f", {len(report.children)} below" if report.children else ""
    return f"({report.members} entities{below})"


def _show_report(view: ReportView, screen: Screen) -> None:
    if above := view.parent:
        screen.line(f"↑ {above.community}  {above.title}  {_size(above)}", style="cyan")
    screen.title(view.title)
    rated = f"level {view.level}, rated {view.rating:.1f}: {view.rating_reason}"
    screen.line(f"{view.community}, {rated}", style="dim")
    screen.line(view.summary)
    for number, finding in enumerate(view.findings, 1):
        screen.line()
        screen.title(f"{number}. {finding.summary}")
        if finding.explanation.split() != finding.quote.split():
            screen.line(finding.explanation, indent=3)
        for place in (finding, *finding.others):
            screen.line(quoted(place), indent=3)
            screen.line(f"{place.document} [{place.start}:{place.end}]", indent=3, style="dim")
    screen.line()
    names = [f"{entity.name} ({entity.kind})" for entity in view.members]
    more = f", and {len(names) - SHOWN_MEMBERS} more" if len(names) > SHOWN_MEMBERS else ""
    screen.line(f"{len(names)} entities: {', '.join(names[:SHOWN_MEMBERS])}{more}")
    below = [f"↓ {child.community}  {child.title}  {_size(child)}" for child in view.children]
    screen.rows(below, indent=0, style="cyan")


def quoted(place: Quote) -> str:
    """Return a quote in one line."""
    return f'"{" ".join(place.quote.split())}"'
