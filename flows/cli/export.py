"""`trellis export`: how does what was indexed leave for other programs?"""

from argparse import Namespace
from pathlib import Path

from flows.cli.opening import runtime_of
from flows.cli.screen import Screen
from flows.operations.export import MANIFEST, export_to


def export(options: Namespace, screen: Screen) -> int:
    """Write the generation into the folder, and say what is there now."""
    with runtime_of(options).workspace.read(options.as_of) as generation:
        report = export_to(Path(options.folder), options.format, generation)
    if screen.as_json:
        screen.json(report)
        return 0
    what = "edges" if report.format == "graphml" else "rows"
    screen.line(f"Generation {report.generation} is in {report.folder}", style="bold green")
    screen.facts([(name, f"{rows} {what}") for name, rows in report.files.items()], indent=2)
    screen.line(f"{MANIFEST} lists the files", indent=2, style="dim")
    return 0
