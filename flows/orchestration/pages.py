"""The pages of recorded runs, in Markdown: what an index run changed and cost, and how a question was answered."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from flows.indexing.earlier_prompts import in_words as kept_in_words
from flows.orchestration.artifacts import label, markdown_table, plain, short
from flows.runtime import Runtime
from flows.session import Session
from flows.usage import ledger
from storage.answer_records import Answer, ModeDecision, ReportRead, Trace
from storage.errors import NoGeneration
from storage.graph_records import Report
from storage.records import DeadLetter, Record
from storage.run_records import IndexReport, UsageRow

SHOWN_DOCUMENTS = 50
SHOWN_LETTERS = 20
SHOWN_SKIPPED = 50
SHOWN_COMMUNITIES = 10
SHOWN_REPORTS = 50

Change = Literal["added", "changed", "removed"]


class Theme(Record):
    """A community that has a report, and how many entities it holds."""

    report: Report
    members: int


class RunOutcome(Record):
    """What an index run left to look at. `themes` are the largest of the top level, largest first."""

    report: IndexReport
    sources: tuple[str, ...]
    changes: tuple[tuple[Change, str], ...] = ()
    letters: tuple[DeadLetter, ...] = ()
    themes: tuple[Theme, ...] = ()


def documents_now(runtime: Runtime) -> dict[str, str]:
    """The documents of the current generation by id, each with the hash of what it says; none where none is indexed."""
    try:
        with runtime.workspace.read() as generation:
            return generation.documents.hashes()
    except NoGeneration:
        return {}


def outcome_of(report: IndexReport, sources: Sequence[str], before: Mapping[str, str], runtime: Runtime) -> RunOutcome:
    """Read from the generation that the run left; `before` are the documents that were there when it began."""
    with runtime.workspace.read(report.generation) as generation:
        letters = tuple(generation.extractions.dead_letters()) if report.dead_letters else ()
        if not report.published:
            return RunOutcome(report=report, sources=tuple(sources), letters=letters)
        sizes = {community.id: len(community.members) for community in generation.communities.communities(0)}
        reports = generation.communities.reports(0)
        after = generation.documents.hashes()
    themes = sorted(
        (Theme(report=one, members=sizes[one.community]) for one in reports),
        key=lambda theme: (-theme.members, -theme.report.rating, theme.report.community),
    )
    return RunOutcome(
        report=report, sources=tuple(sources), changes=changes(before, after), letters=letters,
        themes=tuple(themes[:SHOWN_REPORTS]),
    )  # fmt: skip


def changes(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[tuple[Change, str], ...]:
    """What became of the documents: removed ones first, then changed, then added ones, by id."""
    removed: list[tuple[Change, str]] = [("removed", name) for name in sorted(before.keys() - after.keys())]
    changed: list[tuple[Change, str]] = [
        ("changed", name) for name in sorted(before.keys() & after.keys()) if before[name] != after[name]
    ]
    return (*removed, *changed, *(("added", name) for name in sorted(after.keys() - before.keys())))


def index_in_words(report: IndexReport) -> str:
    """The outcome as one sentence."""
    counts = report.documents
    if not report.published:
        return f"Nothing has changed: generation {report.generation} stays, with {counts.unchanged} documents."
    found = ", ".join(f"{number} {name}" for name, number in counts.model_dump().items() if number) or "none changed"
    return (
        f"Published generation {report.generation} ({found}; {report.chunks} chunks, {report.entities} entities, "
        f"{report.relations} relations) in {report.seconds:.1f} s."
    )


def index_page(outcome: RunOutcome, used: Sequence[UsageRow], reports_at: str | None = None) -> str:
    """The page in Markdown; `reports_at` is the address of the page with the reports."""
    report = outcome.report
    parts = [
        f"# Generation {report.generation}",
        index_in_words(report),
        *([kept_in_words(report.kept_prompts)] if report.kept_prompts else []),
        f"Sources: {plain(', '.join(outcome.sources))}",
        *_changes(outcome.changes),
        *_letters(outcome.letters),
        *_skipped(report),
        *_themes(outcome.themes, reports_at),
        ledger(used),
    ]
    return "\n\n".join(parts)


def reports_page(themes: Sequence[Theme]) -> str:
    """The reports in full, each statement with the place that shows it."""
    parts = ["# Reports of the largest communities"]
    for theme in themes:
        report = theme.report
        parts += [
            f"## {plain(report.title)}",
            f"{theme.members} entities; rated {report.rating:.1f}: {plain(report.rating_reason)}",
            plain(report.summary),
            "\n".join(
                f"- {plain(found.summary)} ({plain(found.document)}, {found.start} to {found.end})"
                for found in report.findings
            ),
            f"`trellis reports {report.community}`",
        ]
    return "\n\n".join(part for part in parts if part)


def _changes(made: Sequence[tuple[Change, str]]) -> list[str]:
    if not made:
        return []
    rows = [(change, plain(name)) for change, name in made[:SHOWN_DOCUMENTS]]
    return ["## Documents", markdown_table(("change", "document"), rows), *_more(len(made), SHOWN_DOCUMENTS)]


def _letters(letters: Sequence[DeadLetter]) -> list[str]:
    if not letters:
        return []
    rows = [
        (plain(one.item), plain(one.step), plain(short(one.error, 300)), plain(short(one.remedy, 300)))
        for one in letters[:SHOWN_LETTERS]
    ]
    head = f"## Dead letters ({len(letters)})"
    said = "These failed and are kept; `trellis dead-letter --retry` tries them again."
    return [head, said, markdown_table(("item", "step", "reason", "remedy"), rows), *_more(len(letters), SHOWN_LETTERS)]


def _skipped(report: IndexReport) -> list[str]:
    if not report.skipped:
        return []
    lines = "\n".join(f"- {plain(one.path)}: {plain(one.reason)}" for one in report.skipped[:SHOWN_SKIPPED])
    return [f"## Skipped ({len(report.skipped)})", lines, *_more(len(report.skipped), SHOWN_SKIPPED)]


def _themes(themes: Sequence[Theme], reports_at: str | None) -> list[str]:
    if not themes:
        return []
    rows = [
        (plain(short(theme.report.title, 120)), str(theme.members), f"{theme.report.rating:.1f}")
        for theme in themes[:SHOWN_COMMUNITIES]
    ]
    link = [f"[Their reports]({reports_at})"] if reports_at else []
    return ["## Largest communities", markdown_table(("title", "entities", "rated"), rows), *link]


def _more(count: int, shown: int) -> list[str]:
    return [f"and {count - shown} more"] if count > shown else []


SHOWN_SOURCES = 6


MOST_QUERIES = 4
MOST_ENTITIES = 8
MOST_FACTS = 8


class Fact(Record):
    """A relation that the evidence states: the names of its ends, and the document."""

    source: str
    predicate: str
    target: str
    document: str


class Walked(Record):
    """What a search went through: the entities that each query names, and the relations that the sources state."""

    searched: tuple[tuple[str, tuple[str, ...]], ...]
    facts: tuple[Fact, ...]


def walked(answer: Answer, session: Session) -> Walked:
    """What the generation says about the way of an answer: deterministic, nothing is searched again."""
    entities = session.index.entities
    named = [[entities[link.entity] for link in session.index.link(query)] for query in answer.trace.queries]
    wanted = {entity.id for group in named for entity in group}
    titles = {citation.chunk: citation.title or citation.document for citation in answer.citations}
    facts = [
        Fact(
            source=session.facts.entities[relation.source].name, predicate=relation.predicate,
            target=session.facts.entities[relation.target].name, document=title,
        )
        for chunk, title in titles.items()
        for relation in session.facts.inside([chunk])
        if relation.source in wanted or relation.target in wanted
    ]  # fmt: skip
    searched = zip(answer.trace.queries, named, strict=True)
    return Walked(
        searched=tuple((query, tuple(entity.name for entity in group)) for query, group in searched),
        facts=tuple(dict.fromkeys(facts)),
    )


def answer_in_words(answer: Answer) -> str:
    """How the question ended, as one sentence."""
    cited = len({citation.document for citation in answer.citations})
    sources = "1 document" if cited == 1 else f"{cited} documents"
    if answer.trace.answered_by == "excerpts" and answer.fallback != "abstained":
        return f"The best excerpts, from {sources} (generation {answer.generation}, {answer.usage.seconds:.2f} s)."
    ends = {
        "none": f"Answered from {sources}",
        "partial": f"Answered in part, from {sources}",
        "ungrounded": "Answered by the model alone: no document supports it",
        "abstained": "Not answered: the documents do not say",
    }
    return f"{ends[answer.fallback]} (generation {answer.generation}, {answer.usage.seconds:.2f} s)."


def answer_page(answer: Answer, way: Walked, used: Sequence[UsageRow]) -> str:
    """The page in Markdown, with the picture of the way as a Mermaid block."""
    parts = [f"# {plain(answer.question)}", plain(answer.answer), answer_in_words(answer), *_flagged(answer)]
    parts += _sources(answer)
    parts += ["## Decisions", _decisions(answer.trace), *_structure(answer.trace)]
    parts += ["## The way of the question", picture(answer, way)]
    return "\n\n".join([*parts, ledger(used)])


def _flagged(answer: Answer) -> list[str]:
    """The sentences that no source supports."""
    flagged = [answer.answer[row.start : row.end] for row in answer.grounding if row.supported is False]
    return ["\n".join(["No source supports:", "", *(f"- {plain(one)}" for one in flagged)])] if flagged else []


def _sources(answer: Answer) -> list[str]:
    if not answer.citations:
        return []
    parts = ["## Sources"]
    for citation in answer.citations:
        page = f", p. {citation.page}" if citation.page else ""
        parts.append(f"{plain(citation.marker)} {plain(citation.title)} ({plain(citation.document)}{page})")
        parts.append(f"> {plain(citation.quote)}")
    return parts


def _structure(trace: Trace) -> list[str]:
    """What each document gave to the structure, in its form; documents without anything are named."""
    given = [one for one in trace.structures if one.elements]
    parts = [f"## The {trace.structure}"] if given else []
    for one in given[:SHOWN_SOURCES]:
        text = "\n".join(f"    {line}" for line in one.text.splitlines())
        parts += [f"{plain(one.title)} ({plain(one.document)})", text]
    if len(given) > SHOWN_SOURCES:
        parts.append(f"and {len(given) - SHOWN_SOURCES} documents more")
    nothing = [plain(one.title) for one in trace.structures if not one.elements]
    if given and nothing:
        parts.append(f"nothing found in: {'; '.join(nothing)}")
    return parts


def _telling(trace: Trace) -> list[ReportRead]:
    """The community reports that gave something to the answer."""
    return [one for one in trace.reports if one.points][:SHOWN_SOURCES]


def _chosen(decision: ModeDecision) -> list[str]:
    """Why this mode, what gave nothing, and what each mode would take with a model."""
    costs = ", ".join(f"{one.mode} {one.tokens:,} in {one.calls} calls" for one in decision.forecasts)
    return [
        f"chosen ({decision.confidence:.2f}): {plain(decision.reason)}",
        *(f"{one.mode} was tried and gave no answer: {plain(one.said)}" for one in decision.tried),
        *([f"estimated tokens with a model for every step: {costs}"] if costs else []),
    ]


def _decisions(trace: Trace) -> str:
    route = trace.route
    lines = [
        f"answered by {trace.answered_by}, effort {trace.effort}",
        *(f"no call for {one.step}: {plain(one.reason)}" for one in trace.spared),
        *([f"markers that named no source: {', '.join(trace.removed_markers)}"] if trace.removed_markers else []),
        f"mode {trace.mode}, question type {plain(trace.question_type)}",
        *(_chosen(trace.decision) if trace.decision else ()),
        *(
            f"memory for {plain(one.query)}: {one.pop} sources known, {one.threshold} needed, "
            f"{'used' if one.use_memory else 'not used'}"
            for one in trace.trigger
        ),
        f"searched for: {plain('; '.join(trace.queries))}",
        *(f"{plain(one.text)} read as {plain(one.taken or 'nothing known')}" for one in trace.ambiguity),
        f"passages: {trace.filter.entailment} support, {trace.filter.neutral} neutral, "
        f"{trace.filter.contradiction} contradict ({trace.filter.hypothesis} hypothesis)",
        *(f"{plain(one.document)}: {plain(one.explanation)}" for one in trace.filter.conflicts),
        f"route {route.type} (confidence {route.confidence:.2f}, margin {route.margin:.2f}): {plain(route.reason)}",
        f"structure used: {plain(trace.structure)}",
        *(f"report {plain(one.title)} (level {one.level}): {one.points} points" for one in _telling(trace)),
        *(f"{plain(part.question)} → {plain(part.answer)}" for part in trace.subquestions),
    ]
    return "\n".join(f"- {line}" for line in lines)


def picture(answer: Answer, way: Walked) -> str:
    """A fenced Mermaid block of the question's way; long lists are cut."""
    return "\n".join(["```mermaid", "flowchart TD", *_Drawing(answer, way).lines(), "```"])


class _Drawing:
    """Nodes by what they stand for: a name that comes twice is one node."""

    def __init__(self, answer: Answer, way: Walked) -> None:
        self._answer = answer
        self._way = way
        self._nodes: dict[tuple[str, str], str] = {}
        self._lines: list[str] = []

    def lines(self) -> list[str]:
        question = self._node("question", self._answer.question, "([", "])")
        found = list(self._search(question)) or [question]
        last = self._decisions(found)
        answer = self._node("answer", short(self._answer.answer or "no answer", 120), "([", "])")
        self._edge(last, answer, self._answer.fallback if self._answer.fallback != "none" else "")
        return self._lines

    def _search(self, question: str) -> Iterator[str]:
        """From the question to the cited documents; gives the last nodes."""
        remembered = any(decision.use_memory for decision in self._answer.trace.trigger)
        ends = [self._node("memory", "memory answers for retrieval", "[(", ")]")] if remembered else []
        for end in ends:
            self._edge(question, end)
        for query, names in self._way.searched[:MOST_QUERIES]:
            start = question
            if query != self._answer.question:
                start = self._node("query", query, "[/", "/]")
                self._edge(question, start, "search")
            for name in names[:MOST_ENTITIES]:
                self._edge(start, self._node("entity", name, "(", ")"), "names")
        for fact in self._way.facts[:MOST_FACTS]:
            source = self._node("entity", fact.source, "(", ")")
            target = self._node("entity", fact.target, "(", ")")
            self._edge(source, target, fact.predicate)
            self._edge(target, self._node("document", fact.document, "[[", "]]"), "stated in")
        stated = {fact.document for fact in self._way.facts[:MOST_FACTS]}
        for title in dict.fromkeys(citation.title or citation.document for citation in self._answer.citations):
            document = self._node("document", title, "[[", "]]")
            if title not in stated:
                self._edge(ends[0] if ends else question, document, "found")
            yield document
        yield from ends if not self._answer.citations else ()

    def _decisions(self, found: list[str]) -> str:
        """From the evidence over the decisions to the last of the steps."""
        trace = self._answer.trace
        kept = trace.filter
        text = f"filter: {kept.entailment} support, {kept.neutral} neutral, {kept.contradiction} contradict"
        last = self._node("filter", text, "{{", "}}")
        for node in found:
            self._edge(node, last)
        route = self._node("route", f"route: {trace.route.type} ({trace.route.confidence:.2f})", "{{", "}}")
        self._edge(last, route)
        last = self._node("structure", f"structure: {trace.structure}", "[", "]")
        self._edge(route, last)
        parts = trace.subquestions if len(trace.subquestions) > 1 else ()
        for number, part in enumerate(parts, 1):
            text = f"{number}. {short(part.question, 50)} {short(part.answer, 60)}"
            asked = self._node("part", text, "[", "]", most=120)
            self._edge(last, asked)
            last = asked
        return last

    def _node(self, kind: str, text: str, opening: str, closing: str, most: int = 60) -> str:
        known = self._nodes.get((kind, text))
        if known is None:
            known = self._nodes[kind, text] = f"n{len(self._nodes) + 1}"
            self._lines.append(f'  {known}{opening}"{label(text, most)}"{closing}')
        return known

    def _edge(self, start: str, end: str, text: str = "") -> None:
        line = f'  {start} -->|"{label(text, 40)}"| {end}' if text else f"  {start} --> {end}"
        if line not in self._lines and start != end:
            self._lines.append(line)
