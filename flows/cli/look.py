"""`trellis reports`, `graph` and `show`: what is in a generation?"""

from argparse import Namespace
from collections.abc import Sequence
from difflib import get_close_matches

from flows.cli.opening import runtime_of
from flows.cli.screen import Screen
from storage.errors import UsageError
from storage.records import Record, Report, Scalar
from storage.rooms import Generation

SHOWN = 200


class DocumentView(Record):
    """A stored document: its text as offsets count it, and where it came from."""

    document: str
    title: str
    language: str
    text: str
    pages: tuple[int, ...]
    metadata: dict[str, Scalar]
    sources: tuple[str, ...]
    generation: int


def show(options: Namespace, screen: Screen) -> int:
    """Print a document's text and nothing else."""
    with _generation(options) as generation:
        document = generation.documents.document(options.document)
        number = generation.number
    if not screen.as_json:
        screen.exactly(document.text)
        return 0
    screen.json(
        DocumentView(
            document=document.id, title=document.title, language=document.language, text=document.text,
            pages=document.pages, metadata=document.metadata, generation=number,
            sources=tuple(sorted({part.source for part in document.parts})),
        )
    )  # fmt: skip
    return 0


def reports(options: Namespace, screen: Screen) -> int:
    """List the reports, the most important first within a level, or show one."""
    with _generation(options) as generation:
        found = generation.communities.reports(level=options.level)
    if options.report:
        _one_report(options.report, found, screen)
        return 0
    found.sort(key=lambda report: (report.level, -report.rating, report.community))
    if screen.as_json:
        screen.json(found)
        return 0
    for report in found:
        screen.line(f"{report.community}  level {report.level}  rated {report.rating:.1f}  {report.title}")
    screen.line(f"{len(found)} reports; one in full: trellis reports ID", style="dim")
    return 0


def graph(options: Namespace, screen: Screen) -> int:
    """Show every entity that has the name."""
    from flows.cli.entity import look_up

    with _generation(options) as generation:
        found = look_up(options.name, generation)
    if screen.as_json:
        screen.json(found)
        return 0
    for place, entity in enumerate(found.entities):
        if place:
            screen.line()
        screen.line(f"{entity.name} ({entity.kind})", style="bold")
        if entity.description:
            screen.line(entity.description, indent=2)
        screen.line(f"{entity.occurrences} occurrences in {entity.documents} documents, id {entity.id}", indent=2)
        for alias in entity.aliases:
            screen.line(f"also {alias.name}: {alias.reason}", indent=2)
        for relation in entity.relations[:SHOWN]:
            arrow = "→" if relation.direction == "out" else "←"
            screen.line(f"{arrow} {relation.predicate} {arrow} {relation.other}", indent=2, style="cyan")
            for said in relation.statements:
                screen.line(f'"{" ".join(said.quote.split())}" ({said.document})', indent=6)
        if len(entity.relations) > SHOWN:
            screen.line(f"and {len(entity.relations) - SHOWN} more relations (--json lists all)", indent=2, style="dim")
    return 0


def _one_report(name: str, found: Sequence[Report], screen: Screen) -> None:
    by_id = {report.community: report for report in found}
    if name not in by_id:
        near = get_close_matches(name, by_id, n=3)
        raise UsageError(
            f"There is no report {name!r}.", f"Nearest: {', '.join(near)}." if near else "See `trellis reports`."
        )
    report = by_id[name]
    if screen.as_json:
        screen.json(report)
        return
    screen.line(report.title, style="bold")
    screen.line(f"level {report.level}, rated {report.rating:.1f}: {report.rating_reason}", style="dim")
    screen.line(report.summary)
    for number, finding in enumerate(report.findings, 1):
        screen.line()
        screen.line(f"{number}. {finding.summary}", style="bold")
        screen.line(finding.explanation, indent=3)
        screen.line(f"{finding.document} [{finding.start}:{finding.end}]", indent=3, style="dim")


def _generation(options: Namespace) -> Generation:
    return runtime_of(options).workspace.read(options.as_of)
