"""`trellis tune`: what was found out about the documents, and what is to be done with it?"""

import asyncio
from argparse import Namespace

from flows.cli.opening import runtime_of
from flows.cli.screen import Screen
from flows.operations.tune import TuneOptions, TuneReport, tune_workspace
from flows.settings import load_settings
from flows.usage import in_short
from prompts.tailoring.values import Tailoring


def tune(options: Namespace, screen: Screen) -> int:
    """Read a sample of the sources, keep what was found in the workspace, and show it."""
    wanted = TuneOptions(tokens=options.tokens, seed=options.seed, force=options.force)
    with screen.progress() as progress:
        report = asyncio.run(tune_workspace(options.sources, wanted, runtime_of(options, progress)))
    if screen.as_json:
        screen.json(report)
        return 0
    _show(report, screen)
    for name in _overridden(options, report.tailoring):
        screen.line(f"Your settings name another {name}, which counts instead.", style="yellow")
    screen.line()
    screen.line(f"Read it, and change what does not fit: {report.path}")
    screen.line(f"Then: trellis index {' '.join(options.sources)}   (everything is extracted anew where it differs)")
    return 0


def _show(report: TuneReport, screen: Screen) -> None:
    found = report.tailoring
    screen.line(
        f"From {report.passages} passages of {report.documents} documents ({report.tokens} tokens)", style="bold green"
    )
    kinds = [
        f"{one}" + (f"  ({report.names[one.name]} names)" if one.name in report.names else "")
        for one in found.entity_types
    ]
    kinds = kinds or ["none found: the common kinds stay"]
    screen.facts(
        [
            ("persona", found.persona or "none"),
            ("language", found.language or "not told: the documents' own"),
            *(("kinds" if place == 0 else "", kind) for place, kind in enumerate(kinds)),
            ("examples", f"{len(found.examples)} of {sum(one.tokens() for one in found.examples)} tokens"),
        ],
        indent=2,
    )
    if used := in_short(report.usage):
        screen.line(used, indent=2)
    for reason in report.left_out:
        screen.line(f"left out {reason}", indent=2, style="yellow")


def _overridden(options: Namespace, found: Tailoring) -> list[str]:
    """The values of the tailoring that another place sets too: the file in the workspace comes last."""
    in_force = load_settings({"workspace": options.workspace}).tailoring
    return [name for name in Tailoring.model_fields if getattr(in_force, name) != getattr(found, name)]
