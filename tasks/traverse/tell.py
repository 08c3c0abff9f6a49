"""The answer that a traversal gives by itself, with the statements that it rests on."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from prompts.text.words import is_han
from storage.answer_records import Fallback, SubQuestion
from tasks.answer import StatedAnswer
from tasks.retrieve.facts import GraphFacts
from tasks.traverse.context import Stated, path_list, relations_in
from tasks.traverse.plan import CheckedStep, Operand
from tasks.traverse.results import Chain, Found, Outcome, Problem

MOST_STATEMENTS = 24
MOST_NAMED = 20
_TRIPLE = re.compile(r"(?P<subject>.+?) -\[(?P<relation>[^\]]+)\]-> (?P<object>.+)")
_FACTS = frozenset({"follow", "intersect", "difference", "count", "max", "min", "sort"})


@dataclass(frozen=True)
class TraversalAnswer:
    """The answer that the walk gives by itself, and its steps with what each found."""

    answer: StatedAnswer
    subquestions: tuple[SubQuestion, ...]


def tell(
    question: str, asks_if: bool, steps: Sequence[CheckedStep], outcomes: Sequence[Outcome], stated: Stated
) -> TraversalAnswer:
    """The last step's outcome as an answer; `asks_if` says that yes or no is asked."""
    last, end = steps[-1], outcomes[-1]
    trail = tuple(
        SubQuestion(
            question=_asked(step, stated.facts), answer=_shown(outcome, stated), evidence=_chunks(outcome, stated)
        )
        for step, outcome in zip(steps, outcomes, strict=True)
    )
    if isinstance(end, Problem):
        denied = _denied(question, last, outcomes, stated) if asks_if else None
        return TraversalAnswer(denied or refused(end), trail)
    statements = _statements(sorted(end.chains, key=len), stated)
    if asks_if and last.operator in {"check", "connect", "intersect"}:
        return TraversalAnswer(_affirmed(question, last, end, statements, stated), trail)
    if last.operator in _FACTS:
        values = _names(end, stated)
        return TraversalAnswer(_answer(_listed(values), statements, values), trail)
    lead = _paths(end, stated) if last.operator in {"connect", "check"} else ""
    return TraversalAnswer(_answer(lead, statements), trail)


def refused(problem: Problem) -> StatedAnswer:
    """That there is no answer, and why."""
    return StatedAnswer(problem.sentence(), fallback="abstained", answered_by="traversal")


def _answer(
    lead: str, statements: Sequence[str], values: tuple[str, ...] = (), fallback: Fallback = "none"
) -> StatedAnswer:
    text = "\n".join([lead, *statements] if lead else statements)
    return StatedAnswer(text, values, fallback, "traversal")


def _affirmed(question: str, last: CheckedStep, end: Found, statements: Sequence[str], stated: Stated) -> StatedAnswer:
    """Yes, with what is shared; a chain of several relations says how things are tied, not that it is so."""
    yes = "是" if is_han(question) else "Yes"
    if last.operator == "connect" and not _direct(end):
        return _answer(_paths(end, stated), statements, (), "partial")
    shared = _names(end, stated) if last.operator == "intersect" else ()
    return _answer(_listed([yes, *shared]), statements, (yes,))


def _denied(question: str, last: CheckedStep, outcomes: Sequence[Outcome], stated: Stated) -> StatedAnswer | None:
    """No, where both were found and share nothing; the statements show it."""
    before = [one for one in outcomes[:-1] if isinstance(one, Found)]
    if last.operator != "intersect" or len(before) < len(outcomes) - 1:
        return None
    chains = [chain for one in before for chain in one.chains]
    word = "否" if is_han(question) else "No"
    return _answer(_listed([word]), _statements(chains, stated), (word,))


def _direct(found: Found) -> bool:
    """Whether a single relation ties the two."""
    return any(len(chain) == 1 for chain in found.chains)


def _names(found: Found, stated: Stated) -> tuple[str, ...]:
    """The values, or the entities as the documents that state them write them."""
    if found.values:
        return found.values
    ending: dict[str, Chain] = {}
    for chain in found.chains:
        for end in (chain[-1].source, chain[-1].target):
            ending.setdefault(end, chain)
    named = [
        stated.name_at(entity, ending[entity]) if entity in ending else stated.facts.entities[entity].name
        for entity in found.entities
    ]
    return tuple(dict.fromkeys(named))


def _statements(chains: Sequence[Chain], stated: Stated) -> list[str]:
    """The statements of the chains in words with the numbers of their sources, each place once."""
    found: dict[tuple[str, int, int], str] = {}
    for relation in relations_in(chains):
        one = stated.of(relation)
        place = (one.place.document, one.place.start, one.place.end)
        found.setdefault(place, f"{in_words(one.evidence.text)} [{one.evidence.number + 1}]")
        if len(found) == MOST_STATEMENTS:
            break
    return list(found.values())


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


def _paths(found: Found, stated: Stated) -> str:
    return "\n".join(path_list(stated, found.chains, numbered=False))


# --- the steps -------------------------------------------------------------------------------------------------------


def _asked(step: CheckedStep, facts: GraphFacts) -> str:
    """A step in words: its operator, what it works on, and its way."""
    way = "".join(f" <-[{hop.relation}]-" if hop.inverse else f" -[{hop.relation}]->" for hop in step.hops)
    targets = f" to {_operands(step.targets, facts)}" if step.targets else ""
    return f"{step.operator} {_operands(step.sources, facts)}{way}{targets}"


def _operands(operands: Sequence[Operand], facts: GraphFacts) -> str:
    return ", ".join(
        "/".join(dict.fromkeys(facts.entities[entity].name for entity in one.entities)) or one.text for one in operands
    )


def _shown(outcome: Outcome, stated: Stated) -> str:
    return outcome.sentence() if isinstance(outcome, Problem) else _listed(_names(outcome, stated))


def _chunks(outcome: Outcome, stated: Stated) -> tuple[str, ...]:
    if isinstance(outcome, Problem):
        return ()
    shown = relations_in(outcome.chains)[:MOST_STATEMENTS]
    return tuple(dict.fromkeys(stated.of(relation).place.chunk for relation in shown))
