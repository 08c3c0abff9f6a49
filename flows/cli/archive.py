"""`trellis archive` and `trellis restore`: a whole workspace as one file, and back."""

import logging
from argparse import Namespace
from pathlib import Path

from flows.cli.opening import runtime_of
from flows.cli.screen import Screen
from flows.cli.sizes import in_words
from storage.archive import read_archive, write_archive
from storage.errors import StorageError

logger = logging.getLogger(__name__)


def archive(options: Namespace, screen: Screen) -> int:
    """Write the archive; an index run may go on meanwhile."""
    report = write_archive(runtime_of(options).workspace.root, Path(options.file))
    if screen.as_json:
        screen.json(report)
    else:
        kept = ", ".join(map(str, report.generations))
        screen.line(f"Generations {kept} are in {report.file}, {in_words(report.size_bytes)}", style="bold green")
    return 0


def restore(options: Namespace, screen: Screen) -> int:
    """Make a workspace of the archive, and its vector indexes anew."""
    workspace = runtime_of(options).workspace
    report = read_archive(Path(options.file), workspace.root)
    for number in report.generations:
        try:
            workspace.rebuild_vectors(number)
        except StorageError as error:
            logger.warning("Vectors of generation %d will be searched in the database, slower: %s", number, error)
    if screen.as_json:
        screen.json(report)
    else:
        screen.line(f"Restored {workspace.root} as it was on {report.created}", style="bold green")
        screen.line(f"generation {report.generation} is current; see `trellis status`", indent=2)
    return 0
