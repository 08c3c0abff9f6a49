"""Publishes generations at an address outside of this machine, for readers on any machine.

publications/000007.json    a publication: what it holds, with the size and hash of each file
files/SHA256                each file once, whichever publications hold it

A publication is written last and never changed, so a reader never sees half of one; the one with
the highest number counts. Files are named by their content, so publishing again uploads what is new
only, and publishers at the same time write the same or different files, never one over another.
"""

import hashlib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, Literal
from uuid import uuid4

from fsspec.implementations.local import LocalFileSystem
from pydantic import AfterValidator, Field, ValidationError

from storage.errors import StorageError
from storage.faults import faults_told
from storage.layout import MANIFEST, Layout, Manifest, read_manifest
from storage.records import Record, utc_now
from storage.recovery import damage
from storage.remote import open_remote, remote_faults

GENERATION = "generation/"  # before the names of the files in a generation's folder
_WHOLE_PUTS = {"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az"}  # a file appears when it is whole
_TAILORING = "tailoring.toml"
_PIECE = 16 << 20  # bytes
_ABANDONED = timedelta(days=1)  # after it, a file that no publication holds is a leftover


def _check_path(path: str) -> str:
    """Refuse a path that would lead elsewhere: what is read at an address is not trusted."""
    top, *parts = path.split("/")
    is_known = (top == "programs" and len(parts) == 1) or (f"{top}/" == GENERATION and parts)
    is_plain = path.isprintable() and "\\" not in path and not {"", ".", ".."} & {*parts}
    if path != _TAILORING and not (is_known and is_plain):
        raise ValueError("no file of a workspace")
    return path


class PublishedFile(Record):
    """A file of a publication; `path` is relative to the workspace or begins with GENERATION."""

    path: Annotated[str, AfterValidator(_check_path)]
    size: Annotated[int, Field(ge=0)]
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class Publication(Record):
    """What is published under a number; readers give it to their generation.

    `generation` is the number where it was made, `forgotten` are the documents that it keeps out.
    Times are UTC in ISO form.
    """

    format: Literal[1] = 1
    number: Annotated[int, Field(ge=1, lt=1_000_000)]
    published: str
    generation: int
    created: str
    counts: dict[str, int]
    forgotten: tuple[str, ...]
    files: tuple[PublishedFile, ...]


class PublishReport(Record):
    """The publication that counts now, and what it took: files uploaded, publications removed.

    `generation` is the number in the workspace, `publication` the one that readers give it.
    """

    address: str
    publication: int
    generation: int
    files: int
    size_bytes: int
    uploaded: int
    uploaded_bytes: int
    removed: tuple[int, ...] = ()


class PublishedIndex:
    """What is published at an address. Raises UsageError where its driver is missing."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._fs, self._path = open_remote(address)
        protocol = self._fs.protocol
        protocols = {protocol} if isinstance(protocol, str) else {*protocol}
        self._puts_whole = bool(protocols & _WHOLE_PUTS)

    # --- reading ---

    def numbers(self) -> list[int]:
        """Return the numbers of the publications, ascending."""
        names = [name.rpartition("/")[2] for name in self._listed("publications")]
        return sorted(int(name[:6]) for name in names if re.fullmatch(r"\d{6}\.json", name))

    def read(self, number: int) -> Publication:
        """Read a publication. Raises StorageError where it is gone or cannot be understood."""
        name = self._publication(number)
        with remote_faults(self.address):
            text = self._fs.cat_file(name)
        try:
            return Publication.model_validate_json(text)
        except ValidationError as error:
            problem = f"publication {number} cannot be understood"
            remedy = "Upgrade trellis-rag if a newer one wrote it, or publish again."
            raise StorageError(self.address, problem, remedy) from error

    def newest(self) -> Publication | None:
        """Read the publication that counts; None where there is none."""
        numbers = self.numbers()
        return self.read(numbers[-1]) if numbers else None

    def fetch(self, file: PublishedFile, target: Path) -> None:
        """Copy a file here. Raises StorageError unless its content is what was published."""
        digest, size = hashlib.sha256(), 0
        with faults_told(target), target.open("xb") as out:
            for piece in self._pieces(file):
                digest.update(piece)
                size += len(piece)
                out.write(piece)
        if (size, digest.hexdigest()) != (file.size, file.sha256):
            problem = f"{file.path} is not what was published"
            raise StorageError(self.address, problem, "Publish again (`trellis publish`).")

    def _pieces(self, file: PublishedFile) -> Iterator[bytes]:
        with remote_faults(self.address):
            source = self._fs.open(
                self._file(file.sha256), "rb", block_size=_PIECE, cache_type="none"
            )
        with source:
            while True:
                with remote_faults(self.address):
                    piece: bytes = source.read(_PIECE)
                if not piece:
                    return
                yield piece

    # --- writing ---

    def missing(self, files: Iterable[PublishedFile]) -> list[PublishedFile]:
        """Return those that are not there, or not in their full size, each content once."""
        there = self._listed("files").items()
        sizes = {path.rpartition("/")[2]: info["size"] for path, info in there}
        new = {file.sha256: file for file in files if sizes.get(file.sha256) != file.size}
        return list(new.values())

    def upload(self, files: Mapping[PublishedFile, Path]) -> list[PublishedFile]:
        """Upload what is not there yet; return it."""
        new = self.missing(files)
        for file in new:
            source, target = files[file], self._file(file.sha256)
            with remote_faults(self.address):
                self._put_whole(source, target)
            # Chroma changes its file when somebody opens it.
            if _described(file.path, source) != file:
                with remote_faults(self.address):
                    self._fs.rm_file(target)
                raise StorageError(source, "it changed while it was published", "Publish again.")
        return new

    def _put_whole(self, source: Path, target: str) -> None:
        """Upload a file that appears only when it is whole."""
        if self._puts_whole:
            self._fs.put_file(str(source), target)
            return
        self._fs.makedirs(target.rpartition("/")[0], exist_ok=True)
        part = f"{target}.{uuid4().hex}"
        self._fs.put_file(str(source), part)
        self._fs.mv(part, target)

    def add(self, publication: Publication) -> bool:
        """Write a publication; False where another one has taken its number."""
        target = self._publication(publication.number)
        content = publication.model_dump_json(indent=1).encode()
        with remote_faults(self.address):
            if not self._puts_whole:
                self._fs.makedirs(target.rpartition("/")[0], exist_ok=True)
            try:
                if isinstance(self._fs, LocalFileSystem):
                    part = f"{target}.{uuid4().hex}"
                    self._fs.pipe_file(part, content)
                    try:
                        self._fs.link(part, target)  # fails where the target exists
                    finally:
                        self._fs.rm_file(part)
                else:
                    self._fs.pipe_file(target, content, mode="create")
            except OSError:
                if self._fs.exists(target):
                    return False
                raise
        return True

    def remove_all_but(self, keep: int) -> list[int]:
        """Remove all publications but the newest `keep`, and the files that only they hold.

        What killed publishers left behind goes too. Returns the removed numbers.
        """
        numbers = self.numbers()
        gone = [self.read(number) for number in numbers[:-keep]]
        with remote_faults(self.address):
            for publication in gone:
                self._fs.rm_file(self._publication(publication.number))
        theirs = {file.sha256 for publication in gone for file in publication.files}
        there = self._listed("files")
        # Read after the list of files: what is published meanwhile is needed too.
        needed = {file.sha256 for number in self.numbers() for file in self.read(number).files}
        for path in there:
            name = path.rpartition("/")[2]
            if name not in needed and (name in theirs or self._is_abandoned(path)):
                with remote_faults(self.address):
                    self._fs.rm_file(path)
        return [publication.number for publication in gone]

    def _is_abandoned(self, path: str) -> bool:
        with remote_faults(self.address):
            return bool(datetime.now(UTC) - self._fs.modified(path) > _ABANDONED)

    def _listed(self, folder: str) -> dict[str, dict[str, Any]]:
        """Return what is known of the files in a folder by path; nothing where it is missing."""
        with remote_faults(self.address):
            try:
                rows = self._fs.ls(f"{self._path}/{folder}", detail=True)
            except FileNotFoundError:
                return {}
        return {row["name"]: row for row in rows if row["type"] == "file"}

    def _publication(self, number: int) -> str:
        return f"{self._path}/publications/{number:06d}.json"

    def _file(self, sha256: str) -> str:
        return f"{self._path}/files/{sha256}"


def publish(root: Path, number: int, address: str, keep: int | None = None) -> PublishReport:
    """Publish a generation, which the caller holds open; `keep` is how many publications stay.

    Where the newest publication is the same, it counts on, and what it lacks is uploaded. Raises
    UsageError for an address without a driver, StorageError where the generation is damaged or the
    address cannot be written.
    """
    layout, index = Layout(root), PublishedIndex(address)
    folder = layout.folder(number)
    manifest = read_manifest(folder)
    problem = damage(folder, number, whole=True)
    if problem or manifest is None:
        remedy = "Roll back to a generation that is whole (`trellis rollback N`), or index again."
        raise StorageError(folder, f"this generation is damaged: {problem}", remedy)
    files = _files_of(layout, number)
    newest = _newest(index)
    if newest and _is_same(newest.files, files) and not index.missing(newest.files):
        publication, uploaded = newest, list[PublishedFile]()
    else:
        publication, uploaded = _published(index, number, manifest, files)
    return PublishReport(
        address=address,
        publication=publication.number,
        generation=number,
        files=len(files),
        size_bytes=sum(file.size for file in files),
        uploaded=len(uploaded),
        uploaded_bytes=sum(file.size for file in uploaded),
        removed=tuple(index.remove_all_but(keep)) if keep else (),
    )


def _published(
    index: PublishedIndex, number: int, manifest: Manifest, files: Mapping[PublishedFile, Path]
) -> tuple[Publication, list[PublishedFile]]:
    """Upload files and publish them; return the publication, and what was not there before."""
    uploaded = index.upload(files)
    wanted = Publication(
        number=1,
        published=utc_now(),
        generation=number,
        created=manifest.created,
        counts=manifest.counts,
        forgotten=manifest.forgotten,
        files=tuple(files),
    )
    publication = _added(index, wanted)
    uploaded += index.upload(files)  # what another publisher removed before this one was there
    return publication, uploaded


def _newest(index: PublishedIndex) -> Publication | None:
    """Read the publication that counts; None also for one that cannot be understood."""
    with suppress(StorageError):
        return index.newest()
    return None


def _is_same(there: Collection[PublishedFile], here: Collection[PublishedFile]) -> bool:
    """Whether files are the same, whatever readers have changed in those of a vector index."""

    def content(files: Collection[PublishedFile]) -> list[tuple[str, str]]:
        return [(file.path, file.sha256 if file.path.count("/") < 2 else "") for file in files]

    return content(there) == content(here)


def _added(index: PublishedIndex, wanted: Publication) -> Publication:
    """Write a publication under the next number, unless the newest holds the same files."""
    while True:
        newest = _newest(index)
        if newest and newest.files == wanted.files:
            return newest
        number = max(index.numbers(), default=0) + 1
        publication = wanted.model_copy(update={"number": number})
        if index.add(publication):
            return publication


def _files_of(layout: Layout, number: int) -> dict[PublishedFile, Path]:
    """Return the files from which questions are answered, by what is published of them."""
    root, folder = layout.root, layout.folder(number)
    named = {
        GENERATION + path.relative_to(folder).as_posix(): path
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path != folder / MANIFEST
    }
    others = [root / _TAILORING, *sorted(root.glob("programs/*.json"))]
    named |= {path.relative_to(root).as_posix(): path for path in others if path.is_file()}
    return {_described(name, path): path for name, path in named.items()}


def _described(name: str, path: Path) -> PublishedFile:
    with faults_told(path), path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return PublishedFile(path=name, size=file.tell(), sha256=digest)
