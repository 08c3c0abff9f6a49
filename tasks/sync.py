"""Sync: find by content what has changed in the named sources since the last run.

A document consists of parts, and each part belongs to the source that it was read from. A run
replaces the parts of the sources that it names and no others; a document is removed when it has no
part left.
"""

import fnmatch
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from storage.documents import PartSummary
from storage.errors import DuplicateDocument, RemovalRefused, SourceEmptied
from storage.records import Document, Part, Record, Skipped, by_key
from storage.remote import PAGES, is_address
from storage.run_records import DocumentCounts
from tasks.load.discover import file_of
from tasks.load.remote import GONE
from tasks.load.sources import Loaded, compose

REMOVAL_LIMIT = 0.3
FORGOTTEN = "forgotten"
# Words of any script; in Chinese, Japanese and Korean, single characters.
_WORD = re.compile(r"[\u3040-\u9fff\uac00-\ud7af]|[^\W_\u3040-\u9fff\uac00-\ud7af]+")
_JSON_CODE = re.compile(r"\\u([0-9a-fA-F]{4})")
_JSON_ESCAPE = re.compile(r"\\[nrtbf\"/\\]")
_RUN = 5  # words


class SyncPlan(Record):
    """The documents that a run stores and removes, and the counts for its report."""

    put: tuple[Document, ...]
    removed: tuple[str, ...]
    counts: DocumentCounts

    @property
    def nothing_to_do(self) -> bool:
        return not self.put and not self.removed


def _gone(source: str) -> bool:
    """Say whether a source is no longer there. Of an address one cannot know, but a document there
    has its address as its id: what is read of it from another source is only newer.
    """
    if is_address(source):
        return True
    try:
        return not any(sign in source for sign in "*?[") and not Path(source).exists()
    except OSError:  # A folder above it cannot be entered: it may well exist.
        return False


def holds(source: str, path: str) -> bool:
    """Say whether a path, which may end in `:line`, lies in a file, a folder or a glob pattern.

    A page holds nothing but itself.
    """
    file = file_of(path)
    if source.startswith(tuple(f"{scheme}://" for scheme in PAGES)):
        return file == source
    inside = file == source or file.startswith(source.rstrip("/") + "/")
    return inside or fnmatch.fnmatchcase(file, source.replace("**/", "*"))


def _covers(named: str, source: str) -> bool:
    """Say whether a run of one source covers another that lay in it: in a store, in its folder."""
    if is_address(source):
        is_pattern = any(sign in named for sign in "*?[")
        return not is_pattern and holds(named, source)
    return holds(named, source) and _gone(source)


def with_gone_inside(loaded: Loaded, known: Iterable[PartSummary]) -> Loaded:
    """Add the stored sources that lay in a named one and no longer exist: this run covers them."""
    others = {part.source for part in known} - set(loaded.sources)
    inside = sorted(
        name for name in others if any(_covers(named, name) for named in loaded.sources)
    )
    return loaded.model_copy(update={"sources": (*loaded.sources, *inside)})


def _unchanged(loaded: Loaded, known: Sequence[PartSummary]) -> frozenset[str]:
    """Return the documents whose stored parts equal those that were read.

    Empty where a document of the named sources is gone: its text may stand under another id now.
    """
    now: tuple[Part | PartSummary, ...] = (*loaded.parts, *loaded.kept)
    read, stored = (
        {(part.document, part.source, part.path, part.kind, part.hash) for part in parts}
        for parts in (now, known)
    )
    named = frozenset(document for document, *_ in read)
    if any(part.source in loaded.sources and part.document not in named for part in known):
        return frozenset()
    return named.difference(document for document, *_ in read ^ stored)


def exclude_forgotten(
    loaded: Loaded, forgotten: Collection[str], texts: Mapping[str, str], known: Collection[str]
) -> Loaded:
    """Drop forgotten documents from what was read, and report them as skipped.

    Dropped are the ids in `forgotten`, and new ids (not in `known`) whose text is in `texts` (ids
    by hash): the document was moved. Rows that are called by their line are known by text alone.
    A document whose file, with nothing else in it, is named as a source is let in.
    """
    if not forgotten:
        return loaded
    by_source: dict[str, set[str]] = defaultdict(set)
    for part in loaded.parts:
        by_source[part.source].add(part.document)
    parts, skipped = [], []
    for part in loaded.parts:
        named = part.source == file_of(part.path) and len(by_source[part.source]) == 1
        moved = texts.get(part.text_hash) if part.by_line or part.document not in known else None
        if named or not (moved or (part.document in forgotten and not part.by_line)):
            parts.append(part)
        else:
            skipped.append(Skipped(path=part.path, reason=f"{FORGOTTEN}: {moved or part.document}"))
    return loaded.model_copy(update={"parts": tuple(parts), "skipped": (*loaded.skipped, *skipped)})


def plan_sync(
    loaded: Loaded,
    known: Sequence[PartSummary],
    read: Callable[[Collection[str]], Sequence[Document]],
    allow_removals: bool,
    anew: bool = False,
) -> SyncPlan:
    """Compare what was read with the stored parts (`known`).

    `read` returns stored documents by id; those with unchanged parts are read only if `anew`.
    Raises `DuplicateDocument` where another source that still exists has another text under the
    same id, `SourceEmptied` where a source has lost all its documents, and `RemovalRefused` where
    more than REMOVAL_LIMIT of the documents of the named sources would be removed; the last two
    not with `allow_removals`.
    """
    same = frozenset[str]() if anew else _unchanged(loaded, known)
    mine = {part.document for part in known if part.source in loaded.sources}
    touched = mine | ({part.document for part in loaded.parts} & {part.document for part in known})
    stored = {document.id: document for document in read(touched - same)}
    parts = by_key((part.document, part) for part in loaded.parts if part.document not in same)
    unread = {
        skipped.path
        for skipped in loaded.skipped
        if not skipped.reason.startswith(("empty", GONE, FORGOTTEN))
    }
    kept = {(part.source, part.path) for part in loaded.kept}
    for document in stored.values():
        own = parts.setdefault(document.id, [])
        own += _kept(document, own, loaded.sources, unread, kept)
    after = {
        document.id: document
        for document in compose(part for group in parts.values() for part in group)
    }
    removed = sorted(set(stored) - set(after))
    added = sorted(set(after) - set(stored))
    changed = sorted(
        name for name in set(after) & set(stored) if after[name].hash != stored[name].hash
    )
    lost, renamed = _lost(removed, added, stored, after)
    if not allow_removals:
        _refuse_emptied(loaded.sources, lost, stored, after)
        if mine and len(lost) > REMOVAL_LIMIT * len(mine):
            raise RemovalRefused(len(lost), len(mine))
    put = tuple(
        after[name]
        for name in sorted(after)
        if name not in stored or after[name].parts != stored[name].parts
    )
    counts = DocumentCounts(
        added=len(added) - renamed,
        changed=len(changed),
        removed=len(lost),
        renamed=renamed,
        unchanged=len(same) + len(after) - len(added) - len(changed),
    )
    return SyncPlan(put=put, removed=tuple(removed), counts=counts)


def _kept(
    document: Document,
    new: Iterable[Part],
    sources: Collection[str],
    unread: Collection[str],
    unchanged: Collection[tuple[str, str]],
) -> list[Part]:
    """Return the stored parts of a document that stay beside the new ones."""
    text = next((part for part in new if part.kind == "text"), None)
    parts = []
    for part in document.parts:
        unseen = (
            (part.source, part.path) in unchanged
            or part.path in unread
            or file_of(part.path) in unread
            or any(part.path.startswith(f"{folder}/") for folder in unread)
        )
        if part.source in sources and not unseen:
            continue
        if part.source not in sources and part.kind == "text" and text is not None:
            if part.hash != text.hash and not _gone(part.source):
                raise DuplicateDocument(document.id, part.path, text.path)
            continue
        parts.append(part)
    return parts


def _lost(
    removed: Sequence[str],
    added: Sequence[str],
    stored: Mapping[str, Document],
    after: Mapping[str, Document],
) -> tuple[list[str], int]:
    """Return the removed documents whose text has no new id, and the number of renamed ones."""
    new = Counter(after[name].text for name in added)
    lost = []
    for name in removed:
        if new[stored[name].text]:
            new[stored[name].text] -= 1
        else:
            lost.append(name)
    return lost, len(removed) - len(lost)


def _refuse_emptied(
    sources: Sequence[str],
    lost: Collection[str],
    stored: Mapping[str, Document],
    after: Mapping[str, Document],
) -> None:
    """Raise `SourceEmptied` for a source without documents: its disk may not be mounted."""
    left = {part.source for document in after.values() for part in document.parts}
    for source in sources:
        gone = [name for name in lost if any(part.source == source for part in stored[name].parts)]
        inside = any(holds(other, source) for other in sources if other != source)
        if gone and source not in left and not inside:
            raise SourceEmptied(source, len(gone))


# --- forgetting ---


class DocumentTraces:
    """Finds traces of documents in texts that models wrote from them.

    A trace is a word, or a run of five words, that stands in the documents and in no other text.
    """

    def __init__(self, texts: Iterable[str], others: Iterable[str]) -> None:
        self.traces = set[tuple[str, ...]]().union(*map(_words_and_runs, texts))
        for text in others:
            self.traces.difference_update(_words_and_runs(text))

    def without(self, text: str) -> "DocumentTraces":
        """Return the traces that do not stand in one more text."""
        fewer = DocumentTraces((), ())
        fewer.traces = self.traces.difference(_words_and_runs(text))
        return fewer

    def found_in(self, text: str) -> bool:
        """Say whether a text, which may be JSON, holds a trace."""
        plain = _JSON_CODE.sub(lambda code: chr(int(code[1], 16)), text)
        return not self.traces.isdisjoint(_words_and_runs(_JSON_ESCAPE.sub(" ", plain)))


def _words_and_runs(text: str) -> Iterator[tuple[str, ...]]:
    words = _WORD.findall(text.casefold())
    for length in (1, _RUN):
        yield from zip(*(words[start:] for start in range(length)), strict=False)
