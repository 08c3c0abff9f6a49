"""The page of a question: the answer, its sources, the decisions behind it, and its way through the steps."""

from collections.abc import Iterator, Sequence

from flows.orchestration.artifacts import label, plain, short
from flows.session import Session
from flows.usage import ledger
from storage.meta import UsageRow
from storage.records import Answer, ModeDecision, Record, ReportRead, Trace

SHOWN_DOCUMENTS = 6


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


def in_words(answer: Answer) -> str:
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


def page(answer: Answer, way: Walked, used: Sequence[UsageRow]) -> str:
    """The page in Markdown, with the picture of the way as a Mermaid block."""
    parts = [f"# {plain(answer.question)}", plain(answer.answer), in_words(answer), *_flagged(answer)]
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
    for one in given[:SHOWN_DOCUMENTS]:
        text = "\n".join(f"    {line}" for line in one.text.splitlines())
        parts += [f"{plain(one.title)} ({plain(one.document)})", text]
    if len(given) > SHOWN_DOCUMENTS:
        parts.append(f"and {len(given) - SHOWN_DOCUMENTS} documents more")
    nothing = [plain(one.title) for one in trace.structures if not one.elements]
    if given and nothing:
        parts.append(f"nothing found in: {'; '.join(nothing)}")
    return parts


def _telling(trace: Trace) -> list[ReportRead]:
    """The community reports that gave something to the answer."""
    return [one for one in trace.reports if one.points][:SHOWN_DOCUMENTS]


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
