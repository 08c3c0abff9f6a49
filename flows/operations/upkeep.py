"""The care of a workspace: room is given back, and an archive becomes a workspace again."""

import logging
from pathlib import Path

from flows.operations.history import note
from flows.runtime import Runtime, open_caches
from prompts.tailoring import from_toml
from storage.archive import ArchiveReport, read_archive
from storage.errors import StorageError
from storage.layout import size_of
from storage.records import Record

logger = logging.getLogger(__name__)


class CleanReport(Record):
    """Which generations went, how much room that gave back, and which are kept."""

    removed: tuple[int, ...]
    freed_bytes: int
    kept: tuple[int, ...]


def clean_workspace(
    runtime: Runtime, *, keep: int | None = None, caches: bool = False, vectors: bool = False
) -> CleanReport:
    """Remove old generations and what killed runs left. Raises WorkspaceLocked, NoGeneration.

    `keep` is how many generations stay (None: as set), `caches` empties the caches, `vectors` makes
    the current vector index anew.
    """
    workspace = runtime.workspace
    cache = open_caches(runtime.settings, workspace)
    places = {workspace.root, runtime.settings.cache_dir or workspace.root}
    before = sum(map(size_of, places))
    removed = workspace.clean(keep)
    if vectors:
        workspace.rebuild_vectors()
    if caches:
        cache.forget_caches()
        workspace.database.running_answers.remove_where(lambda _: True)
    for store in (workspace.database, cache)[: len(places)]:
        store.compact()
    return CleanReport(
        removed=tuple(removed),
        freed_bytes=max(before - sum(map(size_of, places)), 0),
        kept=tuple(info.number for info in workspace.generations()),
    )


def restore_archive(file: Path, runtime: Runtime) -> ArchiveReport:
    """Make the workspace of an archive, and its vector indexes anew."""
    workspace = runtime.workspace
    report = read_archive(file, workspace.root, from_toml)
    kept = report.generations
    note("restore", runtime, generation=report.generation, generations=len(kept))
    for number in kept:
        try:
            workspace.rebuild_vectors(number)
        except StorageError as error:
            slower = "will be searched in the database, slower"
            logger.warning("Vectors of generation %d %s: %s", number, slower, error)
    return report
