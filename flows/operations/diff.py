"""Diff: what came, what went and what changed from one generation to another.

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

_LONGEST = 300
_CONTEXT = 20


class FieldChange(Record):
    """A field before and after: of a text the stretch that differs, of a list what left it and what
    joined it.
    """

    field: str
    before: str
    after: str


class Thing(Record):
    """Something that is in one of the generations only."""

    id: str
    label: str


class Changed(Thing):
    """Something in both, with another content; a field `id` says that it was known by another
    id.
    """

    fields: tuple[FieldChange, ...]


class Difference(Record):
    """Of one kind: what only the later generation has, what only the earlier one has, and what
    differs.
    """

    added: tuple[Thing, ...]
    removed: tuple[Thing, ...]
    changed: tuple[Changed, ...]
    unchanged: int


class Diff(Record):
    """What leads from generation `before` to generation `after`."""

    before: int
    after: int
    documents: Difference
    entities: Difference
    relations: Difference
    claims: Difference
    communities: Difference
    reports: Difference

    def of(self, kind: Kind) -> Difference:
        """The part of one kind."""
        difference: Difference = getattr(self, kind)
        return difference

    @property
    def same(self) -> bool:
        """Whether nothing came, went or changed."""
        return not any(d.added or d.removed or d.changed for d in map(self.of, KINDS))


def diff(before: int, after: int | None = None, workspace: str | Path | None = None) -> Diff:
    """Compare two generations of a workspace (`after` None: with the current one; None: that of the
    settings).

    Raises UnknownGeneration, which names those that are kept, or NoGeneration.
    """
    return compare(open_runtime(load_settings({"workspace": workspace})).workspace, before, after)


def compare(workspace: Workspace, before: int, after: int | None) -> Diff:
    """The same over an open workspace."""
    with workspace.read(before) as old, workspace.read(after) as new:
        pairs = _renamed(old, new)
        differences = {kind: _difference(kind, old, new, pairs) for kind in KINDS}
        return Diff(before=old.number, after=new.number, **differences)


def _difference(
    kind: Kind, old: Generation, new: Generation, pairs: Mapping[str, str]
) -> Difference:
    """`pairs` leads from ids in the earlier generation to those by which the later one knows the
    same thing.
    """
    old_prints, new_prints = old.items.prints(kind), new.items.prints(kind)
    same = {
        before: pairs.get(before, before)
        for before in old_prints
        if pairs.get(before, before) in new_prints
    }
    differing = {
        before: after
        for before, after in same.items()
        if before != after or old_prints[before] != new_prints[after]
    }
    gone, come = old_prints.keys() - same.keys(), new_prints.keys() - set(same.values())
    left = old.items.items(kind, gone | differing.keys())
    right = new.items.items(kind, come | set(differing.values()))
    changed = [_changed(kind, left[before], right[after]) for before, after in differing.items()]
    return Difference(
        added=_things(right[name] for name in come),
        removed=_things(left[name] for name in gone),
        changed=tuple(sorted(changed, key=lambda thing: (thing.label, thing.id))),
        unchanged=len(same) - len(differing),
    )


def _things(items: Iterable[Item]) -> tuple[Thing, ...]:
    return tuple(
        Thing(id=item.id, label=item.label)
        for item in sorted(items, key=lambda item: (item.label, item.id))
    )


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
        shown = changed_items(list(before), list(after))
    return FieldChange(field=name, before=shown[0], after=shown[1])


def changed_items(before: Sequence[str], after: Sequence[str]) -> tuple[str, str]:
    """What left a list and what joined it; the whole lists where they differ in order alone."""
    left, joined = (
        [item for item in before if item not in after],
        [item for item in after if item not in before],
    )
    shown = (left, joined) if left or joined else (before, after)
    return _short("; ".join(shown[0])), _short("; ".join(shown[1]))


def changed_part(before: str, after: str) -> tuple[str, str]:
    """The parts of two texts that differ, with a few characters around them; "…" stands for what is
    left out.
    """
    start = Prefix.similarity(before, after)
    end = Postfix.similarity(before[start:], after[start:])
    first, last = max(start - _CONTEXT, 0), max(end - _CONTEXT, 0)
    shown = (_short(text[first : len(text) - last]) for text in (before, after))
    old, new = (f"{'…' * bool(first)}{part}{'…' * bool(last)}" for part in shown)
    return old, new


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"


def _renamed(old: Generation, new: Generation) -> dict[str, str]:
    """Documents that went and came with the same content, by their ids."""
    old_hashes, new_hashes = old.documents.hashes(), new.documents.hashes()
    come: dict[str, list[str]] = defaultdict(list)
    for name in sorted(new_hashes.keys() - old_hashes.keys(), reverse=True):
        come[new_hashes[name]].append(name)
    return {
        name: come[old_hashes[name]].pop()
        for name in sorted(old_hashes.keys() - new_hashes.keys())
        if come[old_hashes[name]]
    }
