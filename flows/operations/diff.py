"""Diff: what came, what went and what changed from one generation to another.

```python
from flows.operations.diff import diff

print(diff(3, 5, workspace="kb").documents.added)
```
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from flows.runtime import open_runtime
from flows.settings import load_settings
from storage.export import FIELDS, KINDS, Item, Kind, Value
from storage.records import Record
from storage.workspace import Generation, Workspace

# Two communities are one that changed when they share this part of the members of both.
LEAST_OVERLAP = 0.5
_LONGEST = 300
_CONTEXT = 20


class FieldChange(Record):
    """A field before and after: of a text the stretch that differs, of a list what left it and what joined it."""

    field: str
    before: str
    after: str


class Thing(Record):
    """Something that is in one of the generations only."""

    id: str
    label: str


class Changed(Thing):
    """Something in both, with another content; a field `id` says that it was known by another id."""

    fields: tuple[FieldChange, ...]


class Difference(Record):
    """Of one kind: what only the later generation has, what only the earlier one has, and what differs."""

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
        found: Difference = getattr(self, kind)
        return found

    @property
    def same(self) -> bool:
        """Whether nothing came, went or changed."""
        return not any(d.added or d.removed or d.changed for d in map(self.of, KINDS))


def diff(before: int, after: int | None = None, workspace: str | Path | None = None) -> Diff:
    """Compare two generations of a workspace (`after` None: with the current one; None: that of the settings).

    Raises UnknownGeneration, which names those that are kept, or NoGeneration.
    """
    return compare(open_runtime(load_settings({"workspace": workspace})).workspace, before, after)


def compare(workspace: Workspace, before: int, after: int | None) -> Diff:
    """The same over an open workspace."""
    with workspace.read(before) as old, workspace.read(after) as new:
        pairs = {**_renamed(old, new), **_regrouped(old, new)}
        found = {kind: _difference(kind, old, new, pairs) for kind in KINDS}
        return Diff(before=old.number, after=new.number, **found)


def _difference(kind: Kind, old: Generation, new: Generation, pairs: Mapping[str, str]) -> Difference:
    """`pairs` leads from ids in the earlier generation to those by which the later one knows the same thing."""
    were, are = old.items.prints(kind), new.items.prints(kind)
    twins = {one: pairs.get(one, one) for one in were if pairs.get(one, one) in are}
    differing = {one: other for one, other in twins.items() if were[one] != are[other] or one != other}
    gone, come = were.keys() - twins.keys(), are.keys() - set(twins.values())
    before = old.items.items(kind, gone | differing.keys())
    after = new.items.items(kind, come | set(differing.values()))
    changed = [_changed(kind, before[one], after[other]) for one, other in differing.items()]
    return Difference(
        added=_things(after[one] for one in come),
        removed=_things(before[one] for one in gone),
        changed=tuple(sorted(changed, key=lambda one: (one.label, one.id))),
        unchanged=len(twins) - len(differing),
    )


def _things(items: Iterable[Item]) -> tuple[Thing, ...]:
    return tuple(Thing(id=item.id, label=item.label) for item in sorted(items, key=lambda item: (item.label, item.id)))


def _changed(kind: Kind, before: Item, after: Item) -> Changed:
    rows = zip(("id", *FIELDS[kind]), (before.id, *before.values), (after.id, *after.values), strict=True)
    fields = tuple(_field(name, one, other) for name, one, other in rows if one != other)
    return Changed(id=after.id, label=after.label, fields=fields)


def _field(name: str, before: Value, after: Value) -> FieldChange:
    if not isinstance(before, str) and not isinstance(after, str):
        return lists(name, before, after)
    one, other = (str(before), str(after)) if name == "id" else stretch(str(before), str(after))
    return FieldChange(field=name, before=one, after=other)


def lists(name: str, before: Sequence[str], after: Sequence[str]) -> FieldChange:
    """What left a list and what joined it; the whole lists where they differ in order alone."""
    left, joined = ([v for v in a if v not in b] for a, b in ((before, after), (after, before)))
    one, other = (left, joined) if left or joined else (before, after)
    return FieldChange(field=name, before=_short("; ".join(one)), after=_short("; ".join(other)))


def stretch(before: str, after: str) -> tuple[str, str]:
    """The parts of two texts that differ, with a few characters around them; "…" stands for what is left out."""
    start = _shared(before, after)
    same_end = _shared(before[start:][::-1], after[start:][::-1])
    start, same_end = max(start - _CONTEXT, 0), max(same_end - _CONTEXT, 0)
    return _cut(before, start, len(before) - same_end), _cut(after, start, len(after) - same_end)


def _shared(one: str, other: str) -> int:
    """How many characters two texts begin with alike."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))


def _cut(text: str, start: int, end: int) -> str:
    shown = _short(text[start:end])
    return ("…" if start else "") + shown + ("…" if end < len(text) and not shown.endswith("…") else "")


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"


def _renamed(old: Generation, new: Generation) -> dict[str, str]:
    """Documents that went and came with the same content, by their ids."""
    were, are = old.documents.hashes(), new.documents.hashes()
    come: dict[str, list[str]] = defaultdict(list)
    for name in sorted(are.keys() - were.keys(), reverse=True):
        come[are[name]].append(name)
    return {name: come[were[name]].pop() for name in sorted(were.keys() - are.keys()) if come[were[name]]}


def _regrouped(old: Generation, new: Generation) -> dict[str, str]:
    """Communities that went and came with most members in common, on one level; each is paired once, the most alike
    first."""
    were, are = (
        {(c.level, c.id): set(c.members) for c in generation.communities.communities()} for generation in (old, new)
    )
    come: dict[tuple[int, str], list[str]] = defaultdict(list)
    for level, name in are.keys() - were.keys():
        for member in are[level, name]:
            come[level, member].append(name)
    likeness = [
        (-_overlap(were[level, one], are[level, other]), one, other)
        for level, one in were.keys() - are.keys()
        for other in {name for member in were[level, one] for name in come.get((level, member), ())}
    ]
    return _each_once(sorted(row for row in likeness if row[0] <= -LEAST_OVERLAP))


def _overlap(one: set[str], other: set[str]) -> float:
    return len(one & other) / len(one | other)


def _each_once(rows: Sequence[tuple[float, str, str]]) -> dict[str, str]:
    pairs: dict[str, str] = {}
    taken: set[str] = set()
    for _, one, other in rows:
        if one not in pairs and other not in taken:
            pairs[one] = other
            taken.add(other)
    return pairs
