"""Free room in a workspace, and restore one from an archive."""

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
    """The generations that were removed and kept, and the bytes that this freed."""

    removed: tuple[int, ...]
    freed_bytes: int
    kept: tuple[int, ...]


def clean_workspace(
    runtime: Runtime, *, keep: int | None = None, caches: bool = False, vectors: bool = False
) -> CleanReport:
    """Remove old generations and the remains of killed runs. Raises WorkspaceLocked, NoGeneration.

    `keep` is how many generations are kept (None: as set), `caches` also empties the caches,
    `vectors` rebuilds the current vector index.
    """
    workspace = runtime.workspace
    cache = open_caches(runtime.settings, workspace)
    folders = {workspace.root, runtime.settings.cache_dir or workspace.root}
    before = sum(map(size_of, folders))
    removed = workspace.clean(keep)
    if vectors:
        workspace.rebuild_vectors()
    if caches:
        cache.forget_caches()
        workspace.database.running_answers.remove_where(lambda _: True)
    for database in {workspace.database, cache}:
        database.compact()
    return CleanReport(
        removed=tuple(removed),
        freed_bytes=max(before - sum(map(size_of, folders)), 0),
        kept=tuple(info.number for info in workspace.generations()),
    )


def restore_archive(file: Path, runtime: Runtime) -> ArchiveReport:
    """Restore the workspace of an archive, and rebuild its vector indexes."""
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
