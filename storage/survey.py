"""Says which generations were published, retired or damaged, from CURRENT and from what lies in their folders.

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

from collections.abc import Collection
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from storage.database import Database
from storage.errors import DiskFailed, DiskFull, InUse, NotPermitted, StorageError
from storage.faults import faults_told
from storage.layout import (
    DATABASE,
    MANIFEST,
    PUBLISHED,
    RETIRED,
    Layout,
    Manifest,
    Pointer,
    read_manifest,
)
from storage.records import Record

R = TypeVar("R", bound=Record)


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
        with faults_told(path):
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
    Raises NotPermitted, DiskFull, DiskFailed or InUse where nothing is known of their content, and WorkspaceFormatError
    for the schema of another version.
    """
    problem = manifest_damage(folder, number) or database_damage(folder / DATABASE, whole)
    if problem:
        return problem
    with faults_told(folder / DATABASE):
        wanted, there = read_manifest(folder).database_bytes, (folder / DATABASE).stat().st_size
    return f"{DATABASE} has {there} bytes instead of {wanted}" if wanted not in (None, there) else ""


def manifest_damage(folder: Path, number: int) -> str:
    """What is wrong with the manifest, or nothing."""
    try:
        with faults_told(folder / MANIFEST):
            manifest = Manifest.model_validate_json((folder / MANIFEST).read_bytes())
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        return f"{MANIFEST} is missing"
    except ValidationError:
        return f"{MANIFEST} cannot be understood"
    return "" if manifest.number == number else f"{MANIFEST} is that of generation {manifest.number}"


def database_damage(path: Path, whole: bool) -> str:
    """What is wrong with the database, or nothing."""
    try:
        with faults_told(path):
            path.open("rb").close()  # what may not be read is not damaged
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        return f"{DATABASE} is missing"
    try:
        database = Database.open(path)
        try:
            if whole:
                database.read_everything()
        finally:
            database.close()
    except (NotPermitted, DiskFull, DiskFailed, InUse):
        raise  # nothing is known of its content
    except StorageError as error:
        return f"{DATABASE} cannot be read ({error.message})"
    return ""
