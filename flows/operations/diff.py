"""Compare two generations: what was added, removed and changed.

```python
from flows.operations.diff import diff

print(diff(3, 5, workspace="kb").documents.added)
```
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from rapidfuzz.distance import Postfix, Prefix

from flows.runtime import open_runtime
from flows.settings import load_settings
from storage.export import FIELDS, KINDS, Item, Kind, Value
from storage.records import Record
from storage.workspace import Generation, Workspace

_LONGEST = 300  # characters that are shown of a field
_CONTEXT = 20  # characters that are shown around a change


class FieldChange(Record):
    """A field before and after: of a text the part that differs, of a list the items that left and
    joined.
    """

    field: str
    before: str
    after: str


class Thing(Record):
    """An item that only one of the generations has."""

    id: str
    label: str


class Changed(Thing):
    """An item of both generations with other content; a changed field `id` means that its id was
    another.
    """

    fields: tuple[FieldChange, ...]


class Difference(Record):
    """The differences of one kind of item."""

    added: tuple[Thing, ...]
    removed: tuple[Thing, ...]
    changed: tuple[Changed, ...]
    unchanged: int


class Diff(Record):
    """The differences between generation `before` and generation `after`."""

    before: int
    after: int
    documents: Difference
    entities: Difference
    relations: Difference
    claims: Difference
    facts: Difference
    communities: Difference
    reports: Difference

    def of(self, kind: Kind) -> Difference:
        """Return the differences of one kind."""
        difference: Difference = getattr(self, kind)
        return difference

    @property
    def same(self) -> bool:
        """Whether the generations are equal."""
        return not any(d.added or d.removed or d.changed for d in map(self.of, KINDS))


def diff(before: int, after: int | None = None, workspace: str | Path | None = None) -> Diff:
    """Compare two generations of a workspace (None: the current one; the one of the settings).

    Raises NoGeneration, and UnknownGeneration, which names the generations that are kept.
    """
    return compare(open_runtime(load_settings({"workspace": workspace})).workspace, before, after)


def compare(workspace: Workspace, before: int, after: int | None) -> Diff:
    """Compare two generations of an open workspace (see `diff`)."""
    with workspace.read(before) as old, workspace.read(after) as new:
        return difference(old, new)


def difference(old: Generation, new: Generation) -> Diff:
    """Compare two open generations, or parts of them."""
    renamed = _renamed(old, new)
    differences = {kind: _difference(kind, old, new, renamed) for kind in KINDS}
    return Diff(before=old.number, after=new.number, **differences)


def _difference(
    kind: Kind, old: Generation, new: Generation, renamed: Mapping[str, str]
) -> Difference:
    """Compare the items of one kind; `renamed` maps old ids to the new ids of the same items."""
    old_prints, new_prints = old.items.prints(kind), new.items.prints(kind)
    pairs = {before: renamed.get(before, before) for before in old_prints}
    pairs = {before: after for before, after in pairs.items() if after in new_prints}
    differing = {
        before: after
        for before, after in pairs.items()
        if before != after or old_prints[before] != new_prints[after]
    }
    removed, added = old_prints.keys() - pairs.keys(), new_prints.keys() - set(pairs.values())
    left = old.items.items(kind, removed | differing.keys())
    right = new.items.items(kind, added | set(differing.values()))
    changed = [_changed(kind, left[before], right[after]) for before, after in differing.items()]
    return Difference(
        added=_things(right[name] for name in added),
        removed=_things(left[name] for name in removed),
        changed=tuple(sorted(changed, key=_by_label)),
        unchanged=len(pairs) - len(differing),
    )


def _things(items: Iterable[Item]) -> tuple[Thing, ...]:
    return tuple(Thing(id=item.id, label=item.label) for item in sorted(items, key=_by_label))


def _by_label(item: Item | Thing) -> tuple[str, str]:
    return item.label, item.id


def _changed(kind: Kind, before: Item, after: Item) -> Changed:
    rows = zip(
        ("id", *FIELDS[kind]), (before.id, *before.values), (after.id, *after.values), strict=True
    )
    fields = tuple(_field(name, old, new) for name, old, new in rows if old != new)
    return Changed(id=after.id, label=after.label, fields=fields)


def _field(name: str, before: Value, after: Value) -> FieldChange:
    if isinstance(before, str) and isinstance(after, str):
        shown = (before, after) if name == "id" else changed_part(before, after)
    else:
        shown = _changed_items(list(before), list(after))
    return FieldChange(field=name, before=shown[0], after=shown[1])


def _changed_items(before: Sequence[str], after: Sequence[str]) -> tuple[str, str]:
    """Return the items that left a list and those that joined it; the whole lists where only their
    order differs.
    """
    left = [item for item in before if item not in after]
    joined = [item for item in after if item not in before]
    shown = (left, joined) if left or joined else (before, after)
    return _short("; ".join(shown[0])), _short("; ".join(shown[1]))


def changed_part(before: str, after: str) -> tuple[str, str]:
    """Return the parts of two texts that differ, with some context; "…" marks what is left out."""
    start = Prefix.similarity(before, after)
    end = Postfix.similarity(before[start:], after[start:])
    first, last = max(start - _CONTEXT, 0), max(end - _CONTEXT, 0)
    shown = (_short(text[first : len(text) - last]) for text in (before, after))
    old, new = (f"{'…' * bool(first)}{part}{'…' * bool(last)}" for part in shown)
    return old, new


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"


def _renamed(old: Generation, new: Generation) -> dict[str, str]:
    """Map documents that were removed to added ones with the same content, by id."""
    old_hashes, new_hashes = old.documents.hashes(), new.documents.hashes()
    added: dict[str, list[str]] = defaultdict(list)
    for name in sorted(new_hashes.keys() - old_hashes.keys(), reverse=True):
        added[new_hashes[name]].append(name)
    return {
        name: added[old_hashes[name]].pop()
        for name in sorted(old_hashes.keys() - new_hashes.keys())
        if added[old_hashes[name]]
    }
