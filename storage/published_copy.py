"""Keeps a local workspace at what is published at an address.

Any number of processes may use one folder: one of them fetches while the others go on with what is
there. A publication is fetched aside, checked as a whole like an archive, and then becomes a
generation by a rename; the earlier one goes with its last reader.
"""

import json
import logging
import shutil
import threading
import time
from collections.abc import Collection
from pathlib import Path
from uuid import uuid4

from pydantic import ValidationError

from storage.archive import check_workspace
from storage.errors import NothingPublished, StorageError, TrellisError, WorkspaceLocked
from storage.faults import faults_told
from storage.layout import (
    DATABASE,
    MANIFEST,
    Layout,
    Manifest,
    Origin,
    Pointer,
    WriterLock,
    read_manifest,
    sync_tree,
    write_atomically,
)
from storage.publication import GENERATION, Publication, PublishedIndex
from storage.recovery import remove_old
from storage.system import sync
from storage.workspace_db import WorkspaceDatabase

PUBLICATION = "publication.json"  # in the folder of a generation
_PAUSE = 0.2  # seconds

logger = logging.getLogger(__name__)


class PublishedCopy:
    """A workspace that holds the newest publication of an address."""

    def __init__(self, root: Path, address: str) -> None:
        self._layout = Layout(root)
        self._index = PublishedIndex(address)
        self._following = threading.Lock()

    def refresh(self) -> None:
        """Fetch the newest publication unless it is here, and remove what nobody reads any more.

        Raises NothingPublished where nothing is there, StorageError where it cannot be fetched.
        """
        newest, layout = self._index.newest(), self._layout
        if newest is None:
            raise NothingPublished(self._index.address)
        if layout.folders() == [newest.number] and self._is_current(newest):
            return
        lock = self._locked()
        if lock is None:
            return
        try:
            if not self._is_current(newest):
                self._fetch(newest)
            remove_old(layout, 1)
        finally:
            lock.release()

    def follow(self, every: float) -> None:
        """Refresh every so many seconds in a thread of this process, from the first call on."""
        if self._following.acquire(blocking=False):
            thread = threading.Thread(target=self._follow, args=(every,), daemon=True)
            thread.start()

    def _follow(self, every: float) -> None:
        told = ""
        while True:
            time.sleep(every)
            try:
                self.refresh()
                told = ""
            except TrellisError as error:
                if str(error) != told:
                    logger.warning("What is published stays as it was here: %s", error)
                told = str(error)
            except Exception:
                logger.exception("What is published was not followed; the next look tries again.")

    def _locked(self) -> WriterLock | None:
        """Take the lock; None where another process fetches and there is something to read."""
        while True:
            try:
                return WriterLock(self._layout.lock_file)
            except WorkspaceLocked:
                if self._layout.pointer().current is not None:
                    return None
                time.sleep(_PAUSE)

    def _is_current(self, publication: Publication) -> bool:
        stated = self._layout.stated()
        if stated is None or stated.current != publication.number:
            return False
        return self._held(publication.number) == publication

    def _held(self, number: int) -> Publication | None:
        """Return the publication that a generation here was fetched from."""
        try:
            text = (self._layout.folder(number) / PUBLICATION).read_bytes()
            return Publication.model_validate_json(text)
        except (FileNotFoundError, ValidationError):
            return None

    def _fetch(self, newest: Publication) -> None:
        """Make a publication the current generation. The caller holds the lock."""
        layout, number = self._layout, newest.number
        folder = layout.folder(number)
        if folder.exists() and self._held(number) != newest:
            problem = f"publication {number} is another one than the one in {folder}"
            remedy = "Publish once more, which gives it a number of its own."
            raise StorageError(self._index.address, problem, remedy)
        layout.clear_leftovers()
        aside = Layout(layout.staging / uuid4().hex)
        if not folder.exists():
            self._fetch_files(newest, aside)
            self._take_others(aside.root)
            layout.generations.mkdir(exist_ok=True)
            aside.folder(number).rename(folder)
            sync(layout.generations)
            layout.clear_leftovers()
        # Not `pointer`, which may name the new folder already.
        before = layout.stated() or Pointer()
        self._forget(set(newest.forgotten) - self._forgotten(before.current))
        layout.point(
            Pointer(
                current=number,
                last=max(number, before.last, *layout.folders()),
                retired=tuple(other for other in layout.folders() if other != number),
            )
        )

    def _fetch_files(self, publication: Publication, aside: Layout) -> None:
        """Fetch a publication as a workspace of its own, and check all of it."""
        folder = aside.folder(publication.number)
        for file in publication.files:
            below = file.path.removeprefix(GENERATION)
            target = folder / below if below != file.path else aside.root / file.path
            with faults_told(target):
                target.parent.mkdir(parents=True, exist_ok=True)
            self._index.fetch(file, target)
        manifest = Manifest(
            number=publication.number,
            created=publication.created,
            counts=publication.counts,
            forgotten=publication.forgotten,
            database_bytes=next(
                (file.size for file in publication.files if file.path == GENERATION + DATABASE), 0
            ),
        )
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(folder / MANIFEST, manifest.model_dump_json(indent=2) + "\n")
        write_atomically(folder / PUBLICATION, publication.model_dump_json(indent=1) + "\n")
        aside.point(Pointer(current=publication.number, last=publication.number))
        try:
            check_workspace(aside)
        except ValueError as problem:
            words = f"publication {publication.number} cannot be used: {problem}"
            raise StorageError(self._index.address, words, "Publish again.") from problem
        sync_tree(aside.root)

    def _take_others(self, aside: Path) -> None:
        """Replace what stands beside the generations: the tailoring and compiled steps."""
        root = self._layout.root
        for name in ("tailoring.toml", "programs"):
            was, now = root / name, aside / name
            if was.is_dir():
                shutil.rmtree(was)
            if now.exists():
                now.replace(was)
            else:
                was.unlink(missing_ok=True)

    def _forgotten(self, number: int | None) -> set[str]:
        manifest = read_manifest(self._layout.folder(number)) if number else None
        return set(manifest.forgotten if manifest else ())

    def _forget(self, documents: Collection[str]) -> None:
        """Remove what the database of this workspace keeps of documents that are now kept out."""
        if not documents or not self._layout.database_file.exists():
            return
        database = WorkspaceDatabase(self._layout.database_file)
        names = [json.dumps(name, ensure_ascii=False) for name in documents]

        def holds(text: str) -> bool:
            return any(name in text.replace('\\"', '"') for name in names)

        database.memory.remove_documents(documents)
        database.running_answers.remove_where(holds)
        database.watched.forget_where(holds)
        database.feedback.forget_where(holds)
        database.evaluations.forget_where(holds)
        database.conversations.forget_where(holds)
        database.forget_caches()
        try:
            database.compact()
        except StorageError as error:  # read right now: what was removed is overwritten later
            logger.warning("%s", error)
        database.close()


_COPIES: dict[Path, PublishedCopy] = {}  # those of this process
_OPENING = threading.Lock()


def open_copy(root: Path, address: str | None = None) -> None:
    """Bring a folder to what is published at an address, once in each process.

    Without an address it does so only where the folder is a copy already. Where the address cannot
    be read and an earlier publication is here, that one is used and a warning says so. Raises
    NothingPublished, UsageError, StorageError.
    """
    layout = Layout(root)
    address = address or layout.origin()
    if address is None:
        return
    with _OPENING:
        place = root.absolute()
        if place in _COPIES:
            return
        if layout.origin() != address:
            with faults_told(root):
                root.mkdir(parents=True, exist_ok=True)
            write_atomically(layout.origin_file, Origin(address=address).model_dump_json() + "\n")
        copy = PublishedCopy(root, address)
        try:
            copy.refresh()
        except TrellisError as error:
            if layout.pointer().current is None:
                raise
            logger.warning("What was fetched before is used: %s", error)
        _COPIES[place] = copy


def follow_copy(root: Path, every: float) -> None:
    """Let a copy that this process has opened follow its address, looked at every so many seconds.

    A workspace that is no copy is left alone.
    """
    if copy := _COPIES.get(root.absolute()):
        copy.follow(every)
