"""Sync by content, within the named sources only: what has changed since the last run; and what was
forgotten.

Documents are made of parts, and each part belongs to the source that it was read from. A run
replaces the parts of the sources that it names and leaves all others alone; a document goes when
none of its parts is left.
"""

import fnmatch
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path

from storage.documents import PartSummary
from storage.errors import DuplicateDocument, RemovalRefused, SourceEmptied
from storage.records import Document, Part, Record, Skipped, by_key
from storage.run_records import DocumentCounts
from tasks.load.sources import Loaded, compose

REMOVAL_LIMIT = 0.3
FORGOTTEN = "forgotten"
# Words of any script; of Chinese, Japanese and Korean every sign.
_WORD = re.compile(r"[\u3040-\u9fff\uac00-\ud7af]|[^\W_\u3040-\u9fff\uac00-\ud7af]+")
_CODE = re.compile(r"\\u([0-9a-fA-F]{4})")
_ESCAPE = re.compile(r"\\[nrtbf\"/\\]")
_RUN = 5  # words in a row that no other document has

_Run = tuple[str, ...]


class SyncPlan(Record):
    """What a run has to do: documents to store, documents to remove, and the counts for the
    report.
    """

    put: tuple[Document, ...]
    removed: tuple[str, ...]
    counts: DocumentCounts

    @property
    def nothing_to_do(self) -> bool:
        return not self.put and not self.removed


def _gone(source: str) -> bool:
    """Whether a source that was indexed once is no longer there (a moved folder may take its
    documents along).
    """
    try:
        return not any(c in source for c in "*?[") and not Path(source).exists()
    except OSError:  # a folder above it cannot be entered: it may well be there
        return False


def holds(source: str, path: str) -> bool:
    """Whether a path (with or without a `:line` behind it) lies in a source: a file, a folder or a
    glob pattern.
    """
    file = re.sub(r":\d+$", "", path)
    inside = file == source or file.startswith(source.rstrip("/") + "/")
    return inside or fnmatch.fnmatchcase(file, source.replace("**/", "*"))


def with_gone_inside(loaded: Loaded, known: Iterable[PartSummary]) -> Loaded:
    """What was read, with the sources that are gone and lay in a named one: whoever looked there
    saw them missing.
    """
    others = {part.source for part in known} - set(loaded.sources)
    inside = sorted(
        name
        for name in others
        if any(holds(named, name) for named in loaded.sources) and _gone(name)
    )
    return loaded.model_copy(update={"sources": (*loaded.sources, *inside)})


def _unchanged(loaded: Loaded, known: Sequence[PartSummary]) -> frozenset[str]:
    """The documents whose stored parts are those that were read, so that nobody has to look at
    their texts.

    None where a document of the named sources is gone: its text may have come back under another
    id.
    """
    read, stored = (
        {(part.document, part.source, part.path, part.kind, part.hash) for part in parts}
        for parts in (loaded.parts, known)
    )
    named = frozenset(part.document for part in loaded.parts)
    if any(part.source in loaded.sources and part.document not in named for part in known):
        return frozenset()
    return named.difference(document for document, *_ in read ^ stored)


def exclude_forgotten(
    loaded: Loaded, forgotten: Collection[str], texts: Mapping[str, str], known: Collection[str]
) -> Loaded:
    """What was read without what was forgotten, which is reported as skipped.

    Kept out are the ids in `forgotten`, and new ids (not in `known`) with one of the `texts`: a
    document that was moved. Of rows that are called by their line the text alone tells. Whoever
    names a file that holds nothing else names the document: it is let in.
    """
    if not forgotten:
        return loaded
    by_source: dict[str, set[str]] = defaultdict(set)
    for part in loaded.parts:
        by_source[part.source].add(part.document)
    parts, skipped = [], []
    for part in loaded.parts:
        named = part.source == re.sub(r":\d+$", "", part.path) and len(by_source[part.source]) == 1
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
    gone: Callable[[str], bool] = _gone,
) -> SyncPlan:
    """Compare what was read with the parts that are stored (`known`).

    `read` gives stored documents by id; asked for are those that this run may replace, but for
    those whose parts are the same (`anew`: these too). Raises DuplicateDocument where another
    source that still exists holds another text under the same id, SourceEmptied where a source has
    lost all that it held, and RemovalRefused where more than REMOVAL_LIMIT of the named sources'
    documents would go.
    """
    same = frozenset[str]() if anew else _unchanged(loaded, known)
    mine = {part.document for part in known if part.source in loaded.sources}
    touched = mine | ({part.document for part in loaded.parts} & {part.document for part in known})
    stored = {document.id: document for document in read(touched - same)}
    parts = by_key((part.document, part) for part in loaded.parts if part.document not in same)
    unread = {
        skipped.path
        for skipped in loaded.skipped
        if not skipped.reason.startswith(("empty", FORGOTTEN))
    }
    for document in stored.values():
        own = parts.setdefault(document.id, [])
        own += _kept(document, own, loaded.sources, unread, gone)
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
    gone: Callable[[str], bool],
) -> list[Part]:
    """The stored parts that stay: those of other sources, and those of files that could not be read
    this time.
    """
    text = next((part for part in new if part.kind == "text"), None)
    parts = []
    for part in document.parts:
        unseen = part.path in unread or any(part.path.startswith(f"{folder}/") for folder in unread)
        if part.source in sources and not unseen:
            continue
        if part.source not in sources and part.kind == "text" and text is not None:
            if part.hash != text.hash and not gone(part.source):
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
    """The removed documents whose text did not come back under another id, and how many did."""
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
    """A place that was not mounted, or another one of that name, looks like one from which
    everything was deleted.
    """
    left = {part.source for document in after.values() for part in document.parts}
    for source in sources:
        gone = [name for name in lost if any(part.source == source for part in stored[name].parts)]
        inside = any(holds(other, source) for other in sources if other != source)
        if gone and source not in left and not inside:
            raise SourceEmptied(source, len(gone))


# --- forgetting -----------------------------------------------------------------------------------


class DocumentTraces:
    """Traces of documents in texts that models wrote from them: words, and runs of five words, that
    no others have.

    Whoever quotes, names or sums up the texts uses one of them; a sentence that could come from the
    other texts as well tells nothing.
    """

    def __init__(self, texts: Iterable[str], others: Iterable[str]) -> None:
        self.words: set[str] = set()
        self.runs: set[_Run] = set()
        for text in texts:
            words = _words(text)
            self.words.update(words)
            self.runs.update(_runs(words))
        for text in others:
            words = _words(text)
            self.words.difference_update(words)
            self.runs.difference_update(_runs(words))

    def found_in(self, text: str) -> bool:
        """Whether a text, also one inside JSON, holds any of them."""
        words = _words(_ESCAPE.sub(" ", _CODE.sub(lambda code: chr(int(code[1], 16)), text)))
        return not self.words.isdisjoint(words) or not self.runs.isdisjoint(_runs(words))


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def _runs(words: Sequence[str]) -> Iterable[_Run]:
    return zip(*(words[place:] for place in range(_RUN)), strict=False)
