"""What each step makes of one document and of one question: the excerpts of docs/tour.md come from
here.
"""

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.runner import EXAMPLES, Run, measure, option
from flows.index import IndexOptions, build_index
from flows.query import answer_question
from flows.question import AskOptions, Resources, resources_for
from flows.runtime import Runtime, open_runtime
from flows.session import Session, open_session
from flows.settings import Settings
from storage.answer_records import Answer
from storage.records import Chunk, Record
from storage.run_records import IndexReport

DOCUMENT = "brewery/gullstone-history.md"
QUESTION = (
    "Where was the engineer born who designed the bridge that carries Gullstone Brewery's water "
    "main?"
)
PLAIN = "When was Gullstone Brewery founded?"
AGAIN = "In which year was Gullstone Brewery founded?"
WIDTH = 200  # characters of a line that quotes


class Stop(Record):
    """A step and what it gave, a line for each thing."""

    step: str
    lines: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join([f"## {self.step}", *self.lines])


def runtime_in(folder: Path, embedding: str = "bundled") -> Runtime:
    """A runtime with a workspace in the folder, and no settings of the person who runs this."""
    return open_runtime(Settings(workspace=folder / "workspace", embedding=embedding))


def document_stops(document: str, session: Session) -> Iterator[Stop]:
    """What the index holds of a document, in the order in which it was made."""
    stored = session.documents([document])[document]
    yield Stop(
        step="load",
        lines=(
            (
                f"{stored.id}: {stored.title!r}, language {stored.language}, {len(stored.text):,} "
                "characters"
            ),
        ),
    )
    chunks = session.chunks_of([document])[document]
    yield Stop(
        step="chunk",
        lines=tuple(
            f"{one.id}: characters {one.start}-{one.end}, {one.tokens} tokens, {one.kind}: "
            f"{_cut(one.text)}"
            for one in chunks
        ),
    )
    yield from _extracted(chunks, stored.text, session)
    here = {one.id for one in chunks}
    places = session.generation.graph.occurrences("entity")
    yield from _resolved(sorted({place.item for place in places if place.chunk in here}), session)
    yield from _communities(document, session)


def _extracted(chunks: Sequence[Chunk], text: str, session: Session) -> Iterator[Stop]:
    found = session.generation.extractions.extractions([one.id for one in chunks])
    mentions = [
        f"{one.name} ({one.kind}) {one.start}-{one.end}" for part in found for one in part.mentions
    ]
    yield Stop(step="extract: mentions", lines=tuple(dict.fromkeys(mentions)))
    relations = [
        f"{one.source} -[{one.predicate}]-> {one.target} | {_cut(text[one.start : one.end])}"
        for part in found
        for one in part.relations
    ]
    yield Stop(step="extract: relations", lines=tuple(relations))


def _resolved(entities: Sequence[str], session: Session) -> Iterator[Stop]:
    graph = session.generation.graph
    aliases: dict[str, list[str]] = {}
    for alias in graph.aliases(entities):
        aliases.setdefault(alias.entity, []).append(f"; {alias.name} ({alias.reason})")
    nodes = sorted(graph.entities(entities), key=lambda node: (-node.mentions, node.name))
    yield Stop(
        step="dedupe",
        lines=tuple(
            f"{node.name}: {node.mentions} mentions, degree "
            f"{node.degree}{''.join(aliases.get(node.id, []))}"
            for node in nodes
        ),
    )
    yield Stop(
        step="summarize", lines=tuple(f"{node.name}: {_cut(node.description)}" for node in nodes)
    )


def _communities(document: str, session: Session) -> Iterator[Stop]:
    rooms = session.generation.communities
    count = max((community.level + 1 for community in rooms.communities()), default=0)
    levels = [rooms.communities(level) for level in range(count)]
    yield Stop(
        step="detect communities",
        lines=tuple(
            f"level {number}: {len(level)} communities of {sum(len(one.members) for one in level)} "
            f"entities, the largest of {max(len(one.members) for one in level)}"
            for number, level in enumerate(levels)
        ),
    )
    for report in sorted(rooms.reports(), key=lambda one: (one.level, -one.rating, one.community)):
        findings = [one for one in report.findings if one.document == document]
        if findings:
            quotes = (
                f"- {one.document} {one.start}-{one.end}: {_cut(one.explanation)}"
                for one in findings
            )
            title = f"level {report.level}, rating {report.rating}: {report.title}"
            yield Stop(step="report", lines=(title, *quotes))


def question_stops(answer: Answer, asked: Resources) -> Iterator[Stop]:
    """What an answer tells of its way."""
    trace = answer.trace
    yield Stop(step="rewrite", lines=trace.queries)
    if trace.decision is not None:
        chosen_for = f"{trace.mode}, {trace.decision.confidence:.2f}: {trace.decision.reason}"
        yield Stop(step="choose", lines=(chosen_for,))
    triggers = (
        f"Pop = {one.pop}, θ = {one.threshold}, τ = {one.tau}: "
        f"{'memory' if one.use_memory else 'search'} | {one.query}"
        for one in trace.trigger
    )
    yield Stop(step="trigger", lines=tuple(triggers))
    entities = asked.search.index.entities
    links = tuple(f"{link.text} → {entities[link.entity].name}" for link in asked.question.links)
    yield Stop(step="retrieve: link", lines=links)
    ranked = (f"{one.score:.3f} {one.document} {one.chunk}" for one in answer.passages)
    yield Stop(step="retrieve: passages", lines=tuple(ranked))
    counts, route = trace.filter, trace.route
    judged = (f"{one.label} {one.chunk}: {one.explanation}" for one in counts.judged)
    labels = (
        f"{counts.entailment} entailment, {counts.neutral} neutral, {counts.contradiction} "
        "contradiction"
    )
    yield Stop(step="filter", lines=(labels, *judged))
    chosen = f"{route.type}, confidence {route.confidence}, margin {route.margin}: {route.reason}"
    yield Stop(step="route", lines=(f"{trace.question_type} → {chosen}",))
    built = (
        f"{one.description}; {one.unverified} unverified | {_cut(one.text)}"
        for one in trace.structures
    )
    yield Stop(step="structurize", lines=tuple(built))
    document = {
        name: asked.search.chunk(name).document
        for one in trace.subquestions
        for name in one.evidence
    }
    parts = (
        f"{one.question} → {one.answer} "
        f"({', '.join(dict.fromkeys(document[name] for name in one.evidence))})"
        for one in trace.subquestions
    )
    yield Stop(step="decompose", lines=tuple(parts))
    cited = (
        f"{one.marker} {one.document} {one.start}-{one.end}: {one.quote}"
        for one in answer.citations
    )
    yield Stop(step="answer", lines=(f"{answer.fallback}: {', '.join(answer.values)}", *cited))


async def indexed(runtime: Runtime) -> IndexReport:
    """The sample corpus as the workspace's next generation."""
    return await build_index([EXAMPLES / "corpus"], IndexOptions(), runtime)


async def asked(question: str, session: Session) -> tuple[Answer, Resources]:
    """The answer, and how its steps saw the session."""
    answer = await answer_question(question, AskOptions(), session)
    return answer, await resources_for(answer.trace.rewritten, AskOptions(), session)


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= WIDTH else line[: WIDTH - 1] + "…"


@measure(
    option("--document", default=DOCUMENT, help="an id of the sample corpus"),
    option("--question", default=QUESTION),
    option("--plain", default=PLAIN, help="a question that memory keeps"),
    option("--again", default=AGAIN, help="the same in other words, asked last"),
)
def tour(run: Run) -> None:
    """What does each step make of one document of the sample corpus, and of three questions?"""
    asyncio.run(_tour(run))


async def _tour(run: Run) -> None:
    options, runtime = run.options, runtime_in(run.workspace("tour"))
    report = await indexed(runtime)
    with open_session(runtime) as session:
        made = f"generation {report.generation}: {report.chunks} chunks, {report.entities} entities"
        more = f"{report.relations} relations, {report.claims} claims, {report.reports} reports"
        last = Stop(step="publish", lines=(f"{made}, {more}",))
        print(*document_stops(options.document, session), last, sep="\n\n")
        for question in (options.question, options.plain, options.again):
            print(f"\n# {question}", *question_stops(*await asked(question, session)), sep="\n\n")
