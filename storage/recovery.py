"""Tells published generations from others, and rebuilds CURRENT where it is lost, damaged or older than they are.

A generation is published in this order, and a run may be killed between any two steps:

1. its folder is renamed from staging/ into generations/ (in a new workspace an empty CURRENT is written before);
2. each generation that it retires gets the file RETIRED, which names the new number;
3. CURRENT is replaced: this is the publication;
4. its folder gets the file PUBLISHED; where the run died before, the next writing command makes up for it.

So a number is known to be published by CURRENT (`last`) or by a file PUBLISHED, and with it every lower one that lies
in generations/: before a run begins, what is higher was moved to set-aside/, because its run died between 1 and 3.
RETIRED counts once the generation that it names is published, and always where CURRENT cannot be read: then a forgotten
text does not come back, even where the run that forgot it died.

PUBLISHED counts the switches of CURRENT, rollbacks too. Where CURRENT must be rebuilt, the generation that was switched
to last is current again, or the next one before it that can be read.

Earlier versions wrote neither file. While CURRENT can be read it says what they published, and the first writing
command writes the files. Where CURRENT was lost before, nothing tells a dead run's folder from a published one, and a
person has to (`trellis rollback N`).
"""

import logging
from collections.abc import Collection
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from storage.database import Database
from storage.documents import DocumentReader
from storage.errors import StorageError, UnknownGeneration
from storage.layout import (
    DATABASE,
    LEASE,
    MANIFEST,
    PUBLISHED,
    RETIRED,
    Layout,
    Manifest,
    Pointer,
    read_manifest,
    sync,
    write_atomically,
    write_manifest,
)
from storage.meta import MetaReader
from storage.records import Record

R = TypeVar("R", bound=Record)

logger = logging.getLogger(__name__)

_AFRESH = "Restore an archive (`trellis restore`), or index all sources into a new --workspace. "


class Published(Record):
    """The content of PUBLISHED: `switch` counts from 1 when CURRENT was last switched to the generation; 0: unknown."""

    number: int
    switch: int = 0


class Retired(Record):
    """The content of RETIRED: the generation whose run forgot something that this one holds."""

    by: int = 0


class Survey(Record):
    """What CURRENT and the folders together say. `pointer` is None where CURRENT is missing or damaged.

    `problem` completes the sentence "CURRENT: …" and is empty where CURRENT can be followed. `published` are those that
    can be read, or could if they were not damaged; `unpublished` lie in generations/, `aside` in set-aside/;
    `undecided` those that bear a RETIRED of a run that died before it published.
    """

    pointer: Pointer | None
    problem: str
    published: tuple[int, ...]
    retired: tuple[int, ...]
    unpublished: tuple[int, ...]
    aside: tuple[int, ...]
    retired_aside: tuple[int, ...]
    undecided: tuple[int, ...]
    switches: dict[int, int]
    last: int

    @property
    def unknown(self) -> bool:
        """Whether CURRENT is lost, and no folder says of itself that it was published and may be read."""
        return self.pointer is None and not self.published and bool(self.unpublished or self.retired)

    @property
    def preferred(self) -> list[int]:
        """The published generations in the order in which to go on from them: the current one, then the newest."""
        newest = sorted(self.published, key=lambda number: (self.switches.get(number, 0), number), reverse=True)
        current = self.pointer.current if self.pointer and not self.problem else None
        return newest if current is None else [current, *(number for number in newest if number != current)]


# --- looking ---------------------------------------------------------------------------------------------------------


def survey(layout: Layout) -> Survey:
    """Look at CURRENT and the folders; writes nothing, and may be called while a run publishes."""
    while True:
        text = layout.pointer_text()
        folders = layout.folders()
        aside = {number: _read(Retired, layout.folder_aside(number) / RETIRED) for number in layout.folders_aside()}
        marks = {number: _read(Published, layout.folder(number) / PUBLISHED) for number in folders}
        retired = {number: _read(Retired, layout.folder(number) / RETIRED) for number in folders}
        if layout.pointer_text() == text:
            break
    switches = {number: mark.switch for number, mark in marks.items() if mark and mark.number == number}
    pointer, problem = _pointer(layout, text, folders)
    highest = max([*switches, pointer.last if pointer else 0], default=0)
    by = {number: mark.by for number, mark in retired.items() if mark}
    effective = {number for number, other in by.items() if pointer is None or other <= highest}
    gone_aside = {number for number, mark in aside.items() if mark and (pointer is None or mark.by <= highest)}
    gone = effective | set(pointer.retired if pointer else ())
    published = [number for number in folders if number <= highest and number not in gone]
    if pointer is not None:
        problem = _problem(pointer, published, gone, highest)
    return Survey(
        pointer=pointer, problem=problem, published=tuple(published),
        retired=tuple(number for number in folders if number in gone),
        unpublished=tuple(number for number in folders if number > highest and number not in gone),
        aside=tuple(number for number in aside if number not in gone_aside), retired_aside=tuple(sorted(gone_aside)),
        undecided=tuple(sorted(by.keys() - effective)), switches=switches, last=max([highest, *folders, *aside]),
    )  # fmt: skip


def _pointer(layout: Layout, text: bytes | None, folders: Collection[int]) -> tuple[Pointer | None, str]:
    if text is None:
        return (None, "it is missing, but there are generations") if folders else (Pointer(), "")
    try:
        return layout.read_pointer(text), ""
    except StorageError:
        return None, "this is not a generation pointer"


def _problem(pointer: Pointer, published: Collection[int], gone: Collection[int], highest: int) -> str:
    if pointer.last < highest:
        return f"it is older than generation {highest}"
    if pointer.current in gone:
        return f"it names generation {pointer.current}, which holds what was forgotten"
    if pointer.current is not None and pointer.current not in published:
        return f"it names generation {pointer.current}, which is not there"
    return "it names no generation" if pointer.current is None and published else ""


def _read(kind: type[R], path: Path) -> R | None:
    """A file of a generation's folder; one that cannot be understood holds nothing but defaults, if it has those."""
    try:
        return kind.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValidationError:
        return kind() if kind is Retired else None


def is_retired(folder: Path) -> bool:
    """Whether a generation may be retired; `survey` says whether it is."""
    return (folder / RETIRED).exists()


def damage(folder: Path, number: int, whole: bool = False) -> str:
    """What is wrong with a generation's files, or nothing: the manifest, and whether the database is whole and opens.

    `whole` reads every column of every table too, for DuckDB checks its blocks when it reads them: about 3 s for 1 GB.
    Raises OSError where the files may not be read, WorkspaceFormatError for the schema of another version.
    """
    problem = _manifest_damage(folder, number) or _database_damage(folder / DATABASE, whole)
    if problem:
        return problem
    wanted, there = read_manifest(folder).database_bytes, (folder / DATABASE).stat().st_size
    return f"{DATABASE} has {there} bytes instead of {wanted}" if wanted not in (None, there) else ""


def _manifest_damage(folder: Path, number: int) -> str:
    try:
        manifest = Manifest.model_validate_json((folder / MANIFEST).read_bytes())
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        return f"{MANIFEST} is missing"
    except ValidationError:
        return f"{MANIFEST} cannot be understood"
    return "" if manifest.number == number else f"{MANIFEST} is that of generation {manifest.number}"


def _database_damage(path: Path, whole: bool) -> str:
    try:
        path.open("rb").close()  # what may not be read is not damaged: OSError
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        return f"{DATABASE} is missing"
    try:
        database = Database.open(path)
        try:
            if whole:
                database.read_everything()
        finally:
            database.close()
    except StorageError as error:
        return f"{DATABASE} cannot be read ({error.message})"
    return ""


# --- mending ---------------------------------------------------------------------------------------------------------


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
        if not _database_damage(folder / DATABASE, whole=True):
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
    return not _manifest_damage(folder, newest) and not read_manifest(folder).forgotten


def _tell(layout: Layout, number: int, problems: dict[int, str]) -> None:
    """Say which damaged generations are passed over; StorageError where they keep something out that this one holds."""
    for other, problem in problems.items():
        folder = layout.folder(other)
        if not _manifest_damage(folder, other):
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
