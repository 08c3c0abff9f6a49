"""What has changed since the last run? A sync by content, within the named sources only.

Documents are made of parts, and each part belongs to the source that it was read from. A run replaces the parts of the
sources that it names and leaves all others alone; a document goes when none of its parts is left.
"""

import fnmatch
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path

from storage.documents import PartSummary
from storage.errors import DuplicateDocument, RemovalRefused
from storage.records import Document, DocumentCounts, Part, Record
from tasks.load.compose import compose
from tasks.load.sources import Loaded

REMOVAL_LIMIT = 0.3


class SyncPlan(Record):
    """What a run has to do: documents to store, documents to remove, and the counts for the report."""

    put: tuple[Document, ...]
    removed: tuple[str, ...]
    counts: DocumentCounts

    @property
    def nothing_to_do(self) -> bool:
        return not self.put and not self.removed


def _gone(source: str) -> bool:
    """Whether a source that was indexed once is no longer there (a moved folder may take its documents along)."""
    return not any(c in source for c in "*?[") and not Path(source).exists()


def holds(source: str, path: str) -> bool:
    """Whether a path (with or without a `:line` behind it) lies in a source: a file, a folder or a glob pattern."""
    file = re.sub(r":\d+$", "", path)
    inside = file == source or file.startswith(source.rstrip("/") + "/")
    return inside or fnmatch.fnmatchcase(file, source.replace("**/", "*"))


def touched(loaded: Loaded, known: Sequence[PartSummary]) -> set[str]:
    """The stored documents whose parts this run may replace."""
    return {part.document for part in loaded.parts} & {part.document for part in known} | {
        part.document for part in known if part.source in loaded.sources
    }


def plan_sync(
    loaded: Loaded,
    stored: Mapping[str, Document],
    total: int,
    allow_removals: bool,
    gone: Callable[[str], bool] = _gone,
) -> SyncPlan:
    """Compare what was read with what is stored.

    `stored` holds at least the `touched` documents, `total` counts all documents of the named sources. Raises
    DuplicateDocument where another source that still exists holds another text under the same id, and RemovalRefused
    where more than REMOVAL_LIMIT of the named sources' documents would go.
    """
    parts: dict[str, list[Part]] = defaultdict(list)
    for part in loaded.parts:
        parts[part.document].append(part)
    unread = {skipped.path for skipped in loaded.skipped if skipped.reason != "empty"}
    for document in stored.values():
        parts[document.id] += _kept(document, parts[document.id], loaded.sources, unread, gone)
    after = {document.id: document for document in compose(part for group in parts.values() for part in group)}
    removed = sorted(set(stored) - set(after))
    added = sorted(set(after) - set(stored))
    changed = sorted(name for name in set(after) & set(stored) if after[name].hash != stored[name].hash)
    renamed = _renamed(removed, added, stored, after)
    if total and len(removed) - renamed > REMOVAL_LIMIT * total and not allow_removals:
        raise RemovalRefused(len(removed) - renamed, total)
    moved = [
        name for name in set(after) & set(stored) if name not in changed and after[name].parts != stored[name].parts
    ]
    counts = DocumentCounts(
        added=len(added) - renamed,
        changed=len(changed),
        removed=len(removed) - renamed,
        renamed=renamed,
        unchanged=len(after) - len(added) - len(changed),
    )
    put = tuple(after[name] for name in sorted([*added, *changed, *moved]))
    return SyncPlan(put=put, removed=tuple(removed), counts=counts)


def _kept(
    document: Document,
    new: Iterable[Part],
    sources: Collection[str],
    unread: Collection[str],
    gone: Callable[[str], bool],
) -> list[Part]:
    """The stored parts that stay: those of other sources, and those of files that could not be read this time."""
    text = next((part for part in new if part.kind == "text"), None)
    kept = []
    for part in document.parts:
        if part.source in sources and part.path not in unread:
            continue
        if part.source not in sources and part.kind == "text" and text is not None:
            if part.hash != text.hash and not gone(part.source):
                raise DuplicateDocument(document.id, part.path, text.path)
            continue
        kept.append(part)
    return kept


def _renamed(
    removed: Sequence[str], added: Sequence[str], stored: Mapping[str, Document], after: Mapping[str, Document]
) -> int:
    """How many removed documents came back with the same content under another id."""
    left: dict[str, int] = defaultdict(int)
    for name in removed:
        left[stored[name].hash] += 1
    count = 0
    for name in added:
        if left[after[name].hash]:
            left[after[name].hash] -= 1
            count += 1
    return count
