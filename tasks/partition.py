"""A hierarchy of communities that follows a small change, so that what nobody touched stays as it was.

A new entity goes, level by level, where its relations weigh most; entities that only know each other found a community
of their own; what has grown above the limit is split as a full detection would split it. Whoever is gone leaves. All
levels stay exclusive and exhaustive. It gets worse with every change: past a set drift all is detected anew.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from storage.graph_records import Community, Relation
from storage.records import Record
from tasks.communities import community_id, split_further


class Followed(Record):
    """`communities` stand in for the `outdated` (ids); `was` tells which of these each one has been, where it was one;
    `left` are those of them that somebody has left.

    `parents` maps outdated communities to those that take their place above communities which are as they were.
    """

    communities: tuple[Community, ...]
    outdated: tuple[str, ...]
    was: Mapping[str, str]
    left: tuple[str, ...]
    parents: Mapping[str, str]


@dataclass(eq=False)
class _Node:
    """A community while it changes; `was` is its id, empty for a new one."""

    level: int
    parent: "_Node | None"
    members: set[str]
    was: str = ""
    below: list["_Node"] = field(default_factory=list)
    changed: bool = False
    left: bool = False


def follow(
    around: Sequence[Community],
    gone: Collection[str],
    new: Collection[str],
    relations: Sequence[Relation],
    levels: int,
    max_size: int,
) -> Followed | None:
    """The hierarchy after entities are `gone` and `new` ones came; None where it needs another number of levels.

    `around` holds all communities of those that are gone and of the neighbours of those that are new; `relations` all
    that touch a new entity or a member of an `around` community of at most `max_size`. An entity may be both gone and
    new: it is placed again.
    """
    tree = _Tree(around, levels, max_size, relations)
    tree.leave(gone)
    tree.place(sorted(new))
    return tree.followed() if tree.split() else None


class _Tree:
    """The communities around a change."""

    def __init__(self, around: Sequence[Community], levels: int, max_size: int, relations: Sequence[Relation]) -> None:
        self.levels, self.max_size, self.relations = levels, max_size, relations
        self.nodes: list[_Node] = []
        self.felled: list[_Node] = []
        by_id: dict[str, _Node] = {}
        self.path: dict[str, dict[int, _Node]] = defaultdict(dict)
        for one in sorted(around, key=lambda community: (community.level, community.id)):
            node = by_id[one.id] = _Node(one.level, by_id.get(one.parent or ""), set(one.members), one.id)
            self._enter(node)
        self.beside: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
        for relation in relations:
            for end, other in ((relation.source, relation.target), (relation.target, relation.source)):
                self.beside[end][other] += max(relation.weight, 1e-6)

    def _enter(self, node: _Node) -> None:
        self.nodes.append(node)
        if node.parent is not None:
            node.parent.below.append(node)
        for member in node.members:
            self.path[member][node.level] = node

    def leave(self, gone: Collection[str]) -> None:
        """Take entities out of their communities."""
        for entity in gone:
            for node in self.path.pop(entity, {}).values():
                node.members.discard(entity)
                node.changed = node.left = True

    def place(self, new: Sequence[str]) -> None:
        """Put each where its relations weigh most, the most tied first; the rest into communities of their own."""
        left = dict.fromkeys(new)
        while left:
            ties = {entity: sum(w for one, w in self.beside[entity].items() if one in self.path) for entity in left}
            entity = max(left, key=lambda one: (ties[one], one))
            if ties[entity] == 0:
                break
            self._join(entity)
            del left[entity]
        for members in self._together(left):
            self._found(members)

    def _join(self, entity: str) -> None:
        inside: _Node | None = None
        for level in range(self.levels):
            weights: dict[int, float] = defaultdict(float)
            nodes: dict[int, _Node] = {}
            for other, weight in self.beside[entity].items():
                node = self.path.get(other, {}).get(level)
                if node is not None and (inside is None or node.parent is inside):
                    weights[id(node)] += weight
                    nodes[id(node)] = node
            inside = max(nodes.values(), key=lambda node: (weights[id(node)], min(node.members)))
            inside.members.add(entity)
            inside.changed = True
            self.path[entity][level] = inside

    def _together(self, left: Iterable[str]) -> list[list[str]]:
        """The connected components of what nobody else knows."""
        remaining, found = dict.fromkeys(sorted(left)), []
        while remaining:
            reached, edge = dict[str, None](), [next(iter(remaining))]
            while edge:
                entity = edge.pop()
                if entity in remaining:
                    del remaining[entity]
                    reached[entity] = None
                    edge += self.beside[entity]
            found.append(sorted(reached))
        return found

    def _found(self, members: Sequence[str]) -> None:
        node = _Node(0, None, set(members), changed=True)
        self._enter(node)
        self._grow(node)

    def _grow(self, above: _Node) -> None:
        """The levels below a community, made anew."""
        if above.level + 1 == self.levels:
            return
        last = above.level + 2 == self.levels
        for part in split_further(sorted(above.members), self.relations, self.max_size, above.level + 1, last):
            node = _Node(above.level + 1, above, set(part), changed=True)
            self._enter(node)
            self._grow(node)

    def split(self) -> bool:
        """Split what has grown above the limit; False where that needs a level more."""
        for node in sorted((node for node in self.nodes if node.changed), key=lambda node: node.level):
            if len(node.members) <= self.max_size or node in self.felled:
                continue
            if node.level + 1 < self.levels:
                if any(child.members == node.members for child in node.below):
                    self._fell(node)
                    self._grow(node)
            elif node.parent is None:
                return False
            else:
                self._part(node)
        return True

    def _fell(self, node: _Node) -> None:
        """Take away all levels below a community."""
        for child in node.below:
            self._fell(child)
            self.nodes.remove(child)
            self.felled.append(child)
        node.below = []

    def _part(self, leaf: _Node) -> None:
        """Communities of the last level in place of one that is too large."""
        assert leaf.parent is not None  # noqa: S101 - the caller has looked
        self.nodes.remove(leaf)
        self.felled.append(leaf)
        leaf.parent.below.remove(leaf)
        for part in split_further(sorted(leaf.members), self.relations, self.max_size, leaf.level, last=True):
            self._enter(_Node(leaf.level, leaf.parent, set(part), changed=True))

    def followed(self) -> Followed:
        """What became of it: every community whose members changed, top down."""
        made: dict[int, Community] = {}
        was: dict[str, str] = {}
        left: list[str] = []
        parents: dict[str, str] = {}
        for node in sorted(self.nodes, key=lambda node: node.level):
            above = None if node.parent is None else made.get(id(node.parent))
            if not node.members or not node.changed:
                continue
            ids = tuple(sorted(node.members))
            parent = None if node.parent is None else above.id if above else node.parent.was
            one = Community(id=community_id(node.level, ids), level=node.level, parent=parent, members=ids)
            made[id(node)] = one
            if node.left:
                left.append(one.id)
            if node.was:
                was[one.id] = node.was
                parents[node.was] = one.id
        outdated = [
            node.was for node in (*self.nodes, *self.felled) if node.was and (node.changed or node in self.felled)
        ]
        return Followed(
            communities=tuple(made.values()), outdated=tuple(outdated), was=was, left=tuple(left), parents=parents
        )
