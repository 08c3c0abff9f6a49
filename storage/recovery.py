"""Recovery after a crash or damage: finds the newest whole generation and makes it current; removes old generations.

What a dead run has left in staging is removed by `storage.layout.Layout.clear_leftovers`.
"""

import logging
import shutil
from functools import lru_cache
from pathlib import Path

from pydantic import ValidationError

from storage.database import Database
from storage.errors import DiskFailed, DiskFull, InUse, NotPermitted, StorageError, TooLittle, WorkspaceFormatError
from storage.faults import faults_told
from storage.layout import DATABASE, MANIFEST, Layout, Lease, Manifest, content_of, read_manifest, sync

logger = logging.getLogger(__name__)


def damage(folder: Path, number: int, whole: bool = False) -> str:
    """What is wrong with a generation's files, or nothing: the manifest, and whether the database is whole and opens.

    `whole` reads every column of every table too, for DuckDB checks its blocks when it reads them: about 3 s for 1 GB.
    Raises NotPermitted, DiskFull, DiskFailed, TooLittle or InUse where nothing is known of their content, and
    WorkspaceFormatError for the schema of another version.
    """
    try:
        with faults_told(folder):
            if not all((folder / name).is_file() for name in (MANIFEST, DATABASE)):  # opening a pipe has no end
                raise FileNotFoundError
            manifest = Manifest.model_validate_json(content_of(folder / MANIFEST))
            size = (folder / DATABASE).stat().st_size
            (folder / DATABASE).open("rb").close()  # what may not be read is not damaged
    except FileNotFoundError:
        return f"{MANIFEST if not (folder / MANIFEST).is_file() else DATABASE} is missing"
    except ValidationError:
        return f"{MANIFEST} cannot be understood"
    if manifest.number != number:
        return f"{MANIFEST} is that of generation {manifest.number}"
    if manifest.database_bytes not in (None, size):
        return f"{DATABASE} has {size} bytes instead of {manifest.database_bytes}"
    try:
        _read(folder / DATABASE, whole, (folder / DATABASE).stat().st_mtime_ns)
    except (NotPermitted, DiskFull, DiskFailed, TooLittle, InUse):
        raise
    except StorageError as error:
        return f"{DATABASE} cannot be read ({error.message})"
    return ""


@lru_cache(maxsize=64)
def _read(database_file: Path, whole: bool, changed: int) -> None:
    """Opens a database, and reads it `whole`; what a process has found sound and nobody `changed` since is not read
    again."""
    database = Database.open(database_file)
    try:
        if whole:
            database.read_everything()
    finally:
        database.close()


def refuse_lost(layout: Layout) -> None:
    """StorageError where CURRENT names a generation and none is there: what it kept out is not known either."""
    stated = layout.stated()
    if stated and stated.current and not layout.folders():
        raise StorageError(
            layout.generations,
            f"generation {stated.current}, which CURRENT names, is not there, nor any other",
            "Put the folder back, or restore an archive (`trellis restore`). To begin with nothing, remove CURRENT.",
        )


def needs_mending(layout: Layout) -> bool:
    """Whether a run that writes would find CURRENT wanting, or cannot read the current generation."""
    pointer = layout.pointer()
    if pointer.current is None:
        return False
    return layout.stated() != pointer or bool(damage(layout.folder(pointer.current), pointer.current, whole=True))


def mend(layout: Layout, from_nothing: bool = False) -> None:
    """Write CURRENT where it cannot be followed, or names what is damaged; the caller holds the writer's lock.

    Of the generations that are whole the newest becomes current. `from_nothing`: where none is, the next run may begin
    with an empty one, unless one of them kept something out. Raises StorageError where that is not safe.
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
        onward = f"going on from generation {current}" if current else "the next one begins with nothing"
        logger.warning("Generation %d is damaged (%s) and is left as it is; %s.", number, problem, onward)
    if stated != pointer:
        logger.warning("CURRENT was mended: generation %s is current.", current or "none")
    if stated != (mended := pointer.model_copy(update={"current": current})):
        layout.point(mended)


def _refuse_what_was_forgotten(
    layout: Layout, problems: dict[int, str], current: int | None, from_nothing: bool
) -> None:
    """StorageError where a damaged generation keeps something out that the next one would take in again."""
    reasons = "; ".join(f"generation {number}: {problem}" for number, problem in problems.items())
    manifests = [read_manifest(layout.folder(number)) for number in problems]
    out = {name for manifest in manifests if manifest for name in manifest.forgotten}
    if current is None and (out or None in manifests or not from_nothing):
        remedy = "Restore an archive (`trellis restore`), or index all sources into a new --workspace."
        raise StorageError(
            layout.generations, f"no generation can be read ({reasons})", f"{remedy} Nothing was removed."
        )
    manifest = read_manifest(layout.folder(current)) if current else None
    if brought_back := out - set(manifest.forgotten if manifest else ()):
        raise StorageError(
            layout.generations,
            f"{reasons}; generation {current} still holds what was forgotten: {', '.join(sorted(brought_back))}",
            f"`trellis rollback {current}` goes back to it all the same; then forget them again.",
        )


def remove_old(layout: Layout, keep: int) -> list[int]:
    """Removes all but the newest `keep` generations, the current one and those being read; returns the removed numbers.

    Damaged ones stay and do not count. Retired ones go first, however many are kept. The caller holds the writer's
    lock, and has mended what there was to mend.
    """
    staying = stay(layout, keep)
    removed = []
    for number in layout.folders():
        folder = layout.folder(number)
        lease = None if number in staying else Lease.take(folder, exclusive=True)
        if lease is None:
            continue
        # Out of the readers' sight at once, deleted after: a reader never finds half a generation.
        going = layout.staging / f"going-{number}"
        folder.rename(going)
        lease.release()
        shutil.rmtree(going)
        removed.append(number)
    if removed:
        sync(layout.generations)
    return removed


def stay(layout: Layout, keep: int) -> set[int]:
    """The generations that no clean-up removes: the newest `keep`, the current one, and the damaged."""
    published, current = layout.published(), layout.pointer().current
    damaged = {number for number in published if told_damage(layout.folder(number), number)[0]}
    sound = [number for number in published if number not in damaged]
    return {*damaged, *sound[-keep:], *([] if current is None else [current])}


def told_damage(folder: Path, number: int) -> tuple[str, str]:
    """What is wrong with a generation's files, or nothing; and what to do where nothing is known of their content."""
    try:
        return damage(folder, number), ""
    except WorkspaceFormatError:
        return "", ""  # whoever opens it is told
    except StorageError as error:
        return error.message.removesuffix("."), error.remedy
