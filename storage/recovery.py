"""Rebuilds CURRENT where it is lost, damaged or old, sets dead runs' folders aside, and removes old generations.

`storage.survey` says how a published generation is known, and in which order one is published.
"""

import logging
import shutil
from collections.abc import Collection
from datetime import UTC, datetime
from pathlib import Path

from storage.database import Database
from storage.documents import DocumentReader
from storage.errors import StorageError, UnknownGeneration, WorkspaceFormatError
from storage.layout import (
    DATABASE,
    LEASE,
    PUBLISHED,
    RETIRED,
    Layout,
    Lease,
    Manifest,
    Pointer,
    read_manifest,
    sync,
    write_atomically,
    write_manifest,
)
from storage.meta import MetaReader
from storage.survey import Published, Retired, Survey, damage, database_damage, is_retired, manifest_damage, survey

logger = logging.getLogger(__name__)

_AFRESH = "Restore an archive (`trellis restore`), or index all sources into a new --workspace. "


def needs_mending(layout: Layout) -> bool:
    """Whether a run that writes would find something to mend, or cannot read the current generation."""
    found = survey(layout)
    if found.problem or found.unpublished or found.undecided:
        return True
    current = found.pointer.current if found.pointer else None
    if current is None:
        return False
    folder = layout.folder(current)
    return not (folder / LEASE).exists() or bool(damage(folder, current, whole=True))


def mend(layout: Layout, wanted: int | None = None, from_nothing: bool = False) -> None:
    """Bring the workspace into order; the caller holds the writer's lock. Says what it does in the log.

    Unpublished folders are set aside, and CURRENT is written where it cannot be followed or names what is damaged.
    `wanted`: the generation to make current. `from_nothing`: where no generation can be read, the next run may begin
    with an empty one. Raises StorageError, with nothing changed that cannot be done again, where that is not safe.
    """
    found = survey(layout)
    if found.unknown:
        named = f"Name the one to go on with: `trellis rollback N`, N of {_listed(found.unpublished)}. "
        remedy = f"{named if found.unpublished else _AFRESH}Nothing was changed."
        raise StorageError(
            layout.pointer_file, f"{found.problem}, and nothing says which of them to go on with", remedy
        )
    for number in found.undecided:
        # A link leads into another workspace, which is only read.
        if not layout.folder(number).is_symlink():
            (layout.folder(number) / RETIRED).unlink()
    for number in found.aside:
        (layout.folder_aside(number) / RETIRED).unlink(missing_ok=True)  # the run that retired it died
    for number in found.unpublished:
        _set_aside(layout, number)
    current = _current(layout, found, from_nothing) if wanted is None else wanted
    pointer = found.pointer or Pointer()
    pointer = Pointer(current=current, last=found.last, retired=tuple(sorted({*pointer.retired, *found.retired})))
    if pointer != (found.pointer or Pointer()) or (found.pointer is None and found.problem):
        if found.problem:
            logger.warning("CURRENT was mended (%s): generation %s is current.", found.problem, current or "none")
        layout.point(pointer)
    _complete(layout, found, current)


def publish_again(layout: Layout, number: int) -> None:
    """Make a generation that was set aside, or that nothing says was published, one that is; for `mend` to follow.

    Raises UnknownGeneration where there is none of this number, StorageError where it is damaged.
    """
    found = survey(layout)
    aside = layout.folder_aside(number)
    if number in found.aside:
        _refuse_damaged(aside, number)
        layout.generations.mkdir(exist_ok=True)
        aside.rename(layout.folder(number))
        sync(layout.generations)
        sync(layout.set_aside)
    elif number in (*found.published, *found.unpublished):
        _refuse_damaged(layout.folder(number), number)
    else:
        raise UnknownGeneration(number, found.published or found.unpublished)
    if number not in found.published:
        mark_published(layout, number, found.switches)


def mark_published(layout: Layout, number: int, switches: dict[int, int]) -> None:
    """Write PUBLISHED of the generation that CURRENT was switched to last."""
    mark = Published(number=number, switch=max(switches.values(), default=0) + 1)
    write_atomically(layout.folder(number) / PUBLISHED, mark.model_dump_json() + "\n")


def mark_retired(folder: Path, by: int = 0) -> None:
    """Write RETIRED, before the generation `by` is published; 0: it was retired long ago."""
    write_atomically(folder / RETIRED, Retired(by=by).model_dump_json() + "\n")


def _set_aside(layout: Layout, number: int) -> None:
    folder, target = layout.folder(number), layout.folder_aside(number)
    layout.set_aside.mkdir(exist_ok=True)
    folder.rename(target)
    sync(layout.set_aside)
    sync(layout.generations)
    logger.warning(
        "Generation %d was built but never published: its run ended too early. It was moved to %s. Nothing uses it; "
        "`trellis rollback %d` makes it current.", number, target, number,
    )  # fmt: skip


def _refuse_damaged(folder: Path, number: int) -> None:
    if problem := damage(folder, number, whole=True):
        raise StorageError(
            folder, f"this generation is damaged: {problem}", "Name another (see `trellis generations`)."
        )


def _current(layout: Layout, found: Survey, from_nothing: bool) -> int | None:
    """The generation to go on from: the first of the preferred ones that can be read."""
    problems: dict[int, str] = {}
    for number in found.preferred:
        problem = damage(layout.folder(number), number, whole=True)
        if not problem:
            _tell(layout, number, problems)
            return number
        problems[number] = problem
    for number, problem in problems.items():
        folder = layout.folder(number)
        if not database_damage(folder / DATABASE, whole=True):
            logger.warning("Generation %d: %s; it is made again from the database.", number, problem)
            _renew_manifest(folder, number)
            return number
    told = "; ".join(f"generation {number}: {problem}" for number, problem in problems.items()) or "none is there"
    if from_nothing and _may_begin_with_nothing(layout, found):
        if problems:
            logger.warning("No generation can be read (%s). The next one begins with nothing; index all sources.", told)
        return None
    if not problems and not found.retired:
        return None
    raise StorageError(layout.generations, f"no generation can be read ({told})", f"{_AFRESH}Nothing was removed.")


def _may_begin_with_nothing(layout: Layout, found: Survey) -> bool:
    """Whether nothing was forgotten that a generation without a past would take in again."""
    if not found.preferred:
        return not found.retired
    newest = found.preferred[0]
    folder = layout.folder(newest)
    return not manifest_damage(folder, newest) and not read_manifest(folder).forgotten


def _tell(layout: Layout, number: int, problems: dict[int, str]) -> None:
    """Say which damaged generations are passed over; StorageError where they keep something out that this one holds."""
    for other, problem in problems.items():
        folder = layout.folder(other)
        if not manifest_damage(folder, other):
            brought_back = set(read_manifest(folder).forgotten) - set(read_manifest(layout.folder(number)).forgotten)
            if brought_back:
                remedy = f"`trellis rollback {number}` goes back to it all the same; then forget them again."
                names = ", ".join(sorted(brought_back))
                raise StorageError(
                    folder, f"{problem}; generation {number} still holds what it forgot: {names}", remedy
                )
        logger.warning(
            "Generation %d is damaged (%s) and is left as it is; going on from generation %d.", other, problem, number
        )


def _listed(numbers: Collection[int]) -> str:
    return ", ".join(map(str, numbers))


def _renew_manifest(folder: Path, number: int) -> None:
    database = Database.open(folder / DATABASE)
    try:
        counts, forgotten = MetaReader(database).counts(), DocumentReader(database).forgotten()
    finally:
        database.close()
    created = datetime.fromtimestamp((folder / DATABASE).stat().st_mtime, UTC).isoformat(timespec="seconds")
    write_manifest(folder, Manifest(number=number, created=created, counts=counts, forgotten=tuple(forgotten)))


def _complete(layout: Layout, found: Survey, current: int | None) -> None:
    """Write what the folders of published generations lack: RETIRED first, so that no loss of CURRENT undoes it."""
    folders = {number: layout.folder(number) for number in layout.folders()}
    mine = {number: folder for number, folder in folders.items() if not folder.is_symlink()}
    for number in found.retired:
        if number in mine and not is_retired(mine[number]):
            mark_retired(mine[number])
    for number, folder in mine.items():
        if not (folder / LEASE).exists():
            logger.warning("%s was missing and is made again.", folder / LEASE)
            (folder / LEASE).touch()
            sync(folder)
        if number in found.published and number not in found.switches:
            write_atomically(folder / PUBLISHED, Published(number=number).model_dump_json() + "\n")
    others = [switch for number, switch in found.switches.items() if number != current]
    if current is not None and current in mine and found.switches.get(current, 0) <= max(others, default=0):
        mark_published(layout, current, found.switches)


def remove_old(layout: Layout, keep: int) -> list[int]:
    """Removes all but the newest `keep` generations, the current one and those being read; returns the removed numbers.

    Damaged ones stay and do not count. Retired ones go first, however many are kept, and those that were set aside and
    are retired. The caller holds the writer's lock, and has mended what there was to mend.
    """
    found = survey(layout)
    staying = stay(layout, found, keep)
    removed = []
    for number in [*found.retired, *found.published]:
        folder = layout.folder(number)
        lease = None if number in staying else Lease.take(folder / LEASE, exclusive=True)
        if lease is None:
            continue
        # Out of the readers' sight at once, deleted after: a reader never finds half a generation.
        going = layout.staging / f"going-{number}"
        folder.rename(going)
        lease.release()
        shutil.rmtree(going)
        removed.append(number)
    for number in found.retired_aside:
        shutil.rmtree(layout.folder_aside(number))
        removed.append(number)
    if removed:
        sync(layout.generations)
    return sorted(removed)


def stay(layout: Layout, found: Survey, keep: int) -> set[int]:
    """The published generations that no clean-up removes: the newest `keep`, the current one, and the damaged."""
    damaged = {number for number in found.published if _is_damaged(layout, number)}
    sound = [number for number in found.published if number not in damaged]
    current = found.pointer.current if found.pointer else None
    return {*damaged, *sound[-keep:], *([] if current is None else [current])}


def _is_damaged(layout: Layout, number: int) -> bool:
    try:
        return bool(damage(layout.folder(number), number))
    except WorkspaceFormatError:
        return False
    except StorageError:
        return True  # nothing is known of its content
