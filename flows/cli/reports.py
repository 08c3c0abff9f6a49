"""`trellis reports`: what the documents are about, from the broadest groups of entities down to single statements."""

from argparse import Namespace
from collections.abc import Mapping, Sequence
from difflib import get_close_matches

from flows.cli.screen import Screen, runtime_of
from storage.errors import UsageError
from storage.graph_records import Community, Entity, Finding, Report, TextSpan
from storage.records import Document, Record
from storage.workspace import Generation

SHOWN_OF_A_LEVEL = 10
SHOWN_MEMBERS = 30
UNTITLED = "(no report: too little is said of it)"


class Group(Record):
    """A community by its id: the title of its report, empty where it has none, and how many entities it holds."""

    community: str
    level: int
    title: str
    members: int


class Listed(Report):
    """A report with the groups above and below it and how many entities it is about."""

    members: int
    parent: str | None
    children: tuple[str, ...]


class Quoted(TextSpan):
    """A place with what stands there."""

    title: str
    quote: str


class Cited(Finding):
    """A finding with what stands at its place: `quote` is `text[start:end]` of the document; `others` are the further
    places that it rests on."""

    title: str
    quote: str
    others: tuple[Quoted, ...] = ()


class Member(Record):
    """An entity of a community."""

    id: str
    name: str
    kind: str
    degree: int


class CommunityView(Record):
    """A community from all sides: its report (empty, and rated None, where too little is said of it), the way up and
    the ways down, its entities, the most connected first. A level that leaves a group as it was is passed over."""

    community: str
    level: int
    title: str = ""
    summary: str = ""
    rating: float | None = None
    rating_reason: str = ""
    findings: tuple[Cited, ...]
    parent: Group | None
    children: tuple[Group, ...]
    members: tuple[Member, ...]
    generation: int


def reports(options: Namespace, screen: Screen) -> int:
    """List the reports, the most important first within a level, or show one."""
    with runtime_of(options).workspace.read(options.as_of) as generation:
        view = look(options.report, generation) if options.report else None
        tree = Tree(generation)
    if view is None:
        _list(options.level, tree, screen)
    elif screen.as_json:
        screen.json(view)
    else:
        _show(view, screen)
    return 0


def _list(level: int | None, tree: "Tree", screen: Screen) -> None:
    if level is not None and level not in tree.levels:
        known = ", ".join(map(str, tree.levels)) or "none"
        raise UsageError(f"There is no level {level}.", f"Levels: {known}.")
    listed = [one for one in tree.listed() if level in (None, one.level)]
    if screen.as_json:
        screen.json(listed)
        return
    for number in tree.levels if level is None else (level,):
        _show_level(number, tree, [one for one in listed if one.level == number], level is None, screen)
    screen.line("One in full, with the groups above and below it: trellis reports ID", style="dim")


class Tree:
    """The hierarchy of a generation's communities, without the levels that leave a group as it was."""

    def __init__(self, generation: Generation) -> None:
        self.by_id = {one.id: one for one in generation.communities.communities()}
        self.reports = {one.community: one for one in generation.communities.reports()}
        self.levels = sorted({one.level for one in self.by_id.values()})
        self._below: dict[str, list[Community]] = {}
        for one in self.by_id.values():
            if one.parent:
                self._below.setdefault(one.parent, []).append(one)

    def parent(self, community: Community) -> Community | None:
        """The next larger group."""
        above = self.by_id.get(community.parent or "")
        while above is not None and above.members == community.members:
            above = self.by_id.get(above.parent or "")
        return above

    def children(self, community: Community) -> list[Community]:
        """The next smaller groups, the largest first."""
        below = self._below.get(community.id, [])
        while len(below) == 1:
            below = self._below.get(below[0].id, [])
        return sorted(below, key=lambda one: (-len(one.members), one.id))

    def group(self, community: Community) -> Group:
        report = self.reports.get(self.top(community).id)
        title = report.title if report else ""
        return Group(community=community.id, level=community.level, title=title, members=len(community.members))

    def top(self, community: Community) -> Community:
        """The same group at the first level that has it: the one that has the report."""
        above = self.by_id.get(community.parent or "")
        return self.top(above) if above is not None and above.members == community.members else community

    def listed(self) -> list[Listed]:
        """All reports, by level, the most important first."""
        ordered = sorted(self.reports.values(), key=lambda one: (one.level, -one.rating, one.community))
        return [self._listed(one, self.by_id[one.community]) for one in ordered]

    def _listed(self, report: Report, community: Community) -> Listed:
        above = self.parent(community)
        return Listed(
            **dict(report), members=len(community.members), parent=above.id if above else None,
            children=tuple(one.id for one in self.children(community)),
        )  # fmt: skip


def look(name: str, generation: Generation) -> CommunityView:
    """The community with this id. Raises UsageError, which names the nearest."""
    tree = Tree(generation)
    if name not in tree.by_id:
        near = get_close_matches(name, tree.by_id, n=3)
        raise UsageError(
            f"There is no report {name!r}.", f"Nearest: {', '.join(near)}." if near else "See `trellis reports`."
        )
    community = tree.by_id[name]
    report, above = tree.reports.get(tree.top(community).id), tree.parent(community)
    findings = report.findings if report else ()
    named = {place.document for one in findings for place in one.places}
    documents = {one.id: one for one in generation.documents.documents(named)}
    entities = sorted(generation.graph.entities(community.members), key=lambda one: (-one.degree, one.name, one.id))
    said = report.model_dump(include={"title", "summary", "rating", "rating_reason"}) if report else {}
    return CommunityView(
        **said, community=name, level=community.level, findings=_cited(findings, documents),
        parent=tree.group(above) if above else None, children=tuple(map(tree.group, tree.children(community))),
        members=tuple(map(_member, entities)), generation=generation.number,
    )  # fmt: skip


def _cited(findings: Sequence[Finding], documents: Mapping[str, Document]) -> tuple[Cited, ...]:
    cited = []
    for one in findings:
        first, *others = [_quoted(place, documents) for place in one.places]
        cited.append(Cited(**dict(one), title=first.title, quote=first.quote, others=tuple(others)))
    return tuple(cited)


def _quoted(place: TextSpan, documents: Mapping[str, Document]) -> Quoted:
    document = documents[place.document]
    return Quoted(**dict(place), title=document.title, quote=document.text[place.start : place.end])


def _member(entity: Entity) -> Member:
    return Member(id=entity.id, name=entity.name, kind=entity.kind, degree=entity.degree)


def _show_level(level: int, tree: Tree, listed: Sequence[Listed], in_short: bool, screen: Screen) -> None:
    groups = sum(one.level == level for one in tree.by_id.values())
    screen.line(f"Level {level}: {groups} groups, {len(listed)} reports", style="bold")
    shown = listed[:SHOWN_OF_A_LEVEL] if in_short else listed
    for one in shown:
        below = f", {len(one.children)} below" if one.children else ""
        screen.line(f"{one.community}  {one.rating:4.1f}  {one.title}  ({one.members} entities{below})", indent=2)
    if len(listed) > len(shown):
        more = len(listed) - len(shown)
        screen.line(f"and {more} more: trellis reports --level {level}", indent=2, style="dim")


def _show(view: CommunityView, screen: Screen) -> None:
    if view.parent:
        screen.line(f"↑ {_told(view.parent)}", style="cyan")
    screen.line(view.title or UNTITLED, style="bold")
    rated = f", rated {view.rating:.1f}: {view.rating_reason}" if view.rating is not None else ""
    screen.line(f"{view.community}, level {view.level}{rated}", style="dim")
    if view.summary:
        screen.line(view.summary)
    for number, finding in enumerate(view.findings, 1):
        screen.line()
        screen.line(f"{number}. {finding.summary}", style="bold")
        quote = " ".join(finding.quote.split())
        if " ".join(finding.explanation.split()) != quote:
            screen.line(finding.explanation, indent=3)
        screen.line(f'"{quote}"', indent=3)
        screen.line(f"{finding.document} [{finding.start}:{finding.end}]", indent=3, style="dim")
        for other in finding.others:
            screen.line(f'"{" ".join(other.quote.split())}"', indent=3)
            screen.line(f"{other.document} [{other.start}:{other.end}]", indent=3, style="dim")
    screen.line()
    shown = ", ".join(f"{one.name} ({one.kind})" for one in view.members[:SHOWN_MEMBERS])
    more = f", and {len(view.members) - SHOWN_MEMBERS} more" if len(view.members) > SHOWN_MEMBERS else ""
    screen.line(f"{len(view.members)} entities: {shown}{more}")
    for group in view.children:
        screen.line(f"↓ {_told(group)}", style="cyan")


def _told(group: Group) -> str:
    return f"{group.community}  {group.title or UNTITLED}  ({group.members} entities)"
