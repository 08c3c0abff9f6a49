"""What a traversal found, for readers: entity and relation tables, path lists, and the answer that
the walk gives by itself, all with the statements that they rest on.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from prompts.engine.calls import first_fitting, rough_tokens
from prompts.structures import markdown_table
from prompts.text.evidence import Evidence
from prompts.text.regex import regex
from prompts.text.words import is_han
from storage.answer_records import SubQuestion
from storage.graph_records import Relation
from storage.records import Chunk
from tasks.answer import StatedAnswer
from tasks.retrieve.facts import GraphFacts
from tasks.traverse.meta_paths import Chain
from tasks.traverse.plan import CheckedStep, Operand, Outcome, Problem, StepResult

MOST_STATEMENTS = 24
MOST_NAMED = 20
UNSHOWN = -1
_TRIPLE = regex(r"(?P<subject>.{1,1000}?) -\[(?P<relation>[^\]]{1,1000})\]-> (?P<object>.+)")
_FACTS = frozenset({"follow", "intersect", "difference", "count", "max", "min", "sort"})


@dataclass
class Statements:
    """Where documents state relations, numbered as they are asked for; `chunk` gives a chunk by id.

    The evidence of a relation has its ends as written there: `label`, `attribute`, `value`. What
    stands in a further passage than `at_most` (None: any number) has the number UNSHOWN, and is no
    source.
    """

    facts: GraphFacts
    chunk: Callable[[str], Chunk]
    at_most: int | None = None
    known: dict[str, Evidence] = field(default_factory=dict)

    def of(self, relation: Relation) -> Evidence:
        """The first place that states a relation."""
        if relation.id not in self.known:
            self.known[relation.id] = self._read(relation)
        return self.known[relation.id]

    def _read(self, relation: Relation) -> Evidence:
        where = self.facts.places(relation.id)[0]
        chunk = self.chunk(where.chunk)
        text = chunk.text[where.start - chunk.start : where.end - chunk.start]
        source, target = (
            self.facts.entities[end].name for end in (relation.source, relation.target)
        )
        if chunk.kind == "triples":
            # Two names of a graph may have become one thing: an answer gives the one that this line
            # has.
            left, arrow, right = text.partition(f" -[{relation.predicate}]-> ")
            source, target = (left, right) if arrow else (source, target)
        return Evidence(
            number=self._number(chunk.id),
            document=chunk.document,
            title=chunk.title,
            text=text,
            heading=chunk.heading,
            prior=1.0,
            label=source,
            attribute=relation.predicate,
            value=target,
            chunk=chunk.id,
            start=where.start,
        )

    def _number(self, chunk: str) -> int:
        if self.at_most is None:
            return len(self.known)
        pool = self.pool()
        passages = {chunk, *(piece.chunk for piece in pool)}
        return len(pool) if len(passages) <= self.at_most else UNSHOWN

    def pool(self) -> list[Evidence]:
        """All statements asked for so far that are sources."""
        return [piece for piece in self.known.values() if piece.number != UNSHOWN]


def _mark(statement: Evidence) -> str:
    return "" if statement.number == UNSHOWN else f"[{statement.number + 1}]"


def entity_table(facts: GraphFacts, entities: Sequence[str], most: int) -> str:
    """The entities as a Markdown table, best connected first, as many as `most` tokens hold."""
    rows = sorted(
        (facts.entities[entity] for entity in set(entities)),
        key=lambda row: (-row.degree, row.name),
    )
    return markdown_table(
        ("entity", "kind", "relations", "description"),
        _fitting(((row.name, row.kind, str(row.degree), row.description) for row in rows), most),
    )


def relation_table(stated: Statements, relations: Sequence[Relation], most: int) -> str:
    """The relations as a Markdown table; the last column is the number of their source, from 1
    on.
    """
    rows = map(stated.of, relations)
    return markdown_table(
        ("source", "relation", "target", "evidence"),
        _fitting(((row.label, row.attribute, row.value, _mark(row)) for row in rows), most),
    )


def _fitting(rows: Iterable[tuple[str, ...]], most: int) -> list[tuple[str, ...]]:
    return first_fitting(rows, lambda row: rough_tokens(" | ".join(row)), most)


def path_list(stated: Statements, chains: Sequence[Chain], numbered: bool = True) -> Iterator[str]:
    """Each chain as one line, as walked: A -[r]-> B <-[q]- C; with the numbers of its sources
    behind.
    """
    for chain in filter(None, chains):
        # The beginning is the end of the first relation that the second one does not go on from.
        end, far = chain[0].source, chain[0].target
        second = {chain[1].source, chain[1].target} if len(chain) > 1 else set()
        end = far if end in second and far not in second else end
        first = stated.of(chain[0])
        line = first.label if chain[0].source == end else first.value
        for relation in chain:
            step, along = stated.of(relation), relation.source == end
            line += (
                f" -[{step.attribute}]-> {step.value}"
                if along
                else f" <-[{step.attribute}]- {step.label}"
            )
            end = relation.target if along else relation.source
        yield line + (
            " " + "".join(_mark(stated.of(relation)) for relation in chain) if numbered else ""
        )


def relations_in(chains: Sequence[Chain]) -> list[Relation]:
    """The relations of chains, each once, in order."""
    return list({relation.id: relation for chain in chains for relation in chain}.values())


# --- the answer -----------------------------------------------------------------------------------


def traversal_answer(
    steps: Sequence[CheckedStep], outcomes: Sequence[Outcome], stated: Statements
) -> StatedAnswer:
    """The last step's outcome as an answer: what was found, and the statements that it rests on."""
    last, end = steps[-1], outcomes[-1]
    if isinstance(end, Problem):
        return refused(end)
    chains = sorted(end.chains, key=len)
    if last.operator in _FACTS:
        values = _names(end, stated)
        return _answer(_listed(values), chains, stated, values)
    paths = islice(path_list(stated, end.chains, numbered=False), MOST_STATEMENTS)
    return _answer(
        "\n".join(paths) if last.operator in {"connect", "check"} else "", chains, stated
    )


def refused(problem: Problem) -> StatedAnswer:
    """That there is no answer, and why."""
    return StatedAnswer(problem.sentence(), fallback="abstained", answered_by="traversal")


def _answer(
    lead: str, chains: Sequence[Chain], stated: Statements, values: tuple[str, ...] = ()
) -> StatedAnswer:
    """With the statements of the chains in words and the numbers of their sources, each place
    once.
    """
    lines: dict[tuple[str, int, int], str] = {}
    for statement in map(stated.of, relations_in(chains)):
        if len(lines) < MOST_STATEMENTS and statement.number != UNSHOWN:
            place = (statement.document, statement.start, statement.end)
            lines.setdefault(place, f"{in_words(statement.text)} {_mark(statement)}")
    return StatedAnswer(
        "\n".join(filter(None, [lead, *lines.values()])), values, "partial", "traversal"
    )


def _names(result: StepResult, stated: Statements) -> tuple[str, ...]:
    names = (stated.facts.entities[entity].name for entity in result.entities)
    return result.values or tuple(dict.fromkeys(names))


def in_words(text: str) -> str:
    """A rendered triple `A -[designed]-> B` as "A designed B."; any other text as one line."""
    line = " ".join(text.split())
    triple = _TRIPLE.fullmatch(line)
    if triple is None:
        return line
    gap, stop = ("", "。") if is_han(triple["relation"]) else (" ", ".")
    relation = triple["relation"].replace("_", " ")
    return f"{triple['subject']}{gap}{relation}{gap}{triple['object']}".rstrip(".。") + stop


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return f"{', '.join(names[:MOST_NAMED])}{more}."


# --- the steps ------------------------------------------------------------------------------------


def traversal_trail(
    steps: Sequence[CheckedStep], outcomes: Sequence[Outcome], stated: Statements
) -> tuple[SubQuestion, ...]:
    """The steps in words, with what each found."""
    trail = []
    for step, outcome in zip(steps, outcomes, strict=True):
        if isinstance(outcome, Problem):
            text, shown = outcome.sentence(), list[Relation]()
        else:
            text, shown = (
                _listed(_names(outcome, stated)),
                relations_in(outcome.chains)[:MOST_STATEMENTS],
            )
        chunks = dict.fromkeys(stated.of(relation).chunk for relation in shown)
        trail.append(
            SubQuestion(question=_asked(step, stated.facts), answer=text, evidence=tuple(chunks))
        )
    return tuple(trail)


def _asked(step: CheckedStep, facts: GraphFacts) -> str:
    """A step in words: its operator, what it works on, and its way."""

    def called(operands: Sequence[Operand]) -> str:
        names = (
            dict.fromkeys(facts.entities[entity].name for entity in operand.entities)
            for operand in operands
        )
        return ", ".join(
            "/".join(own) or operand.text for own, operand in zip(names, operands, strict=True)
        )

    way = "".join(
        f" <-[{hop.relation}]-" if hop.inverse else f" -[{hop.relation}]->" for hop in step.hops
    )
    return (
        f"{step.operator} "
        f"{called(step.sources)}{way}{f' to {called(step.targets)}' if step.targets else ''}"
    )
