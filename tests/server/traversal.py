"""What does the scripted model answer where a traversal is to be planned?"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Hop:
    """A relation and its direction."""

    relation: str
    inverse: bool = False
    kind: str = ""


@dataclass(frozen=True, slots=True)
class PlanStep:
    """One operation."""

    operator: str
    sources: tuple[str, ...]
    targets: tuple[str, ...] = ()
    hops: tuple[Hop, ...] = ()


@dataclass(frozen=True, slots=True)
class Planned:
    """What the question leaves open, and the steps in order."""

    reasoning: str
    type: str
    steps: tuple[PlanStep, ...]


def plan(fields: Mapping[str, str | Sequence[str]]) -> Planned:
    """Paths between two names; of another number of them, from the first along the first relation that the question
    does not hold; around nothing where there is no name."""
    question, names = str(fields["question"]).lower(), _items(fields["names"])
    reasoning = f"{len(names)} names"
    if len(names) == 2:
        return Planned(reasoning, "s*o", (PlanStep("connect", (names[0],), (names[1],)),))
    if not names:
        return Planned(reasoning, "s**", (PlanStep("neighbours", ("nothing",)),))
    relation = next(one for one in _items(fields["relations"]) if one.lower() not in question)
    return Planned(reasoning, "sp*", (PlanStep("follow", (names[0],), hops=(Hop(relation),)),))


def _items(value: str | Sequence[str]) -> list[str]:
    return [value] if isinstance(value, str) else list(value)
