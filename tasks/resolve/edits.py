"""Edits by hand, applied to the groups that the rules have made.

Each edit is applied to what the rules and the edits before it have made. One whose names no text holds any more changes
nothing, and holds again when they come back.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from storage.graph import Edit, Subject
from tasks.resolve.keys import Place, Resolved, name_key


@dataclass(frozen=True, slots=True)
class Given:
    """What people say a group is; None where they say nothing."""

    kind: str | None = None
    name: str | None = None
    description: str | None = None


@dataclass(slots=True)
class _Groups:
    """Where each mention goes, and which places each group and each name has."""

    keys: dict[Place, str]
    reasons: dict[Place, str]
    members: dict[str, set[Place]] = field(default_factory=lambda: defaultdict(set))
    places: dict[str, set[Place]] = field(default_factory=lambda: defaultdict(set))
    given: dict[str, Given] = field(default_factory=dict)

    def of(self, subject: Subject) -> str | None:
        """The group that most places of the subject are in."""
        found = self.places.get(name_key(subject.name), set())
        if subject.documents:
            found = {place for place in found if place[0] in subject.documents}
        counted = Counter(self.keys[place] for place in found)
        return min(counted, key=lambda group: (-counted[group], group)) if counted else None

    def move(self, places: set[Place], group: str, reason: str) -> None:
        for place in places:
            self.members[self.keys[place]].discard(place)
            self.members[group].add(place)
            self.keys[place] = group
            self.reasons[place] = reason


def edited(resolved: Resolved, edits: Sequence[Edit]) -> tuple[Resolved, Mapping[str, Given]]:
    """The groups after all edits, and what people say of them, by group."""
    if not edits:
        return resolved, {}
    groups = _Groups(dict(resolved.keys), dict(resolved.reasons))
    for place, group in resolved.keys.items():
        groups.members[group].add(place)
        groups.places[place[1]].add(place)
    apply = {"merge": _merge, "split": _split, "change": _change}
    for edit in edits:
        subject = groups.of(edit.subject)
        if subject is not None:
            apply[edit.action](edit, subject, groups)
    return Resolved(groups.keys, groups.reasons), groups.given


def _merge(edit: Edit, group: str, groups: _Groups) -> None:
    other = groups.of(edit.other) if edit.other else None
    if other is not None and other != group:
        groups.move(set(groups.members[other]), group, f"merged by hand (edit {edit.id})")
        before = groups.given.get(group, Given())
        groups.given[group] = Given(before.kind, before.name or edit.subject.name, before.description)


def _split(edit: Edit, group: str, groups: _Groups) -> None:
    keys = {name_key(name) for name in edit.names}
    leaving = {place for place in groups.members[group] if place[1] in keys or place[0] in edit.documents}
    if leaving and leaving != groups.members[group]:
        first = min(key for _, key in leaving)
        groups.move(leaving, f"{first} / {edit.id}", f"split by hand (edit {edit.id})")


def _change(edit: Edit, group: str, groups: _Groups) -> None:
    before = groups.given.get(group, Given())
    groups.given[group] = Given(
        kind=before.kind if edit.kind is None else edit.kind,
        name=before.name if edit.name is None else edit.name,
        description=before.description if edit.description is None else edit.description,
    )
