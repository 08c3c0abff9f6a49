"""Recovers from crashes and damage: the newest whole generation becomes current."""

import logging
import shutil
from contextlib import closing
from functools import lru_cache
from pathlib import Path

from storage.database import Database
from storage.errors import (
    DiskFailed,
    DiskFull,
    InUse,
    NotPermitted,
    StorageError,
    TooLittle,
    WorkspaceFormatError,
)
from storage.faults import faults_told
from storage.layout import DATABASE, MANIFEST, Layout, Lease, read_manifest
from storage.system import sync

logger = logging.getLogger(__name__)


def damage(folder: Path, number: int, whole: bool = False) -> str:
    """Say what is wrong with a generation's files; empty where nothing is.

    The manifest must match, and the database must open. `whole` also reads all of it, because
    DuckDB checks its blocks only when it reads them (about 3 s for 1 GB). Raises NotPermitted,
    DiskFull, DiskFailed, TooLittle or InUse where the content cannot be judged, and
    WorkspaceFormatError for another schema version.
    """
    for name in (MANIFEST, DATABASE):
        if not (folder / name).is_file():
            return f"{name} is missing"
    manifest = read_manifest(folder)
    if manifest is None:
        return f"{MANIFEST} cannot be understood"
    if manifest.number != number:
        return f"{MANIFEST} is that of generation {manifest.number}"
    status = (folder / DATABASE).stat()
    if manifest.database_bytes not in (None, status.st_size):
        return f"{DATABASE} has {status.st_size} bytes instead of {manifest.database_bytes}"
    try:
        with faults_told(folder):
            (folder / DATABASE).open("rb").close()  # A file without read permission is not damaged
        _open_and_read(folder / DATABASE, whole, status.st_mtime_ns)
    except (NotPermitted, DiskFull, DiskFailed, TooLittle, InUse):
        raise
    except StorageError as error:
        return f"{DATABASE} cannot be read ({error.message})"
    return ""


@lru_cache(maxsize=64)
def _open_and_read(database_file: Path, whole: bool, changed: int) -> None:
    """Open a database; a sound one is not read again until its time of change differs."""
    with closing(Database.open(database_file)) as database:
        if whole:
            database.read_everything()


def refuse_lost(layout: Layout) -> None:
    """Raise StorageError where CURRENT names a generation and no folder is there.

    Beginning anew could take in again what that generation kept out.
    """
    stated = layout.stated()
    if stated and stated.current and not layout.folders():
        raise StorageError(
            layout.generations,
            f"generation {stated.current}, which CURRENT names, is not there, nor any other",
            "Put the folder back, or restore an archive (`trellis restore`). To begin with nothing,"
            " remove CURRENT.",
        )


def needs_repair(layout: Layout) -> bool:
    """Whether CURRENT is wrong, or the current generation damaged."""
    pointer = layout.pointer()
    if pointer.current is None:
        return False
    folder = layout.folder(pointer.current)
    return layout.stated() != pointer or bool(damage(folder, pointer.current, whole=True))


def mend(layout: Layout, from_nothing: bool = False) -> None:
    """Repair CURRENT where it is wrong or names a damaged generation. The caller holds the lock.

    The newest whole generation becomes current. With `from_nothing`, and where none is whole, the
    next run may begin empty, unless a damaged generation kept something out. Raises StorageError
    where going on is not safe.
    """
    refuse_lost(layout)
    stated, pointer = layout.stated(), layout.pointer()
    if pointer.current is None:
        return
    current: int | None = None
    problems: dict[int, str] = {}
    for number in dict.fromkeys([pointer.current, *reversed(layout.published())]):
        problem = damage(layout.folder(number), number, whole=True)
        if not problem:
            current = number
            break
        problems[number] = problem
    _refuse_what_was_forgotten(layout, problems, current, from_nothing)
    for number, problem in problems.items():
        onward = (
            f"going on from generation {current}" if current else "the next one begins with nothing"
        )
        logger.warning(
            "Generation %d is damaged (%s) and is left as it is; %s.", number, problem, onward
        )
    if stated != pointer:
        logger.warning("CURRENT was repaired: generation %s is current.", current or "none")
    repaired = pointer.model_copy(update={"current": current})
    if stated != repaired:
        layout.point(repaired)


def _refuse_what_was_forgotten(
    layout: Layout, problems: dict[int, str], current: int | None, from_nothing: bool
) -> None:
    """Raise StorageError where the next generation would take in what a damaged one kept out."""
    reasons = "; ".join(f"generation {number}: {problem}" for number, problem in problems.items())
    manifests = [read_manifest(layout.folder(number)) for number in problems]
    out = {name for manifest in manifests if manifest for name in manifest.forgotten}
    if current is None and (out or None in manifests or not from_nothing):
        raise StorageError(
            layout.generations,
            f"no generation can be read ({reasons})",
            "Restore an archive (`trellis restore`), or index all sources into a new --workspace. "
            "Nothing was removed.",
        )
    manifest = read_manifest(layout.folder(current)) if current else None
    if brought_back := out - set(manifest.forgotten if manifest else ()):
        raise StorageError(
            layout.generations,
            f"{reasons}; generation {current} still holds what was forgotten: "
            f"{', '.join(sorted(brought_back))}",
            f"`trellis rollback {current}` goes back to it all the same; then forget them again.",
        )


def remove_old(layout: Layout, keep: int) -> list[int]:
    """Remove all but the newest `keep` generations, the current one and those being read.

    Damaged ones are kept and do not count. Returns the removed numbers. The caller holds the lock
    and has repaired the workspace.
    """
    kept = _kept(layout, keep)
    removed = []
    for number in layout.folders():
        folder = layout.folder(number)
        lease = None if number in kept else Lease.take(folder, exclusive=True)
        if lease is None:
            continue
        # Moved away before it is deleted, so that a reader never finds half a generation.
        going = layout.staging / f"going-{number}"
        folder.rename(going)
        lease.release()
        shutil.rmtree(going)
        removed.append(number)
    if removed:
        sync(layout.generations)
    return removed


def _kept(layout: Layout, keep: int) -> set[int]:
    published, current = layout.published(), layout.pointer().current
    damaged = {one for one in published if damage_and_remedy(layout.folder(one), one)[0]}
    sound = [number for number in published if number not in damaged]
    return {*damaged, *sound[-keep:], *([] if current is None else [current])}


def damage_and_remedy(folder: Path, number: int) -> tuple[str, str]:
    """Say what is wrong with a generation's files, and what to do where that cannot be judged."""
    try:
        return damage(folder, number), ""
    except WorkspaceFormatError:
        return "", ""  # Opening it raises this error
    except StorageError as error:
        return error.message.removesuffix("."), error.remedy
