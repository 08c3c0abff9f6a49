"""`trellis reports` and `show`, and what `graph NAME` shows: a generation's reports, entities and stored texts."""

from argparse import Namespace
from collections.abc import Sequence
from itertools import groupby

from flows.cli.screen import Screen, runtime_of
from flows.service.reading import (
    EntityView,
    ListedReport,
    Quote,
    ReportView,
    list_reports,
    look_up,
    report_view,
    source_text,
)
from storage.errors import UsageError

SHOWN_OF_A_LEVEL = 10
SHOWN_MEMBERS = 30
SHOWN_RELATIONS = 200


def show(options: Namespace, screen: Screen) -> None:
    """Print a document's text as offsets count it and nothing else; with --json also where it came from."""
    with runtime_of(options).workspace.read(options.as_of) as generation:
        view = source_text(generation, options.document)
    screen.result(view.model_dump(exclude={"spans"}), lambda: screen.exactly(view.text))


# --- entities --------------------------------------------------------------------------------------------------------


def show_entities(name: str, as_of: int | None, options: Namespace, screen: Screen) -> None:
    """Show every entity that has the name."""
    with runtime_of(options).workspace.read(as_of) as generation:
        view = look_up(name, generation)
    screen.result(view, lambda: _show_entities(view.entities, screen))


def _show_entities(entities: Sequence[EntityView], screen: Screen) -> None:
    for entity in entities:
        _show_entity(entity, screen)


def _show_entity(entity: EntityView, screen: Screen) -> None:
    screen.line(f"{entity.name} ({entity.kind})", style="bold")
    about = [entity.description] if entity.description else []
    about.append(f"{entity.occurrences} occurrences in {entity.documents} documents, id {entity.id}")
    screen.rows(about + [f"also {alias.name}: {alias.reason}" for alias in entity.aliases], None)
    for relation in entity.relations[:SHOWN_RELATIONS]:
        arrow = "→" if relation.direction == "out" else "←"
        screen.line(f"{arrow} {relation.predicate} {arrow} {relation.other}", indent=2, style="cyan")
        screen.rows([f"{_quoted(place)} ({place.document})" for place in relation.statements], None, indent=6)
    if hidden := entity.relations[SHOWN_RELATIONS:]:
        screen.line(f"and {len(hidden)} more relations (--json lists all)", indent=2, style="dim")
    claims = [
        f"claim: {claim.description} ({', '.join(filter(None, (claim.kind, claim.status, claim.period)))}; "
        f"{claim.document})"
        for claim in entity.claims
    ]
    screen.rows(claims, SHOWN_RELATIONS, more=" claims (--json lists all)")


def _quoted(place: Quote) -> str:
    return f'"{" ".join(place.quote.split())}"'


# --- reports ---------------------------------------------------------------------------------------------------------


def reports(options: Namespace, screen: Screen) -> None:
    """List the reports, the most important first within a level, or show one."""
    with runtime_of(options).workspace.read(options.as_of) as generation:
        listed = list_reports(generation)
        if options.report:
            view = report_view(options.report, listed, generation)
            screen.result(view, lambda: _show_report(view, screen))
            return
    levels = sorted({report.level for report in listed.values()})
    if options.level is not None and options.level not in levels:
        raise UsageError(f"There is no level {options.level}.", f"Levels: {', '.join(map(str, levels)) or 'none'}.")
    shown = [report for report in listed.values() if options.level in (None, report.level)]
    screen.result(shown, lambda: _show_levels(shown, options.level is None, screen))


def _show_levels(shown: Sequence[ListedReport], in_short: bool, screen: Screen) -> None:
    for level, group in groupby(shown, key=lambda report: report.level):
        rows = [f"{report.community}  {report.rating:4.1f}  {report.title}  {_below(report)}" for report in group]
        screen.line(f"Level {level}: {len(rows)} reports", style="bold")
        screen.rows(rows, SHOWN_OF_A_LEVEL if in_short else None, more=f": trellis reports --level {level}")
    screen.line("One in full, with the reports above and below it: trellis reports ID", style="dim")


def _below(report: ListedReport) -> str:
    below = f", {len(report.children)} below" if report.children else ""
    return f"({report.members} entities{below})"


def _show_report(view: ReportView, screen: Screen) -> None:
    if view.parent:
        screen.line(f"↑ {view.parent.community}  {view.parent.title}  {_below(view.parent)}", style="cyan")
    screen.line(view.title, style="bold")
    screen.line(f"{view.community}, level {view.level}, rated {view.rating:.1f}: {view.rating_reason}", style="dim")
    screen.line(view.summary)
    for number, finding in enumerate(view.findings, 1):
        screen.line()
        screen.line(f"{number}. {finding.summary}", style="bold")
        if " ".join(finding.explanation.split()) != " ".join(finding.quote.split()):
            screen.line(finding.explanation, indent=3)
        for place in (finding, *finding.others):
            screen.line(_quoted(place), indent=3)
            screen.line(f"{place.document} [{place.start}:{place.end}]", indent=3, style="dim")
    screen.line()
    names = ", ".join(f"{entity.name} ({entity.kind})" for entity in view.members[:SHOWN_MEMBERS])
    more = f", and {len(view.members) - SHOWN_MEMBERS} more" if len(view.members) > SHOWN_MEMBERS else ""
    screen.line(f"{len(view.members)} entities: {names}{more}")
    screen.rows([f"↓ {child.community}  {child.title}  {_below(child)}" for child in view.children], None, 0, "cyan")
