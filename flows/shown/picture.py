"""How did a question go through the steps? As a Mermaid picture: what was searched, walked, decided and answered."""

from collections.abc import Iterator

from flows.session import Session
from flows.shown.text import label, short
from storage.records import Answer, Record

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
