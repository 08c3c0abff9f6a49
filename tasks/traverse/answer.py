"""What a traversal found, for readers: tables, paths, and the answer that the walk itself gives.

Everything comes with the statements of documents that it rests on.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from prompts.engine.messages import first_fitting, rough_tokens
from prompts.structures import markdown_table
from prompts.text.evidence import Evidence
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
UNSHOWN = -1  # the number of a statement that is no source
_TRIPLE = re.compile(r"(?P<subject>.{1,1000}?) -\[(?P<relation>[^\]]{1,1000})\]-> (?P<object>.+)")
_FACTS = frozenset({"follow", "intersect", "difference", "count", "max", "min", "sort"})


@dataclass
class Statements:
    """Where documents state relations, numbered in the order in which they are asked for.

    `chunk` returns a chunk by its id. Statements may come from `at_most` passages (None: any
    number); those in further passages are UNSHOWN. The evidence of a relation holds its ends and
    its predicate as `label`, `value` and `attribute`.
    """

    facts: GraphFacts
    chunk: Callable[[str], Chunk]
    at_most: int | None = None
    known: dict[str, Evidence] = field(default_factory=dict)

    def of(self, relation: Relation) -> Evidence:
        """Return the first place that states a relation."""
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
            # Several names may have been resolved to one entity: those of this line are shown.
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
        return [piece for piece in self.known.values() if piece.number != UNSHOWN]


def _mark(statement: Evidence) -> str:
    return "" if statement.number == UNSHOWN else f"[{statement.number + 1}]"


def entity_table(facts: GraphFacts, entities: Sequence[str], most: int) -> str:
    """Write a Markdown table of entities, best connected first, in at most `most` tokens."""
    rows = sorted(
        (facts.entities[entity] for entity in set(entities)),
        key=lambda row: (-row.degree, row.name, row.id),
    )
    cells = ((row.name, row.kind, str(row.degree), row.description) for row in rows)
    return _table(("entity", "kind", "relations", "description"), cells, most)


def relation_table(stated: Statements, relations: Sequence[Relation], most: int) -> str:
    """Write a Markdown table of relations with the numbers of their sources, counted from 1."""
    rows = map(stated.of, relations)
    cells = ((row.label, row.attribute, row.value, _mark(row)) for row in rows)
    return _table(("source", "relation", "target", "evidence"), cells, most)


def _table(head: Sequence[str], rows: Iterable[tuple[str, ...]], most: int) -> str:
    return markdown_table(
        head, first_fitting(rows, lambda row: rough_tokens(" | ".join(row)), most)
    )


def path_list(stated: Statements, chains: Sequence[Chain], numbered: bool = True) -> Iterator[str]:
    """Yield each chain as a line, as walked, with its sources: A -[r]-> B <-[q]- C [1][2]."""
    for chain in filter(None, chains):
        # The walk begins at the end of the first relation that the second one does not share.
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
        marks = "".join(_mark(stated.of(relation)) for relation in chain)
        yield f"{line} {marks}" if numbered else line


def relations_in(chains: Sequence[Chain]) -> list[Relation]:
    """Return the relations of chains, each once, in order."""
    return list({relation.id: relation for chain in chains for relation in chain}.values())


# --- the answer -----------------------------------------------------------------------------------


def traversal_answer(
    steps: Sequence[CheckedStep], outcomes: Sequence[Outcome], stated: Statements
) -> StatedAnswer:
    """Make an answer of the last outcome: what was found, and the statements that it rests on."""
    last, end = steps[-1], outcomes[-1]
    if isinstance(end, Problem):
        return refused(end)
    lead, values = "", tuple[str, ...]()
    if last.operator in _FACTS:
        values = _names(end, stated)
        lead = _listed(values)
    elif last.operator in {"connect", "check"}:
        lead = "\n".join(islice(path_list(stated, end.chains, numbered=False), MOST_STATEMENTS))
    lines: dict[tuple[str, int, int], str] = {}
    for statement in map(stated.of, relations_in(sorted(end.chains, key=len))):
        if len(lines) < MOST_STATEMENTS and statement.number != UNSHOWN:
            place = (statement.document, statement.start, statement.end)
            lines.setdefault(place, f"{in_words(statement.text)} {_mark(statement)}")
    text = "\n".join(filter(None, [lead, *lines.values()]))
    return StatedAnswer(text, values, "partial", "traversal")


def refused(problem: Problem) -> StatedAnswer:
    """Make an answer that says why there is none."""
    return StatedAnswer(problem.sentence(), fallback="abstained", answered_by="traversal")


def _names(result: StepResult, stated: Statements) -> tuple[str, ...]:
    names = (stated.facts.entities[entity].name for entity in result.entities)
    return result.values or tuple(dict.fromkeys(names))


def in_words(text: str) -> str:
    """Write a rendered triple `A -[designed]-> B` as "A designed B."; join other text to a line."""
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
    """Describe each step, and what it found."""
    trail = []
    for step, outcome in zip(steps, outcomes, strict=True):
        shown = list[Relation]()
        if isinstance(outcome, Problem):
            text = outcome.sentence()
        else:
            text = _listed(_names(outcome, stated))
            shown = relations_in(outcome.chains)[:MOST_STATEMENTS]
        chunks = dict.fromkeys(stated.of(relation).chunk for relation in shown)
        trail.append(
            SubQuestion(question=_asked(step, stated.facts), answer=text, evidence=tuple(chunks))
        )
    return tuple(trail)


def _asked(step: CheckedStep, facts: GraphFacts) -> str:
    """Write a step as its operator, what it works on, and its way."""

    def called(operands: Sequence[Operand]) -> str:
        names = []
        for operand in operands:
            own = dict.fromkeys(facts.entities[entity].name for entity in operand.entities)
            names.append("/".join(own) or operand.text)
        return ", ".join(names)

    way = "".join(
        f" <-[{hop.relation}]-" if hop.inverse else f" -[{hop.relation}]->" for hop in step.hops
    )
    to = f" to {called(step.targets)}" if step.targets else ""
    return f"{step.operator} {called(step.sources)}{way}{to}"
