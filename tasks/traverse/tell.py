"""What is the answer that a traversal gives by itself, and on which statements does it rest?"""

from collections.abc import Sequence
from dataclasses import dataclass

from prompts.language.words import is_han
from prompts.reading.claims import Claim, Reading
from storage.records import SubQuestion
from tasks.retrieve.facts import GraphFacts
from tasks.traverse.context import Stated, path_list, relations_in
from tasks.traverse.plan import CheckedStep, Operand
from tasks.traverse.results import Chain, Found, Outcome, Problem

MOST_CLAIMS = 24
MOST_NAMED = 20
_FACTS = frozenset({"follow", "intersect", "difference", "count", "max", "min", "sort"})


@dataclass(frozen=True)
class Told:
    """The reading, the steps with what each found, and whether a model could say it better (an open question)."""

    reading: Reading
    subquestions: tuple[SubQuestion, ...]
    is_open: bool


def tell(
    question: str, asks_if: bool, steps: Sequence[CheckedStep], outcomes: Sequence[Outcome], stated: Stated
) -> Told:
    """The last step's outcome as a reading; `asks_if` says that yes or no is asked."""
    last, end = steps[-1], outcomes[-1]
    trail = tuple(
        SubQuestion(
            question=_asked(step, stated.facts), answer=_shown(outcome, stated), evidence=_chunks(outcome, stated)
        )
        for step, outcome in zip(steps, outcomes, strict=True)
    )
    if isinstance(end, Problem):
        denied = _denied(question, last, outcomes, stated) if asks_if else None
        return Told(denied or refused(end), trail, is_open=False)
    claims = _claims(_best_first(end), stated)
    if asks_if and last.operator in {"check", "connect", "intersect"}:
        return Told(_affirmed(question, last, end, claims, stated), trail, is_open=False)
    if last.operator in _FACTS:
        values = _names(end, stated)
        return Told(Reading(claims, values, "none", _listed(values)), trail, is_open=False)
    lead = _paths(end, stated) if last.operator in {"connect", "check"} else ""
    return Told(Reading(claims, (), "none", lead), trail, is_open=True)


def refused(problem: Problem) -> Reading:
    """That there is no answer, and why."""
    return Reading(support="abstained", lead=problem.sentence())


def _affirmed(question: str, last: CheckedStep, end: Found, claims: tuple[Claim, ...], stated: Stated) -> Reading:
    """Yes, with what is shared; a chain of several relations says how things are tied, not that it is so."""
    yes = "是" if is_han(question) else "Yes"
    if last.operator == "connect" and not _direct(end):
        return Reading(claims, (), "partial", _paths(end, stated))
    shared = _names(end, stated) if last.operator == "intersect" else ()
    return Reading(claims, (yes,), "none", _listed([yes, *shared]))


def _denied(question: str, last: CheckedStep, outcomes: Sequence[Outcome], stated: Stated) -> Reading | None:
    """No, where both were found and share nothing; the statements show it."""
    before = [one for one in outcomes[:-1] if isinstance(one, Found)]
    if last.operator != "intersect" or len(before) < len(outcomes) - 1:
        return None
    chains = [chain for one in before for chain in one.chains]
    word = "否" if is_han(question) else "No"
    return Reading(_claims(chains, stated), (word,), "none", _listed([word]))


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


def _best_first(found: Found) -> Sequence[Chain]:
    return sorted(found.chains, key=len)


def _claims(chains: Sequence[Chain], stated: Stated) -> tuple[Claim, ...]:
    """The statements of the chains, each place once."""
    claims: dict[tuple[str, int, int], Claim] = {}
    for relation in relations_in(chains):
        said = stated.of(relation)
        place = (said.place.document, said.place.start, said.place.end)
        claims.setdefault(place, Claim(" ".join(said.evidence.text.split()), (said.evidence.number,)))
        if len(claims) == MOST_CLAIMS:
            break
    return tuple(claims.values())


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
    shown = relations_in(outcome.chains)[:MOST_CLAIMS]
    return tuple(dict.fromkeys(stated.of(relation).place.chunk for relation in shown))
